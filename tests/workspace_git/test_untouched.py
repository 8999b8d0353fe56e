"""Whatever a session does, the user's repository is byte for byte the same before, during and after."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from git_kit import CASES, clean, difference, dirty, fingerprint, git, programs, tree_files, write

from agent_ls.errors import AgentLsError
from agent_ls.workspace.git import GitResult, Repository
from agent_ls.workspace.snapshot import Snapshot, take_snapshot
from agent_ls.workspace.worktree import Worktree, bring_ignored


def session(
    repo: Repository, work: Path, name: str = "agent-ls/issue-1", check: Callable[[], None] | None = None
) -> Snapshot:
    """A session's whole life; `check` is called while it is in the middle of it."""
    snapshot = take_snapshot(repo, work / "scratch", None)
    tree = Worktree.create(repo, snapshot, work / "tree")
    bring_ignored(repo, tree)
    assert tree.write_tree() == snapshot.tree
    write(tree.path, {"app.py": f"fixed by {name}\n", "added.py": "added\n"})
    if (tree.path / "pkg/mod.py").exists():
        (tree.path / "pkg/mod.py").unlink()
    edited = tree.write_tree()
    assert {"app.py", "added.py"} <= {change.path for change in tree.changed_files(snapshot.tree, edited)}
    assert "+++ b/app.py\n" in tree.diff(snapshot.tree, edited)
    tree.reset_to(snapshot.tree)
    assert tree.write_tree() == snapshot.tree
    tree.reset_to(edited)
    commit = tree.commit(edited, "fix", snapshot.commit)
    repo.create_branch(name, snapshot.commit)
    repo.move_branch(name, commit, snapshot.commit)
    assert repo.resolve(name) == commit
    if check is not None:
        check()
    repo.delete_branch(name, commit)
    tree.remove()
    assert not tree.path.exists()
    return snapshot


@pytest.mark.parametrize("name", CASES)
def test_a_session_leaves_the_repository_as_it_was(name: str, root: Path, work: Path) -> None:
    case = CASES[name]
    repo = Repository.discover(case.build(root))
    before = fingerprint(repo.root)

    def during() -> None:
        assert difference(before, fingerprint(repo.root, work / "tree")) == {}

    snapshot = session(repo, work, check=during)

    assert difference(before, fingerprint(repo.root)) == {}
    assert not (root.parent / "marker").exists(), (root.parent / "marker").read_text()
    assert snapshot.dirty is case.dirty
    stored = tree_files(repo.root, snapshot.tree)
    assert {path: stored.get(path, (None, None))[1] for path in case.files} == case.files
    assert set(case.left_out) == {path for path, _ in snapshot.left_out}
    assert list((work / "scratch").iterdir()) == []
    git(repo.root, "fsck", "--no-dangling", "--connectivity-only")


@pytest.mark.parametrize("name", ["programs", "submodule"])
def test_the_programs_would_have_run(name: str, root: Path) -> None:
    """Without this the marker's absence above would prove nothing."""
    repository = CASES[name].build(root)
    assert not (root.parent / "marker").exists()
    git(repository, "status", check=False)
    assert (root.parent / "marker").exists()


def _die_at(step: int, after: bool) -> Callable[[], int]:
    """Make the `step`-th call of git the last thing this process does; returns how many there were."""
    real = Repository.git
    calls = 0

    def counted(self: Repository, *args: str, **options: Any) -> GitResult:
        nonlocal calls
        calls += 1
        if calls == step and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            return real(self, *args, **options)
        finally:
            if calls == step:
                os.kill(os.getpid(), signal.SIGKILL)

    Repository.git = counted  # type: ignore[method-assign]
    return lambda: calls


def _in_child(job: Callable[[], int]) -> int:
    """Run `job` in a forked process: its return value (below 200), or minus the signal that killed it."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(job())
        except BaseException:
            os._exit(255)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.slow
@pytest.mark.parametrize(("build", "stride"), [(dirty, 1), (programs, 5)])
def test_kill_9_at_each_step_harms_nothing(
    build: Callable[[Path], Path], stride: int, root: Path, work: Path
) -> None:
    repo = Repository.discover(build(root))
    before = fingerprint(repo.root)

    def life(step: int, after: bool = False) -> int:
        calls = _die_at(step, after)
        session(repo, work)
        return calls()

    steps = _in_child(lambda: life(0))
    assert 20 < steps < 200
    for step in range(1, steps + 1, stride):
        assert _in_child(lambda step=step: life(step, after=step % 2 == 0)) == -signal.SIGKILL
        assert difference(before, fingerprint(repo.root, work / "tree")) == {}, f"killed at call {step}"
        # a later clean finds what is left, and a later session starts from nothing
        Worktree.discard(repo, work / "tree")
        if repo.branch_exists("agent-ls/issue-1"):
            repo.delete_branch("agent-ls/issue-1", repo.resolve("agent-ls/issue-1"))
        assert difference(before, fingerprint(repo.root)) == {}
    assert _in_child(lambda: life(0)) == steps
    assert not (root.parent / "marker").exists()


def test_resume_after_a_kill_in_the_middle(root: Path, work: Path) -> None:
    repo = Repository.discover(dirty(root))
    snapshot = take_snapshot(repo, work / "scratch", None)
    for step in range(1, 8):

        def life(step: int = step) -> int:
            _die_at(step, after=step % 2 == 0)
            Worktree.create(repo, snapshot, work / "tree")
            return 0

        _in_child(life)
        tree = Worktree.attach(repo, work / "tree", snapshot.commit)
        assert tree.write_tree() == snapshot.tree
        tree.remove()


def test_two_sessions_at_once_and_the_user_working_beside_them(root: Path, tmp_path: Path) -> None:
    dirty(root)
    problems: list[object] = []
    done = threading.Event()

    def agent(name: str) -> None:
        try:
            for round_ in range(3):
                work = tmp_path / name / str(round_)
                work.mkdir(parents=True)
                session(Repository.discover(root), work, f"agent-ls/{name}")
        except (AgentLsError, AssertionError) as error:
            problems.append(error)

    def user() -> None:
        number = 0
        while not done.is_set():
            number += 1
            write(root, {"users.txt": f"{number}\n"})
            for args in (("add", "users.txt"), ("commit", "-qm", f"user {number}"), ("branch", f"b{number}"),
                         ("stash", "list"), ("status",), ("pack-refs", "--all")):  # fmt: skip
                run = subprocess.run(["git", *args], cwd=root, capture_output=True)
                if run.returncode != 0:
                    problems.append((args, run.stderr))

    agents = [threading.Thread(target=agent, args=(name,)) for name in ("one", "two")]
    person = threading.Thread(target=user)
    for thread in (*agents, person):
        thread.start()
    for thread in agents:
        thread.join()
    done.set()
    person.join()
    assert problems == []
    assert git(root, "branch", "--list", "agent-ls/*") == ""
    assert git(root, "worktree", "list", "--porcelain").count("worktree ") == 1
    git(root, "fsck", "--no-dangling")


def test_the_users_worktree_commands_leave_a_session_alone(root: Path, work: Path) -> None:
    repo = Repository.discover(clean(root))
    snapshot = take_snapshot(repo, work / "scratch", None)
    tree = Worktree.create(repo, snapshot, work / "tree")
    moved = tree.path.rename(work / "hidden")  # as on a drive that is not mounted
    git(root, "worktree", "prune", "--expire", "now")
    git(root, "gc", "-q", "--prune=now")
    moved.rename(tree.path)
    assert Worktree.attach(repo, tree.path, snapshot.commit).write_tree() == snapshot.tree
    assert "locked agent-ls" in git(root, "worktree", "list", "--porcelain")
    repo.create_branch("agent-ls/x", snapshot.commit)
    git(root, "checkout", "-q", "agent-ls/x")  # not refused: the session holds no branch
    tree.remove()

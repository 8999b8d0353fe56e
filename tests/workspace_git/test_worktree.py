"""The session's own copy: files to tree and back, never outside, whatever a test run did to it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from git_kit import (
    CASES,
    NON_UTF8,
    autocrlf,
    clean,
    difference,
    dirty,
    fingerprint,
    git,
    programs,
    sparse,
    start,
    submodule,
    tree_files,
    write,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_ls.errors import UsageError
from agent_ls.workspace import snapshot as snapshots
from agent_ls.workspace.git import GitError, Repository
from agent_ls.workspace.removal import remove_tree
from agent_ls.workspace.snapshot import Snapshot, take_snapshot
from agent_ls.workspace.worktree import Change, Worktree, bring_ignored


def open_tree(top: Path, work: Path, base: str | None = None) -> tuple[Repository, Snapshot, Worktree]:
    repo = Repository.discover(top)
    snapshot = take_snapshot(repo, work / "scratch", base)
    return repo, snapshot, Worktree.create(repo, snapshot, work / "tree")


def files(path: Path) -> dict[str, tuple[str, bytes]]:
    """path -> (mode as git has it, content) of the files of a worktree."""
    out: dict[str, tuple[str, bytes]] = {}
    for folder, folders, names in os.walk(path):
        for name in [*names, *(name for name in folders if (Path(folder) / name).is_symlink())]:
            file = Path(folder) / name
            rel = file.relative_to(path).as_posix()
            if rel == ".git":
                continue
            if file.is_symlink():
                out[rel] = ("120000", os.fsencode(file.readlink()))
            elif file.is_file():
                mode = "100755" if file.stat().st_mode & 0o100 else "100644"
                out[rel] = (mode, file.read_bytes())
    return out


def _edit(path: Path) -> None:
    write(path, {"app.py": "changed\n"})


def _append_same_size(path: Path) -> None:
    write(path, {"app.py": "one = 9\nthree = 3\n"})


def _add(path: Path) -> None:
    write(path, {"new folder/ümläut\n.py": "new\n", NON_UTF8: b"\xff\xfe\x00", "empty": ""})


def _delete(path: Path) -> None:
    (path / "pkg/mod.py").unlink()


def _rename(path: Path) -> None:
    (path / "pkg/old.py").rename(path / "moved.py")


def _mode(path: Path) -> None:
    (path / "app.py").chmod(0o755)
    (path / "run.sh").chmod(0o644)


def _link(path: Path) -> None:
    (path / "app.py").unlink()
    (path / "app.py").symlink_to("run.sh")


def _folder_for_file(path: Path) -> None:
    (path / "app.py").unlink()
    write(path, {"app.py/inner.py": "x\n"})


def _file_for_folder(path: Path) -> None:
    remove_tree(path / "pkg")
    write(path, {"pkg": "x\n"})


def _nothing_seen(path: Path) -> None:
    write(path, {"build/x.o": "ignored", "a.pyc": "ignored", ".env": "secret", "id_rsa": "secret"})
    os.mkfifo(path / "fifo")
    start(path / "nested")


def _everything(path: Path) -> None:
    for entry in list(path.iterdir()):
        remove_tree(entry)


@pytest.mark.parametrize(
    ("edit", "changes"),
    [
        (_edit, [Change("app.py", "modified")]),
        (_append_same_size, [Change("app.py", "modified")]),
        (_add, [Change("empty", "added"), Change(NON_UTF8, "added"),
                Change("new folder/ümläut\n.py", "added")]),
        (_delete, [Change("pkg/mod.py", "deleted")]),
        (_rename, [Change("moved.py", "renamed", "pkg/old.py")]),
        (_mode, [Change("app.py", "modified"), Change("run.sh", "modified")]),
        (_link, [Change("app.py", "typechange")]),
        (_folder_for_file, [Change("app.py", "deleted"), Change("app.py/inner.py", "added")]),
        (_file_for_folder, [Change("pkg", "added"), Change("pkg/mod.py", "deleted"),
                            Change("pkg/old.py", "deleted")]),
        (_nothing_seen, []),
        (_everything, [Change(path, "deleted") for path in (
            ".gitignore", "app.py", "link", "pkg/mod.py", "pkg/old.py", "run.sh")]),
    ],
)  # fmt: skip
def test_files_to_tree_and_back(
    edit: Callable[[Path], None], changes: list[Change], root: Path, work: Path
) -> None:
    _, snapshot, tree = open_tree(clean(root), work)
    original = files(tree.path)
    edit(tree.path)
    edited = tree.write_tree()
    assert sorted(tree.changed_files(snapshot.tree, edited), key=repr) == sorted(changes, key=repr)
    stored = tree_files(root, edited)
    state = files(tree.path) if edit is not _nothing_seen else original
    assert stored == state

    patch = tree.diff(snapshot.tree, edited).encode("utf-8", "surrogateescape")
    index = {**os.environ, "GIT_INDEX_FILE": str(work / "index")}
    subprocess.run(["git", "read-tree", snapshot.tree], cwd=root, env=index, check=True)
    if patch:
        subprocess.run(["git", "apply", "--cached"], cwd=root, env=index, input=patch, check=True)
    applied = subprocess.run(["git", "write-tree"], cwd=root, env=index, check=True, capture_output=True)
    assert applied.stdout.decode().strip() == edited

    tree.reset_to(snapshot.tree)
    ignored = {"build/x.o", "a.pyc"} if edit is _nothing_seen else set()
    assert {path: state for path, state in files(tree.path).items() if path not in ignored} == original
    assert ignored <= set(files(tree.path))
    tree.reset_to(edited)
    assert tree.write_tree() == edited


NAMES = st.sampled_from(["a.py", "b.py", "d/a.py", "d/b.py", "d/e/c.py", "ü \n.txt", "build/x"])
STEPS = st.lists(
    st.tuples(NAMES, st.one_of(st.none(), st.sampled_from([b"", b"x\n", b"y\n", b"\r\n\x00"]))), max_size=6
)


@pytest.fixture(scope="module")
def shared_tree(tmp_path_factory: pytest.TempPathFactory) -> Worktree:
    area = tmp_path_factory.mktemp("shared")
    (area / "repo").mkdir()
    git(area / "repo", "init", "-q", "-b", "main")
    write(area / "repo", {"a.py": "x\n", ".gitignore": "build/\n"})
    git(area / "repo", "add", "-A")
    git(
        area / "repo",
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@b",
        "-c",
        "commit.gpgSign=false",
        "commit",
        "-qm",
        "first",
    )
    return open_tree(area / "repo", area / "work")[2]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=STEPS, second=STEPS)
def test_any_two_states_are_kept_apart(
    first: list[tuple[str, bytes | None]], second: list[tuple[str, bytes | None]], shared_tree: Worktree
) -> None:
    """Written, restored and written again, quickly: contents of the same size within one clock tick."""
    tree = shared_tree
    states = []
    for steps in (first, second):
        for name, content in steps:
            path = tree.path / name
            if content is None:
                remove_tree(path)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        states.append((tree.write_tree(), {k: v for k, v in files(tree.path).items() if "build/" not in k}))
    for sha, state in (*states, *states):
        assert tree_files(tree.path, sha) == state
        tree.reset_to(sha)
        assert {k: v for k, v in files(tree.path).items() if "build/" not in k} == state
        assert tree.write_tree() == sha


def test_a_link_to_outside_is_never_followed(root: Path, work: Path) -> None:
    _, snapshot, tree = open_tree(clean(root), work)
    outside = work / "outside"
    write(outside, {"mod.py": "not ours\n", "old.py": "not ours\n", "extra/x": "not ours\n"})
    before = files(outside)
    for target in (outside, root / "pkg"):
        remove_tree(tree.path / "pkg")
        (tree.path / "pkg").symlink_to(target)
        (tree.path / "extra").symlink_to(outside / "extra")
        edited = tree.write_tree()
        stored = tree_files(root, edited)
        assert stored["pkg"] == ("120000", os.fsencode(target))
        assert not any(path.startswith(("pkg/", "extra/")) for path in stored)
        tree.reset_to(snapshot.tree)
        assert not (tree.path / "pkg").is_symlink()
        assert tree.write_tree() == snapshot.tree
        tree.reset_to(edited)
        tree.reset_to(snapshot.tree)
    (tree.path / "out").symlink_to(outside)
    tree.remove()
    assert files(outside) == before
    assert git(root, "status", "--porcelain") == ""


def test_a_hard_link_to_outside_is_not_written_through(root: Path, work: Path) -> None:
    _, snapshot, tree = open_tree(clean(root), work)
    (work / "outside.py").write_text("not ours\n")
    (tree.path / "app.py").unlink()
    (tree.path / "app.py").hardlink_to(work / "outside.py")
    tree.reset_to(snapshot.tree)
    assert (work / "outside.py").read_text() == "not ours\n"
    assert (tree.path / "app.py").read_text() == "one = 1\nthree = 3\n"


def _git_gone(tree: Worktree, marker: Path) -> None:
    (tree.path / ".git").unlink()


def _git_planted(tree: Worktree, marker: Path) -> None:
    """A repository whose settings start a program at the first git command."""
    hook = marker.parent / "planted"
    hook.write_text(f"#!/bin/sh\necho ran > '{marker}'\n")
    hook.chmod(0o755)
    (tree.path / ".git").unlink()
    start(tree.path)
    for key in ("core.fsmonitor", "filter.x.clean", "core.hooksPath"):
        git(tree.path, "config", key, str(hook))
    write(tree.path, {".gitattributes": "* filter=x\n"})
    marker.unlink(missing_ok=True)


def _git_redirected(tree: Worktree, marker: Path) -> None:
    other = start(marker.parent / "elsewhere")
    (tree.path / ".git").write_text(f"gitdir: {other}/.git\n")


def _git_linked(tree: Worktree, marker: Path) -> None:
    (tree.path / ".git").unlink()
    (tree.path / ".git").symlink_to(marker.parent / "nowhere")


@pytest.mark.parametrize("damage", [_git_gone, _git_planted, _git_redirected, _git_linked])
def test_a_damaged_or_planted_dot_git_changes_nothing(
    damage: Callable[[Worktree, Path], None], root: Path, work: Path
) -> None:
    repo, snapshot, tree = open_tree(clean(root), work)
    before = fingerprint(root, tree.path)
    marker = work / "marker"
    damage(tree, marker)
    write(tree.path, {"app.py": "edited\n"})
    edited = tree.write_tree()
    assert tree_files(root, edited)["app.py"][1] == b"edited\n"
    tree.reset_to(snapshot.tree)
    assert tree.write_tree() == snapshot.tree
    assert git(tree.path, "rev-parse", "HEAD").strip() == snapshot.commit  # git works in it again
    damage(tree, marker)
    again = Worktree.attach(repo, tree.path, snapshot.commit)
    assert git(again.path, "rev-parse", "HEAD").strip() == snapshot.commit
    damage(tree, marker)
    tree.remove()
    assert not marker.exists()
    assert difference(before, fingerprint(root)) == {}


def test_read_blob(root: Path, work: Path) -> None:
    content = {
        "latin.txt": b"\xe9\r\n",
        "bin": bytes(range(256)),
        "a\tb\nc": b"odd",
        "*": b"star",
        NON_UTF8: b"n",
    }
    start(root)
    write(root, content)
    submodule_commit = git(root, "rev-parse", "HEAD").strip()
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{submodule_commit},sub")
    git(root, "add", "-A", ".")
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{submodule_commit},sub")
    git(root, "commit", "-qm", "odd")
    _, snapshot, tree = open_tree(root, work, "HEAD")
    for path, data in content.items():
        assert tree.read_blob(snapshot.tree, path) == data
    assert tree.read_blob(snapshot.tree, "link") == b"app.py"
    assert tree.read_blob(snapshot.commit, "pkg/mod.py") == b"two = 2\n"
    for absent in ("pkg", "pkg/", "sub", "nowhere", "app.py/x", "../app.py", "/app.py", ""):
        assert tree.read_blob(snapshot.tree, absent) is None


def test_diff_ignores_the_users_settings(root: Path, work: Path) -> None:
    _, snapshot, tree = open_tree(programs(root), work, "HEAD")
    for key, value in {"diff.mnemonicPrefix": "true", "diff.context": "0", "diff.renames": "false",
                       "diff.algorithm": "patience", "core.quotePath": "true", "diff.colorMoved": "zebra",
                       "diff.wordRegex": ".", "diff.relative": "true", "diff.submodule": "log",
                       "diff.orderFile": str(work / "nowhere"), "diff.srcPrefix": "s/"}.items():  # fmt: skip
        git(root, "config", key, value)
    write(tree.path, {"app.py": "one = 1\nthree = 4\n", "ü.txt": "ü"})
    lines = tree.diff(snapshot.tree, tree.write_tree()).split("\n")
    assert [line for line in lines if not line.startswith("index ")] == [
        "diff --git a/app.py b/app.py", "--- a/app.py", "+++ b/app.py", "@@ -1,2 +1,2 @@", " one = 1",
        "-three = 3", "+three = 4", "diff --git a/ü.txt b/ü.txt", "new file mode 100644",
        "--- /dev/null", "+++ b/ü.txt",
        "@@ -0,0 +1 @@", "+ü", "\\ No newline at end of file", "",
    ]  # fmt: skip
    assert not (root.parent / "marker").exists()


def test_line_endings_are_the_users(root: Path, work: Path) -> None:
    _, snapshot, tree = open_tree(autocrlf(root), work)
    assert (
        (tree.path / "app.py").read_bytes() == (root / "app.py").read_bytes() == b"one = 1\r\nthree = 4\r\n"
    )
    write(tree.path, {"app.py": b"one = 1\r\nthree = 5\r\n"})
    edited = tree.write_tree()
    assert tree.read_blob(edited, "app.py") == b"one = 1\nthree = 5\n"
    assert [change.path for change in tree.changed_files(snapshot.tree, edited)] == ["app.py"]


def test_the_worktree_is_as_sparse_as_the_users_tree(root: Path, work: Path) -> None:
    _, snapshot, tree = open_tree(sparse(root), work)
    assert (tree.path / "near/new.py").exists()
    assert (tree.path / "far/outside.py").read_text() == "outside the cone\n"
    assert not (tree.path / "far/away.py").exists()
    write(tree.path, {"far/away.py": "edited though not shown\n", "far/more.py": "more\n"})
    edited = tree.write_tree()
    assert [change.path for change in tree.changed_files(snapshot.tree, edited)] == [
        "far/away.py",
        "far/more.py",
    ]
    tree.reset_to(snapshot.tree)
    assert (tree.path / "far/outside.py").exists() and not (tree.path / "far/more.py").exists()
    assert tree.write_tree() == snapshot.tree


def test_files_behind_a_filter_are_shown_but_never_stored(root: Path, work: Path) -> None:
    """As with git-lfs and git-crypt: the tree holds a pointer or a cipher, the user's files the content."""
    start(root)
    write(root, {".gitattributes": "*.dat filter=crypt\n", "a.dat": "stored form\n", "b.dat": "same\n",
                 "deep/d.dat": "stored form\n"})  # fmt: skip
    git(root, "add", "-A")
    git(root, "commit", "-qm", "stored")
    write(root, {"a.dat": "plain secret\n", "deep/d.dat": "plain secret\n"})
    git(root, "config", "filter.crypt.clean", "printf 'stored form\\n'")
    git(root, "config", "filter.crypt.smudge", "printf 'plain secret\\n'")
    git(root, "config", "filter.crypt.required", "true")
    repo, snapshot, tree = open_tree(root, work)
    assert tree_files(root, snapshot.tree)["a.dat"][1] == b"stored form\n"
    assert (tree.path / "a.dat").read_text() == "plain secret\n"
    assert tree.write_tree() == snapshot.tree
    write(tree.path, {"a.dat": "changed\n", "b.dat": "edited\n", "c.dat": "new\n"})
    edited = tree.write_tree()
    assert [change.path for change in tree.changed_files(snapshot.tree, edited)] == ["b.dat"]
    assert [path for path, _ in tree.left_out()] == ["c.dat"]
    (tree.path / "a.dat").unlink()
    tree.reset_to(snapshot.tree)
    assert (tree.path / "a.dat").read_text() == "plain secret\n"
    assert (tree.path / "b.dat").read_text() == "same\n"
    outside = work / "outside"
    outside.mkdir()
    remove_tree(tree.path / "deep")
    (tree.path / "deep").symlink_to(outside)
    tree.reset_to(snapshot.tree)
    assert (tree.path / "deep/d.dat").read_text() == "plain secret\n"
    assert list(outside.iterdir()) == []
    assert Worktree.attach(repo, tree.path, snapshot.commit).write_tree() == snapshot.tree


def test_huge_and_many_files_are_left_out(root: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "MAX_UNTRACKED_FILES", 3)
    monkeypatch.setattr(snapshots, "MAX_UNTRACKED_BYTES", 1000)
    start(root)
    with (root / "huge.bin").open("wb") as file:
        file.truncate(50_000_001)
    write(root, {"a": "a", "b": "bb", "big": "x" * 900, "more": "y" * 901, "app.py": "z" * 2000})
    _, snapshot, tree = open_tree(root, work)
    assert dict(snapshot.left_out) == {
        "huge.bin": "untracked and larger than 50 MB", "more": "too much untracked content",
    }  # fmt: skip
    assert {"a", "b", "big"} <= set(tree_files(root, snapshot.tree))
    assert tree_files(root, snapshot.tree)["app.py"][1] == b"z" * 2000
    with (tree.path / "dump.bin").open("wb") as file:
        file.truncate(50_000_001)
    assert tree.write_tree() == snapshot.tree
    assert [path for path, _ in tree.left_out()] == ["dump.bin"]
    tree.reset_to(snapshot.tree)
    assert not (tree.path / "dump.bin").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become someone else")
def test_unreadable_files_are_left_out(root: Path, work: Path) -> None:
    start(root)
    write(root, {"locked.py": "x\n", "shut/inner.py": "x\n", "shut/tracked.py": "x\n", "app.py": "changed\n"})
    git(root, "add", "shut/tracked.py")
    git(root, "commit", "-qm", "tracked")
    for folder, _, names in os.walk(root.parent):
        for path in (Path(folder), *(Path(folder) / name for name in names)):
            os.chown(path, 12345, 12345, follow_symlinks=False)
    (root / "locked.py").chmod(0)
    (root / "app.py").chmod(0)
    (root / "shut").chmod(0)
    os.chown(work, 12345, 12345)
    closed = [
        folder for folder in (Path(os.environ["HOME"]), *root.parents) if folder.stat().st_mode & 0o5 != 0o5
    ]
    modes = {folder: folder.stat().st_mode & 0o7777 for folder in {*closed, root.parents[1]}}
    for folder, mode in modes.items():
        folder.chmod(mode | 0o055)
    pid = os.fork()
    if pid == 0:
        try:
            os.setuid(12345)
            snapshot = take_snapshot(Repository.discover(root), work / "scratch", None)
            (work / "out").write_text(repr((snapshot.dirty, sorted(snapshot.left_out))))
        except BaseException as error:
            (work / "out").write_text(repr(error))
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    for folder, mode in modes.items():
        folder.chmod(mode)
    assert (work / "out").read_text() == repr(
        (False, [("app.py", "not readable"), ("locked.py", "not readable")])
    )


@pytest.mark.parametrize(
    "name", ["tree", "repo", "repo/.git/x", "repo/sub/tree", ".", "full", "file", "link"]
)
def test_where_a_worktree_may_not_be(name: str, root: Path, tmp_path: Path) -> None:
    repo = Repository.discover(clean(root))
    snapshot = take_snapshot(repo, tmp_path / "scratch", None)
    write(root.parent, {"full/x": "x", "file": "x"})
    (root.parent / "link").symlink_to(root)
    before = fingerprint(root)
    if name == "tree":
        (root.parent / "tree").mkdir()  # an empty directory is fine
        Worktree.create(repo, snapshot, root.parent / name).remove()
    else:
        with pytest.raises(UsageError, match=r"inside the repository|exists already"):
            Worktree.create(repo, snapshot, root.parent / name)
    assert difference(before, fingerprint(root)) == {}
    assert sorted(path.name for path in root.parent.iterdir()) == ["file", "full", "link", "repo"]


def _gone(tree: Worktree) -> None:
    remove_tree(tree.path)


def _shut(tree: Worktree) -> None:
    write(tree.path, {"a/b/c": "x", "d/e": "x"})
    for folder in ("a/b", "a", "d", ""):
        (tree.path / folder).chmod(0)
    (tree.path / "d").chmod(0o555) if os.access(tree.path / "d", os.F_OK) else None


DEPTH = 400
"""Levels of folders: more than `short_stack` leaves calls, but nothing that a killed run may not leave."""


@contextmanager
def short_stack() -> Iterator[None]:
    """Whatever calls itself once for each of DEPTH levels fails."""
    used, frame = 0, sys._getframe()
    while frame is not None:
        used, frame = used + 1, frame.f_back
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(used + DEPTH // 2)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def _deep(tree: Worktree) -> None:
    path = tree.path
    for _ in range(DEPTH):
        path = path / "d"
        path.mkdir(exist_ok=True)


def _file_instead(tree: Worktree) -> None:
    remove_tree(tree.path)
    tree.path.write_text("a file")


def _link_instead(tree: Worktree) -> None:
    remove_tree(tree.path)
    (tree.path.parent / "elsewhere").mkdir(exist_ok=True)
    write(tree.path.parent, {"elsewhere/precious": "x"})
    tree.path.symlink_to("elsewhere")


def _record_gone(tree: Worktree) -> None:
    remove_tree(tree._admin)


def _index_gone(tree: Worktree) -> None:
    (tree._admin / "agent-ls.index").unlink()


def _index_damaged(tree: Worktree) -> None:
    (tree._admin / "agent-ls.index").write_bytes(b"DIRC nonsense")


def _record_damaged(tree: Worktree) -> None:
    (tree._admin / "HEAD").unlink()
    (tree._admin / "commondir").unlink()


def _intact(tree: Worktree) -> None:
    write(tree.path, {"app.py": "kept\n"})


DAMAGE = [_gone, _shut, _deep, _file_instead, _link_instead, _record_gone, _index_gone, _index_damaged,
          _record_damaged, _intact]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_remove_and_attach_after_damage(damage: Callable[[Worktree], None], root: Path, work: Path) -> None:
    repo = Repository.discover(dirty(root))
    before = fingerprint(root)
    snapshot = take_snapshot(repo, work / "scratch", None)
    tree = Worktree.create(repo, snapshot, work / "tree")
    damage(tree)
    with short_stack():
        again = Worktree.attach(repo, work / "tree", snapshot.commit)
    assert again.base == snapshot.commit
    if damage is _intact:
        assert (again.path / "app.py").read_text() == "kept\n"
    with short_stack():
        again.reset_to(snapshot.tree)
        assert again.write_tree() == snapshot.tree
    damage(again)
    for _ in range(2):
        with short_stack():
            tree.remove()
        assert not os.path.lexists(tree.path)
        assert difference(before, fingerprint(root)) == {}
    if damage is _link_instead:
        assert (work / "elsewhere/precious").read_text() == "x"


def test_a_vanished_worktree_is_reported(root: Path, work: Path) -> None:
    _, snapshot, tree = open_tree(clean(root), work)
    remove_tree(tree.path)
    for call in (tree.write_tree, lambda: tree.reset_to(snapshot.tree)):
        with pytest.raises(GitError, match="is gone"):
            call()
    assert not tree.path.exists()


def test_the_lock_of_a_killed_git_is_no_obstacle(root: Path, work: Path) -> None:
    repo, snapshot, tree = open_tree(clean(root), work)
    for use in (tree, Worktree.attach(repo, tree.path, snapshot.commit)):
        for lock in ("agent-ls.index.lock", "index.lock"):
            (tree._admin / lock).write_bytes(b"")
        write(tree.path, {"app.py": "edited\n"})
        edited = use.write_tree()
        assert edited != snapshot.tree
        (tree._admin / "agent-ls.index.lock").write_bytes(b"")
        use.reset_to(snapshot.tree)
        assert use.write_tree() == snapshot.tree


def test_removal_leaves_the_users_worktrees(root: Path, work: Path) -> None:
    start(root)
    git(root, "worktree", "add", "-q", str(root.parent / "mine"), "other")
    git(root, "worktree", "add", "-q", "--detach", str(root.parent / "away"))
    (root.parent / "away").rename(root.parent / "unplugged")
    _, _, tree = open_tree(root, work)
    old = root / ".git/worktrees/tree7"
    write(old, {"locked": "initializing"})
    os.utime(old, (0, 0))
    young = root / ".git/worktrees/tree8"
    write(young, {"locked": "initializing"})
    tree.remove()
    assert not old.exists() and young.exists()
    assert (root / ".git/worktrees/away/gitdir").exists()
    assert (root.parent / "mine/app.py").exists()


def test_submodules_are_brought_but_never_recorded(root: Path, work: Path) -> None:
    repo, snapshot, tree = open_tree(submodule(root), work)
    links = {path: data for path, (mode, data) in tree_files(root, snapshot.tree).items() if mode == "160000"}
    assert links == {
        name: git(root / name, "rev-parse", "HEAD").strip().encode()
        for name in ("vendor/lib", "vendor/second")
    }
    assert list((tree.path / "vendor/lib").iterdir()) == []
    content = bring_ignored(repo, tree)
    assert content.copied == ("vendor/lib/", "vendor/second/")
    assert (tree.path / "vendor/lib/app.py").read_text() == "dirty in the submodule\n"
    assert (tree.path / "vendor/lib/extra.py").exists() and not (tree.path / "vendor/lib/.git").exists()
    assert tree.write_tree() == snapshot.tree
    write(tree.path, {"vendor/lib/app.py": "changed by the agent\n", "vendor/lib/new.py": "x"})
    start(tree.path / "vendor/second")
    remove_tree(tree.path / "vendor/lib/pkg")
    assert tree.write_tree() == snapshot.tree
    remove_tree(tree.path / "vendor/lib")
    assert tree.write_tree() == snapshot.tree
    tree.reset_to(snapshot.tree)
    assert tree.write_tree() == snapshot.tree
    assert not (root.parent / "marker").exists()


def test_a_state_without_its_ignore_file_does_not_take_brought_content(root: Path, work: Path) -> None:
    start(root)
    write(root, {"build/lib.so": b"\x7fELF", "_version.py": "v = 1\n", ".venv/pyvenv.cfg": ""})
    repo, snapshot, tree = open_tree(root, work)
    bring_ignored(repo, tree)
    (tree.path / ".gitignore").unlink()
    write(tree.path, {".venv/bin/python": "x", "fresh.py": "x\n"})
    edited = tree.write_tree()
    assert [(c.path, c.status) for c in tree.changed_files(snapshot.tree, edited)] == [
        (".gitignore", "deleted"), ("fresh.py", "added"),
    ]  # fmt: skip
    tree.reset_to(snapshot.tree)
    assert (tree.path / "build/lib.so").exists() and (tree.path / "_version.py").exists()


def test_only_what_a_tree_holds_stays_for_a_test_run(root: Path, work: Path) -> None:
    start(submodule(root))
    write(root, {"build/lib.so": b"\x7fELF", "_version.py": "v = 1\n", ".venv/pyvenv.cfg": ""})
    repo, _, tree = open_tree(root, work)
    bring_ignored(repo, tree)
    before = files(tree.path)
    assert tree.remove_unstored() == []
    write(
        tree.path,
        {"build/more.so": "x", "late.log": "x", "fresh.py": "x", ".env": "KEY=1\n", "odd/a.log": ""},
    )
    with (tree.path / ".gitignore").open("a") as file:
        file.write("*.log\n")
    removed = tree.remove_unstored()
    assert sorted(removed) == [".env", "late.log", "odd/"]
    assert {*before, "fresh.py", "build/more.so"} == set(files(tree.path))
    stored = {
        "fresh.py": True, "app.py": True, "late.log": False, "_version.py": False, "build/x.so": False,
        "vendor/lib/app.py": False, "vendor/lib/new.py": False, ":(glob)*.log": False, "new/*.py": True,
    }  # fmt: skip
    assert {path: tree.would_store(path, tracked=False) for path in stored} == stored
    assert tree.would_store("late.log", tracked=True)


@pytest.mark.parametrize(
    "name", ["detached", "linked_worktree", "sha256", "odd_path", "inside_submodule", "shallow"]
)
def test_git_works_inside_the_worktree(name: str, root: Path, work: Path) -> None:
    """Version numbers derived from git (setuptools-scm and others) need it."""
    _, snapshot, tree = open_tree(CASES[name].build(root), work)
    assert git(tree.path, "rev-parse", "HEAD").strip() == snapshot.commit
    assert git(tree.path, "status", "--porcelain") == ""
    assert git(tree.path, "rev-parse", "--show-toplevel").removesuffix("\n") == str(tree.path)
    assert git(tree.path, "branch", "--show-current") == ""
    tree.remove()

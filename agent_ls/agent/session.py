"""A session: the user's snapshot, the worktree, the test runner and the event file, held together."""

from __future__ import annotations

import contextlib
import fcntl
import re
import secrets
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from attrs import asdict, define, evolve

from agent_ls import __version__
from agent_ls.agent.limits import Meter
from agent_ls.agent.policy import policy_for
from agent_ls.agent.progress import ProgressTracker
from agent_ls.agent.protection import reasons_by_content
from agent_ls.cancel import CancelToken
from agent_ls.errors import UsageError
from agent_ls.events import Event, EventLog
from agent_ls.guard.protected import reason_protected
from agent_ls.guard.trees import GitTree
from agent_ls.redact import make_redactor
from agent_ls.repair.localise import Suspect
from agent_ls.sandbox.confine import Sandbox, View, choose
from agent_ls.settings import Settings, state_dir
from agent_ls.task import Task
from agent_ls.testing.plan import find_plan
from agent_ls.testing.quick import QuickEvent, QuickRunner
from agent_ls.testing.results import TestRun
from agent_ls.testing.runner import TestRunner
from agent_ls.workspace.files import Workspace
from agent_ls.workspace.git import Repository, split_z
from agent_ls.workspace.paths import is_ci_or_lock
from agent_ls.workspace.removal import remove_tree
from agent_ls.workspace.secret_files import known_secrets
from agent_ls.workspace.snapshot import Snapshot, take_snapshot
from agent_ls.workspace.worktree import Worktree, bring_ignored

Ask = Callable[[str], str | None]

_REMOVAL_S = 0.3
"""Whoever asked for a stop does not wait longer than this for files to be deleted."""
_FRESH_FIRST = 2
"""So many runs of selected tests take fresh processes: a short session needs no warm one."""


def slug(text: str, limit: int = 40) -> str:
    """A branch-name-safe word sequence; "task" if nothing is left."""
    words = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return words[:limit].rstrip("-") or "task"


def branch_name(task: Task) -> str:
    prefix = f"issue-{task.number}-" if task.number is not None else ""
    return f"agent-ls/{prefix}{slug(task.title)}"


@define
class Session:
    """Everything one task needs while it runs. Create with `open_session`, end with `close`.

    `tip` is the commit that the session's branch has: the base, or what an earlier session left there.
    """

    id: str
    directory: Path
    task: Task
    settings: Settings
    repo: Repository
    snapshot: Snapshot
    branch: str
    worktree: Worktree
    workspace: Workspace
    runner: TestRunner
    quick: QuickRunner
    log: EventLog
    meter: Meter
    progress: ProgressTracker
    cancel: CancelToken
    ask: Ask
    _lock: IO[bytes]
    tip: str
    base_tree: str = ""
    baseline: TestRun | None = None
    asked: tuple[str, ...] = ()
    attempts: int = 0
    suspects: Sequence[Suspect] = ()
    forget: bool = False
    on_text: Callable[[str], None] | None = None
    _base_paths: frozenset[str] | None = None
    _base_view: GitTree | None = None
    _by_content: tuple[TestRun | None, Mapping[str, str]] | None = None

    def phase(self, name: str, text: str) -> None:
        self.log.append("phase", name=name, text=text)

    def note(self, text: str, level: str = "info") -> None:
        self.log.append("note", level=level, text=text)

    def delta(self, text: str) -> None:
        """A piece of the model's answer as it comes; only for displays, not part of the trajectory."""
        if self.on_text is not None:
            self.on_text(text)

    def protected(self, path: str) -> str | None:
        """Why this session may not edit `path`; None if it may."""
        exists = self.worktree.read_blob(self.base_tree, path) is not None
        if not self.worktree.would_store(path, tracked=exists):
            return "no commit would hold it: git ignores it, or it belongs to a submodule or a filter"
        return reason_protected(
            path, exists_at_base=exists, policy=self.settings.tests, base_has=self.base_has
        ) or self.protected_content(path)

    def protected_content(self, path: str) -> str | None:
        """Why the file at `path` in the base may not be changed for what is in it; None if it may."""
        if self.settings.tests == "edit":
            reason = "leave to edit tests does not cover what CI runs and which versions are installed"
            return reason if is_ci_or_lock(path) else None
        if self._by_content is None or self._by_content[0] is not self.baseline:
            self._by_content = (self.baseline, reasons_by_content(self.base_view, self.baseline))
        return self._by_content[1].get(path)

    @property
    def base_view(self) -> GitTree:
        """The tree that the session started from, as the guard reads it."""
        if self._base_view is None:
            self._base_view = GitTree(self.repo, self.base_tree)
        return self._base_view

    def base_has(self, path: str) -> bool:
        """Whether the base tree has a file or a folder at `path`."""
        if self._base_paths is None:
            raw = self.repo.git(
                "ls-tree", "-r", "-t", "-z", "--name-only", "--full-tree", self.base_tree, text=False
            )
            self._base_paths = frozenset(split_z(raw.data))
        return path in self._base_paths

    def close(self) -> None:
        """Remove what only a running session needs; the event file stays."""
        try:
            with contextlib.suppress(OSError):
                self.quick.close()
            if not self.worktree.remove(_patience(self.cancel)):
                self.note("the session's copy is large: `agent-ls clean` removes the rest of it")
            with contextlib.suppress(OSError):  # tests may leave folders without permissions
                remove_tree(self.directory / "scratch", _patience(self.cancel))
        finally:
            self.log.close()
            self._lock.close()
            if self.forget:
                shutil.rmtree(self.directory, ignore_errors=True)


def sessions_root() -> Path:
    return state_dir() / "sessions"


def lock_session(directory: Path, tries: int = 1) -> IO[bytes]:
    """Take the session's lock, held as long as the file is open. Raises UsageError if it runs elsewhere.

    Who lists sessions holds each lock for an instant: with more `tries` (0.05 s apart) that is no obstacle.
    """
    handle = (directory / "lock").open("ab")
    for left in reversed(range(tries)):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if left:
                time.sleep(0.05)
                continue
            handle.close()
            raise UsageError(
                f"session {directory.name} is running in another process", "Stop it first, or wait for it."
            ) from error
        break
    return handle


def is_running(directory: Path) -> bool:
    """Does a live process hold the session's lock?"""
    if not (directory / "lock").exists():
        return False
    try:
        lock_session(directory).close()
    except UsageError:
        return True
    return False


def open_session(
    repo_path: Path,
    task: Task,
    settings: Settings,
    *,
    cancel: CancelToken,
    on_event: Callable[[Event], None],
    ask: Ask,
    tip: str | None = None,
    buffers: Mapping[str, bytes] | None = None,
) -> Session:
    """Make the copy of the repository and everything around it; no test has run yet.

    With `tip` the branch `settings.branch` exists at that commit and is gone on with. `buffers` are texts
    that an editor has not saved (see `take_snapshot`). Raises UsageError (no
    repository, branch taken, no sandbox …) and EnvBroken (no tests); in either case nothing is left
    behind.
    """
    repo = Repository.discover(repo_path)
    policy = policy_for(settings, task)
    settings = evolve(settings, tests=policy.name)
    sandbox = choose(settings.sandbox, cancel)
    session_id = f"{time.strftime('%Y%m%d-%H%M%S')}-{slug(task.title, 24)}-{secrets.token_hex(2)}"
    directory = sessions_root() / session_id
    _refuse_inside(repo, directory)
    undo: list[Callable[[], object]] = []
    closing: list[Callable[[], None]] = []
    try:
        try:
            (directory / "scratch").mkdir(parents=True)
        except OSError as error:
            raise UsageError(
                f"the state directory {sessions_root()} can't be used: {error.strerror or error}",
                "Name another one with AGENT_LS_STATE_DIR.",
            ) from error
        undo.append(lambda: shutil.rmtree(directory, ignore_errors=True))
        lock = lock_session(directory)
        closing.append(lock.close)
        snapshot = take_snapshot(repo.until(cancel), directory / "scratch", settings.base, buffers)
        cancel.raise_if_cancelled()
        branch = settings.branch or branch_name(task)
        if tip is None:
            branch = reserve(repo, branch, snapshot.commit, chosen=settings.branch is not None)
            undo.append(lambda: repo.delete_branch(branch, snapshot.commit))
        log = EventLog(
            directory / "events.jsonl",
            make_redactor(
                [settings.api_key or "", *known_secrets(repo.root)],
                keep=[str(repo.root), branch, task.title, *task.tests],
            ),
        )
        closing.append(log.close)
        log.listen(on_event)
        log.append(
            "session_started",
            id=session_id,
            task=asdict(task),
            repo=str(repo.root),
            head=snapshot.head,
            base=snapshot.commit,
            branch=branch,
            worktree=str(directory / "tree"),
            dirty=snapshot.dirty,
            model=settings.model,
            strategy=settings.strategy,
            settings=public_settings(settings),
            sandbox=sandbox.name,
            version=__version__,
        )
        if policy.reason:
            log.append("note", level="info", text=policy.reason)
        # After the event: a session that is killed from here on can be found, resumed and cleaned.
        undo.append(lambda: Worktree.discard(repo, directory / "tree", _patience(cancel)))
        worktree = Worktree.create(repo, snapshot, directory / "tree", cancel)
        return _assemble(
            session_id,
            directory,
            task,
            settings,
            repo,
            snapshot,
            branch,
            worktree,
            sandbox,
            log,
            lock,
            cancel,
            ask,
            tip or snapshot.commit,
        )
    except BaseException:
        _take_back(undo)
        for close in reversed(closing):
            close()
        raise


def _take_back(undo: Sequence[Callable[[], object]]) -> None:
    """Undo the last step first. One that could not end in time (False) leaves the rest to `clean`."""
    for step in reversed(undo):
        try:
            if step() is False:
                return
        except Exception:  # the first error is the one to report
            continue


def _patience(cancel: CancelToken) -> float | None:
    return _REMOVAL_S if cancel.cancelled else None


def _refuse_inside(repo: Repository, directory: Path) -> None:
    """Raise UsageError, before anything is written, when sessions would lie in the user's repository."""
    place = directory.absolute().parent.resolve()
    for root in (repo.root, repo.common_dir, repo.git_dir):
        if place == root or place.is_relative_to(root):
            raise UsageError(
                f"the state directory {place} lies inside the repository {repo.root}",
                "Move it out (AGENT_LS_STATE_DIR).",
            )


def reserve(repo: Repository, name: str, commit: str, *, chosen: bool) -> str:
    """Create the branch; our own name gets a number when it is taken, a chosen one is an error."""
    if chosen:
        repo.create_branch(name, commit)
        return name
    while True:
        candidate = free_branch(repo, name)
        try:
            repo.create_branch(candidate, commit)
        except UsageError:
            if repo.branch_exists(candidate):  # another session was faster
                continue
            raise
        return candidate


def free_branch(repo: Repository, name: str) -> str:
    """`name`, with a number where a branch of that name exists. Raises UsageError after a thousand."""
    for number in range(1, 1000):
        candidate = name if number == 1 else f"{name}-{number}"
        if not repo.branch_exists(candidate):
            return candidate
    raise UsageError(f"a thousand branches named {name}-… exist", "Delete some, or choose one with --branch.")


def _assemble(
    session_id: str,
    directory: Path,
    task: Task,
    settings: Settings,
    repo: Repository,
    snapshot: Snapshot,
    branch: str,
    worktree: Worktree,
    sandbox: Sandbox,
    log: EventLog,
    lock: IO[bytes],
    cancel: CancelToken,
    ask: Ask,
    tip: str,
) -> Session:
    ignored = bring_ignored(repo, worktree, cancel)
    for path, reason in (*snapshot.left_out, *ignored.left_out):
        log.append("note", level="warning", text=f"not copied into the session: {path} ({reason})")
    view = View(
        worktree=worktree.path,
        repo=repo.root,
        scratch=directory / "scratch",
        readonly=ignored.readonly,
        network=settings.network,
    )
    plan = find_plan(worktree.path, repo.root, settings, cancel)
    for reason in plan.reasons:
        log.append("note", level="info", text=reason)
    runner = TestRunner(plan, sandbox, view, settings)

    def say(event: QuickEvent) -> None:
        log.append("quick_tests", state=event.state, reason=event.reason)

    return Session(
        id=session_id,
        directory=directory,
        task=task,
        settings=settings,
        repo=repo,
        snapshot=snapshot,
        branch=branch,
        worktree=worktree,
        workspace=Workspace(worktree.path, cancel),
        runner=runner,
        quick=QuickRunner(runner, directory / "quick", on_event=say, after=_FRESH_FIRST),
        log=log,
        meter=Meter(settings.limits),
        progress=ProgressTracker(settings.limits),
        cancel=cancel,
        ask=ask,
        lock=lock,
        tip=tip,
        base_tree=worktree.write_tree(),
    )


def public_settings(settings: Settings) -> dict[str, Any]:
    """The settings as they may be written down: no key."""
    values = asdict(settings)
    values["api_key"] = None
    return values

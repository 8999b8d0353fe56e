"""What earlier sessions left: list, find and remove them. The event files are all there is."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import frozen

from agent_ls.agent.session import is_running, lock_session, sessions_root
from agent_ls.errors import AgentLsError, UsageError
from agent_ls.events import Event, read_events
from agent_ls.verdict import Verdict
from agent_ls.workspace.git import Repository
from agent_ls.workspace.worktree import Worktree

BEGINNING_S = 60.0
"""A session that has written no event for so long and that no process holds was killed."""


@frozen
class SessionInfo:
    """One line of `agent-ls sessions`. `started` is in seconds since the epoch; `verdict` None: not ended."""

    id: str
    repo: str
    title: str
    branch: str | None
    verdict: str | None
    started: float
    events_path: Path
    running: bool


def sessions(repo: Path | None = None) -> list[SessionInfo]:
    """The sessions of the repository whose root is `repo` (None: of all on this machine), newest first.

    A damaged one is listed with what can be read.
    """
    root = sessions_root()
    found = []
    for directory in sorted(root.iterdir(), reverse=True) if root.is_dir() else []:
        path = directory / "events.jsonl"
        if not path.is_file():
            continue
        start, end = start_and_end(path)
        if start is None or (repo is not None and not _same(Path(start.data["repo"]), repo)):
            continue
        found.append(
            SessionInfo(
                id=directory.name,
                repo=start.data["repo"],
                title=start.data["task"]["title"],
                branch=end.data["branch"] if end else start.data["branch"],
                verdict=end.data["verdict"] if end else None,
                started=start.time,
                events_path=path,
                running=is_running(directory),
            )
        )
    return sorted(found, key=lambda info: info.started, reverse=True)


def _same(one: Path, other: Path) -> bool:
    return one == other or one.resolve() == other.resolve()


_START = {"repo", "base", "branch", "task"}


def _readable(path: Path) -> Iterator[Event]:
    """The events of a file up to the first damage."""
    try:
        yield from read_events(path)
    except (OSError, ValueError):
        return


def start_and_end(path: Path) -> tuple[Event | None, Event | None]:
    start = end = None
    for event in _readable(path):
        if event.kind == "session_started" and event.data.keys() >= _START:
            start = start or event
        elif event.kind == "session_finished":
            end = event
        elif event.kind == "session_resumed":
            end = None
    return start, end


def find_session(session_id: str) -> SessionInfo:
    """A session by its id or an unambiguous beginning of it. Raises UsageError."""
    matches = [info for info in sessions() if info.id == session_id] or [
        info for info in sessions() if info.id.startswith(session_id)
    ]
    if not matches:
        raise UsageError(f"no session {session_id!r}", "`agent-ls sessions --all-repos` lists them.")
    if len(matches) > 1:
        raise UsageError(
            f"{session_id!r} is the beginning of {len(matches)} sessions", "Give more of the id."
        )
    return matches[0]


def best_tree(path: Path) -> str | None:
    """The tree of the last attempt that brought progress, else of none."""
    best = tree = None
    for event in _readable(path):
        if event.kind == "session_resumed":
            best = event.data["tree"]
        elif event.kind == "attempt":
            tree = event.data["tree"]
        elif event.kind == "progress" and event.data["made"]:
            best = tree
    return best


def last_tip(path: Path) -> str | None:
    """The commit that the session left its branch at, as far as it got."""
    tip = None
    for event in _readable(path):
        if event.kind == "session_resumed":
            tip = event.data.get("tip")
        elif event.kind == "session_finished":
            tip = event.data["commit"] or tip
    return tip


@frozen
class Cleaned:
    """What `clean` removed: ids of sessions, and the branches of those that stay and that were deleted
    (name -> commit)."""

    sessions: tuple[str, ...]
    kept: Mapping[str, str]
    deleted: Mapping[str, str]


def clean(
    session_id: str | None = None,
    *,
    repo: Path | None = None,
    everything: bool = False,
    branches: bool = False,
) -> Cleaned:
    """Remove finished and dead sessions: event files, worktrees left by a kill.

    Args:
        session_id: only this one; a running session is an error.
        repo: only the sessions of the repository with this root; None: of all.
        everything: also sessions that were handed over and could be resumed.
        branches: also their branches, unless a commit was added to one or it is checked out.
    """
    chosen = [find_session(session_id)] if session_id else sessions(repo)
    removed: list[str] = []
    kept: dict[str, str] = {}
    deleted: dict[str, str] = {}
    for info in chosen:
        if info.running:
            if session_id:
                raise UsageError(f"session {info.id} is running", "Stop it first, or wait for it.")
            continue
        resumable = info.verdict in (Verdict.HANDED_OVER, Verdict.BUDGET, Verdict.CANCELLED)
        if resumable and not (everything or session_id):
            _remove_copy(info)
            continue
        tip = last_tip(info.events_path)
        if _remove(info, keep_progress=not (everything or session_id)):
            removed.append(info.id)
            _branch(info, tip, branches, kept, deleted)
    if session_id is None:
        removed += _remove_beginnings()
    return Cleaned(tuple(removed), kept, deleted)


def _branch(
    info: SessionInfo, tip: str | None, delete: bool, kept: dict[str, str], deleted: dict[str, str]
) -> None:
    """Sort a removed session's branch into what stays and what went."""
    if info.branch is None:
        return
    try:
        repo = Repository.discover(Path(info.repo))
        if not repo.branch_exists(info.branch):
            return
        commit = repo.resolve(f"refs/heads/{info.branch}")
    except AgentLsError:
        return  # the repository is gone
    kept[info.branch] = commit
    if delete and commit == tip:
        try:
            repo.delete_branch(info.branch, commit)
        except UsageError:  # checked out, or moved just now
            return
        deleted[info.branch] = kept.pop(info.branch)


def _remove_copy(info: SessionInfo) -> None:
    """Remove the files that a session left in its worktree when there was no time for it."""
    tree = info.events_path.parent / "tree"
    if not tree.exists():
        return
    try:
        with lock_session(tree.parent, tries=3):
            Worktree.discard(Repository.discover(Path(info.repo)), tree)
    except AgentLsError:
        return  # it is gone on with just now, or the repository is not there: `clean --all` removes all


def _remove_beginnings() -> list[str]:
    """Remove folders of sessions that were killed before their first event was written."""
    root = sessions_root()
    removed = []
    for directory in sorted(root.iterdir()) if root.is_dir() else []:
        events = directory / "events.jsonl"
        if not (directory / "lock").is_file() or (events.is_file() and start_and_end(events)[0] is not None):
            continue
        if time.time() - directory.stat().st_mtime > BEGINNING_S and not is_running(directory):
            shutil.rmtree(directory, ignore_errors=True)
            removed.append(directory.name)
    return removed


def _remove(info: SessionInfo, *, keep_progress: bool) -> bool:
    """Remove what a session left. With `keep_progress` a killed one that got somewhere stays resumable:
    only its worktree goes, and the answer is False.
    """
    directory = info.events_path.parent
    try:
        lock = lock_session(directory, tries=3)
    except UsageError:  # resumed or cleaned by another process just now
        return False
    with lock:
        start, end = start_and_end(info.events_path)
        assert start is not None
        keep = keep_progress and end is None and best_tree(info.events_path) is not None
        try:
            repo = Repository.discover(Path(info.repo))
            Worktree.discard(repo, directory / "tree")
            branch, base = start.data["branch"], start.data["base"]
            unused = end is None and repo.branch_exists(branch)
            if not keep and unused and repo.resolve(f"refs/heads/{branch}") == base:
                repo.delete_branch(branch, base)
        except AgentLsError:
            pass  # the repository is gone, or a person uses the branch: only our own files are left
        if keep:
            for name in ("scratch", "quick"):
                shutil.rmtree(directory / name, ignore_errors=True)
            return False
        shutil.rmtree(directory / "tree", ignore_errors=True)
        shutil.rmtree(directory, ignore_errors=True)
    return True

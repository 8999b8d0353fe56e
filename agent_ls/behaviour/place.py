"""Temporary benches for the command line: outside of the user's files, gone when they are closed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from agent_ls.behaviour.bench import FolderBench
from agent_ls.cancel import CancelToken
from agent_ls.errors import UsageError
from agent_ls.guard.trees import FolderTree, GitTree
from agent_ls.sandbox.confine import View, choose
from agent_ls.settings import Settings, state_dir
from agent_ls.testing.plan import find_plan
from agent_ls.testing.runner import TestRunner
from agent_ls.workspace.git import Repository
from agent_ls.workspace.removal import remove_tree
from agent_ls.workspace.snapshot import Snapshot
from agent_ls.workspace.worktree import Worktree, bring_ignored

_NOT_COPIED = {"__pycache__", ".git", ".mypy_cache", ".pytest_cache", ".hypothesis"}
_BOUND = {"node_modules", ".venv", "venv", ".tox", ".nox"}
"""Large, and only read by tests: shown where they are."""


@contextlib.contextmanager
def git_bench(
    repo: Repository, commit: str, before: GitTree, after: GitTree, settings: Settings, cancel: CancelToken
) -> Iterator[FolderBench]:
    """A bench in a worktree of its own, made at `commit` and filled with `after`.

    Raises UsageError (no sandbox), EnvBroken (no tests, no interpreter) and Cancelled; leaves nothing behind.
    """
    sandbox = choose(settings.sandbox, cancel)
    with _folder(_outside(repo)) as folder:
        place = folder / "tree"
        try:
            snapshot = Snapshot(commit, commit, repo.tree_of(commit), False)
            worktree = Worktree.create(repo, snapshot, place, cancel)
            worktree.reset_to(after.tree)
            ignored = bring_ignored(repo, worktree, cancel)
            view = View(place, repo.root, folder / "scratch", ignored.readonly, settings.network)
            plan = find_plan(place, repo.root, settings, cancel)
            bench = FolderBench(TestRunner(plan, sandbox, view, settings), before, after, folder)
            try:
                yield bench
            finally:
                bench.stop()
        finally:
            Worktree.discard(repo, place)


@contextlib.contextmanager
def folder_bench(
    before: FolderTree, after: FolderTree, settings: Settings, cancel: CancelToken
) -> Iterator[FolderBench]:
    """A bench in a copy of the directory of `after`. Raises as `git_bench`."""
    sandbox = choose(settings.sandbox, cancel)
    source = after.root.resolve()
    with _folder(state_dir() / "guard") as folder:
        place = folder / "tree"
        bound = _copy(source, place, cancel)
        view = View(place, source, folder / "scratch", bound, settings.network)
        plan = find_plan(place, source, settings, cancel)
        bench = FolderBench(TestRunner(plan, sandbox, view, settings), before, after, folder)
        try:
            yield bench
        finally:
            bench.stop()


def _copy(source: Path, place: Path, cancel: CancelToken) -> tuple[Path, ...]:
    """Copy a directory's files; returns the directories that are shown instead of copied."""
    bound: list[Path] = []
    for folder, folders, files in os.walk(source):
        cancel.raise_if_cancelled()
        here = Path(folder)
        target = place / here.relative_to(source)
        target.mkdir(parents=True, exist_ok=True)
        for name in list(folders):
            if (here / name).is_symlink():
                (target / name).symlink_to((here / name).readlink())
                folders.remove(name)
            elif name in _BOUND:
                (target / name).mkdir()
                bound.append(here / name)
                folders.remove(name)
            elif name in _NOT_COPIED:
                folders.remove(name)
        for name in files:
            file = here / name
            if file.is_symlink() or file.is_file():
                shutil.copy2(file, target / name, follow_symlinks=False)
    return tuple(bound)


def _outside(repo: Repository) -> Path:
    """The folder for such places. Raises UsageError when it would lie in the repository."""
    place = (state_dir() / "guard").absolute()
    real = place.parent.resolve() / place.name
    for root in (repo.root, repo.common_dir, repo.git_dir):
        if real.is_relative_to(root):
            raise UsageError(
                f"the state directory {state_dir()} lies inside the repository {repo.root}",
                "Move it out (AGENT_LS_STATE_DIR).",
            )
    return place


@contextlib.contextmanager
def _folder(base: Path) -> Iterator[Path]:
    """A private folder below `base`, locked while it is in use; those of killed processes are removed."""
    try:
        base.mkdir(parents=True, exist_ok=True)
        _sweep(base)
        folder = base / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
        (folder / "scratch").mkdir(parents=True)
    except OSError as error:
        raise UsageError(
            f"the state directory {base} can't be used: {error.strerror or error}",
            "Name another one with AGENT_LS_STATE_DIR.",
        ) from error
    lock = _lock(folder)
    try:
        yield folder
    finally:
        remove_tree(folder)
        if lock is not None:
            lock.close()


def _lock(folder: Path) -> IO[bytes] | None:
    """The folder's lock, held as long as the file is open; None if another process has it."""
    handle = (folder / "lock").open("ab")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        handle.close()
        return None
    return handle


def _sweep(base: Path) -> None:
    """Remove what killed processes left: folders that nobody holds, worktrees among them."""
    for folder in sorted(base.iterdir()):
        if not (folder / "lock").exists():
            continue
        lock = _lock(folder)
        if lock is None:
            continue
        with lock:
            link = folder / "tree" / ".git"
            with contextlib.suppress(OSError, ValueError):
                admin = Path(link.read_text("utf-8").removeprefix("gitdir: ").strip())
                # git's own record of the worktree, and only if it says so
                recorded = (admin / "gitdir").read_text("utf-8").strip()
                if admin.parent.name == "worktrees" and Path(recorded) == link:
                    remove_tree(admin)
            remove_tree(folder)

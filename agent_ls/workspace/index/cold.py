"""Makes a database from nothing: under a name of its own, and in force only once it is complete."""

# ruff: noqa: PTH116

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agent_ls.workspace.index import scan
from agent_ls.workspace.index.store import Store
from agent_ls.workspace.index.update import Outcome, Updater, examine, without_unstorable

if TYPE_CHECKING:
    from agent_ls.cancel import CancelToken
    from agent_ls.workspace.index.build import WorkerPool
    from agent_ls.workspace.index.listings import Listings
    from agent_ls.workspace.index.location import Location

_EARLY_INDEX_BYTES = 60_000
"""A git index of this size promises enough to parse that workers are started before the files are listed."""


LONGEST_BUILD_S = 120.0
"""So long another process may take to make the database before this one goes on without."""
_PAUSE_S = 0.02


class Built(NamedTuple):
    """A finished database, what the listing left out, and what was done."""

    path: Path
    skipped: dict[str, str]
    outcome: Outcome


def started_early(root: Path, cancel: CancelToken | None) -> WorkerPool | None:
    """Workers that load their modules while the files are still being listed; None for a small repository."""
    from agent_ls.workspace.index.build import WorkerPool

    try:
        size = os.stat(f"{root}/.git/index").st_size
    except OSError:
        return None
    if size < _EARLY_INDEX_BYTES:
        return None
    pool = WorkerPool(cancel)
    with contextlib.suppress(OSError):
        pool.start()
    return pool


@contextlib.contextmanager
def locked(location: Location, cancel: CancelToken | None = None) -> Iterator[None]:
    """Only one process makes a database of a repository at a time. Raises OSError when the folder can't be
    written, or the other process takes too long (it may have been stopped); Cancelled."""
    location.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        import fcntl
    except ImportError:  # elsewhere the last to finish wins
        yield
        return
    with location.lock.open("wb") as file:
        until = time.monotonic() + LONGEST_BUILD_S
        while True:
            # Tried again and again, since a wait in the system call could not be cancelled.
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise OSError(
                        f"another process has been making the index for {LONGEST_BUILD_S:g} s"
                    ) from None
            if cancel is not None:
                cancel.raise_if_cancelled()
            time.sleep(_PAUSE_S)
        yield


def build(
    root: Path,
    location: Location,
    listings: Listings,
    *,
    text: bool,
    pool: WorkerPool | None,
    cancel: CancelToken | None,
    on_progress: Callable[[int, int], None] | None,
) -> Built:
    """Index the tree at `root` into a new database and put that in force; on any error nothing stays.

    Raises Cancelled, and sqlite3.Error or OSError when it can't be written.
    """
    path = location.fresh()
    try:
        built = _build_at(path, root, listings, text, pool, cancel, on_progress)
        location.publish(path)
    except BaseException:
        for name in (path, Path(f"{path}-wal"), Path(f"{path}-shm"), Path(f"{path}-journal")):
            with contextlib.suppress(OSError):
                name.unlink()
        raise
    return built


def _build_at(
    path: Path,
    root: Path,
    listings: Listings,
    text: bool,
    pool: WorkerPool | None,
    cancel: CancelToken | None,
    on_progress: Callable[[int, int], None] | None,
) -> Built:
    listing = listings.ask()
    algorithm = "sha1"
    if listing.git:
        said = scan.git_output(root, "rev-parse", "--show-object-format", cancel=cancel)
        algorithm = (said or b"sha1").decode().strip()
    examined = examine(root, listing.paths, {})
    skipped = without_unstorable(examined.refused, listing.skipped)
    store = Store(path, new=True, scratch=True)
    try:
        with store.writing():
            now = int(time.time())
            store.set_meta("algorithm", algorithm)
            tree = store.add_tree(os.fsencode(root), now)
            updater = Updater(
                store, root, algorithm, git=listing.git, text=text, pool=pool, cancel=cancel,
                on_progress=on_progress,
            )  # fmt: skip
            outcome = updater.run(examined.candidates)
            store.put_entries(tree, sorted({**examined.refused, **outcome.put}.items()))
            store.advance(tree, now)
        store.finish()
    except BaseException:
        store.close()
        raise
    return Built(path, skipped or {}, outcome)

"""The index of one working tree: opened, brought up to date, asked."""

# Plain strings instead of Path objects, since this runs for every file or at every start.
# ruff: noqa: PTH118

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from agent_ls.workspace.index.connection import Connection
from agent_ls.workspace.index.listings import Listings
from agent_ls.workspace.index.location import Location, fingerprint, index_folder
from agent_ls.workspace.index.state import Overlay, State
from agent_ls.workspace.index.store import DAMAGE, Entry, Store, Unusable, is_busy
from agent_ls.workspace.index.update import Updater, examine, without_unstorable

if TYPE_CHECKING:
    from agent_ls.cancel import CancelToken
    from agent_ls.workspace.index.lookup import Lookup
    from agent_ls.workspace.index.records import FileTags
    from agent_ls.workspace.index.view import View

_T = TypeVar("_T")
_WRITES_BETWEEN_CHECKS = 16
_IGNORE_FILES = (".gitignore",)


class Refreshed(NamedTuple):
    """What a refresh did: the index's version afterwards, paths whose content is new or other, paths that are
    gone, how many files were read and how many of them were new to the database (and hence parsed)."""

    version: int
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    read: int
    parsed: int
    seconds: float


def open_index(
    root: Path, *, cache_dir: Path | None = None, cancel: CancelToken | None = None, memory: bool = False
) -> Index:
    """The index of the tree at `root`, as it was left; `refresh` (or `view`) brings it up to date.

    `cache_dir` overrides the user's cache folder. With `memory`, or where that folder can't be written,
    nothing is kept and `Index.note` says so. Raises NotADirectoryError when `root` is none.
    """
    root = Path(os.path.realpath(root))
    if not root.is_dir():
        raise NotADirectoryError(f"{root} is not a directory")
    location = None if memory else Location(index_folder(cache_dir), root, fingerprint())
    return Index(root, location, cancel)


class Index(Connection):
    """Thread-safe; also a context manager. Several processes may have indexes of one repository open.

    `note` says why nothing is kept on disk, if so. `on_progress` is told during larger updates how many files
    are done, and of how many.
    """

    def __init__(self, root: Path, location: Location | None, cancel: CancelToken | None = None) -> None:
        super().__init__(root, location)
        self.on_progress: Callable[[int, int], None] | None = None
        self._cancel = cancel
        self._lock = threading.RLock()
        self._listings = Listings(root, cancel)
        self._text = True
        self._stale: set[str] = set()
        self._refreshed = False
        self._writes = 0
        self._tidying: threading.Thread | None = None
        self._begin()

    # life

    @property
    def database(self) -> Path:
        """The file that holds the index; `:memory:` when nothing is kept."""
        with self._lock:
            path = self._store.path if self._store is not None else None
            return path or Path(":memory:")

    @property
    def database_bytes(self) -> int:
        """How large the database is."""
        with self._lock:
            return self._store.size() if self._store is not None else 0

    @property
    def version(self) -> int:
        """Grows with every change."""
        return self._state.version

    def close(self) -> None:
        """Let go of the database; the index can't be used any more."""
        with self._lock:
            self._closed = True
            if self._tidying is not None:
                self._tidying.join()
            if self._store is not None:
                self._store.close()
                self._store = None

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # changes

    def refresh(self, changed: Iterable[str] | None = None) -> Refreshed:
        """Bring the index up to date with the disk: everything, or only paths that are known to have changed
        (files or folders; new and deleted ones too). Raises Cancelled."""
        paths = None if changed is None else {path.strip("/") for path in changed}
        with self._lock:
            if paths is None and self._borrowed_at is not None:
                self._listings.forget()
                self._return()
            if paths is None or not self._refreshed or any(_is_rule(path) for path in paths):
                paths = None
            done = self._guarded(lambda: self._refresh(paths))
            self._stale -= self._stale if paths is None else paths
            return done

    def mark_stale(self, paths: Iterable[str]) -> None:
        """Paths that may have changed: the next view looks at them first."""
        with self._lock:
            self._stale.update(paths)

    def overlay(self, path: str, text: bytes | None, tags: FileTags | None = None) -> None:
        """An editor's unsaved text, which wins over the disk (None: closed). `tags` are the text's, where
        they are known already. Files that the index leaves out on purpose stay left out."""
        from agent_ls.workspace.grammars import language_of
        from agent_ls.workspace.index import roles
        from agent_ls.workspace.index.content import understand

        with self._lock:
            overlays = dict(self._state.overlays)
            if text is None:
                if overlays.pop(path, None) is None:
                    return
                self._stale.add(path)
            elif roles.refused_name(path) is None and self._is_listed(path):
                if path in overlays and overlays[path].data == text:
                    return
                overlays[path] = Overlay(text, understand(language_of(path), text, tags=tags))
            self._state = self._state.with_overlays(overlays)

    def rebuild(self) -> Refreshed:
        """Forget everything and index anew."""
        with self._lock:
            self._abandon()
            return self.refresh()

    def view(self) -> View:
        """The index as it is now; paths known to be stale are refreshed first, everything when it never was.
        Raises Cancelled."""
        from agent_ls.workspace.index.view import View

        with self._lock:
            if not self._refreshed:
                self.refresh()
            elif self._stale:
                self.refresh(self._stale)
            else:
                self._guarded(self._sync)
            return View(self, self._state)

    def read(self, action: Callable[[Lookup], _T]) -> _T:
        """Let `action` read the database, for a view."""

        def reading() -> _T:
            if self._store is None or self._lookup is None:
                self._refresh(None)
            assert self._store is not None
            with self._store.reading():
                version = self._store.data_version()
                if version != self._read_version:
                    self._read_version = version
                    assert self._lookup is not None
                    self._lookup.changed()
                assert self._lookup is not None
                return action(self._lookup)

        with self._lock:
            return self._guarded(reading)

    def follow(self, path: str) -> State:
        """Take a changed file in, for a view that came upon it; the state afterwards."""
        self.refresh((path,))
        return self._state

    def is_content(self, path: str, data: bytes, blob: int) -> bool:
        """Are these bytes of a file those of a content?"""
        from agent_ls.workspace.grammars import language_of
        from agent_ls.workspace.index._worker import key_of

        return self.read(lambda lookup: lookup.key(blob)) == key_of(data, language_of(path), self._algorithm)

    def current_bytes(self, path: str) -> bytes:
        """The bytes of a file as the index now has it, read again should it change meanwhile; b"" when it has
        gone."""
        from agent_ls.workspace.index.reading import read_file

        for _ in range(5):
            read = read_file(os.path.join(self.root, path))
            if read is None or read.data is None:
                return b""
            data = read.data
            with self._lock:
                overlay = self._state.overlays.get(path)
                if overlay is not None:
                    return overlay.data
                entry = self._state.entries.get(path)
            if entry is None or not entry.blob:
                return b""
            if self.is_content(path, data, entry.blob):
                return data
            self.refresh((path,))
        return data

    # inside

    def _refresh(self, paths: set[str] | None) -> Refreshed:
        started = time.perf_counter()
        if self._store is None:
            done = self._build(started)
            if done is not None:
                return done
        self._sync()
        skipped: dict[str, str] | None = None
        entries = self._state.entries
        assert self._store is not None
        wanted: Iterable[str]
        if paths is None:
            wanted, skipped = self._listings.everything(self._store, self._tree, entries)
            gone = entries.keys() - set(wanted) if wanted is not entries else set()
        else:
            wanted, gone = self._listings.concerned(paths, entries)
        examined = examine(self.root, wanted, entries)
        skipped = without_unstorable(examined.refused, skipped)
        gone = {path for path in (*gone, *examined.missing) if path in entries}
        if not (examined.candidates or examined.refused or gone or not self._tree):
            self._refreshed = True
            if skipped is not None:
                self._listings.remember(self._store, self._tree, skipped)
            if skipped is not None and skipped != self._state.listing_skipped:
                self._state = self._state.with_entries({}, (), skipped)
            return Refreshed(self._state.version, (), (), 0, 0, time.perf_counter() - started)
        store = self._store
        assert store is not None
        with store.writing():
            self._sync()
            now = int(time.time())
            self._tree = self._tree or store.add_tree(os.fsencode(self.root), now)
            updater = Updater(
                store,
                self.root,
                self._algorithm,
                git=self._listings.git,
                text=self._text,
                cancel=self._cancel,
                on_progress=self.on_progress,
            )
            outcome = updater.run(examined.candidates)
            known = self._state.entries
            found = {**examined.refused, **outcome.put}
            put = {path: entry for path, entry in found.items() if known.get(path) != entry}
            gone |= {path for path in outcome.gone if path in known}
            if put or gone:
                store.put_entries(self._tree, put.items())
                store.delete_entries(self._tree, gone)
                self._generation = store.advance(self._tree, now)
        assert self._lookup is not None
        self._lookup.changed(segments=outcome.segments)
        changed = self._accept(put, gone, skipped)
        if skipped is not None:
            self._listings.remember(store, self._tree, skipped)
        self._maintain(outcome.parsed)
        return Refreshed(
            self._state.version, changed, tuple(sorted(gone)), outcome.read, outcome.parsed,
            time.perf_counter() - started,
        )  # fmt: skip

    def _maintain(self, parsed: int) -> None:
        """Now and then, tidy up: after a large change at once, else beside the work."""
        from agent_ls.workspace.index import maintain

        store = self._store
        assert store is not None
        self._writes += 1
        large = parsed >= maintain.PENDING_DOCUMENTS
        if not (large or self._writes % _WRITES_BETWEEN_CHECKS == 0) or (
            self._tidying is not None and self._tidying.is_alive()
        ):
            return
        if large or (store.path is None and maintain.is_due(store)):
            try:
                maintain.tidy(store, self._tree)
            except sqlite3.OperationalError as error:
                if not is_busy(error):
                    raise
            assert self._lookup is not None
            self._lookup.changed()
        elif store.path is not None and maintain.is_due(store):
            self._tidying = threading.Thread(
                target=_tidy, args=(store.path, self._tree), name="index-tidy", daemon=True
            )
            self._tidying.start()

    def _accept(
        self, put: dict[str, Entry], gone: set[str], skipped: dict[str, str] | None
    ) -> tuple[str, ...]:
        before = self._state.entries
        nothing = Entry(0, 0)
        changed = tuple(
            sorted(path for path, entry in put.items() if before.get(path, nothing)[0] != entry[0])
        )
        self._state = self._state.with_entries(put, gone, skipped)
        self._refreshed = True
        return changed

    def _is_listed(self, path: str) -> bool:
        if path in self._state.entries or path in self._state.overlays:
            return True
        if not self._refreshed:
            self.refresh()
        return self._listings.would_list(path)

    def _renew(self) -> None:
        self._refresh(None)

    def _build(self, started: float) -> Refreshed | None:
        """Make a new database. None: another process did, and it has been opened."""
        from agent_ls.workspace.index.cold import build, locked, started_early

        location = self._location
        assert location is not None
        self._listings.forget()
        pool = started_early(self.root, self._cancel)
        try:
            with locked(location, self._cancel):
                self._open()
                if self._store is not None:
                    return None
                built = build(
                    self.root, location, self._listings, text=self._text, pool=pool, cancel=self._cancel,
                    on_progress=self.on_progress,
                )  # fmt: skip
                self._store = Store(built.path)
                self._adopt()
        finally:
            if pool is not None:
                pool.close()
        self._state = State(self._state.version + 1, self._state.entries, self._state.overlays, built.skipped)
        self._refreshed = True
        done = built.outcome
        self._listings.remember(self._store, self._tree, built.skipped)
        return Refreshed(
            self._state.version, tuple(sorted(self._state.entries)), (), done.read, done.parsed,
            time.perf_counter() - started,
        )  # fmt: skip


def _tidy(path: Path, tree: int) -> None:
    from agent_ls.workspace.index import maintain

    # Should anything be wrong with the database, the next refresh comes upon it.
    with contextlib.suppress(*DAMAGE, Unusable, OSError):
        store = Store(path)
        try:
            maintain.tidy(store, tree)
        finally:
            store.close()


def _is_rule(path: str) -> bool:
    """Does a change of this file change which files are listed?"""
    return path.rsplit("/", 1)[-1] in _IGNORE_FILES or path.startswith(".git/")

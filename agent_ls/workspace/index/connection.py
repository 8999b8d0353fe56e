"""An index's hold on its database: opened, given up when damaged, moved to memory when unwritable."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from agent_ls.workspace.index.state import State
from agent_ls.workspace.index.store import DAMAGE, Entry, Store, Unusable, is_busy, is_damage, is_no_room

if TYPE_CHECKING:
    from agent_ls.workspace.index.location import Location
    from agent_ls.workspace.index.lookup import Lookup

_T = TypeVar("_T")
_BUSY = "the index is in use by another process, so this one keeps what is new in memory"
_BUSY_PAUSE_S = 20.0
"""After so long it is tried again."""
_ODD = (TypeError, ValueError, IndexError, KeyError, OverflowError)


class Connection:
    """The store in use and the state of one tree as it was read from it. Whoever derives from it locks, and
    says how a database is made anew."""

    def __init__(self, root: Path, location: Location | None) -> None:
        self.root = root
        self.note: str | None = None
        self._location = location
        self._store: Store | None = None
        self._lookup: Lookup | None = None
        self._tree = 0
        self._generation = -1
        self._data_version = -1
        self._read_version = -1
        self._algorithm = "sha1"
        self._state = State(0, {}, {}, {})
        self._closed = False
        self._borrowed_at: float | None = None

    def _begin(self) -> None:
        if self._location is None:
            self._in_memory(None)
        else:
            self._open()

    def _renew(self) -> None:
        """Make another database, after one was given up."""
        raise NotImplementedError

    def _guarded(self, action: Callable[[], _T]) -> _T:
        """Do something with the database; a damaged one is rebuilt, one that can't be written goes on in
        memory."""
        if self._closed:
            raise ValueError("the index is closed")
        for _ in range(3):
            try:
                return action()
            except (*DAMAGE, *_ODD, Unusable, OSError) as error:
                if self._is_damage(error):
                    self._abandon()
                    self._renew()
                elif is_no_room(error) and self.note is None and self._location is not None:
                    self._in_memory(_reason(error))
                elif is_busy(error) and self.note is None and self._location is not None:
                    self._in_memory(_BUSY)
                    self._borrowed_at = time.monotonic()
                else:
                    raise
        return action()

    def _is_damage(self, error: BaseException) -> bool:
        """What a damaged database holds may also be of a wrong type or out of range; where that is a fault of
        ours, the database is in order."""
        if isinstance(error, _ODD) and not isinstance(error, DAMAGE):
            return self._store is not None and not self._store.is_sound()
        return is_damage(error)

    def _open(self) -> None:
        """Take the database in force, if it is sound; what it says of the tree becomes the state."""
        assert self._location is not None
        path = self._location.current()
        if path is None:
            return
        try:
            self._store = Store(path)
            self._adopt()
        except (*DAMAGE, *_ODD, Unusable, OSError) as error:
            damaged = self._is_damage(error)
            if self._store is not None:
                self._store.close()
                self._store = None
            if isinstance(error, _ODD) and not damaged:
                raise
            if not damaged:
                self._in_memory(_BUSY if is_busy(error) else _reason(error))
                self._borrowed_at = time.monotonic() if is_busy(error) else None

    def _return(self) -> None:
        """Take the database again that another process had kept, if that is long enough ago."""
        if self._borrowed_at is None or time.monotonic() - self._borrowed_at < _BUSY_PAUSE_S:
            return
        self._borrowed_at = self.note = None
        if self._store is not None:
            self._store.close()
            self._store = None
        self._lookup = None
        self._tree, self._generation = 0, -1
        self._publish_entries({})
        self._open()

    def _adopt(self) -> None:
        """Read what a newly opened store says of the tree."""
        from agent_ls.workspace.index.lookup import Lookup

        store = self._store
        assert store is not None
        self._lookup = Lookup(store)
        self._data_version = store.data_version()
        self._algorithm = store.meta("algorithm") or "sha1"
        found = store.tree(os.fsencode(self.root))
        self._tree, self._generation = found or (0, -1)
        self._publish_entries(store.entries(self._tree) if found else {})

    def _publish_entries(self, entries: dict[str, Entry]) -> None:
        old = self._state
        self._state = State(old.version + 1, entries, old.overlays, old.listing_skipped)

    def _abandon(self) -> None:
        """Give the database up; the next refresh makes another one."""
        if self._store is not None:
            if self._location is not None and self._store.path is not None:
                with contextlib.suppress(OSError):
                    if self._location.current() == self._store.path:
                        self._location.pointer.unlink()
            self._store.close()
            self._store = None
        elif self._location is not None:
            with contextlib.suppress(OSError):
                self._location.pointer.unlink()
        self._lookup = None
        self._tree, self._generation = 0, -1
        self._publish_entries({})
        if self._location is None or self.note is not None:
            self._in_memory(self.note)

    def _in_memory(self, reason: str | None) -> None:
        """Go on without the disk, with what is known so far where it can still be read."""
        from agent_ls.workspace.index.lookup import Lookup

        old, self._store = self._store, None
        self.note = reason
        if old is not None:
            with contextlib.suppress(sqlite3.Error):
                self._store = old.copied_to_memory()
            old.close()
        if self._store is None:
            self._store = Store(None)
            self._tree, self._generation = 0, -1
            self._publish_entries({})
        self._lookup = Lookup(self._store)
        self._data_version = self._store.data_version()

    def _sync(self) -> None:
        """Take over what other processes wrote."""
        store = self._store
        assert store is not None
        assert self._lookup is not None
        version = store.data_version()
        if version == self._data_version:
            return
        self._data_version = version
        self._lookup.changed()
        found = store.tree(os.fsencode(self.root))
        if found is None:
            self._tree, self._generation = 0, -1
        elif found != (self._tree, self._generation):
            self._tree, self._generation = found
            self._publish_entries(store.entries(self._tree))


def _reason(error: BaseException) -> str:
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"the index is kept in memory only, since its cache can't be used: {said}"

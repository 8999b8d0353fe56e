"""Which files of a tree there are: all of them, or those that some changed paths stand for."""

# Plain strings instead of Path objects, since this runs at every start.
# ruff: noqa: PTH112, PTH114

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agent_ls.workspace.index import scan
from agent_ls.workspace.index.store import is_busy

if TYPE_CHECKING:
    from agent_ls.cancel import CancelToken
    from agent_ls.workspace.index.remembered import Remembered
    from agent_ls.workspace.index.store import Entry, Store


class Listings:
    """Asks git (or walks the tree), unless what it said last time still holds."""

    def __init__(self, root: Path, cancel: CancelToken | None) -> None:
        self._root = root
        self._cancel = cancel
        self._remembered: Remembered | None = None
        self._asked_at = 0
        self._paths: Collection[str] = ()
        self.git = True

    def everything(
        self, store: Store, tree: int, known: Mapping[str, Entry]
    ) -> tuple[Iterable[str], dict[str, str]]:
        """The files of the tree, those of `known` where nothing came or went; and what is left out."""
        from agent_ls.workspace.index.remembered import Remembered

        if self._remembered is None and tree and (data := store.listing(tree)):
            self._remembered = Remembered.unpack(data)
        if self._remembered is not None and self._remembered.holds():
            self._asked_at = 0
            return known, dict(self._remembered.skipped)
        listing = self.ask()
        return listing.paths, listing.skipped

    def ask(self) -> scan.Listing:
        """Ask git, or walk."""
        self._asked_at = time.time_ns()
        listing = scan.list_files(self._root, self._cancel)
        self.git, self._paths = listing.git, listing.paths
        return listing

    def remember(self, store: Store, tree: int, skipped: Mapping[str, str]) -> None:
        """After git was asked and the tree's entries were brought up to date: keep what its answer depends
        on. `skipped` is all that the listing left out."""
        if not self._asked_at or not self.git or not tree:
            return
        from agent_ls.workspace.index.remembered import record

        known, asked_at = self._remembered, self._asked_at
        self._asked_at = 0
        found = known.after(self._root, self._paths, skipped, asked_at) if known is not None else None
        if found is None:
            found = record(self._root, self._paths, skipped, asked_at, self._cancel)
        self._remembered, self._paths = found, ()
        if found is not None:
            data = found.pack()
            try:
                with store.writing():
                    store.put_listing(tree, data)
            except sqlite3.OperationalError as error:
                if not is_busy(error):  # the next start has to ask git, that is all
                    raise

    def forget(self) -> None:
        """The database is another one."""
        self._remembered = None

    def concerned(self, paths: set[str], known: Mapping[str, Entry]) -> tuple[list[str], set[str]]:
        """The listed files that changed paths (files or folders) stand for, and the known ones among them
        that are listed no more."""
        folders = {path for path in paths if path in known and self._is_folder(path)}
        unknown = [path for path in paths if path and (path not in known or path in folders)]
        listed = [path for path in paths if path in known]
        gone: set[str] = set()
        if unknown:
            below = tuple(path + "/" for path in unknown)
            inside = {path for path in known if path.startswith(below)}
            there = [path for path in unknown if os.path.lexists(f"{self._root}/{path}")]
            found = scan.listed(self._root, there, self.git, self._cancel) if there else []
            if found is None:
                found = scan.list_files(self._root, self._cancel).paths
                gone = set(known) - set(found)
            listed += found
            gone |= inside - set(found)
        return listed, gone

    def would_list(self, path: str) -> bool:
        """Would a file of this name be listed? It need not exist."""
        parts = path.split("/")
        if not {"", ".", ".."}.isdisjoint(parts) or any(part.casefold() == ".git" for part in parts):
            return False
        # git lists only what is on the disk: it is asked what it would ignore.
        return not scan.is_ignored(self._root, path, self.git, self._cancel)

    def _is_folder(self, path: str) -> bool:
        full = f"{self._root}/{path}"
        return os.path.isdir(full) and not os.path.islink(full)

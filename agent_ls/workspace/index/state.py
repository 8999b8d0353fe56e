"""What one moment of the index looks like from a process: paths and their contents, and the open buffers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # not loaded by a start that finds no change
    from agent_ls.workspace.index.content import Content
    from agent_ls.workspace.index.store import Entry


class Overlay(NamedTuple):
    """An editor's unsaved text."""

    data: bytes
    content: Content


class State:
    """Never changed once it is published; `version` grows from one to the next."""

    __slots__ = ("_by_blob", "_large", "_paths", "entries", "listing_skipped", "overlays", "version")

    def __init__(
        self,
        version: int,
        entries: dict[str, Entry],
        overlays: Mapping[str, Overlay],
        listing_skipped: Mapping[str, str],
        by_blob: dict[int, list[str]] | None = None,
    ) -> None:
        self.version = version
        self.entries = entries
        self.overlays = overlays
        self.listing_skipped = listing_skipped
        self._by_blob = by_blob
        self._large: tuple[str, ...] | None = None
        self._paths: tuple[str, ...] | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """All paths with a text, sorted."""
        if self._paths is None:
            found = [path for path, entry in self.entries.items() if entry[0] and path not in self.overlays]
            self._paths = tuple(sorted([*found, *self.overlays]))
        return self._paths

    @property
    def by_blob(self) -> dict[int, list[str]]:
        """Content -> the paths that have it."""
        if self._by_blob is None:
            found: dict[int, list[str]] = {}
            for path, entry in self.entries.items():
                if entry[0]:
                    found.setdefault(entry[0], []).append(path)
            self._by_blob = found
        return self._by_blob

    @property
    def large(self) -> tuple[str, ...]:
        """The paths that are left out for their size alone."""
        if self._large is None:
            from agent_ls.workspace.index.roles import TOO_LARGE

            self._large = tuple(path for path, entry in self.entries.items() if entry.reason == TOO_LARGE)
        return self._large

    def with_entries(
        self,
        put: Mapping[str, Entry],
        removed: Collection[str],
        listing_skipped: Mapping[str, str] | None = None,
    ) -> State:
        """The next state, with some paths changed and some gone; of the same version where only signatures
        are others."""
        entries = dict(self.entries)
        nothing = (0, 0, None)
        same = not removed and all(entries.get(p, nothing)[::2] == entry[::2] for p, entry in put.items())
        by_blob = None
        if self._by_blob is not None and len(put) + len(removed) < 50:
            by_blob = dict(self._by_blob)
            for path in (*put, *removed):
                old = entries.get(path)
                if old is not None and old.blob:
                    left = [other for other in by_blob[old.blob] if other != path]
                    if left:
                        by_blob[old.blob] = left
                    else:
                        del by_blob[old.blob]
            for path, entry in put.items():
                if entry.blob:
                    by_blob[entry.blob] = [*by_blob.get(entry.blob, ()), path]
        entries.update(put)
        for path in removed:
            entries.pop(path, None)
        skipped = self.listing_skipped if listing_skipped is None else listing_skipped
        version = self.version + (not same or skipped != self.listing_skipped)
        return State(version, entries, self.overlays, skipped, by_blob)

    def with_overlays(self, overlays: Mapping[str, Overlay]) -> State:
        """The next state with other buffers open."""
        return State(self.version + 1, self.entries, overlays, self.listing_skipped, self._by_blob)

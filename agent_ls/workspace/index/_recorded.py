"""A view that remembers which files its answers came from."""

from __future__ import annotations

from agent_ls.workspace.index.index import Index
from agent_ls.workspace.index.records import Definition, FileInfo, Found, Import
from agent_ls.workspace.index.update import examine
from agent_ls.workspace.index.view import View


class Recorded(View):
    """As a View; `suspects` are files among those asked about that may be other than it says."""

    def __init__(self, index: Index) -> None:
        super().__init__(index, index.view()._state)
        self._first = self._state
        self.involved: set[str] = set()

    def file(self, path: str) -> FileInfo | None:
        """See View."""
        self.involved.add(path)
        return super().file(path)

    def text(self, path: str) -> bytes:
        """See View."""
        self.involved.add(path)
        return super().text(path)

    def outline(self, path: str) -> list[Definition]:
        """See View."""
        self.involved.add(path)
        return super().outline(path)

    def imports(self, path: str) -> list[Import]:
        """See View."""
        self.involved.add(path)
        return super().imports(path)

    def definitions(self, name: str) -> list[Found]:
        """See View."""
        found = super().definitions(name)
        self.involved.update(item.path for item in found)
        return found

    def files_with(self, word: str) -> frozenset[str]:
        """See View."""
        found = super().files_with(word)
        self.involved |= found
        return found

    def suspects(self) -> list[str]:
        """Files whose status is not the one that they were read with."""
        entries, overlays = self._first.entries, self._first.overlays
        asked = [path for path in self.involved if path not in overlays]
        there = [path for path in asked if path in entries]
        examined = examine(self._index.root, there, entries)
        return [*(candidate.path for candidate in examined.candidates), *examined.missing, *examined.refused]

    def outdated(self) -> bool:
        """Has the index other contents of the involved files by now?"""
        now = self._index.view()._state
        before = self._first
        for path in self.involved:
            old, new = before.entries.get(path), now.entries.get(path)
            if (old and old.blob) != (new and new.blob):
                return True
            if before.overlays.get(path) is not now.overlays.get(path):
                return True
        return False

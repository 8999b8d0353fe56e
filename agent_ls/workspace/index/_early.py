"""Answers for the time until the first look at everything has ended: what an earlier run left."""

from __future__ import annotations

import threading
import weakref
from pathlib import Path

from agent_ls.workspace.index import roles
from agent_ls.workspace.index.index import Index, open_index
from agent_ls.workspace.index.view import View


class EarlyView(View):
    """What was known; it never has anything indexed."""

    def text(self, path: str) -> bytes:
        """A known file's bytes as they are now; b"" when it has gone."""
        if path not in self._state.entries:
            return b""
        try:
            with (self._index.root / path).open("rb") as file:
                return file.read(roles.MAX_TEXT + 1)
        except OSError:
            return b""


class Early:
    """An index of its own that only reads, since the other one is busy. Thread-safe."""

    def __init__(self, root: Path, *, cache_dir: Path | None, memory: bool) -> None:
        self._lock = threading.Lock()
        self._views: weakref.WeakSet[EarlyView] = weakref.WeakSet()
        self._index: Index | None = open_index(root, cache_dir=cache_dir, memory=memory)
        if not memory and not self._index.database.is_file():
            # There is none yet; one in memory stays empty, and doesn't begin to build.
            self._index.close()
            self._index = open_index(root, memory=True)

    def view(self) -> EarlyView | None:
        """What is known; None once closed."""
        with self._lock:
            if self._index is None:
                return None
            view = EarlyView(self._index, self._index._state)
            self._views.add(view)
            return view

    def close_unused(self) -> bool:
        """Let go of it once nobody has a view of it any more; True when that is done."""
        with self._lock:
            if self._index is not None and not self._views:
                self._index.close()
                self._index = None
            return self._index is None

    def close(self) -> None:
        """Let go of it."""
        with self._lock:
            if self._index is not None:
                self._index.close()
                self._index = None

"""An editor's open buffers: their text, and syntax trees that follow each change.

Offsets count bytes of the text in UTF-8; what an editor's protocol counts in is converted elsewhere. A tree
is brought up to date when it is asked for, not at each change: what was typed meanwhile is one region to
parse.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from attrs import define, field, frozen

from agent_ls.workspace.grammars import language_of, refined
from agent_ls.workspace.parsing import TooSlow

if TYPE_CHECKING:
    from tree_sitter import Tree

    from agent_ls.workspace.index.records import FileTags

MAX_TREES = 32
"""Trees that are kept; a tree takes about 27 times its source."""
MAX_PARSED = 1_000_000
"""Larger buffers (bytes) have no tree: a parse would hold up everything else."""


class Edit(NamedTuple):
    """Bytes `start` up to but without `end` are replaced by `text`."""

    start: int
    end: int
    text: bytes


@frozen
class Buffer:
    """One state of a buffer. `version` is the editor's number for it, `serial` ours: it grows with each
    change of any buffer."""

    path: str
    text: bytes
    version: int
    serial: int


@define
class _Parsed:
    """A tree, the text that it is of, and that text as the parser saw it."""

    text: bytes
    seen: bytes
    tree: Tree = field(repr=False)


class Buffers:
    """All open buffers, by path relative to the root. Thread-safe; what is returned never changes."""

    def __init__(self, max_trees: int = MAX_TREES) -> None:
        self._max_trees = max_trees
        self._lock = threading.RLock()
        self._open: dict[str, Buffer] = {}
        self._trees: OrderedDict[str, _Parsed] = OrderedDict()
        self._serial = 0

    def open(self, path: str, text: bytes, version: int = 0) -> Buffer:
        """A buffer was opened (or opened again: its text is replaced)."""
        with self._lock:
            return self._put(path, text, version)

    def change(self, path: str, edits: Iterable[Edit], version: int = 0) -> Buffer:
        """Apply edits one after another, each to what the one before left. Raises KeyError when the buffer is
        not open, ValueError when a range is outside the text; then nothing is applied."""
        with self._lock:
            text = self._open[path].text
            for start, end, new in edits:
                if not 0 <= start <= end <= len(text):
                    raise ValueError(f"{path}: no range {start}..{end} in a text of {len(text)} bytes")
                text = text[:start] + new + text[end:]
            return self._put(path, text, version)

    def replace(self, path: str, text: bytes, version: int = 0) -> Buffer:
        """The whole text is another one. Raises KeyError when the buffer is not open."""
        with self._lock:
            if path not in self._open:
                raise KeyError(path)
            return self._put(path, text, version)

    def close(self, path: str) -> None:
        """The buffer was closed; what is on the disk counts again. One that isn't open may be closed."""
        with self._lock:
            self._open.pop(path, None)
            self._trees.pop(path, None)

    def get(self, path: str) -> Buffer | None:
        """The buffer's state, or None when it isn't open."""
        with self._lock:
            return self._open.get(path)

    def paths(self) -> list[str]:
        """The open buffers."""
        with self._lock:
            return list(self._open)

    def tree(self, path: str) -> Tree | None:
        """The syntax tree of the buffer's text; None for a language that isn't parsed, or a text too large or
        slow to parse. Raises KeyError when the buffer is not open."""
        return self.parsed(path)[1]

    def parsed(self, path: str) -> tuple[Buffer, Tree | None]:
        """A buffer's state and the tree of that very state. Raises KeyError when it is not open."""
        with self._lock:
            buffer = self._open[path]
            language = refined(language_of(path), buffer.text)
            if language is None or len(buffer.text) > MAX_PARSED:
                return buffer, None
            known = self._trees.get(path)
            if known is not None and refined(language_of(path), known.text) != language:
                known = None  # a header that became C++
            if known is None or known.text != buffer.text:
                try:
                    known = _parse(language, buffer.text, known)
                except TooSlow:
                    self._trees.pop(path, None)
                    return buffer, None
                self._trees[path] = known
            self._trees.move_to_end(path)
            while len(self._trees) > self._max_trees:
                self._trees.popitem(last=False)
            return buffer, known.tree

    def tags(self, path: str, *, references: bool = True) -> FileTags | None:
        """What the buffer's text says (see `tags.tags`); None where there is no tree. Raises KeyError when
        the buffer is not open."""
        from agent_ls.workspace.index.tags import tags

        buffer, tree = self.parsed(path)
        language = refined(language_of(path), buffer.text)
        if tree is None or language is None:
            return None
        return tags(language, buffer.text, tree=tree, references=references)

    def _put(self, path: str, text: bytes, version: int) -> Buffer:
        self._serial += 1
        buffer = self._open[path] = Buffer(path, text, version, self._serial)
        return buffer


def _parse(language: str, text: bytes, old: _Parsed | None) -> _Parsed:
    """Parse `text`, with what an older tree of the same file says of the parts that are as they were.

    The tree is always that of a fresh parse. Around errors tree-sitter's recovery may end in another one
    when it starts from an older tree (about 1 of 300 random edits of broken code); so those are parsed
    anew.
    """
    from agent_ls.workspace.index._tags_text import as_parsed
    from agent_ls.workspace.index.tags import parse_bytes

    # An edit may change bytes of what the parser gets that are far away from it.
    seen = as_parsed(language, text)
    if old is not None and seen == old.seen:
        return _Parsed(text, seen, old.tree)
    if old is None or old.tree.root_node.has_error:
        return _Parsed(text, seen, parse_bytes(language, text))
    start, old_end, new_end = changed_region(old.seen, seen)
    # `edit` changes a tree, and whoever asked for the old one may still read it.
    tree = old.tree.copy()
    tree.edit(
        start_byte=start,
        old_end_byte=old_end,
        new_end_byte=new_end,
        start_point=_point(old.seen, start),
        old_end_point=_point(old.seen, old_end),
        new_end_point=_point(seen, new_end),
    )
    tree = parse_bytes(language, text, old_tree=tree)
    if tree.root_node.has_error:
        tree = parse_bytes(language, text)
    return _Parsed(text, seen, tree)


def changed_region(old: bytes, new: bytes) -> tuple[int, int, int]:
    """Where two texts differ: the region's start, and its end in the old and in the new text."""
    shorter = min(len(old), len(new))
    start = 0
    step = shorter
    # Slices are compared in C, so that halving steps find the place quicker than a loop over bytes.
    while step:
        if start + step <= shorter and old[start : start + step] == new[start : start + step]:
            start += step
        else:
            step //= 2
    after_old, after_new = len(old), len(new)
    step = shorter - start
    while step:
        fits = min(after_old, after_new) - step >= start
        if fits and old[after_old - step : after_old] == new[after_new - step : after_new]:
            after_old -= step
            after_new -= step
        else:
            step //= 2
    return start, after_old, after_new


def _point(text: bytes, offset: int) -> tuple[int, int]:
    """Row and column in bytes, as tree-sitter counts them."""
    return text.count(b"\n", 0, offset), offset - (text.rfind(b"\n", 0, offset) + 1)

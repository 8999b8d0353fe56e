"""Parsing that ends: some grammars never come back from certain texts, or take the square of their length.

(Some kilobytes of random characters keep the grammar of TSX busy for ever.) What is counted are the parser's
steps, so that the same text is refused on every machine; processor time only stops steps that take long
themselves.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from agent_ls.workspace.grammars import grammar

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

SECONDS = 3.0
"""Processor time for one text; ordinary ones of a megabyte take 0.2 s."""
_STEPS_PER_BYTE = 40
"""Real files take 0.7, hardly one more than 1.4."""
_STEPS_LEAST = 100_000
_OPEN = 2_000
_NESTING = frozenset({"java", "c_sharp"})
"""Languages where so many `<` that no `>` closes cost time and memory by their square, in a single step."""
_STEPS_A_CALL = 100
"""So many steps tree-sitter takes between two questions whether to go on."""

_DEEPEST = 10_000
_MOST_TOKENS = 20_000
_APART = 4096
"""Bytes between two places that `check_shape` looks at."""


_SAID = "the syntax of this text takes too long to read"


class TooSlow(Exception):
    """Reading a text's syntax takes too long."""


class Budget:
    """How much reading one text may still cost; its `spent` is what tree-sitter asks now and then."""

    __slots__ = ("_calls", "_until", "exhausted")

    def __init__(self, size: int) -> None:
        """For a text of `size` bytes, from now on, in this thread."""
        self._calls = (_STEPS_PER_BYTE * size + _STEPS_LEAST) // _STEPS_A_CALL
        self._until = time.thread_time() + SECONDS
        self.exhausted = False

    def spent(self, *_: object) -> bool:
        """One more portion of steps was taken: is it enough?"""
        self._calls -= 1
        if self._calls < 0 or time.thread_time() > self._until:
            self.exhausted = True
        return self.exhausted

    def check(self) -> None:
        """Raises TooSlow when it was enough."""
        if self.exhausted:
            raise TooSlow(_SAID)


def parse(language: str, source: bytes, old_tree: Tree | None = None) -> Tree:
    """The syntax tree of `source`; `old_tree` (edited to fit, see tree-sitter's `Tree.edit`) makes it
    cheaper. Raises KeyError for an unknown language, TooSlow.
    """
    from tree_sitter import Parser

    if language in _NESTING and _left_open(source) > _OPEN:
        raise TooSlow(_SAID)
    # A parser of its own each time: they must not be shared between threads.
    parser = Parser(grammar(language))
    budget = Budget(len(source))

    def read(offset: int, _point: object) -> bytes:
        return source[offset:] if offset else source

    try:
        if old_tree is None:
            return parser.parse(read, progress_callback=budget.spent)
        return parser.parse(read, old_tree, progress_callback=budget.spent)
    except ValueError:
        budget.check()
        raise


def check_shape(tree: Tree, size: int) -> None:
    """Raises TooSlow for a tree (of `size` bytes of source) that queries take the square of its size for: an
    expression that is nested ten thousand deep, or so many tokens side by side that fit nowhere.

    (Queries can't be stopped: a callback crashes them in the releases up to 0.26.)
    """
    if size < 2 * _DEEPEST:
        return
    root = tree.root_node
    broken = root.has_error
    cursor = tree.walk()
    for place in range(0, size, _APART):
        depth = 0
        cursor.reset(root)
        while True:
            node = cursor.node if broken else None
            if node is not None and node.is_error and _tokens(node) > _MOST_TOKENS:
                raise TooSlow(_SAID)
            if cursor.goto_first_child_for_byte(place) is None:
                break
            depth += 1
            if depth > _DEEPEST:
                raise TooSlow(_SAID)


def _tokens(node: Node) -> int:
    return node.child_count - node.named_child_count


def _left_open(source: bytes) -> int:
    """How many more `<` than `>` there are, those of shifts and comparisons with `=` aside."""
    return (
        source.count(b"<") - 2 * source.count(b"<<") - source.count(b"<=")
        - source.count(b">") + 2 * source.count(b">>") + source.count(b">=")
    )  # fmt: skip

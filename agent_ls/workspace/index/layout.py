"""Where in a file its definitions are: made once for a content and asked line by line."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any


class Layout:
    """Made from the fields of a file's Definitions, as plain tuples. Lines and columns count from 1."""

    __slots__ = ("_bounds", "_names", "_symbols")

    def __init__(self, rows: Sequence[tuple[Any, ...]]) -> None:
        ordered = sorted(rows, key=lambda row: (row[2], -row[5]))
        self._names: dict[int, list[tuple[int, int]]] = {}
        for row in ordered:
            self._names.setdefault(row[3], []).append((row[4], row[4] + len(row[0])))
        self._bounds: list[int] = []
        self._symbols: list[str | None] = []
        around: list[tuple[Any, ...]] = []
        place = 0
        for bound in sorted({row[2] for row in ordered} | {row[5] + 1 for row in ordered}):
            while place < len(ordered) and ordered[place][2] <= bound:
                around.append(ordered[place])
                place += 1
            while around and around[-1][5] < bound:
                around.pop()
            self._bounds.append(bound)
            self._symbols.append(_dotted(around[-1]) if around else None)

    def enclosing(self, line: int) -> str | None:
        """The dotted name of the innermost definition around a line."""
        place = bisect_right(self._bounds, line) - 1
        return self._symbols[place] if place >= 0 else None

    def names(self, line: int) -> Sequence[tuple[int, int]]:
        """The columns (and those behind them) of the names that a line defines."""
        return self._names.get(line, ())

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return 400 + 300 * len(self._bounds)


def _dotted(row: tuple[Any, ...]) -> str:
    return f"{row[6]}.{row[0]}" if row[6] else str(row[0])

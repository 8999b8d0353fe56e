"""Positions of the protocol (line, units of the negotiated encoding) and offsets in a text.

A line ends with a line feed, a carriage return or both, and with nothing else. A position beyond a line's
end means its end; one beyond the last line means the text's end (LSP 3.17, "Text Documents").
"""

from __future__ import annotations

import re
from typing import Literal

from attrs import field, frozen
from lsprotocol.types import Position, Range

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_LINE_END = re.compile(r"\r\n|\n|\r")


@frozen
class Lines:
    """A text with the offsets (in characters) of its lines' beginnings and ends."""

    text: str
    _starts: tuple[int, ...] = field(init=False)
    _ends: tuple[int, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        starts, ends = [0], []
        for found in _LINE_END.finditer(self.text):
            ends.append(found.start())
            starts.append(found.end())
        ends.append(len(self.text))
        object.__setattr__(self, "_starts", tuple(starts))
        object.__setattr__(self, "_ends", tuple(ends))

    def __len__(self) -> int:
        return len(self._starts)

    def line(self, number: int) -> str:
        """Line `number` (from 0) without its end; empty beyond the last one."""
        if not 0 <= number < len(self._starts):
            return ""
        return self.text[self._starts[number] : self._ends[number]]

    def offset(self, position: Position, encoding: Encoding) -> int:
        """The offset in characters. Inside a character's units it is the character's beginning."""
        if position.line >= len(self._starts):
            return len(self.text)
        return self._starts[position.line] + column(self.line(position.line), position.character, encoding)

    def span(self, range: Range, encoding: Encoding) -> tuple[int, int]:
        """Beginning and end as offsets, in order even where the client's are not."""
        first, last = self.offset(range.start, encoding), self.offset(range.end, encoding)
        return (first, last) if first <= last else (last, first)

    def position(self, offset: int, encoding: Encoding) -> Position:
        """The position of an offset in characters."""
        from bisect import bisect_right

        number = bisect_right(self._starts, min(max(offset, 0), len(self.text))) - 1
        start, end = self._starts[number], self._ends[number]
        return Position(number, units(self.text[start : min(max(offset, start), end)], encoding))

    def whole(self, number: int, encoding: Encoding) -> Range:
        """The range of one line's text, without indentation and end."""
        text = self.line(number)
        indent = len(text) - len(text.lstrip())
        return Range(
            Position(number, units(text[:indent], encoding)), Position(number, units(text.rstrip(), encoding))
        )


def units(text: str, encoding: Encoding) -> int:
    """How many code units a text has."""
    if text.isascii() or encoding == "utf-32":
        return len(text)
    if encoding == "utf-16":
        return len(text) + sum(char > "\uffff" for char in text)
    return len(text.encode("utf-8", "surrogatepass"))


def column(line: str, wanted: int, encoding: Encoding) -> int:
    """The character that begins at or holds unit `wanted` of a line; the line's length beyond it."""
    if line.isascii() or encoding == "utf-32":
        return min(wanted, len(line))
    seen = 0
    for number, char in enumerate(line):
        seen += units(char, encoding)
        if seen > wanted:
            return number
    return len(line)

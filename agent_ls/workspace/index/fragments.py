"""Finds the words of a dictionary that contain a fragment."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property

from agent_ls.workspace._grep import ODD

_ODD_WORD = re.compile(rb"\n([^\n]*(?:" + b"|".join(char.encode() for char in ODD) + rb")[^\n]*)(?=\n)")
_SORTED_AFTER = 4
_WORTH_SORTING = 100_000


class Fragments:
    """The words in `text`, one per line with a newline on either side. What ignoring case needs is made when
    it is first asked for and kept. Whoever asks often gets them sorted by length, since a fragment stands in
    no shorter word."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self._asked = 0
        self._ends: list[int] | None = None

    @cached_property
    def _lowered(self) -> bytes:
        # ASCII only, so that places in it are places in the text.
        return self.text.lower()

    @cached_property
    def _odd(self) -> list[bytes]:
        return _ODD_WORD.findall(self.text)

    @cached_property
    def _unlike_ascii(self) -> list[tuple[str, bytes]]:
        """(small letters, word) of the words with letters beyond ASCII."""
        return [
            (word.decode("utf-8", "replace").lower(), word)
            for word in self.text.split(b"\n")
            if not word.isascii()
        ]

    def containing(
        self, fragment: str, *, fold: bool, begins: bool = False, ends: bool = False
    ) -> Iterator[bytes]:
        """The words that contain `fragment`; with `fold`, where `fragment` is in small letters, in any case,
        and then every word with a letter whose relation to s, i or k depends on who ignores the case.

        With `begins` or `ends`, words may be left out in which it doesn't stand where they begin or end (with
        both: that are more than it)."""
        self._asked += 1
        if self._asked == _SORTED_AFTER and len(self.text) > _WORTH_SORTING:
            self._sort()
        needle = fragment.encode("utf-8", "replace")
        if not fold:
            yield from self._lines(self.text, needle, begins, ends)
        elif needle.isascii():
            yield from self._lines(self._lowered, needle, begins, ends)
            if self._odd and not {"s", "i", "k"}.isdisjoint(fragment):
                yield from self._odd
        else:
            yield from (word for lowered, word in self._unlike_ascii if fragment in lowered)

    def _lines(self, hay: bytes, needle: bytes, begins: bool, ends: bool) -> Iterator[bytes]:
        text = self.text
        limit = self._end(len(needle))
        inside = 1 if begins else 0
        needle = b"\n" * begins + needle + b"\n" * ends
        at = hay.find(needle, 0, limit)
        while at >= 0:
            start = text.rfind(b"\n", 0, at + 1) + 1
            end = text.find(b"\n", at + inside)
            if end <= start:
                return
            yield text[start:end]
            at = hay.find(needle, end, limit)

    def _sort(self) -> None:
        words = sorted(dict.fromkeys(self.text.split(b"\n")), key=len, reverse=True)
        self.text = b"\n" + b"\n".join(words)  # ends with a newline and the empty word
        self.__dict__.pop("_lowered", None)
        counts = Counter(map(len, words))
        ends, end = [], 1
        for length in range(max(counts), 0, -1):
            end += counts[length] * (length + 1)
            ends.append(end)
        self._ends = ends[::-1]

    def _end(self, length: int) -> int:
        """Where in the text the words of at least so many bytes end."""
        if self._ends is None or not length > 0:
            return len(self.text)
        return self._ends[length - 1] if length <= len(self._ends) else 0

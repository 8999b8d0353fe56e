"""Finds the words of a dictionary that contain a fragment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from agent_ls.workspace._grep import ODD

_ODD_WORD = re.compile(rb"\n([^\n]*(?:" + b"|".join(char.encode() for char in ODD) + rb")[^\n]*)(?=\n)")


class Fragments:
    """The words in `text`, one per line with a newline on either side. What ignoring case needs is made when
    it is first asked for and kept."""

    def __init__(self, text: bytes) -> None:
        self.text = text

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

    def containing(self, fragment: str, *, fold: bool) -> Iterator[bytes]:
        """The words that contain `fragment`; with `fold`, where `fragment` is in small letters, in any case,
        and then every word with a letter whose relation to s, i or k depends on who ignores the case."""
        needle = fragment.encode("utf-8", "replace")
        if not fold:
            yield from self._lines(self.text, needle)
        elif needle.isascii():
            yield from self._lines(self._lowered, needle)
            if self._odd and not {"s", "i", "k"}.isdisjoint(fragment):
                yield from self._odd
        else:
            yield from (word for lowered, word in self._unlike_ascii if fragment in lowered)

    def _lines(self, hay: bytes, needle: bytes) -> Iterator[bytes]:
        text = self.text
        at = hay.find(needle)
        while at >= 0:
            start = text.rfind(b"\n", 0, at + 1) + 1
            end = text.find(b"\n", at)
            if end <= start:
                return
            yield text[start:end]
            at = hay.find(needle, end)

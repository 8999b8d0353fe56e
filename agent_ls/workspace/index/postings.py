"""Which terms stand in which documents: immutable segments of compressed, sorted chunks.

A segment is made at once from many documents (by a worker, in one piece) and never changed; what changes
afterwards is kept beside it (`Pending`) until enough has come together for a new segment, the way of a
log-structured merge tree (O'Neil et al. 1996). A chunk holds some hundred neighbouring terms, one per line,
and behind them their documents: a count per term, then the numbers one after another, so that nothing is
done term by term but by bytes.find, bytes.count and array slices. zlib's checksum covers every chunk.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, KeysView, Mapping, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

WORDS, NAMES = 0, 1
"""The two kinds of terms: words of the text, names that are defined."""

_TERMS = 512
_POSTINGS = 40_000
_LEVEL = 1


class Chunk(NamedTuple):
    """Neighbouring terms as they are stored: the first one, all of them, and their documents."""

    first: bytes
    terms: bytes
    documents: bytes


def encode(postings: Mapping[bytes, Sequence[int]]) -> list[Chunk]:
    """The chunks for terms (without newlines) and the numbers of the documents they stand in."""
    terms = sorted(postings)
    # Looked up once each, since every look-up of many misses the processor's cache.
    lists = [postings[term] for term in terms]
    counts = list(map(len, lists))
    chunks = []
    start = held = 0
    for place, number in enumerate(counts):
        held += number
        if place - start + 1 >= _TERMS or held > _POSTINGS:
            end = place + 1
            chunks.append(_chunk(terms[start:end], counts[start:end], lists[start:end]))
            start, held = end, 0
    if start < len(terms):
        chunks.append(_chunk(terms[start:], counts[start:], lists[start:]))
    return chunks


def _chunk(terms: list[bytes], counts: list[int], lists: list[Sequence[int]]) -> Chunk:
    numbers = list(chain.from_iterable(lists))
    return Chunk(
        terms[0],
        zlib.compress(b"\n".join(terms), _LEVEL),
        zlib.compress(_packed(counts) + _packed(numbers), _LEVEL),
    )


def _packed(numbers: Sequence[int]) -> bytes:
    """Numbers as bytes, least first, two bytes each where all fit; preceded by their count and width."""
    code = "H"
    try:
        body = array(code, numbers)
    except OverflowError:
        code = "I"
        body = array(code, numbers)
    if sys.byteorder == "big":
        body.byteswap()
    return len(numbers).to_bytes(4, "little") + code.encode() + body.tobytes()


def _unpacked(data: bytes, start: int) -> tuple[array[int], int]:
    count = int.from_bytes(data[start : start + 4], "little")
    numbers = array(data[start + 4 : start + 5].decode())
    end = start + 5 + count * numbers.itemsize
    numbers.frombytes(data[start + 5 : end])
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers, end


def pack_documents(ids: Iterable[int]) -> bytes:
    """The documents of a segment: their place is their number in the segment."""
    return zlib.compress(_packed(list(ids)), _LEVEL)


def unpack_documents(data: bytes) -> array[int]:
    """The inverse of `pack_documents`. Raises zlib.error for damaged data."""
    return _unpacked(zlib.decompress(data), 0)[0]


class Terms:
    """A chunk, unpacked. Raises zlib.error (or ValueError) for damaged data."""

    __slots__ = ("_counts", "_ends", "_numbers", "_starts", "text")

    def __init__(self, terms: bytes, documents: bytes) -> None:
        self.text = b"\n" + zlib.decompress(terms) + b"\n"
        data = zlib.decompress(documents)
        self._counts, end = _unpacked(data, 0)
        self._numbers, _ = _unpacked(data, end)
        self._ends: array[int] | None = None
        self._starts: array[int] | None = None

    def documents(self, term: bytes) -> Sequence[int]:
        """The numbers of the documents that `term` stands in; none when it isn't here."""
        found = self.text.find(b"\n" + term + b"\n")
        if found < 0:
            return ()
        if self._starts is None or self._ends is None:
            self._starts = array("I", accumulate(self._counts, initial=0))
            lines = self.text[1:].split(b"\n")
            self._ends = array("I", accumulate(map(len, lines), lambda end, size: end + size + 1))
        place = bisect_left(self._ends, found)
        return self._numbers[self._starts[place] : self._starts[place + 1]]

    def __iter__(self) -> Iterator[tuple[bytes, Sequence[int]]]:
        start = 0
        for term, count in zip(self.text[1:-1].split(b"\n"), self._counts, strict=True):
            yield term, self._numbers[start : start + count]
            start += count

    def among(self, wanted: KeysView[bytes]) -> Iterator[tuple[bytes, Sequence[int]]]:
        """Those of the wanted terms that are here, with their documents."""
        terms = self.text[1:-1].split(b"\n")
        place = dict(zip(terms, range(len(terms)), strict=True))
        starts = list(accumulate(self._counts, initial=0))
        for term in wanted & place.keys():
            at = place[term]
            yield term, self._numbers[starts[at] : starts[at + 1]]

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return len(self.text) + self._numbers.itemsize * len(self._numbers) + 10 * len(self._counts) + 300


class Pending:
    """Documents that are in no segment yet: their terms as text, looked through as a whole."""

    def __init__(self) -> None:
        self._text = bytearray(b"\n")
        self._starts: list[int] = []
        self._ids: list[int] = []

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def size(self) -> int:
        return len(self._text)

    def add(self, document: int, terms: bytes) -> None:
        """Take a document in, with its terms one per line."""
        self._starts.append(len(self._text))
        self._ids.append(document)
        self._text += b"\x01\n" + terms + b"\n"

    def documents(self, term: bytes) -> list[int]:
        """The documents that `term` stands in."""
        needle = b"\n" + term + b"\n"
        found = []
        at = self._text.find(needle)
        while at >= 0:
            place = bisect_right(self._starts, at) - 1
            found.append(self._ids[place])
            after = self._starts[place + 1] if place + 1 < len(self._starts) else len(self._text)
            at = self._text.find(needle, after - 1)
        return found

    def text(self) -> bytes:
        """All terms, one per line, some several times."""
        return bytes(self._text)

"""Finds terms in the database's segments and in what is pending; keeps what it has unpacked for a while."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from agent_ls.workspace.index.packed import NOT_UTF8, unpack, unpack_named
from agent_ls.workspace.index.postings import NAMES, WORDS, Pending, Terms
from agent_ls.workspace.index.store import Store

if TYPE_CHECKING:
    from agent_ls.workspace.index.fragments import Fragments
    from agent_ls.workspace.index.layout import Layout

_CACHED_BYTES = 6_000_000
_CACHED_CHUNKS = 12_000_000
"""One that can't hold the chunks of a few hundred words would unpack them again at each question."""


class _Cache:
    """The most recently used values, up to a number of bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = 0
        self._values: dict[Any, tuple[int, Any]] = {}

    def get(self, key: Any) -> Any:
        found = self._values.pop(key, None)
        if found is None:
            return None
        self._values[key] = found
        return found[1]

    def put(self, key: Any, size: int, value: Any) -> None:
        self._values[key] = (size, value)
        self._held += size
        while self._held > self._limit and len(self._values) > 1:
            oldest = next(iter(self._values))
            self._held -= self._values.pop(oldest)[0]

    def clear(self) -> None:
        self._values.clear()
        self._held = 0


class Lookup:
    """Reads of one store; the caller holds a lock, and a read transaction where several must agree."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._segments: list[int] = []
        self._documents: dict[int, array[int]] = {}
        self._firsts: dict[tuple[int, int], tuple[list[bytes], list[int]]] = {}
        self._chunks = _Cache(_CACHED_CHUNKS)
        self._tags = _Cache(_CACHED_BYTES)
        self._layouts = _Cache(_CACHED_BYTES)
        self._pending: dict[int, Pending] | None = None
        self._last_pending = 0
        self._dictionaries: dict[int, Fragments] = {}
        self._loaded = False
        self._read_pending = False
        self._not_utf8: set[int] = set()
        self._read_flags = False
        self._last_blob = 0
        self.long_words: dict[int, bytes | None] = {}
        """Of contents: their words that are too long for the index; None: too many to be kept."""

    def changed(self, *, segments: bool = True) -> None:
        """Somebody has written; `segments` False: only new documents are pending."""
        self._read_pending = self._read_flags = False
        if segments:
            self._loaded = False

    def _load(self) -> None:
        if not self._loaded:
            self._loaded = True
            segments = [number for number, _ in self._store.segments()]
            if segments != self._segments:
                self._segments = segments
                self._pending = None
                self._documents = {n: found for n, found in self._documents.items() if n in segments}
                self._firsts = {k: found for k, found in self._firsts.items() if k[0] in segments}
                self._dictionaries.clear()
                self._chunks.clear()
        if self._read_pending and self._pending is not None:
            return
        if self._pending is None:
            self._pending = {WORDS: Pending(), NAMES: Pending()}
            self._last_pending = 0
        for number, words, names in self._store.pending(self._last_pending):
            self._pending[WORDS].add(number, words)
            self._pending[NAMES].add(number, names)
            self._last_pending = number
        self._read_pending = True

    def _documents_of(self, segment: int) -> array[int]:
        found = self._documents.get(segment)
        if found is None:
            found = self._store.segment_documents(segment) or array("I")
            self._documents[segment] = found
        return found

    def _terms(self, segment: int, kind: int, term: bytes) -> Terms | None:
        firsts, numbers = self._firsts.get((segment, kind)) or self._read_firsts(segment, kind)
        place = bisect_right(firsts, term) - 1
        if place < 0:
            return None
        number = numbers[place]
        found: Terms | None = self._chunks.get(number)
        if found is None:
            stored = self._store.chunk(number)
            if stored is None:
                return None
            found = Terms(*stored)
            self._chunks.put(number, found.size, found)
        return found

    def _read_firsts(self, segment: int, kind: int) -> tuple[list[bytes], list[int]]:
        rows = self._store.chunk_firsts(segment, kind)
        found = [row[0] for row in rows], [row[1] for row in rows]
        self._firsts[segment, kind] = found
        return found

    def ids(self, kind: int, term: bytes) -> set[int]:
        """The contents that a term stands in (dead ones among them)."""
        return self.ids_of_any(kind, (term,))

    def ids_of_any(self, kind: int, terms: Iterable[bytes]) -> set[int]:
        """The contents that at least one of the terms stands in (dead ones among them)."""
        self._load()
        found: set[int] = set()
        for term in terms:
            self._add_ids(kind, term, found)
        return found

    def _add_ids(self, kind: int, term: bytes, found: set[int]) -> None:
        for segment in self._segments:
            terms = self._terms(segment, kind, term)
            if terms is not None and (places := terms.documents(term)):
                found.update(map(self._documents_of(segment).__getitem__, places))
        assert self._pending is not None
        found.update(self._pending[kind].documents(term))

    def fragments(self, kind: int) -> Iterator[Fragments]:
        """All terms of a kind; some in several of the texts."""
        import zlib

        from agent_ls.workspace.index.fragments import Fragments

        self._load()
        known = self._dictionaries.get(kind)
        if known is None:
            parts = [
                zlib.decompress(terms)
                for segment in self._segments
                for terms in self._store.chunk_terms(segment, kind)
            ]
            known = self._dictionaries[kind] = Fragments(b"\n" + b"\n".join(parts) + b"\n")
        yield known
        assert self._pending is not None
        if len(self._pending[kind]):
            yield Fragments(self._pending[kind].text())

    def all_terms(self, kind: int) -> Iterator[tuple[bytes, Iterable[int]]]:
        """Every term of the segments with its contents, then those of what is pending; a term comes once per
        place that holds it."""
        self._load()
        for segment in self._segments:
            documents = self._documents_of(segment)
            for stored in self._store.chunks(segment, kind):
                for term, places in Terms(*stored):
                    yield term, [documents[place] for place in places]
        for number, words, names in self._store.pending():
            for term in (words if kind == WORDS else names).split(b"\n"):
                yield term, (number,)

    def crossings(self) -> Iterator[tuple[bytes, list[int], list[int]]]:
        """Every defined name with the contents that define it and those that mention it as a word, dead ones
        among them: one pass over all terms, for who needs most of them."""
        definers: dict[bytes, list[int]] = {}
        for term, blobs in self.all_terms(NAMES):
            definers.setdefault(term, []).extend(blobs)
        mentions: dict[bytes, list[int]] = {}
        for segment in self._segments:
            document = self._documents_of(segment).__getitem__
            for stored in self._store.chunks(segment, WORDS):
                for term, places in Terms(*stored).among(definers.keys()):
                    mentions.setdefault(term, []).extend(map(document, places))
        for number, words, _ in self._store.pending():
            for term in words.split(b"\n"):
                if term in definers:
                    mentions.setdefault(term, []).append(number)
        for term, blobs in definers.items():
            if term:
                yield term, blobs, mentions.get(term, [])

    def tags(self, blob: int) -> tuple[Sequence[Any], Sequence[Any]]:
        """The rows of definitions and imports of a content."""
        found: tuple[Sequence[Any], Sequence[Any]] | None = self._tags.get(blob)
        if found is None:
            packed = self._store.tags(blob)
            if packed is None:
                return (), ()
            found = unpack(packed)
            self._tags.put(blob, 400 + 12 * len(packed), found)
        return found

    def layouts(self, blobs: Iterable[int]) -> dict[int, tuple[int, str | None, int, Layout]]:
        """Size, language, flags and the places of the definitions, for contents that are there."""
        from agent_ls.workspace.index.layout import Layout

        found: dict[int, tuple[int, str | None, int, Layout]] = {}
        for blob in blobs:
            known: tuple[int, str | None, int, Layout] | None = self._layouts.get(blob)
            if known is None:
                info = self._store.blob_infos((blob,)).get(blob)
                if info is None:
                    continue
                layout = Layout(unpack(self._store.tags(blob) or b"")[0])
                known = (*info, layout)
                self._layouts.put(blob, layout.size, known)
            found[blob] = known
        return found

    def not_utf8(self) -> set[int]:
        """The contents that are in another encoding than UTF-8."""
        if not self._read_flags:
            *found, self._last_blob = self._store.blobs_with(NOT_UTF8, self._last_blob)
            self._not_utf8.update(found)
            self._read_flags = True
        return self._not_utf8

    def named(self, blob: int, name: str) -> list[Any]:
        """The rows of a content's definitions of one name."""
        packed = self._store.tags(blob)
        return unpack_named(packed, name) if packed else []

    def key(self, blob: int) -> bytes | None:
        """What a content is stored under."""
        return self._store.blob_key(blob)

    def infos(self, blobs: Iterable[int] | None = None) -> dict[int, tuple[int, str | None, int]]:
        """Size, language and flags of contents, or of all."""
        return self._store.blob_infos(blobs)

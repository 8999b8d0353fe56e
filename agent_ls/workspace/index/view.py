"""One snapshot of the index, for answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from agent_ls.workspace.index import roles
from agent_ls.workspace.index.fragments import Fragments
from agent_ls.workspace.index.hashing import UNSURE, signature
from agent_ls.workspace.index.layout import Layout
from agent_ls.workspace.index.packed import GENERATED, LONG_LINES, ONLY_TEXT, TOO_SLOW, unpack, unpack_named
from agent_ls.workspace.index.postings import NAMES, WORDS
from agent_ls.workspace.index.reading import FLAGS
from agent_ls.workspace.index.records import Definition, FileInfo, Found, Import, Skipped
from agent_ls.workspace.index.state import State
from agent_ls.workspace.index.words import UNINDEXED, long_words_of

if TYPE_CHECKING:
    from agent_ls.workspace.index.index import Index
    from agent_ls.workspace.index.lookup import Lookup
    from agent_ls.workspace.index.store import Entry
    from agent_ls.workspace.index.tags import DefinitionRow

_T = TypeVar("_T")

_BATCH = 500
"""So many words are looked up in one transaction."""
_KEPT_LONG_WORDS = 20_000
"""Bytes of a file's words too long for the index that are kept so that the file need not be read again."""


class View:
    """What the index says at one moment. Cheap; ask for another one for fresh answers.

    Thread-safe. Only `text` looks at the disk: should a file have changed, the index takes that in first, and
    this view goes on from there.
    """

    def __init__(self, index: Index, state: State) -> None:
        self._index = index
        self._state = state
        self._infos: dict[str, FileInfo] | None = None

    @property
    def version(self) -> int:
        """Grows with every change of the index."""
        return self._state.version

    @property
    def source(self) -> object:
        """What it is a view of: two views of one source with equal versions say the same."""
        return self._index

    # files

    def files(self) -> Sequence[FileInfo]:
        """All files of the index, by path."""
        return list(self._files().values())

    def paths(self) -> Sequence[str]:
        """Their paths alone, sorted."""
        return self._state.paths

    def file(self, path: str) -> FileInfo | None:
        """What is known of one file; None when it is not in the index."""
        if self._infos is not None:
            return self._infos.get(path)
        overlay = self._state.overlays.get(path)
        if overlay is not None:
            content = overlay.content
            return _info(path, content.size, content.language, content.flags)
        entry = self._state.entries.get(path)
        if entry is None or not entry[0]:
            return None
        found = self._read(lambda lookup: lookup.infos((entry[0],)))
        return _info(path, *found[entry[0]]) if entry[0] in found else None

    def _files(self) -> dict[str, FileInfo]:
        if self._infos is None:
            known = self._read(lambda lookup: lookup.infos())
            overlays = self._state.overlays
            found = {}
            for path in sorted(self._state.entries.keys() | overlays.keys()):
                if path in overlays:
                    content = overlays[path].content
                    found[path] = _info(path, content.size, content.language, content.flags)
                elif (blob := self._state.entries[path][0]) in known:
                    found[path] = _info(path, *known[blob])
            self._infos = found
        return self._infos

    def skipped(self) -> Sequence[Skipped]:
        """Files and folders that are left out or not read fully, and why. A name that is no UTF-8 shows with
        escapes."""
        found = dict(self._state.listing_skipped)
        known = self._read(lambda lookup: lookup.infos())
        for path, (blob, _, reason) in self._state.entries.items():
            if path in self._state.overlays:
                continue
            if reason is not None:
                found[path] = reason
            elif blob in known and known[blob][2] & ONLY_TEXT:
                found[path] = roles.ONLY_TEXT
            elif blob in known and known[blob][2] & TOO_SLOW:
                found[path] = roles.TOO_SLOW
        return [Skipped(_printable(path), reason) for path, reason in sorted(found.items())]

    def large_files(self) -> Sequence[str]:
        """Paths of files that are left out for their size alone."""
        return [path for path in self._state.large if path not in self._state.overlays]

    def overlaid(self) -> frozenset[str]:
        """Paths whose text is an open buffer's instead of the file's."""
        return frozenset(self._state.overlays)

    def not_utf8(self) -> set[str]:
        """Paths whose text is not in UTF-8, or has a byte order mark (open buffers aside)."""
        by_blob = self._state.by_blob
        return {
            path for blob in self._read(lambda lookup: lookup.not_utf8()) for path in by_blob.get(blob, ())
        }

    def text(self, path: str) -> bytes:
        """The bytes that the answers are about: an open buffer's, else the file's. One that has changed is
        indexed first. b"" for what has gone or is not in the index."""
        overlay = self._state.overlays.get(path)
        if overlay is not None:
            return overlay.data
        entry = self._state.entries.get(path)
        if entry is None or not entry[0]:
            return b""
        try:
            descriptor = os.open(f"{self._index.root}/{path}", FLAGS)
            try:
                size = os.fstat(descriptor).st_size
                data = os.read(descriptor, min(size, roles.MAX_TEXT) + 1)
                after = os.fstat(descriptor)
            finally:
                os.close(descriptor)
            if entry[1] != UNSURE and signature(after, entry[0]) == entry[1] and size == len(data):
                return data
            if self._index.is_content(path, data, entry[0]):
                return data
        except OSError:
            pass
        self._state = self._index.follow(path)
        self._infos = None
        return self._index.current_bytes(path)

    def current(self, paths: Iterable[str]) -> None:
        """Take in those of the files that have changed: afterwards the answers are about the files as they
        are."""
        for path in paths:
            entry = self._state.entries.get(path)
            if entry is None or not entry[0] or path in self._state.overlays:
                continue
            try:
                status = os.lstat(f"{self._index.root}/{path}")
            except OSError:
                status = None
            if status is None or signature(status, entry[0]) != entry[1]:
                self.text(path)

    def layouts(self, paths: Iterable[str]) -> dict[str, tuple[FileInfo, Layout]]:
        """What is known of each file, and where its definitions are; files not in the index are left out."""
        state = self._state
        found: dict[str, tuple[FileInfo, Layout]] = {}
        stored = []
        for path in paths:
            overlay = state.overlays.get(path)
            if overlay is not None:
                content = overlay.content
                info = _info(path, content.size, content.language, content.flags)
                found[path] = info, Layout(unpack(content.tags)[0])
            elif (entry := state.entries.get(path)) is not None and entry[0]:
                stored.append((path, entry[0]))
        known = self._read(lambda lookup: lookup.layouts(blob for _, blob in stored))
        for path, blob in stored:
            if blob in known:
                size, language, flags, layout = known[blob]
                found[path] = _info(path, size, language, flags), layout
        return found

    # symbols

    def definitions(self, name: str) -> list[Found]:
        """Where something of exactly this (last) name is defined, by path and line."""
        term = name.encode("utf-8", "replace")
        found: list[Found] = []
        state = self._state

        def collect(lookup: Lookup) -> None:
            for blob in lookup.ids(NAMES, term):
                paths = state.by_blob.get(blob)
                if paths:
                    rows = lookup.named(blob, name)
                    for path in paths:
                        if path not in state.overlays:
                            found.extend(Found(path, Definition(*row)) for row in rows)

        self._read(collect)
        for path, overlay in state.overlays.items():
            if term in overlay.content.names:
                rows = unpack_named(overlay.content.tags, name)
                found.extend(Found(path, Definition(*row)) for row in rows)
        if len(found) > 1:
            found.sort(key=lambda item: (item.path, item.definition.line))
        return found

    def names(self) -> Collection[str]:
        """All defined names."""
        found: set[bytes] = set()
        state = self._state

        def collect(lookup: Lookup) -> None:
            live = self._live()
            for term, blobs in lookup.all_terms(NAMES):
                if term not in found and not live.isdisjoint(blobs):
                    found.add(term)

        self._read(collect)
        for overlay in state.overlays.values():
            found |= overlay.content.names
        found.discard(b"")
        return {term.decode("utf-8", "replace") for term in found}

    def _live(self) -> set[int]:
        """Contents that some path shows from the disk."""
        state = self._state
        if not state.overlays:
            return set(state.by_blob)
        return {
            blob for blob, paths in state.by_blob.items() if any(path not in state.overlays for path in paths)
        }

    def files_defining(self, names: Collection[str]) -> set[str]:
        """The files that define something of exactly one of these (last) names."""
        return self._files_of_any(NAMES, names)

    def _files_of_any(self, kind: int, words: Collection[str]) -> set[str]:
        terms = {word.encode("utf-8", "replace") for word in words}
        state = self._state
        blobs = self._read(lambda lookup: lookup.ids_of_any(kind, sorted(terms)))
        found = {path for blob in blobs for path in state.by_blob.get(blob, ())}
        for path, overlay in state.overlays.items():
            found.discard(path)
            if not terms.isdisjoint(overlay.content.words if kind == WORDS else overlay.content.names):
                found.add(path)
        return found

    def crossings(self) -> tuple[Mapping[int, Sequence[str]], list[tuple[str, list[int], list[int]]]]:
        """(the paths behind each number; every defined name with the numbers of the files that define it and
        of those that mention it). Numbers without paths mean nothing. For whoever needs them all."""
        found = [
            (term.decode("utf-8", "replace"), definers, mentions)
            for term, definers, mentions in self._read(lambda lookup: list(lookup.crossings()))
        ]
        overlays = self._state.overlays
        if not overlays:
            return self._state.by_blob, found
        paths = {
            blob: [path for path in known if path not in overlays]
            for blob, known in self._state.by_blob.items()
        }
        names = {name: (definers, mentions) for name, definers, mentions in found}
        for number, (path, overlay) in enumerate(overlays.items(), 1):
            paths[-number] = [path]
            for term in overlay.content.names:
                names.setdefault(term.decode("utf-8", "replace"), ([], []))[0].append(-number)
        for number, overlay in enumerate(overlays.values(), 1):
            for term in overlay.content.words:
                entry = names.get(term.decode("utf-8", "replace"))
                if entry is not None:
                    entry[1].append(-number)
        return paths, [(name, definers, mentions) for name, (definers, mentions) in names.items()]

    def definition_rows(self, path: str) -> Sequence[DefinitionRow]:
        """As `outline`, in plain tuples of a Definition's fields: for many files."""
        rows: Sequence[DefinitionRow] = self._tags(path)[0]
        return rows

    def outline(self, path: str) -> list[Definition]:
        """The definitions of a file, by line."""
        return [Definition(*row) for row in self._tags(path)[0]]

    def imports(self, path: str) -> list[Import]:
        """What a file takes from elsewhere."""
        return [Import(*row) for row in self._tags(path)[1]]

    def _tags(self, path: str) -> tuple[Sequence[Any], Sequence[Any]]:
        overlay = self._state.overlays.get(path)
        if overlay is not None:
            return unpack(overlay.content.tags)
        entry = self._state.entries.get(path)
        if entry is None or not entry[0]:
            return (), ()
        blob = entry[0]
        return self._read(lambda lookup: lookup.tags(blob))

    # words

    def words(
        self,
        fragment: str,
        fold: bool | None = None,
        *,
        begins: bool = False,
        ends: bool = False,
        most: int | None = None,
    ) -> list[str]:
        """Words of the index that contain `fragment`. With `fold` (None: when the fragment is in small
        letters) whatever their case, and some more that may be meant (see `Fragments`). Some may stand in no
        file any more; `files_with` tells. With `begins` or `ends`, those in which it doesn't stand where they
        begin or end may be left out. Of more than `most` words, some are left out, but not so many that it
        wouldn't show."""
        fold = fragment == fragment.lower() if fold is None else fold
        return self._terms_like(WORDS, fragment, fold, begins, ends, most)

    def names_like(self, fragment: str, fold: bool = True) -> list[str]:
        """Defined names that contain `fragment`, as `words`; some may be defined no more."""
        return self._terms_like(NAMES, fragment, fold)

    def _terms_like(
        self,
        kind: int,
        fragment: str,
        fold: bool,
        begins: bool = False,
        ends: bool = False,
        most: int | None = None,
    ) -> list[str]:
        found: set[bytes] = set()
        asked = fragment.lower() if fold else fragment

        def collect(lookup: Lookup) -> None:
            for fragments in lookup.fragments(kind):
                take(fragments)

        def take(fragments: Fragments) -> None:
            containing = fragments.containing(asked, fold=fold, begins=begins, ends=ends)
            if most is None:
                found.update(containing)
                return
            while len(found) <= most and (part := list(islice(containing, most + 1))):
                found.update(part)

        self._read(collect)
        for overlay in self._state.overlays.values():
            terms = overlay.content.words if kind == WORDS else overlay.content.names
            take(Fragments(b"\n" + b"\n".join(terms) + b"\n"))
        found.discard(b"\x01")
        return sorted(term.decode("utf-8", "replace") for term in found)

    def files_with_any(self, words: Collection[str]) -> set[str]:
        """The files whose text has at least one of the words (see `files_with`)."""
        return self._files_of_any(WORDS, words)

    def files_with_long(self, run: str, fold: bool) -> set[str]:
        """The files that may have a word too long for the index that contains `run`; with `fold` (`run` is in
        small letters then) in any case."""
        found = set()
        asked = run.encode("utf-8", "replace")
        known = self._read(lambda lookup: lookup.long_words)
        for path in self.files_with(UNINDEXED.decode()):
            entry = self._state.entries.get(path)
            if entry is None or path in self._state.overlays:
                found.add(path)
                continue
            if entry[0] not in known:
                entry = self._learn_long_words(path, known) or entry
            long = known.get(entry[0])
            if long is None or (fold and not long.isascii()) or asked in (long.lower() if fold else long):
                found.add(path)
        return found

    def _learn_long_words(self, path: str, known: dict[int, bytes | None]) -> Entry | None:
        """Read the words of a file that are too long for the index; None stands for too many of them."""
        data = self.text(path)
        entry = self._state.entries.get(path)
        if entry is not None and self._index.is_content(path, data, entry[0]):
            words = b"\n".join(sorted(long_words_of(data)))
            known[entry[0]] = words if len(words) <= _KEPT_LONG_WORDS else None
        return entry

    def files_with(self, word: str) -> frozenset[str]:
        """The files whose text has this word (a whole token as `words.words_of` splits them)."""
        return frozenset(path for _word, paths in self.postings((word,)) for path in paths)

    def postings(self, words: Iterable[str]) -> Iterator[tuple[str, Sequence[str]]]:
        """Each word with the files that have it, by path, in the order of the words; a word in no file is
        left out."""
        every = sorted(set(words))
        for start in range(0, len(every), _BATCH):
            yield from self._postings(every[start : start + _BATCH])

    def _postings(self, words: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
        terms = [(word.encode("utf-8", "replace"), word) for word in words]

        def collect(lookup: Lookup) -> list[set[int]]:
            return [lookup.ids(WORDS, term) for term, _word in terms]

        by_blob, overlays = self._state.by_blob, self._state.overlays
        for (term, word), blobs in zip(terms, self._read(collect), strict=True):
            found = [path for blob in blobs for path in by_blob.get(blob, ())]
            if overlays:
                found = [path for path in found if path not in overlays]
                found += (path for path, overlay in overlays.items() if term in overlay.content.words)
            if found:
                found.sort()
                yield word, found

    def _read(self, action: Callable[[Lookup], _T]) -> _T:
        return self._index.read(action)


def _info(path: str, size: int, language: str | None, flags: int) -> FileInfo:
    return FileInfo(
        path, size, language, roles.role_of(path, bool(flags & GENERATED), bool(flags & LONG_LINES))
    )


def _printable(path: str) -> str:
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")

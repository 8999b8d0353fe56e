"""A snapshot of an index that is held in memory: what the answers are tested against."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from attrs import astuple

from agent_ls.workspace._grep import decoded
from agent_ls.workspace.grammars import language_of
from agent_ls.workspace.index.fragments import Fragments
from agent_ls.workspace.index.layout import Layout
from agent_ls.workspace.index.records import Definition, FileInfo, FileTags, Found, Import, Skipped
from agent_ls.workspace.index.tags import DefinitionRow, tags
from agent_ls.workspace.index.words import UNINDEXED, as_utf8, words_of


class MemoryView:
    """The `View` of files given by path; binary ones are left out, as the index does."""

    version = 1

    def __init__(self, files: Mapping[str, bytes], generated: Collection[str] = ()) -> None:
        self.data = {path: data for path, data in files.items() if decoded(data) is not None}
        self.read: list[str] = []
        self.large: list[str] = []
        self.open: list[str] = []
        self._words = {path: words_of(data) for path, data in self.data.items()}
        self._generated = generated

    def tags_of(self, path: str) -> FileTags:
        language = language_of(path)
        return tags(language, self.data[path]) if language is not None else FileTags("")

    def files(self) -> Sequence[FileInfo]:
        return [info for path in sorted(self.data) if (info := self.file(path)) is not None]

    def file(self, path: str) -> FileInfo | None:
        if path not in self.data:
            return None
        role = "generated" if path in self._generated else "source"
        return FileInfo(path, len(self.data[path]), language_of(path), role)

    def skipped(self) -> Sequence[Skipped]:
        return []

    def definitions(self, name: str) -> list[Found]:
        return [found for found in self._definitions() if found.definition.name == name]

    def names(self) -> Collection[str]:
        return {found.definition.name for found in self._definitions()}

    def _definitions(self) -> Iterator[Found]:
        for path in sorted(self.data):
            yield from (Found(path, definition) for definition in self.outline(path))

    def outline(self, path: str) -> list[Definition]:
        return list(self.tags_of(path).definitions)

    def imports(self, path: str) -> list[Import]:
        return list(self.tags_of(path).imports)

    def files_defining(self, names: Collection[str]) -> set[str]:
        return {found.path for name in names for found in self.definitions(name)}

    def layouts(self, paths: Iterable[str]) -> dict[str, tuple[FileInfo, Layout]]:
        known = ((path, self.file(path)) for path in paths)
        return {path: (info, Layout(self.definition_rows(path))) for path, info in known if info is not None}

    def definition_rows(self, path: str) -> Sequence[DefinitionRow]:
        return [astuple(definition) for definition in self.outline(path)]

    def words(
        self,
        fragment: str,
        fold: bool | None = None,
        *,
        begins: bool = False,
        ends: bool = False,
        most: int | None = None,
    ) -> list[str]:
        every = {word for words in self._words.values() for word in words}
        fold = fragment == fragment.lower() if fold is None else fold
        found = Fragments(b"\n".join([b"", *every, b""])).containing(
            fragment, fold=fold, begins=begins, ends=ends
        )
        return sorted({word.decode() for word in found})[: None if most is None else most + 1]

    def names_like(self, fragment: str, fold: bool = True) -> list[str]:
        found = Fragments("\n".join(["", *self.names(), ""]).encode()).containing(
            fragment.lower() if fold else fragment, fold=fold
        )
        return sorted({name.decode() for name in found})

    def files_with(self, word: str) -> frozenset[str]:
        return frozenset(path for path, words in self._words.items() if word.encode() in words)

    def files_with_any(self, words: Collection[str]) -> set[str]:
        return {path for word in words for path in self.files_with(word)}

    def files_with_long(self, run: str, fold: bool) -> set[str]:
        return set(self.files_with(UNINDEXED.decode()))

    def paths(self) -> Sequence[str]:
        return sorted(self.data)

    def current(self, paths: Iterable[str]) -> None:
        pass

    def postings(self, words: Iterable[str]) -> Iterator[tuple[str, Sequence[str]]]:
        for word in words:
            yield word, sorted(self.files_with(word))

    def large_files(self) -> Sequence[str]:
        return self.large

    def overlaid(self) -> frozenset[str]:
        return frozenset(self.open)

    def not_utf8(self) -> set[str]:
        return {path for path, data in self.data.items() if as_utf8(data) is not data}

    def text(self, path: str) -> bytes:
        self.read.append(path)
        return self.data[path]

"""A snapshot of files held in memory, with the interface of the index's `View`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from agent_ls.workspace.grammars import language_of
from agent_ls.workspace.index.records import Definition, FileInfo, Found, Import
from agent_ls.workspace.index.words import words_of
from agent_ls.workspace.syntax import outline

_IMPORT = re.compile(r"^\s*(?:from\s+(\S+)\s+import\s+\(?([\w, *]+)|import\s+(\S+))", re.MULTILINE)


class MemoryView:
    """Files given as text; definitions as the outline sees them, imports of Python only."""

    def __init__(self, files: Mapping[str, str], version: int = 1) -> None:
        self.version = version
        self._texts = {path: text.encode() for path, text in files.items()}
        self._outlines = {path: self._outline(path, text) for path, text in files.items()}
        self._postings: dict[str, set[str]] = defaultdict(set)
        for path, data in self._texts.items():
            for word in words_of(data):
                self._postings[word.decode()].add(path)
        self._names: dict[str, list[Found]] = defaultdict(list)
        for path, definitions in self._outlines.items():
            for definition in definitions:
                self._names[definition.name].append(Found(path, definition))

    @staticmethod
    def _outline(path: str, text: str) -> list[Definition]:
        return [
            Definition(s.name, s.kind, s.line, s.line, 1, s.end_line, s.container, s.signature)
            for s in outline(path, text)
        ]

    def files(self) -> Sequence[FileInfo]:
        return [FileInfo(path, len(data), language_of(path)) for path, data in self._texts.items()]

    def definitions(self, name: str) -> list[Found]:
        return list(self._names.get(name, ()))

    def names(self) -> Collection[str]:
        return self._names.keys()

    def outline(self, path: str) -> list[Definition]:
        return self._outlines[path]

    def imports(self, path: str) -> list[Import]:
        if not path.endswith(".py"):
            return []
        found = []
        for match in _IMPORT.finditer(self._texts[path].decode()):
            names = tuple(re.findall(r"[\w*]+", match[2] or ""))
            found.append(Import(match[1] or match[3], 1, names))
        return found

    def words(self, fragment: str) -> list[str]:
        if fragment.islower():
            return [word for word in self._postings if fragment in word.lower()]
        return [word for word in self._postings if fragment in word]

    def files_with(self, word: str) -> frozenset[str]:
        return frozenset(self._postings.get(word, ()))

    def postings(self, words: Iterable[str]) -> Iterator[tuple[str, Sequence[str]]]:
        for word in words:
            if word in self._postings:
                yield word, sorted(self._postings[word])

    def text(self, path: str) -> bytes:
        return self._texts[path]

"""Which files a text search has to read: the index's words rule the others out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from agent_ls.workspace._grep import ODD
from agent_ls.workspace.index.query import Clause, Query
from agent_ls.workspace.index.words import MAX_WORD

FEW_FILES = 24
"""So few files are read rather than ruled out."""
_MAX_WORDS = 600
"""With more words than this around a literal, their postings tell too little for what they cost."""
_MAX_DEFINED = 40
_MOST_LEFT = 0.8
_RUNS = re.compile(r"[A-Za-z0-9_\u0080-\U0010ffff]+")

Piece = tuple[str, bool, bool]
"""A run of word characters, and whether a word that holds it begins and ends with it."""


class WordsView(Protocol):
    """What narrowing asks of a snapshot of the index."""

    def words(
        self,
        fragment: str,
        fold: bool | None = None,
        *,
        begins: bool = False,
        ends: bool = False,
        most: int | None = None,
    ) -> list[str]: ...
    def files_with_any(self, words: Collection[str]) -> set[str]: ...
    def files_with_long(self, run: str, fold: bool) -> set[str]: ...
    def files_defining(self, names: Collection[str]) -> set[str]: ...


class Narrowing:
    """One query against one snapshot."""

    def __init__(self, view: WordsView, query: Query) -> None:
        self._view = view
        self._query = query
        self._known: dict[Piece, list[str]] = {}
        self._with_runs: dict[frozenset[str], set[str]] = {}

    def candidates(self) -> set[str] | None:
        """The files that may have a matching line; None: the words tell nothing about it."""
        if self._query.compiled is None:
            return None
        found: set[str] | None = None
        every = [pieces for clause in self._query.clauses for pieces in _pieces(clause)]
        if len(every) > 1:
            # Words that are frequent as such last; long runs first: they are in few words.
            every.sort(key=lambda pieces: (self._frequency(pieces), -min(len(run) for run, *_ in pieces)))
        for pieces in every:
            if found is not None and self._tells_little(pieces, found):
                continue
            files = self._files_of(pieces)
            if files is not None:
                found = files if found is None else found & files
            if found is not None and len(found) <= FEW_FILES:
                return found
        return found

    def _frequency(self, pieces: Sequence[Piece]) -> int:
        return len(self._files_with_runs(pieces))

    def _tells_little(self, pieces: Sequence[Piece], files: set[str]) -> bool:
        """Would nearly all of the files be left? Their words as such tell at little cost."""
        return len(files & self._files_with_runs(pieces)) > _MOST_LEFT * len(files)

    def _files_with_runs(self, pieces: Sequence[Piece]) -> set[str]:
        runs = frozenset(run for run, *_ in pieces)
        found = self._with_runs.get(runs)
        if found is None:
            found = self._with_runs[runs] = self._view.files_with_any(runs)
        return found

    def defining(self) -> set[str]:
        """Files that define something that matches, where the query is little more than a name."""
        query = self._query
        names: set[str] = set()
        for literal in query.needles:
            runs = list(_runs(literal))
            if len(runs) != 1 or len(runs[0][0]) < 2:
                continue
            run, begins, ends = runs[0]
            begins, ends = begins or query.word, ends or query.word
            exact = begins and ends and not query.fold
            holding = [run] if exact else self._words((run, begins, ends))
            names.update(sorted(holding, key=lambda word: (len(word), word))[:_MAX_DEFINED])
        return self._view.files_defining(names) if names else set()

    def _files_of(self, pieces: Sequence[Piece]) -> set[str] | None:
        fold = self._query.fold
        words: set[str] = set()
        parts: list[str] = []
        for piece in pieces:
            run, begins, ends = piece
            if begins and ends and not fold and len(run.encode("utf-8", "replace")) <= MAX_WORD:
                words.add(run)
                continue
            holding = self._words(piece)
            if len(holding) > _MAX_WORDS:
                return None
            words.update(holding)
            parts.append(run)
        files = self._view.files_with_any(words)
        for run in parts:
            files |= self._view.files_with_long(run, fold)
        return files

    def _words(self, piece: Piece) -> list[str]:
        """The words that hold a run, in any case when that is ignored (the run is in lower case then); of
        more than `_MAX_WORDS` not all."""
        found = self._known.get(piece)
        if found is None:
            run, begins, ends = piece
            fold = self._query.fold
            found = self._view.words(run, fold, begins=begins, ends=ends, most=_MAX_WORDS)
            if (begins or ends) and len(found) <= _MAX_WORDS:
                found = [word for word in found if _fits(word, piece, fold)]
            self._known[piece] = found
        return found


def _fits(word: str, piece: Piece, fold: bool) -> bool:
    run, begins, ends = piece
    if fold:
        if not word.isascii() and any(char in word for char in ODD):
            return True
        word = word.lower()
    return (not begins or word.startswith(run)) and (not ends or word.endswith(run))


def _pieces(clause: Clause) -> Iterator[list[Piece]]:
    """Sets of runs of which a file must have at least one: for a single literal each of its runs, for several
    the longest run of each."""
    runs = [list(_runs(literal)) for literal in clause]
    if not all(runs):
        return
    if len(runs) == 1:
        for piece in sorted(runs[0], key=lambda piece: (-len(piece[0]), piece)):
            yield [piece]
    else:
        yield [max(some, key=lambda piece: len(piece[0])) for some in runs]


def _runs(literal: str) -> Iterator[Piece]:
    for match in _RUNS.finditer(literal):
        yield match.group(), match.start() > 0, match.end() < len(literal)

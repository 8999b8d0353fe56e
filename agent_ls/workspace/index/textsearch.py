"""Text search through the index: words rule files out, the bytes decide, definitions come first."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from attrs import evolve

from agent_ls.cancel import CancelToken
from agent_ls.workspace._grep import ODD
from agent_ls.workspace._grep import read as _read
from agent_ls.workspace.files import matching_globs
from agent_ls.workspace.index.query import Case, Clause, Query, understand
from agent_ls.workspace.index.records import FileInfo
from agent_ls.workspace.index.words import MAX_WORD, UNINDEXED
from agent_ls.workspace.search import Hit, Job, SearchResult, ripgrep

if TYPE_CHECKING:
    from agent_ls.workspace.index.tags import DefinitionRow

_MAX_WORDS = 600
"""With more words than this around a literal, their postings tell too little for what they cost."""
_FEW_FILES = 24
"""So few files are read rather than ruled out."""
_MAX_DEFINED = 40
_RUNS = re.compile(r"[A-Za-z0-9_\u0080-\U0010ffff]+")


class SearchView(Protocol):
    """What the search asks of a snapshot of the index."""

    def files(self) -> Sequence[FileInfo]: ...
    def file(self, path: str) -> FileInfo | None: ...
    def files_defining(self, name: str) -> frozenset[str]: ...
    def definition_rows(self, path: str) -> Sequence[DefinitionRow]: ...
    def words(self, fragment: str, fold: bool | None = None) -> list[str]: ...
    def files_with(self, word: str) -> frozenset[str]: ...
    def postings(self, words: Iterable[str]) -> Iterator[tuple[str, Sequence[str]]]: ...
    def text(self, path: str) -> bytes: ...
    def large_files(self) -> Sequence[str]: ...
    def overlaid(self) -> frozenset[str]: ...


def search_index(
    root: Path,
    view: SearchView,
    query: str,
    *,
    regex: bool = False,
    word: bool = False,
    case: Case = "smart",
    globs: Sequence[str] = (),
    limit: int = 200,
    seconds: float = 20.0,
    cancel: CancelToken | None = None,
) -> SearchResult:
    """Lines that match, as `workspace.search.search` finds them in the files of `view`: lines that define
    what matches first, then other code, then comments and prose; files written by hand before others; then by
    path and line. When there are more than `limit`, files that define something that matches are read first.

    Raises ToolRefused for an empty query or a bad regular expression.
    """
    asked = understand(query, regex=regex, word=word, case=case, strict=False)
    job = Job(root, asked, limit, time.monotonic() + seconds, cancel, texts=True)
    large = frozenset(view.large_files())

    def reader(path: str) -> bytes | None:
        return _read(root / path) if path in large else _text(view, path)

    def narrowed(paths: Iterable[str]) -> list[str]:
        chosen = sorted({*paths, *large})
        return matching_globs(chosen, globs) if globs else chosen

    files = candidates(view, asked)
    if files is None:
        chosen = narrowed(info.path for info in view.files())
        program = ripgrep()
        if program is not None:
            result = _handed_over(view, job, program, chosen, reader)
            if result is not None:
                return _ranked(view, result)
        job = evolve(job, query=understand(query, regex=regex, word=word, case=case))
    else:
        chosen = narrowed(files)
        defining: Collection[str] = _defining(view, asked) if len(chosen) > _FEW_FILES else ()
        if defining:
            chosen.sort(key=lambda path: path not in defining)
    return _ranked(view, job.by_reading(chosen, reader))


def _handed_over(
    view: SearchView, job: Job, program: str, chosen: Sequence[str], reader: Callable[[str], bytes | None]
) -> SearchResult | None:
    """What ripgrep finds in the files, and we ourselves in open buffers, which it can't see; None when it
    can't take the expression."""
    overlaid = view.overlaid()
    open_files = [path for path in chosen if path in overlaid]
    if open_files and job.query.compiled is None:
        return None
    result = job.with_ripgrep(program, [path for path in chosen if path not in overlaid])
    if result is None or not open_files or not result.complete:
        return result
    rest = evolve(job, limit=job.limit - len(result.hits)).by_reading(open_files, reader)
    return evolve(rest, hits=(*result.hits, *rest.hits))


def _text(view: SearchView, path: str) -> bytes | None:
    try:
        return view.text(path)
    except OSError:
        return None


def candidates(view: SearchView, query: Query) -> set[str] | None:
    """The files that may have a matching line; None: the words tell nothing about it."""
    if query.compiled is None:
        return None
    found: set[str] | None = None
    # Long literals first: they are in few words, and these in few files.
    for clause in sorted(query.clauses, key=lambda clause: -min(map(len, clause))):
        for pieces in _pieces(clause):
            files = _files_of(view, pieces, query.fold)
            if files is not None:
                found = files if found is None else found & files
            if found is not None and len(found) <= _FEW_FILES:
                return found
    return found


Piece = tuple[str, bool, bool]
"""A run of word characters, and whether a word that holds it begins and ends with it."""


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


def _files_of(view: SearchView, pieces: Sequence[Piece], fold: bool) -> set[str] | None:
    files: set[str] = set()
    words: dict[str, None] = {}
    for run, begins, ends in pieces:
        whole = begins and ends and not fold and len(run.encode()) <= MAX_WORD
        if whole:
            words[run] = None
            continue
        holding = _words(view, run, begins, ends, fold)
        if len(holding) > _MAX_WORDS:
            return None
        words.update(dict.fromkeys(holding))
        words[UNINDEXED.decode()] = None
    if len(words) == 1:
        return set(view.files_with(next(iter(words))))
    for _word, paths in view.postings(words):
        files.update(paths)
    return files


def _words(view: SearchView, run: str, begins: bool, ends: bool, fold: bool) -> list[str]:
    """The words that hold a run, in any case with `fold` (the run is in lower case then)."""
    found = view.words(run, fold)
    if not (begins or ends):
        return found

    def fits(word: str) -> bool:
        if fold:
            if not word.isascii() and any(char in word for char in ODD):
                return True
            word = word.lower()
        return (not begins or word.startswith(run)) and (not ends or word.endswith(run))

    return [word for word in found if fits(word)]


def _defining(view: SearchView, query: Query) -> set[str]:
    """Files that define something that matches, where the query is little more than a name."""
    paths: set[str] = set()
    for literal in query.needles:
        runs = list(_runs(literal))
        if len(runs) != 1 or len(runs[0][0]) < 2:
            continue
        run, begins, ends = runs[0]
        begins, ends = begins or query.word, ends or query.word
        exact = begins and ends and not query.fold
        for word in [run] if exact else _words(view, run, begins, ends, query.fold)[:_MAX_DEFINED]:
            paths |= view.files_defining(word)
    return paths


def _ranked(view: SearchView, result: SearchResult) -> SearchResult:
    ranked: list[tuple[tuple[int, bool, str, int], Hit]] = []
    facts: dict[str, _Facts] = {}
    for hit in result.hits:
        about = facts.get(hit.path)
        if about is None:
            about = facts[hit.path] = _Facts(view, hit.path)
        symbol = about.enclosing(hit.line)
        hit = Hit(hit.path, hit.line, hit.column, hit.end_column, hit.text, symbol)
        ranked.append(((about.rank(hit), about.aside, hit.path, hit.line), hit))
    ranked.sort(key=lambda pair: pair[0])
    return evolve(result, hits=tuple(hit for _rank, hit in ranked))


_COMMENT = re.compile(r"\s*(#|//|/?\*|--|;|%|<!--|\"\"\"|''')")
_TRAILING = re.compile(r"(?:^|\s)(?:#|//)\s")
_OTHER_SIGNS = frozenset({"c", "cpp", "csharp", "rust"})
"""Languages where a line that begins with # is code."""


class _Facts:
    """What the index knows of a file with hits."""

    def __init__(self, view: SearchView, path: str) -> None:
        info = view.file(path)
        self.aside = info is not None and info.role != "source"
        self._language = info.language if info is not None else None
        self._rows = sorted(view.definition_rows(path), key=lambda row: (row[2], -row[5]))
        self._names: dict[int, list[DefinitionRow]] = {}
        for row in self._rows:
            self._names.setdefault(row[3], []).append(row)

    def enclosing(self, line: int) -> str | None:
        """The dotted name of the innermost definition around a line."""
        inner: DefinitionRow | None = None
        for row in self._rows:
            if row[2] > line:
                break
            if line <= row[5]:
                inner = row
        if inner is None:
            return None
        return f"{inner[6]}.{inner[0]}" if inner[6] else inner[0]

    def rank(self, hit: Hit) -> int:
        """0 for a hit that is a name where it is defined, 1 for one that touches it, 2 for other code, 3 for
        comments and prose."""
        if self._language is None:
            return 3
        for name, _kind, _line, _name_line, column, *_rest in self._names.get(hit.line, ()):
            end = column + len(name)
            if hit.column < end and column < hit.end_column:
                return 0 if hit.column <= column and end <= hit.end_column else 1
        before = hit.text[: hit.column - 1]
        sign = _COMMENT.match(hit.text)
        if sign is not None and not (self._language in _OTHER_SIGNS and sign.group(1) == "#"):
            return 3
        return 3 if _TRAILING.search(before) else 2

"""Text search through the index: words rule files out, the bytes decide, definitions come first."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from attrs import evolve

from agent_ls.cancel import CancelToken
from agent_ls.workspace._grep import read as _read
from agent_ls.workspace.files import matching_globs
from agent_ls.workspace.index.narrowing import FEW_FILES, Narrowing, WordsView
from agent_ls.workspace.index.query import Case, understand
from agent_ls.workspace.index.records import FileInfo
from agent_ls.workspace.search import Hit, Job, SearchResult, ripgrep

if TYPE_CHECKING:
    from agent_ls.workspace.index.layout import Layout


_MANY_FILES = 400
"""So many files ripgrep, with a thread per core, searches sooner than we do."""


class SearchView(WordsView, Protocol):
    """What the search asks of a snapshot of the index."""

    def paths(self) -> Sequence[str]: ...
    def layouts(self, paths: Iterable[str]) -> dict[str, tuple[FileInfo, Layout]]: ...
    def text(self, path: str) -> bytes: ...
    def current(self, paths: Iterable[str]) -> None: ...
    def large_files(self) -> Sequence[str]: ...
    def overlaid(self) -> frozenset[str]: ...
    def not_utf8(self) -> set[str]: ...


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

    def narrowed(paths: Iterable[str]) -> Sequence[str]:
        chosen = sorted({*paths, *large})
        return matching_globs(chosen, globs) if globs else chosen

    narrowing = Narrowing(view, asked)
    files = narrowing.candidates()
    if files is None:
        every = view.paths()
        chosen = narrowed(every) if large or globs else every
    else:
        chosen = narrowed(files)
        defining: Collection[str] = narrowing.defining() if len(chosen) > FEW_FILES else ()
        if defining:
            chosen = sorted(chosen, key=lambda path: path not in defining)
    if files is None or (regex and len(chosen) > _MANY_FILES):
        program = ripgrep()
        result = _handed_over(view, job, program, chosen, reader) if program is not None else None
        if result is not None:
            return _ranked(view, result)
    if asked.compiled is None:
        job = evolve(job, query=understand(query, regex=regex, word=word, case=case))
    return _ranked(view, job.by_reading(chosen, reader))


def _text(view: SearchView, path: str) -> bytes | None:
    try:
        return view.text(path)
    except OSError:
        return None


def _handed_over(
    view: SearchView, job: Job, program: str, chosen: Sequence[str], reader: Callable[[str], bytes | None]
) -> SearchResult | None:
    """What ripgrep finds in the files, and we ourselves in open buffers, which it can't see, and in other
    encodings than UTF-8, which it would have to be told; None when it can't take the expression."""
    only_theirs = job.query.compiled is None
    ours = view.overlaid() if only_theirs else view.overlaid() | view.not_utf8()
    kept = [path for path in chosen if path in ours] if ours else []
    if kept:
        if only_theirs:
            return None
        chosen = [path for path in chosen if path not in ours]
    result = job.with_ripgrep(program, chosen)
    if result is None:
        return None
    view.current({hit.path for hit in result.hits})
    if not kept or not result.complete:
        return result
    rest = evolve(job, limit=job.limit - len(result.hits)).by_reading(kept, reader)
    return evolve(rest, hits=(*result.hits, *rest.hits))


def _ranked(view: SearchView, result: SearchResult) -> SearchResult:
    ranked: list[tuple[tuple[int, bool, str, int], Hit]] = []
    about = view.layouts({hit.path for hit in result.hits})
    for hit in result.hits:
        path, line = hit.path, hit.line
        known = about.get(path)
        if known is None:
            ranked.append(((3, False, path, line), hit))
            continue
        info, layout = known
        symbol = layout.enclosing(line)
        if symbol is not None:
            hit = Hit(path, line, hit.column, hit.end_column, hit.text, symbol)
        rank = 3 if info.language is None else _rank(hit, info.language, layout)
        ranked.append(((rank, info.role != "source", path, line), hit))
    ranked.sort(key=itemgetter(0))
    return SearchResult(tuple([hit for _rank, hit in ranked]), result.complete, result.note)


_COMMENT = re.compile(r"\s*(#|//|/?\*|--|;|%|<!--|\"\"\"|''')")
_TRAILING = re.compile(r"(?:^|\s)(?:#|//)\s")
_OTHER_SIGNS = frozenset({"c", "cpp", "csharp", "rust"})
"""Languages where a line that begins with # is code."""


def _rank(hit: Hit, language: str, layout: Layout) -> int:
    """0 for a hit that is a name where it is defined, 1 for one that touches it, 2 for other code, 3 for
    comments and prose."""
    for column, end in layout.names(hit.line):
        if hit.column < end and column < hit.end_column:
            return 0 if hit.column <= column and end <= hit.end_column else 1
    sign = _COMMENT.match(hit.text)
    if sign is not None and not (sign.group(1) == "#" and language in _OTHER_SIGNS):
        return 3
    trailing = _TRAILING.search(hit.text, 0, hit.column - 1)
    return 2 if trailing is None else 3

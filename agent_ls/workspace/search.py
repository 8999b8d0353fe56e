"""Text search over a working tree: with the index where there is one, else with ripgrep where it is
installed, else by reading every file.

However the files to read were chosen, the same code (`_grep.Matcher`) or ripgrep decides what matches.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from agent_ls.cancel import CancelToken
from agent_ls.errors import ToolRefused
from agent_ls.workspace import _grep
from agent_ls.workspace.files import Workspace
from agent_ls.workspace.index.query import Case, Query, understand
from agent_ls.workspace.paths import is_secret_path
from agent_ls.workspace.syntax import Symbol, enclosing, outline

if TYPE_CHECKING:
    from agent_ls.workspace.index.textsearch import SearchView

__all__ = ["Case", "Hit", "SearchResult", "find_lines", "qualified", "search"]

_SECONDS = 20.0
_FIRST_CHUNK = 128
_MANY = 2000
"""With so many hits wanted, one process for all files is better than a first one that shows how many come."""
_ARGUMENT_BYTES = 600_000
_SYMBOL_FILES = 60
_SYMBOL_BYTES = 500_000


@frozen
class Hit:
    """One line that matches; `line`, `column` and `end_column` (behind the match, in characters) count from
    1, `text` is the line, capped; `symbol` is the dotted name of the definition around it."""

    path: str
    line: int
    column: int
    end_column: int
    text: str
    symbol: str | None = None


@frozen
class SearchResult:
    """`complete` is False when there may be more hits than these; `note` then says why."""

    hits: tuple[Hit, ...]
    complete: bool
    note: str = ""


def search(
    workspace: Workspace,
    query: str,
    *,
    regex: bool = False,
    word: bool = False,
    case: Case = "smart",
    globs: Sequence[str] = (),
    limit: int = 200,
    seconds: float = _SECONDS,
    view: SearchView | None = None,
) -> SearchResult:
    """Lines that contain `query` (a literal text, or a regular expression with `regex`), by path and line.

    Searched are the files of `Workspace.list(globs)` except secrets and binary files. `word` asks for
    whole words; "smart" `case` ignores case unless the query has a capital letter. At most `limit` hits
    and about `seconds` of work. With `view`, a snapshot of the index, its files are searched, and hits come
    in the order of `textsearch`. Raises ToolRefused for an empty query or a bad regular expression.
    """
    if view is not None:
        from agent_ls.workspace.index.textsearch import search_index

        return search_index(
            workspace.root,
            view,
            query,
            regex=regex,
            word=word,
            case=case,
            globs=globs,
            limit=limit,
            seconds=seconds,
            cancel=workspace.cancel,
        )
    result = find_lines(
        workspace, query, regex=regex, word=word, case=case, globs=globs, limit=limit, seconds=seconds
    )
    return evolve(result, hits=tuple(_with_symbols(workspace, result.hits)))


def find_lines(
    workspace: Workspace,
    query: str,
    *,
    regex: bool,
    word: bool,
    case: Case,
    globs: Sequence[str],
    limit: int,
    seconds: float = _SECONDS,
) -> SearchResult:
    """As `search`, without the index and without looking for the definitions around the hits."""
    program = ripgrep()
    asked = understand(query, regex=regex, word=word, case=case, strict=program is None)
    files = [path for path in workspace.list(globs or None) if not is_secret_path(path)]
    job = Job(workspace.root, asked, limit, time.monotonic() + seconds, workspace.cancel)
    if program is not None:
        result = job.with_ripgrep(program, files)
        if result is not None:
            return result
        # Look-around and the like, which only ours can take; or an expression that nobody can.
        job = evolve(job, query=understand(query, regex=regex, word=word, case=case))
    return job.by_reading(files, lambda rel: _grep.read(workspace.root / rel))


def ripgrep() -> str | None:
    """The ripgrep program: the user's own, else the one installed beside our interpreter (extra `search`)."""
    return shutil.which("rg") or shutil.which("rg", path=str(Path(sys.executable).parent))


@frozen
class Job:
    """A search of chosen files: at most `limit` hits, until `deadline` of `time.monotonic()`. `texts`: none
    of the files is binary."""

    root: Path
    query: Query
    limit: int
    deadline: float
    cancel: CancelToken | None = None
    texts: bool = False

    def by_reading(self, files: Sequence[str], reader: Callable[[str], bytes | None]) -> SearchResult:
        """In this process as far as it can't run away, the rest in one that has a deadline. `reader` gives a
        file's bytes (None: leave it out). Raises what `reader` raises, and Cancelled."""
        assert self.query.compiled is not None
        hits: list[Hit] = []
        put_off: list[str] = []

        def next_file(rel: str) -> bytes | None:
            if self.cancel is not None:
                self.cancel.raise_if_cancelled()
            return reader(rel)

        if self.query.longest == 0:
            put_off += files
        else:
            longest = 0 if self.query.longest >= _grep.MAX_FILE else self.query.longest
            matcher = _grep.Matcher(
                self.query.compiled,
                self.query.clauses,
                self.query.fold,
                longest,
                plain=self.query.is_plain,
                whole=self.query.whole,
                whole_ascii=self.query.whole_ascii,
                rooms=self.query.rooms,
            )
            found = _grep.scan(
                files, matcher, next_file, self.deadline, put_off.append if longest else None, self.limit + 1
            )
            try:
                for item in found:
                    if len(hits) == self.limit:
                        return self._cut(hits)
                    hits.append(Hit(*item))
            except _grep.OutOfTime as stop:
                return SearchResult(tuple(hits), False, f"the time was up before {stop} was searched")
        if not put_off:
            return SearchResult(tuple(hits), True)
        rest = evolve(self, limit=self.limit - len(hits))._in_own_process(put_off, next_file)
        return evolve(rest, hits=(*hits, *rest.hits), note=rest.note and self._note(rest.note))

    def _cut(self, hits: Sequence[Hit]) -> SearchResult:
        return SearchResult(tuple(hits[: self.limit]), False, _FIRST.format(self.limit))

    def _note(self, note: str) -> str:
        return _FIRST.format(self.limit) if note.startswith(_FIRST[:14]) else note

    def _in_own_process(self, files: Sequence[str], reader: Callable[[str], bytes | None]) -> SearchResult:
        """In a process of its own, with a deadline, since a regular expression may take exponential time."""
        from agent_ls.sandbox.process import run_helper

        assert self.query.compiled is not None
        texts: dict[str, str] = {}
        for rel in files:
            data = reader(rel)
            if data is not None and data != _grep.read(self.root / rel):
                texts[rel] = _grep.decoded(data) or ""
        seconds = max(0.001, self.deadline - time.monotonic())
        task = {
            "root": str(self.root),
            "files": list(files),
            "texts": texts,
            "pattern": self.query.pattern,
            "flags": self.query.compiled.flags,
            "clauses": [sorted(clause) for clause in self.query.clauses],
            "fold": self.query.fold,
            "limit": self.limit + 1,
            "seconds": seconds,
        }
        result = run_helper(
            [sys.executable, "-I", "-S", str(Path(_grep.__file__))],
            cwd=self.root,
            input=json.dumps(task).encode(),
            timeout=seconds + 5,
            cancel=self.cancel,
        )
        hits: list[Hit] = []
        end: dict[str, str] = {"end": "timeout", "path": "every file"}
        for line in result.stdout.splitlines():
            item = json.loads(line)
            if isinstance(item, dict):
                end = item
            else:
                hits.append(Hit(*item))
        if len(hits) > self.limit:
            return self._cut(hits)
        if end["end"] == "timeout":
            note = f"the regular expression took too long in {end['path']}; make it simpler"
            return SearchResult(tuple(hits), False, note)
        return SearchResult(tuple(hits), True)

    def with_ripgrep(self, program: str, files: Sequence[str]) -> SearchResult | None:
        """With ripgrep, given the files by name so that both ways search the same ones; None when it can't
        take the expression (look-around, back-references) and ours must try."""
        from agent_ls.sandbox.process import run_helper

        query = self.query
        argv = [program, "--no-config", "--json", "--no-ignore", "--hidden", "--crlf"]
        argv += [f"--max-count={self.limit + 1}", *(["--text"] if self.texts else [])]
        argv += ["--ignore-case" if query.ignore_case else "--case-sensitive"]
        argv += [] if query.regex else ["--fixed-strings"]
        argv += ["--word-regexp"] if query.word else []
        env = {name: value for name, value in os.environ.items() if name != "RIPGREP_CONFIG_PATH"}
        hits: list[Hit] = []
        start = 0
        while start < len(files):
            left = self.deadline - time.monotonic()
            if left <= 0:
                return SearchResult(tuple(hits), False, f"the time was up before {files[start]} was searched")
            chunk = _arguments(files, start, self._chunk(start, len(hits)))
            result = run_helper(
                [*argv, "--", query.text, *chunk], cwd=self.root, env=env, timeout=left, cancel=self.cancel
            )
            if result.timed_out:
                return SearchResult(tuple(hits), False, f"the time was up before {files[start]} was searched")
            if result.returncode == 2 and b"regex" in result.stderr:
                return None
            hits += sorted(_parse_ripgrep(result.stdout), key=lambda hit: (hit.path, hit.line))
            if len(hits) > self.limit:
                return self._cut(hits)
            start += len(chunk)
        return SearchResult(tuple(hits), True)

    def _chunk(self, searched: int, found: int) -> int:
        """How many files to give next: enough for the limit, as far as those before can tell."""
        if searched == 0:
            return _FIRST_CHUNK if self.limit < _MANY else sys.maxsize
        return 2 * (self.limit + 1 - found) * searched // found + 1 if found else sys.maxsize


_FIRST = "only the first {} hits are shown"


def _arguments(files: Sequence[str], start: int, most: int) -> list[str]:
    """Up to `most` paths, as far as they fit into one command line."""
    found = [f"./{path}" for path in files[start : start + min(most, len(files))]]
    while len(found) > 1 and len(os.fsencode("".join(found))) + 16 * len(found) > _ARGUMENT_BYTES:
        found = found[: len(found) // 2]
    return found


def _parse_ripgrep(output: bytes) -> list[Hit]:
    """Hits in ripgrep's JSON lines; those of files that turn out to be binary are dropped."""
    hits: list[Hit] = []
    of_file: list[Hit] = []
    for line in output.splitlines():
        message = json.loads(line)
        data = message["data"]
        if message["type"] == "match":
            content = _bytes(data["lines"]).rstrip(b"\r\n")
            match = data["submatches"][0] if data["submatches"] else {"start": 0, "end": 0}
            column = len(content[: match["start"]].decode("utf-8", "replace")) + 1
            length = len(content[match["start"] : match["end"]].decode("utf-8", "replace"))
            given = data["lines"].get("text")
            text = (content.decode("latin-1") if given is None else given.rstrip("\r\n"))[: _grep.MAX_TEXT]
            path = os.fsdecode(_bytes(data["path"])).removeprefix("./")
            of_file.append(Hit(path, data["line_number"], column, column + length, text))
        elif message["type"] == "end":
            if data["binary_offset"] is None:
                hits += of_file
            of_file = []
    return hits


def _bytes(value: dict[str, Any]) -> bytes:
    if "text" in value:
        return str(value["text"]).encode()
    return base64.b64decode(value["bytes"])


def _with_symbols(workspace: Workspace, hits: Sequence[Hit]) -> Iterator[Hit]:
    outlines: dict[str, list[Symbol]] = {}
    for hit in hits:
        if hit.path not in outlines and len(outlines) < _SYMBOL_FILES:
            outlines[hit.path] = []
            try:
                text = workspace.read(hit.path).text
            except (ToolRefused, OSError):
                text = ""
            if len(text) <= _SYMBOL_BYTES:
                outlines[hit.path] = outline(hit.path, text)
        symbol = enclosing(outlines.get(hit.path, []), hit.line)
        if symbol is None:
            yield hit
        else:
            yield evolve(hit, symbol=qualified(symbol))


def qualified(symbol: Symbol) -> str:
    """The symbol's dotted name."""
    return f"{symbol.container}.{symbol.name}" if symbol.container else symbol.name

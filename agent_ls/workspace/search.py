"""Text search over a working tree: ripgrep where it is installed, else our own."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from attrs import evolve, frozen

from agent_ls.errors import ToolRefused
from agent_ls.workspace import _grep
from agent_ls.workspace.files import Workspace
from agent_ls.workspace.paths import is_secret_path
from agent_ls.workspace.syntax import Symbol, enclosing, outline

Case = Literal["smart", "sensitive", "insensitive"]

_SECONDS = 20.0
_CHUNK = 400
_SYMBOL_FILES = 60
_SYMBOL_BYTES = 500_000


@frozen
class Hit:
    """One line that matches; `line` and `column` (in characters) count from 1, `text` is the line, capped;
    `symbol` is the dotted name of the definition around it."""

    path: str
    line: int
    column: int
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
) -> SearchResult:
    """Lines that contain `query` (a literal text, or a regular expression with `regex`), by path and line.

    Searched are the files of `Workspace.list(globs)` except secrets and binary files. `word` asks for
    whole words; "smart" `case` ignores case unless the query has a capital letter. At most `limit` hits
    and about `seconds` of work. Raises ToolRefused for an empty query or a bad regular expression.
    """
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
    """As `search`, without looking for the definitions around the hits."""
    if not query.strip("\r\n"):
        raise ToolRefused("the query is empty")
    if "\n" in query or "\r" in query:
        raise ToolRefused("the query spans several lines; search looks at one line at a time")
    files = [path for path in workspace.list(globs or None) if not is_secret_path(path)]
    ignore_case = case == "insensitive" or (case == "smart" and not _has_capital(query, regex))
    pattern = query if regex else re.escape(query)
    if word:
        pattern = rf"(?<!\w)(?:{pattern})(?!\w)"
    deadline = time.monotonic() + seconds
    program = shutil.which("rg")
    if program is not None:
        result = _ripgrep(program, workspace, files, query, regex, word, ignore_case, limit, deadline)
        if result is not None:
            return result
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ToolRefused(
            f"{query!r} is not a valid regular expression: {error}", "Search for it as plain text instead."
        ) from None
    if regex:
        return _own_process(workspace, files, pattern, ignore_case, limit, seconds)
    return _own(workspace, files, pattern, ignore_case, limit, deadline)


def _has_capital(query: str, regex: bool) -> bool:
    text = re.sub(r"\\.", "", query) if regex else query
    return any(char.isupper() for char in text)


def _own(
    workspace: Workspace, files: Sequence[str], pattern: str, ignore_case: bool, limit: int, deadline: float
) -> SearchResult:
    """In this process: an escaped literal can't run away."""
    compiled = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    found: list[Hit] = []
    between = workspace.cancel.raise_if_cancelled if workspace.cancel is not None else lambda: None
    try:
        for item in _grep.scan(workspace.root, files, compiled, deadline, between):
            if len(found) == limit:
                return SearchResult(tuple(found), False, f"only the first {limit} hits are shown")
            found.append(Hit(*item))
    except _grep.OutOfTime as stop:
        return SearchResult(tuple(found), False, f"the time was up before {stop} was searched")
    return SearchResult(tuple(found), True)


def _own_process(
    workspace: Workspace, files: Sequence[str], pattern: str, ignore_case: bool, limit: int, seconds: float
) -> SearchResult:
    """In a process of its own, with a deadline, since a regular expression may take exponential time."""
    from agent_ls.sandbox.process import run_helper

    task = {
        "root": str(workspace.root),
        "files": list(files),
        "pattern": pattern,
        "ignore_case": ignore_case,
        "limit": limit + 1,
        "seconds": seconds,
    }
    argv = [sys.executable, "-I", "-S", str(Path(_grep.__file__))]
    result = run_helper(
        argv,
        cwd=workspace.root,
        input=json.dumps(task).encode(),
        timeout=seconds + 5,
        cancel=workspace.cancel,
    )
    hits: list[Hit] = []
    end: dict[str, str] = {"end": "timeout", "path": "every file"}
    for line in result.stdout.splitlines():
        item = json.loads(line)
        if isinstance(item, dict):
            end = item
        else:
            hits.append(Hit(*item))
    if len(hits) > limit:
        return SearchResult(tuple(hits[:limit]), False, f"only the first {limit} hits are shown")
    if end["end"] == "timeout":
        note = f"the regular expression took too long in {end['path']}; make it simpler"
        return SearchResult(tuple(hits), False, note)
    return SearchResult(tuple(hits), True)


def _ripgrep(
    program: str,
    workspace: Workspace,
    files: Sequence[str],
    query: str,
    regex: bool,
    word: bool,
    ignore_case: bool,
    limit: int,
    deadline: float,
) -> SearchResult | None:
    """Through ripgrep, given the files by name so that both ways search the same ones; None when it can't
    take the expression (look-around, back-references) and ours must try."""
    from agent_ls.sandbox.process import run_helper

    argv = [
        program,
        "--no-config",
        "--json",
        "--sort=path",
        "--no-ignore",
        "--hidden",
        f"--max-count={limit + 1}",
    ]
    argv += ["--ignore-case" if ignore_case else "--case-sensitive"]
    argv += [] if regex else ["--fixed-strings"]
    argv += ["--word-regexp"] if word else []
    env = {name: value for name, value in os.environ.items() if name != "RIPGREP_CONFIG_PATH"}
    hits: list[Hit] = []
    for start in range(0, len(files), _CHUNK):
        left = deadline - time.monotonic()
        if left <= 0:
            return SearchResult(tuple(hits), False, f"the time was up before {files[start]} was searched")
        chunk = [f"./{path}" for path in files[start : start + _CHUNK]]
        result = run_helper(
            [*argv, "--", query, *chunk], cwd=workspace.root, env=env, timeout=left, cancel=workspace.cancel
        )
        if result.timed_out:
            return SearchResult(tuple(hits), False, f"the time was up before {files[start]} was searched")
        if result.returncode == 2 and b"regex" in result.stderr:
            return None
        hits += _parse_ripgrep(result.stdout)
        if len(hits) > limit:
            return SearchResult(tuple(hits[:limit]), False, f"only the first {limit} hits are shown")
    return SearchResult(tuple(hits), True)


def _parse_ripgrep(output: bytes) -> list[Hit]:
    """Hits in ripgrep's JSON lines; those of files that turn out to be binary are dropped."""
    hits: list[Hit] = []
    of_file: list[Hit] = []
    for line in output.splitlines():
        message = json.loads(line)
        data = message["data"]
        if message["type"] == "match":
            content = _bytes(data["lines"]).rstrip(b"\r\n")
            column = len(content[: data["submatches"][0]["start"]].decode("utf-8", "replace")) + 1
            text = _grep.decoded(content) or ""
            path = os.fsdecode(_bytes(data["path"])).removeprefix("./")
            of_file.append(Hit(path, data["line_number"], column, text[: _grep.MAX_TEXT]))
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

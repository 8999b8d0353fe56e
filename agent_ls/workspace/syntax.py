"""Syntax errors and outlines of source text, through tree-sitter grammars loaded when first needed."""

from __future__ import annotations

import ast
import re
import warnings
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from attrs import frozen

from agent_ls.workspace.grammars import language_of, refined
from agent_ls.workspace.parsing import TooSlow
from agent_ls.workspace.parsing import parse as parse_bounded

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

_MAX_PROBLEMS = 50


@frozen
class SyntaxProblem:
    """A place (1-based line and column, in characters) where the text doesn't parse."""

    line: int
    column: int
    message: str


def parse(name: str, text: str) -> tuple[str, Tree] | None:
    """(language, tree) of the text, or None when the file's name names no language that we parse, or parsing
    it would take too long."""
    language = language_of(name)
    if language is None:
        return None
    try:
        return language, parse_bounded(language, text.encode("utf-8", "surrogatepass"))
    except TooSlow:
        return None


def syntax_errors(path_name: str, text: str) -> list[SyntaxProblem]:
    """Where the text doesn't parse, in order, at most 50 places; [] for languages that we don't parse.

    For Python the interpreter's own parser has the last word when it accepts the text; when both reject
    it, its message comes first.
    """
    problems = _tree_errors(path_name, text)
    if problems and language_of(path_name) == "python":
        own = _python_error(text)
        if own is None:
            return []
        problems = [own, *(problem for problem in problems if problem.line != own.line)]
    return problems


def new_errors(name: str, old: str | None, new: str) -> list[SyntaxProblem]:
    """Errors that `new` has and `old` (None: there was no file) had not.

    A text that has no more errors than before has no new ones: an edit may repair a broken file in steps.
    """
    after = syntax_errors(name, new)
    if old is None:
        return after or _python_only(name, None, new)
    if not after:
        return _python_only(name, old, new)
    before = syntax_errors(name, old)
    if not before:
        return after
    if len(after) <= len(before):
        return []
    moved = _moved_lines(old, new)
    known = {moved.get(problem.line) for problem in before}
    return [problem for problem in after if problem.line not in known] or after[-1:]


# What a newer Python than ours may accept although our parser does not.
_NEWER = re.compile(
    r"^\s*(type\s+\w|(async\s+)?def\s+\w+\s*\[|class\s+\w+\s*\[|except\b|finally\b)|\b[rR]?[tT]['\"]"
)


def _python_only(name: str, old: str | None, new: str) -> list[SyntaxProblem]:
    """Errors that only Python's own parser sees (the grammar takes some old and some wrong syntax), where
    it accepted the old text and so knows this file's Python."""
    if language_of(name) != "python" or (old is not None and _python_error(old) is not None):
        return []
    error = _python_error(new)
    if error is None or "f-string" in error.message:
        return []
    lines = new.split("\n")
    shown = lines[error.line - 1] if 0 < error.line <= len(lines) else ""
    return [] if _NEWER.search(shown) else [error]


@lru_cache(maxsize=8)
def _python_error(text: str) -> SyntaxProblem | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return SyntaxProblem(error.lineno or 1, max(1, error.offset or 1), error.msg)
    except ValueError as error:
        return SyntaxProblem(1, 1, str(error))
    except (RecursionError, MemoryError):
        return SyntaxProblem(1, 1, "too deeply nested for Python's parser")
    return None


def _tree_errors(name: str, text: str) -> list[SyntaxProblem]:
    best: list[SyntaxProblem] | None = None
    for candidate in (name, *LANGUAGES_ALSO.get(PurePosixPath(name).suffix.casefold(), ())):
        parsed = parse(candidate, text)
        if parsed is None:
            return []
        problems = _problems(parsed[1].root_node, text) if parsed[1].root_node.has_error else []
        if best is None or len(problems) < len(best):
            best = problems
        if not best:
            break
    return best or []


LANGUAGES_ALSO = {".h": ("x.cpp",), ".js": ("x.tsx",), ".mjs": ("x.tsx",)}
"""A header may be C or C++, and JavaScript may carry types (Flow): the kinder reading counts."""


def _problems(root: Node, text: str) -> list[SyntaxProblem]:
    lines = text.split("\n")
    found: list[SyntaxProblem] = []
    stack = [root]
    while stack and len(found) < _MAX_PROBLEMS:
        node = stack.pop()
        if node.is_missing or node.is_error:
            row, column = node.start_point
            line = lines[row] if row < len(lines) else ""
            column = len(line.encode()[:column].decode("utf-8", "replace"))
            if node.is_missing:
                message = f"missing {node.type!r}"
            else:
                message = f"unexpected {_excerpt(node)!r}"
            found.append(SyntaxProblem(row + 1, column + 1, message))
            continue  # what lies inside an error is a consequence of it
        if node.has_error:
            stack += reversed(node.children)
    return found


def _excerpt(node: Node) -> str:
    content = (node.text or b"").decode("utf-8", "replace").strip()
    first = content.split("\n", 1)[0]
    return first if len(first) <= 60 else first[:60] + "…"


def _moved_lines(old: str, new: str) -> dict[int, int]:
    """New line numbers of the old lines that both texts share (1-based)."""
    before, after = old.split("\n"), new.split("\n")
    moved: dict[int, int] = {}
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
        moved[start] = start
    tail = 0
    while tail < min(len(before), len(after)) - start and before[-1 - tail] == after[-1 - tail]:
        moved[len(before) - tail] = len(after) - tail
        tail += 1
    middle_old, middle_new = before[start : len(before) - tail], after[start : len(after) - tail]
    if len(middle_old) * len(middle_new) <= 4_000_000:
        for block in SequenceMatcher(None, middle_old, middle_new, autojunk=False).get_matching_blocks():
            for offset in range(block.size):
                moved[start + block.a + offset + 1] = start + block.b + offset + 1
    return moved


@frozen
class Symbol:
    """A definition. `kind` is "class", "function", "method", "interface", "struct", …; lines are 1-based,
    the first with its decorators; `container` is the dotted name of what encloses it; `signature` is
    its head on one line; `path` is filled by searches over several files."""

    name: str
    kind: str
    line: int
    end_line: int
    container: str | None = None
    signature: str = ""
    path: str = ""


def outline(name: str, text: str) -> list[Symbol]:
    """The definitions in the text, outermost first; [] for languages that we don't parse."""
    from agent_ls.workspace.index.tags import definitions_and_imports

    source = text.encode("utf-8", "surrogatepass")
    language = refined(language_of(name), source)
    if language is None:
        return []
    try:
        rows = definitions_and_imports(language, source)[0]
    except TooSlow:
        return []
    return [
        Symbol(name, kind, line, end_line, container, signature)
        for name, kind, line, _, _, end_line, container, signature, _ in rows
    ]


FUNCTIONS = frozenset({"function", "method", "constructor"})


def enclosing_function(name: str, text: str, line: int) -> Symbol | None:
    """The innermost function or method around a 1-based line, or None."""
    return enclosing(outline(name, text), line, FUNCTIONS)


def enclosing(symbols: list[Symbol], line: int, kinds: frozenset[str] | None = None) -> Symbol | None:
    """The innermost of `symbols` (of `kinds`) around a line, or None."""
    around = [
        symbol
        for symbol in symbols
        if symbol.line <= line <= symbol.end_line and (kinds is None or symbol.kind in kinds)
    ]
    return min(around, key=lambda symbol: (symbol.end_line - symbol.line, -symbol.line), default=None)

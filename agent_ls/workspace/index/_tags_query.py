"""The query files: read once per language, split into patterns, compiled for the installed grammar."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agent_ls.workspace.grammars import grammar

if TYPE_CHECKING:
    from tree_sitter import Language, Query

IMPORT, OUTER, SCOPE, CONTAINER, CLOSURE = "import", "outer", "scope", "container", "closure"
"""What a pattern of the definitions' query finds besides definitions (whose patterns are named by kind)."""


class TagQueries(NamedTuple):
    """A language's compiled queries. `kinds` names what each pattern of `definitions` finds: a kind of
    symbol, or one of IMPORT, OUTER, SCOPE, CONTAINER, CLOSURE; `captures` is the name of each pattern's
    outermost capture, and `plain` tells those that capture nothing else but @name and @body. `nested` (the
    query marks scopes): run scope by scope, near their roots only. `refused` are the patterns that the
    installed grammar lacks nodes for."""

    definitions: Query | None
    kinds: tuple[str, ...]
    captures: tuple[str, ...]
    plain: tuple[bool, ...]
    references: Query | None
    nested: bool
    refused: tuple[str, ...] = ()


@cache
def tag_queries(language: str, references: bool = True) -> TagQueries:
    """The queries of a language with a query file; empty ones for a language without. Compiling takes up to a
    tenth of a second: `references` False leaves theirs out."""
    patterns = _patterns(language)
    compiled = grammar(language)
    refused: list[str] = []
    definitions = [pattern for pattern in patterns if not _is_reference(pattern)]
    definitions_query = _compile(compiled, definitions, refused)
    references_query = None
    if references:
        references_query = _compile(compiled, [p for p in patterns if _is_reference(p)], refused)
    captures = tuple(_outermost(pattern) for pattern in definitions)
    return TagQueries(
        definitions_query,
        tuple(name.removeprefix("definition.") for name in captures),
        captures,
        tuple(re.search(r"@(owner|declarator|rest|head)\b", pattern) is None for pattern in definitions),
        references_query,
        SCOPE in captures,
        tuple(refused),
    )


def _is_reference(pattern: str) -> bool:
    return re.search(r"@(reference\.|local\b)", pattern) is not None


def _outermost(pattern: str) -> str:
    """The capture that tells what a pattern is about."""
    found = re.search(r"@(definition\.\w+|import\b|outer\b|scope\b|container\b|closure\b)", pattern)
    if found is None:
        raise ValueError(f"a pattern without a purpose: {pattern}")
    return found[1]


def _compile(language: Language, patterns: list[str], refused: list[str]) -> Query | None:
    """One query of those patterns that the grammar knows; the others are taken out of `patterns`."""
    from tree_sitter import Query, QueryError

    if not patterns:
        return None
    try:
        return Query(language, "\n".join(patterns))
    except QueryError:
        pass
    kept = []
    for pattern in patterns:
        try:
            Query(language, pattern)
            kept.append(pattern)
        except QueryError:
            refused.append(pattern)
    patterns[:] = kept
    return Query(language, "\n".join(kept)) if kept else None


def _patterns(language: str) -> list[str]:
    """The patterns of a language's file, those of the files that it inherits first."""
    path = Path(__file__).parent.parent / "queries" / f"{language}.scm"
    if not path.is_file():
        return []
    text = path.read_text("utf-8")
    found: list[str] = []
    for base in re.findall(r"^; inherits: (\w+)$", text, re.MULTILINE):
        found += _patterns(base)
    return found + split_patterns(text)


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|;[^\n]*|[()\[\]]')


def split_patterns(text: str) -> list[str]:
    """The top-level patterns of a query file, each with the captures that follow it."""
    starts: list[int] = []
    depth = 0
    for token in _TOKEN.finditer(text):
        if token[0] in "([":
            if depth == 0:
                starts.append(token.start())
            depth += 1
        elif token[0] in ")]":
            depth -= 1
    ends = [*starts[1:], len(text)]
    # Comments between patterns are cut off, so that they don't count as a pattern's captures.
    return [
        re.sub(r"^\s*;.*$", "", text[start:end], flags=re.MULTILINE).strip()
        for start, end in zip(starts, ends, strict=True)
    ]

"""Find definitions by name over a working tree, without an index (with one: `index.similar`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import evolve

from agent_ls.errors import ToolRefused
from agent_ls.workspace.files import Workspace
from agent_ls.workspace.grammars import LANGUAGES
from agent_ls.workspace.search import find_lines, qualified
from agent_ls.workspace.syntax import Symbol, outline

if TYPE_CHECKING:
    from agent_ls.workspace.index.records import Found

_MAX_CHARACTERS = 2_000_000
_MAX_MENTIONS = 20_000


def find_symbols(workspace: Workspace, name: str, globs: Sequence[str] = ()) -> list[Symbol]:
    """Definitions called `name` ("area", or with its containers "Shape.area"), by path and line.

    Exact names win; only when there is none, names that differ in case are given. Raises ToolRefused
    for an empty name.
    """
    wanted = name.strip().replace("::", ".").replace("#", ".").strip(".").removesuffix("()")
    last = wanted.rsplit(".", 1)[-1]
    if not last:
        raise ToolRefused("the name is empty")
    suffixes = [f"*{suffix}" for language in LANGUAGES.values() for suffix in language.suffixes]
    mentions = find_lines(
        workspace,
        last,
        regex=False,
        word=True,
        case="insensitive",
        globs=globs or suffixes,
        limit=_MAX_MENTIONS,
    )
    files = {hit.path for hit in mentions.hits}
    found: list[Symbol] = []
    for path in sorted(files):
        try:
            text = workspace.read(path).text
        except (ToolRefused, OSError):
            continue
        if len(text) > _MAX_CHARACTERS:
            continue
        found += [
            evolve(symbol, path=path)
            for symbol in outline(path, text)
            if _is(qualified(symbol).casefold(), wanted.casefold())
        ]
    exact = [symbol for symbol in found if _is(qualified(symbol), wanted)]
    return exact or found


def symbol_of(found: Found) -> Symbol:
    """A definition of the index as a symbol."""
    it = found.definition
    return Symbol(it.name, it.kind, it.line, it.end_line, it.container, it.signature, found.path)


def _is(full: str, wanted: str) -> bool:
    return full == wanted or full.endswith("." + wanted)

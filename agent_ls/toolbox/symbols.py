"""symbols: where something is defined, or what a file defines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from agent_ls.errors import ToolRefused
from agent_ls.toolbox.base import ToolContext, ToolOutput
from agent_ls.toolbox.read import listed
from agent_ls.workspace.index.opened import snapshot
from agent_ls.workspace.index.similar import find_definitions
from agent_ls.workspace.paths import normalise
from agent_ls.workspace.search import qualified
from agent_ls.workspace.symbols import find_symbols, symbol_of
from agent_ls.workspace.syntax import outline

_LIMIT = 100
_SIMILAR = 10


@frozen
class Arguments:
    name: str | None = None
    path: str | None = None


def run(ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
    """Raises ToolRefused when neither a name nor a path is given, or the file can't be read."""
    asked = Arguments(**arguments)
    if asked.name is None:
        if asked.path is None:
            raise ToolRefused("give a name to find, or a path to list its definitions")
        reason = ctx.withheld(normalise(asked.path))
        if reason is not None and ctx.workspace.exists(asked.path):
            ctx.denied("symbols", f"{asked.path}: {reason}")
            raise ToolRefused(f"{asked.path} is not shown: {reason}")
        symbols = outline(asked.path, ctx.workspace.read(asked.path).text)
        return ToolOutput(listed(symbols) if symbols else f"{asked.path} has no definitions that can be told")
    known = snapshot(ctx.workspace)
    exact = True
    if known.view is not None:
        matches = find_definitions(known.view, asked.name, limit=10_000)
        exact = matches.how in ("exact", "case")
        found = [symbol_of(it) for it in matches.found]
    else:
        found = find_symbols(ctx.workspace, asked.name)
    if asked.path is not None:
        path = asked.path.removeprefix("./").rstrip("/")
        found = [symbol for symbol in found if symbol.path == path or symbol.path.startswith(path + "/")]
    if not found:
        return ToolOutput(f"nothing called {asked.name!r} is defined; search finds other mentions")
    lines = [
        f"{symbol.path}:{symbol.line}-{symbol.end_line}: "
        f"{symbol.kind} {qualified(symbol)}: {symbol.signature}"
        for symbol in found[:_LIMIT]
    ]
    if not exact:
        lines = [f"nothing called {asked.name!r} is defined; similar names are:", *lines[:_SIMILAR]]
    elif len(found) > _LIMIT:
        lines.append(f"… and {len(found) - _LIMIT} more; give a path to see fewer")
    if known.note:
        lines.append(f"[{known.note}]")
    return ToolOutput("\n".join(lines))

"""search: lines of the repository's files that contain a text or match a regular expression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from agent_ls.toolbox.base import ToolContext, ToolOutput
from agent_ls.workspace.search import search

_LIMIT = 100


@frozen
class Arguments:
    query: str
    regex: bool = False
    word: bool = False
    globs: tuple[str, ...] = ()


def run(ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
    """Hits grouped by file. Raises ToolRefused for an empty query, a bad expression or a bad glob."""
    asked = Arguments(**arguments)
    result = search(
        ctx.workspace, asked.query, regex=asked.regex, word=asked.word, globs=asked.globs, limit=_LIMIT
    )
    lines: list[str] = []
    path = ""
    for hit in result.hits:
        if hit.path != path:
            path = hit.path
            lines.append(path)
        inside = f"  [{hit.symbol}]" if hit.symbol else ""
        lines.append(f"  {hit.line}: {hit.text.strip()[:200]}{inside}")
    if not lines:
        lines.append(
            f"no line contains {asked.query!r}" + (f" in {list(asked.globs)}" if asked.globs else "")
        )
    if not result.complete:
        lines.append(f"[not complete: {result.note}]")
    return ToolOutput("\n".join(lines))

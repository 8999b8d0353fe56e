"""search: lines of the repository's files that contain a text or match a regular expression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from agent_ls.toolbox.base import ToolContext, ToolOutput
from agent_ls.workspace.index.opened import snapshot
from agent_ls.workspace.search import Hit, search

_LIMIT = 100


@frozen
class Arguments:
    query: str
    regex: bool = False
    word: bool = False
    globs: tuple[str, ...] = ()


def run(ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
    """Hits grouped by file, files with definitions first. Raises ToolRefused for an empty query, a bad
    expression or a bad glob."""
    asked = Arguments(**arguments)
    known = snapshot(ctx.workspace)
    result = search(
        ctx.workspace,
        asked.query,
        regex=asked.regex,
        word=asked.word,
        globs=asked.globs,
        limit=_LIMIT,
        view=known.view,
    )
    lines: list[str] = []
    path = ""
    for hit in _by_file(result.hits):
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
    if known.note:
        lines.append(f"[{known.note}]")
    return ToolOutput("\n".join(lines))


def _by_file(hits: Sequence[Hit]) -> list[Hit]:
    """Files in the order of their best hits, each file's hits by line."""
    place: dict[str, int] = {}
    for number, hit in enumerate(hits):
        place.setdefault(hit.path, number)
    return sorted(hits, key=lambda hit: (place[hit.path], hit.line))

"""read: a file with line numbers, a range of it, or the outline of a long one; a folder's files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from agent_ls.errors import ToolRefused
from agent_ls.toolbox.base import ToolContext, ToolOutput
from agent_ls.workspace.paths import normalise
from agent_ls.workspace.syntax import Symbol, outline
from agent_ls.workspace.text import TextFile

LONG = 400
"""Longer files are shown as an outline unless a range is asked for."""
_HEAD = 60
_LINE = 500
_LISTED = 200


@frozen
class Arguments:
    path: str
    start: int | None = None
    end: int | None = None


def run(ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
    """Raises ToolRefused when there is no such file, it is not text, or the range lies outside it."""
    asked = Arguments(**arguments)
    if asked.path.strip() in (".", "./"):
        return _folder(ctx, "")
    path = normalise(asked.path)
    if ctx.workspace.resolve(path).is_dir():
        return _folder(ctx, path + "/")
    reason = ctx.withheld(path)
    if reason is not None and ctx.workspace.exists(path):
        ctx.denied("read", f"{path}: {reason}")
        raise ToolRefused(f"{path} is not shown: {reason}")
    file = ctx.workspace.read(path)
    ctx.mark_seen(path)
    count = len(file.lines)
    title = f"{path} ({count} lines{_traits(file)})"
    if count == 0:
        return ToolOutput(f"{path} is empty")
    if asked.start is None and asked.end is None and count > LONG:
        return ToolOutput(_overview(path, file, title))
    first, last = asked.start or 1, asked.end or count
    if first > count:
        raise ToolRefused(f"{path} has only {count} lines; start {first} lies behind its end")
    if last < first:
        raise ToolRefused(f"end {last} lies before start {first}")
    return ToolOutput(f"{title}\n{_numbered(file.lines, first, min(last, count))}")


def _traits(file: TextFile) -> str:
    said = []
    if file.encoding != "utf-8" or file.bom:
        said.append(file.encoding + (" with BOM" if file.bom else ""))
    ends = {eol for eol in file.eols if eol}
    if ends - {"\n"}:
        said.append("mixed line ends" if len(ends) > 1 else {"\r\n": "CRLF", "\r": "CR"}[ends.pop()])
    if not file.eols[-1:] or not file.eols[-1]:
        said.append("no newline at its end")
    return "".join(f", {item}" for item in said)


def _numbered(lines: Sequence[str], first: int, last: int) -> str:
    width = len(str(last))
    shown = []
    for number in range(first, last + 1):
        line = lines[number - 1]
        if len(line) > _LINE:
            line = f"{line[:_LINE]} [… {len(line) - _LINE} more characters in this line]"
        shown.append(f"{number:>{width}}| {line}")
    return "\n".join(shown)


def _overview(path: str, file: TextFile, title: str) -> str:
    symbols = outline(path, file.text)
    if not symbols:
        return f"{title}; its first {_HEAD} lines (give start and end for others):\n" + _numbered(
            file.lines, 1, _HEAD
        )
    return f"{title}; its outline (give start and end to read a part):\n" + listed(symbols)


def listed(symbols: Sequence[Symbol]) -> str:
    """One line per symbol: its lines and its head, indented as deep as it is contained."""
    return "\n".join(
        f"{symbol.line}-{symbol.end_line}: "
        + "  " * (symbol.container.count(".") + 1 if symbol.container else 0)
        + (symbol.signature or f"{symbol.kind} {symbol.name}")
        for symbol in symbols
    )


def _folder(ctx: ToolContext, prefix: str) -> ToolOutput:
    files = [path for path in ctx.workspace.list() if path.startswith(prefix)]
    entries: dict[str, int] = {}
    for path in files:
        head, slash, _ = path[len(prefix) :].partition("/")
        entries[head + slash] = entries.get(head + slash, 0) + 1
    lines = [
        f"  {name}" + (f" ({count} files)" if name.endswith("/") else "")
        for name, count in sorted(entries.items())
    ]
    if len(lines) > _LISTED:
        lines = [*lines[:_LISTED], f"  … and {len(lines) - _LISTED} more"]
    return ToolOutput(f"{prefix or './'} is a folder with {len(files)} files:\n" + "\n".join(lines))

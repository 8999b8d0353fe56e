"""Whole lines of statements, and the blocks they stand in."""

from __future__ import annotations

import ast
import re

from agent_ls.repair._maker import Maker


def block_of(make: Maker, statement: ast.stmt) -> list[ast.stmt]:
    """The list of statements that holds `statement`."""
    parent = make.source.parents[statement]
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and any(item is statement for item in block):
            return block
    return [statement]


def rows(make: Maker, statement: ast.stmt) -> tuple[int, int] | None:
    """Offsets of the whole lines of a statement (line break included); None if it shares a line."""
    source = make.source
    start, end = source.span(statement)
    begin = source.starts[source.line_of(start) - 1]
    last = source.line_of(end)
    stop = source.starts[last] if last < len(source.starts) else len(source.text)
    if (
        source.text[begin:start].strip()
        or re.match(r"\s*(#.*)?$", source.text[end:stop].rstrip("\r\n")) is None
    ):
        return None
    return begin, stop


def rows_text(make: Maker, whole: tuple[int, int]) -> str:
    text = make.source.text[whole[0] : whole[1]]
    return text if text.endswith(("\n", "\r")) else text + make.source.eol()


def dedented(text: str, old: str, new: str) -> str:
    """Lines with the indentation `old` at their start replaced by `new`."""
    lines = text.splitlines(keepends=True)
    return "".join(new + line[len(old) :] if line.startswith(old) else line for line in lines)


def indent_unit(make: Maker, indent: str) -> str:
    return "\t" if "\t" in indent else "    "


def is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)

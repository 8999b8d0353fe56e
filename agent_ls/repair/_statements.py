"""Edit operators on statements as a whole: delete, swap, move, indent, dedent."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from agent_ls.repair._blocks import block_of, dedented, rows, rows_text
from agent_ls.repair._forms import defaults_edits, form_edits
from agent_ls.repair._insertion import insert_edits
from agent_ls.repair._maker import Maker, short
from agent_ls.repair.edits import Edit
from agent_ls.repair.source import Function


def statement_edits(make: Maker, statement: ast.stmt) -> Iterator[Edit]:
    """Edits of one statement as a whole."""
    if isinstance(
        statement, Function | ast.ClassDef | ast.Import | ast.ImportFrom | ast.Global | ast.Nonlocal
    ):
        if isinstance(statement, Function):
            yield from defaults_edits(make, statement)
        return
    whole = rows(make, statement)
    if whole is None:
        return
    block = block_of(make, statement)
    index = next(i for i, item in enumerate(block) if item is statement)
    yield from _delete_and_move(make, statement, whole, block, index)
    yield from insert_edits(make, statement, whole, block, index)
    yield from form_edits(make, statement, whole)


def _delete_and_move(
    make: Maker, statement: ast.stmt, whole: tuple[int, int], block: list[ast.stmt], index: int
) -> Iterator[Edit]:
    source = make.source
    indent, eol = source.indent(statement), source.eol()
    text = rows_text(make, whole)
    name = short(text.strip())
    docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    if not docstring and not isinstance(statement, ast.Pass):
        if len(block) > 1:
            yield make.splice(*whole, "", "delete-statement", 0.15, f"delete `{name}`")
        else:
            yield make.splice(*whole, f"{indent}pass{eol}", "delete-statement", 0.1, f"delete `{name}`")
    if docstring:
        return
    # swap with later neighbours, one to three places
    for step in (1, 2, 3):
        if index + step < len(block):
            other = rows(make, block[index + step])
            if other is not None:
                between = source.text[whole[1] : other[0]]
                middle = source.text[whole[1] : other[1]]
                swapped = rows_text(make, other) + between + text
                if step == 1:
                    yield make.splice(
                        whole[0], other[1], swapped, "swap-statements", 0.3, f"swap `{name}` with the next"
                    )
                else:
                    moved = middle if middle.endswith(("\n", "\r")) else middle + eol
                    yield make.splice(
                        whole[0], other[1], moved + text, "move-statement", 0.12, f"move `{name}` down"
                    )
        if index - step >= 0 and step > 1:
            other = rows(make, block[index - step])
            if other is not None:
                middle = source.text[other[0] : whole[0]]
                yield make.splice(
                    other[0], whole[1], text + middle, "move-statement", 0.12, f"move `{name}` up"
                )
    parent = source.parents[statement]
    # dedent: out of the block it ends (or begins)
    if isinstance(parent, ast.stmt) and not isinstance(parent, Function | ast.ClassDef):
        outer = source.indent(parent)
        inner = block[:index]
        last = index == len(block) - 1
        if last and inner and (parent.end_lineno == statement.end_lineno):
            yield make.splice(
                *whole, dedented(text, indent, outer), "dedent", 0.3, f"move `{name}` out of the block"
            )
        if (
            last
            and parent.end_lineno != statement.end_lineno
            and inner
            and block is getattr(parent, "body", None)
        ):
            around = rows(make, parent)
            if around is not None:
                rest = source.text[whole[1] : around[1]]
                rest = rest if rest.endswith(("\n", "\r")) else rest + eol
                yield make.splice(
                    whole[0],
                    around[1],
                    rest + dedented(text, indent, outer),
                    "dedent",
                    0.15,
                    f"move `{name}` behind the block",
                )
        if index == 0 and len(block) > 1 and block is getattr(parent, "body", None):
            around = rows(make, parent)
            if around is not None:
                header = source.text[around[0] : whole[0]]
                yield make.splice(
                    around[0],
                    whole[1],
                    dedented(text, indent, outer) + header,
                    "dedent",
                    0.15,
                    f"move `{name}` before the block",
                )
        # the rest of the block from here on
        if 0 < index < len(block) - 1 and parent.end_lineno == block[-1].end_lineno:
            tail_rows = rows(make, block[-1])
            if tail_rows is not None:
                tail = source.text[whole[0] : tail_rows[1]]
                yield make.splice(
                    whole[0],
                    tail_rows[1],
                    dedented(tail, indent, outer),
                    "dedent",
                    0.12,
                    f"end the block before `{name}`",
                )
        if isinstance(parent, ast.If | ast.With) and len(block) == 1 and not getattr(parent, "orelse", None):
            around = rows(make, parent)
            if around is not None:
                yield make.splice(
                    *around,
                    dedented(text, indent, outer),
                    "unwrap-block",
                    0.15,
                    f"`{name}` without the condition",
                )
    # indent: into the block before it
    if index > 0:
        before = block[index - 1]
        bodies: list[list[ast.stmt]] = []
        if isinstance(before, ast.If | ast.For | ast.While | ast.With | ast.Try):
            bodies.append(before.body)
            if getattr(before, "orelse", None):
                bodies.append(before.orelse)  # type: ignore[union-attr]
        for body in bodies[-1:]:
            deepest = body[-1]
            chain = [deepest]
            while isinstance(deepest, ast.If | ast.For | ast.While | ast.With) and deepest.body:
                deepest = (
                    deepest.orelse if not isinstance(deepest, ast.With) and deepest.orelse else deepest.body
                )[-1]
                chain.append(deepest)
            for target in chain:
                if target.end_lineno == before.end_lineno:
                    new = dedented(text, indent, source.indent(target))
                    yield make.splice(*whole, new, "indent", 0.2, f"move `{name}` into the block before it")

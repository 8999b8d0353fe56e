"""The edit operators of the repair engine, as splices of text.

The catalogue follows what is known to fix real faults: the mutation operators of Offutt and DeMillo,
the templates of PAR, TBar and the single-statement patterns of ManySStuBs4J/PySStuBs, and the
redundancy assumption of GenProg (missing code is usually near already).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping

from attrs import evolve

from agent_ls.repair._calls import call_edits, wrap_edits
from agent_ls.repair._expressions import condition_edits, expression_edits
from agent_ls.repair._maker import Maker
from agent_ls.repair._statements import statement_edits
from agent_ls.repair._values import value_edits
from agent_ls.repair.edits import Edit
from agent_ls.repair.scope import Ingredients, Scope
from agent_ls.repair.source import Function, Source, compiles

__all__ = ["Edit", "Ingredients", "candidates", "mutants"]


_STALE = 0.25
"""Factor for code that uses the variable of a loop that is over."""


def mutants(
    source: str, lines: Collection[int] | Mapping[int, float], context: Ingredients | None = None
) -> Iterator[Edit]:
    """Edits of the statements on `lines` (1-based; a mapping gives weights), most usual first.

    Each edit compiles, changes the syntax tree, and no two make the same tree. Raises SyntaxError when
    `source` is not Python.
    """
    parsed = Source(source)
    checker = Checker(parsed)
    found = candidates(parsed, lines, context or Ingredients())
    weights = lines if isinstance(lines, Mapping) else {}
    found.sort(key=lambda edit: -edit.prior * weights.get(edit.line, 1.0))
    for edit in found:
        if checker.accepts(edit) is not None:
            yield edit


class Checker:
    """Lets an edit through once: it must compile and make a tree that no earlier one made."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._seen: set[tuple[int, str]] = set()
        self._original: dict[int, str] = {}

    def accepts(self, edit: Edit) -> str | None:
        """A key of the changed tree, or None when the edit is no new program."""
        piece = self._source.piece_at(edit.start_offset, edit.end_offset)
        text = self._source.text
        if piece.start not in self._original:
            tree = compiles(piece, text[piece.start : piece.end])
            self._original[piece.start] = "" if tree is None else ast.dump(tree)
        tail = text[edit.end_offset : piece.end]
        tree = compiles(piece, text[piece.start : edit.start_offset] + edit.replacement + tail)
        if tree is None:
            return None
        dump = ast.dump(tree)
        if dump == self._original[piece.start] or (piece.start, dump) in self._seen:
            return None
        self._seen.add((piece.start, dump))
        return dump


def candidates(
    source: Source, lines: Collection[int] | Mapping[int, float], context: Ingredients
) -> list[Edit]:
    """All edits of the statements on these lines, unchecked and unordered (see `Checker`)."""
    found: list[Edit] = []
    wanted = set(lines)
    scopes: dict[Function | None, Scope] = {}
    for statement in ast.walk(source.tree):
        if not isinstance(statement, ast.stmt) or isinstance(statement, ast.ClassDef):
            continue
        own = own_lines(statement)
        touched = wanted.intersection(own)
        if not touched:
            continue
        weights = lines if isinstance(lines, Mapping) else {}
        line = max(touched, key=lambda number: (weights.get(number, 1.0), -number))
        function = source.function_of(statement)
        inner = statement if isinstance(statement, Function) else function
        if inner not in scopes:
            scopes[inner] = Scope(source, inner, context)
        make = Maker(source, scopes[inner], line)
        stale = _stale_names(source, statement, function)
        for edit in [*statement_edits(make, statement), *_expressions(make, statement)]:
            if stale is not None and stale.search(edit.replacement):
                old = source.text[edit.start_offset : edit.end_offset]
                if not stale.search(old):
                    edit = evolve(edit, prior=edit.prior * _STALE)
            found.append(edit)
    return found


def _stale_names(source: Source, statement: ast.stmt, function: Function | None) -> re.Pattern[str] | None:
    """Loop variables of loops that don't enclose the statement: bound there, yet seldom meant."""
    if function is None:
        return None
    around = {id(node) for node in [statement, *source.ancestors(statement)]}
    names = {
        name.id
        for node in ast.walk(function)
        if isinstance(node, ast.For | ast.comprehension) and id(node) not in around
        for name in ast.walk(node.target)
        if isinstance(name, ast.Name)
    }
    names -= {
        name.id
        for node in source.ancestors(statement)
        if isinstance(node, ast.For)
        for name in ast.walk(node.target)
        if isinstance(name, ast.Name)
    }
    if not names or isinstance(statement, ast.For):
        return None
    return re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, sorted(names)))})\b")


def own_lines(statement: ast.stmt) -> range:
    """The lines of a statement without those of the statements inside it."""
    end = statement.end_lineno or statement.lineno
    start = statement.lineno
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        block = getattr(statement, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt | ast.excepthandler):
            end = min(end, max(start, block[0].lineno - 1))
    return range(start, end + 1)


def _expressions(make: Maker, statement: ast.stmt) -> Iterator[Edit]:
    for root in _headers(statement):
        conditions: list[ast.expr] = []
        if isinstance(statement, ast.If | ast.While) and root is statement.test:
            conditions.append(root)
        pending: list[ast.AST] = [root]
        while pending:
            node = pending.pop()
            if isinstance(node, ast.expr):
                if isinstance(node, ast.IfExp):
                    conditions.append(node.test)
                elif isinstance(node, ast.comprehension):
                    pass
                yield from expression_edits(make, node)
                if isinstance(node, ast.Call):
                    yield from call_edits(make, node)
                if isinstance(getattr(node, "ctx", None) or ast.Load(), ast.Load):
                    yield from value_edits(make, node)
                    yield from wrap_edits(make, node)
            elif isinstance(node, ast.comprehension):
                conditions.extend(node.ifs)
            pending.extend(ast.iter_child_nodes(node))
        for condition in conditions:
            yield from condition_edits(make, condition)


def _headers(statement: ast.stmt) -> list[ast.expr]:
    """The expressions that belong to a statement itself."""
    if isinstance(statement, Function):
        return []
    found: list[ast.expr] = []
    for _, value in ast.iter_fields(statement):
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, ast.expr):
                found.append(item)
            elif isinstance(item, ast.withitem):
                found.append(item.context_expr)
    return found

"""Edit operators that add code: guards, early exits, conditions around, statements from names in reach."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from attrs import frozen

from agent_ls.repair._blocks import dedented, indent_unit, is_docstring, rows, rows_text
from agent_ls.repair._maker import Maker, short
from agent_ls.repair.edits import Edit
from agent_ls.repair.source import Function


def insert_edits(
    make: Maker, statement: ast.stmt, whole: tuple[int, int], block: list[ast.stmt], index: int
) -> Iterator[Edit]:
    source, scope = make.source, make.scope
    indent, eol = source.indent(statement), source.eol()
    unit = indent_unit(make, indent)
    at = whole[0]
    function = scope.function
    in_loop = any(isinstance(node, ast.For | ast.While) for node in _inside(make, statement))
    docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    if docstring:
        return
    # guards: leave early when something holds
    exits: list[tuple[str, float]] = []
    if function is not None:
        first = block is function.body and (index == 0 or (index == 1 and is_docstring(block[0])))
        exits += [(text, weight * (1.5 if first else 1.0)) for text, weight in _returns(make, function)]
    if in_loop:
        exits += [("continue", 0.6), ("break", 0.5)]
    for j, (leave, weight) in enumerate(exits[:16]):
        for i, (condition, cweight) in enumerate(scope.conditions[:60]):
            prior = 0.16 * weight * cweight / (1 + i / 20) / (1 + j / 8)
            yield make.splice(
                at,
                at,
                f"{indent}if {condition}:{eol}{indent}{unit}{leave}{eol}",
                "insert-guard",
                prior,
                f"if `{condition}`: `{leave}`",
            )
    for leave, weight in exits[:8]:
        if index == len(block) - 1 or not leave.startswith("return"):
            end = whole[1]
            text = source.text[whole[0] : whole[1]]
            lead = "" if text.endswith(("\n", "\r")) else eol
            if not isinstance(statement, ast.Return | ast.Raise | ast.Continue | ast.Break):
                yield make.splice(
                    end,
                    end,
                    f"{lead}{indent}{leave}{eol}",
                    "insert-exit",
                    0.12 * weight,
                    f"`{leave}` after it",
                )
    # wrap in a condition
    text = rows_text(make, whole)
    if not isinstance(statement, ast.Return | ast.FunctionDef) or index < len(block) - 1:
        for i, (condition, weight) in enumerate(scope.conditions[:60]):
            new = f"{indent}if {condition}:{eol}{dedented(text, indent, indent + unit)}"
            yield make.splice(
                *whole, new, "wrap-in-condition", 0.14 * weight / (1 + i / 20), f"only if `{condition}`"
            )
    before = block[index - 1] if index else None
    for new, prior in _new_statements(make, statement, before):
        yield make.splice(
            at, at, f"{indent}{new}{eol}", "insert-statement", prior, f"insert `{short(new)}` before it"
        )
        if index == len(block) - 1 and not isinstance(
            statement, ast.Return | ast.Raise | ast.Continue | ast.Break
        ):
            lead = "" if text == source.text[whole[0] : whole[1]] else eol
            yield make.splice(
                whole[1],
                whole[1],
                f"{lead}{indent}{new}{eol}",
                "insert-statement",
                prior,
                f"insert `{short(new)}` after it",
            )
        if isinstance(statement, ast.For | ast.While | ast.If) and statement.body:
            inner = rows(make, statement.body[0])
            if inner is not None:
                deep = source.indent(statement.body[0])
                yield make.splice(
                    inner[0],
                    inner[0],
                    f"{deep}{new}{eol}",
                    "insert-statement",
                    prior * 0.8,
                    f"insert `{short(new)}` at the start of the block",
                )


def _inside(make: Maker, statement: ast.stmt) -> Iterator[ast.AST]:
    for node in make.source.ancestors(statement):
        if isinstance(node, Function | ast.ClassDef):
            return
        yield node


def _returns(make: Maker, function: Function) -> list[tuple[str, float]]:
    """Ways to leave the function: its own returns and raises, its parameters, usual constants."""
    found: dict[str, float] = {}
    generator = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))
    if generator:
        found["return"] = 1.0
    for node in ast.walk(function):
        if isinstance(node, ast.Return):
            text = make.source.get(node)
            if "\n" not in text and len(text) < 60 and not (node.value is not None and generator):
                found.setdefault(text, 0.9)
        elif isinstance(node, ast.Raise):
            text = make.source.get(node)
            if "\n" not in text and len(text) < 80:
                found.setdefault(text, 0.5)
    if not generator:
        for name in make.scope.parameters[:4]:
            found.setdefault(f"return {name}", 0.7)
        for constant, weight in (
            ("None", 0.6),
            ("0", 0.7),
            ("1", 0.6),
            ("[]", 0.6),
            ("True", 0.6),
            ("False", 0.6),
            ("''", 0.4),
            ("[[]]", 0.3),
            ("{}", 0.3),
            ("-1", 0.3),
        ):
            found.setdefault("return" if constant == "None" else f"return {constant}", weight)
        for name in make.scope.locals[:8]:
            found.setdefault(f"return {name}", 0.3)
    return sorted(found.items(), key=lambda item: -item[1])


def _new_statements(make: Maker, statement: ast.stmt, before: ast.stmt | None) -> Iterator[tuple[str, float]]:
    """Statements made from names in reach, and those of the same function again; behind a loop (`before`)
    likelier what the loop does, for the rest that it leaves over."""
    scope, source = make.scope, make.source
    lacks = _lacks(make, statement)
    near = [atom for atom in scope.atoms[:14] if atom.kind != "call" and atom.text not in ("self", "cls")]
    targets = [
        atom
        for atom in near
        if re.fullmatch(r"[\w.]+|[\w.]+\[[^\[\]]+\]", atom.text) and atom.text not in scope.module_names
    ]
    for target in targets:
        if target.kind in ("num", ""):
            likely = 2.0 if target.text in lacks.change else 1.0
            yield f"{target.text} += 1", 0.12 * target.weight * likely
            yield f"{target.text} -= 1", 0.08 * target.weight * likely
        for value in near:
            if value.text == target.text:
                continue
            # What is None at first takes any kind.
            same = target.kind == value.kind or not {"", "none"}.isdisjoint((target.kind, value.kind))
            weight = target.weight * value.weight
            filled = weight * (2.5 if target.text in lacks.filling else 1.0)
            weight *= 2.5 if target.text in lacks.change else 1.0
            yield f"{target.text} = {value.text}", (0.12 if same else 0.03) * weight
            if target.kind in ("num", "") and value.kind in ("num", ""):
                yield f"{target.text} += {value.text}", 0.05 * weight
                yield f"{target.text} -= {value.text}", 0.03 * weight
                yield f"{target.text} = max({target.text}, {value.text})", 0.05 * weight
                yield f"{target.text} = min({target.text}, {value.text})", 0.04 * weight
            if target.kind in ("list", ""):
                yield f"{target.text}.append({value.text})", 0.07 * filled
                if value.kind in ("list", ""):
                    yield f"{target.text}.extend({value.text})", 0.05 * filled
            if target.kind in ("set", ""):
                yield f"{target.text}.add({value.text})", (0.15 if target.kind == "set" else 0.05) * filled
        yield f"{target.text} = {target.text}.copy()", 0.06 * target.weight
        if target.kind in ("list", "str", ""):
            for call in ("list", "sorted"):
                yield f"{target.text} = {call}({target.text})", 0.05 * target.weight
        for constant in ("0", "[]", "None", "1", "''", "{}", "False", "True"):
            yield f"{target.text} = {constant}", 0.03 * target.weight
    function = scope.function
    inside = set(ast.walk(before)) if isinstance(before, ast.For | ast.While) else set()
    if function is not None:
        for node in ast.walk(function):
            if (
                isinstance(node, ast.Assign | ast.AugAssign | ast.Expr)
                and node is not statement
                and not is_docstring(node)
            ):
                text = source.get(node)
                if "\n" not in text and len(text) <= 70:
                    rest = 2.5 if node in inside else 1.0
                    yield text, 0.14 * rest
                    for new, weight in _renamed(make, node, text):
                        receiver = new.split(".")[0]
                        yield new, weight * rest * (2.5 if receiver in lacks.filling else 1.0)
        if scope.method_class is not None and function.name == "__init__":
            yield "super().__init__()", 0.2


def _renamed(make: Maker, statement: ast.stmt, text: str) -> Iterator[tuple[str, float]]:
    """The statement with one name exchanged for another in reach, likelier for one of the same kind."""
    names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    for name in sorted(names):
        kind = make.scope.kind(name)
        for other in make.scope.locals[:10]:
            if other not in names and name in make.scope.locals and other not in ("self", "cls"):
                same = kind and make.scope.kind(other) == kind
                new = re.sub(rf"(?<![\w.]){re.escape(name)}\b", other, text)
                yield new, 0.08 if same else 0.04


@frozen
class _Lacks:
    """Names that the code around seems to forget: containers that start empty and are never filled, and
    names that a loop reads but never changes."""

    filling: frozenset[str]
    change: frozenset[str]


_FILLS = {"append", "appendleft", "add", "extend", "insert", "update", "setdefault", "push"}


def _lacks(make: Maker, statement: ast.stmt) -> _Lacks:
    if make.scope.function is None:
        return _Lacks(frozenset(), frozenset())
    loop = next((node for node in _inside(make, statement) if isinstance(node, ast.For | ast.While)), None)
    return _lacking(make.scope.function, loop)


@lru_cache(maxsize=16)
def _lacking(function: Function, loop: ast.For | ast.While | None) -> _Lacks:
    empty: set[str] = set()
    filled: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            value = node.value
            bare = isinstance(value, ast.List | ast.Dict) and not ast.unparse(value).strip("[]{}")
            bare |= isinstance(value, ast.Call) and not value.args and ast.unparse(value.func) in _EMPTY
            names = {target.id for target in node.targets if isinstance(target, ast.Name)}
            (empty if bare else filled).update(names)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            filled.add(ast.unparse(node.value))
        elif isinstance(node, ast.AugAssign):
            filled.add(ast.unparse(node.target))
        elif isinstance(node, ast.Attribute) and node.attr in _FILLS:
            filled.add(ast.unparse(node.value))
    change: set[str] = set()
    if loop is not None:
        names_in = [node for node in ast.walk(loop) if isinstance(node, ast.Name)]
        read = {node.id for node in names_in if isinstance(node.ctx, ast.Load)}
        stored = {node.id for node in names_in if not isinstance(node.ctx, ast.Load)}
        initial = {
            node.id
            for node in ast.walk(function)
            if isinstance(node, ast.Name) and node.id not in stored and isinstance(node.ctx, ast.Store)
        }
        change = read & initial
    return _Lacks(frozenset(empty - filled), frozenset(change))


_EMPTY = {"list", "dict", "set", "deque", "collections.deque"}

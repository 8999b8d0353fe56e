"""Tables of cases: the rows of a literal container, of a parameter decorator, of a loop."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agent_ls.guard.syntax import Expr, literal, name, substitute

MAX_ROWS = 200
_CONTAINERS = {"List.of", "Arrays.asList", "Set.of", "Stream.of", "Object.entries", "new List",
    "Arrays.stream", "IntStream.of",
               "frozenset", "set", "list", "tuple", "sorted", "reversed", "iter"}  # fmt: skip


def rows_of(over: Expr, language: str = "", target: Expr | None = None) -> list[Expr] | None:
    """The elements that a loop over `over` goes through; None where they aren't known, [] for none."""
    if over.op in ("list", "tuple", "set"):
        found: list[Expr] = []
        for arg in over.args:
            if arg.op == "spread":
                inner = rows_of(arg.args[0], language)
                if inner is None:
                    return None
                found += inner
            else:
                found.append(arg)
        if len(found) > MAX_ROWS:
            return None
        if language == "go" and target is not None and target.op == "tuple" and len(target.args) == 2:
            return [Expr("tuple", args=(literal(at), row), line=row.line) for at, row in enumerate(found)]
        return found
    if over.op == "dict":
        pairs = [arg for arg in over.args if arg.op == "pair"]
        if len(pairs) != len(over.args) or len(pairs) > MAX_ROWS:
            return None
        if language in ("go", "ruby"):
            return [Expr("tuple", args=pair.args, line=pair.line) for pair in pairs]
        return [pair.args[0] for pair in pairs]
    if over.op == "lit" and isinstance(over.value, str) and language == "python":
        return [literal(char, over.line) for char in over.value] if len(over.value) <= 40 else None
    if over.op == "bin" and over.name == "+":
        left, right = (rows_of(side, language, target) for side in over.args)
        return None if left is None or right is None else left + right
    if over.op == "comp":
        return _comprehension(over, language)
    if over.op == "call":
        return _by_call(over, language)
    return None


def _comprehension(comp: Expr, language: str) -> list[Expr] | None:
    if comp.name or len(comp.args) != 2:
        return None
    rows = rows_of(comp.args[1], language)
    target = comp.value if isinstance(comp.value, Expr) else name(comp.params[0])
    return [substitute(comp.args[0], bind(target, row)) for row in rows] if rows is not None else None


def _mapped(rows: list[Expr] | None, function: Expr) -> list[Expr] | None:
    """`[1, 2].map((n) => [n, n + 1])`."""
    body = function.body
    if rows is None or len(body) != 1 or body[0].kind not in ("return", "expr") or len(function.params) != 1:
        return None
    param = function.params[0]
    words = re.findall(r"\w+", param)
    target = name(param) if param.isidentifier() else Expr("tuple", args=tuple(map(name, words)))
    return [substitute(body[0].exprs[0], bind(target, row)) for row in rows]


def _by_call(over: Expr, language: str) -> list[Expr] | None:
    callee, head, args = over.callee, over.args[0], over.positional
    if (
        head.op == "attr"
        and head.name in ("map", "Select", "flatMap")
        and len(args) == 1
        and args[0].op == "func"
    ):
        rows = rows_of(head.args[0], language)
        body = args[0].body
        if (
            rows is None
            or len(body) != 1
            or body[0].kind not in ("return", "expr")
            or len(args[0].params) != 1
        ):
            return None
        param = args[0].params[0]
        words = re.findall(r"\w+", param)
        target = name(param) if param.isidentifier() else Expr("tuple", args=tuple(map(name, words)))
        return [substitute(body[0].exprs[0], bind(target, row)) for row in rows]
    if head.op == "attr" and not args:
        if head.name in ("items", "entries") and head.args[0].op == "dict":
            pairs = head.args[0].args
            if any(pair.op != "pair" for pair in pairs):
                return None
            return [Expr("tuple", args=pair.args, line=pair.line) for pair in pairs]
        if head.name in ("values",) and head.args[0].op == "dict":
            return [pair.args[-1] for pair in head.args[0].args]
        if head.name in ("iter", "into_iter", "keys", "toList", "stream", "iter_mut"):
            return rows_of(head.args[0], language)
    if callee == "enumerate" and args:
        rows = rows_of(args[0], language)
        return rows and [Expr("tuple", args=(literal(at), row), line=row.line) for at, row in enumerate(rows)]
    if callee == "zip" and len(args) >= 2:
        columns = [rows_of(arg, language) for arg in args]
        if any(column is None for column in columns):
            return None
        return [
            Expr("tuple", args=cells) for cells in zip(*(c for c in columns if c is not None), strict=False)
        ]
    if callee in _CONTAINERS or callee.endswith("Stream.of"):
        if len(args) == 1 and callee not in ("List.of", "Set.of", "Stream.of"):
            return rows_of(args[0], language)
        return list(args)
    return None


def bind(target: Expr, value: Expr) -> dict[str, Expr]:
    """Names of a target, and what they stand for after `target = value`."""
    if target.op == "name":
        return {target.name: value} if target.name != "_" else {}
    if target.op in ("tuple", "list"):
        found: dict[str, Expr] = {}
        known = value.args if value.op in ("tuple", "list") and len(value.args) == len(target.args) else None
        for at, part in enumerate(target.args):
            found.update(bind(part, known[at] if known else Expr("index", args=(value, literal(at)))))
        return found
    if target.op == "other":  # a pattern of a language: `{ a, b }`
        return {}
    if target.op == "attr" and target.args[0].op == "name" and target.args[0].name in ("self", "this"):
        return {}
    return {}


def row_bindings(params: Sequence[str], row: Expr) -> Mapping[str, Expr]:
    """Parameters and their values in one row."""
    if len(params) == 1:
        only = row.args[0] if row.op in ("tuple", "list") and len(row.args) == 1 else row
        return {params[0]: only}
    if row.op in ("tuple", "list"):
        return dict(zip(params, row.args, strict=False))
    return {}

"""Edit operators on operators and conditions, and which operators a node gets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from agent_ls.repair._containers import comprehension_edits, container_edits, subscript_edits
from agent_ls.repair._maker import Maker
from agent_ls.repair._values import attribute_edits, constant_edits, name_edits
from agent_ls.repair.edits import Edit
from agent_ls.repair.kinds import expression_kind, negated
from agent_ls.repair.source import Source

COMPARE: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: (r"<(?!=)", "<"),
    ast.LtE: (r"<=", "<="),
    ast.Gt: (r">(?!=)", ">"),
    ast.GtE: (r">=", ">="),
    ast.Eq: (r"==", "=="),
    ast.NotEq: (r"!=", "!="),
    ast.Is: (r"\bis\b(?!\s+not\b)", "is"),
    ast.IsNot: (r"\bis\s+not\b", "is not"),
    ast.In: (r"\bin\b", "in"),
    ast.NotIn: (r"\bnot\s+in\b", "not in"),
}
_COMPARE_SWAPS: dict[str, tuple[tuple[str, float], ...]] = {
    "<": (("<=", 1), (">", 0.8), (">=", 0.6), ("==", 0.2), ("!=", 0.4)),
    "<=": (("<", 1), (">=", 0.8), (">", 0.6), ("==", 0.3), ("!=", 0.2)),
    ">": ((">=", 1), ("<", 0.8), ("<=", 0.6), ("==", 0.2), ("!=", 0.4)),
    ">=": ((">", 1), ("<=", 0.8), ("<", 0.6), ("==", 0.3), ("!=", 0.2)),
    "==": (("!=", 1), ("is", 0.3), ("<=", 0.5), (">=", 0.5), ("in", 0.5), ("<", 0.3), (">", 0.3)),
    "!=": (("==", 1), ("is not", 0.3), ("<", 0.4), (">", 0.4), ("not in", 0.5), ("<=", 0.2), (">=", 0.2)),
    "is": (("is not", 1), ("==", 1)),
    "is not": (("is", 1), ("!=", 1)),
    "in": (("not in", 1), ("==", 0.4)),
    "not in": (("in", 1), ("!=", 0.4)),
}
BINARY: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: (r"\+", "+"),
    ast.Sub: (r"-", "-"),
    ast.Mult: (r"\*(?!\*)", "*"),
    ast.Div: (r"/(?!/)", "/"),
    ast.FloorDiv: (r"//", "//"),
    ast.Mod: (r"%", "%"),
    ast.Pow: (r"\*\*", "**"),
    ast.BitAnd: (r"&", "&"),
    ast.BitOr: (r"\|", "|"),
    ast.BitXor: (r"\^", "^"),
    ast.LShift: (r"<<", "<<"),
    ast.RShift: (r">>", ">>"),
    ast.MatMult: (r"@", "@"),
}
_BINARY_SWAPS: dict[str, tuple[tuple[str, float], ...]] = {
    "+": (("-", 1), ("*", 0.5), ("|", 0.1), ("%", 0.1)),
    "-": (("+", 1), ("*", 0.2), ("/", 0.2), ("%", 0.2), ("//", 0.2)),
    "*": (("+", 0.6), ("**", 0.6), ("/", 0.6), ("//", 0.5), ("-", 0.3)),
    "/": (("//", 1), ("*", 0.7), ("%", 0.5), ("-", 0.2)),
    "//": (("/", 1), ("%", 0.7), ("*", 0.5), ("-", 0.2)),
    "%": (("//", 1), ("/", 0.5), ("-", 0.2), ("+", 0.1)),
    "**": (("*", 1), ("+", 0.2)),
    "&": (("|", 1), ("^", 0.8), ("-", 0.2)),
    "|": (("&", 1), ("^", 0.8), ("+", 0.2)),
    "^": (("&", 1), ("|", 0.9), ("**", 0.9)),
    "<<": ((">>", 1),),
    ">>": (("<<", 1),),
    "@": (("*", 0.5),),
}


def expression_edits(make: Maker, node: ast.expr) -> Iterator[Edit]:
    """Edits of one expression node (its children are visited apart)."""
    if isinstance(node, ast.Compare):
        yield from _compare(make, node)
    elif isinstance(node, ast.BinOp):
        yield from _binary(make, node)
    elif isinstance(node, ast.BoolOp):
        yield from _boolean(make, node)
    elif isinstance(node, ast.UnaryOp):
        operand = make.operand(node.operand)
        name = "negate-condition" if isinstance(node.op, ast.Not) else "drop-unary"
        yield make.replace(node, operand, name, 0.6)
    elif isinstance(node, ast.Constant):
        yield from constant_edits(make, node)
    elif isinstance(node, ast.Name):
        yield from name_edits(make, node)
    elif isinstance(node, ast.Attribute):
        yield from attribute_edits(make, node)
    elif isinstance(node, ast.Subscript):
        yield from subscript_edits(make, node)
    elif isinstance(node, ast.IfExp):
        body, test, other = make.operand(node.body), make.operand(node.test), make.operand(node.orelse)
        yield make.replace(node, f"{other} if {test} else {body}", "swap-branches", 0.5)
        yield make.replace(node, body, "pick-branch", 0.2)
        yield make.replace(node, other, "pick-branch", 0.2)
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
        yield from comprehension_edits(make, node)
    elif isinstance(node, ast.List | ast.Tuple | ast.Dict | ast.Set):
        yield from container_edits(make, node)
    elif isinstance(node, ast.Yield) and node.value is not None:
        yield make.replace(node, f"yield from {make.source.get(node.value)}", "yield-from", 0.4)
    elif isinstance(node, ast.YieldFrom):
        yield make.replace(node, f"yield {make.source.get(node.value)}", "yield-from", 0.5)
    elif isinstance(node, ast.Await):
        yield make.replace(node, make.source.get(node.value), "drop-await", 0.2)
    elif isinstance(node, ast.Lambda):
        parameters = [argument.arg for argument in node.args.args]
        for name in parameters:
            if make.source.get(node.body) != name:
                yield make.replace(node.body, name, "lambda-body", 0.1)


def _compare(make: Maker, node: ast.Compare) -> Iterator[Edit]:
    sides = [node.left, *node.comparators]
    for index, op in enumerate(node.ops):
        pattern, name = COMPARE[type(op)]
        between = _gap(make.source, sides[index], sides[index + 1])
        found = re.search(pattern, make.source.text[between[0] : between[1]])
        if found is None:
            continue
        a, b = between[0] + found.start(), between[0] + found.end()
        for new, weight in _COMPARE_SWAPS[name]:
            yield make.splice(a, b, new, "compare-operator", 0.9 * weight, f"`{name}` → `{new}`")
    last = node.comparators[-1]
    if len(node.ops) == 1 and isinstance(last, ast.Constant) and type(last.value) is int:
        name = COMPARE[type(node.ops[0])][1]
        for new, _ in _COMPARE_SWAPS.get(name, ())[:5]:
            for number in (last.value + 1, last.value - 1):
                if new in ("<", "<=", ">", ">=", "==", "!="):
                    both = f"{make.operand(node.left)} {new} {number}"
                    yield make.replace(node, both, "compare-constant", 0.15)
    if len(node.ops) == 1:
        left, right = make.operand(node.left), make.operand(node.comparators[0])
        op_text = COMPARE[type(node.ops[0])][1]
        if op_text in ("in", "not in"):
            yield make.replace(node, f"{right} {op_text} {left}", "swap-operands", 0.2)
        if op_text in ("==", "!="):
            for method in (".lower()", ".strip()"):
                yield make.replace(
                    node, f"{left}{method} {op_text} {right}{method}", "normalise-compare", 0.04
                )
        if op_text in ("<", "<=", ">", ">="):
            yield make.replace(node.left, f"abs({make.source.get(node.left)})", "wrap-call", 0.1)


def _gap(source: Source, left: ast.expr, right: ast.expr) -> tuple[int, int]:
    return source.span(left)[1], source.span(right)[0]


def _binary(make: Maker, node: ast.BinOp) -> Iterator[Edit]:
    pattern, name = BINARY[type(node.op)]
    between = _gap(make.source, node.left, node.right)
    found = re.search(pattern, make.source.text[between[0] : between[1]])
    if found is not None:
        a, b = between[0] + found.start(), between[0] + found.end()
        for new, weight in _BINARY_SWAPS[name]:
            yield make.splice(a, b, new, "arithmetic-operator", 0.7 * weight, f"`{name}` → `{new}`")
    left, right = make.operand(node.left), make.operand(node.right)
    yield make.replace(node, left, "drop-term", 0.45)
    yield make.replace(node, right, "drop-term", 0.35)
    if name not in ("+", "*", "&", "|", "^") or expression_kind(node) != "num":
        yield make.replace(node, f"{right} {name} {left}", "swap-operands", 0.35)
    yield from _regroup(make, node)


def _regroup(make: Maker, node: ast.BinOp) -> Iterator[Edit]:
    """a * b + c -> a * (b + c) and a - b * c -> (a - b) * c, also over longer chains."""
    text = make.source.text
    start, end = make.source.span(node)
    leaf: ast.expr = node.left
    while isinstance(leaf, ast.BinOp):
        leaf = leaf.right
        at = make.source.span(leaf)[0]
        yield make.replace(node, make.fit(node, f"{text[start:at]}({text[at:end]})"), "regroup", 0.3)
    leaf = node.right
    while isinstance(leaf, ast.BinOp):
        leaf = leaf.left
        at = make.source.span(leaf)[1]
        yield make.replace(node, make.fit(node, f"({text[start:at]}){text[at:end]}"), "regroup", 0.3)


def _boolean(make: Maker, node: ast.BoolOp) -> Iterator[Edit]:
    name = "and" if isinstance(node.op, ast.And) else "or"
    other = "or" if name == "and" else "and"
    values = [make.operand(value) for value in node.values]
    yield make.replace(node, make.fit(node, f" {other} ".join(values)), "and-or", 0.8)
    for index in range(len(values)):
        rest = values[:index] + values[index + 1 :]
        new = f" {name} ".join(rest)
        yield make.replace(node, make.fit(node, new) if len(rest) > 1 else new, "drop-condition", 0.4)
    yield make.replace(node, make.fit(node, f" {name} ".join(reversed(values))), "swap-operands", 0.2)


def _dereferenced(make: Maker, test: ast.expr) -> list[str]:
    """What the condition takes an attribute or an item of, or passes to `len`: it may be None or empty."""
    found: dict[str, None] = {}
    for node in ast.walk(test):
        value = None
        if isinstance(node, ast.Attribute | ast.Subscript):
            value = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
            value = node.args[0] if node.args else None
        if isinstance(value, ast.Name | ast.Attribute | ast.Subscript):
            text = make.source.get(value)
            if text not in ("self", "cls") and "\n" not in text and text not in make.scope.imported:
                found.setdefault(text)
    return list(found)[:4]


def condition_edits(make: Maker, test: ast.expr) -> Iterator[Edit]:
    """Edits of an expression that is used as a condition."""
    text = make.source.get(test)
    multiline = "\n" in text
    yield make.replace(test, f"not ({text})" if multiline else negated(test, text), "negate-condition", 0.6)
    operand = f"({text})" if multiline or isinstance(test, ast.BoolOp | ast.IfExp | ast.Lambda) else text
    for value in _dereferenced(make, test):
        for check, prior in (
            (f"{value} is None or", 0.45),
            (f"{value} is not None and", 0.45),
            (f"not {value} or", 0.3),
            (f"{value} and", 0.3),
        ):
            yield make.replace(test, make.fit(test, f"{check} {operand}"), "none-check", prior)
    for index, (condition, weight) in enumerate(make.scope.conditions[:160]):
        if condition == text:
            continue
        prior = 0.22 * weight / (1 + index / 40)
        yield make.replace(test, make.fit(test, f"{operand} and {condition}"), "add-condition", prior)
        yield make.replace(test, make.fit(test, f"{operand} or {condition}"), "add-condition", prior)
        if index < 100:
            yield make.replace(test, make.fit(test, condition), "replace-condition", prior * 0.7)
        if index < 40:
            yield make.replace(
                test, make.fit(test, f"{condition} and {operand}"), "add-condition", prior * 0.7
            )
    if not isinstance(test, ast.Constant):
        yield make.replace(test, "True", "constant-condition", 0.05)
        yield make.replace(test, "False", "constant-condition", 0.05)

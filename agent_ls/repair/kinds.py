"""Rough kinds of expressions by their form, and the opposite of a condition."""

from __future__ import annotations

import ast


def negated(test: ast.expr, text: str) -> str:
    """The opposite condition, as a person would write it."""
    flips: dict[type[ast.cmpop], str] = {
        ast.Eq: "!=",
        ast.NotEq: "==",
        ast.Lt: ">=",
        ast.GtE: "<",
        ast.Gt: "<=",
        ast.LtE: ">",
        ast.Is: "is not",
        ast.IsNot: "is",
        ast.In: "not in",
        ast.NotIn: "in",
    }
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return f"{ast.unparse(test.left)} {flips[type(test.ops[0])]} {ast.unparse(test.comparators[0])}"
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return ast.unparse(test.operand)
    if isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        return f"not {text}"
    return f"not ({text})"


def expression_kind(node: ast.AST) -> str:
    """Rough kind of an expression by its form."""
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool):
            return "bool"
        if isinstance(value, int | float | complex):
            return "num"
        if isinstance(value, str):
            return "str"
        return "none" if value is None else ""
    if isinstance(node, ast.List | ast.ListComp | ast.Tuple):
        return "list"
    if isinstance(node, ast.Dict | ast.DictComp):
        return "dict"
    if isinstance(node, ast.Set | ast.SetComp):
        return "set"
    if isinstance(node, ast.JoinedStr):
        return "str"
    if isinstance(node, ast.Compare | ast.BoolOp) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    ):
        return "bool"
    if isinstance(node, ast.BinOp):
        left, right = expression_kind(node.left), expression_kind(node.right)
        if left in ("str", "list") or right in ("str", "list"):
            return left if left in ("str", "list") else right
        return "num" if not isinstance(node.op, ast.Add | ast.Mod) or "num" in (left, right) else ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return {
            "len": "num",
            "int": "num",
            "sum": "num",
            "abs": "num",
            "ord": "num",
            "str": "str",
            "list": "list",
            "sorted": "list",
            "dict": "dict",
            "set": "set",
            "tuple": "list",
        }.get(node.func.id, "")
    if isinstance(node, ast.Lambda):
        return "call"
    return ""

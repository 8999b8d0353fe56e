"""Makes edits of one statement; helpers that all operators share."""

from __future__ import annotations

import ast
import re

from agent_ls.repair.edits import Edit
from agent_ls.repair.scope import Scope
from agent_ls.repair.source import Source

_TIGHT = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Attribute, ast.Await, ast.Starred, ast.IfExp)
_LOOSE = (ast.BinOp, ast.BoolOp, ast.Compare, ast.UnaryOp, ast.IfExp, ast.Lambda, ast.NamedExpr, ast.Tuple)


class Maker:
    """Makes edits of one statement: keeps the source, the scope and the statement's line."""

    def __init__(self, source: Source, scope: Scope, line: int) -> None:
        self.source = source
        self.scope = scope
        self.line = line

    def replace(self, node: ast.AST, new: str, operator: str, prior: float, what: str = "") -> Edit:
        start, end = self.source.span(node)
        old = self.source.text[start:end]
        return self.splice(start, end, new, operator, prior, what or f"`{short(old)}` → `{short(new)}`")

    def splice(self, start: int, end: int, new: str, operator: str, prior: float, what: str) -> Edit:
        return Edit(self.line, start, end, new, operator, what, prior)

    def fit(self, node: ast.AST, new: str) -> str:
        """`new`, in parentheses when the place of `node` needs them."""
        parent = self.source.parents.get(node)
        tight = isinstance(parent, _TIGHT) or (
            isinstance(parent, ast.Subscript | ast.Call)
            and not (
                (isinstance(parent, ast.Subscript) and node is parent.slice)
                or (isinstance(parent, ast.Call) and node is not parent.func)
            )
        )
        return f"({new})" if tight else new

    def operand(self, node: ast.expr) -> str:
        """The text of `node`, in parentheses when it is compound."""
        text = self.source.get(node)
        return f"({text})" if isinstance(node, _LOOSE) or "\n" in text else text


def short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:57]}…"


def quoted(value: str, like: str) -> str:
    """A string literal in the quotes that the literal `like` has, where that is simple."""
    text = repr(value)
    if like.startswith('"') and text.startswith("'") and '"' not in text:
        return f'"{text[1:-1]}"'
    return text


def similarity(a: str, b: str) -> float:
    """Jaccard index of the identifiers and operators of two texts (0..1)."""
    left, right = set(re.findall(r"\w+|[^\w\s]", a)), set(re.findall(r"\w+|[^\w\s]", b))
    return len(left & right) / max(1, len(left | right))

"""What is lost between two assertions, in data."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from agent_ls.guard.syntax import Expr

Severity = Literal["block", "review", "info"]


@frozen
class Loss:
    """What is lost from the old assertion to the new one."""

    kind: str
    severity: Severity
    message: str


def short(expr: Expr) -> str:
    """An expression for people."""
    return expr.text if len(expr.text) <= 80 else expr.text[:77] + "…"

"""Does an assertion accept more errors than another?"""

from __future__ import annotations

import builtins
import re

from agent_ls.guard.checks import Check, canon
from agent_ls.guard.losses import Loss, short
from agent_ls.guard.syntax import Expr
from agent_ls.guard.vocabulary import BROAD


def errors_loss(old: Check, new: Check) -> Loss | None:
    if _broad(new.expected) and not _broad(old.expected):
        return Loss(
            "error-widened",
            "block",
            f"any error is accepted instead of {short(old.expected) if old.expected else ''}",
        )
    one, two = old.expected, new.expected
    if not _broad(one) and one is not None and two is not None and canon(one) != canon(two):
        kinds = {canon(arg) for arg in two.args} if two.op in ("tuple", "list") else {canon(two)}
        if canon(one) in kinds or _ancestor(two, one):
            return Loss("error-widened", "block", f"{short(two)} is accepted instead of {short(one)}")
        if _last(one) != _last(two):
            return Loss(
                "expected-value-changed", "review", f"the expected error was {short(one)}, now {short(two)}"
            )
    if old.message and not new.message:
        return Loss(
            "error-widened",
            "block",
            f"the error's text or details ({old.message[:60]}) are no longer checked",
        )
    if old.message and new.message != old.message:
        plain_old, plain_new = plain_text(old.message), plain_text(new.message)
        if plain_new == plain_old:
            return None
        if plain_old in plain_new:
            return None
        if (len(plain_new) < len(plain_old) and plain_new.strip(".*") in plain_old) or accepts(
            new.message, plain_old
        ):
            return Loss(
                "pattern-loosened", "block", f"only {new.message[:60]} of {old.message[:60]} is demanded"
            )
        return Loss(
            "expected-text-changed",
            "review",
            f"the expected text {old.message[:60]} became {new.message[:60]}",
        )
    return None


def plain_text(message: str) -> str:
    """The text that a pattern stands for, as far as it is one: without quotes, anchors and backslashes."""
    found = re.sub(r"\\\\?[AZbz]|\\|^['/^f(]+|['/$)]+$|re\.escape\(", "", message)
    return re.sub(r"'?, '?|^\^|\$$", "", found).strip("^$'")


def accepts(message: str, text: str) -> bool:
    """Does a pattern (in its normal form) match a text? False for what is no pattern."""
    pattern = re.sub(r"^['/]|['/]$", "", message).replace("\\\\", "\\")
    if len(pattern) > 200 or not re.search(r"[.*+?|\[(]|\\[dwsS]", pattern):
        return False
    try:
        return re.search(pattern, text) is not None
    except (re.error, RecursionError):
        return False


def _last(kind: Expr) -> str:
    return re.split(r"[.:]", kind.text.removesuffix(".class").removesuffix(".class()"))[-1]


def _broad(kind: Expr | None) -> bool:
    if kind is None:
        return True
    if kind.op in ("tuple", "list"):
        return any(_broad(arg) for arg in kind.args)
    return kind.text.lower() in BROAD


_UNCHECKED = {"RuntimeException", "SystemException", "ApplicationException", "StandardError", "IOException"}
"""Errors of Java, C# and Ruby from which most others come."""


def _ancestor(wide: Expr, narrow: Expr) -> bool:
    if _last(wide) in _UNCHECKED and _last(narrow) not in _UNCHECKED:
        return True
    one, two = getattr(builtins, wide.text, None), getattr(builtins, narrow.text, None)
    if isinstance(one, type) and isinstance(two, type):
        return issubclass(two, one)
    return (
        isinstance(one, type)
        and one in (ValueError, TypeError, OSError, LookupError, RuntimeError, ArithmeticError)
        and two is None
    )

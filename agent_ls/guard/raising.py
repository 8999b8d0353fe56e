"""What must be raised: `pytest.raises(E, match=…)`, `assertThrows`, `toThrow`, `require.ErrorIs`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agent_ls.guard.checks import Check, nothing
from agent_ls.guard.syntax import Expr, Stmt, literal, name

_RAISING_CALLS = re.compile(r"^(?:panic!|unreachable!|raise|Kernel\.raise|fail!|unimplemented!|todo!)$")
_WITH_FUNCTION = {"raises", "assertraises", "assertraisesregex", "assertthrows", "warns", "assertwarns"}
"""Calls that take the error, then the function and its arguments."""


def body_of(expr: Expr) -> Expr:
    """What runs inside a function that is given to an assertion, as one expression."""
    if expr.op != "func":
        return expr
    parts = tuple(part for stmt in expr.body for inner in stmt.walk() for part in inner.exprs[-1:])
    return parts[0] if len(parts) == 1 else Expr("other", "run", parts, line=expr.line)


def raises_itself(body: Iterable[Stmt]) -> bool:
    """Does code that must raise do it with a statement of its own, whatever it calls?"""
    for stmt in body:
        if stmt.kind == "raise" and stmt.exprs:
            return True
        if stmt.kind in ("block", "with", "return") and raises_itself(stmt.body):
            return True
        if stmt.kind in ("expr", "return") and any(
            e.op == "call" and _RAISING_CALLS.match(e.callee) for e in stmt.exprs
        ):
            return True
    return False


def own_error(subject: Expr) -> Check:
    """The check that code raises an error, where the test itself raises it."""
    return nothing(subject, "the test raises the error itself")


def raises_by_call(expr: Expr, relation: str, args: list[Expr], last: str) -> list[Check]:
    """Checks of a call that demands an error, or none (`relation` "runs").

    Args:
        args: its positional arguments without a test object.
        last: the last part of what is called.
    """
    line = expr.line
    generic = re.search(r"<(.+)>", last)
    codes = [arg for arg in args if arg.op == "func"]
    code = codes[0] if codes else None
    others = [arg for arg in args if arg is not code]
    if relation == "runs":
        subject = body_of(code) if code is not None else args[0]
        if last.startswith("NoError"):  # Go: the error is a value
            return [Check("equal", subject, subject, literal(None), line=line)]
        return [Check("runs", subject, subject, line=line)]
    kind: Expr | None = name(generic.group(1)) if generic else None
    message = ""
    if relation in ("errs", "erris"):
        subject = args[0]
        if last in ("Error", "Errorf"):
            return [Check("defined", subject, subject, line=line)]
        if relation == "erris":
            kind = args[1] if len(args) > 1 else None
        elif len(args) > 1 and last in ("ErrorContains", "EqualError"):
            message = args[1].text
        return [Check("raises", subject, subject, kind, line=line, message=message)]
    if code is not None and raises_itself(code.body):
        return [own_error(body_of(code))]
    if code is None and len(others) > 1 and last.lower() in _WITH_FUNCTION:
        kind = others[0]
        target = others[2:] if "regex" in last.lower() else others[1:]
        code = Expr("call", args=(target[0], *target[1:])) if target else None
        message = others[1].text if "regex" in last.lower() else ""
        others = []
    elif code is None and others:
        code, others = others[0], others[1:]
    for other in others:
        if other.op == "func":
            message += other.text
        elif other.op in ("lit", "regex", "fstr", "dict"):
            if not (
                isinstance(other.value, str)
                and last in ("throws", "rejects")
                and other is others[-1]
                and len(others) > 1
            ):
                message += other.text
        elif kind is None:
            kind = other
    if len(codes) > 1:  # node's predicate
        message += codes[1].text
    subject = body_of(code) if code is not None else name("?")
    return [Check("raises", subject, subject, kind, line=line, message=demanded_text(message))]


def demanded_text(message: str) -> str:
    """`message`, or "" for a pattern that every text has."""
    plain = re.sub(r"^'(?:\(\?\w+\))?|^/|'$|/\w*$", "", message)
    return "" if any(re.fullmatch(r"\^?\(?\.?[*+]?\)?\$?", part) for part in plain.split("|")) else message

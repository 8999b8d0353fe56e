"""What must be raised: `pytest.raises(E, match=…)`, `assertThrows`, `toThrow`, `require.ErrorIs`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agent_ls.guard.checks import Check, nothing
from agent_ls.guard.conditions import demands, matches_everything
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
        if stmt.kind in ("block", "return") and raises_itself(stmt.body):
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
        there = Check("defined", subject, subject, line=line)
        if last in ("Error", "Errorf"):
            return [there]
        if last in ("ErrorContains", "EqualError", "ErrorContainsf", "EqualErrorf") and len(args) > 1:
            text = Expr("call", args=(Expr("attr", "Error", (subject,)),), line=line)
            relation = "contains" if "Contains" in last else "equal"
            return [there, Check(relation, text, text, args[1], line=line)]
        if relation == "erris":
            kind = args[1] if len(args) > 1 else None
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
    others = [other for other in others if not (other.op == "lit" and other.value is None)] or others[:0]
    trailing = len(args) > 2
    for other in others:
        if other.op == "func":
            if other is codes[-1] and len(codes) > 1:
                continue
            message += other.text
        elif other.op == "dict" and kind is None and (label := _field(other, "name")) is not None:
            kind = name(str(label.value))
            message += other.text
        elif other.op in ("lit", "regex", "fstr", "dict"):
            if not (
                isinstance(other.value, str)
                and last in ("throws", "rejects")
                and other is others[-1]
                and (len(others) > 1 or trailing)
            ):
                message += other.text
        elif kind is None:
            kind = other
    if len(codes) > 1:  # a predicate about the error
        for part in (e for stmt in codes[1].body if stmt.kind == "return" for e in stmt.exprs):
            for check in demands(part):
                if check.relation == "type" and check.expected is not None and kind is None:
                    kind = check.expected
                elif check.expected is not None and check.relation in ("equal", "contains", "regex"):
                    message += check.expected.text
                elif check.relation != "nothing":
                    message += check.subject.text
    subject = body_of(code) if code is not None else name("?")
    return [Check("raises", subject, subject, kind, line=line, message=demanded_text(message))]


def _field(table: Expr, key: str) -> Expr | None:
    found = (p.args[1] for p in table.args if p.op == "pair" and p.args[0].value == key)
    return next((value for value in found if isinstance(value.value, str)), None)


def demanded_text(message: str) -> str:
    """`message`, or "" for a pattern that every text has."""
    if message[:1] not in ("'", '"', "/"):
        return message
    return "" if matches_everything(re.sub(r"^['\"/]|['\"]$|/\w*$", "", message)) else message

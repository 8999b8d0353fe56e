"""Which calls a double must have had: unittest.mock, Mockito, Moq, rspec.

Each comes out as two checks where it demands two things: that the call was made with certain arguments
("called-with"), and how often ("called-n").
"""

from __future__ import annotations

import re

from attrs import evolve

from agent_ls.guard.checks import Check, nothing
from agent_ls.guard.syntax import Expr, literal, name

_ONCE = {"once", "exactly_once", "Once"}
_AT_LEAST = {"atLeastOnce", "at_least", "AtLeastOnce", "AtLeast", "atLeast", "at_least_once"}
_AT_MOST = {"AtMost", "AtMostOnce", "atMost", "atMostOnce", "at_most"}


def python_mock(expr: Expr, relation: str, last: str) -> list[Check]:
    """`mock.assert_called_once_with(…)` and its kin."""
    target, line = expr.args[0].args[0], expr.line
    if relation == "called-with":
        found = [_with(target, expr.args[1:], line)]
        if "once" in last:
            found.append(Check("called-n", target, target, literal(1), line=line))
        elif "any" in last:
            found = [evolve(check, strict=-1) for check in found]
        elif "has_calls" not in last:
            found = [evolve(check, strict=1) for check in found]
        return found
    if relation == "called-n":
        return [Check("called-n", target, target, literal(1), line=line)]
    return [Check(relation, target, target, line=line)]


def _with(target: Expr, args: tuple[Expr, ...], line: int) -> Check:
    return Check("called-with", target, target, Expr("list", args=tuple(args), line=line), line=line)


def _times(mode: Expr | None, target: Expr, line: int) -> list[Check] | None:
    """How often, by a mode such as `times(2)` or `Times.Once`; None where the call must not be made."""
    once = [Check("called-n", target, target, literal(1), line=line)]
    if mode is None:
        return once
    callee = mode.callee if mode.op == "call" else mode.text
    word = callee.rpartition(".")[2]
    number = mode.positional[0].value if mode.op == "call" and mode.positional else None
    if word in ("never", "Never") or (word in ("times", "Exactly", "calls") and number == 0):
        return None
    if word in ("times", "Exactly", "calls"):
        return [Check("called-n", target, target, mode.positional[0] if number else literal(1), line=line)]
    if word in _ONCE or word == "only":
        return once
    if word in _AT_LEAST:
        return [] if number != 0 else [nothing(target, "no call at all is enough")]
    if word in _AT_MOST:
        return [nothing(target, "no call at all is enough")]
    return once


def mockito(given: tuple[Expr, ...], call: Expr | None, line: int) -> list[Check]:
    """`verify(double, mode).method(args)`; `call` is None where no method follows."""
    if call is None:
        return [nothing(given[0], "no call is demanded")]
    target = Expr("attr", call.callee.rpartition(".")[2], (given[0],), line=line)
    often = _times(given[1] if len(given) > 1 else None, target, line)
    if often is None:
        return [Check("not-called", target, target, Expr("list", args=call.args[1:]), line=line)]
    if any(check.relation == "nothing" for check in often):
        return often
    return [_with(target, call.args[1:], line), *often]


def moq(double: Expr, args: tuple[Expr, ...], line: int) -> list[Check] | None:
    """`mock.Verify(c => c.Post("hi", 3), Times.Once)`; None for something else that is named Verify."""
    if not args:
        return [Check("holds", double, double, name("Verify"), line=line)]
    code = args[0]
    calls = [e for stmt in code.body for e in stmt.exprs if e.op == "call"] if code.op == "func" else []
    if not calls:
        return None
    mode = args[1] if len(args) > 1 else Expr("attr", "AtLeastOnce", (name("Times"),))
    return mockito((double, mode), calls[-1], line)


def received(double: Expr, matcher: Expr, deny: bool, line: int) -> list[Check] | None:
    """rspec's `expect(double).to receive(:post).with(…).twice`; None for another matcher."""
    links: list[tuple[str, tuple[Expr, ...]]] = []
    at = matcher
    while True:
        if at.op == "call" and at.args[0].op == "attr":
            links.append((at.args[0].name, at.args[1:]))
            at = at.args[0].args[0]
        elif at.op == "attr":
            links.append((at.name, ()))
            at = at.args[0]
        else:
            break
    if at.op != "call" or at.callee not in ("receive", "have_received") or not at.positional:
        return None
    own = str(at.positional[0].value).lstrip(":")
    target = Expr("attr", own, (double,), line=line)
    if deny:
        return [Check("not-called", target, target, line=line)]
    words = dict(links)
    found = []
    given = words.get("with")
    if given and not any(re.match(r"any_args|no_args", arg.text) for arg in given):
        found.append(_with(target, given, line))
    if not any(word.startswith(("at_least", "at_most")) for word in words):
        times = {"twice": 2, "thrice": 3}.get(next((w for w in words if w in ("twice", "thrice")), ""), 1)
        number = words.get("exactly") or (literal(times),)
        found.append(Check("called-n", target, target, number[0], line=line))
    elif not any(word.startswith("at_most") for word in words):
        found.append(Check("called", target, target, line=line))
    return found or [nothing(target, "no call at all is enough")]

"""Calls that assert: `self.assertEqual(a, b)`, `expect(x).toBe(y)`, `assertThat(x).isEqualTo(y)`,
`assert_eq!(a, b)`."""

from __future__ import annotations

import re

from attrs import evolve

from agent_ls.guard.checks import Check, nothing, oriented
from agent_ls.guard.conditions import demands, equality, matches_all, number, simple
from agent_ls.guard.fluent import by_chain, chain_of, that
from agent_ls.guard.raising import raises_by_call
from agent_ls.guard.syntax import Expr, name
from agent_ls.guard.verified import moq, python_mock
from agent_ls.guard.vocabulary import CALLS, FAILURES, MOCKS, fold

_RECEIVERS = re.compile(
    r"^(?:self|this|cls|assert|Assert|require|Assertions|t|is|chai\.assert|CollectionAssert|StringAssert|s|suite"
    r"|np\.testing|npt|numpy\.testing|pd\.testing|tm|unittest\.TestCase|testCase|tc|self\.\w*[tT]est\w*|assert\.strict"
    r"|unittest\.TestCase\(\)|TestCase\(\)|s\.Require\(\)|s\.Assert\(\)|testing|Test|\w*TestUtils?|assertions|expect|pytest|td|qt|c|ctx|TestCase|a)$"
)
_COMPILED_AWAY = ("Debug", "Trace", "Contract")
"""Their assertions say nothing in a release build, and little in a test."""
_PLAIN = re.compile(r"^(?:assert\w*|refute\w*|flunk|debug_assert\w*)!?$|^prop_assert\w*!$")


def is_failure(expr: Expr) -> bool:
    """Does reaching this call make the test fail?"""
    if expr.op == "await":
        return is_failure(expr.args[0])
    return (
        expr.op == "call"
        and FAILURES.search(expr.callee) is not None
        and not (
            expr.callee.startswith(("assert.Error", "require.Error", "expect."))
            or expr.callee == "assert.Errorf"
        )
    )


def recognise(expr: Expr) -> list[Check] | None:
    """The checks that an expression statement makes; None when it is no assertion."""
    if expr.op == "await":
        return recognise(expr.args[0])
    chain = chain_of(expr)
    if chain is not None:
        return by_chain(*chain)
    if expr.op != "call":
        return None
    callee, last = expr.callee, expr.callee.rpartition(".")[2]
    receiver = callee.rpartition(".")[0]
    if fold(last) in MOCKS and receiver and last.startswith("assert_"):
        return python_mock(expr, MOCKS[fold(last)], last)
    if receiver and last in ("Verify", "VerifyAll") and expr.args[0].op == "attr" and receiver[:1].islower():
        return moq(expr.args[0].args[0], expr.args[1:], expr.line)
    if receiver in _COMPILED_AWAY:
        return None
    known = CALLS.get(fold(last))
    if known is None:
        return None
    if receiver:
        if not _RECEIVERS.match(receiver) and not (
            last.lower().startswith("assert") and receiver[:1].isupper()
        ):
            return None
        if receiver in ("t", "is", "s", "a", "c", "tc", "expect", "testing", "b") and last in (
            "Error", "Errorf", "Fatal", "Fatalf", "Run", "is", "match"):  # fmt: skip
            if last in ("is", "match") and len(expr.args) > 2:
                pass
            else:
                return None
    elif not _PLAIN.match(last) and last != "fail":
        return None
    strict = {"strictEqual": 1, "deepStrictEqual": 1, "equal": -1, "deepEqual": -1}.get(last, 0)
    made = _by_word(expr, known, last)
    return [evolve(check, strict=strict) for check in made] if made and strict else made


def _by_word(expr: Expr, relation: str, last: str) -> list[Check] | None:
    args = list(expr.positional)
    line = expr.line
    if args and args[0].op == "name" and args[0].name in ("t", "s", "tb", "b") and "." in expr.callee:
        args = args[1:]  # testify
    if args and args[0].op == "call" and args[0].callee in ("s.T", "suite.T"):
        args = args[1:]
    if not args:
        return [] if relation != "fail" else None
    if relation in ("true", "false", "raises") and len(args) >= 2 and last in ("That", "assertThat"):
        return that(args, line)
    if last in ("assert_operator", "refute_operator") and len(args) > 2 and isinstance(args[1].value, str):
        test = Expr("cmp", args[1].value.lstrip(":"), (args[0], args[2]), line=line)
        return demands(test, last.startswith("assert"))
    if last in ("assert_predicate", "refute_predicate") and len(args) > 1:
        test = Expr("attr", str(args[1].value).lstrip(":"), (args[0],), line=line)
        return demands(test, last.startswith("assert"))
    if last == "assertThat":
        return [nothing(args[0], "nothing is demanded of it")]
    word = fold(last)
    if relation == "true" and len(args) > 1 and isinstance(args[0].value, str) and word == "asserttrue":
        args = args[1:]  # JUnit 4 puts the message first
    if word in ("assertequals", "assertequal", "equal") and len(args) >= 3:
        third = args[2]
        precise = isinstance(third.value, int | float) and not isinstance(third.value, bool)
        if precise and (
            isinstance(args[0].value, float)
            or isinstance(args[1].value, float)
            or last in ("Equal", "assertEquals")
        ):
            slack = 10.0 ** -float(third.value) if last == "Equal" else float(third.value)
            return [evolve(oriented("approx", args[0], args[1]), slack=slack, line=line)]
        if (
            isinstance(args[0].value, str)
            and not isinstance(third.value, str)
            and word == "assertequals"
            and third.op != "fstr"
        ):
            args = args[1:]
    if relation in ("raises", "errs", "erris", "runs"):
        return raises_by_call(expr, relation, args, last)
    return claim(relation, args, line, expr)


def claim(relation: str, args: list[Expr], line: int, whole: Expr) -> list[Check]:
    """Checks for a relation and its arguments, the subject among the first two."""
    deny = relation.startswith("!")
    bare = relation.removeprefix("!")
    first = args[0]
    second = args[1] if len(args) > 1 else None
    at: list[Check] = []
    if bare in ("true", "false"):
        at = demands(first, (bare == "true") != deny)
    elif bare == "equal" and second is not None:
        at = equality(first, second, line) if not deny else [oriented("!equal", first, second)]
    elif bare in ("null", "defined", "empty", "zero"):
        at = simple(relation, first, line)
    elif second is None:
        at = [Check(relation, first, first, line=line)]
    elif bare == "contains":
        container, item = (first, second)
        word = fold(whole.callee.rpartition(".")[2])
        if word in ("assertin", "assertnotin") or (
            word in ("contains", "doesnotcontain") and whole.callee.startswith("Assert.")
        ):
            container, item = second, first
        at = [Check(relation, container, container, item, line=line)]
        if item.value == "" and not deny:
            at = [nothing(whole, "every text contains the empty one")]
    elif bare == "approx":
        found = oriented("approx", first, second)
        places = whole.keyword("places") or (
            args[2] if len(args) > 2 and "almost" in whole.callee.lower() else None
        )
        delta = whole.keyword("delta") or (args[2] if len(args) > 2 and places is None else None)
        slack = number(delta, 0.0) if delta is not None else 10.0 ** -number(places, 7.0)
        if "allclose" in whole.callee:
            slack = max(number(whole.keyword("rtol"), 0.0), number(whole.keyword("atol"), 0.0)) or 1e-7
        at = [evolve(found, relation=relation, slack=slack)]
    elif bare == "length":
        size = Expr("call", args=(name("len"), first), line=line)
        at = [Check("equal", size, size, second, line=line)]
    elif bare == "regex":
        subject, pattern = (
            (second, first) if first.op in ("regex",) or _first_pattern(whole) else (first, second)
        )
        at = [Check(relation, subject, subject, pattern, line=line)]
        if not deny and matches_all(pattern):
            at = [nothing(whole, "its pattern matches everything")]
    elif bare == "type":
        subject, kind = (second, first) if _type_first(whole, first) else (first, second)
        at = [Check(relation, subject, subject, kind, line=line)]
        if kind.text == "object":
            at = [nothing(whole, "everything is an object")]
    else:
        at = (
            [evolve(oriented(relation, first, second))]
            if bare == "any-order"
            else [Check(relation, first, first, second, line=line)]
        )
    return [evolve(check, line=line) if not check.line else check for check in at]


def _first_pattern(whole: Expr) -> bool:
    return whole.callee.rpartition(".")[2] in (
        "assert_match",
        "refute_match",
        "Matches",
        "DoesNotMatch",
        "Regexp",
    )


def _type_first(whole: Expr, first: Expr) -> bool:
    last = whole.callee.rpartition(".")[2]
    return last in (
        "assert_instance_of",
        "assert_kind_of",
        "IsType",
        "assertInstanceOf",
        "IsAssignableFrom",
    ) or (first.text.endswith(".class"))

"""What a condition demands when it has to hold: `assert x == 3`, `if got != want { fail }`.

`demands` is recursive over and, or, not; everything that can't fail comes out as "nothing" with the reason.
"""

from __future__ import annotations

import re
from typing import Any

from attrs import evolve

from agent_ls.guard.checks import Check, canon, nothing, oriented
from agent_ls.guard.syntax import Expr, literal, name
from agent_ls.guard.tables import rows_of

_FLIPPED = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<", "is": "is not",
    "is not": "is",
            "in": "not in", "not in": "in"}  # fmt: skip
_SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ORDER = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_NEVER_NEGATIVE = re.compile(
    r"^(?:len|abs|length|count|size)\(|\.(?:len|length|count|size|Length|Count|Size)(?:\(\))?$"
)
_TYPO = re.compile(
    r"\.(?:called_\w*once\w*|called_with|called_once_with|has_calls|not_called|any_call|assert_?called_?once_?withs?"
    r"|asert_\w+|assret_\w+|called_once)\b"
)
_HOLDERS = {"contains", "includes", "include?", "Contains", "containsKey", "has", "contains_key",
    "ContainsKey",
            "startsWith", "startswith", "endswith", "endsWith", "starts_with", "ends_with", "start_with?",
            "end_with?",
            "HasPrefix", "HasSuffix", "StartsWith", "EndsWith", "key?", "hasOwnProperty",
            "containsValue"}  # fmt: skip


def demands(test: Expr, truth: bool = True) -> list[Check]:
    """The checks that hold exactly when `test` is `truth`."""
    match test.op:
        case "not":
            return demands(test.args[0], not truth)
        case "await":
            return demands(test.args[0], truth)
        case "and" | "or":
            if (test.op == "and") == truth:
                return [check for arg in test.args for check in demands(arg, truth)]
            return [_any_of(test, [demands(arg, truth) for arg in test.args])]
        case "cmp":
            return _comparison(test, test.name if truth else _FLIPPED.get(test.name, ""), truth)
        case "cond" if len(test.args) == 3:
            return _either(test, truth)
    if test.op in ("lit", "tuple", "list", "dict", "func", "regex", "fstr"):
        holds = _constant_truth(test)
        if holds is truth:
            return [nothing(test, "it is always true")]
        if holds is not None:
            return [Check("raises", test, test, literal("fails"), line=test.line)]
    if test.op == "call":
        found = _by_call(test, truth)
        if found is not None:
            return found
    if truth and test.op == "attr" and _TYPO.search(test.text) and not test.name.startswith("assert"):
        return [nothing(test, "a mock has every attribute, and it is true")]
    if not truth and test.op == "attr" and test.name in ("called", "await_count", "call_count"):
        return [Check("not-called", test.args[0], test.args[0], line=test.line)]
    if truth and test.op == "attr" and test.name == "called":
        return [Check("called", test.args[0], test.args[0], line=test.line)]
    return [Check("true" if truth else "false", test, test, line=test.line)]


def _constant_truth(test: Expr) -> bool | None:
    if test.op == "lit":
        return bool(test.value)
    if test.op in ("tuple", "list", "dict"):
        return bool(test.args)
    return True


def _either(test: Expr, truth: bool) -> list[Check]:
    """`a if test else b`: under the condition what `a` demands, else what `b` demands."""
    condition, one, two = test.args
    if condition.op == "lit":
        return demands(one if condition.value else two, truth)
    found = []
    for part, text in ((one, f"if {condition.text}"), (two, f"if not {condition.text}")):
        found += [
            evolve(check, conditions=(text, *check.conditions))
            for check in demands(part, truth)
            if check.relation != "nothing"
        ]
    return found or [nothing(test, "it is always true")]


def _any_of(test: Expr, options: list[list[Check]]) -> Check:
    """One of several is enough: as weak as the weakest."""
    options = [option for option in options if option]
    if not options:
        return Check("raises", test, test, literal("fails"), line=test.line)
    if len(options) == 1 and len(options[0]) == 1:
        return options[0][0]
    flat = [check for option in options for check in option]
    for check in flat:
        if check.relation == "nothing":
            return nothing(test, check.why or "one of its alternatives is always true")
    keys = [{check.key for check in option} for option in options]
    for at, arg in enumerate(test.args):
        opposite = {check.key for check in demands(arg, False)}
        if any(opposite == key for to, key in enumerate(keys) if to != at):
            return nothing(test, "it is true either way")
    texts = {canon(c.subject) for c in flat if c.relation in ("true", "defined")}
    if texts & {canon(c.subject) for c in flat if c.relation in ("false", "null")}:
        return nothing(test, "it is true either way")
    subject = flat[0].subject
    if all(c.relation == "equal" for c in flat) and len({canon(c.subject) for c in flat}) == 1:
        choices = Expr("list", args=tuple(c.expected for c in flat if c.expected is not None))
        return Check("contains", choices, choices, subject, line=test.line)
    return Check("holds", test, test, line=test.line, why="any-of")


def _comparison(test: Expr, sign: str, truth: bool) -> list[Check]:
    left, right = test.args
    if sign == "":
        return [Check("type" if truth else "!type", left, left, right, line=test.line)]
    same = canon(left) == canon(right)
    match sign:
        case "==" | "is":
            if same:
                return [nothing(test, "both sides are the same")]
            return equality(left, right, test.line)
        case "!=" | "is not":
            if right.op == "lit" and right.value is None:
                if left.op in ("lit", "list", "tuple", "dict"):
                    return [nothing(test, "a constant is never nothing")]
                return [Check("defined", left, left, line=test.line)]
            if right.op == "lit" and isinstance(right.value, bool):
                return demands(left, not right.value)
            found = oriented("!equal", left, right)
            return [evolve(found, line=test.line)]
        case "in" | "not in":
            if sign == "in" and right.op in ("tuple", "list", "set"):
                values = {arg.value if arg.op == "lit" else arg.text for arg in right.args}
                if {True, False} <= values and all(isinstance(v, bool) for v in values):
                    return [Check("type", left, left, name("bool"), line=test.line)]
                if len(right.args) == 1:
                    return equality(left, right.args[0], test.line)
            if sign == "in" and isinstance(left.value, str) and left.value == "":
                return [nothing(test, "every text contains the empty one")]
            return [Check("contains" if sign == "in" else "!contains", right, right, left, line=test.line)]
        case "=~":
            return [Check("regex", left, left, right, line=test.line)]
        case "instanceof":
            return [Check("type", left, left, right, line=test.line)]
    if sign in _ORDER:
        if same:
            return [nothing(test, "both sides are the same")] if "=" in sign else []
        return _ordering(test, left, sign, right)
    return [Check("true" if truth else "false", test, test, line=test.line)]


def _ordering(test: Expr, left: Expr, sign: str, right: Expr) -> list[Check]:
    if left.op == "lit" and right.op != "lit":
        left, sign, right = right, _SWAPPED[sign], left
    if sign in (">=", ">") and isinstance(right.value, int | float) and _NEVER_NEGATIVE.search(left.text):
        if right.value < 0 or (right.value == 0 and sign == ">="):
            return [nothing(test, "a length is never negative")]
        if right.value == (0 if sign == ">" else 1):
            return [
                Check(
                    "!empty",
                    left.args[-1] if left.op == "call" and len(left.args) > 1 else left,
                    left,
                    line=test.line,
                )
            ]
    tolerance = _near(left, sign, right)
    if tolerance is not None:
        return [evolve(tolerance, line=test.line)]
    return [Check(_ORDER[sign], left, left, right, line=test.line)]


def _near(left: Expr, sign: str, right: Expr) -> Check | None:
    """abs(a - b) < tolerance."""
    if sign not in ("<", "<=") or left.op != "call" or not isinstance(right.value, int | float):
        return None
    if left.args[0].op == "attr" and left.args[0].name == "abs" and len(left.args) == 1:
        difference = left.args[0].args[0]
    elif re.search(r"(?:^|\.)(?:abs|Abs|fabs)$", left.callee) and len(left.args) > 1:
        difference = left.args[-1]
    else:
        return None
    if difference.op == "bin" and difference.name == "-":
        return evolve(oriented("approx", *difference.args), slack=float(right.value))
    return None


def equality(left: Expr, right: Expr, line: int) -> list[Check]:
    """Checks for `left == right`, also where a side is None, a bool, an approximation or a container."""
    if canon(left) == canon(right):
        return [nothing(left, "both sides are the same")]
    if left.op == right.op == "lit":
        return [nothing(left, "both sides are constants")] if left.value == right.value else []
    for one, two in ((left, right), (right, left)):
        if one.op == "call" and re.search(r"(?:^|\.)(?:approx|Approx|closeTo|be_within)$", one.callee):
            return [approximation(two, one, line)]
    if left.op == "comp":
        rows = rows_of(left, "python")
        left = Expr("list", args=tuple(rows), line=left.line) if rows else left
    both = {left.op, right.op} <= {"tuple", "list"}
    if both and len(left.args) == len(right.args) and left.args:
        pairs = zip(left.args, right.args, strict=True)
        return [c for one, two in pairs if one.text != two.text for c in equality(one, two, line)] or [
            nothing(left, "both sides are the same")
        ]
    pairs_only = all(part.op == "pair" for part in (*left.args, *right.args))
    if left.op == right.op == "dict" and left.args and pairs_only:
        here, there = ({p.args[0].text: p.args[1] for p in side.args} for side in (left, right))
        if set(here) == set(there):
            unlike = [key for key in here if here[key].text != there[key].text]
            parts = [c for key in unlike for c in equality(here[key], there[key], line)]
            return parts or [nothing(left, "both sides are the same")]
    check = oriented("equal", left, right)
    expected = check.expected
    if expected is not None and expected.op == "lit" and isinstance(expected.value, bool):
        inner = demands(check.subject, expected.value)
        if len(inner) == 1 and inner[0].relation not in ("true", "false"):
            return inner  # (a == b) is True
    if expected is not None and expected.op in ("name", "attr") and expected.name in ("ANY", "Anything"):
        return [nothing(left, "it is equal to anything")]
    return [evolve(check, line=line)]


def approximation(subject: Expr, call: Expr, line: int) -> Check:
    """`subject == approx(value, …)`; the slack is relative where it is known, 1e-6 by default."""
    expected = call.args[1] if len(call.args) > 1 else literal(0)
    given = {key: call.keyword(key) for key in ("rel", "abs", "nan_ok")}
    rest = call.positional[1:]
    rel = given["rel"] or (rest[0] if rest else None)
    absolute = given["abs"] or (rest[1] if len(rest) > 1 else None)
    slack = max(number(rel, 0.0), number(absolute, 0.0))
    if rel is None and absolute is None:
        slack = 1e-6
    if canon(subject) == canon(expected):
        return nothing(subject, "both sides are the same")
    relative = absolute is None and call.callee.endswith("approx")
    return Check("approx", subject, subject, expected, line=line, slack=slack, relative=relative)


def number(expr: Expr | None, default: float) -> float:
    if expr is None:
        return default
    value: Any = expr.value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if expr.op == "bin" and expr.name == "**" and expr.args[0].value == 10:
        power: Any = expr.args[1].value
        return float(10.0**power) if isinstance(power, int) else default
    return default


def _by_call(test: Expr, truth: bool) -> list[Check] | None:
    """Conditions that are calls with a known meaning."""
    callee, args = test.callee, test.positional
    last = callee.rpartition(".")[2]
    receiver = test.args[0].args[0] if test.args[0].op == "attr" else None
    line = test.line

    def one(relation: str, subject: Expr, expected: Expr | None) -> list[Check]:
        relation = relation if truth else f"!{relation}"
        if relation == "!equal" and expected is not None:
            return [evolve(oriented("!equal", subject, expected), line=line)]
        return [Check(relation, subject, subject, expected, line=line)]

    if last in ("isinstance", "issubclass") and len(args) == 2:
        if args[1].text in ("object", "(object,)"):
            return [nothing(test, "everything is an object")]
        return one("type", args[0], args[1])
    if last == "bool" and len(args) == 1 and receiver is None:
        return demands(args[0], truth)
    if last in ("callable",) and args:
        return one("type", args[0], name("callable"))
    if last == "hasattr" and len(args) == 2:
        return one("contains", args[0], args[1])
    if last in ("isclose", "allclose") and len(args) >= 2:
        slack = max(number(test.keyword(key), 0.0) for key in ("rel_tol", "abs_tol", "rtol", "atol"))
        found = oriented("approx", args[0], args[1])
        return [evolve(found, slack=slack or 1e-9, line=line, relation="approx" if truth else "!approx")]
    if last in ("DeepEqual", "Equal", "EqualFold") and len(args) == 2 and receiver is not None:
        return equality(args[0], args[1], line) if truth else one("equal", args[0], args[1])
    if last == "Is" and callee == "errors.Is" and len(args) == 2:
        return one("raises", args[0], args[1])
    if last == "As" and callee == "errors.As" and len(args) == 2:
        return one("raises", args[0], args[1])
    if last in ("equals", "Equals", "equal?", "eql?") and receiver is not None and len(args) == 1:
        return equality(receiver, args[0], line) if truth else one("equal", receiver, args[0])
    if last == "matches!" and len(args) == 2:
        return one("regex", args[0], args[1])
    if last in _HOLDERS and args:
        holder, item = (receiver, args[0]) if receiver is not None else (args[0], args[-1])
        if callee.startswith(("strings.", "bytes.", "slices.")) and len(args) == 2:
            holder, item = args
        if item.value == "" and truth:
            return [nothing(test, "every text contains the empty one")]
        return one("contains", holder, item)
    if callee in ("re.match", "re.search", "re.fullmatch") and len(args) >= 2:
        return one("regex", args[1], args[0])
    if (
        last in ("match", "search", "fullmatch", "test", "matches", "match?")
        and receiver is not None
        and len(args) == 1
    ):
        if receiver.op == "regex":
            return one("regex", args[0], receiver)
        return one(
            "regex",
            receiver if last in ("matches", "match?") else args[0],
            args[0] if last == "matches" else receiver,
        )
    if (
        last
        in ("is_empty", "isEmpty", "empty?", "is_none", "is_err", "is_ok", "is_some", "isPresent", "any?")
        and receiver
    ):
        relation = {"is_none": "null", "is_some": "defined", "is_ok": "runs", "is_err": "raises"}.get(
            last, "empty"
        )
        if last in ("isPresent", "any?"):
            relation = "defined"
        if last == "is_err":
            return [Check("raises" if truth else "runs", receiver, receiver, line=line)]
        if last == "is_ok":
            return [Check("runs" if truth else "raises", receiver, receiver, line=line)]
        return simple(relation, receiver, line) if truth else simple(f"!{relation}", receiver, line)
    if last in ("all", "every") and len(args) == 1 and args[0].op == "comp":
        comp = args[0]
        return [evolve(c, conditions=(f"for {comp.args[1].text}",)) for c in demands(comp.args[0], truth)]
    if _TYPO.search(callee) and not last.startswith("assert") and truth and receiver is not None:
        return [nothing(test, "a mock has every attribute, and it is true")]
    return None


def simple(relation: str, subject: Expr, line: int) -> list[Check]:
    """Relations without an expected side, as equalities where they are ones."""
    empty, none = Expr("list", line=line), literal(None, line)
    match relation:
        case "null" | "!defined":
            return [Check("equal", subject, subject, none, line=line)]
        case "defined" | "!null":
            return [Check("defined", subject, subject, line=line)]
        case "empty" | "zero":
            return [Check("equal", subject, subject, empty if relation == "empty" else literal(0), line=line)]
        case "!empty":
            return [Check("!empty", subject, subject, line=line)]
    return [Check(relation, subject, subject, line=line)]


def matches_all(pattern: Expr | None) -> bool:
    """Is it a pattern that every text has?"""
    if pattern is None:
        return False
    if pattern.op == "call" and pattern.positional:
        pattern = pattern.positional[0]
    return isinstance(pattern.value, str) and matches_everything(pattern.value)


_SAMPLES = ("zq", "Zq 7", "~#", "0", "-")


def matches_everything(pattern: str) -> bool:
    """Does a regular expression match texts that have nothing to do with each other?"""
    if len(pattern) > 200 or re.search(r"[*+}]\)[*+{]", pattern):
        return False
    try:
        compiled = re.compile(pattern.replace("\\\\", "\\"))
    except (re.error, OverflowError, RecursionError):
        return False
    return all(compiled.search(text) for text in _SAMPLES)

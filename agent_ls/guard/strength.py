"""Is one assertion weaker than another? The order of strength, pair by pair.

A change weakens when the new assertion accepts an outcome that the old one refused. Where that can't be told
(another expected value, another input) the change is for a person to judge.
"""

from __future__ import annotations

import builtins
import re
from typing import Literal

from attrs import frozen

from agent_ls.guard.checks import Check, canon, is_constant, wild_parts
from agent_ls.guard.conditions import number
from agent_ls.guard.syntax import Expr, literals
from agent_ls.guard.vocabulary import BROAD

Severity = Literal["block", "review", "info"]


@frozen
class Loss:
    """What is lost from the old assertion to the new one."""

    kind: str
    severity: Severity
    message: str


_LOST = {
    "unreachable": ("assertion-unreachable", "is never reached"),
    "swallowed": ("assertion-swallowed", "fails unnoticed: its failure is caught"),
    "unawaited": ("assertion-not-awaited", "is not awaited, so its failure goes unnoticed"),
    "thread": ("assertion-in-thread", "runs in a thread or task, where its failure goes unnoticed"),
    "empty-iteration": ("assertion-in-empty-loop", "is in a loop over nothing"),
}
_KINDS = {
    "true": "assertion-only-truthy",
    "defined": "assertion-only-not-none",
    "type": "assertion-only-type",
    "contains": "assertion-only-contains",
    "regex": "assertion-only-pattern",
    "any-order": "assertion-ignores-order",
    "partial": "assertion-only-partial",
    "approx": "assertion-only-approximate",
    "runs": "assertion-only-runs",
    "nothing": "assertion-always-true",
}
_TIME = re.compile(
    r"elapsed|duration|time|seconds|took|delay|latency|perf|deadline|\bms\b|clock|\bdt\b|memory|bytes",
    re.IGNORECASE,
)


def loss(old: Check, new: Check) -> Loss | None:
    """What `new` lets pass that `old`, about the same thing, would have caught; None where it is as"
    " strong."""
    if old.rank == 0:
        return None
    if new.lost:
        kind, what = _LOST.get(new.lost, ("assertion-unreachable", "is never reached"))
        return Loss(kind, "block", f"the assertion on {_short(old.raw)} {what}")
    if new.relation == "nothing":
        return Loss(
            "assertion-always-true", "block", f"the assertion on {_short(old.raw)} can't fail: {new.why}"
        )
    guarded = _guarded(old, new)
    if guarded is not None:
        return guarded
    if "custom" in (old.relation, new.relation):
        return _inputs(old, new) if old.relation == new.relation else None
    if old.relation == "raises" and new.relation == "raises":
        return _errors(old, new)
    if old.relation != new.relation and {old.relation, new.relation} == {"equal", "approx"}:
        rounded = _projection(old, new)
        if rounded is not None and _rounding(new) > old.slack:
            return rounded
    if old.relation != new.relation:
        return _other_relation(old, new)
    projected = _projection(old, new)
    if projected is not None:
        return projected
    return _same_relation(old, new)


def _guarded(old: Check, new: Check) -> Loss | None:
    was, now = [c for c in old.conditions if not _certain(c)], [c for c in new.conditions if not _certain(c)]
    for one, two in zip(old.conditions, new.conditions, strict=False):
        a, b = (re.fullmatch(r"for range\((?:\d+, )?(\d+)\)", text) for text in (one, two))
        if a and b and int(b.group(1)) * 4 < int(a.group(1)):
            return Loss(
                "property-narrowed",
                "block",
                f"{_short(old.raw)} is tried {b.group(1)} times instead of {a.group(1)}",
            )
    if len(now) <= len(was) or set(now) <= set(was):
        return None
    extra = next((c for c in now if c not in was), now[-1])
    return Loss(
        "assertion-guarded",
        "review" if _about_input(extra) else "block",
        f"the assertion on {_short(old.raw)} is only reached {extra[:120]}",
    )


def _about_input(condition: str) -> bool:
    """Does a condition only ask for what a row of a table holds, not for what the code answered?"""
    words = re.sub(r"'(?:[^'\\]|\\.)*'", "", condition.removeprefix("if "))
    names = set(re.findall(r"[A-Za-z_][\w.]*", words)) - {
        "not",
        "and",
        "or",
        "None",
        "True",
        "False",
        "in",
        "is",
    }
    return bool(names) and all(
        re.match(r"isinstance|math\.|int$|str$|float$|dt\.|datetime|bytes$|list$|dict$|sys\.|os\.name", n)
        for n in names
    )


def _certain(condition: str) -> bool:
    """Loops that surely run, and the loops that tests are made of."""
    return (
        re.match(
            r"for range\((?:[1-9]|.*, [1-9])|for \[?[^\[]*range\([1-9]|while \(\w+ <=? \d+\)|while True",
            condition,
        )
        is not None
    )


def _other_relation(old: Check, new: Check) -> Loss | None:
    if {old.relation, new.relation} <= {"equal", "true", "false"}:
        expected = old.expected if old.relation == "equal" else new.expected
        flag = expected is not None and expected.op == "lit" and isinstance(expected.value, bool)
        if flag and expected is not None:
            demanded = "true" if expected.value else "false"
            other = new.relation if old.relation == "equal" else old.relation
            return None if other == demanded else _turned(old, new)
        if {old.relation, new.relation} == {"true", "false"}:
            return _turned(old, new)
        empty = expected is not None and (
            (expected.value in (0, "", None) and expected.op == "lit")
            or (expected.op in ("list", "dict") and not expected.args)
        )
        if empty and "false" in (old.relation, new.relation):
            return None
    if old.relation == "equal" and new.relation in (
        "called-with",
        "called-n",
        "not-called",
        "raises",
    ):
        return None
    if old.relation == "equal" and new.relation == "snapshot":
        text = f"{_short(old.raw)} is compared with a recorded snapshot instead of a value"
        return Loss("snapshot-instead-of-value", "review", text)
    if old.relation in ("called-with", "called-n", "not-called") and new.relation == "equal":
        return None
    if old.relation == "called-n" and new.relation in ("called-with",):
        return None
    if old.relation in ("lt", "le", "gt", "ge") and new.relation in ("lt", "le", "gt", "ge"):
        return _bounds(old, new)
    if new.rank >= old.rank:
        return None
    if new.relation.startswith("!") and not old.relation.startswith("!"):
        if new.relation == f"!{old.relation}":
            return Loss(
                "assertion-inverted", "block", f"the assertion on {_short(old.raw)} now demands the opposite"
            )
        if new.relation != "!empty":
            return Loss(
                "assertion-loosened", "block", f"{_short(old.raw)} is only compared with what it is not"
            )
    if old.relation == "equal" and new.relation == "approx":
        exact = old.expected is None or not any(isinstance(part.value, float) for part in old.expected.walk())
        severity: Severity = "block" if exact or new.slack > 1e-6 else "review"
        return Loss(
            "assertion-only-approximate", severity, f"{_short(old.raw)} is only compared approximately"
        )
    if old.rank - new.rank <= 2 and old.relation not in ("equal", "approx"):
        return None
    if old.relation in ("true", "defined", "holds") and new.relation in ("true", "defined", "holds"):
        severity = "review"
        if old.relation == "true" and new.relation == "defined":
            severity = "block"
        return Loss(
            _KINDS.get(new.relation, "assertion-loosened"),
            severity,
            f"{_short(old.raw)} is checked less strictly",
        )
    kind = _KINDS.get(new.relation, "assertion-loosened")
    return Loss(kind, "block", f"{_short(old.raw)} was checked for {_word(old)}, now only for {_word(new)}")


def _turned(old: Check, new: Check) -> Loss:
    return Loss("expected-value-changed", "review", f"{_short(old.raw)} is now expected to be the opposite")


def _word(check: Check) -> str:
    return {"equal": "a value", "true": "being true", "contains": "containing something", "type": "its type",
            "defined": "being there", "nothing": "nothing", "any-order": "its elements in any order"}.get(
        check.relation, check.relation.replace("-", " "))  # fmt: skip


def _short(expr: Expr) -> str:
    return expr.text if len(expr.text) <= 80 else expr.text[:77] + "…"


# -- the same relation
def _same_relation(old: Check, new: Check) -> Loss | None:
    one, two = old.expected, new.expected
    if old.relation == "approx" and new.slack > old.slack * 1.0001:
        return Loss("tolerance-widened", "block", f"the tolerance went from {old.slack:g} to {new.slack:g}")
    if old.relation in ("lt", "le", "gt", "ge"):
        return _bounds(old, new)
    if (
        old.relation == "equal"
        and old.strict > 0
        and new.strict == -old.strict
        and canon(old.subject) == canon(new.subject)
    ):
        return Loss("equality-relaxed", "review", f"{_short(old.raw)} is compared without regard to types")
    if one is None or two is None or canon(one) == canon(two):
        return _inputs(old, new)
    if wild_parts(two) > wild_parts(one):
        return Loss(
            "expected-value-loosened", "block", f"parts of what {_short(old.raw)} should be accept anything"
        )
    texts = isinstance(two.value, str) and isinstance(one.value, str)
    if old.relation == "regex" and texts and _looser_pattern(one.value, two.value):
        return Loss("pattern-loosened", "block", f"the pattern {_short(one)} became {_short(two)}")
    if old.relation in ("contains", "partial") and _contained(two, one):
        return Loss(
            "assertion-loosened", "block", f"{_short(one)} became {_short(two)}, which is a part of it"
        )
    more = two.op in ("tuple", "list") and any(canon(arg) == canon(one) for arg in two.args)
    if old.relation == "type" and more:
        return Loss("assertion-loosened", "block", f"more types are accepted: {_short(two)}")
    if old.relation == "equal" and _computed(new) and not _computed(old):
        called = {part.callee for part in new.subject.walk() if part.op == "call"} & {
            part.callee for part in two.walk() if part.op == "call"
        }
        if called:
            return Loss(
                "expected-from-actual",
                "block",
                f"the expected value is computed by what is tested ({', '.join(sorted(called))})",
            )
    if old.relation == "approx" and is_constant(one) and is_constant(two) and _close(one, two, old.slack):
        return None
    if old.relation == "approx" or is_constant(one) or is_constant(two) or literals(one) != literals(two):
        return Loss(
            "expected-value-changed",
            "review",
            f"{_short(old.raw)} was expected to be {_short(one)}, now {_short(two)}",
        )
    return None


def _close(one: Expr, two: Expr, slack: float) -> bool:
    a, b = number(one, float("nan")), number(two, float("nan"))
    return abs(a - b) <= max(slack, 1e-6) * max(1.0, abs(a))


def _computed(check: Check) -> bool:
    return check.expected is not None and any(
        part.op == "call" and part.callee[:1].islower() for part in check.expected.walk()
    )


def _contained(part: Expr, whole: Expr) -> bool:
    if isinstance(part.value, str) and isinstance(whole.value, str):
        return part.value in whole.value and part.value != whole.value
    if part.op == whole.op and part.op in ("dict", "list", "tuple", "set"):
        return {a.text for a in part.args} < {a.text for a in whole.args}
    return False


def _looser_pattern(one: str, two: str) -> bool:
    plain = re.sub(r"[\W_]+", "", two)
    return len(two) < len(one) and (two.strip("^$.*") in one or plain in re.sub(r"[\W_]+", "", one))


def _bounds(old: Check, new: Check) -> Loss | None:
    upper = {"lt", "le"}
    if (old.relation in upper) != (new.relation in upper):
        return Loss("assertion-inverted", "review", f"{_short(old.raw)} is bounded from the other side")
    if old.expected is None or new.expected is None:
        return None
    a, b = number(old.expected, float("nan")), number(new.expected, float("nan"))
    if a != a or b != b:
        if canon(old.expected) != canon(new.expected):
            return Loss(
                "limit-changed", "review", f"the limit {_short(old.expected)} became {_short(new.expected)}"
            )
        return (
            Loss("limit-loosened", "block", f"{_short(old.raw)} may now also be {_short(new.expected)}")
            if _strict(old) and not _strict(new)
            else _inputs(old, new)
        )
    looser = b > a if old.relation in upper else b < a
    whole = float(a).is_integer() and float(b).is_integer()
    if a == b and _strict(old) and not _strict(new):
        looser = True
    if whole and _strict(old) != _strict(new) and a != b:  # n > 2 is n >= 3
        step = 1.0 if old.relation in upper else -1.0
        looser = (b - (step if _strict(new) else 0)) * step > (a - (step if _strict(old) else 0)) * step
    if not looser:
        return None
    soft = _TIME.search(old.raw.text) or _TIME.search(old.subject.text)
    return Loss(
        "limit-loosened",
        "review" if soft else "block",
        f"the limit of {_short(old.raw)} went from {a:g} to {b:g}",
    )


def _strict(check: Check) -> bool:
    return check.relation in ("lt", "gt")


def _inputs(old: Check, new: Check) -> Loss | None:
    """The same expectation of something else: other arguments."""
    if canon(old.subject) == canon(new.subject):
        return None
    a, b = literals(old.subject), literals(new.subject)
    if sorted(a) != sorted(b) and sorted(literals(old.raw)) != sorted(literals(new.raw)):
        return Loss("input-changed", "review", f"the same is expected of another input: {_short(new.raw)}")
    if sorted(a) != sorted(b) and canon(old.raw) == canon(new.raw) and b and set(a) - set(b):
        return Loss("input-changed", "review", f"{_short(new.raw)} is now made from other input")
    return None


# -- errors
def _errors(old: Check, new: Check) -> Loss | None:
    if _broad(new.expected) and not _broad(old.expected):
        return Loss(
            "error-widened",
            "block",
            f"any error is accepted instead of {_short(old.expected) if old.expected else ''}",
        )
    one, two = old.expected, new.expected
    if not _broad(one) and one is not None and two is not None and canon(one) != canon(two):
        kinds = {canon(arg) for arg in two.args} if two.op in ("tuple", "list") else {canon(two)}
        if canon(one) in kinds or _ancestor(two, one):
            return Loss("error-widened", "block", f"{_short(two)} is accepted instead of {_short(one)}")
        if _last(one) != _last(two):
            return Loss(
                "expected-value-changed", "review", f"the expected error was {_short(one)}, now {_short(two)}"
            )
    if old.message and not new.message:
        return Loss(
            "error-widened",
            "block",
            f"the error's text or details ({old.message[:60]}) are no longer checked",
        )
    if old.message and new.message != old.message:
        plain_old, plain_new = (
            re.sub(r"\\|^['/^f(]+|['/$)]+$|re\.escape\(", "", m) for m in (old.message, new.message)
        )
        if plain_new == plain_old:
            return None
        if len(plain_new) < len(plain_old) and plain_new.strip(".*") in plain_old:
            return Loss(
                "pattern-loosened", "block", f"only {new.message[:60]} of {old.message[:60]} is demanded"
            )
        return Loss(
            "expected-text-changed",
            "review",
            f"the expected text {old.message[:60]} became {new.message[:60]}",
        )
    return None


def _last(kind: Expr) -> str:
    return re.split(r"[.:]", kind.text.removesuffix(".class").removesuffix(".class()"))[-1]


def _broad(kind: Expr | None) -> bool:
    if kind is None:
        return True
    if kind.op in ("tuple", "list"):
        return any(_broad(arg) for arg in kind.args)
    return kind.text.lower() in BROAD


def _ancestor(wide: Expr, narrow: Expr) -> bool:
    one, two = getattr(builtins, wide.text, None), getattr(builtins, narrow.text, None)
    if isinstance(one, type) and isinstance(two, type):
        return issubclass(two, one)
    return (
        isinstance(one, type)
        and one in (ValueError, TypeError, OSError, LookupError, RuntimeError, ArithmeticError)
        and two is None
    )


# -- a part of what was compared
_NARROWING = re.compile(
    r"(?:^|\.)(?:sorted|set|frozenset|round|len|int|str|bool|lower|upper|strip|casefold|split|replace|sort|toSorted|trim|toLowerCase"
    r"|to_lowercase|toUpperCase|to_i|abs|type|count|size|length|keys|Counter|rstrip|lstrip|any|sum|max|min|downcase|squish|slice|sub"
    r"|normalize|normalise|Trim|ToLower|Count|Length|First|first|Fields|TrimSpace|floor|ceil|Math\.round|Math\.floor|trunc"
    r"|to_set|uniq|math\.Round|first_word|re\.sub|Sorted|ToUpper|HashSet|new Set|new HashSet"
    r"|split_whitespace|is_some|is_ok|head|pop|take)$"
)


def _projection(old: Check, new: Check) -> Loss | None:
    """The new subject is made of the old one by something that loses a part of it."""
    if old.relation not in ("equal", "contains", "approx", "any-order", "partial"):
        return None
    inner = {canon(old.raw), canon(old.subject)}
    found = _outer(new.subject, inner) or _outer(new.raw, inner)
    if found is None:
        return None
    what = found.callee if found.op == "call" else found.text
    if old.expected is not None and new.expected is not None and _wrapped(new.expected, old.expected, found):
        return Loss(
            "comparison-normalised",
            "block",
            f"both sides go through {what or 'a function'} before they are compared",
        )
    return Loss("comparison-narrowed", "block", f"only {_short(found)} is compared, not {_short(old.raw)}")


def _rounding(check: Check) -> float:
    """How much a rounding of the subject leaves open."""
    for part in check.subject.walk():
        if part.op == "call" and part.callee in ("round", "Math.round", "math.Round"):
            digits = part.args[2] if len(part.args) > 2 else None
            return float(0.5 * 10.0 ** -number(digits, 0.0))
    return float("inf")


def _outer(expr: Expr, inner: set[str]) -> Expr | None:
    """The narrowing call or access in `expr` around one of `inner`."""
    if canon(expr) in inner:
        return None
    for part in expr.walk():
        if part.op == "call" and _NARROWING.search(part.callee):
            givens = [*part.args[1:], *([part.args[0].args[0]] if part.args[0].op == "attr" else [])]
            if any(canon(sub) in inner for given in givens for sub in given.walk()):
                return part
        elif (
            (part.op == "index" and canon(part.args[0]) in inner)
            or (part.op == "attr" and canon(part.args[0]) in inner and _NARROWING.search(part.name))
            or (part.op == "comp" and any(canon(arg) in inner for arg in part.args[1:]))
        ):
            return part
    return None


def _wrapped(new: Expr, old: Expr, by: Expr) -> bool:
    return any(canon(part) == canon(old) for part in new.walk()) and canon(new) != canon(old)

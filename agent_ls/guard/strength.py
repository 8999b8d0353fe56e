"""Is one assertion weaker than another? The order of strength, pair by pair.

A change weakens when the new assertion accepts an outcome that the old one refused. Where that can't be told
(another expected value, another input) the change is for a person to judge.
"""

from __future__ import annotations

import builtins
import re

from agent_ls.guard.checks import RANK, Check, canon, is_constant, pieces, wild_parts
from agent_ls.guard.conditions import number
from agent_ls.guard.error_strength import errors_loss
from agent_ls.guard.limits import bounds_loss
from agent_ls.guard.losses import Loss, Severity, short
from agent_ls.guard.places import elsewhere
from agent_ls.guard.projections import projection, rounding
from agent_ls.guard.syntax import Expr, literals

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


def loss(old: Check, new: Check) -> Loss | None:
    """What `new` lets pass that `old`, about the same thing, would have caught; None where it is as
    strong."""
    if old.rank == 0:
        return None
    if new.lost:
        kind, what = _LOST.get(new.lost, ("assertion-unreachable", "is never reached"))
        return Loss(kind, "block", f"the assertion on {short(old.raw)} {what}")
    if new.relation == "nothing":
        return Loss(
            "assertion-always-true", "block", f"the assertion on {short(old.raw)} can't fail: {new.why}"
        )
    guarded = _guarded(old, new)
    if guarded is not None:
        return guarded
    if old.relation == "custom":
        return _inputs(old, new) if new.relation == "custom" else None
    if new.relation == "custom":
        text = f"{short(old.raw)} is now checked by {new.subject.callee}, which isn't known here"
        given = {canon(arg) for arg in new.subject.args[1:]}
        whole = canon(old.subject) in given and (old.expected is None or canon(old.expected) in given)
        weak = old.rank <= RANK["runs"] or (whole and new.subject.callee.lower().startswith("assert"))
        return None if weak else Loss("assertion-replaced", "review", text)
    if old.relation == "raises" and new.relation == "raises":
        return errors_loss(old, new)
    if old.relation != new.relation and {old.relation, new.relation} == {"equal", "approx"}:
        rounded = projection(old, new)
        if rounded is not None and rounding(new) > old.slack:
            return rounded
    if old.relation != new.relation:
        return _other_relation(old, new)
    projected = projection(old, new)
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
                f"{short(old.raw)} is tried {b.group(1)} times instead of {a.group(1)}",
            )
    if len(now) <= len(was) or set(now) <= set(was):
        return None
    extra = next((c for c in now if c not in was), now[-1])
    return Loss(
        "assertion-guarded",
        "review" if _about_input(extra) else "block",
        f"the assertion on {short(old.raw)} is only reached {extra[:120]}",
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
    return elsewhere(condition) or (
        bool(names)
        and all(
            re.match(r"isinstance|math\.|int$|str$|float$|dt\.|datetime|bytes$|list$|dict$", n) for n in names
        )
    )


def _certain(condition: str) -> bool:
    """Loops that surely run, and the loops that tests are made of."""
    return (
        re.match(
            r"for range\((?:[1-9]|.*, [1-9])|for \[?[^\[]*range\([1-9]|while \(\w+ <=? \d+\)|while True"
            r"|for [1-9]\d*$|for range_expression\(\d+, |for (?:zip|enumerate)\(\[",
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
    if old.relation == "equal" and new.relation == "raises" and old.expected is not None:
        if re.match(r"Err\(|exception\(|err\b", old.expected.text):
            return Loss("error-widened", "block", f"any error of {short(old.raw)} is accepted")
        text = f"{short(old.raw)} was expected to be {short(old.expected)}, now an error is"
        return Loss("expected-value-changed", "review", text)
    if old.relation == "raises" and "exception(" not in new.subject.text and new.rank > RANK["defined"]:
        text = f"an error of {short(old.raw)} was expected, now it is {_word(new)}"
        return Loss("expected-value-changed", "review", text)
    if old.relation == "equal" and new.relation in ("called-with", "called-n", "not-called"):
        return None
    if old.relation == "called-with" and new.relation == "equal":
        wanted = set(literals(old.expected)) if old.expected is not None else set()
        have = set(literals(new.expected)) if new.expected is not None else set()
        if wanted - have:
            text = f"only a part of the arguments of {short(old.raw)} is checked"
            return Loss("comparison-narrowed", "block", text)
        return None
    if old.relation == "equal" and new.relation == "snapshot":
        text = f"{short(old.raw)} is compared with a recorded snapshot instead of a value"
        return Loss("snapshot-instead-of-value", "review", text)
    if old.relation in ("called-with", "called-n", "not-called") and new.relation == "equal":
        return None
    if old.relation == "called-n" and new.relation in ("called-with",):
        return None
    if old.relation in ("lt", "le", "gt", "ge") and new.relation in ("lt", "le", "gt", "ge"):
        return bounds_loss(old, new)
    if new.rank >= old.rank:
        return None
    if old.relation == "raises" and new.relation == "defined":
        text = f"any error is accepted instead of {short(old.expected) if old.expected else 'a certain one'}"
        return Loss("error-widened", "block", text)
    if new.relation.startswith("!") and not old.relation.startswith("!"):
        if new.relation == f"!{old.relation}":
            return Loss(
                "assertion-inverted", "block", f"the assertion on {short(old.raw)} now demands the opposite"
            )
        if new.relation != "!empty":
            return Loss(
                "assertion-loosened", "block", f"{short(old.raw)} is only compared with what it is not"
            )
    if old.relation == "equal" and new.relation == "approx":
        exact = old.expected is None or not any(isinstance(part.value, float) for part in old.expected.walk())
        size = abs(number(old.expected, 0.0)) or 1.0
        severity: Severity = "block" if exact or new.slack > 5e-3 * size else "review"
        return Loss(
            "assertion-only-approximate", severity, f"{short(old.raw)} is only compared approximately"
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
            f"{short(old.raw)} is checked less strictly",
        )
    kind = _KINDS.get(new.relation, "assertion-loosened")
    return Loss(kind, "block", f"{short(old.raw)} was checked for {_word(old)}, now only for {_word(new)}")


def _turned(old: Check, new: Check) -> Loss:
    return Loss("expected-value-changed", "review", f"{short(old.raw)} is now expected to be the opposite")


_WORDS = {
    "equal": "a value", "true": "being true", "false": "being false", "contains": "containing something",
    "type": "its type", "defined": "being there", "nothing": "nothing", "holds": "some condition",
    "any-order": "its elements in any order", "regex": "a pattern", "partial": "a part of it",
    "approx": "an approximate value", "snapshot": "a recorded snapshot", "raises": "an error",
    "runs": "not failing", "called": "having been called", "called-n": "the number of calls",
    "called-with": "the arguments of calls", "not-called": "not having been called", "length": "its length",
    "changes": "a change", "!empty": "not being empty", "!equal": "not being something",
    "!contains": "not containing something", "!type": "not being of a type", "!regex": "not having a pattern",
    "!approx": "not being near something", "!changes": "not changing anything",
}  # fmt: skip
_SIGNS = {"lt": "<", "le": "≤", "gt": ">", "ge": "≥"}


def _word(check: Check) -> str:
    """What a check demands, for people."""
    if check.relation in _SIGNS:
        limit = short(check.expected) if check.expected is not None else "a limit"
        return f"being {_SIGNS[check.relation]} {limit}"
    return _WORDS.get(check.relation, check.relation.lstrip("!").replace("-", " "))


# -- the same relation
def _same_relation(old: Check, new: Check) -> Loss | None:
    one, two = old.expected, new.expected
    if old.relation == "approx" and _allowed(new) > _allowed(old) * 1.0001:
        was, now = (f"{_allowed(c):g}" for c in (old, new))
        return Loss("tolerance-widened", "block", f"the tolerance went from {was} to {now}")
    if old.relation in ("lt", "le", "gt", "ge"):
        return bounds_loss(old, new) or (_inputs(old, new) if _unknown(old) and _unknown(new) else None)
    if (
        old.relation == "equal"
        and old.strict > 0
        and new.strict == -old.strict
        and canon(old.subject) == canon(new.subject)
    ):
        return Loss("equality-relaxed", "review", f"{short(old.raw)} is compared without regard to types")
    if two is not None and _falls_back(new, two) and not _falls_back(old, two):
        text = f"what is expected, {short(two)}, is also what {short(new.raw)} falls back to"
        return Loss("expected-value-is-default", "block", text)
    if one is None or two is None or canon(one) == canon(two):
        return _inputs(old, new)
    if old.relation == "changes":
        narrower = two.op == "list" and one.op == "list" and len(two.args) < len(one.args)
        if narrower or ("at_least" in two.text and "at_least" not in one.text):
            text = f"how much {short(old.raw)} changes is no longer checked"
            return Loss("assertion-loosened", "block", text)
    if old.relation == "equal" and new.key in {part.key for part in pieces(old)}:
        text = f"only {short(new.raw)} of {short(old.raw)} is compared"
        return Loss("comparison-narrowed", "block", text)
    if one.op == "dict" and two.op in ("list", "tuple", "set") and two.args:
        keys = {canon(pair.args[0]) for pair in one.args if pair.op == "pair"}
        if {canon(arg) for arg in two.args} <= keys:
            return Loss("comparison-narrowed", "block", f"only the keys of {short(old.raw)} are compared")
    if wild_parts(two) > wild_parts(one):
        return Loss(
            "expected-value-loosened", "block", f"parts of what {short(old.raw)} should be accept anything"
        )
    texts = isinstance(two.value, str) and isinstance(one.value, str)
    if old.relation == "regex" and texts and _looser_pattern(one.value, two.value):
        return Loss("pattern-loosened", "block", f"the pattern {short(one)} became {short(two)}")
    if old.relation in ("contains", "partial") and _contained(two, one):
        return Loss("assertion-loosened", "block", f"{short(one)} became {short(two)}, which is a part of it")
    more = two.op in ("tuple", "list") and any(canon(arg) == canon(one) for arg in two.args)
    if old.relation == "type" and more:
        return Loss("assertion-loosened", "block", f"more types are accepted: {short(two)}")
    if old.relation == "equal" and one.op in ("list", "tuple") and _is_set(two) and not _is_set(one):
        return Loss("assertion-ignores-order", "block", f"{short(old.raw)} is compared as a set")
    own = _asked_of(new.subject) & _asked_of(two) - _asked_of(one)
    if old.relation == "equal" and own:
        text = f"the expected value is computed by what is tested ({min(own)[:60]})"
        return Loss("expected-from-actual", "block", text)
    if old.relation == "equal" and _computed(new) and not _computed(old):
        called = {part.callee for part in new.subject.walk() if part.op == "call"} & {
            part.callee for part in two.walk() if part.op == "call"
        }
        called = {word for word in called if "." not in word and not hasattr(builtins, word)}
        if called:
            return Loss(
                "expected-from-actual",
                "block",
                f"the expected value is computed by what is tested ({', '.join(sorted(called))})",
            )
    if _same_numbers(one, two) or (is_constant(two) and _STORED.search(one.text)):
        return None
    if old.relation == "approx" and canon(old.raw) == canon(new.raw) and not literals(two):
        return None
    if old.relation == "approx" and is_constant(one) and is_constant(two) and _close(one, two, old.slack):
        return None
    if old.relation == "approx" or is_constant(one) or is_constant(two) or literals(one) != literals(two):
        return Loss(
            "expected-value-changed",
            "review",
            f"{short(old.raw)} was expected to be {short(one)}, now {short(two)}",
        )
    return None


_SETS = re.compile(
    r"(?:^|\.)(?:set|frozenset|(?:new )?(?:Hash|BTree|Linked|Tree)?Set(?:\.(?:from|of|new))?)(?:<.*)?$"
)


_DEFAULTS = re.compile(
    r"(?:^|\.)(?:get|getattr|unwrap_or|getOrDefault|GetValueOrDefault|fetch|orElse|next|setdefault|dig)$"
)


def _falls_back(check: Check, value: Expr) -> bool:
    """Does the subject put the expected value in place of what is missing: `x or 3`, `d.get(k, 3)`?"""
    if value.value is None and value.op == "lit":
        return False
    wanted = canon(value)
    for part in check.subject.walk():
        chosen = part.op == "or" or (part.op == "bin" and part.name == "??")
        looked_up = part.op == "call" and len(part.args) > 1 and _DEFAULTS.search(part.callee)
        if (chosen or looked_up) and canon(part.args[-1]) == wanted:
            return True
    return False


def _is_set(expr: Expr) -> bool:
    return expr.op == "set" or (expr.op == "call" and _SETS.search(expr.callee) is not None)


def _allowed(check: Check) -> float:
    """How far off a value may be; what is relative counts as such where the expected value isn't known."""
    size = abs(number(check.expected, 1.0)) if check.relative and check.expected is not None else 1.0
    return check.slack * size


def _close(one: Expr, two: Expr, slack: float) -> bool:
    a, b = number(one, float("nan")), number(two, float("nan"))
    return abs(a - b) <= max(slack, 1e-6) * max(1.0, abs(a))


_STORED = re.compile(r"\.read_(?:text|bytes)\(|\bopen\(|read(?:File|_to_string)\w*\(|ReadFile\(|include_str!")
"""An expected value that is read from a file; to write it out instead is no loss."""


def _same_numbers(one: Expr, two: Expr) -> bool:
    """Are two expected values made of the same numbers, one of them by a function: `at("02-29 12:00")`?"""
    if is_constant(one) or is_constant(two):
        return False
    sides = []
    for side in (one, two):
        digits = [word for text in literals(side) for word in re.findall(r"\d+", text)]
        sides.append([n for n in map(int, digits) if n])
    return len(sides[0]) >= 2 and sides[0] == sides[1]


def _unknown(check: Check) -> bool:
    """Is a limit no number?"""
    return number(check.expected, float("nan")) != number(check.expected, float("nan"))


_MODULES = {"datetime", "np", "numpy", "math", "json", "os", "re", "self", "this", "time", "pd", "Math",
            "JSON", "Object", "Array", "strings", "fmt", "bytes", "reflect", "errors", "sys", "path",
            "Path"}  # fmt: skip


def _asked_of(expr: Expr) -> set[str]:
    """Objects whose methods an expression calls, modules aside."""
    found = [p.args[0].args[0] for p in expr.walk() if p.op == "call" and p.args[0].op == "attr"]
    return {canon(part) for part in found if not (part.op == "name" and part.name in _MODULES)}


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


def _inputs(old: Check, new: Check) -> Loss | None:
    """The same expectation of something else: other arguments."""
    if canon(old.subject) == canon(new.subject):
        return None
    a, b = literals(old.subject), literals(new.subject)
    if sorted(a) != sorted(b) and sorted(literals(old.raw)) != sorted(literals(new.raw)):
        return Loss("input-changed", "review", f"the same is expected of another input: {short(new.raw)}")
    if sorted(a) != sorted(b) and canon(old.raw) == canon(new.raw) and b and set(a) - set(b):
        return Loss("input-changed", "review", f"{short(new.raw)} is now made from other input")
    return None

"""Limits and tolerances: may a value be farther off than before?"""

from __future__ import annotations

import re

from agent_ls.guard.checks import Check, canon
from agent_ls.guard.conditions import number
from agent_ls.guard.losses import Loss, short

_TIME = re.compile(
    r"elapsed|duration|time|seconds|took|delay|latency|perf|deadline|\bms\b|clock|\bdt\b|memory|bytes",
    re.IGNORECASE,
)


def bounds_loss(old: Check, new: Check) -> Loss | None:
    upper = {"lt", "le"}
    if (old.relation in upper) != (new.relation in upper):
        return Loss("assertion-inverted", "review", f"{short(old.raw)} is bounded from the other side")
    if old.expected is None or new.expected is None:
        return None
    a, b = number(old.expected, float("nan")), number(new.expected, float("nan"))
    if a != a or b != b:
        if canon(old.expected) != canon(new.expected):
            return Loss(
                "limit-changed", "review", f"the limit {short(old.expected)} became {short(new.expected)}"
            )
        return (
            Loss("limit-loosened", "block", f"{short(old.raw)} may now also be {short(new.expected)}")
            if _strict(old) and not _strict(new)
            else None
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
        f"the limit of {short(old.raw)} went from {a:g} to {b:g}",
    )


def _strict(check: Check) -> bool:
    return check.relation in ("lt", "gt")

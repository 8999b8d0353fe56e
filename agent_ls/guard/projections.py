"""Is only a part of what was compared still compared: `sorted(x)`, `round(x)`, `x.id`, `len(x)`?"""

from __future__ import annotations

import re

from agent_ls.guard.checks import Check, canon
from agent_ls.guard.conditions import number
from agent_ls.guard.losses import Loss, short
from agent_ls.guard.syntax import Expr

_NARROWING = re.compile(
    r"(?:^|\.)(?:sorted|set|frozenset|round|len|int|str|bool|lower|upper|strip|casefold|split|replace|sort|toSorted|trim|toLowerCase"
    r"|to_lowercase|toUpperCase|to_i|abs|type|count|size|length|keys|Counter|rstrip|lstrip|any|sum|max|min|downcase|squish|slice|sub"
    r"|normalize|normalise|Trim|ToLower|Count|Length|First|first|Fields|TrimSpace|floor|ceil|Math\.round|Math\.floor|trunc"
    r"|to_set|uniq|math\.Round|first_word|re\.sub|Sorted|ToUpper|HashSet|new Set|new HashSet"
    r"|OrderBy|OrderByDescending|Order|orderBy|sort_by|sortBy|sorted_by|typeof|isArray|isNaN|isFinite|isInteger|every|some"
    r"|Any|All|anyMatch|allMatch|toFixed|is_a\?|positive\?|any\?|all\?|none\?|include\?|hash|hashCode|id|getClass|GetType"
    r"|\(int\)|\(long\)|Number|Boolean|String|parseInt|parseFloat|repr|is_integer|isdigit|startsWith|endsWith|startswith"
    r"|endswith|partition|splitlines|swapcase|title|capitalize|dropWhile|distinct|Distinct|ToHashSet|toSet|keySet|values"
    r"|split_whitespace|is_some|is_ok|head|pop|take)$"
)


def projection(old: Check, new: Check) -> Loss | None:
    """The new subject is made of the old one by something that loses a part of it."""
    if old.relation not in ("equal", "contains", "approx", "any-order", "partial"):
        return None
    inner = {canon(old.subject)} if old.raw.op == "name" else {canon(old.raw), canon(old.subject)}
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
    return Loss("comparison-narrowed", "block", f"only {short(found)} is compared, not {short(old.raw)}")


def rounding(check: Check) -> float:
    """How much a rounding of the subject leaves open."""
    for part in check.subject.walk():
        if part.op == "call" and part.callee in ("round", "Math.round", "math.Round"):
            digits = part.args[2] if len(part.args) > 2 else None
            return float(0.5 * 10.0 ** -number(digits, 0.0))
        if part.op == "call" and part.callee.endswith(".toFixed"):
            digits = part.args[1] if len(part.args) > 1 else None
            return float(0.5 * 10.0 ** -number(digits, 0.0))
        if part.op == "call" and part.callee in ("int", "(int)", "(long)", "Math.floor", "math.floor"):
            return 1.0
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

"""What a property is tried with: does a generator draw from less than before?

Reads the normal form of the generator's call: bounds, alphabets, filters, fixed values.
"""

from __future__ import annotations

import re
from collections import Counter

_NAMED = re.compile(
    r"'?(\w+)'?(?:=|: )('(?:[^'\\]|\\.)*'|-?[\d.]+(?:e[+-]?\d+)?|True|False|\w+\.\w+|\[[^\]]*\])"
)
_FIXED = re.compile(r"\b(?:just|sampled_from|constant|constantFrom|booleans|filter|suchThat|none|nothing)\b")
_LOW = re.compile(r"^(?:min|low|start|gte)", re.IGNORECASE)
_HIGH = re.compile(r"^(?:max|high|stop|lte|size|length)", re.IGNORECASE)


def _given(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, value in _NAMED.findall(text):
        found.setdefault(key, []).append(value)
    return found


def _compare(old: str, new: str) -> tuple[int, int]:
    """(how many limits became tighter, how many became wider)."""
    tighter = wider = 0
    one, two = _given(old), _given(new)
    for key in {*one, *two}:
        was, now = one.get(key, []), two.get(key, [])
        if len(now) > len(was):
            tighter += now[len(was) :].count("False") + sum(
                value not in ("False",) for value in now[len(was) :]
            )
        elif len(now) < len(was):
            wider += 1
        for a, b in zip(was, now, strict=False):
            if a == b:
                continue
            if a[0] in "'[" and b[0] in "'[":
                tighter, wider = (tighter + 1, wider) if len(b) < len(a) else (tighter, wider + 1)
                continue
            try:
                grown = float(b) > float(a)
            except ValueError:
                tighter, wider = (tighter + 1, wider) if b == "False" else (tighter, wider + (b == "True"))
                continue
            if _LOW.match(key):
                tighter, wider = (tighter + 1, wider) if grown else (tighter, wider + 1)
            elif _HIGH.match(key):
                tighter, wider = (tighter, wider + 1) if grown else (tighter + 1, wider)
    fixed = Counter(_FIXED.findall(new))
    fixed.subtract(Counter(_FIXED.findall(old)))
    tighter += sum(count for count in fixed.values() if count > 0)
    wider += sum(-count for count in fixed.values() if count < 0)
    return tighter, wider


def narrowed(old: str, new: str) -> bool:
    """Does the generator `new` draw from less than `old`?"""
    tighter, wider = _compare(old, new)
    return tighter > 0 and tighter >= wider


def widened(old: str, new: str) -> bool:
    """Does it draw from more, or from as much in other words?"""
    tighter, wider = _compare(old, new)
    return tighter == 0 and wider > 0

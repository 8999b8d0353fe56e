"""In which order candidates are tried: every kind of edit gets its fair share of the first attempts.

An operator that can make thousands of edits of a program is not more often right than one that can make
five. So each operator has a chance to be the one that fixes a fault, and its candidates share it in
proportion to how well they fit. The order is by the geometric mean of that share and of the fit alone:
the fit finds the usual edits sooner, the share keeps the unusual ones from being starved.
"""

from __future__ import annotations

from collections.abc import Sequence

_CHANCES: dict[str, float] = {
    "compare-operator": 0.08,
    "wrong-variable": 0.08,
    "add-condition": 0.07,
    "insert-statement": 0.06,
    "off-by-one": 0.06,
    "insert-guard": 0.05,
    "wrong-callee": 0.05,
    "arithmetic-operator": 0.04,
    "add-argument": 0.04,
    "constant": 0.04,
    "wrap-call": 0.04,
    "none-check": 0.03,
    "replace-condition": 0.03,
    "negate-condition": 0.03,
    "add-term": 0.03,
    "drop-term": 0.03,
    "swap-arguments": 0.03,
    "wrong-attribute": 0.03,
    "replace-expression": 0.03,
    "assignment-target": 0.02,
    "and-or": 0.02,
    "drop-condition": 0.02,
    "wrap-in-condition": 0.02,
    "constant-to-condition": 0.02,
    "constant-to-name": 0.02,
    "flip-boolean": 0.02,
    "container": 0.02,
    "unwrap-call": 0.02,
    "add-method": 0.02,
    "swap-operands": 0.02,
    "regroup": 0.02,
    "slice": 0.02,
    "slice-bound": 0.02,
    "return-value": 0.02,
    "dedent": 0.015,
    "swap-statements": 0.015,
    "delete-statement": 0.015,
    "string-constant": 0.015,
    "augmented-operator": 0.015,
    "keep-result": 0.015,
    "missing-return": 0.015,
    "mutable-default": 0.015,
    "exception-type": 0.015,
    "add-attribute": 0.015,
    "drop-argument": 0.015,
    "dict-get": 0.015,
}
"""Estimated shares of fixes by operator, in round numbers: guesses, guided by which single-statement patterns
published collections found common (ManySStuBs4J, PySStuBs, TBar), not their figures."""
_OTHER = 0.008
_SPARSE = 0.3
"""Keeps an operator with one ill-fitting candidate from giving it the whole share."""
_CROWD = 12
"""The n-th edit of an operator on the same line counts half for n = this."""


def crowded(keys: Sequence[tuple[str, int, str]]) -> list[float]:
    """A factor 0..1 for each edit (path, line, operator), best first, that falls along one operator's
    edits of one line."""
    counts: dict[tuple[str, int, str], int] = {}
    found = []
    for key in keys:
        counts[key] = counts.get(key, 0) + 1
        found.append(1 / (1 + counts[key] / _CROWD))
    return found


def chances(operators: Sequence[str], scores: Sequence[float]) -> list[float]:
    """How early each candidate is tried (0..1, larger is earlier), from its operator and its score (0..1]."""
    totals: dict[str, float] = {}
    for operator, score in zip(operators, scores, strict=True):
        totals[operator] = totals.get(operator, 0.0) + score
    return [
        score * (_CHANCES.get(operator, _OTHER) / (totals[operator] + _SPARSE)) ** 0.5
        for operator, score in zip(operators, scores, strict=True)
    ]

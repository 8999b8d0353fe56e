"""Which test of the old tree is which of the new one: by its name, then by what it does.

Names match in the same file, then anywhere; what is left is paired by the checks that it makes and by the
words of its body. A moved, renamed or regrouped test is no deleted one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from agent_ls.guard.checks import shape
from agent_ls.guard.model import Test

SIMILAR = 0.5
"""Shared words of two bodies (weighted Jaccard) from which they count as the same test."""


TWIN = 0.85
"""Shared words from which two tests say the same: one of them may go."""


def match_tests(
    old: Sequence[Test], new: Sequence[Test]
) -> tuple[list[tuple[Test, Test]], list[Test], list[Test]]:
    """(pairs, old tests without a partner, new tests without one)."""
    pairs: list[tuple[Test, Test]] = []
    left, right = list(old), list(new)
    for key in (_by_place, _by_id, _by_name, _by_plain_name):
        left, right = _pair(left, right, key, pairs)
    left, right = _by_content(left, right, pairs)
    left, right = _by_neighbours(left, right, pairs)
    return pairs, left, right


def _by_place(test: Test) -> object:
    return (test.path, test.id)


def _by_id(test: Test) -> object:
    return test.id


def _by_name(test: Test) -> object:
    return test.name


def _by_plain_name(test: Test) -> object:
    """`testFooBar`, `test_foo_bar` and `foo bar` are one name."""
    return re.sub(r"^test|[\W_]+", "", test.name, flags=re.IGNORECASE).lower() or test.name


def _pair(
    left: list[Test], right: list[Test], key: object, pairs: list[tuple[Test, Test]]
) -> tuple[list[Test], list[Test]]:
    assert callable(key)
    places: dict[object, list[Test]] = defaultdict(list)
    for test in right:
        places[key(test)].append(test)
    counts: dict[object, int] = defaultdict(int)
    for test in left:
        counts[key(test)] += 1
    rest, used = [], set()
    for test in left:
        found = [t for t in places.get(key(test), []) if id(t) not in used]
        if found and len(found) == 1 and counts[key(test)] == 1:
            used.add(id(found[0]))
            pairs.append((test, found[0]))
        else:
            rest.append(test)
    return rest, [test for test in right if id(test) not in used]


def _by_content(
    left: list[Test], right: list[Test], pairs: list[tuple[Test, Test]]
) -> tuple[list[Test], list[Test]]:
    if not left or not right or len(left) * len(right) > 250_000:
        return left, right
    scored = []
    for one in left:
        keys, shapes = {check.key for check in one.checks}, shapes_of(one)
        for two in right:
            score = similarity(one, two)
            if keys:
                score = max(score, len(keys & {check.key for check in two.checks}) / len(keys))
                score = max(score, 0.9 * len(shapes & shapes_of(two)) / len(shapes))
            if score >= SIMILAR:
                scored.append((score, one.path == two.path, -abs(one.line - two.line), one, two))
    used: set[int] = set()
    for _, _, _, one, two in sorted(scored, key=lambda item: item[:3], reverse=True):
        if id(one) not in used and id(two) not in used:
            used |= {id(one), id(two)}
            pairs.append((one, two))
    return [t for t in left if id(t) not in used], [t for t in right if id(t) not in used]


LIKE = 0.3
"""Shared words of two bodies, or half of the words of their names, from which two tests that stand between
the same neighbours count as one."""


def _by_neighbours(
    left: list[Test], right: list[Test], pairs: list[tuple[Test, Test]]
) -> tuple[list[Test], list[Test]]:
    """Pair tests that stand in the same place, between the same known ones, and are somewhat alike."""
    if not left or not right:
        return left, right
    known: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for one, two in pairs:
        if one.path == two.path:
            known[one.path].append((one.line, two.line))
    scored = []
    for one in left:
        before = [new for old, new in known[one.path] if old < one.line]
        behind = [new for old, new in known[one.path] if old > one.line]
        start, stop = max(before, default=0), min(behind, default=1 << 30)
        for two in right:
            if two.path != one.path or not start < two.line < stop:
                continue
            words = _words(one.name), _words(two.name)
            named = len(words[0] & words[1]) / max(1, len(words[0] | words[1]))
            score = similarity(one, two)
            if score >= LIKE or (named >= 0.5 and one.calls & two.calls):
                scored.append((score + named, one, two))
    used: set[int] = set()
    for _, one, two in sorted(scored, key=lambda item: -item[0]):
        if id(one) not in used and id(two) not in used:
            used |= {id(one), id(two)}
            pairs.append((one, two))
    return [t for t in left if id(t) not in used], [t for t in right if id(t) not in used]


def _words(label: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|\d+|[A-Z]+", label)} - {"test", "should", "it"}


def shapes_of(test: Test) -> set[tuple[str, str, str]]:
    """Its checks without the names of variables."""
    return {
        (shape(check.raw), check.relation, check.expected.text if check.expected is not None else "")
        for check in test.checks
    }


def similarity(one: Test, two: Test) -> float:
    """Weighted Jaccard of the words in two bodies."""
    if not one.tokens or not two.tokens:
        return 0.0
    both = sum((one.tokens & two.tokens).values())
    return both / sum((one.tokens | two.tokens).values())

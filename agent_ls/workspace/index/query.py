"""What a text search must find whatever else it finds: literals that every matching line contains.

From a regular expression's syntax tree come clauses: a matching line contains, for every clause, at least
one of its literals (the idea of R. Cox, "Regular Expression Matching with a Trigram Index", 2012, with
literals in place of trigrams). The literals then name words (`words.py`), and the words name files.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, Literal

from attrs import field, frozen

from agent_ls.errors import ToolRefused

Case = Literal["smart", "sensitive", "insensitive"]
Clause = frozenset[str]

_MOST_STRINGS = 24
_LONGEST = 200
_WIDEST_CLASS = 4
_STEPS = 1e7
_LENGTHS = (100_000_000, 1_000_000, 100_000, 20_000, 5_000, 2_000, 1_000, 500, 300, 200, 120)


@frozen
class Query:
    """A search, understood. `pattern` is the expression as Python reads it, `compiled` None when it isn't
    Python's. A matching line has, for every one of `clauses`, at least one of its literals (none: nothing can
    be said); with `fold` those are lower-case ASCII and case must be ignored. `longest` is the length of a
    line (in characters) up to which matching surely takes well under a second (0: none is sure)."""

    text: str
    regex: bool
    word: bool
    ignore_case: bool
    pattern: str
    compiled: re.Pattern[str] | None = field(eq=False)
    clauses: tuple[Clause, ...] = ()
    fold: bool = False
    longest: int = 0

    @property
    def needles(self) -> tuple[str, ...]:
        """The clause that narrows lines best: few literals, the shortest of them long."""
        best = max(self.clauses, key=lambda clause: (min(map(len, clause)), -len(clause)), default=Clause())
        return tuple(sorted(best))


def understand(query: str, *, regex: bool, word: bool, case: Case, strict: bool = True) -> Query:
    """Read a query. "smart" `case` ignores case unless the query has a capital letter.

    Raises ToolRefused for an empty query, one of several lines, or an expression that isn't Python's;
    with `strict` False such an expression comes back with `compiled` None, for ripgrep to judge.
    """
    if not query.strip("\r\n"):
        raise ToolRefused("the query is empty")
    if "\n" in query or "\r" in query:
        raise ToolRefused("the query spans several lines; search looks at one line at a time")
    ignore_case = case == "insensitive" or (case == "smart" and not _has_capital(query, regex))
    pattern = query if regex else re.escape(query)
    if word:
        pattern = rf"(?<!\w)(?:{pattern})(?!\w)"
    flags = re.IGNORECASE if ignore_case else re.NOFLAG
    try:
        with warnings.catch_warnings():
            # What Python warns of (POSIX classes, set operations) other programs read differently.
            warnings.simplefilter("ignore" if strict else "error", FutureWarning)
            compiled = re.compile(pattern, flags)
            tree = _parser.parse(pattern, flags)
    except (re.error, OverflowError, RecursionError, FutureWarning) as error:
        if not strict:
            return Query(query, regex, word, ignore_case, pattern, None)
        raise ToolRefused(
            f"{query!r} is not a valid regular expression: {error}", "Search for it as plain text instead."
        ) from None
    reader = _Reader(bool(ignore_case or compiled.flags & re.IGNORECASE or _folds(tree)))
    try:
        clauses = tuple(dict.fromkeys(reader.clauses(tree)))
        longest = _longest(tree) if regex else _LENGTHS[0]
    except RecursionError:
        clauses, longest = (), 0
    return Query(query, regex, word, ignore_case, pattern, compiled, clauses, reader.fold, longest)


def _has_capital(query: str, regex: bool) -> bool:
    text = re.sub(r"\\.", "", query) if regex else query
    return any(char.isupper() for char in text)


def _parts(argument: Any) -> Iterator[Any]:
    """The syntax trees inside a node's argument."""
    if isinstance(argument, _parser.SubPattern):
        yield argument
    elif isinstance(argument, list | tuple):
        for item in argument:
            yield from _parts(item)


def _folds(tree: Any) -> bool:
    """Does any group ignore case by a flag of its own?"""
    for op, argument in tree:
        if op is ops.SUBPATTERN and argument[1] & re.IGNORECASE:
            return True
        if any(_folds(part) for part in _parts(argument)):
            return True
    return False


class _Reader:
    """Finds the clauses of a syntax tree. With `fold`, literals are ASCII only and in lower case: what else
    ignoring case makes equal depends on the engine."""

    def __init__(self, fold: bool) -> None:
        self.fold = fold

    def clauses(self, tree: Any) -> list[Clause]:
        exact, clauses = self._sequence(tree)
        return clauses + _as_clause(exact or set())

    def _sequence(self, items: Iterable[Any]) -> tuple[set[str] | None, list[Clause]]:
        """(all strings that it matches, or None when they can't be listed; clauses of the rest)."""
        current = {""}
        clauses: list[Clause] = []
        complete = True
        for op, argument in items:
            exact, more = self._node(op, argument)
            clauses += more
            if exact is not None and len(current) * len(exact) <= _MOST_STRINGS:
                joined = {a + b for a in current for b in exact}
                if max(map(len, joined), default=0) <= _LONGEST:
                    current = joined
                    continue
            complete = False
            clauses += _as_clause(current)
            current = exact if exact is not None else {""}
        if complete:
            return current, clauses
        return None, clauses + _as_clause(current)

    def _node(self, op: Any, argument: Any) -> tuple[set[str] | None, list[Clause]]:
        if op is ops.LITERAL:
            return self._characters([argument])
        if op is ops.IN:
            return self._characters(_members(argument))
        if op is ops.AT or op is ops.ASSERT_NOT:
            return {""}, []
        if op is ops.ASSERT:
            return {""}, self.clauses(argument[1])
        if op is ops.SUBPATTERN:
            return self._sequence(argument[3])
        if op is ops.ATOMIC_GROUP:
            return self._sequence(argument)
        if op is ops.BRANCH:
            return self._branch([self._sequence(branch) for branch in argument[1]])
        if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
            return self._repeat(*argument)
        return None, []

    def _characters(self, codes: Sequence[int] | None) -> tuple[set[str] | None, list[Clause]]:
        if not codes or any(code in (10, 13) or (self.fold and code > 127) for code in codes):
            return None, []
        found = {chr(code).lower() if self.fold else chr(code) for code in codes}
        return found, []

    def _branch(
        self, branches: Sequence[tuple[set[str] | None, list[Clause]]]
    ) -> tuple[set[str] | None, list[Clause]]:
        union: set[str] = set()
        for exact, _clauses in branches:
            if exact is None or _clauses:
                break
            union |= exact
        else:
            if len(union) <= _MOST_STRINGS:
                return union, []
        together: set[str] = set()
        for exact, clauses in branches:
            options = [*clauses, *(_as_clause(exact) if exact is not None else [])]
            if not options:
                return None, []
            together |= max(options, key=lambda clause: (min(map(len, clause)), -len(clause)))
        return None, [Clause(together)] if len(together) <= 4 * _MOST_STRINGS else []

    def _repeat(self, low: int, high: int, body: Any) -> tuple[set[str] | None, list[Clause]]:
        exact, clauses = self._sequence(body)
        if low == 0:
            if high == 1 and exact is not None and not clauses:
                return exact | {""}, []
            return None, []
        if exact is not None and low == high and not clauses:
            strings = {""}
            for _ in range(low):
                strings = {a + b for a in strings for b in exact}
                if len(strings) > _MOST_STRINGS or max(map(len, strings)) > _LONGEST:
                    break
            else:
                return strings, []
        return None, clauses + (_as_clause(exact) if exact is not None else [])


def _as_clause(strings: set[str]) -> list[Clause]:
    if not strings or "" in strings:
        return []
    # One that contains another says nothing that the other doesn't.
    return [Clause(a for a in strings if not any(b in a for b in strings if b != a))]


def _members(argument: Sequence[Any]) -> list[int] | None:
    """The characters of a small class."""
    codes: list[int] = []
    for op, value in argument:
        if op is ops.LITERAL:
            codes.append(value)
        elif op is ops.RANGE and value[1] - value[0] < _WIDEST_CLASS:
            codes += range(value[0], value[1] + 1)
        else:
            return None
    return codes if len(codes) <= _WIDEST_CLASS else None


def _longest(tree: Any) -> int:
    """The longest line for which a backtracking matcher surely takes fewer than about ten million steps."""
    items = list(tree)
    while items and items[-1][0] in (ops.MAX_REPEAT, ops.MIN_REPEAT) and items[-1][1][2].getwidth()[0] > 0:
        items.pop()  # nothing follows that could fail and send it back
    for length in _LENGTHS:
        # From every start, every way to divide the line among the parts, each as long as the line at most.
        if length * _ways(items, length) <= _STEPS * (10 if length == _LENGTHS[0] else 1):
            return length
    return 0


def _ways(items: Iterable[Any], length: int) -> float:
    """An upper bound of the ways in which the parts can match within a line of this length."""
    total = 1.0
    for op, argument in items:
        total *= _ways_of(op, argument, length)
        if total > _STEPS:
            return float("inf")
    return total


def _ways_of(op: Any, argument: Any, length: int) -> float:
    if op is ops.SUBPATTERN:
        return _ways(argument[3], length)
    if op is ops.ATOMIC_GROUP:
        return _ways(argument, length)
    if op is ops.BRANCH:
        return sum(_ways(branch, length) for branch in argument[1])
    if op in (ops.ASSERT, ops.ASSERT_NOT):
        return _ways(argument[1], length)
    if op is ops.GROUPREF_EXISTS:
        return sum(_ways(part, length) for part in argument[1:] if part is not None)
    if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
        low, high, body = argument
        times = min(int(high), length)
        inside = _ways(body, length)
        narrow, wide = body.getwidth()
        if inside == 1 and narrow == wide and narrow > 0:
            return float(max(1, times - min(int(low), times) + 1))
        if times > 64:
            return float("inf")
        try:
            return float(max(1.0, (inside + 1) ** times))
        except OverflowError:
            return float("inf")
    return 1.0

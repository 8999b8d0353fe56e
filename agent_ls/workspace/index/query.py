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

from attrs import evolve, field, frozen

from agent_ls.errors import ToolRefused

Case = Literal["smart", "sensitive", "insensitive"]
Clause = frozenset[str]

_MOST_STRINGS = 24
_LONGEST = 200
_WIDEST_CLASS = 4
_STEPS = 1e7
_LITERAL_START = 2
_LENGTHS = (100_000_000, 1_000_000, 100_000, 20_000, 5_000, 2_000, 1_000, 500, 300, 200, 120)


@frozen
class Query:
    """A search, understood. `pattern` is the expression as Python reads it, `compiled` None when it isn't
    Python's. A matching line has, for every one of `clauses`, at least one of its literals (none: nothing can
    be said); with `fold` those are lower-case ASCII and case must be ignored. `longest` is the length of a
    line (in characters) up to which matching surely takes well under a second (0: none is sure).

    `whole` is None, or finds in a text of several lines what `compiled` finds in each (see `_as_whole`);
    `whole_ascii` is the same for bytes that are ASCII. `rooms` are pairs (length of a line, of a text): a
    text up to that long without longer lines is surely done in well under a second."""

    text: str
    regex: bool
    word: bool
    ignore_case: bool
    pattern: str
    compiled: re.Pattern[str] | None = field(eq=False)
    clauses: tuple[Clause, ...] = ()
    fold: bool = False
    longest: int = 0
    whole: re.Pattern[str] | None = field(default=None, eq=False)
    whole_ascii: re.Pattern[bytes] | None = field(default=None, eq=False)
    rooms: tuple[tuple[int, int], ...] = ()

    @property
    def is_plain(self) -> bool:
        """Is it nothing but one literal, its text?"""
        text = self.text.lower() if self.fold else self.text
        return not (self.regex or self.word) and self.clauses == (Clause((text,)),)

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
    if not (regex or word or ignore_case) and len(query) <= _LONGEST:
        return _understand_plain(query)
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
    found = Query(query, regex, word, ignore_case, pattern, compiled, clauses, reader.fold, longest)
    if not regex or reader.fold or longest == 0:
        return found
    whole, ascii_whole = _as_whole(pattern, compiled, tree)
    return evolve(found, whole=whole, whole_ascii=ascii_whole, rooms=_rooms(tree) if whole else ())


def _understand_plain(query: str) -> Query:
    """A literal as it is written, whose expression there is no need to read."""
    pattern = re.escape(query)
    return Query(
        query, False, False, False, pattern, re.compile(pattern), (Clause((query,)),), False, _LENGTHS[0]
    )


def _as_whole(
    pattern: str, compiled: re.Pattern[str], tree: Any
) -> tuple[re.Pattern[str] | None, re.Pattern[bytes] | None]:
    """The expression for texts of several lines, and for bytes, where the first match behind each line's
    start is surely the one in that line alone: it can't match a line's end nor tell it from a text's, and
    isn't empty. Only where it begins with a literal, which `re` looks for quickly; else nothing is gained."""
    if not _one_line(tree) or compiled.flags & re.DOTALL or _literal_start(tree) < _LITERAL_START:
        return None, None
    flags = (compiled.flags | re.MULTILINE) & ~re.UNICODE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        whole = re.compile(pattern, flags)
        try:
            return whole, re.compile(pattern.encode("ascii"), flags)
        except (re.error, ValueError):
            return whole, None


def _literal_start(tree: Any) -> int:
    """How many literal characters an expression begins with."""
    count = 0
    for op, argument in tree:
        if op is ops.SUBPATTERN and count == 0:
            return _literal_start(argument[3])
        if op is not ops.LITERAL:
            break
        count += 1
    return count


_ONE_LINE_CATEGORIES = frozenset({ops.CATEGORY_DIGIT, ops.CATEGORY_WORD, ops.CATEGORY_NOT_SPACE})
_ONE_LINE_PLACES = frozenset({ops.AT_BOUNDARY, ops.AT_BEGINNING, ops.AT_END})


def _one_line(tree: Any) -> bool:
    """Can no part match a line's end, nor tell it from the end of the text (with MULTILINE)?"""
    return all(_one_line_node(op, argument) for op, argument in tree)


def _one_line_node(op: Any, argument: Any) -> bool:
    if op is ops.LITERAL:
        return argument not in (10, 13)
    if op is ops.NOT_LITERAL:
        return bool(argument == 10)
    if op is ops.IN:
        negated = argument[0][0] is ops.NEGATE
        return any(_has(item, 10) for item in argument) if negated else all(map(_one_line_item, argument))
    if op is ops.AT:
        return argument in _ONE_LINE_PLACES
    if op is ops.SUBPATTERN and argument[1] | argument[2]:
        return False
    if op in (ops.ANY, ops.GROUPREF):
        return True
    if op in _NESTED:
        return all(_one_line(part) for part in _parts(argument))
    return False


_NESTED = frozenset(
    {
        *(ops.SUBPATTERN, ops.BRANCH, ops.ATOMIC_GROUP, ops.ASSERT, ops.ASSERT_NOT, ops.GROUPREF_EXISTS),
        *(ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT),
    }
)


def _one_line_item(item: tuple[Any, Any]) -> bool:
    op, value = item
    if op is ops.CATEGORY:
        return value in _ONE_LINE_CATEGORIES
    return op in (ops.LITERAL, ops.RANGE) and not (_has(item, 10) or _has(item, 13))


def _has(item: tuple[Any, Any], code: int) -> bool:
    op, value = item
    return bool(value == code if op is ops.LITERAL else op is ops.RANGE and value[0] <= code <= value[1])


def _rooms(tree: Any) -> tuple[tuple[int, int], ...]:
    """For lengths of lines, how long a text may be so that it takes some ten million steps at most, when
    every way to match begins with the literal."""
    start = _literal_start(tree)
    return tuple(
        (length, int(5 * _STEPS * start / ways))
        for length in _LENGTHS
        if (ways := _ways(tree, length)) < _STEPS
    )


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

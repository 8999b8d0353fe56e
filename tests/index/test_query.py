"""What a query must find: the literals that are read out of an expression."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_kit import EXPRESSIONS

from agent_ls.errors import ToolRefused
from agent_ls.workspace.index.query import Case, understand

CLAUSES = [
    (r"class \w+Field\(", ["class "], ["Field("]),
    (r"foo|bar", ["bar", "foo"]),
    (r"(foo|ba[rz])+qux?", ["bar", "baz", "foo"], ["qu"]),
    (r"https?://\w+", ["http://", "https://"]),
    (r"(?i)Hello", ["hello"]),
    (r"(?i:Hello) World", ["hello world"]),
    (r"gr[öo]ße", ["große", "größe"]),
    (r"(?i)größe", ["gr"], ["e"]),
    (r"x{3}y", ["xxxy"]),
    (r"(ab){2,}", ["ab"]),
    (r"(?:get|post)_x", ["get_x", "post_x"]),
    (r"(?:get|\w+)_x", ["_x"]),
    (r"(foo)?bar", ["bar"]),
    (r"(?=alpha)\w+", ["alpha"]),
    (r"(?!alpha)beta", ["beta"]),
    (r"(?<=def )area", ["def "], ["area"]),
    (r"\bfoo\b.*\bfoo\b", ["foo"]),
    (r"(a\w|b\w)c", ["a", "b"], ["c"]),
    (r"(?x) foo  # comment", ["foo"]),
    (r"\w+",),
    (r"[^a]",),
    (r".*",),
    (r"(foo|)",),
    (r"(foo)*",),
    (r"a\nb", ["a"], ["b"]),
]


@pytest.mark.parametrize("case", CLAUSES, ids=lambda case: case[0])
def test_clauses_of_an_expression(case: tuple) -> None:
    expression, *expected = case
    query = understand(expression, regex=True, word=False, case="sensitive")
    assert sorted(map(sorted, query.clauses)) == sorted(expected)


def test_a_literal_is_its_own_clause() -> None:
    query = understand("a.b[c] (", regex=False, word=True, case="sensitive")
    assert query.clauses == (frozenset({"a.b[c] ("}),)
    assert understand("Größe x", regex=False, word=False, case="insensitive").needles == ("e x",)


# Beside each expression, whether a short line and a long one may be matched without a watchdog.
LENGTHS = [
    (r"plain words", 10_000_000),
    (r"(foo|bar)baz", 100_000),
    (r"class \w+Field\(", 1_000),
    (r"\w+ \w+ x", 200),
    (r"foo.*", 1_000_000),
    (r"(a+)+b", 0),
    (r"(a|a)*b", 0),
    (r"(\w+\s?)*:", 0),
    (r".*.*.*.*=x", 0),
    (r"(?=(a+)+b)a", 0),
]


@pytest.mark.parametrize(("expression", "least"), LENGTHS)
def test_how_long_a_line_may_be(expression: str, least: int) -> None:
    longest = understand(expression, regex=True, word=False, case="sensitive").longest
    assert longest >= least and (least == 0) == (longest == 0)


@pytest.mark.parametrize("query", ["(", "[a", "*x", "a{99999999999}"])
def test_a_bad_expression(query: str) -> None:
    with pytest.raises(ToolRefused, match="not a valid regular expression"):
        understand(query, regex=True, word=False, case="smart")
    assert understand(query, regex=True, word=False, case="smart", strict=False).compiled is None


def test_what_programs_read_differently_is_left_to_ripgrep() -> None:
    assert understand("[[:alpha:]]x", regex=True, word=False, case="smart", strict=False).compiled is None


@pytest.mark.parametrize(
    ("query", "case", "ignored"),
    [
        ("area", "smart", True),
        ("Area", "smart", False),
        (r"\Warea", "smart", True),
        ("Area", "insensitive", True),
        ("area", "sensitive", False),
    ],
)
def test_case(query: str, case: Case, ignored: bool) -> None:
    assert understand(query, regex=True, word=False, case=case).ignore_case is ignored


LINES = st.text(st.sampled_from("abABkKsSiIıİſ\u212aéÉ _.cdß"), max_size=12)


@given(EXPRESSIONS, st.lists(LINES, min_size=1, max_size=8), st.sampled_from(["sensitive", "insensitive"]))
def test_every_matching_line_has_a_literal_of_every_clause(
    expression: str, lines: list[str], case: Case
) -> None:
    query = understand(expression, regex=True, word=False, case=case)
    assert query.compiled is not None
    for line in lines:
        if not query.compiled.search(line):
            continue
        # What is no ASCII letter but equals one without case is for the matcher to look out for.
        seen = re.sub("[ſıİ\u212a]", lambda odd: {"ſ": "s", "\u212a": "k"}.get(odd.group(), "i"), line)
        for clause in query.clauses:
            shown = seen.lower() if query.fold else line
            assert any(literal in shown for literal in clause), (expression, line, clause)

"""Fragments of words: what is found equals what a look at every word finds."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_ls.workspace._grep import ODD
from agent_ls.workspace.index.fragments import Fragments

WORDS = st.lists(
    st.text(st.sampled_from(f"abABsSkKiI_é É字{ODD}".replace(" ", "")), min_size=1, max_size=6), max_size=8
)


def containing(words: list[str], fragment: str, fold: bool) -> set[str]:
    text = "\n".join(["", *words, ""]).encode()
    return {word.decode() for word in Fragments(text).containing(fragment, fold=fold)}


@given(WORDS, st.text(st.sampled_from("abABsSkKiI_é"), min_size=1, max_size=3))
def test_case_counts(words: list[str], fragment: str) -> None:
    assert containing(words, fragment, False) == {word for word in words if fragment in word}


@given(WORDS, st.text(st.sampled_from("abski_"), min_size=1, max_size=3))
def test_what_re_takes_as_equal_is_found_and_little_more(words: list[str], fragment: str) -> None:
    found = containing(words, fragment, True)
    assert found >= {word for word in words if re.search(fragment, word, re.IGNORECASE)}
    assert all(fragment in word.lower() or any(odd in word for odd in ODD) for word in found)


@given(
    WORDS,
    st.text(st.sampled_from("abABski_é"), min_size=1, max_size=3),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_sorted_by_length_the_same_is_found(
    words: list[str], fragment: str, fold: bool, begins: bool, ends: bool
) -> None:
    asked = fragment.lower() if fold else fragment
    plain = Fragments("\n".join(["", *words, ""]).encode())
    ordered = Fragments(plain.text)
    ordered._sort()
    expected = set(plain.containing(asked, fold=fold))
    assert set(ordered.containing(asked, fold=fold)) == expected
    found = {word.decode() for word in ordered.containing(asked, fold=fold, begins=begins, ends=ends)}
    assert {word.encode() for word in found} <= expected
    for word in map(bytes.decode, expected):
        like = word.lower() if fold else word
        if (like.startswith(asked) or not begins) and (like.endswith(asked) or not ends):
            if begins and ends and like != asked:
                continue
            assert word in found


def test_whoever_asks_often_gets_the_same_answers() -> None:
    words = [f"w{number % 977}_{'x' * (number % 40)}" for number in range(9000)]
    fragments = Fragments("\n".join(["", *words, ""]).encode())
    answers = [set(fragments.containing("7_xxxxx", fold=False)) for _ in range(8)]
    assert answers[0] == {word.encode() for word in words if "7_xxxxx" in word}
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.parametrize(
    ("fragment", "fold", "found"),
    [
        ("größ", True, {"Größe", "GRÖSSE-größer"}),
        ("größ", False, {"GRÖSSE-größer"}),
        ("e", True, {"Größe", "GRÖSSE-größer", "Else"}),
        ("x", True, set()),
    ],
)
def test_letters_beyond_ascii(fragment: str, fold: bool, found: set[str]) -> None:
    assert containing(["Größe", "GRÖSSE-größer", "Else"], fragment, fold) == found

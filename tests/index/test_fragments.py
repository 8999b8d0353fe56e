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

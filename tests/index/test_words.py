"""Words: what the index remembers of a text must be enough to find every literal in it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_ls.workspace._grep import decoded
from agent_ls.workspace.index.words import MAX_WORD, UNINDEXED, words_of

CASES = [
    (b"", set()),
    (b"def area(self, x2): # caf\xc3\xa9", {b"def", b"area", b"self", b"x2", b"caf\xc3\xa9"}),
    (b"\xef\xbb\xbffirst second", {b"first", b"second"}),
    ("größe = Zahl".encode("utf-16"), {"größe".encode(), b"Zahl"}),
    ("größe".encode("latin-1"), {"größe".encode()}),
    (b"\x7fELF\0\0 some words", set()),
    (b"a" * MAX_WORD, {b"a" * MAX_WORD}),
    (b"short " + b"a" * (MAX_WORD + 1), {b"short", UNINDEXED}),
    (b"Case case", {b"Case", b"case"}),
]


@pytest.mark.parametrize(("data", "expected"), CASES)
def test_words_of_a_text(data: bytes, expected: set[bytes]) -> None:
    assert words_of(data) == expected


@given(
    st.text(st.sampled_from("abZ_09 é—字.\n'\x00ſ"), max_size=300),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1"]),
)
def test_every_run_of_the_text_is_a_word(text: str, encoding: str) -> None:
    data = text.encode(encoding, "replace")
    seen = decoded(data)
    expected: set[bytes] = set()
    if seen is not None:
        for run in re.findall(rb"[A-Za-z0-9_\x80-\xff]+", seen.encode("utf-8", "replace")):
            expected.add(run if len(run) <= MAX_WORD else UNINDEXED)
    assert words_of(data) == expected

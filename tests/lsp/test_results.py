"""A result against files that may have moved on."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_ls.lsp.features.review import text_edits
from agent_ls.lsp.positions import Encoding, Lines
from agent_ls.lsp.results import file_results
from agent_ls.workspace.git import Repository

LINES = st.lists(st.sampled_from(["a", "b", "ä😀", "", "def f():"]), max_size=8)


@given(
    LINES,
    LINES,
    st.booleans(),
    st.booleans(),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["utf-8", "utf-16"]),
)
def test_edits_make_the_wanted_text(
    old: list[str], new: list[str], old_end: bool, new_end: bool, eol: str, encoding: Encoding
) -> None:
    now = eol.join(old) + (eol if old_end else "")
    wanted = "\n".join(new) + ("\n" if new_end else "")
    edits = text_edits(now, wanted, encoding)
    lines = Lines(now)
    text = now
    for edit in reversed(edits):  # they don't overlap and are in order
        start, end = lines.span(edit.range, encoding)
        text = text[:start] + edit.new_text + text[end:]
    assert text == (wanted.replace("\n", eol) if "\r\n" in now else wanted)
    if now == wanted:
        assert edits == []


BASE = "one\ntwo\nthree\nfour\nfive\n"
FIXED = "one\ntwo\nTHREE\nfour\nfive\n"


@pytest.mark.parametrize(
    ("current", "fate", "merged"),
    [
        (BASE, "apply", FIXED),
        (BASE.replace("\n", "\r\n"), "apply", FIXED),
        (FIXED, "same", FIXED),
        ("ONE\n" + BASE[4:], "merge", "ONE\n" + FIXED[4:]),
        (BASE.replace("three", "drei"), "conflict", None),
        (None, "conflict", None),
    ],
)
@pytest.mark.parametrize("open_document", [False, True])
def test_what_can_be_applied(
    tmp_path: Path, current: str | None, fate: str, merged: str | None, open_document: bool
) -> None:
    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        return subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout.strip()

    git("init", "-q")
    commits = []
    for text in (BASE, FIXED):
        (tmp_path / "a.txt").write_text(text)
        git("add", ".")
        git("commit", "-q", "-m", "x")
        commits.append(git("rev-parse", "HEAD"))
    texts = {}
    if open_document and current is not None:
        texts["a.txt"] = current
    elif current is None:
        (tmp_path / "a.txt").unlink()
    else:
        (tmp_path / "a.txt").write_bytes(current.encode())
    [result] = file_results(Repository.discover(tmp_path), *commits, texts)
    assert result.fate == fate
    if merged is not None:
        assert result.merged == merged
    elif current is not None:
        assert result.merged is not None
        assert "<<<<<<< yours" in result.merged

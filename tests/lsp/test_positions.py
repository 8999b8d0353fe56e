"""Positions, against a plain reference, and buffers against what an editor would show."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from agent_ls.lsp.documents import Documents, OutOfStep
from agent_ls.lsp.positions import Encoding, Lines, units

TEXT = st.text(alphabet=st.sampled_from("ab \n\r\tä€😀\u2028\x0c\x85"), max_size=40)
ENCODINGS = st.sampled_from(["utf-8", "utf-16", "utf-32"])
WIDTH = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


def reference(text: str, line: int, character: int, encoding: str) -> int:
    """An offset, step by step as the specification says."""
    starts = [0, *(found.end() for found in re.finditer(r"\r\n|\r|\n", text))]
    ends = [*(found.start() for found in re.finditer(r"\r\n|\r|\n", text)), len(text)]
    if line >= len(starts):
        return len(text)
    codec, width = WIDTH[encoding]
    offset, seen = starts[line], 0
    while offset < ends[line]:
        size = len(text[offset].encode(codec)) // width
        if seen + size > character:
            break
        seen += size
        offset += 1
    return offset


@given(TEXT, st.integers(0, 8), st.integers(0, 12), ENCODINGS)
def test_offsets_are_those_of_the_specification(
    text: str, line: int, character: int, encoding: Encoding
) -> None:
    lines = Lines(text)
    offset = lines.offset(types.Position(line, character), encoding)
    assert offset == reference(text, line, character, encoding)


@given(TEXT, st.data(), ENCODINGS)
def test_a_position_leads_back_to_its_offset(text: str, data: st.DataObject, encoding: Encoding) -> None:
    lines = Lines(text)
    offset = data.draw(st.integers(0, len(text)))
    if text[offset - 1 : offset + 1] == "\r\n":
        return  # between both is no place in a line
    assert lines.offset(lines.position(offset, encoding), encoding) == offset


@given(TEXT, ENCODINGS)
def test_units_are_those_of_the_encoding(text: str, encoding: Encoding) -> None:
    codec, width = WIDTH[encoding]
    assert units(text, encoding) == len(text.encode(codec)) // width


@given(TEXT, st.lists(st.tuples(*[st.integers(0, 6)] * 4, TEXT), max_size=6), ENCODINGS)
def test_a_buffer_follows_its_changes(
    text: str, changes: list[tuple[int, int, int, int, str]], encoding: Encoding
) -> None:
    documents = Documents()
    documents.encoding = encoding
    documents.open(types.TextDocumentItem("file:///x.py", "python", 1, text))
    shown = text
    for number, (a, b, c, d, new) in enumerate(changes, 2):
        start, end = sorted((reference(shown, a, b, encoding), reference(shown, c, d, encoding)))
        shown = shown[:start] + new + shown[end:]
        range = types.Range(types.Position(a, b), types.Position(c, d))
        documents.change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(number, "file:///x.py"),
                [types.TextDocumentContentChangePartial(range, new)],
            )
        )
    found = documents.get("file:///x.py")
    assert found is not None
    assert found.text == shown


def test_one_file_under_several_names(tmp_path: object) -> None:
    from pathlib import Path

    root = Path(str(tmp_path))
    (root / "real").mkdir()
    (root / "real" / "a b.py").write_text("disk\n")
    (root / "link").symlink_to("real")
    documents = Documents()
    documents.open(types.TextDocumentItem(f"file://{root}/link/a%20b.py", "python", 1, "buffer\n"))
    for uri in (f"file://{root}/real/a b.py", f"file://{root}/link/a%20b.py", f"file://{root}/real/a%20b.py"):
        found = documents.get(uri)
        assert found is not None
        assert found.text == "buffer\n"
    assert documents.get("untitled:x") is None
    with pytest.raises(OutOfStep):
        documents.change(
            types.DidChangeTextDocumentParams(types.VersionedTextDocumentIdentifier(1, "file:///no"), [])
        )

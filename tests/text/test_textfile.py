"""TextFile: every byte that an edit does not touch stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_ls.errors import ToolRefused
from agent_ls.workspace.text import MAX_BYTES, NotText, TextFile, write_atomic

EOLS = ["\n", "\r\n", "\r", ""]
lines = st.lists(
    st.tuples(
        st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=6),
        st.sampled_from(EOLS[:3]),
    ),
    max_size=8,
)
encodings = st.sampled_from(
    [("utf-8", b""), ("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")]
)


def joined(pairs: list[tuple[str, str]]) -> str:
    return "".join(line + eol for line, eol in pairs)


def load(data: bytes, name: str = "") -> TextFile | None:
    try:
        return TextFile.from_bytes(data, name)
    except NotText:
        return None


@given(st.binary(max_size=200))
def test_any_bytes_round_trip_or_are_refused(data: bytes) -> None:
    file = load(data)
    assert file is None or file.to_bytes() == data


@given(st.binary(max_size=60).map(lambda data: b"# coding: shift_jis\n" + data))
def test_declared_encodings_round_trip_or_are_refused(data: bytes) -> None:
    file = load(data, "x.py")
    assert file is None or file.to_bytes() == data


@given(lines, encodings, st.booleans())
def test_text_in_every_encoding_round_trips(pairs, encoding, final) -> None:
    codec, bom = encoding
    data = bom + (joined(pairs) + ("" if final else "end")).encode(codec)
    file = load(data)
    if file is None:
        return  # control characters by chance
    assert file.to_bytes() == data
    assert file.with_text(file.text) == file
    assert "\r" not in file.text


@given(lines, st.data())
def test_an_edit_changes_only_the_bytes_of_the_lines_that_it_touches(pairs, data) -> None:
    source = joined(pairs).encode()
    file = load(source)
    if file is None:
        return
    start = data.draw(st.integers(0, len(file.text)))
    end = data.draw(st.integers(start, len(file.text)))
    new = data.draw(st.text("ab\n", max_size=6))
    changed = file.replace_span(start, end, new)
    assert changed.text == file.text[:start] + new + file.text[end:]
    first = file.text[:start].count("\n")
    prefix = "".join(line + eol for line, eol in zip(file.lines[:first], file.eols[:first], strict=True))
    assert changed.to_bytes().startswith(prefix.encode())
    after = file.text[:end].count("\n") + 1
    rest = zip(file.lines[after:], file.eols[after:], strict=True)
    assert changed.to_bytes().endswith("".join(line + eol for line, eol in rest).encode())


@given(lines, st.text("abc\n", max_size=20))
def test_with_text_gives_exactly_that_text(pairs, new) -> None:
    file = load(joined(pairs).encode())
    if file is None:
        return
    changed = file.with_text(new)
    assert changed.text == new
    assert changed.encoding == file.encoding


@given(lines, st.data())
def test_replace_lines_is_list_replacement(pairs, data) -> None:
    file = load(joined(pairs).encode())
    if file is None:
        return
    first = data.draw(st.integers(1, len(file.lines) + 1))
    last = data.draw(st.integers(first - 1, len(file.lines)))
    new = data.draw(st.lists(st.text("xy", max_size=3), max_size=3))
    changed = file.replace_lines(first, last, new)
    assert list(changed.lines) == [*file.lines[: first - 1], *new, *file.lines[last:]]
    assert all(changed.eols[:-1])


@pytest.mark.parametrize(
    ("before", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nB\nc\n", b"a\r\nB\r\nc\r\n"),
        (b"a\r\nb\r\n", "a\nb\nc\n", b"a\r\nb\r\nc\r\n"),
        (b"a\r\nb", "a\nb\nc", b"a\r\nb\r\nc"),
        (b"a\r\nb\nc\r\n", "a\nb\nx\nc\n", b"a\r\nb\nx\nc\r\n"),
        (b"a\nb\r\nc\n", "a\nB\nc\n", b"a\nB\r\nc\n"),
        (b"a\rb\rc\r", "a\nb\nd\nc\n", b"a\rb\rd\rc\r"),
        (b"a\n", "a", b"a"),
        (b"a", "a\n", b"a\n"),
        (b"a\r\nb", "a\nb\n", b"a\r\nb\r\n"),
        (b"", "a\n", b"a\n"),
        (b"a\n", "", b""),
        (b"\xef\xbb\xbfa\r\n", "b\n", b"\xef\xbb\xbfb\r\n"),
        ("a\r\n".encode("utf-16"), "é\n", "é\r\n".encode("utf-16")),
        (b"a\r\nb\r\n", "x\r\na\r\nb\r\n", b"x\r\na\r\nb\r\n"),
    ],
)
def test_line_ends_follow_the_neighbours(before: bytes, new: str, after: bytes) -> None:
    assert TextFile.from_bytes(before).with_text(new).to_bytes() == after


@pytest.mark.parametrize(
    ("data", "name", "encoding", "text"),
    [
        ("# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"), "x.py", "iso8859-1", "é"),
        ("# vim: set fileencoding=cp1251 :\n# Привет\n".encode("cp1251"), "x.py", "cp1251", "Привет"),
        ("#!/usr/bin/env python\n# coding: euc-jp\n# 日本\n".encode("euc-jp"), "x.py", "euc_jp", "日本"),
        ("// Größe\n".encode("latin-1"), "x.c", "cp1252", "Größe"),
        ("# encoding: big5\n# 中文\n".encode("big5"), "x.rb", "big5", "中文"),
        ("naïve — ok\n".encode(), "x.txt", "utf-8", "—"),
        ("x\n".encode("utf-32"), "x.txt", "utf-32-le", "x"),
    ],
)
def test_encodings_are_recognised(data: bytes, name: str, encoding: str, text: str) -> None:
    file = TextFile.from_bytes(data, name)
    assert file.encoding == encoding
    assert text in file.text
    assert file.to_bytes() == data


@pytest.mark.parametrize(
    ("data", "name", "reason"),
    [
        (b"\x7fELF\x02\x01\x01\0\0\0", "a.out", "binary"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a.png", "binary"),
        (bytes(range(1, 32)) * 20 + b"\xff\xfe\xfd", "blob", "binary"),
        (bytes(range(1, 32)) * 20, "blob", "binary"),
        (b"# coding: utf-8\n# \xff\n", "x.py", "utf-8, but"),
        (b"# coding: no-such\n", "x.py", "no-such"),
        (b"# coding: rot13\nk\n", "x.py", "rot13"),
        (b"\xff\xfea", "x.txt", "utf-16-le"),
    ],
)
def test_what_is_not_text_is_refused(data: bytes, name: str, reason: str) -> None:
    with pytest.raises(NotText, match=reason):
        TextFile.from_bytes(data, name)


def test_a_character_that_the_encoding_lacks_is_refused() -> None:
    file = TextFile.from_bytes("# coding: latin-1\nx = 'é'\n".encode("latin-1"), "x.py")
    with pytest.raises(ToolRefused, match=r"'€' \(line 2\).*iso8859-1"):
        file.with_text("# coding: latin-1\nx = '€'\n")


def test_a_guessed_encoding_takes_no_new_characters() -> None:
    file = TextFile.from_bytes("// Größe\nint x;\n".encode("latin-1"), "x.c")
    assert file.guessed
    assert file.with_text("// Größe öß\nint x;\n").to_bytes() == "// Größe öß\nint x;\n".encode("latin-1")
    with pytest.raises(ToolRefused, match="ä"):
        file.with_text("// Größe ä\nint x;\n")


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(ToolRefused):
        TextFile.from_bytes(b"a\n").with_text("\ud800\n")


def test_new_control_characters_are_refused() -> None:
    with pytest.raises(ToolRefused, match="control"):
        TextFile.from_bytes(b"a\n").with_text("a\0\n")


def test_large_files_are_refused_before_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "big.txt"
    with path.open("wb") as file:
        file.truncate(50_000_000)
    with pytest.raises(ToolRefused, match=r"50\.0 MB"):
        TextFile.read(path)
    with pytest.raises(ToolRefused):
        TextFile.from_bytes(b"a" * (MAX_BYTES + 1))


def test_writing_keeps_the_mode_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "run.sh"
    write_atomic(path, b"one")
    path.chmod(0o755)
    assert TextFile.read(path).mode == 0o755
    write_atomic(path, b"two")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"two", 0o755)
    write_atomic(path, b"two", 0o600)
    assert path.stat().st_mode & 0o777 == 0o600
    path.unlink()
    path.mkdir()
    (path / "occupied").touch()
    with pytest.raises(OSError, match="run"):
        write_atomic(path, b"three")
    assert [item.name for item in path.parent.iterdir()] == ["run.sh"]

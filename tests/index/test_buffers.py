"""Buffers: a tree that was brought up to date equals one that was parsed anew, whatever was typed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_ls.workspace.index.buffers import Buffers, Edit, changed_region
from agent_ls.workspace.index.tags import parse_bytes, tags

SOURCES = {
    "python": (
        "a.py",
        "class A:\n    def f(self):\n        return g() + 'ü'\n\n\ndef g():\n    return []\n",
    ),
    "typescript": ("a.ts", "export class A {\r\n  f(x: number) { return `${g(x)} 😀` }\r\n}\r\n"),
    "cpp": ("a.cpp", "class MY_EXPORT A {\n public:\n  int f(int x);\n};\nint A::f(int x) { return x; }\n"),
    "go": ("a.go", "package p\n\nfunc F(x int) int {\n\treturn x // ü\n}\n"),
    "bash": ("a.sh", "f() {\n  echo \"$1\" <<EOF\nü\nEOF\n}\nf x\n"),
}  # fmt: skip
TYPED = ["", "x", "ü", "😀", "\n", "\r\n", "    ", "(", ")", "{", "}", '"', "'", '"""', "`", "#", "//", "/*",
         "def f():\n",          "class ", "MY_EXPORT ", "EOF", "\\", ";", ":", "\0"]  # fmt: skip

edits = st.lists(
    st.tuples(
        st.one_of(st.just(0.0), st.just(1.0), st.floats(0, 1)),
        st.sampled_from([0, 0, 1, 2, 5, 1000]),
        st.one_of(st.sampled_from(TYPED), st.text(max_size=5)),
    ),
    min_size=1,
    max_size=8,
)


def shape(tree: Any) -> list[Any]:
    """All nodes with their places."""
    found, waiting = [], [tree.root_node]
    while waiting:
        node = waiting.pop()
        found.append(
            (node.type, node.start_byte, node.end_byte, node.start_point, node.end_point, node.is_missing)
        )
        waiting += node.children
    return found


@pytest.mark.parametrize("language", SOURCES)
@settings(max_examples=25, deadline=None)
@given(changes=edits, asked=st.lists(st.booleans(), min_size=8, max_size=8))
def test_a_changed_tree_is_that_of_a_fresh_parse(language: str, changes: Any, asked: Any) -> None:
    path, source = SOURCES[language]
    buffers = Buffers()
    text = source.encode()
    buffers.open(path, text)
    buffers.tree(path)
    for (place, removed, typed), ask in zip(changes, asked, strict=False):
        start = int(place * len(text))
        end = min(len(text), start + removed)
        new = typed.encode("utf-8", "surrogatepass")
        text = text[:start] + new + text[end:]
        assert buffers.change(path, [Edit(start, end, new)]).text == text
        if ask:
            assert shape(buffers.tree(path)) == shape(parse_bytes(language, text))
    assert shape(buffers.tree(path)) == shape(parse_bytes(language, text))
    assert buffers.tags(path) == tags(language, text)


@given(
    old=st.binary(max_size=30),
    new=st.binary(max_size=30),
    same=st.binary(max_size=30),
    end=st.binary(max_size=9),
)
def test_the_changed_region_is_all_that_changed(old: bytes, new: bytes, same: bytes, end: bytes) -> None:
    before, after = same + old + end, same + new + end
    start, old_end, new_end = changed_region(before, after)
    assert before[:start] + after[start:new_end] + before[old_end:] == after
    assert start >= len(same)
    assert len(before) - old_end >= (len(end) if old != new else 0) or min(old_end, new_end) == start


def test_edits_apply_one_after_another() -> None:
    buffers = Buffers()
    buffers.open("a.txt", b"one two", 1)
    buffer = buffers.change("a.txt", [Edit(0, 3, b"1"), Edit(2, 5, b"2"), Edit(3, 3, b"!")], 2)
    assert (buffer.text, buffer.version) == (b"1 2!", 2)
    assert buffers.tree("a.txt") is None
    assert buffers.tags("a.txt") is None


@pytest.mark.parametrize("edit", [Edit(-1, 0, b""), Edit(2, 1, b""), Edit(0, 8, b"x"), Edit(8, 8, b"")])
def test_a_range_outside_the_text_changes_nothing(edit: Edit) -> None:
    buffers = Buffers()
    before = buffers.open("a.py", b"one two", 1)
    with pytest.raises(ValueError, match="7 bytes"):
        buffers.change("a.py", [Edit(0, 0, b"x = "), Edit(0, 4, b""), edit], 2)
    assert buffers.get("a.py") == before


def test_what_is_not_open_can_not_be_changed() -> None:
    buffers = Buffers()
    for action in (
        lambda: buffers.change("a.py", []),
        lambda: buffers.replace("a.py", b""),
        lambda: buffers.tree("a.py"),
    ):
        with pytest.raises(KeyError):
            action()
    buffers.close("a.py")


def test_only_so_many_trees_are_kept() -> None:
    buffers = Buffers(max_trees=2)
    for name in "abc":
        buffers.open(f"{name}.py", f"{name} = 1\n".encode())
        buffers.tree(f"{name}.py")
    assert list(buffers._trees) == ["b.py", "c.py"]
    buffers.tree("a.py")
    assert list(buffers._trees) == ["c.py", "a.py"]
    buffers.close("a.py")
    assert list(buffers._trees) == ["c.py"]

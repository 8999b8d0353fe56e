"""Texts that keep a grammar or a query busy for minutes, or for ever."""

from __future__ import annotations

from pathlib import Path

import pytest
from store_kit import function, make_repo, write

from agent_ls.guard.read_sitter import read_sitter
from agent_ls.workspace.grammars import language_of
from agent_ls.workspace.index.buffers import Buffers
from agent_ls.workspace.index.index import open_index
from agent_ls.workspace.index.references import callees, references
from agent_ls.workspace.index.roles import TOO_SLOW
from agent_ls.workspace.index.tags import parse_bytes, tags
from agent_ls.workspace.parsing import TooSlow
from agent_ls.workspace.syntax import outline, syntax_errors

SLOW = {
    "noise.tsx": "[``````>()`'`)0a*0<^",  # an endless loop of the grammar
    "less.java": "a<" * 40_000,  # took 10 s and gigabytes in one step
    "less.cs": "a<" * 40_000,
    "open.py": "(" * 60_000,  # a query took the square of their number
    "chain.py": "alpha" + ".b" * 60_000,
    "sum.js": "alpha" + "+b\n" * 60_000,
}
FINE = {
    "parens.py": "x = " + "(" * 2_000 + "1" + ")" * 2_000,
    "chain.js": "b" + ".c()" * 2_000,
    "list.py": "x = [" + "1,\n" * 60_000 + "]",
    "many.c": "int a;\n" * 60_000,
    "lines.java": "class A { boolean f(int a) { return " + "a < 1 &&\n" * 1_500 + "true; } }",
    "shifts.cpp": 'void f() { out << "a"\n' + '<< "b"\n' * 4_000 + "; }",
}


@pytest.mark.parametrize("name", SLOW)
def test_what_takes_too_long_is_refused(name: str) -> None:
    with pytest.raises(TooSlow):
        tags(language_of(name) or "", SLOW[name].encode())


@pytest.mark.parametrize("name", FINE)
def test_what_is_only_large_is_not(name: str) -> None:
    assert not parse_bytes(language_of(name) or "", FINE[name].encode()).root_node.has_error


@pytest.mark.parametrize("worker_bytes", [0, 10**9])
def test_such_files_are_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worker_bytes: int) -> None:
    monkeypatch.setattr("agent_ls.workspace.index.update.WORKER_BYTES", worker_bytes)
    slow = {name: SLOW[name] for name in ("noise.tsx", "less.java", "sum.js")}
    root = make_repo(tmp_path / "repo", {**slow, "a.py": function("alpha", "beta")})
    with open_index(root, cache_dir=tmp_path / "cache") as index:
        view = index.view()
        assert {each.path: each.reason for each in view.skipped()} == dict.fromkeys(slow, TOO_SLOW)
        assert all(view.file(name).language is None for name in slow)  # type: ignore[union-attr]
        assert "sum.js" in view.files_with("alpha")
        assert [found.path for found in view.definitions("alpha")] == ["a.py"]
        write(root, {"less.java": "class Small { }"})
        index.refresh(["less.java"])
        assert [found.path for found in index.view().definitions("Small")] == ["less.java"]


def test_uses_in_them_are_said_to_be_missing(tmp_path: Path) -> None:
    # Definitions of Python are read by lines, and so its files stay files of Python.
    root = make_repo(tmp_path / "repo", {
        "chain.py": SLOW["chain.py"] + "\n\n" + function("slow", "beta"), "a.py": function("other", "alpha"),
    })  # fmt: skip
    with open_index(root, memory=True) as index:
        view = index.view()
        found = references(view, "alpha")
        assert [use.path for use in found.found] == ["a.py"]
        assert not found.complete
        assert "chain.py" in found.note
        assert callees(view, "slow") == []


def test_a_buffer_of_that_kind_has_no_tree() -> None:
    buffers = Buffers()
    buffers.open("a.java", SLOW["less.java"].encode())
    assert buffers.tree("a.java") is None
    assert buffers.tags("a.java") is None
    buffers.replace("a.java", b"class A { }")
    assert buffers.tree("a.java") is not None


def test_nothing_else_hangs_on_them() -> None:
    assert outline("a.java", SLOW["less.java"]) == []
    assert syntax_errors("a.tsx", SLOW["noise.tsx"]) == []
    assert read_sitter(SLOW["less.java"].encode(), "java") is None

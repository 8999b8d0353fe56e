"""Search through the index finds what the plain search finds, and reads little."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from memory_view import MemoryView
from search_kit import EXPRESSIONS

from agent_ls.cancel import CancelToken
from agent_ls.errors import Cancelled, ToolRefused
from agent_ls.workspace import search as search_module
from agent_ls.workspace._grep import MAX_TEXT, decoded
from agent_ls.workspace.files import Workspace
from agent_ls.workspace.index.query import Case, understand
from agent_ls.workspace.index.textsearch import search_index
from agent_ls.workspace.index.words import MAX_WORD
from agent_ls.workspace.search import Hit, search

RIPGREP = search_module.ripgrep()


@pytest.fixture(autouse=True)
def without_ripgrep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "ripgrep", lambda: None)
    monkeypatch.setattr("agent_ls.workspace.index.textsearch.ripgrep", lambda: None)


def plain(files: dict[str, bytes], query: str, **options: Any) -> list[Hit]:
    """Every line of every file is tried."""
    asked = understand(query, **{"regex": False, "word": False, "case": "smart", **options})
    assert asked.compiled is not None
    hits = []
    for path in sorted(files):
        text = decoded(files[path]) or ""
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for number, line in enumerate(lines if lines[-1] else lines[:-1], 1):
            match = asked.compiled.search(line)
            if match is not None:
                hits.append(Hit(path, number, match.start() + 1, match.end() + 1, line[:MAX_TEXT]))
    return hits


PIECES = [
    "area",
    "Area",
    "re",
    "_x",
    " ",
    "(",
    ".",
    "\n",
    "\r\n",
    "é",
    "É",
    "—",
    "字",
    "K",
    "k",
    "ſ",
    "s",
    "İ",
    "ı",
    "i",
]
PIECES += ["a" * (MAX_WORD + 2), "class Meta", "def ", "\t", "\0"]
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "latin-1"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=16).map("".join)
FILES = st.dictionaries(
    st.sampled_from(["a.txt", "b.py", "c/d.md", "e.js"]),
    st.tuples(TEXTS, st.sampled_from(ENCODINGS)).map(lambda pair: pair[0].encode(pair[1], "replace")),
    max_size=4,
)
LITERALS = st.lists(
    st.sampled_from([piece for piece in PIECES if piece not in ("\n", "\r\n")]), min_size=1, max_size=4
).map("".join)
CASES = st.sampled_from(["smart", "sensitive", "insensitive"])


def same(files: dict[str, bytes], query: str, **options: Any) -> None:
    view = MemoryView(files)
    found = search_index(Path(), view, query, limit=10_000, **options)
    assert found.complete
    bare = [Hit(hit.path, hit.line, hit.column, hit.end_column, hit.text) for hit in found.hits]
    assert sorted(bare, key=lambda hit: (hit.path, hit.line)) == plain(files, query, **options)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FILES, LITERALS, CASES, st.booleans())
@example({"a.txt": "naïve — area".encode()}, "area", "sensitive", True)
@example({"a.txt": "—area—".encode()}, "area", "sensitive", True)
@example({"a.txt": "Kelvin ſafe".encode()}, "kelvin sa", "insensitive", False)
@example({"a.txt": ("x" * 300 + "area").encode()}, "area", "sensitive", False)
@example({"a.txt": "the area".encode("utf-16"), "b.py": "größe".encode("latin-1")}, "area", "smart", True)
def test_literals(files: dict[str, bytes], query: str, case: Case, word: bool) -> None:
    same(files, query, case=case, word=word)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FILES, EXPRESSIONS, CASES, st.booleans())
def test_expressions(files: dict[str, bytes], query: str, case: Case, word: bool) -> None:
    if understand(query, regex=True, word=word, case=case).longest:  # else a process each: see below
        same(files, query, regex=True, case=case, word=word)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FILES, st.sampled_from(["area", "re", "def ", "_x(", "class M"]), EXPRESSIONS, EXPRESSIONS)
@example({"a.py": b"def a\nb def c\n\ndef a\n"}, "def ", "a$", "")
@example({"a.py": b"def \xc3\xa9\nb def c\n\rdef a"}, "def ", r"\w+", "$")
@example({"a.py": b"def \na\n"}, "def ", r"[^b]*", "a")
@example({"a.py": b"def \na\n"}, "def ", r"\s*", "(?=a)")
def test_expressions_that_begin_with_a_literal(
    files: dict[str, bytes], start: str, rest: str, end: str
) -> None:
    query = (start.replace("(", r"\(")) + rest + end
    if understand(query, regex=True, word=False, case="sensitive").longest:
        same(files, query, regex=True, case="sensitive")


def test_long_lines_are_told_from_short_ones() -> None:
    query = understand(r"def \w+\(", regex=True, word=False, case="sensitive")
    assert query.whole is not None and query.whole_ascii is not None and query.rooms
    for length in (100, 1000, 2000, 2001, 4000, 60_000):
        line = b"x = 1; " * (length // 7) + b"def found("
        same({"a.txt": b"short\n" + line + b"\n" + line}, query.text, regex=True)
        same({"a.txt": (b"e\xc3\xa9" + line) * 3 + b"\ndef one(\n"}, query.text, regex=True)


@pytest.mark.parametrize(
    ("expression", "whole"),
    [
        (r"def \w+\(", True),
        (r"(def )a$", True),
        (r"def .*(?<!b)\b(?=c)", True),
        (r"def [^\n]*a", True),
        (r"def [^a]", False),
        (r"def \s", False),
        (r"def [\t-z]", False),
        (r"def (?s:.)a", False),
        (r"(?s)def .", False),
        (r"(?i)def a", False),
        (r"def \Z", False),
        (r"def \B", False),
        (r"d\w+", False),
        (r"\bdef a", False),
        (r"(?:def|class) a", False),
    ],
)
def test_which_expressions_are_tried_on_whole_texts(expression: str, whole: bool) -> None:
    query = understand(expression, regex=True, word=False, case="sensitive")
    assert (query.whole is not None) == whole


def test_an_expression_that_could_run_away() -> None:
    same({"a.txt": b"aab\nab\nb\n", "b.py": b"x = 1\n"}, r"(a+)+b", regex=True)


def test_a_line_that_is_too_long_is_matched_all_the_same() -> None:
    files = {"a.txt": b"first x1\n" + b"\xc3\xa9 " * 30_000 + b"x2y\nlast x3\n", "b.txt": b"x4\n"}
    same(files, r"x\d+\w*", regex=True)
    same(files, r"\w+ x\d\w*", regex=True)


SOURCES = {
    "docs/guide.md": b"The area of a shape.\n",
    "src/gen.py": b"area = 3\n",
    "src/shape.py": b"# area: see below\nx = area()\n\n\nclass Shape:\n    def area(self):\n        return 1  # the area\n",  # noqa: E501
    "src/use.js": b"// area\nlet y = area();\nfunction area() { return 1; }\n",
    "src/zeta.c": b"#define area 1\n",
}


def test_definitions_come_before_code_and_code_before_comments() -> None:
    view = MemoryView(SOURCES, generated=["src/gen.py"])
    found = search_index(Path(), view, "area")
    assert [(hit.path, hit.line) for hit in found.hits] == [
        ("src/shape.py", 6),
        ("src/use.js", 3),
        ("src/zeta.c", 1),
        ("src/gen.py", 1),
        ("src/shape.py", 2),
        ("src/use.js", 2),
        ("docs/guide.md", 1),
        ("src/shape.py", 1),
        ("src/shape.py", 7),
        ("src/use.js", 1),
    ]
    assert found.hits[0].symbol == "Shape.area"


def test_definitions_are_found_first_when_there_is_a_limit() -> None:
    files = {f"a{number:03}.py": b"area()\n" for number in range(50)} | {"z.py": b"def area(): pass\n"}
    found = search_index(Path(), MemoryView(files), "area", limit=3)
    assert [hit.path for hit in found.hits] == ["z.py", "a000.py", "a001.py"]
    assert not found.complete and "first 3" in found.note


@pytest.mark.parametrize(
    ("query", "options", "read"),
    [
        ("needle", {}, ["needle.txt"]),
        ("needle(", {}, ["needle.txt"]),
        ("eedl", {}, ["needle.txt"]),
        ("NEEDLE", {"case": "insensitive"}, ["needle.txt"]),
        (r"need\w+\(", {"regex": True}, ["needle.txt"]),
        (r"(needle|hay)stack", {"regex": True}, []),
        ("word12 needle", {}, ["needle.txt"]),
        ("in a word12", {}, ["needle.txt", "word12.txt"]),
        ("absent", {}, []),
    ],
)
def test_only_files_that_may_match_are_read(query: str, options: dict[str, Any], read: list[str]) -> None:
    files = {f"word{number}.txt": f"in a word{number}".encode() for number in range(20)}
    view = MemoryView(files | {"needle.txt": b"word12 needle(1)"})
    search_index(Path(), view, query, **options)
    assert view.read == read


def test_globs_choose_files() -> None:
    view = MemoryView(SOURCES)
    assert {hit.path for hit in search_index(Path(), view, "area", globs=["*.js", "!docs"]).hits} == {
        "src/use.js"
    }
    assert {
        hit.path for hit in search_index(Path(), view, r"\b\w$", regex=True, globs=["docs"]).hits
    } == set()


def test_what_is_refused() -> None:
    view = MemoryView(SOURCES)
    with pytest.raises(ToolRefused):
        search_index(Path(), view, "(", regex=True)
    with pytest.raises(ToolRefused):
        search_index(Path(), view, "")


def test_cancelling() -> None:
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(Cancelled):
        search_index(Path(), MemoryView(SOURCES), "area", cancel=cancel)


def test_no_time_left() -> None:
    found = search_index(Path(), MemoryView(SOURCES), "area", seconds=-1)
    assert not found.complete and "time was up" in found.note


@pytest.mark.skipif(RIPGREP is None, reason="no ripgrep")
@pytest.mark.parametrize("query", [r"\w+\(\)", r"^\S+ \S+ \S+$", r"[[:alpha:]]\d", ".", ").", r"^$"])
@pytest.mark.parametrize("case", ["sensitive", "insensitive"])
def test_what_words_say_nothing_about_goes_to_ripgrep(
    query: str, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = SOURCES | {
        "utf16.txt": "the a3()\r\n\r\n".encode("utf-16"),
        "nul.py": b"f()\n" * 3000 + b"\0\nf()\n",
    }
    for path, data in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(data)
    monkeypatch.setattr("agent_ls.workspace.index.textsearch.ripgrep", lambda: RIPGREP)
    regex = query != ")."
    view = MemoryView(files)
    found = search_index(tmp_path, view, query, regex=regex, case=case, limit=10_000)
    assert set(view.read) <= {"utf16.txt"}
    asked = query.replace("[[:alpha:]]", "[a-zA-Z]")
    hits = sorted((hit.path, hit.line, hit.column, hit.end_column, hit.text) for hit in found.hits)
    expected = plain(files, asked, regex=regex, case=case)
    assert hits == [(hit.path, hit.line, hit.column, hit.end_column, hit.text) for hit in expected]


@pytest.mark.skipif(RIPGREP is None, reason="no ripgrep")
@pytest.mark.parametrize("query", [r"gr\w+e", r"gr..e\b", r"größe|x", r"(?<=r)öße"])
def test_many_files_go_to_ripgrep_but_those_in_other_encodings(
    query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        f"{encoding}.txt": "a größe\r\nx\n".encode(encoding)
        for encoding in ("utf-8", "latin-1", "utf-16", "utf-8-sig")
    }
    for path, data in files.items():
        (tmp_path / path).write_bytes(data)
    monkeypatch.setattr("agent_ls.workspace.index.textsearch.ripgrep", lambda: RIPGREP)
    monkeypatch.setattr("agent_ls.workspace.index.textsearch._MANY_FILES", 0)
    found = search_index(tmp_path, MemoryView(files), query, regex=True)
    bare = sorted(found.hits, key=lambda hit: (hit.path, hit.line))
    assert bare == plain(files, query, regex=True) and bare


@pytest.mark.skipif(RIPGREP is None, reason="no ripgrep")
def test_open_buffers_count_when_ripgrep_searches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {"a.txt": "a1\n", "b.txt": "old b2\n", "c.txt": "c3\n"}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr("agent_ls.workspace.index.textsearch.ripgrep", lambda: RIPGREP)
    view = MemoryView({"a.txt": b"a1\n", "b.txt": b"new b4\n", "c.txt": b"c3\n"})
    view.open = ["b.txt"]
    found = search_index(tmp_path, view, r"\w\d", regex=True)
    assert [hit.text for hit in found.hits] == ["a1", "new b4", "c3"]
    assert len(search_index(tmp_path, view, r"\w\d", regex=True, limit=1).hits) == 1


def test_files_that_are_too_large_for_the_index_are_read(tmp_path: Path) -> None:
    (tmp_path / "large.txt").write_text("the needle\n")
    view = MemoryView({"small.txt": b"a needle\n"})
    view.large = ["large.txt", "gone.txt"]
    for query, regex in (("needle", False), (r"\w+dle", True)):
        found = search_index(tmp_path, view, query, regex=regex)
        assert [hit.path for hit in found.hits] == ["large.txt", "small.txt"]


def test_the_tree_is_searched_the_same_with_a_view(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for path, data in SOURCES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(data)
    workspace = Workspace(tmp_path)
    without = search(workspace, "area")
    with_index = search(workspace, "area", view=MemoryView(SOURCES))
    assert sorted(with_index.hits, key=lambda hit: (hit.path, hit.line)) == list(without.hits)


def test_our_interpreter_may_bring_ripgrep(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.undo()
    program = tmp_path / "rg"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(search_module.sys, "executable", str(tmp_path / "python"))
    assert search_module.ripgrep() == str(program)
    assert shutil.which("rg") is None

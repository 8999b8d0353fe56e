"""Outlines, syntax errors and the definition around a line."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_ls.workspace.grammars import LANGUAGES
from agent_ls.workspace.syntax import enclosing_function, new_errors, outline, syntax_errors

OUTLINES = tomllib.loads((Path(__file__).parent / "data" / "outlines.toml").read_text("utf-8"))["case"]


@pytest.mark.parametrize("case", OUTLINES, ids=lambda case: case["name"])
def test_outline(case: dict[str, Any]) -> None:
    assert syntax_errors(case["name"], case["text"]) == []
    found = [
        [symbol.name, symbol.kind, symbol.line, symbol.end_line, symbol.container or "", symbol.signature]
        for symbol in outline(case["name"], case["text"])
    ]
    assert found == case["symbols"]


@pytest.mark.parametrize(
    ("name", "text", "line", "column", "message"),
    [
        ("a.py", "x = 1\ndef f(:\n    pass\n", 2, 7, "invalid syntax"),
        ("a.py", "x = (1,\n", 1, 5, "never closed"),
        ("a.js", "let é = 1; let x = ;\n", 1, 18, "unexpected '='"),
        ("a.js", "f(;\n", 1, 3, "missing ')'"),
        ("a.go", "package a\nfunc f( {\n}\n", 2, 8, "missing ')'"),
        ("a.json", '{"a": }', 1, 6, "missing"),
        ("a.rb", "def f\n", 1, 6, "missing 'end'"),
    ],
)
def test_errors_have_a_place(name: str, text: str, line: int, column: int, message: str) -> None:
    problem = syntax_errors(name, text)[0]
    assert (problem.line, problem.column) == (line, column)
    assert message in problem.message


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.h", "class A { public: int f() { return 1; } };\n"),
        ("a.h", "struct a { int class; };\n"),
        ("a.js", "function f(a: number): string { return ''; }\n"),
        ("a.js", "const a = <div>{x}</div>;\n"),
        ("a.py", "match x:\n    case {'a': [1, *_]}:\n        pass\n"),
        ("a.py", "try:\n    pass\nexcept* ValueError:\n    pass\n"),
        ("a.py", "print 'x'\nexec 'y'\n"),
        ("a.bash", '[[ $a =~ ^x ]] && echo "${b[@]}"\n'),
        ("tsconfig.json", '{\n  // a comment\n  "a": 1\n}\n'),
        ("Makefile", "all:\n\techo (\n"),
        ("a.py", ""),
    ],
)
def test_sound_text_has_no_errors(name: str, text: str) -> None:
    assert syntax_errors(name, text) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "lines"),
    [
        ("a.js", "a();\n", "a(;\n", [1]),
        ("a.js", "a(;\nb();\n", "a(;\nb();\nc();\n", []),
        (
            "a.js",
            "f(() => {\n  a(;\n})\ng(() => {\n  b();\n})\n",
            "x();\nf(() => {\n  a(;\n})\ng(() => {\n  b(;\n})\n",
            [6],
        ),
        ("a.js", "a(;\nb(;\n", "a(;\nb();\n", []),
        ("a.js", "a(;\n", "b(;\n", []),
        ("a.js", None, "a(;\n", [1]),
        ("a.py", None, "if x:\npass\n", [2]),
        ("a.py", "x = 1\n", "if x:\npass\n", [2]),
        ("a.py", "print 'x'\n", "if x:\npass\n", []),
        ("a.py", "x = 1\n", "def f[T](a: T) -> T: ...\n", []),
        ("a.py", "x = 1\n", "x = f'{a['b']}'\n", []),
        ("a.py", "x = 1\n", "x = 0777\n", [1]),
        ("a.txt", "a", "((", []),
    ],
)
def test_only_errors_that_an_edit_adds_count(name: str, old: str | None, new: str, lines: list[int]) -> None:
    assert [problem.line for problem in new_errors(name, old, new)] == lines


@pytest.mark.parametrize(
    ("line", "function"),
    [(1, None), (3, "f"), (4, "inner"), (5, "inner"), (6, "f"), (8, None), (9, "m"), (11, "m"), (12, None)],
)
def test_the_function_around_a_line(line: int, function: str | None) -> None:
    text = (
        "import x\n"
        "@d\n"
        "def f():\n"
        "    def inner():\n"
        "        return 1\n"
        "    return inner\n"
        "\n"
        "class A:\n"
        "    def m(self):\n"
        "\n"
        "        return 2\n"
        "    y = 1\n"
    )
    symbol = enclosing_function("a.py", text, line)
    assert (symbol and symbol.name) == function


@given(st.sampled_from([f"a{language.suffixes[0]}" for language in LANGUAGES.values()]), st.text(max_size=80))
def test_any_text_is_parsed(name: str, text: str) -> None:
    lines = text.count("\n") + 1
    for problem in syntax_errors(name, text):
        assert 1 <= problem.line <= lines + 1 and problem.column >= 1
    for symbol in outline(name, text):
        assert 1 <= symbol.line <= symbol.end_line <= lines
    assert new_errors(name, text, text) == []


def test_deep_nesting_is_no_trouble() -> None:
    deep = "(" * 5000 + ")" * 5000
    assert outline("a.py", f"x = {deep}\n")[0].name == "x"
    assert syntax_errors("a.js", f"x = {'[' * 5000}\n")
    assert syntax_errors("a.py", f"x = {'(' * 5000}\n")
    assert "deeply nested" in new_errors("a.py", "x = 1\n", f"x = 1{'+1' * 20_000}\n")[0].message

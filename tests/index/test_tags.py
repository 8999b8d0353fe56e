"""Tags: sources beside the tags that they have, and what holds for any bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tags_kit import CASES, rendered, sources

from agent_ls.workspace.grammars import LANGUAGES, grammar, language_of, refined
from agent_ls.workspace.index import _tags_elide_c, _tags_query
from agent_ls.workspace.index._tags_elide import elided
from agent_ls.workspace.index._tags_query import split_patterns, tag_queries
from agent_ls.workspace.index.records import Definition, FileTags, Import
from agent_ls.workspace.index.tags import (
    _collect,
    _definitions,
    _search,
    definitions_and_imports,
    parse_bytes,
    tags,
)

SOURCES = sources()
TAGGED = [language for language in LANGUAGES if language != "json"]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.relative_to(CASES).as_posix())
def test_tags_of_a_source(source: Path) -> None:
    language = language_of(source.name)
    assert language == source.parent.name
    assert rendered(tags(language, source.read_bytes())) == source.with_suffix(".txt").read_text("utf-8")


@pytest.mark.parametrize("language", TAGGED)
def test_every_language_has_a_sound_and_a_broken_case(language: str) -> None:
    cases = [path for path in SOURCES if path.parent.name == language]
    broken = {path for path in cases if tags(language, path.read_bytes(), references=False).broken}
    assert broken and (set(cases) - broken or language == "kotlin")


@pytest.mark.parametrize("language", TAGGED)
def test_the_installed_grammar_knows_every_pattern(language: str) -> None:
    queries = tag_queries(language)
    assert queries.refused == ()
    assert queries.definitions is not None and queries.references is not None


def test_a_pattern_that_a_grammar_refuses_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["(no_such_node) @import", "(class_definition name: (identifier) @name) @definition.class"]
    monkeypatch.setattr(_tags_query, "_patterns", lambda language: list(texts))
    queries = tag_queries.__wrapped__("python")
    assert queries.refused == (texts[0],)
    assert queries.kinds == ("class",)


def test_a_language_without_queries_has_no_tags() -> None:
    assert tags("json", b'{"a": 1}') == FileTags("json")
    with pytest.raises(KeyError):
        tags("cobol", b"")


def test_patterns_are_split_at_the_top_level() -> None:
    text = '; a (comment)\n(a "(" @x) @y ; "end\n[(b) (c)] @z\n((d) @e (#eq? @e ";"))\n'
    assert split_patterns(text) == ['(a "(" @x) @y ; "end', "[(b) (c)] @z", '((d) @e (#eq? @e ";"))']


# What holds for any bytes. ------------------------------------------------------------------------------


def check(language: str, data: bytes) -> None:
    """Ranges lie in the text, both ways agree, and names stand where they are said to."""
    full = tags(language, data)
    rows, imports, broken = definitions_and_imports(language, data)
    assert [Definition(*row) for row in rows] == list(full.definitions)
    assert [Import(*row) for row in imports] == list(full.imports)
    # Of these, the bodies of functions don't count in the fast path.
    assert full.broken or not broken if language in ("python", "c", "cpp") else broken == full.broken
    assert tags(language, data, references=False).definitions == full.definitions
    lines = data.split(b"\n")
    for it in full.definitions:
        assert 1 <= it.line <= it.name_line <= len(lines) and it.line <= it.end_line <= len(lines)
        assert it.name and "\n" not in it.signature and "\n" not in it.doc
        assert len(it.signature) <= 201 and len(it.doc) <= 201
        assert 1 <= it.column <= len(lines[it.name_line - 1].decode("utf-8", "replace")) + 1
    places = [(it.line, it.column) for it in full.references]
    assert places == sorted(set(places))
    assert not {(it.name_line, it.column) for it in full.definitions} & set(places)
    for ref in full.references:
        line = lines[ref.line - 1].decode("utf-8", "replace")
        assert line[ref.column - 1 : ref.end_column - 1] == ref.name
    assert [it.line for it in full.imports] == sorted(it.line for it in full.imports)


SAMPLES = [(path.parent.name, path.read_bytes()) for path in SOURCES]


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, bytes]:
    """A language and a sample of it (or of another) with parts cut out, doubled, or replaced."""
    language, data = draw(st.sampled_from(SAMPLES))
    if draw(st.integers(0, 9)) == 0:
        language = draw(st.sampled_from(TAGGED))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 60)))
        insert = draw(
            st.one_of(
                st.just(b""),
                st.sampled_from(
                    [b"(", b"{", b"}", b"\n", b'"', b"'", b"/*", b"\x00", b"\xff\xfe", b"def ", b"class X"]
                ),
                st.just(data[start:end] * 2),
                st.binary(max_size=6),
            )
        )
        data = data[:start] + insert + data[end:]
    return language, data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data


@settings(max_examples=150, deadline=None)
@given(mutated())
def test_mutated_sources(case: tuple[str, bytes]) -> None:
    check(*case)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(TAGGED), st.binary(max_size=120))
def test_any_bytes(language: str, data: bytes) -> None:
    check(language, data)


@pytest.mark.parametrize("language", TAGGED)
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 50,
        b"\xff\xfe\x00class A {}\n",
        "\ufeffclass Ä:\n    pass\n".encode(),
        b"class A {\r\n  int f() { return 1; }\r\n}\r\n",
        b'x = "' + b"a" * 1_000_000 + b'"',
        b"(" * 5_000,
        b"if x {" * 800,
        b"class A { " * 500,
        b"class A:\n    @property\n    def p(self)",
    ],
    ids=[
        "empty",
        "nul",
        "no-utf8",
        "bom",
        "crlf",
        "long-line",
        "parentheses",
        "blocks",
        "classes",
        "unfinished",
    ],
)
def test_strange_sources(language: str, data: bytes) -> None:
    check(language, data)


def test_deeply_nested_definitions_have_all_their_containers() -> None:
    depth = 90
    source = "".join(f"{' ' * level}class C{level}:\n" for level in range(depth)) + " " * depth + "x = 1\n"
    found = tags("python", source.encode()).definitions
    assert [it.name for it in found] == [f"C{level}" for level in range(depth)] + ["x"]
    assert found[-1].container == ".".join(f"C{level}" for level in range(depth))


# The scopes of Python, against a run of the whole query over the whole tree. ------------------------------


@st.composite
def python_source(draw: st.DrawFn) -> str:
    """Sound Python with definitions in all kinds of statements."""
    lines: list[str] = []

    def block(indent: str, depth: int) -> None:
        for _ in range(draw(st.integers(1, 3))):
            kind = draw(st.integers(0, 11 if depth else 3))
            name = draw(st.sampled_from("abcd"))
            simple = {
                0: f"{name} = 1", 1: "import os", 2: f'"""def {name}(): class import x\n  class no: pass"""',
                3: f"{name}, b = c = 2",
            }  # fmt: skip
            if kind in simple:
                lines.append(indent + simple[kind])
                continue
            heads = {
                4: f"def {name}(a=1):", 5: f"class {name}:", 6: "if x:",
                7: f"@dec\n{indent}async def {name}():",
                8: "with x as y:", 9: "for i in x:", 10: f"@dec\n{indent}@dec\n{indent}class {name}:",
                11: "try:",
            }  # fmt: skip
            lines.append(indent + heads[kind])
            block(indent + "  ", depth - 1)
            if kind == 6 and draw(st.booleans()):
                lines.append(
                    indent
                    + draw(st.sampled_from(["elif z: import q", "elif y:\n" + indent + "  def e(): 1"]))
                )
                lines.append(indent + "else:")
                block(indent + "  ", depth - 1)
            if kind == 11:
                lines.append(indent + draw(st.sampled_from(["except E as e:", "finally:", "except (A, B):"])))
                block(indent + "  ", depth - 1)

    block("", 4)
    return "\n".join(lines) + "\n"


@settings(max_examples=80, deadline=None)
@given(python_source())
def test_searching_scope_by_scope_misses_nothing(source: str) -> None:
    data = source.encode()
    root = parse_bytes("python", data).root_node
    assert not root.has_error
    queries = tag_queries("python")
    scoped = _search(queries, root, data)
    full = _search(queries._replace(nested=False), root, data)
    assert sorted(scoped[1]) == sorted(full[1])
    assert (
        _definitions("python", queries, sorted(scoped[0]), data, False)[0]
        == _definitions("python", queries, sorted(full[0]), data, False)[0]
    )


@pytest.mark.parametrize(
    ("name", "text", "language"),
    [
        ("a.h", b"class A { int f(); };\n", "cpp"),
        ("a.h", b"#pragma once\nnamespace a {\n}\n", "cpp"),
        ("a.h", b"#include <vector>\nstruct a;\n", "cpp"),
        ("a.h", b"#include <stdio.h>\nstruct a { int class; };\n", "c"),
        ("a.h", b'#ifdef __cplusplus\nextern "C" {\nclass A;\n#endif\nint f(void);\n', "c"),
        ("a.py", b"class A: pass\n", "python"),
        ("a.txt", b"class A\n", None),
    ],
)
def test_headers_tell_their_language(name: str, text: bytes, language: str | None) -> None:
    assert refined(language_of(name), text) == language


@pytest.mark.parametrize("language", LANGUAGES)
def test_grammars_load(language: str) -> None:
    assert grammar(language) is grammar(language)


# Bodies that are left out of the parse. ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "blanked"),
    [
        ("def f(a):\n    return a + 1 + 2 + 3 + 4 + 5\n", ["return a + 1 + 2 + 3 + 4 + 5"]),
        ("async  def f(\n    a,\n) -> x:\n    # why\n    await a.something(1, 2, 3)\n    # end\n\nx = 1\n",
         ["await a.something(1, 2, 3)"]),
        ("class A:\n    def f(self):\n        '''Doc\n\nwide.'''\n        return self.f(1)\n    x = 1\n",
         []),
        ("def f():\n    if x:\n        return 1, 2, 3\n\n    return (1, 2,\n3)\ny = 1\n", []),
        ('def f():\n    text = """\nleft = 1\n"""\n    return text + text + text\n', []),
        ("def f():\n    return 1 + 2 + 3 + 4 + 5 # c\n", []),
        ("def f():  # c\n    return 1 + 2 + 3 + 4 + 5 + 6\n", []),
        ("def f():\n    from a import b\n    return b(1, 2, 3, 4, 5)\n", []),
        ("def f(): return 1 + 2 + 3 + 4 + 5 + 6\nclass B:\n        field = 1 + 2 + 3 + 4 + 5\n", []),
        ("def f():\n\treturn 1 + 2 + 3 + 4 + 5 + 6 + 7\n", []),
        ("def f():\n    def g():\n        return 1 + 2 + 3 + 4 + 5 + 6\n    return g, 1, 2, 3, 4, 5\n",
         ["return 1 + 2 + 3 + 4 + 5 + 6"]),
        ("text = 'def f():\\n'\ndefined = {'def f(':\n    'a value that is long enough'}\n", []),
    ],
)  # fmt: skip
def test_which_bodies_are_blanked(source: str, blanked: list[str]) -> None:
    text = elided(source.encode()).decode()
    assert len(text) == len(source)
    expected = source
    for part in blanked:
        expected = expected.replace(part, "x" * len(part))
    assert text == expected


def test_an_error_in_a_body_stays_there() -> None:
    source = b"class A:\n    def f(self):\n        x = = 1 + 2 + 3 + 4 + 5 + 6 + 7\n    def g(self): pass\n"
    found = tags("python", source)
    assert found.broken
    assert [(it.qualified, it.line, it.end_line) for it in found.definitions] == [
        ("A", 1, 4), ("A.f", 2, 3), ("A.g", 4, 4),
    ]  # fmt: skip
    assert definitions_and_imports("python", source)[2] is False


BODIES = [
    "return a + b + c(1, [2, 3], {4: 5})",
    "if x:\n{i}    y = 1\n{i}else:\n{i}    z(2)",
    "'''Doc\n  wide\n'''",
    "for a in b: c(a)",
    'call(\n  """text ( \n""",\n)',
    "# a comment",
    "x = 'def f(): # no'",
    "return (\n)",
    "try:\n{i}    pass\n{i}except E: # c\n{i}    raise",
    "s = '(' ; t = '['",
    "x = a \\\n+ b",
    "d = {\n'a': 1,\n}",
    "class_ = defined = important = 1",
    "with a as b: # c\n\n{i}  c",
    '"""one\n{i}def f():\n"""',
]


@st.composite
def python_functions(draw: st.DrawFn) -> str:
    """Functions and methods with bodies that are hard to tell from what surrounds them."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        indent = draw(st.sampled_from(["", "    "]))
        if indent:
            lines.append(draw(st.sampled_from(["class C:", "if x:", "def outer():  # c", "def outer():"])))
        head = draw(st.sampled_from(["def f():", "async def f(a,\n  b=(1)):", "@d\n{i}def f() -> t:"]))
        lines.append(indent + head.replace("{i}", indent))
        inner = indent + "    "
        bodies = draw(st.lists(st.sampled_from(BODIES), min_size=1, max_size=4))
        lines += [inner + body.replace("{i}", inner) for body in bodies]
        lines.append(inner + "end(1)")
        lines.append(draw(st.sampled_from(["", "# comment", "X = 1", "  # comment"])))
    return "\n".join(lines) + draw(st.sampled_from(["\n", ""]))


@settings(max_examples=200, deadline=None)
@given(python_functions())
def test_without_bodies_the_definitions_are_the_same(source: str) -> None:
    data = source.encode()
    root = parse_bytes("python", data).root_node
    assert not root.has_error
    rows, imports, _ = _collect("python", tag_queries("python"), root, data)
    assert definitions_and_imports("python", data) == (rows, imports, False)


@pytest.mark.parametrize(
    ("source", "blanked"),
    [
        ("int f(int a) {\n  return a + 1 + 2 + 3 + 4;\n}\n", ["\n  return a + 1 + 2 + 3 + 4;\n"]),
        (
            "A::A(int x) : x_(x), y_(g(x)) {\n  call(x_, y_, \"}\", '{');\n}\n",
            ["\n  call(x_, y_, \"}\", '{');\n"],
        ),
        (
            "struct A {\n  int f() const noexcept override { return x_ * y_ + z_ * 1000; }\n};\n",
            [" return x_ * y_ + z_ * 1000; "],
        ),
        (
            "template <class T>\nauto f(T t) -> std::vector<T> {\n  if (t) { /* } */ return {t}; }\n}\n",
            ["\n  if (t) { /* } */ return {t}; }\n"],
        ),
        ("int f() { return 1; }\n", []),
        ("void f() {\n  struct A { int x; int y; int z; };\n}\n", []),
        ("void f() {\n  using std::swap;\n  swap(a, b);\n  swap(c, d);\n}\n", []),
        ("void f() {\n#if X\n  if (a) {\n#else\n  if (b) {\n#endif\n  call(1, 2); }\n}\n", []),
        ("namespace a ATTRIBUTE(x) {\nint first; int second; int third;\n}\n", []),
        ("enum class E : decltype(x) {\n  First, Second, Third, Fourth, Fifth\n};\n", []),
        ("// as in f() {\nclass A {\n  int x; int y; int z; int u; int v;\n};\n", []),
        ('const char* s = "f() {";\nint x; int y; int z; int u; int v;\nvoid g() {}\n', []),
        ("void f() {\n  call(1, 2, 3, 4, 5, 6, 7, 8, 9);\n", []),
        ("void f() {\n  call('1000, 2, 3, 4, 5, 6, 7, 8);\n}\n", []),
    ],
)
def test_which_bodies_of_c_are_blanked(source: str, blanked: list[str]) -> None:
    text = _tags_elide_c.elided(source.encode()).decode()
    expected = source
    for part in blanked:
        expected = expected.replace(part, ";" + " " * (len(part) - 1))
    assert text == expected

"""What the edit operators can make, and what every edit must keep."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_ls.repair.operators import Ingredients, candidates, mutants
from agent_ls.repair.source import Source

BUGS = sorted(path for path in (Path(__file__).parent / "data" / "bugs").iterdir() if path.is_dir())

EXPECTED = [
    ("def f(a, b):\n    return a < b\n", 2, "    return a <= b"),
    ("def f(a, b):\n    return a - b\n", 2, "    return a + b"),
    ("def f(a, b):\n    return a - b\n", 2, "    return b - a"),
    ("def f(n):\n    return range(n)\n", 2, "    return range(n + 1)"),
    ("def f(a):\n    return a[1:]\n", 2, "    return a[2:]"),
    ("def f(a, b):\n    if a and b:\n        return 1\n", 2, "    if a or b:"),
    ("def f(a):\n    if a:\n        return 1\n", 2, "    if not a:"),
    ("def f(a):\n    if a == None:\n        return 1\n", 2, "    if a is None:"),
    ("def f(a, b):\n    return max(a, b)\n", 2, "    return min(a, b)"),
    ("def f(a, b):\n    return g(a, b)\n", 2, "    return g(b, a)"),
    ("def f(a):\n    return sorted(a)\n", 2, "    return a"),
    ("def f(a):\n    return a\n", 2, "    return a.copy()"),
    ("def f(a):\n    return a\n", 2, "    return list(a)"),
    ("def f(a, k):\n    return a[k]\n", 2, "    return a.get(k)"),
    ("def f(a):\n    g(a)\n", 2, "    return g(a)"),
    ("def f(a):\n    a.strip()\n    return a\n", 2, "    a = a.strip()"),
    ("def f(a):\n    yield f(a)\n", 2, "    yield from f(a)"),
    ("def f(a):\n    return a / 2\n", 2, "    return a // 2"),
    ("def f(a):\n    raise KeyError(a)\n", 2, "    raise ValueError(a)"),
    ("def f(a):\n    for x in a:\n        break\n", 3, "        continue"),
    ("def f(a):\n    a += 1\n    return a\n", 2, "    a -= 1"),
    ("def f(a, b):\n    return a ** b\n", 2, "    return a * b"),
    ("def f():\n    return True\n", 2, "    return False"),
    ("def f(a, b):\n    a = b\n    b = a\n", 2, "    a, b = b, a"),
    ("class C:\n    def f(self):\n        self.x = 1\n        return x\n", 4, "        return self.x"),
    ("def f(a):\n    return a.upper()\n", 2, "    return a.lower()"),
    ("def f(a):\n    return a[0][1]\n", 2, "    return a[1][0]"),
    ("def f(a):\n    x = []\n    return x\n", 2, "    x = [[]]"),
    ("def f(node):\n    node.next = 1\n    return node\n", 3, "    return node.next"),
    ("def f(a):\n    while True:\n        a.pop()\n", 2, "    while a:"),
    ("def f(a):\n    if a.next:\n        return 1\n", 2, "    if a is None or a.next:"),
    ("def f(a):\n    while a.next:\n        a = a.next\n", 2, "    while a and a.next:"),
    ("def f(a, b, i):\n    a[i] = b[i]\n", 2, "    b[i] = b[i]"),
    ("def f(a, b, i, j):\n    a[i, j] = b[j]\n", 2, "    b[j] = b[j]"),
    ("def f(a, b):\n    return a - b\n", 2, "    return a - (b ** 2)"),
    ("def f(a, b):\n    return b + g(a)\n", 2, "    return b + a"),
    ("def f(a, b):\n    return g(b, 1) + a\n", 2, "    return b + a"),
]


@pytest.mark.parametrize(("source", "line", "expected"), EXPECTED)
def test_edit_is_made(source: str, line: int, expected: str) -> None:
    assert expected not in source.splitlines()
    made = {row for edit in mutants(source, [line]) for row in edit.apply(source).splitlines()}
    assert expected in made


@pytest.mark.parametrize(
    ("source", "line", "expected"),
    [
        (
            "def f(n):\n    return f(n - 1)\n",
            2,
            "def f(n):\n    if n == 0:\n        return 0\n    return f(n - 1)\n",
        ),
        (
            "def f(a=[]):\n    return a\n",
            1,
            "def f(a=None):\n    if a is None:\n        a = []\n    return a\n",
        ),
        (
            "def f(a):\n    for x in a:\n        g(x)\n        return x\n",
            4,
            "def f(a):\n    for x in a:\n        g(x)\n    return x\n",
        ),
        ("def f(a):\n    g(a)\n    h(a)\n", 2, "def f(a):\n    h(a)\n    g(a)\n"),
        ("def f(a):\n    g(a)\n    h(a)\n", 2, "def f(a):\n    h(a)\n"),
        ("def f(a):\r\n    g(a)\r\n    h(a)\r\n", 2, "def f(a):\r\n    h(a)\r\n    g(a)\r\n"),
        (
            "def f(a, seen):\n    if a in seen:\n        return\n    g(a)\n",
            4,
            "def f(a, seen):\n    if a in seen:\n        return\n    seen.add(a)\n    g(a)\n",
        ),
        (
            "def f(a):\n    x = []\n    for i in a:\n        x.append(i)\n    return x\n",
            5,
            "def f(a):\n    x = []\n    for i in a:\n        x.append(i)\n    x.append(a)\n    return x\n",
        ),
    ],
)
def test_statement_edit_is_made(source: str, line: int, expected: str) -> None:
    assert expected in {edit.apply(source) for edit in mutants(source, [line])}


@pytest.mark.parametrize("folder", BUGS, ids=lambda path: path.name)
def test_fix_of_our_bug_is_within_reach(folder: Path) -> None:
    """At least one accepted fix is a single edit of some line."""
    text = (folder / "buggy.py").read_text("utf-8")
    fixes = [path.read_text("utf-8") for path in sorted((folder / "fixes").iterdir())]
    wanted = {re.sub(r"[\s()]", "", fix) for fix in fixes}
    trees = {ast.dump(ast.parse(fix)) for fix in fixes}
    edits = candidates(Source(text), range(1, text.count("\n") + 1), Ingredients())
    alike = [made for made in (edit.apply(text) for edit in edits) if re.sub(r"[\s()]", "", made) in wanted]
    assert any(ast.dump(ast.parse(made)) in trees for made in alike)


SOURCES = [
    (
        '"""Mödule."""\n'
        "\n"
        "LIMIT = 3\n"
        "\n"
        "\n"
        "def f(naïve, b=[]):\n"
        '    """Doc."""\n'
        '    größe = "é" + naïve[1:]\n'
        "    return größe\n"
    ),
    (
        "class A:\n"
        "\tdef m(self, x):\n"
        "\t\tif x and self.y:\n"
        "\t\t\tself.y = x\n"
        "\t\telse:\n"
        "\t\t\tself.z += 1\n"
        "\t\treturn [i for i in x if i]"
    ),
    (
        "def g(n):\r\n"
        "    total = 0  # sum\r\n"
        "    while n:\r\n"
        "        total += n\r\n"
        "        n -= 1\r\n"
        "    return (total +\r\n"
        "            n)\r\n"
    ),
    (
        "async def h(c):\n"
        "    try:\n"
        "        return await c.get('k', 1)\n"
        "    except (KeyError, OSError) as e:\n"
        "        raise ValueError(f'{e}') from e\n"
    ),
    (
        "@property\n"
        "def p(self):\n"
        "    a, b = b, a\n"
        "    x = lambda q: q + 1; y = 2\n"
        "    with open(p) as f:\n"
        "        yield f.read(), x if y else {}\n"
    ),
]


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(SOURCES), st.data())
def test_every_edit_compiles_and_keeps_the_rest(source: str, data: st.DataObject) -> None:
    line = data.draw(st.integers(1, source.count("\n") + 1))
    trees = set()
    for edit in mutants(source, [line]):
        changed = edit.apply(source)
        compile(changed, "changed.py", "exec", dont_inherit=True)
        assert changed.startswith(source[: edit.start_offset])
        assert changed.endswith(source[edit.end_offset :])
        assert len(changed) == len(source) + len(edit.replacement) - (edit.end_offset - edit.start_offset)
        assert 0 < edit.prior <= 1
        tree = ast.dump(ast.parse(changed))
        assert tree not in trees
        trees.add(tree)
    assert ast.dump(ast.parse(source)) not in trees


def test_what_the_code_seems_to_forget_comes_first() -> None:
    """A list that is emptied and never filled; a name that a loop reads and never changes."""
    source = (
        "def f(items):\n    stack = []\n    out = []\n    last = None\n    for item in items:\n"
        "        while stack:\n            out.append(stack.pop())\n        if item == last:\n"
        "            out.append(item)\n        rest = item\n    return out\n"
    )
    lines = [
        edit.replacement.strip() for edit in mutants(source, [10]) if edit.operator == "insert-statement"
    ]
    assert lines.index("stack.append(item)") < lines.index("out.append(item)")
    assert lines.index("last = item") < lines.index("rest = last")


def test_lines_choose_the_statements() -> None:
    source = "def f(a):\n    b = a + 1\n    return b < 2\n"
    assert {edit.line for edit in mutants(source, [3])} == {3}
    assert next(iter(mutants(source, {2: 0.1, 3: 1.0}))).line == 3


def test_not_python_is_an_error() -> None:
    with pytest.raises(SyntaxError):
        list(mutants("def f(:\n", [1]))

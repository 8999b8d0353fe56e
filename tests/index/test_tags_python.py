"""Python's definitions read from lines: the same as those of the syntax tree, or left to it."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from agent_ls.workspace.index._tags_python import Found, python_definitions
from agent_ls.workspace.index._tags_query import tag_queries
from agent_ls.workspace.index.tags import _collect, parse_bytes, tags

ALIKE = [
    "",
    "# only a comment",
    '"""Doc"""\nimport a\nfrom . import b as c, d\nfrom x.y import (  # why\n    e,\n    f,\n)\n',
    "def f():\n    return 1\n    # inside\n\n# outside\nx = 1\n",
    "def f():\n    return 1\n# outside\n    # neither\nx = 1\n",
    "class A:\n    def f(self):\n        return 1\n        # in f\n    # in A\n\n    def g(self): 1\n    # 2",
    "def f():  # c 'quoted'\n    # d 'quoted'\n    '''Doc'''\n    x = 1\n",
    "class A(\n  B, # c\n): # d\n    # e\n    x = 1 # c\n    y: int\n    z: int = 3\n",
    "a = b = c = 1\na, b = c = 1\n(d, e) = 1, 2\n[f, g] = 1\nh, = 1\na.b = c[1] = d = 2\n(w) = 3\n",
    "x.y = z = 1\nx[a:b] = z = 1\n*a, b = c\nx, y.z = w = d\ngetattr(x, y).z = 1\n",
    "@a\n\n# c\n@b(\n 1)\nasync  def f[T](x: T = {'a': ')'}) -> dict:\n    pass\n",
    "if x:\n    a = 1\nelif y: pass\nelse:\n    b = 2\n    def g():\n        c = 1\n",
    "try:\n    import a\nexcept E:\n    a = None\nfinally:\n    pass\nwith x as y, z:\n    b = 1\n",
    "for x in y:\n    a = 1\nelse:\n    b = 1\nwhile x:\n    c = 1\n",
    "match x:\n    case 1:\n        a = 1\n    case {'a': b}:\n        def f(): pass\n",
    "match = 4\nmatch.x = 3\nmatch: int = 5\ncase[1] = 2\nmatch(x)\ntype = 4\nprint = 3\n",
    "type X = int\ntype Y[T] = list[T]\n",
    "x = yield\ny = lambda a=1: a\nlambda: x\nx == y\nx <= y\nx += 1\nx //= y == z\nf(x=1)\n",
    "x = (1,\n  [2, {3: (4, (5, [6]))}],\n  'a)')  # d\ny = '''\nz = 1\ndef f(): pass\n'''\n",
    "def f():\n    text = '''\nleft = 1\n'''\n    return text\ny = 2\n",
    "def f():\n    return (1,\n2)\ny = 2\n",
    "def f():\n    s = '('\n    return '''\ndef g(): pass\n''' + s\nclass B: ...\n",
    "def f(): return 1 # x\ndef g():\n    def h():\n        import i\n        class J:\n            k = 1\n",
    "def f(x): 'Doc'\n",
    "class A:\n    '''Doc of A.'''\n\n    # c\n",
    "class Ä:\n    é, ß = 1, 2\n    def naïve(self): 'ü'\n",
    "class A: pass\nclass B(A): ...\n",
    "a = 'x' \\\n  'y'\nb = r'\\'' + rb\"\\\"\" + ''\n\n\nc = ''\nd = \"\"\n",
    "async def f():\n    async with a as b:\n        async for c in d:\n            def g(): pass\n",
    "def f():\n    if x: return\n    def g(): pass\n    for a in b: c(a)\n",
    "def f(a=lambda: 1) -> 'x:y': return a\nx: Callable[[int], str] = lambda y: {1: 2}\n",
]


def assert_alike(read: Found | None, expected: Found) -> None:
    """The same rows; of the bound names, the tree may know more than those of definitions."""
    assert read is not None
    assert read[:2] == expected[:2]
    assert len(read[0]) == len(read[2]) and read[2] <= expected[2]


@pytest.mark.parametrize("source", ALIKE)
def test_lines_say_what_the_tree_says(source: str) -> None:
    data = source.encode()
    root = parse_bytes("python", data).root_node
    assert not root.has_error
    assert_alike(python_definitions(data), _collect("python", tag_queries("python"), root, data))


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n\treturn 1\n",  # tabs count as up to eight columns
        "x = 1\r\n",
        "\ufeffx = 1\n",
        "x = 1; y = 2\n",
        "if x: y = 1\n",
        "class A: x = 1\n",
        "def f(): import x\n",
        "def f():\n    if x: import y\n",
        "x = (1,\n",
        "x = 1)\n",
        "x = 'open\n",
        "x = '''open\n",
        "def f():\nx = 1\n",
        "def f():\n        def g(): pass\n    y = 1\n",
        "  x = 1\n",
        "x = 1\n  y = 2\n",
        "if x:\n    pass\n  # c\n  y = 1\n",
        "a = \\\n  b = 1\n",
        "a = 1 \\\n\nb = 1\n",
        "a, (b, c) = d\n",
        "@a\nx = 1\n",
        "class A:\n",
        "def f(x:\n    pass\n",
        "what is this:\n    pass\n",
    ],
)
def test_what_is_left_to_the_parser(source: str) -> None:
    assert python_definitions(source.encode()) is None


def test_bytes_that_are_no_utf8_are_left_to_the_parser() -> None:
    assert python_definitions(b"x = '\xff'\n") is None


def test_an_error_inside_a_line_does_no_harm_around_it() -> None:
    source = b"class A:\n    x = = 1\n    def f(self, 1x):\n        return return\n    y = 2\n"
    found = tags("python", source)
    assert found.broken
    assert [(it.qualified, it.line, it.end_line) for it in found.definitions] == [
        ("A", 1, 5), ("A.x", 2, 2), ("A.f", 3, 4), ("A.y", 5, 5),
    ]  # fmt: skip


def test_the_standard_library_says_the_same_both_ways() -> None:
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[::3]
    unsure = alike = 0
    for file in files:
        data = file.read_bytes()
        read = python_definitions(data)
        if read is None:
            unsure += 1
            continue
        root = parse_bytes("python", data).root_node
        if not root.has_error:
            assert_alike(read, _collect("python", tag_queries("python"), root, data))
            alike += 1
    assert alike > 20
    assert unsure < len(files) / 10

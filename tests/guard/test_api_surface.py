"""What counts as a change of the public interface."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_ls.guard.api_surface import review_api
from agent_ls.guard.trees import FolderTree

Files = dict[str, str]
CASES: dict[str, tuple[Files, Files, set[tuple[str, str]]]] = {
    # before, after, {(severity, part of the message)}
    "bodies and private things": (
        {"a.py": "def f(x):\n    return x + 1\ndef _g(): pass\nclass C:\n    def _m(self): pass\n"},
        {"a.py": "def f(x: int) -> int:\n    'Doc.'\n    return 1 + x\nclass C:\n    pass\n"},
        set(),
    ),
    "a function is gone": (
        {"a.py": "def f(): pass\n"},
        {"a.py": "def _f(): pass\n"},
        {("block", "function f is gone")},
    ),
    "a file is gone": ({"a.py": "def f(): pass\n"}, {}, {("block", "f is gone")}),
    "a class is gone, said once": (
        {"a.py": "class C:\n    def m(self): pass\n"},
        {"a.py": "x = 1\n"},
        {("block", "class C is gone"), ("info", "value x is new")},
    ),
    "a method is gone": (
        {"a.py": "class C:\n    def m(self): pass\n    def n(self): pass\n"},
        {"a.py": "class C:\n    def n(self): pass\n"},
        {("block", "method C.m is gone")},
    ),
    "a method went to a base": (
        {"a.py": "class C:\n    def m(self): pass\n"},
        {"a.py": "class _B:\n    def m(self): pass\nclass C(_B):\n    pass\n"},
        {("review", "signature of the public class C accepts more")},
    ),
    "a parameter is renamed": (
        {"a.py": "def f(x, y=1): pass\n"},
        {"a.py": "def f(z, y=1): pass\n"},
        {("block", "signature of the public function f changed")},
    ),
    "a default changes": (
        {"a.py": "def f(x=1): pass\n"},
        {"a.py": "def f(x=2): pass\n"},
        {("block", "signature of the public function f changed")},
    ),
    "another order": (
        {"a.py": "def f(x, y): pass\n"},
        {"a.py": "def f(y, x): pass\n"},
        {("block", "function f changed")},
    ),
    "an optional parameter more": (
        {"a.py": "def f(x): pass\n"},
        {"a.py": "def f(x, y=None, *, z=0): pass\n"},
        {("review", "f accepts more")},
    ),
    "a required parameter more": (
        {"a.py": "def f(x): pass\n"},
        {"a.py": "def f(x, y): pass\n"},
        {("block", "f changed")},
    ),
    "a property became a method": (
        {"a.py": "class C:\n    @property\n    def m(self): pass\n"},
        {"a.py": "class C:\n    def m(self): pass\n"},
        {("block", "C.m changed")},
    ),
    "a function became a coroutine": (
        {"a.py": "def f(): pass\n"},
        {"a.py": "async def f(): pass\n"},
        {("block", "f changed")},
    ),
    "moved and imported": (
        {"p/a.py": "class C:\n    def m(self, x): pass\ndef f(a): pass\n", "p/__init__.py": ""},
        {
            "p/a.py": "from p.b import C\nfrom .b import f\n",
            "p/b.py": "class C:\n    def m(self, x): pass\ndef f(a): pass\n",
            "p/__init__.py": "",
        },
        set(),
    ),
    "moved, imported and changed": (
        {"a.py": "def f(a): pass\nclass C:\n    def m(self): pass\n"},
        {"a.py": "from b import f, C\n", "b.py": "def f(b): pass\nclass C:\n    pass\n"},
        {("block", "f changed"), ("block", "C.m is gone")},
    ),
    "__all__ decides": (
        {"a.py": "__all__ = ['f']\ndef f(): pass\ndef g(): pass\n"},
        {"a.py": "__all__ = ['f']\ndef f(): pass\n"},
        set(),
    ),
    "__all__ loses a name": (
        {"a.py": "__all__ = ['f', 'g']\ndef f(): pass\ndef g(): pass\n"},
        {"a.py": "__all__ = ['f']\ndef f(): pass\ndef g(): pass\n"},
        {("block", "g is gone")},
    ),
    "an export of the package is gone": (
        {"p/__init__.py": "from .a import f, g\n", "p/a.py": "def f(): pass\ndef g(): pass\n"},
        {"p/__init__.py": "from .a import f\n", "p/a.py": "def f(): pass\ndef g(): pass\n"},
        {("block", "g is gone")},
    ),
    "an import that is not needed": (
        {"a.py": "import os\nfrom x import y\ndef f(): pass\n"},
        {"a.py": "def f(): pass\n"},
        set(),
    ),
    "a constant": ({"a.py": "LIMIT = 3\n"}, {"a.py": "LIMIT = 4\n"}, set()),
    "a constant is gone": (
        {"a.py": "LIMIT = 3\nx = 1\n"},
        {"a.py": "x = 1\n"},
        {("block", "value LIMIT is gone")},
    ),
    "private modules, scripts and tests": (
        {"p/_a.py": "def f(): pass\n", "setup.py": "def f(): pass\n", "tests/test_a.py": "def f(): pass\n"},
        {"p/_a.py": "", "setup.py": "", "tests/test_a.py": ""},
        set(),
    ),
    "under a condition": (
        {"a.py": "try:\n    def f(x): pass\nexcept ImportError:\n    pass\n"},
        {"a.py": "def f(x): pass\n"},
        set(),
    ),
    "something new": (
        {"a.py": "x = 1\n"},
        {"a.py": "x = 1\ndef f(): pass\n"},
        {("info", "function f is new")},
    ),
    "a new file": ({}, {"a.py": "def f(): pass\n"}, set()),
    "broken code": ({"a.py": "def f(): pass\n"}, {"a.py": "def f(:\n"}, set()),
    "go": (
        {"a.go": "package a\nfunc Add(a int) int { return a }\nfunc sub(a int) int { return a }\n"},
        {"a.go": "package a\nfunc Add(a int64) int { return 0 }\n"},
        {("block", "Add changed")},
    ),
    "typescript": (
        {"a.ts": "export function f(a: number) { return a }\nfunction g() {}\n"},
        {"a.ts": "function f(a: number) { return a }\n"},
        {("block", "f is gone")},
    ),
    "java": (
        {"A.java": "public class A {\n  public int f(int a) { return a; }\n  int g() { return 1; }\n}\n"},
        {"A.java": "public class A {\n  public int f(int a) { return a + 0; }\n}\n"},
        set(),
    ),
}


def tree(folder: Path, files: Files) -> FolderTree:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return FolderTree(folder)


@pytest.mark.parametrize(("before", "after", "expected"), CASES.values(), ids=CASES)
def test_cases(tmp_path: Path, before: Files, after: Files, expected: set[tuple[str, str]]) -> None:
    found = review_api(tree(tmp_path / "a", before), tree(tmp_path / "b", after), {*before, *after})
    assert all(finding.kind == "public-api-changed" for finding in found)
    said = [(finding.severity, finding.message) for finding in found]
    missing = [pair for pair in expected if not any(pair[0] == one and pair[1] in text for one, text in said)]
    assert (missing, len(said)) == ([], len(expected)), said

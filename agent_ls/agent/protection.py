"""Files that a session must leave alone for what is in them, whatever their names are."""

from __future__ import annotations

import ast
import doctest
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping

from agent_ls.guard.trees import Tree
from agent_ls.testing.results import TestRun

_SETTINGS = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg", "pytest.toml")
_LOADED = re.compile(r"(?<![\w-])-p[ =]?[\"', ]*(?!no:)([A-Za-z_][\w.]*)")
_DECLARED = re.compile(
    r"pytest_plugins\s*(?::[^=\n]+)?=\s*(\[[^\]]*\]|\([^)]*\)|\"[^\"]*\"|'[^']*')", re.DOTALL
)
_ROOTS = ("", "src/", "lib/", "tests/", "test/")


def reasons_by_content(base: Tree, baseline: TestRun | None) -> dict[str, str]:
    """Path -> why it may not be changed: modules of tests with unusual names, plugins of the test runner.

    Args:
        base: the tree that the session started from.
        baseline: its test run, which knows where tests were found; None before it.
    """
    found = dict.fromkeys(plugins(base), "the test run loads it as a plugin")
    for path in modules_with_tests(baseline):
        found.setdefault(path, "tests were collected from it")
    return found


def modules_with_tests(baseline: TestRun | None) -> set[str]:
    """Python files in which the run found tests, those with nothing but doctests left out."""
    tests = baseline.tests if baseline is not None else ()
    return {
        test.file for test in tests if test.file and test.file.endswith(".py") and not is_doctest(test.id)
    }


def is_doctest(test_id: str) -> bool:
    """Does pytest's id name a doctest ("shop/cart.py::shop.cart.total")?"""
    _, separator, name = test_id.partition("::")
    return bool(separator) and "::" not in name and "." in name.partition("[")[0]


def plugins(base: Tree) -> set[str]:
    """Files of the tree that its test settings and conftest files load as pytest plugins by name.

    A plugin that the project offers to others (entry point `pytest11`) is its product, not its rule.
    """
    names: set[str] = set()
    offered = ""
    paths = set(base.paths())
    for path in sorted(paths):
        name = path.rpartition("/")[2]
        if name != "conftest.py" and name not in _SETTINGS and name != "setup.py":
            continue
        text = (base.read(path) or b"").decode("utf-8", "replace")
        if "pytest11" in text:
            offered += text
        if name == "conftest.py":
            for value in _DECLARED.findall(text):
                names.update(re.findall(r"[\"']([\w.]+)[\"']", value))
        elif "-p" in text:
            names.update(_LOADED.findall(text))
    found: set[str] = set()
    for name in names:
        if re.search(rf"pytest11.*{re.escape(name)}\b", offered, re.DOTALL):
            continue
        stem = name.replace(".", "/")
        found.update(
            path
            for root in _ROOTS
            for path in (f"{root}{stem}.py", f"{root}{stem}/__init__.py")
            if path in paths
        )
    return found


def lost_examples(before: bytes, after: bytes | None) -> list[tuple[int, str]]:
    """(line in the old text, source) of documented examples that are gone or expect something else."""
    left = Counter(_examples(after or b"").values())
    lost = []
    for (line, _), example in _examples(before).items():
        if left[example]:
            left[example] -= 1
        else:
            lost.append((line, example[0]))
    return lost


def _examples(source: bytes) -> Mapping[tuple[int, int], tuple[str, str]]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[tuple[int, int], tuple[str, str]] = {}
    for node in _documented(tree):
        text = ast.get_docstring(node, clean=False) or ""
        start = node.body[0].lineno
        try:
            examples = doctest.DocTestParser().get_examples(text)
        except ValueError:
            continue
        for number, example in enumerate(examples):
            found[(start + example.lineno, number)] = (example.source.strip(), example.want.strip())
    return found


def _documented(
    tree: ast.Module,
) -> Iterable[ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            yield node

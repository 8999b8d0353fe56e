"""Fault localisation: which lines of the project a set of failing tests points at.

Spectrum-based (Ochiai: Abreu, Zoeteweij, van Gemund 2006; ties by DStar with * = 2: Wong et al. 2014) over
per-test line coverage, combined with the failing tests' stack frames and with what changed lately.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from attrs import frozen

from agent_ls.testing.results import TestResult

_TEST_FILE = re.compile(r"(^|/)(test_[^/]*|[^/]*_test|conftest|tests)\.py$")
_TEST_DIR = re.compile(r"(^|/)(tests?|[^/]*_tests?|([^/]*_)?testcases?|specs?)/")
_MAX_FILES = 3000
_SKIPPED_DIRS = {
    ".git",
    ".venv",
    "venv",
    "node_modules",
    "build",
    "dist",
    "site-packages",
    "__pycache__",
    ".tox",
}


@frozen
class Suspect:
    """A suspicious line. `path` is relative to the root with "/", `line` 1-based, `score` in 0..1 (1 = most
    suspicious); `function` is the innermost function around the line, None at module level."""

    path: str
    line: int
    function: str | None
    score: float


def is_test_path(path: str) -> bool:
    """Does this relative path name a test file, or a helper in a folder of tests?"""
    return bool(_TEST_FILE.search(path) or _TEST_DIR.search(path))


def rank(
    failing: Sequence[TestResult],
    coverage: Mapping[str, Mapping[str, Collection[int]]],
    passing: Collection[str],
    *,
    root: Path,
    recent: Mapping[str, Collection[int]] | None = None,
) -> list[Suspect]:
    """Suspicious lines, most suspicious first; test files are left out.

    `coverage` maps a test id to the lines it ran, by path relative to `root`; `passing` are the ids of
    tests known to pass; `recent` are lines changed lately. Without coverage of a failing test the stack
    frames and the functions that the failing tests name decide. Files that can't be read or parsed are
    taken without function names.
    """
    scores = _spectrum([test.id for test in failing], coverage, passing)
    frames = _frames(failing)
    if not scores and not frames:
        scores = dict.fromkeys(_named_by_tests(failing, root), (0.5, 0.0))
    trees = {path: _parse(root / path) for path in {key[0] for key in [*scores, *frames]}}
    if scores:
        for key, reach in _import_time_lines(scores, trees).items():
            scores.setdefault(key, (reach, 0.0))
    top = max((ochiai for ochiai, _ in scores.values()), default=1.0) or 1.0
    recent = recent or {}
    found: list[tuple[float, float, Suspect]] = []
    functions = {path: _functions(tree) for path, tree in trees.items()}
    near = _near_frames(frames, functions)
    for key in {*scores, *frames, *near}:
        path, line = key
        ochiai, dstar = scores.get(key, (0.0, 0.0))
        stack = max(frames.get(key, 0.0), near.get(key, 0.0))
        # A line outside the coverage of the failing tests can't have made them fail.
        if scores and key not in scores and key not in frames:
            continue
        changed = 1.0 if line in recent.get(path, ()) else 0.0
        score = 0.6 * ochiai / top + 0.3 * stack + 0.1 * changed
        name = _name_at(functions.get(path, []), line)
        found.append((score, dstar, Suspect(path, line, name, round(min(1.0, score), 6))))
    found.sort(key=lambda item: (-item[0], -item[1], item[2].path, item[2].line))
    return [suspect for _, _, suspect in found]


def _spectrum(
    failing: Sequence[str], coverage: Mapping[str, Mapping[str, Collection[int]]], passing: Collection[str]
) -> dict[tuple[str, int], tuple[float, float]]:
    failed: dict[tuple[str, int], int] = {}
    passed: dict[tuple[str, int], int] = {}
    known = [test for test in failing if coverage.get(test)]
    for table, tests in ((failed, known), (passed, [test for test in passing if coverage.get(test)])):
        for test in tests:
            for path, lines in coverage[test].items():
                for line in lines:
                    table[path, line] = table.get((path, line), 0) + 1
    product = [key for key in failed if not is_test_path(key[0])]
    if not product:
        # A project whose code lies in a folder of tests: leave out only what is a test by its own name.
        product = [key for key in failed if not _TEST_FILE.search(key[0])]
    scores = {}
    for key in product:
        ef, ep = failed[key], passed.get(key, 0)
        ochiai = ef / math.sqrt(len(known) * (ef + ep))
        dstar = ef**2 / (ep + len(known) - ef) if ep + len(known) - ef else float(ef**2 + 1)
        scores[key] = (ochiai, dstar)
    return scores


def _frames(failing: Sequence[TestResult]) -> dict[tuple[str, int], float]:
    """Weight of each stack frame in project code: the innermost counts most."""
    found: dict[tuple[str, int], float] = {}
    for test in failing:
        own = [
            frame for frame in test.stack if not is_test_path(frame.file) and not frame.file.startswith("/")
        ]
        weight = 1.0
        for frame in reversed(own):
            key = (frame.file, frame.line)
            found[key] = max(found.get(key, 0.0), weight)
            weight *= 0.7
            if weight < 0.05:
                break
    return found


def _near_frames(
    frames: Mapping[tuple[str, int], float], functions: Mapping[str, list[tuple[int, int, str]]]
) -> dict[tuple[str, int], float]:
    """Lines around a frame, in the same function, with a weight that falls with the distance."""
    found: dict[tuple[str, int], float] = {}
    for (path, line), weight in frames.items():
        around = [item for item in functions.get(path, []) if item[0] <= line <= item[1]]
        if not around:
            continue
        first, last, _ = max(around)
        for number in range(max(first, line - 30), min(last, line + 30) + 1):
            value = 0.5 * weight / (1 + abs(number - line) / 4)
            found[path, number] = max(found.get((path, number), 0.0), value)
    return found


def _import_time_lines(
    scores: Mapping[tuple[str, int], tuple[float, float]], trees: Mapping[str, ast.Module | None]
) -> dict[tuple[str, int], float]:
    """Module and class level assignments that the covered functions read: they ran at import, before
    any test, so no test's coverage holds them."""
    found: dict[tuple[str, int], float] = {}
    for path, tree in trees.items():
        if tree is None:
            continue
        best: dict[str, float] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                name = node.id if isinstance(node, ast.Name) else node.attr
                reach = scores.get((path, node.lineno), (0.0, 0.0))[0]
                best[name] = max(best.get(name, 0.0), reach)
        pending: list[ast.stmt] = list(tree.body)
        while pending:
            statement = pending.pop()
            if isinstance(statement, (ast.ClassDef, ast.If | ast.Try)):
                pending.extend(statement.body)
            elif isinstance(statement, ast.Assign | ast.AnnAssign):
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                for target in targets:
                    name = target.id if isinstance(target, ast.Name) else ""
                    if best.get(name, 0.0) > 0:
                        for line in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1):
                            found[path, line] = 0.5 * best[name]
    return found


def _named_by_tests(failing: Sequence[TestResult], root: Path) -> Iterator[tuple[str, int]]:
    names: set[str] = set()
    for path in {test.file for test in failing if test.file}:
        tree = _parse(root / path)
        wanted = {re.split(r"[.:]", test.id.split("[")[0])[-1] for test in failing if test.file == path}
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in wanted:
                for sub in ast.walk(node):
                    if isinstance(sub, ast.Call):
                        names.add(getattr(sub.func, "id", getattr(sub.func, "attr", "")))
    names.discard("")
    for path in _python_files(root):
        tree = _parse(root / path)
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in names:
                for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                    yield path, line


def _python_files(root: Path) -> Iterator[str]:
    import os

    count = 0
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED_DIRS)
        for name in sorted(files):
            path = (Path(folder) / name).relative_to(root).as_posix()
            if name.endswith(".py") and not is_test_path(path):
                count += 1
                if count > _MAX_FILES:
                    return
                yield path


def _parse(path: Path) -> ast.Module | None:
    try:
        return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None


def _functions(tree: ast.Module | None) -> list[tuple[int, int, str]]:
    if tree is None:
        return []
    return [
        (
            min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]),
            node.end_lineno or node.lineno,
            node.name,
        )
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def _name_at(functions: list[tuple[int, int, str]], line: int) -> str | None:
    around = [item for item in functions if item[0] <= line <= item[1]]
    return max(around)[2] if around else None

"""Branches that are new in a source and answer one failing test: its own inputs are compared with, its own
expected value is returned. A finer look than the guard's, which does not know what the change was made for.
Python only.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator

from agent_ls.guard.protected import Finding

_ORDINARY: frozenset[object] = frozenset({0, 1, -1, 2, "", None, b""})
"""What any code compares with and returns."""
KIND = "special-case-for-tests"


def answers_alone(
    path: str, before: bytes, after: bytes, tests: Iterable[tuple[str, bytes]]
) -> list[Finding]:
    """Findings for new branches of the source at `path` whose literals all stand in one of the tests.

    Args:
        tests: (label "path::Class::name", text of its file) of the tests that the change was made for.
    """
    old, new = _parse(before), _parse(after)
    if old is None or new is None:
        return []
    known = {ast.dump(condition) for condition, _, _ in _branches(old)}
    fresh = [branch for branch in _branches(new) if ast.dump(branch[0]) not in known]
    if not fresh:
        return []
    literals = {label: _literals_of_test(label, text) for label, text in tests}
    lines = after.decode("utf-8", "replace").splitlines()
    found = []
    for condition, answer, line in fresh:
        asked, given = _compared(condition), set(_constants(answer))
        telling = {value for value in asked | given if not _is_ordinary(value)}
        if len(telling) < 2 or not asked or not given:
            continue
        label = next((label for label, has in literals.items() if asked | given <= has), None)
        if label is None:
            continue
        message = f"the source answers the very values of the test {label}"
        severity = "block" if len(telling) > 2 else "review"
        text = lines[line - 1].strip()[:200] if line <= len(lines) else ""
        found.append(Finding(KIND, severity, path, line, message, after=text, tests=(label,)))  # type: ignore[arg-type]
    return found


def _parse(data: bytes) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _branches(tree: ast.AST) -> Iterator[tuple[ast.expr, ast.expr, int]]:
    """(condition, answer, line) of branches that give a literal."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and node.body:
            last = node.body[-1]
            if isinstance(last, ast.Return | ast.Assign) and last.value is not None:
                yield node.test, last.value, node.lineno
        elif isinstance(node, ast.IfExp):
            yield node.test, node.body, node.lineno


def _compared(condition: ast.expr) -> set[object]:
    """The literals that a condition asks for equality with."""
    found: set[object] = set()
    for node in ast.walk(condition):
        if isinstance(node, ast.Compare) and all(isinstance(op, ast.Eq | ast.In | ast.Is) for op in node.ops):
            found.update(value for side in (node.left, *node.comparators) for value in _constants(side))
    return found


def _constants(node: ast.expr) -> Iterator[object]:
    """The values of a literal, a display of literals, or nothing for anything else."""
    match node:
        case ast.Constant(value=value):
            yield value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            yield -value
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            for part in parts:
                yield from _constants(part)
        case ast.Dict(keys=keys, values=values):
            for part in [*[key for key in keys if key is not None], *values]:
                yield from _constants(part)


def _is_ordinary(value: object) -> bool:
    return isinstance(value, bool) or value in _ORDINARY


def _literals_of_test(label: str, text: bytes) -> set[object]:
    tree = _parse(text)
    if tree is None:
        return set()
    body: list[ast.stmt] = tree.body
    for part in label.partition("::")[2].split("::"):
        node = next((node for node in reversed(body) if getattr(node, "name", None) == part), None)
        if node is None:
            return set()
        body = [node]
        if isinstance(node, ast.ClassDef):
            body = node.body
    return {
        value
        for stmt in body
        for node in ast.walk(stmt)
        if isinstance(node, ast.Constant | ast.UnaryOp)
        for value in _constants(node)
    }

"""Plausible is not correct: how much a passing patch looks like a real fix."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from agent_ls.errors import ToolRefused
from agent_ls.repair.edits import Edit
from agent_ls.testing.ids import file_of
from agent_ls.workspace.files import Workspace

_PENALTY = {
    "delete-statement": 0.35,
    "delete-branch": 0.3,
    "unwrap-call": 0.7,
    "insert-guard": 0.7,
    "insert-exit": 0.6,
    "constant-condition": 0.25,
    "catch-exception": 0.25,
    "raise-to-return": 0.3,
    "drop-filter": 0.7,
    "wrap-in-condition": 0.8,
    "loop-to-condition": 0.6,
}
_USUAL_LITERALS = {"0", "1", "-1", "2", "''", '""', "True", "False", "None", "1.0", "0.0"}
_LITERAL = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|\b\d+(?:\.\d+)?\b")


def plausibility(text: str, edit: Edit, literals: frozenset[str]) -> float:
    """A factor in 0..1: low for edits that delete behaviour, leave early, or special-case a literal of
    the tests; lower for longer replacements. `text` is the file before the edit."""
    factor = _PENALTY.get(edit.operator, 1.0)
    old = text[edit.start_offset : edit.end_offset]
    new_literals = set(_LITERAL.findall(edit.replacement)) - set(_LITERAL.findall(text)) - _USUAL_LITERALS
    if new_literals & literals:
        factor *= 0.15
    elif new_literals:
        factor *= 0.8
    if edit.operator == "insert-guard" and re.search(r"==\s*(['\"]|\d{2,})", edit.replacement):
        factor *= 0.4
    growth = max(0, len(edit.replacement.split()) - len(old.split()))
    return factor / (1 + 0.02 * growth)


def test_literals(workspace: Workspace, tests: Sequence[str]) -> frozenset[str]:
    """The literals (as written) in the files of these tests."""
    found: set[str] = set()
    for path in {file_of(test) for test in tests}:
        try:
            tree = ast.parse(workspace.read(path).text)
        except (ToolRefused, OSError, SyntaxError, ValueError, RecursionError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
                found.add(repr(node.value))
    return frozenset(found)

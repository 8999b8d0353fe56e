"""Whether a change is none to a machine, and where it lies: for the no-progress detector."""

from __future__ import annotations

import ast
import difflib
import warnings

from agent_ls.workspace.syntax import enclosing_function, parse

MAX_LINES = 5000
"""Longer files are not compared line by line."""


def only_comments(path: str, before: str, after: str) -> bool:
    """Do two texts of a file differ only in comments, docstrings, blank lines and layout?

    A language that we don't parse: only in blank lines and the blanks at line ends.
    """
    if path.endswith((".py", ".pyi")):
        forms = (_python(before), _python(after))
        if None not in forms:
            return forms[0] == forms[1]
    trees = (parse(path, before), parse(path, after))
    if trees[0] is None or trees[1] is None:
        return _lines(before) == _lines(after)
    return _leaves(trees[0][1].root_node) == _leaves(trees[1][1].root_node)


def _python(text: str) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [  # type: ignore[attr-defined]
                s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
            ]
    return ast.dump(tree)


def _leaves(root: object) -> list[str]:
    found: list[str] = []
    stack = [root]
    while stack:
        node = stack.pop()
        if "comment" in node.type:  # type: ignore[attr-defined]
            continue
        children = node.children  # type: ignore[attr-defined]
        if not children:
            found.append((node.text or b"").decode("utf-8", "replace"))  # type: ignore[attr-defined]
        stack.extend(reversed(children))
    return [text for text in found if text.strip()]


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def changed_lines(diff: str) -> int:
    """Added and removed lines of a unified diff."""
    count, inside = 0, False
    for line in diff.splitlines():
        if line.startswith("diff --git "):
            inside = False
        elif line.startswith("@@"):
            inside = True
        elif inside and line.startswith(("+", "-")):
            count += 1
    return count


def places_of(path: str, before: str, after: str) -> list[str]:
    """Where two texts of a file differ: "path:function", in order and each once; the path outside of any."""
    if max(before.count("\n"), after.count("\n")) > MAX_LINES:
        return [path]
    found: list[str] = []
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    for tag, _, _, start, _ in matcher.get_opcodes():
        if tag == "equal":
            continue
        symbol = enclosing_function(path, after, start + 1)
        name = f"{path}:{symbol.name}" if symbol is not None else path
        if name not in found:
            found.append(name)
    return found

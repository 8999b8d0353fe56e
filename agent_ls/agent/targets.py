"""Suspect functions with what a small model should see of each: little, and only what tells."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

from attrs import frozen

from agent_ls.agent.judge import Judge
from agent_ls.agent.locating import locate
from agent_ls.agent.reading import suspects_by_words
from agent_ls.agent.session import Session
from agent_ls.errors import AgentLsError
from agent_ls.testing.results import TestResult
from agent_ls.workspace.syntax import enclosing_function

MAX_LINES = 150
"""Longer functions are not shown to a small model."""
FAILURE_CHARS = 500
TELLING = re.compile(r"^(E |>|    \S|\S*(Error|Exception)\b)")
"""Lines of pytest's short traceback and of unittest's that tell: source lines and errors, no file headers."""


@frozen
class Target:
    """One function: its place (1-based, inclusive lines), its text, and the telling facts about it.

    `indent` is what `dedented` lacks against `source`; `documentation` is a small file's free-standing
    description, `description` that or the function's docstring.
    """

    path: str
    name: str
    first: int
    last: int
    source: str
    language: str
    indent: str = ""
    documentation: str = ""
    description: str = ""
    issue: str = ""
    imports: str = ""
    failure: str = ""
    suspects: str = ""

    @property
    def dedented(self) -> str:
        return textwrap.dedent(self.source)

    @property
    def head(self) -> str:
        """The function's first line."""
        return self.dedented.split("\n", 1)[0]


def find_targets(session: Session, judge: Judge) -> list[Target]:
    """The suspect functions, most suspicious first, one entry a function."""
    if not session.suspects:
        session.suspects = locate(session, judge) or suspects_by_words(session, judge)
    results = dict(judge.best.results) if judge.best else {}
    baseline = session.baseline
    assert baseline is not None
    known = {**baseline.by_id(), **results}
    failing = [known[id] for id in session.asked if id in known and known[id].outcome.bad]
    scores: dict[tuple[str, str], float] = {}
    places: dict[tuple[str, str], list[int]] = {}
    for suspect in session.suspects:
        if session.protected(suspect.path):
            continue
        key = (suspect.path, _name_at(session, suspect.path, suspect.line) or "")
        if not key[1]:
            continue
        scores[key] = max(scores.get(key, 0.0), suspect.score)
        places.setdefault(key, []).append(suspect.line)
    ranked = sorted(scores, key=lambda key: -scores[key])
    targets = []
    for key in ranked:
        target = _target(session, key[0], places[key], failing)
        if target is not None and target.last - target.first <= MAX_LINES:
            targets.append(target)
    return targets


def _name_at(session: Session, path: str, line: int) -> str | None:
    try:
        symbol = enclosing_function(path, session.workspace.read(path).text, line)
    except (AgentLsError, OSError):
        return None
    return f"{symbol.container or ''}.{symbol.name}" if symbol else None


def _target(
    session: Session, path: str, lines: Iterable[int], failing: Iterable[TestResult]
) -> Target | None:
    file = session.workspace.read(path)
    lines = list(lines)
    symbol = enclosing_function(path, file.text, lines[0])
    if symbol is None:
        return None
    text = file.text.split("\n")
    source = "\n".join(text[symbol.line - 1 : symbol.end_line])
    dedented = textwrap.dedent(source)
    first_line, first_plain = source.split("\n", 1)[0], dedented.split("\n", 1)[0]
    documentation = _documentation(file.text, path)
    suspicious = [n for n in dict.fromkeys(lines) if symbol.line <= n <= symbol.end_line][:3]
    return Target(
        path=path,
        name=symbol.name,
        first=symbol.line,
        last=symbol.end_line,
        source=dedented,
        language="python" if path.endswith(".py") else path.rsplit(".", 1)[-1],
        indent=first_line[: len(first_line) - len(first_plain)],
        documentation=documentation,
        description=_docstring(dedented, path) or documentation,
        issue=_issue(session),
        imports=used_imports(file.text, path, dedented),
        failure=failure_text(failing),
        suspects="; ".join(f"`{text[n - 1].strip()}`" for n in suspicious),
    )


def _issue(session: Session) -> str:
    """The task's own words, short; nothing if they only say that tests fail."""
    body = session.task.body.strip()
    words = f"{session.task.title.strip()}\n{body}".strip()
    return words[:800] if body else ""


def _documentation(text: str, path: str) -> str:
    """What a small file's free-standing string says of its one function or class."""
    if not path.endswith(".py") or text.count("\n") > 200:
        return ""
    import ast

    try:
        body = ast.parse(text).body
    except SyntaxError:
        return ""
    defined = [
        node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]
    strings = [
        node.value.value
        for node in body
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]
    return textwrap.dedent(strings[0]).strip()[:700] if strings and len(defined) == 1 else ""


def _docstring(source: str, path: str) -> str:
    """The function's own docstring."""
    import ast

    if not path.endswith(".py"):
        return ""
    try:
        node = ast.parse(source).body[0]
    except (SyntaxError, IndexError):
        return ""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return (ast.get_docstring(node) or "")[:900]
    return ""


def used_imports(text: str, path: str, source: str) -> str:
    """The import lines of a Python file whose names the function uses."""
    if not path.endswith(".py"):
        return ""
    import ast

    try:
        body = ast.parse(text).body
    except SyntaxError:
        return ""
    words = set(re.findall(r"\w+", source))
    lines = []
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound = {(alias.asname or alias.name).split(".")[0] for alias in node.names}
            if bound & words:
                lines.append(ast.unparse(node))
    return "\n".join(lines)[:400]


def failure_text(failing: Iterable[TestResult], tests: int = 1) -> str:
    """The telling lines of the first failing tests: the assertion, the values, the error."""
    parts = []
    for result in list(failing)[:tests]:
        if result.error_type == "TestTimeout":
            parts.append("the test does not end (an infinite loop?)")
            continue
        lines = [line for line in (result.message or "").splitlines() if TELLING.match(line)]
        parts.append("\n".join(line[:160] for line in lines[:6]) or (result.message or "")[:300])
    return "\n".join(parts)[:FAILURE_CHARS]

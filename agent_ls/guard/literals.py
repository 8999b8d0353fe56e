"""Special cases for the very values that tests use: a branch on a test's input, a table of expected
outputs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import define, field

from agent_ls.guard.lines import text_of
from agent_ls.guard.losses import Severity
from agent_ls.guard.model import File
from agent_ls.guard.protected import Finding
from agent_ls.guard.syntax import Expr, Stmt
from agent_ls.guard.world import World
from agent_ls.workspace.paths import is_test_path

MAX_FILES = 600
MAX_BYTES = 300_000
_LITERAL = re.compile(
    r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`[^`]*`|(?<![\w.])-?\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?"
)
_COMMON = {"", "utf-8", "utf8", "ascii", "id", "name", "type", "value", "key", "GET", "POST", "PUT",
    "error", "ok", "true", "false",
           "None", "null", "default", "text", "data", "json", "http", "https", "win32", "linux", "darwin",
           "__main__"}  # fmt: skip
_COMMON_NUMBERS = {
    0,
    1,
    2,
    3,
    4,
    5,
    8,
    10,
    16,
    32,
    60,
    64,
    100,
    128,
    200,
    255,
    256,
    404,
    500,
    1000,
    1024,
    -1,
    24,
    7,
    12,
    365,
}


@define
class TestLiterals:
    """Literals of the tests that were there before and of those that are there now; read when first
    asked for."""

    old: World
    new: World
    changed: list[str]
    _before: frozenset[str] | None = field(default=None)
    _names: frozenset[str] | None = field(default=None)

    @property
    def before(self) -> frozenset[str]:
        """Normal forms of all literals in the old tree's tests."""
        if self._before is None:
            self._read()
        return self._before or frozenset()

    @property
    def names(self) -> frozenset[str]:
        """Names of test functions."""
        if self._names is None:
            self._read()
        return self._names or frozenset()

    def _read(self) -> None:
        found: set[str] = set()
        names: set[str] = set()
        paths = sorted(path for path in self.old.all_paths if is_test_path(path) or path.endswith(".rs"))
        for path in paths[:MAX_FILES]:
            text = text_of(self.old, path)
            if path.endswith(".rs") and not is_test_path(path):
                text = text.partition("#[cfg(test)]")[2]
            if len(text) > MAX_BYTES:
                continue
            names |= set(re.findall(r"\bdef (test_\w+)", text))
            for match in _LITERAL.findall(text):
                found.add(_normal(match))
                found.update(f"'{word}'" for word in re.findall(r"\w{3,}", match) if match[0] in "\"'`")
        self._before, self._names = frozenset(found), frozenset(names)


def _normal(text: str) -> str:
    if text[0] in "\"'`":
        inner = re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m.group(1), m.group(1)), text[1:-1])
        return repr(inner)
    plain = text.replace("_", "")
    try:
        return repr(int(plain)) if re.fullmatch(r"-?\d+", plain) else repr(float(plain))
    except ValueError:
        return plain


def _distinctive(expr: Expr) -> bool:
    value = expr.value
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, str):
        return len(value) >= 3 and value not in _COMMON and not value.startswith(":")
    if isinstance(value, int):
        return value not in _COMMON_NUMBERS
    return isinstance(value, float)


def special_cases(path: str, before: File | None, after: File, tests: TestLiterals) -> list[Finding]:
    """Findings about literals that are new in a file and that tests use.

    Only in functions that were there before: what a new function knows, its own tests know too.
    """
    if before is None:
        return []
    had = {
        part.text
        for stmt in before.stmts
        for expr in stmt.all_exprs()
        for part in expr.walk()
        if part.op == "lit"
    }
    known = {stmt.name for stmt in _functions(before)}
    found = []
    for function in _functions(after):
        if function.name not in known:
            continue
        for line, literals, answers in _branches(function):
            fresh = [e for e in literals if _distinctive(e) and e.text not in had and e.text in tests.before]
            if not fresh:
                continue
            told = [
                e
                for e in answers
                if e.value is not None
                and not isinstance(e.value, bool)
                and e.text not in had
                and e.text in tests.before
            ]
            plain_answer = bool(answers)
            count = len({e.text for e in fresh})
            severity: Severity | None = None
            if (count >= 2 and _conjunction(literals)) or (told and any(_distinctive(e) for e in told)):
                severity = "block"
            elif plain_answer and (count >= 1):
                data = any(not isinstance(e.value, str) or re.search(r"\W", e.value) for e in fresh)
                severity = "block" if count >= 2 or data else "review"
            elif count >= 2:
                severity = "review"
            if severity is not None:
                words = ", ".join(sorted({e.text for e in fresh})[:4])
                text = f"{function.name} treats values specially that tests use: {words}"
                found.append(
                    Finding("special-case-for-tests", severity, path, line, text, after=after.line(line))
                )
                break
    found += _tables(path, before, after, tests)
    return found


def _conjunction(literals: list[Expr]) -> bool:
    return len(literals) >= 2


def _functions(file: File) -> Iterator[Stmt]:
    for stmt in file.stmts:
        for inner in stmt.walk():
            if inner.kind == "func":
                yield inner


def _branches(function: Stmt) -> Iterator[tuple[int, list[Expr], list[Expr]]]:
    """(line, literals compared with, literals answered) of each condition in a function."""
    for stmt in function.body:
        for inner in stmt.walk():
            if inner.kind == "if" and inner.exprs:
                yield inner.line, _compared(inner.exprs[0]), _answers(inner.body)
            for expr in inner.exprs:
                for part in expr.walk():
                    if part.op == "cond" and len(part.args) == 3:
                        answer = [part.args[1]] if part.args[1].op == "lit" else []
                        yield part.line or inner.line, _compared(part.args[0]), answer


def _compared(test: Expr) -> list[Expr]:
    """Literals that a condition asks for equality with."""
    found: list[Expr] = []
    for part in test.walk():
        if part.op == "cmp" and part.name in ("==", "in", "is", "!="):
            for side in part.args:
                if side.op == "lit":
                    found.append(side)
                elif side.op == "call" and side.args[0].name[:1].isupper():  # Decimal("0.10")
                    found += [arg for arg in side.args[1:] if arg.op == "lit"]
                elif side.op in ("list", "tuple", "set") and part.name == "in":
                    found += [arg for arg in side.args if arg.op == "lit"]
                elif side.op in ("list", "tuple"):
                    found += [arg for arg in side.walk() if arg.op == "lit"]
        elif part.op == "call" and re.search(
            r"(?:equals|Equals|includes|contains|startswith|startsWith|eql\?|HasPrefix|endswith)$",
            part.callee,
        ):
            found += [arg for arg in part.walk() if arg.op == "lit"]
    return found


def _answers(body: tuple[Stmt, ...]) -> list[Expr]:
    """Literals that a branch returns."""
    found = []
    for stmt in body:
        if stmt.kind in ("return", "expr") and stmt.exprs and len(body) <= 2:
            result = stmt.exprs[-1]
            if result.op == "lit":
                found.append(result)
            elif result.op in ("list", "tuple", "dict", "call") and stmt.kind == "return":
                inner = [part for part in result.walk() if part.op == "lit"]
                names = [part for part in result.walk() if part.op == "name" and part.name[:1].islower()]
                if inner and not (names and result.op != "call") and not len(names) > 1:
                    found += inner
    return found


def _tables(path: str, before: File, after: File, tests: TestLiterals) -> list[Finding]:
    """New tables whose keys and values are the inputs and the expected outputs of tests."""
    found = []
    there = {
        (key.text, value.text)
        for stmt in before.stmts
        for expr in stmt.all_exprs()
        for part in expr.walk()
        for key, value in _pairs(part)
    }
    for stmt in after.stmts:
        for expr in stmt.all_exprs():
            for part in expr.walk():
                pairs = [pair for pair in _pairs(part) if (pair[0].text, pair[1].text) not in there]
                if len(pairs) < 2:
                    continue
                known = [p for p in pairs if all(_known(side, tests) for side in p)]
                telling = [
                    p
                    for p in known
                    if any(_distinctive(e) for side in p for e in side.walk() if e.op == "lit")
                ]
                if len(known) >= max(2, 0.8 * len(pairs)) and len(telling) >= 2:
                    severity: Severity = (
                        "block" if len(telling) >= 3 or len(known) == len(pairs) else "review"
                    )
                    text = (
                        f"a table of {len(pairs)} inputs and outputs, {len(known)} of which are in the tests"
                    )
                    found.append(
                        Finding(
                            "answers-from-table",
                            severity,
                            path,
                            part.line or stmt.line,
                            text,
                            after=after.line(part.line),
                        )
                    )
    return found[:3]


def _pairs(table: Expr) -> list[tuple[Expr, Expr]]:
    if table.op == "dict":
        return [(pair.args[0], pair.args[1]) for pair in table.args if pair.op == "pair"]
    if table.op == "call" and re.search(
        r"(?:^|\.)(?:Map|new Map|HashMap|Map\.of|ofEntries|from)$", table.callee
    ):
        rows = table.args[1].args if len(table.args) == 2 and table.args[1].op == "list" else ()
        return [
            (row.args[0], row.args[1]) for row in rows if row.op in ("list", "tuple") and len(row.args) == 2
        ]
    return []


def _known(side: Expr, tests: TestLiterals) -> bool:
    parts = [part for part in side.walk() if part.op == "lit"]
    return bool(parts) and all(part.text in tests.before for part in parts)

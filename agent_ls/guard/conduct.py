"""What source code newly does that only makes sense to please a test run: it looks for the runner, names
tests, forges outcomes, or is equal to everything.

Reads Python only, by its syntax tree, and compares with the file before: what was there is no finding.
A determined author can hide from it, so it is a net under the comparison of test runs, not a proof.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Collection, Iterator
from typing import Literal

from attrs import frozen

Severity = Literal["block", "review"]
Mentions = Callable[[str], bool]
"""Whether other source of the base tree, no tests, mentions a word."""

_RUNNERS = frozenset(
    {"pytest", "_pytest", "unittest", "pluggy", "nose", "nose2", "xdist", "execnet", "agent_ls_inside"}
)
_RUNNER_WORD = re.compile(r"(?<![A-Za-z])(_?pytest|unittest|PYTEST_\w+|AGENT_LS\w*|agent_ls_inside|conftest)")
_SHORT = len("testing")
"""Names of tests that are no longer than that are ordinary words as well."""
_PEEKING = re.compile(r"^/proc/(self|\d+|thread-self)\b")
_FORGING_CALLS = {("gc", "get_objects"), ("gc", "get_referrers")}
_UNUSUAL_CALLS = {
    ("sys", "_getframe"), ("sys", "settrace"), ("sys", "setprofile"), ("inspect", "stack"),
    ("inspect", "currentframe"), ("os", "_exit"), ("os", "abort"),
}  # fmt: skip
_COMPARISONS = {"__eq__", "__le__", "__ge__", "__lt__", "__gt__", "__contains__", "__instancecheck__"}


@frozen
class Sign:
    """One suspicious thing in a file. Two with the same `kind` and `key` are the same thing."""

    kind: str
    key: str
    severity: Severity
    line: int
    message: str


def new_signs(
    before: bytes | None, after: bytes, *, tests: Collection[str], mentions: Mentions
) -> list[Sign]:
    """Signs in the source `after` that `before` did not have, in the order of lines.

    Args:
        before: the file's bytes in the base tree, None for a new file.
        tests: names of test functions, such as "test_discount".
        mentions: where other source knows the same runner, a sign is for `review` only.
    """
    known = {(sign.kind, sign.key) for sign in _signs(before or b"", tests)}
    found: dict[tuple[str, str], Sign] = {}
    for sign in _signs(after, tests):
        if (sign.kind, sign.key) not in known:
            found.setdefault((sign.kind, sign.key), sign)
    softened = [
        Sign(sign.kind, sign.key, "review", sign.line, sign.message)
        if sign.kind == "source-knows-the-test-runner" and mentions(sign.key)
        else sign
        for sign in found.values()
    ]
    return sorted(softened, key=lambda sign: sign.line)


_SUCCESS = re.compile(
    rb"\b(?:process\.exit|os\.Exit|os\._exit|sys\.exit|System\.exit|process::exit|exit|_exit|quit|SystemExit)"
    rb"[ \t]*\([ \t]*0?[ \t]*\)|^[ \t]*exit(?:[ \t]+0)?[ \t]*$",
    re.MULTILINE,
)


def new_success_exit(before: bytes | None, after: bytes) -> int | None:
    """The line where source of any language newly ends its process with success; None if it doesn't.

    Where a test command is judged by its exit code alone, that is all a forged pass takes.
    """
    found = list(_SUCCESS.finditer(after))
    if len(found) <= len(_SUCCESS.findall(before or b"")):
        return None
    return after.count(b"\n", 0, found[-1].start()) + 1


def _signs(source: bytes, tests: Collection[str]) -> Iterator[Sign]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the file's own invalid escapes
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    aliases = _module_aliases(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                for alias in node.names:
                    yield from _import(alias.name, node.lineno)
            case ast.ImportFrom(module=str(module), level=0):
                yield from _import(module, node.lineno)
                for alias in node.names:
                    yield from _call(module, alias.name, node.lineno)
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                yield from _call(aliases.get(name, name), attribute, node.lineno)
            case ast.FunctionDef(name=name) if name in _COMPARISONS and _always_true(node.body):
                yield _always_equal(name, node.lineno)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda(body=body)) if (
                name in _COMPARISONS and _is_true(body)
            ):
                yield _always_equal(name, node.lineno)
            case ast.BinOp(op=ast.Add()) | ast.Constant() | ast.JoinedStr() if id(node) not in docstrings:
                text = _text(node)
                if text:
                    yield from _string(text, node.lineno, tests)


def _import(module: str, line: int) -> Iterator[Sign]:
    top = module.partition(".")[0]
    if top in _RUNNERS:
        yield Sign("source-knows-the-test-runner", top, "block", line, f"source newly imports {module}")


def _call(module: str, attribute: str, line: int) -> Iterator[Sign]:
    pair = (module, attribute)
    name = f"{module}.{attribute}"
    if pair in _FORGING_CALLS:
        yield Sign("source-searches-the-process", name, "block", line, f"source newly uses {name}")
    elif pair in _UNUSUAL_CALLS:
        yield Sign("source-unusual-call", name, "review", line, f"source newly uses {name}")


def _string(text: str, line: int, tests: Collection[str]) -> Iterator[Sign]:
    for match in _RUNNER_WORD.finditer(text):
        word = match.group(1)
        yield Sign(
            "source-knows-the-test-runner",
            word,
            "block",
            line,
            f"source newly looks for the test runner ({word})",
        )
    if _PEEKING.match(text):
        yield Sign("source-searches-the-process", "/proc", "block", line, "source newly reads /proc/self")
    for name in re.findall(r"\btest\w*", text):
        if name in tests and len(name) > _SHORT:
            yield Sign("source-names-a-test", name, "block", line, f"source newly names the test {name}")


def _always_equal(name: str, line: int) -> Sign:
    return Sign("comparison-always-true", name, "block", line, f"a new {name} is always true")


def _always_true(body: list[ast.stmt]) -> bool:
    rest = [s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    return len(rest) == 1 and isinstance(rest[0], ast.Return) and _is_true(rest[0].value)


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _module_aliases(tree: ast.Module) -> dict[str, str]:
    """Local name -> module, for `import gc as g`."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    found[alias.asname] = alias.name
    return found


def _text(node: ast.expr) -> str | None:
    """The text of a string literal, also of one put together with `+` or in an f-string."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Constant(value=bytes(data)):
            return data.decode("latin-1")
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            one, two = _text(left), _text(right)
            return None if one is None or two is None else one + two
        case ast.JoinedStr(values=values):
            return "".join(_text(value) or "\0" for value in values)
    return None

"""Tests and files as the guard sees them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable

from attrs import define, evolve, field, frozen

from agent_ls.guard.checks import Check
from agent_ls.guard.conditions import demands
from agent_ls.guard.mocking import Mock
from agent_ls.guard.syntax import Expr, Stmt
from agent_ls.guard.walk_calls import Stop
from agent_ls.guard.walk_values import Context
from agent_ls.guard.walker import Walk

Helpers = Callable[[str, str], tuple[Stmt, str] | None]


@frozen
class Marker:
    """Something that decides whether or how a test runs.

    `kind`: skip, xfail, only, todo, retry, timeout, condition (skipped only there), excluded (build tag),
    examples (of a property), assume. `value` is a number where there is one.
    """

    kind: str
    text: str
    line: int
    value: float = 0.0


@define(eq=False)
class Test:
    """One test, or (`unit` True) one function of a test file that tests may use."""

    path: str
    id: str
    name: str
    line: int
    end: int
    checks: list[Check] = field(factory=list)
    stops: list[Stop] = field(factory=list)
    mocks: list[Mock] = field(factory=list)
    calls: set[str] = field(factory=set)
    markers: list[Marker] = field(factory=list)
    rows: int | None = None
    tokens: Counter[str] = field(factory=Counter)
    unit: bool = False
    made: dict[str, Expr] = field(factory=dict)
    """Names that it gives an object to, and the objects; "<result>" for what it returns."""
    own: frozenset[str] = frozenset()
    """Classes and functions that it defines itself."""
    set_up: bool = False
    """Does it run before tests: a fixture, a set-up method, a hook?"""
    returns: list[Check] = field(factory=list)
    """What a unit's result says about its arguments, as if it were asserted."""

    @property
    def label(self) -> str:
        return f"{self.path}::{self.id}"


@define(eq=False)
class File:
    """A parsed file of one tree."""

    path: str
    language: str
    text: str
    stmts: tuple[Stmt, ...]
    functions: dict[str, Stmt] = field(factory=dict)
    env: dict[str, Expr] = field(factory=dict)
    tests: list[Test] = field(factory=list)
    units: list[Test] = field(factory=list)
    markers: list[Marker] = field(factory=list)
    bases: set[str] | None = None

    def line(self, number: int) -> str:
        lines = self.text.splitlines()
        return lines[number - 1].strip()[:200] if 0 < number <= len(lines) else ""


def make_test(
    file: File,
    helpers: Helpers,
    *,
    id: str,
    name: str,
    line: int,
    end: int,
    body: tuple[Stmt, ...],
    bindings: list[dict[str, Expr]] | None = None,
    markers: Iterable[Marker] = (),
    unit: bool = False,
    lost: str = "",
) -> Test:
    """Walk a test's body, once for each of its rows of parameters."""
    test = Test(file.path, id, name, line, end, markers=list(markers), unit=unit)
    test.rows = len(bindings) if bindings is not None else None
    walk = Walk(file.language, helpers, tested=_under_test(file))
    everything = [expr for stmt in body for expr in stmt.all_exprs()]
    inner = [part for expr in everything for part in expr.walk()]
    walk.waited = any(
        p.op == "call" and re.search(r"(?:^|\.)(?:Wait|WaitAll|join|gather|all|get)$", p.callee)
        for p in inner
    ) or any(p.op == "other" and "<-" in p.text for p in inner)
    test.markers += [
        Marker("planned", part.text, part.line, float(part.positional[0].value))
        for part in inner
        if part.op == "call" and part.callee in ("expect.assertions", "t.plan") and part.positional
        and isinstance(part.positional[0].value, int)
    ]  # fmt: skip
    limits = [
        float(word.args[0].value)
        for part in inner
        if part.op == "call"
        for word in part.args[1:]
        if word.op == "kw" and word.name in ("timeout", "deadline", "max_time") and _is_number(word.args[0])
    ]
    if limits:
        test.markers.append(Marker("limit", "timeout", line, max(limits)))
    walk.gathered = any(p.op == "call" and p.callee.endswith(".assertAll") for p in inner)
    walk.forced = any(
        p.op == "call" and p.callee in ("expect.assertions", "expect.hasAssertions", "t.plan") for p in inner
    )
    for binding in bindings if bindings is not None else [{}]:
        row = ", ".join(value.text for value in binding.values())[:300] if binding else ""
        context = Context({**file.env, **binding}, path=file.path, row=row, lost=lost)
        walk.block(body, context)
    if not unit:
        walk.idle(Context(dict(file.env), path=file.path))
    if bindings is not None and not bindings:
        walk.block(body, Context(dict(file.env), path=file.path, lost="empty-iteration"))
    if unit:
        answer = Walk(file.language, helpers)
        for stmt in body:
            result = stmt.exprs[-1] if stmt.kind == "return" and stmt.exprs else None
            if result is not None and (
                result.op in ("cmp", "and", "or", "not") or isinstance(result.value, bool)
            ):
                for check in demands(result):
                    answer.add(evolve(check, line=stmt.line), Context(dict(file.env), path=file.path))
        test.returns = answer.checks
    test.own = frozenset(s.name for top in body for s in top.walk() if s.kind in ("class", "func") and s.name)
    for stmt in (inner for top in body for inner in top.walk()):
        if stmt.kind == "assign" and len(stmt.exprs) == 2 and stmt.exprs[0].op in ("name", "attr"):
            test.made.setdefault(stmt.exprs[0].text, stmt.exprs[1])
        elif stmt.kind == "return" and stmt.exprs:
            test.made.setdefault("<result>", stmt.exprs[-1])
    if re.search(
        r"assert/strict|assert['\"]\)\.strict|assert\.strict\b|\{\s*strict\s*(?:as|:)\s*assert", file.text
    ):
        walk.checks = [evolve(check, strict=1) if check.strict == -1 else check for check in walk.checks]
    test.checks, test.stops, test.mocks, test.calls = walk.checks, walk.stops, walk.mocks, walk.calls
    test.tokens = Counter(token for expr in everything for token in re.findall(r"\w+", expr.text))
    return test


def _under_test(file: File) -> frozenset[str]:
    """Functions beside Rust's `mod tests`."""
    if file.language != "rust":
        return frozenset()
    outside = [s for s in file.stmts if not (s.kind == "class" and "test" in s.name)]
    names = {inner.name for stmt in outside for inner in stmt.walk() if inner.kind == "func"}
    own = any(d.text.startswith("test") for s in outside for inner in s.walk() for d in inner.decorators)
    return frozenset() if own else frozenset(names)


def _is_number(expr: Expr) -> bool:
    return isinstance(expr.value, int | float) and not isinstance(expr.value, bool)


def all_functions(stmts: Iterable[Stmt]) -> dict[str, Stmt]:
    """Functions of a file by their names, those of classes and modules too; the first one wins."""
    found: dict[str, Stmt] = {}
    stack = list(stmts)[::-1]
    while stack:
        stmt = stack.pop()
        if stmt.kind == "func":
            found.setdefault(stmt.name, stmt)
        elif stmt.kind == "assign" and stmt.exprs[-1].op == "func" and stmt.exprs[0].op == "name":
            value = stmt.exprs[-1]
            flags = frozenset({"async"} if value.name == "async" else ())
            made = Stmt(
                "func",
                stmt.line,
                (),
                value.body,
                name=stmt.exprs[0].name,
                params=value.params,
                flags=flags,
                end=stmt.end,
            )
            found.setdefault(made.name, made)
        elif stmt.kind in ("class", "block", "if", "try"):
            stack.extend(reversed([*stmt.body, *stmt.orelse]))
    return found

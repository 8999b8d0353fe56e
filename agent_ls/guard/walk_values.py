"""What an expression of a test stands for: names, and helpers that only compute, replaced by their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from attrs import define, evolve, field, frozen

from agent_ls.guard.checks import Check, raised
from agent_ls.guard.recognise import recognise
from agent_ls.guard.syntax import Expr, Stmt, folded, name, substitute
from agent_ls.guard.tables import bind

MAX_BOUND = 500
"""A longer expression is not put in place of a name."""


@frozen
class Context:
    env: dict[str, Expr]
    conditions: tuple[str, ...] = ()
    lost: str = ""
    depth: int = 0
    row: str = ""
    path: str = ""


@define
class Values:
    """`helpers` finds a function by its name and the path of the file that uses it: (function, its path)."""

    language: str
    helpers: Callable[[str, str], tuple[Stmt, str] | None]
    tested: frozenset[str] = field(default=frozenset(), kw_only=True)
    """Functions under test that stand in the same file: what they compute is the question."""
    _local: dict[str, tuple[Stmt, str]] = field(factory=dict, init=False)
    _active: list[str] = field(factory=list, init=False)

    def valued(self, expr: Expr, at: Context) -> Expr:
        """An expression with names, and calls of helpers that only compute a value, replaced by what
        they stand for."""
        found = folded(substitute(expr, at.env))
        for _ in range(3):
            inlined = self._values(found, at.path)
            if inlined is found or len(inlined.text) > 4 * MAX_BOUND:
                break
            found = folded(inlined)
        return found

    def _values(self, expr: Expr, path: str) -> Expr:
        if expr.op == "func":
            return expr
        args = tuple(self._values(arg, path) for arg in expr.args)
        if any(a is not b for a, b in zip(args, expr.args, strict=True)):
            expr = evolve(expr, args=args)
        plain = expr.op == "name" and self.language == "ruby"
        if not plain and expr.op != "call":
            return expr
        head = expr if plain else expr.args[0]
        own = head.op == "attr" and (is_own(head.args[0]) or head.name == "getfixturevalue")
        if head.op != "name" and not own:
            return expr
        if expr.op == "call" and expr.args[0].name == "getfixturevalue":
            label = str(expr.args[-1].value)
            fixture = self.helpers(label, path)
            made = computed(fixture[0], self.language) if fixture and not fixture[0].params else None
            return made or name(label, expr.line)
        if head.name in self._active:
            return expr
        found = self._local.get(head.name) if head.op == "name" else None
        found = found or (self.helpers(head.name, path) if head.name not in self.tested else None)
        is_fixture = found is not None and any("fixture" in d.text for d in found[0].decorators)
        value = computed(found[0], self.language) if found is not None and not is_fixture else None
        if found is None or value is None:
            return expr
        params = [p.lstrip("&*") for p in found[0].params if p not in ("self", "cls", "this")]
        given = () if plain else expr.args[1:]
        if any(arg.op == "spread" for arg in given) or len(given) > len(params):
            return expr
        bound = dict(zip(params, [arg for arg in given if arg.op != "kw"], strict=False))
        bound |= {arg.name: arg.args[0] for arg in given if arg.op == "kw"}
        return substitute(value, bound)


def computed(function: Stmt, language: str) -> Expr | None:
    """What a function returns, where it does nothing but compute it: assignments of names, then a result."""
    env: dict[str, Expr] = {}
    body = [s for s in function.body if not (s.kind == "expr" and s.exprs and s.exprs[0].op == "lit")]
    while len(body) == 1 and body[0].kind == "block":
        body = list(body[0].body)
    if not body or len(body) > 4:
        return None
    for stmt in body[:-1]:
        if stmt.kind in ("expr", "assert", "with") and not any(s.kind == "return" for s in stmt.walk()):
            continue
        if stmt.kind == "assign" and stmt.name != "augmented" and len(stmt.exprs) == 2:
            env.update(bind(stmt.exprs[0], substitute(stmt.exprs[1], env)))
        else:
            return None
    last = body[-1]
    implicit = language in ("ruby", "rust") and last.kind == "expr"
    if not (last.kind == "return" or implicit) or len(last.exprs) != 1:
        return None
    value = last.exprs[0]
    if value.op == "func" or (value.op == "lit" and isinstance(value.value, bool)):
        return None
    made = recognise(value)
    if made:
        thrown = next((check.subject for check in made if check.relation == "raises"), None)
        return raised(thrown) if thrown is not None else None
    found = substitute(value, env)
    return found if len(found.text) <= MAX_BOUND else None


def is_own(receiver: Expr) -> bool:
    return receiver.op == "name" and receiver.name in (
        "self",
        "this",
        "cls",
        "helpers",
        "support",
        "utils",
        "Self",
    )


def settled(check: Check) -> Check:
    """Judge an equality again once names are replaced: both sides may have become the same."""
    expected = folded(check.expected) if check.expected is not None else None
    if expected is not check.expected:
        check = evolve(check, expected=expected)
    if (
        check.relation == "equal"
        and check.expected is not None
        and check.subject.text == check.expected.text
        and not _CHANGING.search(check.subject.text)
    ):
        return evolve(check, relation="nothing", why="both sides are the same")
    if check.relation == "equal" and expected is not None:
        return _without_fallback(check, expected)
    return check


_CHANGING = re.compile(
    r"\b(?:next|random|uniform|rand\w*|time|now|uuid\w*|pop|popleft|read\w*|recv|input|choice|sample|shuffle|get_nowait)\("
)
"""Calls that answer differently each time: two of them are not the same."""


def _without_fallback(check: Check, expected: Expr) -> Check:
    """`actual == (stored if there else actual)` only demands something where there is something stored."""
    own = check.subject.text
    if expected.op == "cond" and len(expected.args) == 3:
        test, one, two = expected.args
        if two.text == own:
            return evolve(check, expected=one, conditions=(*check.conditions, f"if {test.text}"))
        if one.text == own:
            return evolve(check, expected=two, conditions=(*check.conditions, f"if not {test.text}"))
    if expected.op in ("or", "and") or (expected.op == "bin" and expected.name == "??"):
        rest = [arg for arg in expected.args if arg.text != own]
        if rest and len(rest) < len(expected.args):
            return evolve(check, expected=rest[0], conditions=(*check.conditions, f"if {rest[0].text}"))
    return check


def simple_values(env: dict[str, Expr]) -> dict[str, Expr]:
    """Only what is needed to read a condition: literals and containers."""
    return {key: value for key, value in env.items() if value.op in ("lit", "regex", "list", "tuple",
    "dict", "cmp", "not", "and", "or")
            and len(value.text) < MAX_BOUND}  # fmt: skip


def names_in(target: Expr) -> list[str]:
    return [part.name for part in target.walk() if part.op == "name"]


def assigned(stmts: Sequence[Stmt]) -> set[str]:
    found: set[str] = set()
    for stmt in stmts:
        for inner in stmt.walk():
            if inner.kind == "assign":
                for target in inner.exprs[:-1]:
                    found.update(names_in(target)[:1] if target.op in ("attr", "index") else names_in(target))
    return found


def without(env: dict[str, Expr], stmts: Sequence[Stmt]) -> dict[str, Expr]:
    gone = assigned(stmts)
    return {key: value for key, value in env.items() if key not in gone} if gone else dict(env)

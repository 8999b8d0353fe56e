"""Tests that are calls with a function: jest, vitest, mocha, node:test, rspec, minitest/spec."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent_ls.guard.mocking import mocks_in
from agent_ls.guard.model import File, Helpers, Marker, Test, make_test
from agent_ls.guard.places import elsewhere
from agent_ls.guard.syntax import Expr, Stmt, substitute
from agent_ls.guard.tables import bind, row_bindings, rows_of

_GROUPS = {"describe", "context", "suite", "feature", "fdescribe", "xdescribe", "fcontext", "xcontext",
    "shared_examples",
           "shared_examples_for", "shared_context", "example_group", "class_scope"}  # fmt: skip
_TESTS = {"test", "it", "specify", "example", "scenario", "xit", "xtest", "fit", "ftest", "xspecify",
    "pending", "its",
          "xexample", "fexample", "focus", "bench_skip", "Deno.test", "fspecify"}  # fmt: skip
_SKIPPED = {"xit", "xtest", "xdescribe", "xcontext", "xspecify", "xexample", "pending"}
_FOCUSED = {"fit", "fdescribe", "fcontext", "ftest", "fexample", "fspecify", "focus"}
_HOOKS = {"before", "after", "beforeEach", "afterEach", "beforeAll", "afterAll", "let", "let!", "subject",
    "around",
          "setup", "teardown", "it_behaves_like", "include_examples"}  # fmt: skip


def collect_calls(file: File, helpers: Helpers) -> None:
    """Fill in `file.tests`: calls such as `it('…', () => …)` at the top, in groups and in loops."""
    seen: dict[str, Test] = {}
    _scope(file, helpers, file.stmts, (), [], {}, seen)
    file.tests += [test for test in seen.values() if not test.unit]
    file.units += [test for test in seen.values() if test.unit]


def _scope(
    file: File,
    helpers: Helpers,
    stmts: Sequence[Stmt],
    groups: tuple[str, ...],
    markers: list[Marker],
    env: dict[str, Expr],
    seen: dict[str, Test],
) -> None:
    for stmt in stmts:
        if stmt.kind == "if" and stmt.body and all(inner.kind in ("stop", "return") for inner in stmt.body):
            kind = "condition" if elsewhere(stmt.exprs[0].text) else "skip-if"
            markers = [*markers, Marker(kind, f"not where {stmt.exprs[0].text}", stmt.line)]
        elif stmt.kind == "expr":
            for expr in stmt.exprs:
                _call(file, helpers, expr, groups, markers, env, seen, stmt)
        elif stmt.kind == "assign":
            env.update(
                {
                    k: v
                    for k, v in bind(stmt.exprs[0], substitute(stmt.exprs[-1], {**file.env, **env})).items()
                    if v.op != "func"
                }
            )
        elif stmt.kind == "loop" and stmt.name == "for":
            over = substitute(stmt.exprs[1], {**file.env, **env})
            rows = rows_of(over, file.language, stmt.exprs[0])
            for row in rows if rows is not None else [None]:
                inner = {**env, **(bind(stmt.exprs[0], row) if row is not None else {})}
                _scope(file, helpers, stmt.body, groups, markers, inner, seen)
        elif stmt.kind in ("block", "if", "try", "class"):
            held = markers
            if stmt.kind == "if" and stmt.exprs[0].op == "lit" and not stmt.exprs[0].value:
                continue
            if stmt.kind == "if":
                held = [*markers, Marker("condition", f"only if {stmt.exprs[0].text}", stmt.line)]
            _scope(file, helpers, [*stmt.body], groups, held, env, seen)
            _scope(file, helpers, [*stmt.orelse], groups, markers, env, seen)


def _head(call: Expr) -> tuple[str, set[str], Expr | None]:
    """(word, modifiers, table) of `it.skip.each(rows)`."""
    at = call.args[0]
    modifiers: set[str] = set()
    table: Expr | None = None
    while True:
        if at.op == "attr":
            if at.args[0].op == "name" and at.args[0].name in ("RSpec", "Deno", "Minitest"):
                return at.name, modifiers, table
            modifiers.add(at.name)
            at = at.args[0]
        elif at.op == "call":
            if at.args[0].op == "attr" and at.args[0].name in ("each", "for", "skipIf", "runIf", "todoIf"):
                if at.args[0].name in ("each", "for"):
                    table = at.args[1] if len(at.args) > 1 else None
                    if table is not None and len(at.args) == 2 and table.op in ("fstr", "lit"):
                        modifiers.add("tagged")
                elif at.args[1:] and at.args[1].op == "lit":
                    if bool(at.args[1].value) == (at.args[0].name == "skipIf"):
                        modifiers.add("skip")
                else:
                    modifiers.add("condition:" + at.text)
            at = at.args[0]
        elif at.op == "name":
            return at.name, modifiers, table
        else:
            return "", modifiers, table


def _call(
    file: File,
    helpers: Helpers,
    expr: Expr,
    groups: tuple[str, ...],
    markers: list[Marker],
    env: dict[str, Expr],
    seen: dict[str, Test],
    stmt: Stmt,
) -> None:
    call = expr.args[0] if expr.op == "await" else expr
    if call.op != "call":
        return
    word, modifiers, table = _head(call)
    body = next((arg for arg in reversed(call.args[1:]) if arg.op == "func"), None)
    title = next((a for a in call.args[1:] if a.op in ("lit", "fstr", "name", "attr", "bin")), None)
    label = _title(title, env) if title is not None and title is not body else ""
    if word in _GROUPS and (body is not None or modifiers):
        own = [*markers, *_markers(call, word, modifiers)]
        if body is None:
            return
        for inner in _bindings(file, table, body, env):
            _scope(file, helpers, body.body, (*groups, label), own, {**env, **(inner or {})}, seen)
        return
    if word in _TESTS and modifiers.isdisjoint(
        {"use", "beforeEach", "afterEach", "beforeAll", "step", "extend", "to", "mock"}
    ):
        if (
            body is None
            and word not in ("pending",)
            and not modifiers & {"todo", "skip"}
            and len(call.args) < 2
        ):
            return
        _test(file, helpers, call, word, modifiers, table, body, label, groups, markers, env, seen, stmt)
        return
    if body is not None and re.match(r"(?:before|after|around|setup|teardown)", word):
        _hook(file, helpers, call, word, body, groups, env, seen)
        return
    if word in _HOOKS and groups:
        return
    last = call.args[0].name if call.args[0].op == "attr" else ""
    if last in ("forEach", "each") and body is not None:
        over = substitute(call.args[0].args[0], {**file.env, **env})
        rows = rows_of(over, file.language)
        for row in rows if rows is not None else [None]:
            bound = _loop_bindings(body, row) if row is not None else {}
            _scope(file, helpers, body.body, groups, markers, {**env, **bound}, seen)
        return
    if body is not None and not word[:1].isupper():
        _scope(file, helpers, body.body, groups, markers, dict(env), seen)
    if not groups:
        for mock in mocks_in(call, env):
            unit = seen.setdefault(
                "<module>", Test(file.path, "<module>", "<module>", stmt.line, stmt.end, unit=True)
            )
            unit.mocks.append(mock)


def _hook(
    file: File,
    helpers: Helpers,
    call: Expr,
    word: str,
    body: Expr,
    groups: tuple[str, ...],
    env: dict[str, Expr],
    seen: dict[str, Test],
) -> None:
    """What runs before and after tests, as one unit for each group."""
    label = " > ".join((*groups, f"<{word}>"))
    unit = make_test(
        file, helpers, id=label, name=label, line=call.line, end=call.line, body=body.body,
        bindings=[dict(env)], unit=True,
    )  # fmt: skip
    unit.set_up = True
    if label in seen:
        seen[label].stops += unit.stops
        seen[label].mocks += unit.mocks
    else:
        seen[label] = unit


def _loop_bindings(body: Expr, row: Expr) -> dict[str, Expr]:
    if len(body.params) == 1 and body.params[0][:1] in "[{":
        words = re.findall(r"\w+", body.params[0])
        if body.params[0][0] == "{":
            return _fields(words, row)
        return dict(row_bindings(words, row))
    if len(body.params) > 1 and row.op in ("list", "tuple"):
        return dict(row_bindings(body.params, row))
    return {body.params[0]: row} if body.params else {}


def _fields(words: list[str], row: Expr) -> dict[str, Expr]:
    pairs = {str(p.args[0].value): p.args[1] for p in row.args if p.op == "pair"} if row.op == "dict" else {}
    return {word: pairs[word] for word in words if word in pairs}


def _bindings(
    file: File, table: Expr | None, body: Expr, env: dict[str, Expr]
) -> list[dict[str, Expr] | None]:
    if table is None:
        return [None]
    rows = rows_of(substitute(table, {**file.env, **env}), file.language)
    if rows is None:
        return [None]
    found: list[dict[str, Expr] | None] = []
    for row in rows:
        params = body.params
        if len(params) == 1 and params[0][:1] in "[{":
            found.append(_loop_bindings(body, row))
        elif row.op in ("list", "tuple"):
            found.append(dict(zip(params, row.args, strict=False)))
        elif params:
            found.append({params[0]: row})
        else:
            found.append({})
    return found


def _title(title: Expr, env: dict[str, Expr]) -> str:
    if isinstance(title.value, str):
        return title.value
    return substitute(title, env).text


def _test(
    file: File,
    helpers: Helpers,
    call: Expr,
    word: str,
    modifiers: set[str],
    table: Expr | None,
    body: Expr | None,
    label: str,
    groups: tuple[str, ...],
    markers: list[Marker],
    env: dict[str, Expr],
    seen: dict[str, Test],
    stmt: Stmt,
) -> None:
    own = [*markers, *_markers(call, word, modifiers)]
    if body is None:
        references = [a.name for a in call.args[1:] if a.op == "name"]
        found = helpers(references[-1], file.path) if references else None
        if found is not None:
            body = Expr("func", body=found[0].body, params=found[0].params)
        else:
            own.append(Marker("todo", call.text[:80], call.line))
            body = Expr("func")
    bindings: list[dict[str, Expr]] | None = None
    rows = _bindings(file, table, body, env)
    if table is not None and "tagged" in modifiers:
        own.append(Marker("rows", table.text, call.line))
        lines = table.text.count("\\n")
        rows = [None]
        own.append(Marker("row-count", str(lines), call.line, float(lines)))
    if rows != [None]:
        bindings = [{**env, **(row or {})} for row in rows]
    elif env:
        bindings = [dict(env)]
    name = " > ".join(part for part in (*groups, label) if part) or f"{word}@{call.line}"
    line = call.line or stmt.line
    single = len(bindings) if bindings is not None and table is not None else None
    test = make_test(
        file,
        helpers,
        id=name,
        name=label or name,
        line=line,
        end=stmt.end,
        body=body.body,
        bindings=bindings,
        markers=own,
    )
    test.rows = single
    known = seen.get(name)
    if known is None:
        seen[name] = test
    else:  # the same title in a loop, or twice: one test with the checks of both
        known.checks += test.checks
        known.markers += test.markers
        known.stops += test.stops


def _markers(call: Expr, word: str, modifiers: set[str]) -> list[Marker]:
    found = []
    line = call.line
    text = call.args[0].text[:80]
    if word in _SKIPPED or modifiers & {"skip", "fixme"}:
        found.append(Marker("skip", text, line))
    if word in _FOCUSED or "only" in modifiers:
        found.append(Marker("only", text, line))
    if "todo" in modifiers:
        found.append(Marker("todo", text, line))
    if modifiers & {"failing", "fails"}:
        found.append(Marker("xfail", text, line))
    found += [Marker("skip-if", m.partition(":")[2], line) for m in modifiers if m.startswith("condition:")]
    for arg in call.args[1:]:
        options = arg.args if arg.op == "dict" else (arg,)
        for option in options:
            if option.op in ("pair", "kw"):
                key = option.name or str(option.args[0].value).lstrip(":")
                found += _option(key, option.args[-1], line)
            elif option.op == "lit" and option.value in (":skip", ":pending", ":focus"):
                found.append(Marker("only" if option.value == ":focus" else "skip", str(option.value), line))
        if (
            arg.op == "lit"
            and isinstance(arg.value, int | float)
            and not isinstance(arg.value, bool)
            and arg is call.args[-1]
        ):
            found.append(Marker("timeout", str(arg.value), line, float(arg.value)))
    return found


def _option(key: str, value: Expr, line: int) -> list[Marker]:
    number = float(value.value) if isinstance(value.value, int | float) else 0.0
    off = value.op == "lit" and not value.value
    text = f"{key}: {value.text}"
    if off and not isinstance(value.value, str):
        return []
    match key:
        case "skip" | "pending" | "x":
            constant = value.op == "lit"
            return [Marker("skip" if constant else "skip-if", text, line)]
        case "todo":
            return [Marker("todo", text, line)]
        case "only" | "focus":
            return [Marker("only", text, line)]
        case "fails" | "failing":
            return [Marker("xfail", text, line)]
        case "retry" | "retries" | "repeats":
            return [Marker("retry", text, line, number)]
        case "timeout":
            return [Marker("timeout", text, line, number)]
        case "if" | "unless":
            return [Marker("skip-if", text, line)]
    return []

"""Which tests pytest and unittest would collect from a Python file."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from agent_ls.guard.mocking import mocks_in
from agent_ls.guard.model import File, Helpers, Marker, Test, make_test
from agent_ls.guard.places import elsewhere
from agent_ls.guard.syntax import Expr, Stmt, substitute
from agent_ls.guard.tables import MAX_ROWS, row_bindings, rows_of

_TEST_CASE = re.compile(r"TestCase\b|\bTest\w*Base\b|TestMixin\b")


def collect_python(file: File, helpers: Helpers, *, collected: bool) -> None:
    """Fill in `file.tests` and `file.units`. `collected` is False for files the runner doesn't look into."""
    module_markers = [*_module_marks(file)]
    file.markers += module_markers
    if any(_assigns(stmt, "__test__", False) for stmt in file.stmts):
        collected = False
    seen: dict[str, Test] = {}
    _scope(file, helpers, file.stmts, "", module_markers, seen, collected=collected, in_class=None)
    for stmt in file.stmts:
        _taken_away(stmt, seen)
        if stmt.kind not in ("func", "class"):
            _set_from_outside(stmt, seen)
    file.tests = [test for test in seen.values() if not test.unit]
    file.units += [test for test in seen.values() if test.unit]


def _scope(
    file: File,
    helpers: Helpers,
    stmts: Sequence[Stmt],
    prefix: str,
    markers: list[Marker],
    seen: dict[str, Test],
    *,
    collected: bool,
    in_class: str | None,
) -> None:
    """`in_class` is None outside classes, else "case" for a TestCase, "plain" for pytest's classes."""
    for stmt in stmts:
        if stmt.kind == "class":
            case = any(_TEST_CASE.search(base.text) for base in stmt.exprs)
            plain = stmt.name.startswith("Test") and not any(
                s.kind == "func" and s.name == "__init__" for s in stmt.body
            )
            off = any(_assigns(s, "__test__", False) for s in stmt.body)
            mixed = stmt.name in _bases(file)
            inherits = bool(stmt.exprs) and any(
                s.kind == "func" and s.name.startswith("test") for s in stmt.body
            )
            inside = collected and not off and (case or plain or mixed or (inherits and "Test" in stmt.name))
            own = [*markers, *_marks(stmt.decorators), *_class_marks(stmt)]
            kind = "case" if case else "plain"
            if case and any(re.search(r"Isolated|Async|Tornado", base.text) for base in stmt.exprs):
                kind = "async-case"
            _scope(
                file, helpers, stmt.body, f"{prefix}{stmt.name}::", own, seen, collected=inside, in_class=kind
            )
        elif stmt.kind == "func":
            is_test = collected and stmt.name.startswith("test") and not _fixture(stmt)
            is_test = is_test and not any(
                d.text.endswith(("staticmethod", "property")) for d in stmt.decorators
            )
            test = _function(file, helpers, stmt, prefix, markers, unit=not is_test, in_class=in_class)
            if (
                is_test
                and test.id in seen
                and not seen[test.id].unit
                and not any(m.kind == "condition" for m in markers)
            ):
                file.markers.append(Marker("hidden", test.id, seen[test.id].line))
            seen[test.id] = test  # a later definition of the same name hides this one
        elif stmt.kind in ("if", "try", "block", "with"):
            if stmt.kind == "if" and stmt.exprs and "__name__" in stmt.exprs[0].text:
                continue
            held = markers
            if stmt.kind == "if" and stmt.exprs[0].text not in ("True", "TYPE_CHECKING"):
                held = [*markers, Marker("condition", f"only if {stmt.exprs[0].text}", stmt.line)]
            if stmt.kind == "if" and stmt.exprs[0].text in ("False", "0"):
                continue
            inner = [*stmt.body]
            _scope(file, helpers, inner, prefix, held, seen, collected=collected, in_class=in_class)
            _scope(
                file, helpers, [*stmt.orelse], prefix, markers, seen, collected=collected, in_class=in_class
            )


def _taken_away(stmt: Stmt, seen: dict[str, Test]) -> None:
    """Statements of a module that keep a test from being collected: `del test_x`, `test_x = None`,
    `test_x.__test__ = False`, `test_x = pytest.mark.skip(test_x)`."""
    if stmt.kind == "other" and stmt.name == "Delete":
        for word in re.findall(r"\w+", stmt.exprs[0].text)[1:]:
            if word in seen:
                seen[word].unit = True
        return
    if stmt.kind != "assign" or len(stmt.exprs) != 2:
        return
    target, value = stmt.exprs
    name = target.text.removesuffix(".__test__")
    for test in seen.values():
        if test.unit or not (test.id == name or test.id.startswith(f"{name}::")):
            continue
        if target.op == "attr" and target.name == "__test__":
            test.unit = value.op == "lit" and not value.value
        elif test.id == name and test.line < stmt.line:
            test.markers += _marks([value.args[0]]) if value.op == "call" and value.args else []
            test.unit = value.op != "call"


def _set_from_outside(stmt: Stmt, seen: dict[str, Test]) -> None:
    """`setattr(SomeTest, name, unittest.skip(…)(…))`, whatever loop it stands in."""
    parts = [part for inner in stmt.walk() for expr in inner.exprs for part in expr.walk()]
    texts = {part.value for part in parts if part.op == "lit" and isinstance(part.value, str)}
    for call in parts:
        if call.op != "call" or call.callee != "setattr" or len(call.positional) != 3:
            continue
        owner, _, value = call.positional
        for test in seen.values():
            label = test.id.rpartition("::")
            if test.unit or label[0].rpartition("::")[2] != owner.text.rpartition(".")[2]:
                continue
            if label[2] in texts or not any(text.startswith("test") for text in texts):
                kind = "xfail" if "expectedFailure" in value.text or "xfail" in value.text else "skip"
                test.markers.append(Marker(kind, call.text[:120], call.line or stmt.line))


def _bases(file: File) -> set[str]:
    """Classes that test classes of the file inherit from: their tests run there."""
    if file.bases is None:
        stack, found = list(file.stmts), set()
        while stack:
            stmt = stack.pop()
            if stmt.kind == "class" and "Test" in stmt.name:
                found |= {base.text.rpartition(".")[2] for base in stmt.exprs}
            if stmt.kind in ("class", "if", "try", "block"):
                stack.extend(stmt.body)
        file.bases = found
    return file.bases


def _assigns(stmt: Stmt, name: str, value: object) -> bool:
    return stmt.kind == "assign" and stmt.exprs[0].text == name and stmt.exprs[-1].value is value


def _fixture(stmt: Stmt) -> bool:
    return any(re.match(r"(?:\w+\.)*fixture(?:\(|$)", decorator.text) for decorator in stmt.decorators)


def _function(
    file: File,
    helpers: Helpers,
    stmt: Stmt,
    prefix: str,
    markers: list[Marker],
    *,
    unit: bool,
    in_class: str | None,
) -> Test:
    own = [*markers, *_marks(stmt.decorators)]
    bindings, more = _parameters(file, stmt)
    if not unit and "async" in stmt.flags and in_class == "case":
        more = [*more, Marker("not-awaited", "a TestCase doesn't await coroutines", stmt.line)]
    body = stmt.body
    if unit:
        inner = {s.name: s for s in body if s.kind == "func"}
        result = next((s.exprs[0].text for s in body if s.kind == "return" and s.exprs), "")
        if result in inner:
            body = inner[result].body
    test = make_test(
        file,
        helpers,
        id=f"{prefix}{stmt.name}",
        name=stmt.name,
        line=stmt.line,
        end=stmt.end,
        body=body,
        bindings=bindings,
        markers=[*own, *more],
        unit=unit,
    )
    test.set_up = unit and (_fixture(stmt) or re.match(r"(?i)setup|set_up", stmt.name) is not None)
    if "async" in stmt.flags:
        test.calls.add("<async>")
    if (
        any(
            part.op == "other" and part.name.lstrip("(").startswith("yield")
            for s in stmt.body
            for e in s.all_exprs()
            for part in e.walk()
        )
        and not unit
    ):
        test.calls.add("<generator>")
    for decorator in stmt.decorators:
        test.mocks += mocks_in(decorator, file.env)
    return test


def _parameters(file: File, stmt: Stmt) -> tuple[list[dict[str, Expr]] | None, list[Marker]]:
    """Bindings for each combination of parameter rows; None without parameters or where rows aren't known."""
    axes: list[list[dict[str, Expr]]] = []
    markers: list[Marker] = []
    for decorator in stmt.decorators:
        if decorator.op != "call":
            continue
        callee = decorator.callee
        if (
            callee.endswith(("parametrize", "parameterized.expand", "parameterized", "ddt.data"))
            and decorator.positional
        ):
            args = [substitute(arg, file.env) for arg in decorator.positional]
            if callee.endswith("parametrize") and len(args) > 1:
                names, over = _names(args[0]), args[1]
            elif callee.endswith("data"):
                names, over = [p for p in stmt.params if p != "self"], Expr("list", args=tuple(args))
            else:
                names, over = [p for p in stmt.params if p != "self"], args[0]
            rows = rows_of(over, "python")
            if rows is None and over.op == "comp" and over.name == "if":
                markers.append(Marker("filtered", over.text, decorator.line))
                rows = rows_of(over.args[1], "python")
            if rows is None:
                markers.append(Marker("rows", over.text, decorator.line))
                continue
            axis = []
            for row in rows:
                plain, more = _row(row, len(names) > 1)
                markers += more
                if any(m.kind == "skip" for m in more):
                    continue
                axis.append(dict(row_bindings(names, plain)))
            axes.append(axis)
        elif callee.rpartition(".")[2] == "example" and decorator.args[1:]:
            markers.append(Marker("example", decorator.text, decorator.line))
        elif callee.rpartition(".")[2] == "settings":
            number = decorator.keyword("max_examples")
            if number is not None and isinstance(number.value, int):
                markers.append(Marker("examples", decorator.text, decorator.line, float(number.value)))
        elif callee.rpartition(".")[2] == "given":
            markers.append(Marker("given", substitute(decorator, file.env).text, decorator.line))
    if not axes:
        return None, markers
    found = []
    for combination in itertools.islice(itertools.product(*axes), MAX_ROWS):
        merged: dict[str, Expr] = {}
        for part in combination:
            merged.update(part)
        found.append(merged)
    return found, markers


def _names(expr: Expr) -> list[str]:
    if isinstance(expr.value, str):
        return [word for word in re.split(r"[,\s]+", expr.value) if word]
    return [str(arg.value) for arg in expr.args]


def _row(row: Expr, several: bool) -> tuple[Expr, list[Marker]]:
    if row.op == "call" and row.callee.rpartition(".")[2] == "param":
        marks = row.keyword("marks")
        found = []
        if marks is not None:
            for mark in marks.args if marks.op in ("list", "tuple") else (marks,):
                for marker in _marks([mark]):
                    found.append(
                        Marker(
                            "skip" if marker.kind in ("skip",) else marker.kind,
                            f"{marker.text} {row.text}",
                            row.line,
                        )
                    )
        plain = Expr("tuple", args=row.positional, line=row.line)
        return (plain if several or len(row.positional) != 1 else row.positional[0]), found
    return row, []


_ELSEWHERE = re.compile(
    r"version_info (?:<|<=)|find_spec|not HAS_|not has_|importlib|\w is None$|__version__|^not "
)
"""Conditions under which a test is only skipped with old versions or without an optional package."""
_HERE = re.compile(r"version_info (?:>|>=) \[?3|environ|getenv|exists\(")
_HOME_WORDS = re.compile(r"linux|Linux|posix|not \w*(?:WIN|MAC|win32|darwin)")
"""Conditions that hold where tests are usually run."""


def _marks(decorators: Sequence[Expr]) -> list[Marker]:
    found = []
    for mark in decorators:
        text = mark.callee if mark.op == "call" else mark.text
        last = text.rpartition(".")[2]
        line = mark.line
        if last in ("skip", "Skip", "skip_test") and "parametrize" not in text:
            found.append(Marker("skip", mark.text, line))
        elif last in ("skipif", "skipIf", "skipUnless", "skipunless", "requires"):
            found.append(_conditional(mark, last, line))
        elif last == "xfail":
            condition = mark.positional[0] if mark.op == "call" and mark.positional else None
            strict = mark.keyword("strict") if mark.op == "call" else None
            kind = "xfail" if condition is None or condition.op == "lit" else "condition"
            found.append(
                Marker(kind, mark.text + (" strict" if strict is not None and strict.value else ""), line)
            )
        elif last == "expectedFailure":
            found.append(Marker("xfail", mark.text, line))
        elif last in ("flaky", "retry", "repeat", "rerun"):
            number = next(
                (a.value for a in mark.args[1:] for a in (a.args or (a,)) if isinstance(a.value, int)), 2
            )
            found.append(Marker("retry", mark.text, line, float(number)))
        elif last in ("timeout", "time_limit", "fail_after") and mark.op == "call" and mark.positional:
            value = mark.positional[0].value
            found.append(
                Marker("timeout", mark.text, line, float(value) if isinstance(value, int | float) else 0.0)
            )
        elif ".mark." in f".{text}" and last not in (
            "parametrize",
            "usefixtures",
            "filterwarnings",
            "asyncio",
            "anyio",
            "django_db",
        ):
            found.append(Marker("label", last, line))
    return found


def _conditional(mark: Expr, last: str, line: int) -> Marker:
    condition = mark.positional[0] if mark.op == "call" and mark.positional else None
    text = condition.text if condition is not None else ""
    if isinstance(condition, Expr) and condition.op == "lit" and isinstance(condition.value, str):
        text = condition.value
    constant = condition is not None and condition.op == "lit" and not isinstance(condition.value, str)
    if constant and condition is not None:
        active = bool(condition.value) != (last.lower() == "skipunless")
        return Marker("skip" if active else "none", mark.text, line)
    away = elsewhere(text) or (
        _ELSEWHERE.search(text) is not None and _HERE.search(text) is None and not _HOME_WORDS.search(text)
    )
    if last.lower() == "skipunless":
        away = (
            re.search(r"HAS_|has_|find_spec|is not None|!= '(?:win32|nt|darwin)|== '(?:linux|posix)", text)
            is not None
        )
    return Marker("condition" if away else "skip-if", mark.text, line)


def _class_marks(stmt: Stmt) -> list[Marker]:
    for inner in stmt.body:
        if inner.kind == "assign" and inner.exprs[0].text == "pytestmark":
            value = inner.exprs[-1]
            return _marks(value.args if value.op in ("list", "tuple") else [value])
    return []


def _module_marks(file: File) -> list[Marker]:
    found = []
    for stmt in file.stmts:
        if stmt.kind == "assign" and stmt.exprs[0].text == "pytestmark":
            value = stmt.exprs[-1]
            found += _marks(value.args if value.op in ("list", "tuple") else [value])
        for expr in stmt.exprs if stmt.kind in ("expr", "assign") else ():
            if expr.op == "call" and expr.callee in ("pytest.skip", "pytest.importorskip", "unittest.skip"):
                found.append(Marker("skip", expr.text, stmt.line))
        if stmt.kind == "raise" and stmt.exprs and "SkipTest" in stmt.exprs[0].text:
            found.append(Marker("skip", stmt.exprs[0].text, stmt.line))
        if stmt.kind in ("if", "try"):
            for inner in stmt.walk():
                for expr in inner.exprs if inner.kind == "expr" else ():
                    if expr.op == "call" and expr.callee == "pytest.skip":
                        found.append(Marker("skip-if", expr.text, inner.line))
    return found

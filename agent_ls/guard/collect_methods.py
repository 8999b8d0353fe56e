"""Tests that are functions with a name or an annotation: Go, Java, C#, Rust, minitest."""

from __future__ import annotations

import re
from collections.abc import Sequence

from attrs import evolve

from agent_ls.guard.checks import Check
from agent_ls.guard.model import File, Helpers, Marker, Test, make_test
from agent_ls.guard.raising import body_of, own_error, raises_itself
from agent_ls.guard.syntax import Expr, Stmt, literal, name, substitute
from agent_ls.guard.tables import row_bindings, rows_of

_JAVA_TESTS = {
    "Test",
    "ParameterizedTest",
    "RepeatedTest",
    "TestFactory",
    "TestTemplate",
    "Property",
    "Theory",
}
_CSHARP_TESTS = {
    "Fact",
    "Theory",
    "Test",
    "TestCase",
    "TestMethod",
    "DataTestMethod",
    "TestCaseSource",
    "SkippableFact",
    "SkippableTheory",
}
_RUST_TESTS = {"test", "rstest", "test_case", "wasm_bindgen_test", "proptest", "quickcheck"}
_SET_UP = {"setup", "set_up", "setUp", "SetUp", "SetupTest", "SetupSuite", "BeforeEach", "BeforeAll",
           "Before", "BeforeClass", "TestInitialize", "OneTimeSetUp", "before_setup"}  # fmt: skip
_SKIP = {"Disabled", "Ignore", "Ignored", "DisabledIfSystemProperty", "Explicit", "ignore"}
_BUILD = re.compile(r"^(?://go:build|// \+build)\s+(.+)$", re.MULTILINE)
_USUAL_TAGS = re.compile(
    r"^!?(?:windows|linux|darwin|unix|amd64|arm64|cgo|go1\.\d+|race|js|wasm|plan9|freebsd|integration)[\s&|!()\w.]*$"
)


def collect_methods(file: File, helpers: Helpers, *, collected: bool) -> None:
    """Fill in `file.tests` and `file.units`."""
    markers = []
    if file.language == "go":
        head = file.text.partition("\npackage ")[0] + "\n"
        if not file.text.startswith("package "):
            markers += [
                Marker("excluded", m.group(1).strip(), file.text.count("\n", 0, m.start()) + 1)
                for m in _BUILD.finditer(head)
            ]
    file.markers += markers
    found: dict[str, Test] = {}
    _scope(file, helpers, file.stmts, "", markers, found, collected=collected)
    file.tests += [test for test in found.values() if not test.unit]
    file.units += [test for test in found.values() if test.unit]


def _scope(
    file: File,
    helpers: Helpers,
    stmts: Sequence[Stmt],
    prefix: str,
    markers: list[Marker],
    found: dict[str, Test],
    *,
    collected: bool,
) -> None:
    for stmt in stmts:
        own = _markers(stmt, file)
        if file.language == "ruby" and stmt.kind == "expr" and stmt.exprs[0].text in ("private", "protected"):
            collected = False
        if stmt.kind == "class":
            inside = f"{prefix}{stmt.name}::"
            if "abstract" in stmt.flags and not re.search(rf"(?:extends|:) {stmt.name}\b", file.text):
                own.append(Marker("excluded", f"abstract {stmt.name}", stmt.line))
            if file.language == "rust" and stmt.name == "tests":
                inside = prefix  # so that a move into tests/ keeps the names
            plain = file.language == "ruby" and not stmt.exprs and stmt.name.endswith("Test")
            here = collected and not plain
            _scope(file, helpers, stmt.body, inside, [*markers, *own], found, collected=here)
        elif stmt.kind == "block":
            _scope(file, helpers, stmt.body, prefix, markers, found, collected=collected)
        elif stmt.kind == "func":
            is_test = collected and _is_test(stmt, file, prefix)
            bindings, more = _rows(stmt, file)
            test = make_test(
                file,
                helpers,
                id=f"{prefix}{stmt.name}",
                name=stmt.name,
                line=stmt.line,
                end=stmt.end,
                body=stmt.body,
                bindings=bindings,
                markers=[*markers, *own, *more],
                unit=not is_test,
            )
            words = {re.split(r"[.:]", _word(d))[-1] for d in stmt.decorators}
            test.set_up = not is_test and (stmt.name in _SET_UP or bool(words & _SET_UP))
            demanded = _expected_errors(stmt, file)
            if any(check.relation == "raises" and _any_failure(check) for check in demanded):
                test.checks = [evolve(c, lost=c.lost or "swallowed") for c in test.checks]
            test.checks += demanded
            if test.id not in found or found[test.id].unit:
                found[test.id] = test


def _is_test(stmt: Stmt, file: File, prefix: str) -> bool:
    words = {_word(decorator) for decorator in stmt.decorators}
    if file.language == "java" and stmt.flags & {"private", "static"}:
        return False
    match file.language:
        case "go":
            return re.match(r"(?:Test|Fuzz)(?![a-z])", stmt.name) is not None and stmt.name != "TestMain"
        case "java":
            return bool(words & _JAVA_TESTS) or (
                stmt.name.startswith("test") and "extends TestCase" in file.text
            )
        case "c_sharp":
            return bool(words & _CSHARP_TESTS) or any(
                re.search(r"(?:Fact|Theory|TestCase)$", w) for w in words
            )
        case "rust":
            return any(word in _RUST_TESTS or word.endswith((".test", "::test")) for word in words)
        case "ruby":
            return stmt.name.startswith("test_")
    return False


def _word(decorator: Expr) -> str:
    return decorator.callee if decorator.op == "call" else decorator.text


def _markers(stmt: Stmt, file: File) -> list[Marker]:
    found = []
    for decorator in stmt.decorators:
        word, text = _word(decorator), decorator.text
        last = re.split(r"[.:]", word)[-1]
        if last in _SKIP:
            found.append(Marker("skip", text, decorator.line))
        elif last.startswith(
            ("DisabledIf", "DisabledOn", "EnabledIf", "EnabledOn", "DisabledForJre", "EnabledForJre")
        ):
            kind = (
                "condition"
                if re.search(r"WINDOWS|MAC|JAVA_\d", text) and last.startswith("Disabled")
                else "skip-if"
            )
            found.append(Marker(kind, text, decorator.line))
        elif word == "cfg_attr" and "ignore" in text:
            elsewhere = re.search(r"\(\s*(?:miri|windows|target_\w+|target_os)\b", text) is not None
            found.append(Marker("condition" if elsewhere else "skip-if", text, decorator.line))
        elif word == "cfg" and "test" not in re.findall(r"\w+", text)[1:2] and file.language == "rust":
            found.append(Marker("excluded", text, decorator.line))
        elif last in ("Timeout", "MaxTime", "timeout"):
            value = next((a.value for a in decorator.args[1:] if isinstance(a.value, int | float)), 0)
            found.append(Marker("timeout", text, decorator.line, float(value)))
        elif last in ("Retry", "RepeatedIfExceptionsTest", "RetryFact", "RetryTheory", "Flaky", "RetryTest",
                      "RetryingTest", "RetryOnFailure"):  # fmt: skip
            found.append(Marker("retry", text, decorator.line, 2.0))
        if decorator.op == "call":
            for key in ("Skip", "Ignore", "IgnoreReason", "enabled", "Explicit"):
                given = decorator.keyword(key)
                if given is not None and not (key == "enabled" and given.value is True):
                    found.append(Marker("skip", text, decorator.line))
            timeout = decorator.keyword("timeout") or decorator.keyword("Timeout")
            if timeout is not None and isinstance(timeout.value, int | float):
                found.append(Marker("timeout", text, decorator.line, float(timeout.value)))
    return found


def _rows(stmt: Stmt, file: File) -> tuple[list[dict[str, Expr]] | None, list[Marker]]:
    rows: list[Expr] = []
    known, markers = False, []
    params = list(stmt.params)
    for decorator in stmt.decorators:
        if decorator.op != "call":
            continue
        last = re.split(r"[.:]", _word(decorator))[-1]
        if last in ("InlineData", "TestCase", "DataRow", "Arguments") and decorator.positional:
            known = True
            values = decorator.positional
            result = decorator.keyword("ExpectedResult")
            rows.append(
                Expr("tuple", args=(*values, *((result,) if result is not None else ())), line=decorator.line)
            )
        elif last in ("ValueSource", "CsvSource", "EnumSource") and file.language == "java":
            values_list = [a.args[0] if a.op == "kw" else a for a in decorator.args[1:]]
            for value in values_list:
                for item in rows_of(value, file.language) or [value]:
                    known = True
                    if last == "CsvSource" and isinstance(item.value, str):
                        cells = [
                            literal(cell.strip().strip("'"))
                            for cell in re.split(r",(?=(?:[^']*'[^']*')*[^']*$)", item.value)
                        ]
                        item = Expr("tuple", args=tuple(map(_number, cells)), line=item.line)
                    rows.append(item)
        elif last == "MethodSource" and file.language == "java":
            label = str(decorator.args[1].value) if len(decorator.args) > 1 else stmt.name
            source = file.functions.get(label)
            result = (
                next((s.exprs[0] for s in source.body if s.kind == "return" and s.exprs), None)
                if source
                else None
            )
            found = rows_of(substitute(result, file.env), file.language) if result is not None else None
            if found is not None:
                known = True
                rows += [
                    Expr("tuple", args=row.positional)
                    if row.op == "call" and "rguments" in row.callee
                    else row
                    for row in found
                ]
            else:
                markers.append(Marker("rows", decorator.text, decorator.line))
        elif last in ("MemberData", "TestCaseSource", "ClassData", "DynamicData"):
            markers.append(Marker("rows", decorator.text, decorator.line))
        elif last in ("case", "test_case") and file.language == "rust":
            known = True
            rows.append(_rust_row(decorator))
    if not known:
        return None, markers
    return [dict(row_bindings(params, row)) for row in rows], markers


def _rust_row(decorator: Expr) -> Expr:
    """`case(1, 2)` or `test_case(1 => 2; "title")`, whose tokens are a text."""
    sides = decorator.args[1].name.split(";")[0].split("=>") if len(decorator.args) > 1 else []
    cells = [cell.strip() for side in sides for cell in re.split(r",(?![^(\[]*[)\]])", side)]
    return Expr("tuple", args=tuple(name(cell) for cell in cells if cell), line=decorator.line)


def _number(cell: Expr) -> Expr:
    text = str(cell.value)
    if re.fullmatch(r"-?\d+", text):
        return literal(int(text))
    return literal(float(text)) if re.fullmatch(r"-?\d+\.\d+", text) else cell


def _any_failure(check: Check) -> bool:
    """Is a failed assertion itself the error that is demanded?"""
    kind = check.expected.text if check.expected is not None else ""
    return not check.message and re.search(r"^$|AssertionError|Throwable|^Error\b", kind) is not None


def _expected_errors(stmt: Stmt, file: File) -> list[Check]:
    """Errors that an annotation demands: `@Test(expected = …)`, `#[should_panic]`, `[ExpectedException]`."""
    found = []
    for decorator in stmt.decorators:
        word = _word(decorator).removeprefix("?")
        body = body_of(Expr("func", body=stmt.body, line=stmt.line))
        if word in ("should_panic",) or word.startswith("should_panic"):
            match = re.search(r'expected = r?#*"((?:[^"\\]|\\.)*)"', decorator.text)
            made = Check("raises", body, body, line=decorator.line, path=file.path)
            found.append(evolve(made, message=match.group(1) if match else ""))
            if raises_itself(stmt.body):
                found = [evolve(own_error(body), line=decorator.line, path=file.path)]
        elif decorator.op == "call" and decorator.keyword("expected") is not None:
            kind = decorator.keyword("expected")
            found.append(Check("raises", body, body, kind, line=decorator.line, path=file.path))
        elif word == "ExpectedException" and decorator.op == "call" and decorator.positional:
            found.append(
                Check("raises", body, body, decorator.positional[0], line=decorator.line, path=file.path)
            )
    return found

"""Sources that play to the tests: they look for the runner, know the tests' very literals, agree with
everything.

A net, not a proof: what a determined author hides only shows when the code is run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent_ls.guard.conduct import new_signs
from agent_ls.guard.lines import new_lines, text_of
from agent_ls.guard.literals import TestLiterals, special_cases
from agent_ls.guard.losses import Severity
from agent_ls.guard.model import File
from agent_ls.guard.protected import Finding
from agent_ls.guard.syntax import Expr, Stmt
from agent_ls.guard.world import World
from agent_ls.workspace.grammars import language_of
from agent_ls.workspace.paths import is_test_config, is_test_path

_RUN = re.compile(
    r"PYTEST_CURRENT_TEST|PYTEST_VERSION|PYTEST_XDIST|['\"]_?pytest['\"]\s*(?:not )?in\s"
    r"|sys\.modules.{0,20}['\"](?:_?pytest|unittest|nose)"
    r"|['\"]unittest['\"]\s*(?:not )?in\s|NODE_TEST_CONTEXT|JEST_WORKER_ID|VITEST\w*\b"
    r"|process\.env\.(?:TEST\b|MOCHA\w*|AVA\w*)"
    r"|NODE_ENV\s*[=!]==?\s*['\"]test|['\"]test['\"]\s*[=!]==?\s*process\.env\.NODE_ENV|import\.meta\.(?:vitest|env\.(?:TEST|VITEST))"
    r"|testing\.Testing\(\)|flag\.Lookup\(\"test\.|os\.Args\[0\].{0,30}\.test|HasSuffix\(os\.Args\[0\]"
    r"|typeof (?:describe|jest|it|expect|vi)\b|globalThis\.(?:jest|describe|expect|it)\b"
    r"|defined\?\((?:RSpec|Minitest|MiniTest|Test::Unit)|\$PROGRAM_NAME.*(?:rspec|test)|\$0.{0,20}(?:rspec|test)|Class\.forName\(\"org\.(?:junit|testng)"
    r"|getStackTrace\(\).{0,80}|startsWith\(\"org\.junit|surefire\.|(?:RAILS|RACK|APP)_ENV['\"\])]*\s*==\s*['\"]test|Rails\.env\.test\?"
    r"|AppDomain\.CurrentDomain.{0,80}(?:xunit|nunit|test)|Environment\.StackTrace|xunit\.|testhost|RUST_TEST|CARGO_TARGET_TMPDIR|NEXTEST"
    r"|current_exe\(\).{0,60}|cfg!\(test\)|thread::current\(\)\.name\(\)|(?:argv|orig_argv)(?:\[0\])?.{0,30}(?:py\.?test|unittest|jest|mocha)"
    r"|\.stack\b.{0,60}(?:test|spec|jest|mocha|vitest)|\bargv\b.{0,60}(?:vitest|jest|mocha|pytest|rspec)"
    r"|(?:_test\.go|\.(?:test|spec)\.[cm]?[jt]sx?\b|_spec\.rb|_test\.rb)['\"]|\bcaller(?:_locations)?\b.{0,60}(?:spec|test)"
    r"|new StackTrace\(.{0,80}[Tt]est|GetFrames?\(.{0,80}[Tt]est|hasOwnProperty\(['\"](?:describe|jest)"
    r"|['\"]__(?:vitest|jest)\w*"
    r"|['\"][^'\"]*\b(?:pytest|py\.test|unittest)\b[^'\"]*['\"]\s*in\s+|inspect\.stack\(\)|sys\._getframe\(|in_?test_?mode|IS_TEST\b|RUNNING_TESTS|TESTING['\"]",
    re.IGNORECASE if False else 0,
)
_EQUAL = {"__eq__", "__ne__", "equals", "Equals", "==", "eq", "eql?", "__bool__", "__contains__",
    "operator ==", "__req__", "__lt__", "__le__",
          "__gt__", "__ge__", "partial_cmp", "hashCode_never", "isEqual", "valueOf_never",
          "asymmetricMatch"}  # fmt: skip
_BESIDE = re.compile(
    r"(?:^|/)(?:ci|\.ci|docs?|examples?|scripts?|tools?|benchmarks?|noxfile\.py|setup\.py|tasks\.py|\.github)(?:/|$)"
)


def review_sources(old: World, new: World, changed: list[str]) -> list[Finding]:
    """Findings about changed source files, tests aside."""
    found: list[Finding] = []
    literals = TestLiterals(old, new, changed)
    data = frozenset(
        name.rpartition("/")[2]
        for name in old.all_paths
        if is_test_path(name) and language_of(name) in (None, "json")
    )
    for path in changed:
        language = language_of(path)
        if (
            path not in new.all_paths
            or language in (None, "json")
            or is_test_path(path)
            or is_test_config(path)
        ):
            continue
        if _BESIDE.search(path):
            continue
        before, after = text_of(old, path), text_of(new, path)
        if language == "rust":
            before, after = (text.partition("#[cfg(test)]")[0] for text in (before, after))
        found += _run_detected(path, before, after)
        found += _reads_tests(path, before, after, data)
        added = "\n".join(line for _, line in new_lines(before, after))
        support = re.search(r"^class \w+\(.*TestCase\)", added, re.MULTILINE) is not None
        if path.endswith(".py") and _SIGNS.search(added) and not support:
            found += _signs(old, new, path, literals)
        if not _WORTH_PARSING.search(added):
            continue
        parsed, was = new.parse(path), old.parse(path) if path in old.all_paths else None
        if parsed is not None:
            found += _equal(path, was, parsed)
            found += _counting(path, was, parsed)
            found += special_cases(path, was, parsed, literals)
    return found


_SIGNS = re.compile(
    r"pytest|PYTEST|unittest|nose|pluggy|xdist|execnet|AGENT_LS|conftest|/proc|gc\.|\bgc\b|_getframe|settrace|setprofile|inspect"
    r"|os\.|__\w+__|test_|from sys|from os"
)
_WORTH_PARSING = re.compile(
    r"return [Tt]rue|^\s*true\s*$|=> true|[=!]=|\bin\b|\bcase\b|=>|\bmatch\b|[Ee]quals|\+= 1|\+\+|next\("
    r"|append|push|pop\b|includes|contains"
    r"|[\"'\d]\s*:\s|\bMap\b|eql|== |getattr|True",
    re.MULTILINE,
)
"""What must be among the added lines for the rest to find anything: most changes need no parsing."""
_TEST_PLACE = re.compile(
    r"(?:^|[/\\])(?:tests?|specs?|__tests__|__snapshots__|golden|expected|testdata)(?:[/\\]|$)|test_cases|golden|\.snap$"
)
_READS = re.compile(
    r"open\(|read_text|read_bytes|readFile|ReadFile|File\.read|fs::read|load\(|Files\.read|ReadAll|include_str|require\(|Path\(|join\("
)


def _reads_tests(path: str, before: str, after: str, names: frozenset[str]) -> list[Finding]:
    """Sources that read the tests' files: their expected outputs are an answer, not a computation."""
    found = []
    for number, line in new_lines(before, after):
        for text in re.findall(r"[\"'`]([^\"'`]{4,})[\"'`]", line):
            data = text.rpartition("/")[2] in names and len(text) > 5
            if (data or _TEST_PLACE.search(text)) and _READS.search(line):
                message = f"the source reads what belongs to the tests: {text[:80]}"
                found.append(
                    Finding("source-reads-tests", "block", path, number, message, after=line.strip()[:200])
                )
                break
    return found


def _run_detected(path: str, before: str, after: str) -> list[Finding]:
    found = []
    for number, line in new_lines(before, after):
        match = _RUN.search(line)
        if match is None or match.group() in before:
            continue
        if match.group().startswith(
            (
                "getStackTrace",
                "current_exe",
                "inspect.stack",
                "sys._getframe",
                "Environment.Stack",
                "thread::current",
            )
        ):
            near = "\n".join(after.splitlines()[number - 1 : number + 4])
            if not re.search(r"test|junit|spec|assert|xunit", near, re.IGNORECASE):
                continue
        text = f"the source looks whether it is being tested: {match.group().strip()[:80]}"
        found.append(Finding("test-run-detected", "block", path, number, text, after=line.strip()[:200]))
    return found


def _functions(file: File | None) -> Iterator[Stmt]:
    for stmt in file.stmts if file is not None else ():
        for inner in stmt.walk():
            if inner.kind == "func":
                yield inner


def _always_true(stmt: Stmt) -> bool:
    inside = stmt.body
    while len(inside) == 1 and inside[0].kind == "block":
        inside = inside[0].body
    body = [
        s
        for s in inside
        if not (s.kind == "expr" and s.exprs and s.exprs[0].op == "lit" and isinstance(s.exprs[0].value, str))
    ]
    if len(body) != 1 or body[0].kind not in ("return", "expr") or not body[0].exprs:
        return False
    result = body[0].exprs[0]
    if result.op == "or":
        return any(arg.op == "lit" and arg.value is True for arg in result.args)
    return result.op == "lit" and result.value is True


def _equal(path: str, before: File | None, after: File) -> list[Finding]:
    had = {stmt.name for stmt in _functions(before) if stmt.name in _EQUAL and _always_true(stmt)}
    found = []
    for stmt in _functions(after):
        if stmt.name in _EQUAL and stmt.name not in had and _always_true(stmt):
            text = f"{stmt.name} is always true: whatever is compared with such an object, agrees"
            found.append(Finding("comparison-always-true", "block", path, stmt.line, text))
    return found


def _counting(path: str, before: File | None, after: File) -> list[Finding]:
    """Answers that depend on how often something was called, counted outside of any object."""
    known = {
        part.name for stmt in (before.stmts if before else ()) for e in stmt.all_exprs() for part in e.walk()
    }
    outside = {key for stmt in after.stmts if stmt.kind == "assign" for key in _names(stmt.exprs[0])}
    had = {stmt.name for stmt in _functions(before)}
    for stmt in after.stmts:
        if stmt.kind == "class":
            outside |= {
                key for inner in stmt.body if inner.kind == "assign" for key in _names(inner.exprs[0])
            }
    for function in _functions(after):
        counted = _counted(function) - set(function.params)
        asked = _asked(function)
        for word in sorted(counted & asked):
            if word in known or (before is not None and function.name not in had):
                continue
            numbered = _numbered(function, word)
            severity: Severity = "block" if word in outside or numbered else "review"
            text = f"what {function.name} does depends on how often it was called ({word})"
            return [
                Finding(
                    "answers-by-call-count",
                    severity,
                    path,
                    function.line,
                    text,
                    after=after.line(function.line),
                )
            ]
    return []


def _names(target: Expr) -> set[str]:
    return {
        part.name
        for part in target.walk()
        if part.op in ("name", "attr") and part.name not in ("self", "this")
    }


def _counted(function: Stmt) -> set[str]:
    """Names that a function changes a little each time: `calls += 1`, `calls++`, `seen.append(x)`,
    `next(counter)`."""
    found: set[str] = set()
    local = {
        key
        for stmt in function.body
        for inner in stmt.walk()
        if inner.kind == "assign"
        and inner.name != "augmented"
        and inner.exprs[0].op == "name"
        and not any(part.text == inner.exprs[0].text for part in inner.exprs[-1].walk())
        for key in _names(inner.exprs[0])
    }
    for stmt in function.body:
        for inner in stmt.walk():
            if (
                inner.kind == "assign"
                and inner.exprs[0].op == "index"
                and inner.exprs[-1].op == "bin"
                and inner.exprs[0].args[0].text in inner.exprs[-1].text
            ):
                found |= _names(inner.exprs[0].args[0])
            if inner.kind == "assign" and (
                inner.name == "augmented"
                or any(part.text == inner.exprs[0].text for part in inner.exprs[-1].walk())
            ):
                found |= _names(inner.exprs[0])
            if inner.kind == "assign" and re.search(r"getattr\(.* \+ 1", inner.exprs[-1].text):
                found |= _names(inner.exprs[0])
            for expr in inner.exprs:
                for part in expr.walk():
                    if part.op == "other" and part.name == "update_expression":
                        found |= _names(part.args[0])
                    elif part.op == "call" and part.args[0].op == "attr" and part.args[0].name in (
                        "append", "push", "fetch_add", "incrementAndGet", "getAndIncrement", "Add", "pop",
                        "popleft"):  # fmt: skip
                        found |= _names(part.args[0].args[0])
                    elif part.op == "call" and part.callee in (
                        "next",
                        "Interlocked.Increment",
                        "atomic.AddInt32",
                        "atomic.AddInt64",
                    ):
                        found |= {name for arg in part.args[1:] for name in _names(arg)}
    return found - local


def _numbered(function: Stmt, word: str) -> bool:
    """Is a count compared with certain numbers?"""
    for stmt in function.body:
        for expr in stmt.all_exprs():
            for part in expr.walk():
                if part.op == "cmp" and part.name in ("==", "in", "not in") and word in _names(part):
                    numbers = [p.value for p in part.walk() if p.op == "lit" and isinstance(p.value, int)]
                    if any(number > 1 for number in numbers):
                        return True
    return False


def _asked(function: Stmt) -> set[str]:
    """Names that a function's conditions and look-ups ask for."""
    found: set[str] = set()
    for stmt in function.body:
        for inner in stmt.walk():
            if inner.kind in ("if", "loop"):
                found |= {name for expr in inner.exprs for name in _names(expr)}
            for expr in inner.exprs:
                for part in expr.walk():
                    if part.op in ("cond", "cmp"):
                        found |= _names(part.args[0]) | (_names(part.args[1]) if part.op == "cmp" else set())
                    elif part.op == "index" and len(part.args) > 1:
                        found |= _names(part.args[1])
                    elif (part.op == "call" and part.callee == "next") or (
                        part.op == "call" and part.args[0].name in ("pop", "popleft")
                    ):
                        found |= {name for arg in part.args for name in _names(arg)}
    return found


def _signs(old: World, new: World, path: str, literals: TestLiterals) -> list[Finding]:
    before = old.tree.read(path) if path in old.all_paths else None
    after = new.tree.read(path)
    if after is None:
        return []
    found = []
    for sign in new_signs(before, after, tests=literals.names, mentions=lambda word: _mentioned(old, word)):
        severity: Severity = sign.severity
        if sign.kind in ("source-knows-the-test-runner", "source-unusual-call"):
            severity = "review" if sign.severity == "block" else "info"
        found.append(Finding(sign.kind, severity, path, sign.line, sign.message))
    return found


def _mentioned(world: World, word: str) -> bool:
    for path in sorted(world.all_paths)[:3000]:
        if (
            path.endswith(".py")
            and not is_test_path(path)
            and path != "setup.py"
            and word in text_of(world, path)
        ):
            return True
    return False

"""Hooks, set-up files and exits that decide outcomes: a conftest that drops tests or forges reports, an exit
with success before the verdict, a runner that is patched."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from agent_ls.guard.lines import new_lines, text_of
from agent_ls.guard.losses import Severity
from agent_ls.guard.model import File
from agent_ls.guard.protected import Finding
from agent_ls.guard.syntax import Stmt, render_stmt
from agent_ls.guard.world import World
from agent_ls.workspace.grammars import language_of
from agent_ls.workspace.paths import is_test_path

_EXIT = re.compile(
    r"(?<![\w.])(?:sys\.exit|os\._exit|process\.exit|os\.Exit|System\.exit|std::process::exit|process::exit|exit!?|_exit|quit"
    r"|Environment\.Exit|raise SystemExit|Kernel\.exit!?"
    r"|Runtime\.getRuntime\(\)\.halt)\s*(?:\(\s*(?P<code>[^()]*)\)|(?P<bare>$|;))"
)
_EXIT_CODE = re.compile(
    r"register\(\s*(?:os\._exit|sys\.exit)\s*,\s*0|process\.exitCode\s*=\s*0|session\.exitstatus\s*=\s*(?:0|pytest\.ExitCode\.OK|ExitCode\.OK)|exitstatus\s*=\s*0"
)
_OUTCOME = re.compile(
    r"\.outcome\s*=\s*['\"](?:passed|skipped)|\.passed\s*=\s*True|\.failed\s*=\s*(?:False|0|\[\])|force_result\(|excinfo\s*=\s*None"
    r"|\.status\s*=\s*['\"](?:passed|skipped|pass)|testsfailed\s*=\s*0|instance_variable_set\(:@exception|\.result\.state\s*=|\.exception\s*=\s*(?:nil|null|None)|wasSuccessful\s*=|stats\.pop\("
    r"|\.stats\[?['\".]*(?:failed|error)|set_exception\(nil\)|numFailed\w*\s*=\s*0|\.wasxfail\s*="
)
_RUNNER = re.compile(
    r"^\s*(?:setattr\(\s*)?(?:unittest\.\w+|pytest\.\w+|_pytest\.[\w.]+|\w*\.?TestCase|TestCase|builtins|Assert(?:ions)?|chai\.\w+"
    r"|globalThis|global|RSpec::\w+(?:::\w+)*|Minitest::\w+)\.?(?:\w+\.)*"
    r"(?:assert\w*|fail\w*|run|expect|raises|AssertionError|isclose|approx|__eq__|_?callTestMethod|test|it|describe)\s*=(?!=)"
    r"|^\s*(?:setattr|monkeypatch\.setattr)\(\s*(?:unittest\b|pytest\b|_pytest\b"
    r"|builtins, ['\"](?:AssertionError|isinstance|len))"
    r"|expect\.extend\(\s*\{[^}]*\b(?:toBe|toEqual|toStrictEqual|toThrow|toContain|toMatch|toHaveLength)\b"
    r"|class (?:RSpec::\w+|Minitest::\w+|Object\b.*==)|^(?:expect|assert)\s*=(?!=)\s*(?:function|async"
    r"|new Proxy|lambda|\(\w*\) ?=>)"
)  # fmt: skip
_SKIP_ALL = re.compile(
    r"^\s*jest\.retryTimes\(|this\.retries\(\s*[1-9]|config\.(?:filter_run_excluding|exclude_pattern|around.*skip|default_retry_count)"
    r"|filter_run_excluding|jest\.setTimeout\("
)
_MAIN = re.compile(
    r"(?:^|/)(?:__main__|main|cli|cmd|manage|setup|noxfile|conftest_cli|app|run\w*|server|index|program|tasks?)\.\w+$|(?:^|/)(?:bin|cmd|scripts?|tools?|cli|examples?|docs)/",
    re.IGNORECASE,
)
_HOOKS = {"pytest_runtest_makereport", "pytest_report_teststatus", "pytest_runtest_logreport",
    "pytest_sessionfinish",
          "pytest_runtest_call", "pytest_pyfunc_call", "pytest_runtest_protocol",
          "pytest_collection_modifyitems", "pytest_configure",
          "pytest_ignore_collect", "pytest_unconfigure", "pytest_runtest_setup", "pytest_collection",
          "pytest_runtestloop",
          "pytest_cmdline_main", "pytest_terminal_summary", "pytest_itemcollected",
          "pytest_pycollect_makeitem",
          "pytest_generate_tests", "pytest_exception_interact", "pytest_assertion_pass",
          "pytest_collectstart",
          "pytest_make_collect_report", "pytest_collect_file", "pytest_deselected",
          "pytest_collection_finish"}  # fmt: skip


def review_hooks(old: World, new: World, changed: list[str]) -> list[Finding]:
    """Findings about files that can decide the outcome of other files' tests."""
    found = []
    for path in changed:
        if path not in new.all_paths or language_of(path) is None:
            continue
        before, after = text_of(old, path), text_of(new, path)
        found += _lines(path, before, after, language_of(path) or "")
        if path.endswith(".py") and re.search(r"\bpytest_\w+|autouse|collect_ignore", after):
            found += _pytest_hooks(old, new, path)
    return found


def _lines(path: str, before: str, after: str, language: str) -> list[Finding]:
    found = []
    testy = is_test_path(path)
    entry = _MAIN.search(path) is not None and not testy
    lines = after.splitlines()
    for number, line in new_lines(before, after):
        kind, severity, what = "", "block", ""
        if _RUNNER.search(line):
            kind, what = "runner-patched", "a part of the test runner is replaced"
        elif (
            _OUTCOME.search(line) and (testy or "report" in line or "outcome" in line) and _about_tests(after)
        ):
            kind, what = "outcome-forced", "the outcome of tests is set by hand"
        elif _EXIT_CODE.search(line):
            kind, what = "outcome-forced", "the run ends with success, whatever failed"
        elif testy and _SKIP_ALL.search(line):
            kind, severity, what = "test-run-changed", "review", "tests are retried or left out"
            left_out = re.search(r"filter_run_excluding\(?\s*:?(\w+)", line)
            others = [other for n, other in enumerate(lines, 1) if n != number]
            if left_out is not None and any(re.search(rf":{left_out.group(1)}\b", other) for other in others):
                severity = "block"
        else:
            match = _EXIT.search(line)
            if (
                match is not None
                and not entry
                and language != "bash"
                and not _in_main(lines, number - 1, language)
            ):
                code = (match.group("code") or "").strip()
                successful = code in (
                    "",
                    "0",
                    "true",
                    "ExitCode.OK",
                    "pytest.ExitCode.OK",
                    "0_i32",
                    "null",
                    "None",
                )
                own = re.search(r"\b(?:exit|quit)\b", match.group()) and re.match(
                    r"\s*(?:def|function|fn|fun) ", line
                )
                bare = match.group().startswith(("exit", "quit", "_exit"))
                if successful and not own and not (bare and language not in ("python", "ruby")):
                    kind, what = "process-exits", "the process ends with success before the tests are judged"
                elif testy and not own and not bare and language != "go":
                    kind, severity, what = "process-exits", "review", "the process ends here"
        if kind:
            level: Severity = "block" if severity == "block" else "review"
            found.append(
                Finding(kind, level, path, number, f"{what}: {line.strip()[:120]}", after=line.strip()[:200])
            )
    if language == "go" and "func TestMain(" in after and "func TestMain(" in after:
        main = after[after.index("func TestMain(") :]
        if re.search(r"os\.Exit\(0\)", main) and not re.search(r"os\.Exit\(0\)", before):
            pass  # found above
        elif "m.Run()" not in main.partition("\n}")[0] and (
            "m.Run()" in before or "func TestMain(" not in before
        ):
            found.append(Finding("test-run-neutered", "block", path, 1, "TestMain no longer runs the tests"))
    return found


def _about_tests(text: str) -> bool:
    return re.search(r"pytest|unittest|jest|mocha|rspec|report|hook", text, re.IGNORECASE) is not None


def _in_main(lines: list[str], at: int, language: str) -> bool:
    """Is the line in a function called main, or under `if __name__ == "__main__"`?"""
    indent = len(lines[at]) - len(lines[at].lstrip())
    for line in reversed(lines[:at]):
        own = len(line) - len(line.lstrip())
        if line.strip() and own < indent:
            indent = own
            if re.search(
                r"\b(?:def|func|fn|static void|void|int|Task|function)\s+(?:\w+\s+)?(?:main|Main|run|cli"
                r"|usage|help|on_\w+|_?exit\w*|handle_?signal\w*|shutdown)\b|__main__",
                line,
            ):
                return True
            if own == 0 and not line.startswith((" ", "\t")):
                return False
    return False


# -- pytest
def _pytest_hooks(old: World, new: World, path: str) -> list[Finding]:
    before, after = old.parse(path) if path in old.all_paths else None, new.parse(path)
    if after is None:
        return []
    found = []
    name = PurePosixPath(path).name
    had = {stmt.name: render_stmt(stmt) for stmt in _functions(before)}
    for stmt in _functions(after):
        if had.get(stmt.name) == render_stmt(stmt):
            continue
        found += _hook(path, stmt, had.get(stmt.name, ""))
    if name == "conftest.py" or name.startswith("pytest_"):
        found += _ignored(path, before, after)
    return found


def _functions(file: File | None) -> list[Stmt]:
    return (
        [stmt for top in file.stmts for stmt in top.walk() if stmt.kind == "func"] if file is not None else []
    )


def _hook(path: str, stmt: Stmt, before: str) -> list[Finding]:
    text = render_stmt(stmt)
    autouse = any("fixture" in d.text and "autouse=True" in d.text for d in stmt.decorators)
    if stmt.name not in _HOOKS and not autouse:
        return []
    asked = re.search(r"getoption|getini|environ|getenv|markexpr", text) is not None
    severity: Severity = "review" if asked else "block"

    def finding(kind: str, message: str, level: Severity = severity) -> list[Finding]:
        return [Finding(kind, level, path, stmt.line, f"{stmt.name}: {message}")]

    def newly(pattern: str) -> bool:
        return len(re.findall(pattern, text)) > len(re.findall(pattern, before))

    if stmt.name == "pytest_collection_modifyitems":
        if newly(
            r"\bitems\[.*?\] ?,|items\.(?:remove|clear|pop|__delitem__)\(|\bdeselected\b|assign items\["
        ):
            return finding("tests-deselected", "it takes tests away before they run")
        if newly(r"(?:skip|xfail)"):
            return finding("tests-deselected", "it marks tests so that they don't count")
        if re.search(r"assign items|del items|items\[", text) and not re.search(
            r"\.sort\(|sorted\(|reverse", text
        ):
            return finding("tests-deselected", "it changes which tests run")
    elif stmt.name in ("pytest_ignore_collect", "pytest_pycollect_makeitem", "pytest_collect_file"):
        if newly(r"return (?!None|False|[};]|$)"):
            return finding("tests-deselected", "it keeps files from being collected")
    elif stmt.name in (
        "pytest_pyfunc_call",
        "pytest_runtest_protocol",
        "pytest_runtestloop",
        "pytest_runtest_call",
    ):
        if newly(r"return True|try|suppress|outcome|excinfo|result"):
            return finding("outcome-forced", "it decides how tests are run", "block")
    elif stmt.name in ("pytest_runtest_makereport", "pytest_report_teststatus", "pytest_runtest_logreport"):
        if newly(r"outcome|passed|longrepr|wasxfail") and re.search(
            r"assign \w+\.(?:outcome|longrepr|wasxfail)|return .*'passed'|force_result|'passed', ", text
        ):
            return finding("outcome-forced", "it changes what is reported", "block")
    elif stmt.name in (
        "pytest_sessionfinish",
        "pytest_unconfigure",
        "pytest_configure",
        "pytest_terminal_summary",
        "pytest_cmdline_main",
    ):
        if newly(r"exitstatus(?:, 0|, pytest)|_exit\(|sys\.exit\(|return 0|assign session\.exitstatus"):
            return finding("outcome-forced", "it decides how the run ends", "block")
    elif newly(r"pytest\.(?:skip|xfail)\("):
        return finding("tests-deselected", "it skips tests")
    return []


def _ignored(path: str, before: File | None, after: File) -> list[Finding]:
    """`collect_ignore` and `collect_ignore_glob` in a conftest."""
    found = []
    had = {
        part.text
        for stmt in (before.stmts if before else ())
        if _collects(stmt)
        for e in stmt.exprs
        for part in e.walk()
        if part.op == "lit"
    }
    for stmt in after.stmts:
        for inner in stmt.walk():
            if not _collects(inner):
                continue
            fresh = [
                p
                for e in inner.exprs
                for p in e.walk()
                if p.op == "lit" and isinstance(p.value, str) and p.text not in had
            ]
            if fresh:
                severity: Severity = "review" if inner is not stmt else "block"
                names = ", ".join(str(p.value) for p in fresh[:3])
                found.append(
                    Finding(
                        "tests-deselected",
                        severity,
                        path,
                        inner.line,
                        f"files are no longer collected: {names}",
                    )
                )
    return found


def _collects(stmt: Stmt) -> bool:
    return bool(stmt.exprs) and re.match(r"collect_ignore", stmt.exprs[0].text) is not None

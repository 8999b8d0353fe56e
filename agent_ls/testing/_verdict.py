"""What a finished run says: passed, failed, cut short, or nothing about the code at all."""

from __future__ import annotations

import re
import signal as signals
from collections import Counter
from pathlib import Path
from typing import Literal

from agent_ls.sandbox.process import ProcessResult
from agent_ls.testing._records import Records, cap_message
from agent_ls.testing.ids import dotted, file_of, matches
from agent_ls.testing.plan import TestPlan
from agent_ls.testing.results import Outcome, TestResult, TestRun

Source = Literal["pytest", "unittest", "junit", "exit-code"]
_OUTPUT_KEPT = 20_000


def judge(
    plan: TestPlan,
    process: ProcessResult,
    records: Records,
    requested: tuple[str, ...] | None,
    root: Path,
) -> TestRun:
    """The run of pytest or unittest that `process` and our plugin's records describe.

    `root` is the tree that was tested: what it lacks is the environment's fault, what it holds its own.
    """
    tests = _in_order(records)
    ended_early = process.timed_out or process.cancelled or process.problem is not None
    if records.exit_status is None and records.running:
        cause = _cause(process)
        for name in records.running:
            tests.append(_cut_off(name, cause))
    truncated = ended_early or records.exit_status is None or records.exit_status == 2
    if not records.collect_errors and records.exit_status == 2 and not process.cancelled:
        for name in records.running:
            tests.append(_cut_off(name, "it was interrupted (KeyboardInterrupt)"))
    elif records.exit_status == 2 and records.collect_errors and not records.running:
        truncated = ended_early
    source: Source = "unittest" if plan.kind == "unittest" else "pytest"

    def finish(
        outcome: Literal["passed", "failed", "env_broken", "timeout"],
        problem: str | None = None,
        remedy: str | None = None,
    ) -> TestRun:
        return TestRun(
            command=plan.argv,
            outcome=outcome,
            tests=tuple(tests),
            source=source,
            exit_code=process.exit_code if process.signal is None else 128 + process.signal,
            duration_s=process.duration_s,
            output=cap_message(process.output, _OUTPUT_KEPT),
            truncated=truncated,
            problem=problem,
            remedy=remedy,
            requested=requested,
            unknown=unknown,
        )

    unknown: tuple[str, ...] = ()
    if not process.started and not process.cancelled:
        return finish("env_broken", f"the tests can't be started: {process.output}", _INTERPRETER_REMEDY)
    if not ended_early and records.exit_status in (0, 1, 5):
        unknown = _unknown(requested, tests)
    if unknown and not tests:
        return no_such_tests(plan, requested or (), unknown)
    broken = _broken(plan, process, records, tests, root)
    if broken is not None and not (process.timed_out or process.cancelled):
        return finish("env_broken", *broken)
    if process.timed_out or process.cancelled:
        return finish("timeout", f"the run was stopped after {process.duration_s:.0f} s")
    if process.problem is not None:
        return finish("failed", f"the run was stopped: {process.problem}")
    if unknown:
        return finish("failed", _no_such(unknown), _IDS_REMEDY)
    failed = any(test.outcome.bad for test in tests) or records.exit_status != 0
    problem = None
    if truncated:
        problem = f"the run ended early: {_cause(process)}"
    return finish("failed" if failed else "passed", problem)


_INTERPRETER_REMEDY = "Name the interpreter with `interpreter` in [tool.agent-ls], or AGENT_LS_INTERPRETER."


_IDS_REMEDY = "`agent-ls test` lists the ids that exist."


def no_such_tests(plan: TestPlan, requested: tuple[str, ...], unknown: tuple[str, ...]) -> TestRun:
    """The run of ids none of which names a test."""
    return TestRun(
        plan.argv,
        "env_broken",
        source="unittest" if plan.kind == "unittest" else "pytest",
        problem=_no_such(unknown),
        remedy=_IDS_REMEDY,
        requested=requested,
        unknown=unknown,
    )


def _no_such(unknown: tuple[str, ...]) -> str:
    more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
    return f"no such tests: {', '.join(unknown[:5])}{more}"


def _unknown(requested: tuple[str, ...] | None, tests: list[TestResult]) -> tuple[str, ...]:
    if requested is None:
        return ()
    names = [test.id for test in tests]
    known = set(names)
    # A broken module stands for the tests that it would have held.
    return tuple(
        asked
        for asked in requested
        if asked not in known
        and not any(
            matches(asked, name) or (name and any(matches(name, it) for it in (asked, *dotted(asked))))
            for name in names
        )
    )


def _in_order(records: Records) -> list[TestResult]:
    order = {name: position for position, name in enumerate(records.collected or ())}
    tests = sorted(records.tests.values(), key=lambda test: order.get(test.id, len(order)))
    return [*records.collect_errors.values(), *tests]


def _cut_off(name: str, cause: str) -> TestResult:
    return TestResult(
        name,
        Outcome.ERROR,
        file=file_of(name) if "::" in name else None,
        message=f"process ended while running {name}: {cause}",
        error_type="ProcessEnded",
    )


def _cause(process: ProcessResult) -> str:
    if process.problem is not None:
        return process.problem
    if process.timed_out:
        return f"it was stopped after {process.duration_s:.0f} s"
    if process.cancelled:
        return "it was cancelled"
    if process.signal is not None:
        try:
            return f"it was killed by {signals.Signals(process.signal).name}"
        except ValueError:
            return f"it was killed by signal {process.signal}"
    return f"it exited with code {process.exit_code}"


_UNRECOGNISED = re.compile(r"(?:unrecognized arguments?|no such option): (.+)")
_REQUIRED_PLUGIN = re.compile(r"Missing required plugins?: (.+)")
_NO_PLUGIN = re.compile(r"Error importing plugin \"([^\"]+)\"")
_UNKNOWN_INI = re.compile(r"Unknown config option: (\S+)|Unknown config options?: (.+)")
_MIN_VERSION = re.compile(r"requires pytest-(\S+), actual pytest-(\S+)")
_NO_MODULE = re.compile(r"No module named '?([\w.]+)'?")


def _broken(
    plan: TestPlan, process: ProcessResult, records: Records, tests: list[TestResult], root: Path
) -> tuple[str, str] | None:
    """Why the run says nothing about the code, and the remedy; None when it does say something."""
    output = process.output
    where = f"{plan.interpreter} -m pip install" if plan.interpreter else "pip install"
    if records.foreign:
        names = ", ".join(records.foreign[:3])
        return (
            f"the tests imported an installed or the original code instead of the copy: {names}",
            f"Install the project in editable mode (`{where} -e .`) and use the sandbox, which puts the "
            "copy in the place of the original.",
        )
    if not tests:
        for pattern, text, remedy in (
            (_REQUIRED_PLUGIN, "pytest plugins are missing: {0}", f"Install them: `{where} {{0}}`."),
            (
                _UNRECOGNISED,
                "the test command has options that this pytest does not know: {0}",
                "A plugin is probably missing (pytest-cov for --cov, pytest-xdist for -n): install it.",
            ),
            (_NO_PLUGIN, "a pytest plugin can't be imported: {0}", f"Install it: `{where} {{0}}`."),
            (_MIN_VERSION, "pytest {1} is too old, {0} is required", f"Upgrade it: `{where} -U pytest`."),
            (
                _UNKNOWN_INI,
                "pytest does not know the setting {0}",
                f"The plugin that defines it is probably missing: `{where} <plugin>`.",
            ),
        ):
            match = pattern.search(output)
            if match:
                groups = [group for group in match.groups() if group]
                return text.format(*groups), remedy.format(*groups)
    module_errors = records.collect_errors
    if module_errors and len(module_errors) == len(tests):
        return _all_modules_broken(plan, records, where, root)
    if tests:
        return None
    missing = _NO_MODULE.search(output)
    if missing and not records.started and "conftest" not in output:
        return f"the module {missing.group(1)} is missing", f"Install it: `{where} {missing.group(1)}`."
    if records.internal_error is not None or records.exit_status == 3:
        return f"pytest failed internally: {records.internal_error or _last_lines(output)}", _DOCTOR
    if "ImportError while loading conftest" in output or "ConftestImportFailure" in output:
        remedy = "Fix conftest.py or install what it imports."
        if missing:
            remedy = f"Install it: `{where} {missing.group(1)}`."
        return f"conftest.py can't be imported: {_last_lines(output)}", remedy
    if records.exit_status in (0, 5) or records.collected == []:
        if process.exit_code not in (None, 0, 5) and records.exit_status is None:
            return f"the test process ended without a result: {_last_lines(output)}", _DOCTOR
        return (
            "no tests were collected",
            "Name the tests' folder in the test command or in pytest's `testpaths`.",
        )
    if not records.started or records.exit_status == 4 or not records.running:
        return f"the test command does not work: {_last_lines(output)}", _DOCTOR
    return None


_DOCTOR = "Run the test command by hand; `agent-ls doctor` shows which command and interpreter are used."


def _all_modules_broken(plan: TestPlan, records: Records, where: str, root: Path) -> tuple[str, str] | None:
    """No test module could be imported: the environment's fault, or that of the code under test?"""
    errors = list(records.collect_errors.values())
    names = [records.missing_modules[error.id] for error in errors if error.id in records.missing_modules]
    absent = [name for name in names if not _in_project(name, root)]
    if absent and len(names) == len(errors):
        missing = [name for name, _ in Counter(absent).most_common(3)]
        top = missing[0].partition(".")[0]
        return (
            f"no test module can be imported: the module {', '.join(missing)} is missing",
            f"Install the project and its test dependencies for {plan.interpreter} (`{where} {top}`, "
            f"`{where} -e .`), or choose another interpreter.",
        )
    if {error.error_type for error in errors} == {"SyntaxError"}:
        places = {place for error in errors for place in _SYNTAX_PLACE.findall(error.message or "")[-1:]}
        if len(places) > 1:
            return (
                f"every test module is a syntax error for {plan.interpreter}: probably the wrong Python",
                _INTERPRETER_REMEDY,
            )
    if all(error.stack and _is_installed(error.stack[-1].file) for error in errors):
        lines = (errors[0].message or "").strip().splitlines()
        return (
            f"no test module can be imported, an installed package fails: {lines[-1] if lines else ''}",
            f"Make `{plan.interpreter} -m {plan.kind}` work first; `agent-ls doctor` shows what is used.",
        )
    return None


_SYNTAX_PLACE = re.compile(r'File "([^"]+)", line \d+')


def _is_installed(file: str) -> bool:
    return any(part in file for part in ("site-packages/", "dist-packages/", "/lib/python"))


def _in_project(module: str, root: Path) -> bool:
    """Whether the tree holds what a missing module is a part of: the code is at fault, not the installation.

    A missing top-level package that lies in the tree is not installed: that is the environment's fault.
    """
    top, _, rest = module.partition(".")
    return bool(rest) and any((base / top).is_dir() for base in (root, root / "src", root / "lib"))


def _last_lines(output: str) -> str:
    lines = [line.strip() for line in output.strip().splitlines() if line.strip()]
    return " | ".join(lines[-3:])[-400:] or "no output"


def judge_command(
    plan: TestPlan,
    process: ProcessResult,
    tests: tuple[TestResult, ...] | None,
    requested: tuple[str, ...] | None,
) -> TestRun:
    """The run of a command that we only see from the outside: its JUnit report, or its exit code."""
    command_id = " ".join(plan.argv)
    source: Source = "junit" if tests else "exit-code"
    stopped = process.timed_out or process.cancelled
    problem = remedy = None
    outcome: Literal["passed", "failed", "env_broken", "timeout"]
    if not process.started or process.exit_code in (126, 127):
        outcome = "env_broken"
        problem = f"the test command can't be started: {_last_lines(process.output)}"
        remedy = "Install what it needs, or name another one with --test-command."
        tests = ()
    elif stopped:
        outcome, problem = "timeout", f"the run was stopped after {process.duration_s:.0f} s"
    else:
        outcome = "passed" if process.exit_code == 0 and process.problem is None else "failed"
    if not tests and outcome != "env_broken":
        result = Outcome.PASSED if outcome == "passed" else Outcome.FAILED
        message = None if outcome == "passed" else cap_message(process.output)
        tests = (TestResult(command_id, result, process.duration_s, message=message),)
    elif tests and outcome == "passed" and any(test.outcome.bad for test in tests):
        outcome = "failed"
    elif tests and outcome == "failed" and not any(test.outcome.bad for test in tests):
        message = cap_message(process.output)
        tests = (*tests, TestResult(command_id, Outcome.FAILED, message=message, error_type="ExitCode"))
    return TestRun(
        command=plan.argv,
        outcome=outcome,
        tests=tests or (),
        source=source,
        exit_code=process.exit_code if process.signal is None else 128 + process.signal,
        duration_s=process.duration_s,
        output=cap_message(process.output, _OUTPUT_KEPT),
        truncated=stopped or process.problem is not None,
        problem=problem or process.problem,
        remedy=remedy,
        requested=requested,
    )

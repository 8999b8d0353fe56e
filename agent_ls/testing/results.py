"""Plain data: what a test run and a comparison of two runs say."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from attrs import field, frozen


class Outcome(StrEnum):
    """Outcome of one test."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    XPASSED = "xpassed"

    @property
    def bad(self) -> bool:
        return self in (Outcome.FAILED, Outcome.ERROR)


@frozen
class Frame:
    """One stack frame; `file` is relative to the repository where it lies inside it."""

    file: str
    line: int
    function: str


@frozen
class TestResult:
    """One test's outcome. `id` is what the runner accepts back; `line` is 1-based.

    `message` is the error as the runner shows it (capped); `error_type` the exception's class name;
    `stack` has the outermost frame first.
    """

    __test__ = False

    id: str
    outcome: Outcome
    duration_s: float = 0.0
    file: str | None = None
    line: int | None = None
    message: str | None = None
    error_type: str | None = None
    stack: tuple[Frame, ...] = ()


RunOutcome = Literal["passed", "failed", "env_broken", "timeout"]


@frozen
class TestRun:
    """One run of the test command.

    `source` says how outcomes were obtained: our pytest or unittest plugin, a JUnit file, or nothing
    but the exit code. `outcome` is `env_broken` when the run says nothing about the code, with the
    reason in `problem` and what to do in `remedy`. `truncated` means that the run ended early (crash,
    deadline, cancel) and `tests` holds what was known by then. `requested` is None for the full suite;
    `unknown` are those requested ids that name no test.
    """

    __test__ = False

    command: tuple[str, ...]
    outcome: RunOutcome
    tests: tuple[TestResult, ...] = ()
    source: Literal["pytest", "unittest", "junit", "exit-code"] = "exit-code"
    exit_code: int | None = None
    duration_s: float = 0.0
    output: str = ""
    truncated: bool = False
    problem: str | None = None
    remedy: str | None = None
    requested: tuple[str, ...] | None = None
    unknown: tuple[str, ...] = ()

    def by_id(self) -> dict[str, TestResult]:
        return {test.id: test for test in self.tests}

    def counts(self) -> dict[str, int]:
        """Counts in the report's four classes; an expected failure counts as passed."""
        counts = {"passed": 0, "failed": 0, "errors": 0, "skipped": 0}
        names = {
            Outcome.PASSED: "passed",
            Outcome.XFAILED: "passed",
            Outcome.XPASSED: "passed",
            Outcome.FAILED: "failed",
            Outcome.ERROR: "errors",
            Outcome.SKIPPED: "skipped",
        }
        for test in self.tests:
            counts[names[test.outcome]] += 1
        return counts


@frozen
class Comparison:
    """A run against the baseline, test ids in the runner's order.

    `fixed`: failed in the baseline, pass now. `regressed`: passed (or were skipped on purpose), fail
    now. `still_failing`: asked for and failing in both. `pre_existing`: failing in both and not asked
    for. `added`: unknown to the baseline. `missing`: in the baseline, expected in this run and not
    reported. `flaky`: changed its outcome without a change of code.
    """

    fixed: tuple[str, ...] = ()
    regressed: tuple[str, ...] = ()
    still_failing: tuple[str, ...] = ()
    pre_existing: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    flaky: tuple[str, ...] = field(default=())

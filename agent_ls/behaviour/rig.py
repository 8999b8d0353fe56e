"""Runs over a bench within a time budget, and what became of each test in them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from attrs import define, field, frozen

from agent_ls.behaviour.bench import Bench, Side
from agent_ls.behaviour.model import NotChecked
from agent_ls.cancel import CancelToken
from agent_ls.guard.trees import Tree
from agent_ls.testing._records import Coverage
from agent_ls.testing.results import Outcome, TestResult, TestRun
from agent_ls.workspace.paths import is_test_path

State = Literal["passes", "fails", "gone", "unusable", "skipped", "xfails"]

PER_TEST_S = 30.0
HANGS = ("TestTimeout", "ProcessEnded")
"""Error types of tests that did not end by themselves."""
_LEAST_S = 0.5


class OutOfBudget(Exception):
    """There is no time left for another run."""


@frozen
class Cell:
    """One test (all its rows) in one mixture.

    `gone`: not reported. `unusable`: it can't be imported, or uses a name, a fixture or a parameter that
    is not there; that says nothing about what it checks. `ids` are what the runner calls its rows; `why` is
    the result that decided.
    """

    state: State
    ids: tuple[str, ...] = ()
    why: TestResult | None = None


@frozen
class Table:
    """One run, test by test. `label`s are "path::id" without parameters."""

    cells: Mapping[str, Cell]
    run: TestRun
    coverage: Coverage
    broken: Mapping[str, TestResult]
    """Files that could not be collected."""

    def cell(self, label: str) -> Cell:
        found = self.cells.get(label)
        if found is not None:
            return found
        why = self.broken.get(label.partition("::")[0])
        return Cell("gone") if why is None else Cell("unusable", (), why)


@define
class Rig:
    """Runs of one comparison. `deadline` is on the monotonic clock."""

    bench: Bench
    trees: Mapping[Side, Tree]
    deadline: float
    cancel: CancelToken
    say: Callable[[str], None]
    not_checked: list[NotChecked] = field(factory=list)
    runs: int = 0
    _modules: dict[str, str] = field(factory=dict)

    @property
    def left(self) -> float:
        return self.deadline - time.monotonic()

    def skip(self, what: str, why: str) -> None:
        """Note that something was not checked; once."""
        note = NotChecked(what, why)
        if note not in self.not_checked:
            self.not_checked.append(note)

    def run(
        self,
        tests: Side,
        sources: Side,
        ids: Sequence[str] | None,
        *,
        edits: Mapping[str, bytes] | None = None,
        trace: bool = False,
        quick: bool = False,
        per_test_s: float = PER_TEST_S,
        run_s: float | None = None,
    ) -> TestRun:
        """Lay out and run. Raises OutOfBudget before a run, and Cancelled."""
        self.cancel.raise_if_cancelled()
        if self.left < _LEAST_S:
            raise OutOfBudget
        self.bench.lay_out(tests, sources, edits)
        self.runs += 1
        run = self.bench.run(
            ids,
            timeout=self.left if run_s is None else min(run_s, self.left),
            cancel=self.cancel,
            per_test_timeout=min(per_test_s, self.left),
            trace=trace,
            quick=quick,
        )
        self.cancel.raise_if_cancelled()
        return run

    def table(self, tests: Side, sources: Side, ids: Sequence[str] | None, **options: object) -> Table:
        """As `run`, read test by test."""
        run = self.run(tests, sources, ids, **options)  # type: ignore[arg-type]
        return self.read(run, dict(self.bench.coverage()) if options.get("trace") else {})

    def read(self, run: TestRun, coverage: Coverage | None = None) -> Table:
        """A run as a table."""
        rows: dict[str, list[TestResult]] = {}
        broken: dict[str, TestResult] = {}
        for test in run.tests:
            label = self.label(test)
            if "::" not in label and run.source == "pytest":
                broken[label] = test
            else:
                rows.setdefault(label, []).append(test)
        covered: Coverage = {}
        for test in run.tests:
            lines = (coverage or {}).get(test.id)
            if lines is not None:
                into = covered.setdefault(self.label(test), {})
                for path, numbers in lines.items():
                    into[path] = into.get(path, frozenset()) | numbers
        return Table({label: cell_of(found) for label, found in rows.items()}, run, covered, broken)

    def label(self, test: TestResult) -> str:
        """`path::Class::name` of a result, without parameters."""
        name = test.id.partition("[")[0]
        if "::" in name or self.bench.plan.kind != "unittest":
            return name
        parts = name.split(".")
        for size in range(len(parts) - 1, 0, -1):
            path = "/".join(parts[:size]) + ".py"
            if any(path in self._paths(side) for side in self.trees):
                return "::".join([path, *parts[size:]])
        return name

    def _paths(self, side: Side) -> Mapping[str, str]:
        if not self._modules:
            self._modules = {path: path for tree in self.trees.values() for path in tree.paths()}
        return self._modules


def cell_of(rows: Sequence[TestResult]) -> Cell:
    """All rows of a parametrised test together: one bad row is a bad test."""
    ids = tuple(dict.fromkeys(row.id for row in rows))
    bad = [row for row in rows if row.outcome.bad]
    real = [row for row in bad if not is_unusable(row)]
    if real:
        return Cell("fails", ids, real[0])
    if bad:
        return Cell("unusable", ids, bad[0])
    for outcomes, state in _STATES:
        for row in rows:
            if row.outcome in outcomes:
                return Cell(state, ids, row)
    return Cell("gone", ids)


_STATES: tuple[tuple[tuple[Outcome, ...], State], ...] = (
    ((Outcome.PASSED, Outcome.XPASSED), "passes"),
    ((Outcome.XFAILED,), "xfails"),
    ((Outcome.SKIPPED,), "skipped"),
)


def is_unusable(result: TestResult) -> bool:
    """Does a failure only say that the test and the code do not fit together (a name, a parameter), or that
    the test did not end?"""
    kind = result.error_type
    if kind in HANGS:
        return True
    if kind in ("ImportError", "ModuleNotFoundError", "FixtureLookupError", "SyntaxError", "CollectError"):
        return True
    text = result.message or ""
    if result.outcome is Outcome.ERROR and "fixture '" in text and "not found" in text:
        return True
    if kind in ("AttributeError", "NameError", "TypeError"):
        last = result.stack[-1].file if result.stack else result.file
        return last is not None and is_test_path(last)
    return False


def telling(result: TestResult | None) -> str:
    """The line of a failure that says most."""
    if result is None:
        return ""
    lines = [line.strip() for line in (result.message or "").splitlines() if line.strip()]
    errors = [line[1:].strip() for line in lines if line.startswith("E ")]
    text = errors[0] if errors else (lines[-1] if lines else result.error_type or str(result.outcome))
    return text[:160]


def stopped(run: TestRun) -> str | None:
    """Why a run says nothing (or not enough), or None."""
    if run.outcome == "env_broken":
        return run.problem or "the tests can't be run"
    if run.outcome == "timeout":
        return run.problem or "the run was stopped at its time limit"
    return None


def nothing_collected(run: TestRun) -> bool:
    """Did the runner work and find no test at all?"""
    problem = run.problem or ""
    return (
        run.outcome == "env_broken"
        and not run.tests
        and problem.startswith(("no tests were collected", "no such tests"))
    )


__all__ = ["Cell", "OutOfBudget", "Rig", "Table", "cell_of", "nothing_collected", "stopped", "telling"]

"""Judges the state of the worktree by tests: asked first, then affected, then the full suite."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from attrs import asdict, define, evolve, field, frozen

from agent_ls.agent.checking import check_session
from agent_ls.agent.progress import error_signature
from agent_ls.agent.session import Session
from agent_ls.agent.stops import HandOver
from agent_ls.errors import EnvBroken, UsageError
from agent_ls.guard.protected import Finding
from agent_ls.testing.affected import affected_tests
from agent_ls.testing.compare import compare
from agent_ls.testing.flaky import confirm
from agent_ls.testing.ids import expand_ids, file_of
from agent_ls.testing.results import Comparison, Outcome, TestResult, TestRun
from agent_ls.workspace.paths import is_test_path

_QUICK = frozenset({"probe", "asked", "affected", "asked-by-model"})
"""Stages that may run in a process forked from a warm one; a proof always takes fresh ones."""
DEFAULT_TEST_TIMEOUT_S = 60.0
"""One test may take this long in the baseline when nothing is configured."""


@frozen
class Judgement:
    """What the tests say about one tree.

    `stage` is the last stage that ran ("asked", "affected" or "full"). `sound` means that something
    changed, the full suite shows no regression and the guard is clean; `green` that the proof is complete:
    sound, and all asked tests pass, or an added test proves it, or nothing but soundness was asked.
    `advanced` says that it got further than every state before it.
    """

    tree: str
    stage: str
    sound: bool
    green: bool
    comparison: Comparison
    results: Mapping[str, TestResult]
    findings: tuple[Finding, ...] = ()
    problem: str | None = None
    proven_by: tuple[str, ...] = ()
    advanced: bool = False

    @property
    def worth_keeping(self) -> bool:
        """Would a person rather go on from here than from the untouched tree?"""
        won, lost = len(self.comparison.fixed), len(self.comparison.regressed)
        return not self.blocked and (self.green or won > lost or (self.advanced and not lost))

    @property
    def blocked(self) -> bool:
        """Does the change break a rule? Such a state is never kept, whatever its tests say."""
        return any(finding.severity == "block" for finding in self.findings)

    @property
    def failing(self) -> tuple[TestResult, ...]:
        wanted = {*self.comparison.still_failing, *self.comparison.regressed}
        return tuple(result for id, result in self.results.items() if id in wanted)

    @property
    def signature(self) -> frozenset[tuple[str, str]]:
        return error_signature(self.failing)


@define
class Judge:
    """Runs tests for one session and remembers the best state so far.

    `to_fix` are the asked tests that reliably fail on the untouched tree: only they prove a fix. `flaky`
    are all tests seen to change by chance, `unsteady` those of the asked ones that did so in the baseline.
    """

    session: Session
    best: Judgement | None = None
    final: Judgement | None = None
    coverage: dict[str, dict[str, frozenset[int]]] = field(factory=dict)
    flaky: set[str] = field(factory=set)
    to_fix: tuple[str, ...] = ()
    unsteady: frozenset[str] = frozenset()
    _per_test: float | None = None

    # -- baseline -----------------------------------------------------------------------------

    def baseline(self, *, need_failing: bool) -> TestRun:
        """Run the untouched tree once, and the failing asked tests once more.

        Raises EnvBroken (editing would be wrong), UsageError (an asked test does not exist) and
        HandOver (nothing fails although a failing test is needed).
        """
        session = self.session
        self._refuse_missing_files(session.task.tests)
        session.phase("baseline", "running the test suite before any change")
        self._per_test = session.settings.per_test_timeout or min(
            DEFAULT_TEST_TIMEOUT_S, session.settings.test_timeout / 2
        )
        run = self._run(None, "baseline")
        if run.outcome == "env_broken":
            raise EnvBroken(f"the tests can't be run: {run.problem}", run.remedy)
        if not run.tests:
            raise EnvBroken("the test run reported no test", run.remedy or "Look at `agent-ls test`.")
        session.baseline = run
        if session.task.tests:
            session.asked = self._expand(session.task.tests, run)
        else:
            session.asked = tuple(test.id for test in run.tests if test.outcome.bad)
        failing = [id for id in session.asked if run.by_id()[id].outcome.bad]
        if failing:
            # each hang costs a whole time limit and is hardly chance: one is traced, the rest believed
            hanging = [id for id in failing if _hangs(run.by_id()[id])]
            once_more = [id for id in failing if id not in hanging[1:]]
            again = self._run(once_more, "baseline-again", trace=run.source in ("pytest", "unittest"))
            self.coverage = session.runner.coverage
            outcomes = again.by_id()
            self.flaky |= {id for id in failing if id in outcomes and not outcomes[id].outcome.bad}
            self.unsteady = frozenset(self.flaky)
            failing = [id for id in failing if id not in self.flaky]
        self.to_fix = tuple(failing)
        if not failing and need_failing:
            raise HandOver("nothing_fails", _nothing_fails(session.task.tests, self.flaky))
        if session.settings.per_test_timeout is None:
            slowest = max((t.duration_s for t in run.tests if not t.outcome.bad), default=0.0)
            self._per_test = max(10.0, 10 * slowest)
        session.progress.start(run.by_id(), session.asked, session.base_tree)
        return run

    def _refuse_missing_files(self, wanted: Sequence[str]) -> None:
        """Tell of a mistyped path before the suite has run."""
        root = self.session.worktree.path
        for name in wanted:
            file = file_of(name) if "::" in name else ""
            if file and not (root / file).exists():
                raise UsageError(
                    f"the test {name!r} can't be found: there is no file {file!r}",
                    "Paths are those from the repository's root; `agent-ls test` lists the tests.",
                )

    def _expand(self, wanted: Sequence[str], run: TestRun) -> tuple[str, ...]:
        known = [test.id for test in run.tests]
        for name in wanted:
            if not set(expand_ids([name], run)) & set(known):
                near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
                hint = f"The nearest are: {', '.join(near)}" if near else "`agent-ls test` lists the tests."
                raise UsageError(f"the test suite has no test {name!r}", hint)
        results = run.by_id()
        return tuple(
            id
            for id in expand_ids(wanted, run)
            # a skipped test of a named file or group is not asked for; one named itself is
            if id in wanted or results[id].outcome not in (Outcome.SKIPPED, Outcome.XFAILED)
        )

    # -- judging ------------------------------------------------------------------------------

    def judge(self, label: str, *, suspect: str | None = None, count: bool = True) -> Judgement:
        """Judge the worktree as it is now and record the attempt.

        `count` is False where a whole round of attempts counts as one failure. Raises HandOver when
        the no-progress detector says so; the judgement is recorded before that.
        """
        session = self.session
        session.cancel.raise_if_cancelled()
        tree = session.worktree.write_tree()
        strays = session.worktree.remove_unstored()
        if strays:
            session.note(
                f"removed before testing, because git would not store it: {', '.join(strays[:5])}", "warning"
            )
        judgement = self._stages(tree)
        session.attempts += 1
        broken = [*judgement.comparison.regressed, *(f.path for f in judgement.findings if judgement.blocked)]
        made, reason = session.progress.compare(judgement.results, broken)
        judgement = evolve(judgement, advanced=made)
        taught = describe(judgement, session.asked, reason if made else None)
        session.log.append(
            "attempt",
            n=session.attempts,
            label=label,
            suspect=suspect,
            tree=tree,
            diff=session.worktree.diff(session.base_tree, tree),
            taught=taught,
        )
        if tree != session.base_tree and (self.best is None or self._better(judgement)):
            self.best = judgement
        try:
            session.progress.judged(tree, judgement.results, broken, count=count and not judgement.green)
        finally:
            fixed = len(judgement.comparison.fixed)
            session.log.append(
                "progress",
                made=made or judgement.green,
                reason=reason,
                failures_in_a_row=session.progress.failures,
                best_fixed=fixed,
                asked=len(session.asked),
            )
        return judgement

    def _better(self, new: Judgement) -> bool:
        return self._rank(new) > self._rank(self.best) if self.best else True

    def _rank(self, judgement: Judgement) -> tuple[bool, bool, bool, bool, int, int]:
        size = len(self.session.worktree.diff(self.session.base_tree, judgement.tree))
        clean = not judgement.comparison.regressed
        won = len(judgement.comparison.fixed)
        return (judgement.green, not judgement.blocked, judgement.worth_keeping, clean, won, -size)

    def _stages(self, tree: str) -> Judgement:
        session, baseline = self.session, self.session.baseline
        assert baseline is not None
        asked = [id for id in session.asked if id not in self.unsteady]
        results: dict[str, TestResult] = {}
        hanging = [id for id in asked if _hangs(baseline.by_id()[id])]
        if len(hanging) > 1:  # each hang costs a whole time limit: one is enough to reject
            run = self._run(hanging[:1], "probe", tree=tree)
            if any(_hangs(test) for test in run.tests):
                return self._compare(tree, "asked", run, baseline.by_id() | run.by_id())
        if asked:
            run = self._run(asked, "asked", tree=tree)
            results |= run.by_id()
            judgement = self._compare(tree, "asked", run, results)
            if (
                judgement.problem
                or any(id not in results or results[id].outcome.bad for id in asked)
                or judgement.comparison.regressed
                or judgement.comparison.still_failing
            ):
                return judgement
        changed = [change.path for change in session.worktree.changed_files(session.base_tree, tree)]
        affected = affected_tests(session.worktree.path, changed, baseline, self.coverage or None)
        if affected is not None and 0 < len(affected) < len(baseline.tests) // 2:
            run = self._run(affected, "affected", tree=tree)
            results |= run.by_id()
            judgement = self._compare(tree, "affected", run, results)
            if judgement.problem or judgement.comparison.regressed:
                return judgement
        run = self._run(None, "full", tree=tree)
        results = {**results, **run.by_id()}
        return self._finish_full(self._compare(tree, "full", run, results), asked, changed)

    def _finish_full(self, judgement: Judgement, asked: Sequence[str], changed: Sequence[str]) -> Judgement:
        session = self.session
        comparison = judgement.comparison
        findings = check_session(session, judgement.tree)
        if findings:
            session.log.append("guard", findings=[finding.to_json() for finding in findings])
        passing = [id for id in asked if id in comparison.fixed or _passes(judgement.results.get(id))]
        sound = (
            judgement.problem is None
            and not comparison.regressed
            and not comparison.missing
            and not any(finding.severity == "block" for finding in findings)
            and bool(changed)
        )
        if self.to_fix and session.settings.tests != "edit":
            # nothing but new tests: they may hide what they should test, they can't mend it
            sound = sound and not all(is_test_path(path) for path in changed)
        proven = len(passing) == len(asked) and (
            bool(self.to_fix) or session.settings.permission == "refactor"
        )
        return evolve(judgement, sound=sound, green=sound and proven, findings=findings)

    def _compare(self, tree: str, stage: str, run: TestRun, results: Mapping[str, TestResult]) -> Judgement:
        session, baseline = self.session, self.session.baseline
        assert baseline is not None
        comparison = compare(baseline, run, session.asked)
        alone = not comparison.still_failing  # a state that fails anyway is not worth runs for certainty
        if comparison.regressed and alone and run.outcome != "env_broken":
            excused = self._flaky_now(comparison.regressed, run, stage, tree)
            keep = tuple(id for id in comparison.regressed if id not in excused)
            comparison = evolve(comparison, regressed=keep)
        if self.flaky:
            seen = sorted(self.flaky & {test.id for test in run.tests} - set(comparison.regressed))
            comparison = evolve(comparison, flaky=tuple(seen))
        session.log.append("comparison", **_plain(asdict(comparison)), tree=tree, stage=stage)
        problem = run.problem if run.outcome == "env_broken" else None
        if run.outcome == "timeout" and stage == "full" and baseline.outcome != "timeout":
            problem = f"the suite did not end within {session.settings.test_timeout:g} s; before it did"
        return Judgement(tree, stage, False, False, comparison, results, problem=problem)

    def _flaky_now(self, ids: Sequence[str], run: TestRun, stage: str, tree: str) -> set[str]:
        """Which regressions of `run` are chance. Asked anew for each tree: another change may cause them."""
        session = self.session
        seconds = min(session.settings.test_timeout, max(self.allowance(), session.meter.remaining_s()))
        found = set(confirm(session.runner, ids, run, cancel=session.cancel, timeout=seconds))
        session.cancel.raise_if_cancelled()
        self._restore(tree)
        if stage == "full" and found:
            # passing alone is no excuse: the change may let one test spoil another
            again = self._run(None, "full-again", tree=tree).by_id()
            found = {id for id in found if id in again and not again[id].outcome.bad}
            self.flaky |= found
        return found

    # -- runs ---------------------------------------------------------------------------------

    def run_for_model(self, ids: Sequence[str]) -> TestRun:
        """The run behind the `run_tests` tool: validated ids, nothing counted as an attempt."""
        baseline = self.session.baseline
        assert baseline is not None
        return self._run(list(ids) or None, "asked-by-model")

    def allowance(self) -> float:
        """Seconds that one run of the suite needs at most, judged by the baseline.

        A run may overdraw the time limit by so much: cut off in the middle it would prove nothing.
        """
        baseline = self.session.baseline
        return 5.0 + 3 * baseline.duration_s if baseline is not None else 1.0

    def trace(self, ids: Sequence[str]) -> dict[str, dict[str, frozenset[int]]]:
        """Lines that each of the tests executes, by test id and path."""
        self._run(ids, "trace", trace=True)
        return dict(self.session.runner.coverage)

    def _run(
        self, ids: Sequence[str] | None, stage: str, *, trace: bool = False, tree: str | None = None
    ) -> TestRun:
        session = self.session
        before = tree or session.worktree.write_tree()
        seconds = min(session.settings.test_timeout, max(self.allowance(), session.meter.remaining_s()))
        if ids is not None and stage in _QUICK:
            run = session.quick.run(
                ids, timeout=seconds, cancel=session.cancel, per_test_timeout=self._per_test
            )
        else:
            run = session.runner.run(
                ids, timeout=seconds, cancel=session.cancel, trace=trace, per_test_timeout=self._per_test
            )
        self._restore(before)
        session.log.append("test_run", stage=stage, run=run_to_plain(run))
        session.cancel.raise_if_cancelled()
        return run

    def _restore(self, tree: str) -> None:
        """Put back what a test run changed in the worktree: the verdict is about the edit alone."""
        after = self.session.worktree.write_tree()
        if after != tree:
            names = [change.path for change in self.session.worktree.changed_files(tree, after)]
            self.session.worktree.reset_to(tree)
            shown = ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
            self.session.note(f"the tests changed files of the session's copy, put back: {shown}", "warning")

    # -- proof without a failing test ------------------------------------------------------------

    def prove_with_added(self, judgement: Judgement) -> tuple[str, ...]:
        """Ids of added tests that fail on the base's source and pass now; empty if none does.

        The proof for a task without failing tests: the new test files are laid over the base tree,
        run there, and the worktree is put back.
        """
        session = self.session
        added = judgement.comparison.added
        passing = [id for id in added if _passes(judgement.results.get(id))]
        if not passing:
            return ()
        changes = session.worktree.changed_files(session.base_tree, judgement.tree)
        new_files = {
            change.path: session.worktree.read_blob(judgement.tree, change.path)
            for change in changes
            if change.status == "added" and is_test_path(change.path)
        }
        session.phase("proof", "running the added tests against the code as it was")
        session.worktree.reset_to(session.base_tree)
        try:
            for path, content in new_files.items():
                if content is not None:
                    target = session.worktree.path / path
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(content)
            run = self._run(passing, "proof")
        finally:
            session.worktree.reset_to(judgement.tree)
        before = run.by_id()
        return tuple(id for id in passing if id not in before or before[id].outcome.bad)


def _hangs(result: TestResult) -> bool:
    return result.error_type == "TestTimeout"


def _passes(result: TestResult | None) -> bool:
    return result is not None and result.outcome == "passed"


def describe(judgement: Judgement, asked: Sequence[str], progress: str | None = None) -> str:
    """One or two sentences on what a judged state taught."""
    comparison = judgement.comparison
    if judgement.green:
        return f"all {len(asked)} asked tests pass, the full suite has no regression"
    if judgement.problem:
        return judgement.problem
    parts = []
    if asked:
        parts.append(f"{len(comparison.fixed)} of {len(asked)} asked tests fixed")
    if comparison.regressed:
        parts.append(f"{len(comparison.regressed)} regressed ({comparison.regressed[0]})")
    if comparison.missing:
        parts.append(f"{len(comparison.missing)} no longer run ({comparison.missing[0]})")
    if judgement.findings:
        parts.append(judgement.findings[0].place_and_message)
    if progress:
        parts.append(progress)
    failing = judgement.failing
    if failing:
        parts.append(f"first error: {first_line(failing[0])}")
    return "; ".join(parts)


def first_line(result: TestResult) -> str:
    """The telling line of a failure: pytest's `E` line if there is one, else the last line."""
    lines = [line.strip() for line in (result.message or "").splitlines() if line.strip()]
    errors = [line[1:].strip() for line in lines if line.startswith("E ")]
    text = errors[0] if errors else (lines[-1] if lines else result.error_type or str(result.outcome))
    return text[:200]


def _nothing_fails(named: Sequence[str], flaky: Collection[str]) -> str:
    if flaky:
        return (
            f"{len(flaky)} of the asked tests fail only sometimes without any change of code "
            f"({next(iter(sorted(flaky)))}): a flaky test proves nothing"
        )
    if named:
        return "the named tests already pass before any change, so nothing would prove a fix"
    return (
        "no test fails before any change, so nothing would prove a fix. Write a failing test first, or use "
        "a model with tools, which can add one (see README, models)"
    )


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {key: list(value) for key, value in values.items()}


def run_to_plain(run: TestRun, cap: int = 4000) -> dict[str, Any]:
    """A run as JSON data; output is capped, passing tests keep only id, outcome and time."""
    plain = asdict(run)
    plain["output"] = run.output[-cap:]
    plain["tests"] = [
        {key: value for key, value in test.items() if value not in (None, [], ())} for test in plain["tests"]
    ]
    return plain

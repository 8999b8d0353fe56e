"""Judges the state of the worktree by tests: asked first, then affected, then the full suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import define, evolve, field

from agent_ls.agent import edited_tests
from agent_ls.agent.baseline import take_baseline
from agent_ls.agent.checking import check_session
from agent_ls.agent.judgement import (
    Judgement,
    comparison_to_plain,
    describe,
    hangs,
    passes,
    ruled_out,
    run_to_plain,
)
from agent_ls.agent.progress import State, error_signature, fingerprint, reach
from agent_ls.agent.session import Session
from agent_ls.agent.trivial import changed_lines, only_comments, places_of
from agent_ls.behaviour.model import Behaviour
from agent_ls.guard.protected import Finding
from agent_ls.testing.affected import affected_tests
from agent_ls.testing.compare import compare
from agent_ls.testing.flaky import confirm
from agent_ls.testing.results import TestResult, TestRun
from agent_ls.workspace.paths import is_test_path

_QUICK = frozenset({"probe", "asked", "affected", "asked-by-model"})
"""Stages that may run in a process forked from a warm one; a proof always takes fresh ones."""
_PLACED_FILES = 4
"""Of a change of more files the first ones say where it is."""


@define
class Judge:
    """Runs tests for one session and remembers the best state so far.

    `to_fix` are the asked tests that reliably fail on the untouched tree: only they prove a fix. `flaky`
    are all tests seen to change by chance, `unsteady` those of the asked ones that did so in the baseline.
    `best` is never a state that the guard refuses; the last of those is `refused`, their number `refusals`.
    """

    session: Session
    best: Judgement | None = None
    final: Judgement | None = None
    refused: Judgement | None = None
    refusals: int = 0
    coverage: dict[str, dict[str, frozenset[int]]] = field(factory=dict)
    flaky: set[str] = field(factory=set)
    to_fix: tuple[str, ...] = ()
    unsteady: frozenset[str] = frozenset()
    per_test: float | None = None
    behaviours: dict[str, Behaviour] = field(factory=dict)
    """What running both forms of edited tests said, by tree."""
    new_forms: dict[str, TestRun] = field(factory=dict)
    """Full runs of edited tests as they are now, by tree."""
    _before: tuple[str, str] = ("", "")
    """Tree and failures (their fingerprint) of the state judged last."""

    def baseline(self, *, need_failing: bool) -> TestRun:
        """See `take_baseline`."""
        return take_baseline(self, need_failing=need_failing)

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
        state = self._state(judgement, count)
        made, reason = session.progress.compare(state.reach, state.broken)
        judgement = evolve(judgement, advanced=made)
        same = bool(state.errors) and state.errors == self._before[1]
        session.log.append(
            "attempt",
            n=session.attempts,
            label=label,
            suspect=suspect,
            tree=tree,
            diff=session.worktree.diff(session.base_tree, tree),
            taught=describe(judgement, session.asked, reason if made else None),
            rules_out=ruled_out(judgement, state.places, same, state.idle),
            state=state.to_json(),
        )
        self._before = (tree, state.errors)
        if judgement.blocked:
            self.refused, self.refusals = judgement, self.refusals + 1
        elif tree != session.base_tree and (self.best is None or self._better(judgement)):
            self.best = judgement
        try:
            session.progress.judged(state)
        finally:
            session.log.append(
                "progress",
                made=made or judgement.green,
                reason=reason,
                failures_in_a_row=session.progress.failures,
                best_fixed=len(judgement.comparison.fixed),
                asked=len(session.asked),
            )
        return judgement

    def refuses(self, judgement: Judgement) -> bool:
        """Is the state to be put back at once? Where tests may be edited, one that still breaks others may be
        half of a move, and is judged by its tests first."""
        half = self.session.settings.tests == "edit" and judgement.comparison.regressed
        return judgement.blocked and not half

    def _state(self, judgement: Judgement, count: bool) -> State:
        """What the no-progress detector sees of a judged state."""
        session, tree = self.session, judgement.tree
        before = self._before[0] or session.base_tree
        places: list[str] = []
        idle = before != tree
        for change in session.worktree.changed_files(before, tree)[:_PLACED_FILES]:
            old = session.worktree.read_blob(before, change.old_path or change.path)
            new = session.worktree.read_blob(tree, change.path)
            texts = [(data or b"").decode("utf-8", "replace") for data in (old, new)]
            idle = idle and change.status == "modified" and only_comments(change.path, *texts)
            if new is not None:
                places += places_of(change.path, texts[0], texts[1])
            else:
                places.append(change.path)
        return State(
            tree=tree,
            reach={id: reach(judgement.results.get(id)) for id in session.asked},
            errors=fingerprint(error_signature(judgement.failing)),
            broken=(
                *judgement.comparison.regressed,
                *dict.fromkeys(finding.path for finding in judgement.blocking),
            ),
            size=changed_lines(session.worktree.diff(session.base_tree, tree)),
            idle=idle,
            places=tuple(places),
            counted=count and not (judgement.green or judgement.for_review) and not self.refuses(judgement),
        )

    def _better(self, new: Judgement) -> bool:
        return self._rank(new) > self._rank(self.best) if self.best else True

    def _rank(self, judgement: Judgement) -> tuple[bool, bool, bool, bool, int, int]:
        size = len(self.session.worktree.diff(self.session.base_tree, judgement.tree))
        clean = not judgement.comparison.regressed
        won = len(judgement.comparison.fixed)
        return (judgement.green, judgement.for_review, judgement.worth_keeping, clean, won, -size)

    def _stages(self, tree: str) -> Judgement:
        session, baseline = self.session, self.session.baseline
        assert baseline is not None
        changes = session.worktree.changed_files(session.base_tree, tree)
        changed = [change.path for change in changes]
        if edited_tests.edited_paths(session, changes):
            return edited_tests.judge_edited(self, tree, changes)
        asked = self.steady_asked
        results: dict[str, TestResult] = {}
        hanging = [id for id in asked if hangs(baseline.by_id()[id])]
        if len(hanging) > 1:  # each hang costs a whole time limit: one is enough to reject
            run = self.run(hanging[:1], "probe", tree=tree)
            if any(hangs(test) for test in run.tests):
                return self.compare(tree, "asked", run, baseline.by_id() | run.by_id())
        if asked:
            run = self.run(asked, "asked", tree=tree)
            results |= run.by_id()
            judgement = self.compare(tree, "asked", run, results)
            if (
                judgement.problem
                or any(id not in results or results[id].outcome.bad for id in asked)
                or judgement.comparison.regressed
                or judgement.comparison.still_failing
            ):
                return judgement
        affected = affected_tests(session.worktree.path, changed, baseline, self.coverage or None)
        if affected is not None and 0 < len(affected) < len(baseline.tests) // 2:
            run = self.run(affected, "affected", tree=tree)
            results |= run.by_id()
            judgement = self.compare(tree, "affected", run, results)
            if judgement.problem or judgement.comparison.regressed:
                return judgement
        run = self.run(None, "full", tree=tree)
        results = {**results, **run.by_id()}
        judgement = self.compare(tree, "full", run, results)
        return self.conclude(judgement, self.check(tree), changed)

    @property
    def steady_asked(self) -> list[str]:
        """The asked tests whose outcome means something."""
        return [id for id in self.session.asked if id not in self.unsteady]

    def check(self, tree: str) -> tuple[Finding, ...]:
        """What the guard says about the change from the base to `tree`; recorded."""
        findings = check_session(self.session, tree)
        if findings:
            self.session.log.append("guard", findings=[finding.to_json() for finding in findings])
        return findings

    def conclude(
        self, judgement: Judgement, findings: tuple[Finding, ...], changed: Sequence[str]
    ) -> Judgement:
        """The full suite's judgement with what the guard says and whether the proof is complete."""
        comparison, asked = judgement.comparison, self.steady_asked
        passing = [id for id in asked if id in comparison.fixed or passes(judgement.results.get(id))]
        sound = (
            judgement.problem is None
            and not comparison.regressed
            and not comparison.missing
            and not any(finding.severity == "block" for finding in findings)
            and not any(
                judgement.results[id].outcome.bad for id in comparison.added if id in judgement.results
            )
            and bool(changed)
        )
        if self.to_fix and self.session.settings.tests != "edit":
            # nothing but new tests: they may hide what they should test, they can't mend it
            sound = sound and not all(is_test_path(path) for path in changed)
        proven = len(passing) == len(asked) and (
            bool(self.to_fix) or self.session.settings.permission == "refactor"
        )
        return evolve(judgement, sound=sound, proven=proven, findings=findings)

    def compare(self, tree: str, stage: str, run: TestRun, results: Mapping[str, TestResult]) -> Judgement:
        """A run against the baseline; regressions that come and go by chance are excused, and recorded."""
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
        session.log.append("comparison", **comparison_to_plain(comparison), tree=tree, stage=stage)
        problem = run.problem if run.outcome == "env_broken" else None
        if run.outcome == "timeout" and stage == "full" and baseline.outcome != "timeout":
            problem = f"the suite did not end within {session.settings.test_timeout:g} s; before it did"
        return Judgement(tree, stage, False, False, comparison, results, problem=problem)

    def _flaky_now(self, ids: Sequence[str], run: TestRun, stage: str, tree: str) -> set[str]:
        """Which regressions of `run` are chance. Asked anew for each tree: another change may cause them."""
        session = self.session
        found = set(confirm(session.runner, ids, run, cancel=session.cancel, timeout=self.seconds()))
        session.cancel.raise_if_cancelled()
        self.restore(tree)
        if stage == "full" and found:
            # passing alone is no excuse: the change may let one test spoil another
            again = self.run(None, "full-again", tree=tree).by_id()
            found = {id for id in found if id in again and not again[id].outcome.bad}
            self.flaky |= found
        return found

    # -- runs ---------------------------------------------------------------------------------

    def run_for_model(self, ids: Sequence[str]) -> TestRun:
        """The run behind the `run_tests` tool: validated ids, nothing counted as an attempt."""
        return self.run(list(ids) or None, "asked-by-model")

    def allowance(self) -> float:
        """Seconds that one run of the suite needs at most, judged by the baseline.

        A run may overdraw the time limit by so much: cut off in the middle it would prove nothing.
        """
        baseline = self.session.baseline
        return 5.0 + 3 * baseline.duration_s if baseline is not None else 1.0

    def seconds(self) -> float:
        """The time that one run gets."""
        left = max(self.allowance(), self.session.meter.remaining_s())
        return min(self.session.settings.test_timeout, left)

    def trace(self, ids: Sequence[str]) -> dict[str, dict[str, frozenset[int]]]:
        """Lines that each of the tests executes, by test id and path."""
        self.run(ids, "trace", trace=True)
        return dict(self.session.runner.coverage)

    def run(
        self, ids: Sequence[str] | None, stage: str, *, trace: bool = False, tree: str | None = None
    ) -> TestRun:
        """Run tests on the worktree, whose files are those of `tree`, put back what they change, record."""
        session = self.session
        before = tree or session.worktree.write_tree()
        if ids is not None and stage in _QUICK:
            run = session.quick.run(
                ids, timeout=self.seconds(), cancel=session.cancel, per_test_timeout=self.per_test
            )
        else:
            run = session.runner.run(
                ids,
                timeout=self.seconds(),
                cancel=session.cancel,
                trace=trace,
                per_test_timeout=self.per_test,
            )
        self.restore(before)
        session.log.append("test_run", stage=stage, run=run_to_plain(run))
        session.cancel.raise_if_cancelled()
        return run

    def restore(self, tree: str) -> None:
        """Put back what a test run changed in the worktree: the verdict is about the edit alone."""
        after = self.session.worktree.write_tree()
        if after != tree:
            names = [change.path for change in self.session.worktree.changed_files(tree, after)]
            self.session.worktree.reset_to(tree)
            shown = ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
            self.session.note(f"the tests changed files of the session's copy, put back: {shown}", "warning")

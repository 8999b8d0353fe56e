"""The run before any change: which tests there are, which are asked for, which of them can prove a fix."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from agent_ls.agent.judgement import hangs
from agent_ls.agent.progress import error_signature, fingerprint, reach
from agent_ls.agent.stops import HandOver
from agent_ls.errors import EnvBroken, UsageError
from agent_ls.testing.ids import expand_ids, file_of
from agent_ls.testing.results import Outcome, TestRun

if TYPE_CHECKING:
    from agent_ls.agent.judge import Judge

DEFAULT_TEST_TIMEOUT_S = 60.0
"""One test may take this long in the baseline when nothing is configured."""


def take_baseline(judge: Judge, *, need_failing: bool) -> TestRun:
    """Run the untouched tree once, and the failing asked tests once more; fills in the session and the judge.

    Raises EnvBroken (editing would be wrong), UsageError (an asked test does not exist) and HandOver (nothing
    fails although a failing test is needed).
    """
    session = judge.session
    _refuse_missing_files(judge, session.task.tests)
    session.phase("baseline", "running the test suite before any change")
    judge.per_test = session.settings.per_test_timeout or min(
        DEFAULT_TEST_TIMEOUT_S, session.settings.test_timeout / 2
    )
    run = judge.run(None, "baseline")
    if run.outcome == "env_broken":
        raise EnvBroken(f"the tests can't be run: {run.problem}", run.remedy)
    if not run.tests:
        raise EnvBroken("the test run reported no test", run.remedy or "Look at `agent-ls test`.")
    session.baseline = run
    results = run.by_id()
    if session.task.tests:
        session.asked = _expand(session.task.tests, run)
    else:
        session.asked = tuple(test.id for test in run.tests if test.outcome.bad)
    failing = [id for id in session.asked if results[id].outcome.bad]
    if failing:
        # each hang costs a whole time limit and is hardly chance: one is traced, the rest believed
        hanging = [id for id in failing if hangs(results[id])]
        once_more = [id for id in failing if id not in hanging[1:]]
        again = judge.run(once_more, "baseline-again", trace=run.source in ("pytest", "unittest"))
        judge.coverage = session.runner.coverage
        outcomes = again.by_id()
        judge.flaky |= {id for id in failing if id in outcomes and not outcomes[id].outcome.bad}
        judge.unsteady = frozenset(judge.flaky)
        failing = [id for id in failing if id not in judge.flaky]
    judge.to_fix = tuple(failing)
    if not failing and need_failing:
        raise HandOver("nothing_fails", _nothing_fails(session.task.tests, judge.flaky))
    if session.settings.per_test_timeout is None:
        slowest = max((t.duration_s for t in run.tests if not t.outcome.bad), default=0.0)
        judge.per_test = max(10.0, 10 * slowest)
    places = {id: reach(results.get(id)) for id in session.asked}
    errors = fingerprint(error_signature(results[id] for id in session.asked))
    session.progress.start(places, session.base_tree, errors)
    session.log.append(
        "asked",
        tests=list(session.asked),
        to_fix=failing,
        unsteady=sorted(judge.unsteady),
        reach={id: list(place) for id, place in places.items()},
        errors=errors,
        tree=session.base_tree,
    )
    return run


def _refuse_missing_files(judge: Judge, wanted: Sequence[str]) -> None:
    """Tell of a mistyped path before the suite has run."""
    root = judge.session.worktree.path
    for name in wanted:
        file = file_of(name) if "::" in name else ""
        if file and not (root / file).exists():
            raise UsageError(
                f"the test {name!r} can't be found: there is no file {file!r}",
                "Paths are those from the repository's root; `agent-ls test` lists the tests.",
            )


def _expand(wanted: Sequence[str], run: TestRun) -> tuple[str, ...]:
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


def _nothing_fails(named: Sequence[str], flaky: Collection[str]) -> str:
    if flaky:
        return (
            f"{len(flaky)} of the asked tests fail only sometimes without any change of code "
            f"({next(iter(sorted(flaky)))}): a flaky test proves nothing"
        )
    if named:
        return "the named tests already pass before any change, so nothing would prove a fix"
    return "no test fails before any change, so nothing would prove a fix"

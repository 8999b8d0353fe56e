"""A run against the baseline: what a change did to the outcomes. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent_ls.testing.ids import expand_ids, file_of, matches
from agent_ls.testing.results import Comparison, Outcome, TestResult, TestRun

__all__ = ["compare", "expand_ids", "passes"]

_GOOD = frozenset({Outcome.PASSED, Outcome.XPASSED})


def passes(outcome: Outcome) -> bool:
    """Whether the outcome shows that the tested thing works: skipped and xfailed do not."""
    return outcome in _GOOD


def compare(baseline: TestRun, run: TestRun, asked: Sequence[str] = ()) -> Comparison:
    """What changed from `baseline` to `run`; `asked` ids may name groups (see `expand_ids`).

    A test that passed and is now skipped or expected to fail counts as regressed: it no longer shows
    what it showed. One that failed and is now skipped is still failing. A test of the baseline that
    `run` should have reported (it was requested, or the run was a full one) and did not is `missing`;
    so is an asked id that no run knows. When a module can't be imported any more, its one `error`
    entry stands for its tests: those that passed are `regressed`.
    """
    before = baseline.by_id()
    after = run.by_id()
    wanted = _Asked(asked)
    fixed: list[str] = []
    regressed: list[str] = []
    still: list[str] = []
    pre_existing: list[str] = []
    added: list[str] = []
    for test in run.tests:
        old = before.get(test.id)
        if old is None:
            old = _module_error(test, before)
            if old is None:
                if not _is_module_error(test, baseline):
                    added.append(test.id)
                if test.outcome.bad and wanted.names(test.id):
                    still.append(test.id)
                continue
            # The baseline could not import the module of this test.
        change = _change(old, test)
        if change == "fixed":
            fixed.append(test.id)
        elif change == "regressed":
            regressed.append(test.id)
        elif change == "failing":
            asked_for = wanted.names(test.id) or wanted.inside(test)
            (still if asked_for else pre_existing).append(test.id)
        elif wanted.names(test.id) and not passes(test.outcome):
            # Skipped before and after: an asked test that doesn't run is not solved.
            still.append(test.id)
    missing: list[str] = []
    lost = [test for test in run.tests if test.id not in before and _is_module_error(test, baseline)]
    for old in baseline.tests:
        if old.id in after or not _expected(old.id, run.requested):
            continue
        if _is_prefix_of_any(old, after):
            continue  # a module error of the baseline whose tests are reported one by one now
        if any(_covers(broken, old.id) for broken in lost):
            if not old.outcome.bad:
                regressed.append(old.id)
            elif wanted.names(old.id):
                still.append(old.id)
            else:
                pre_existing.append(old.id)
        else:
            missing.append(old.id)
    known = [*before, *after]
    broken_now = [test for test in run.tests if test.outcome is Outcome.ERROR]
    missing += [
        name
        for name in wanted.ids
        if not any(matches(name, test_id) for test_id in known)
        and not any(_covers(test, name) for test in broken_now)
    ]
    return Comparison(
        fixed=tuple(fixed),
        regressed=tuple(dict.fromkeys(regressed)),
        still_failing=tuple(dict.fromkeys(still)),
        pre_existing=tuple(pre_existing),
        added=tuple(added),
        missing=tuple(dict.fromkeys(missing)),
    )


def _change(old: TestResult, new: TestResult) -> str:
    if old.outcome.bad:
        return "fixed" if passes(new.outcome) else "failing"
    if new.outcome.bad:
        return "regressed"
    if passes(old.outcome) and not passes(new.outcome):
        return "regressed"
    return "same"


class _Asked:
    def __init__(self, ids: Iterable[str]) -> None:
        self.ids = tuple(dict.fromkeys(ids))
        self._exact = frozenset(self.ids)

    def names(self, test_id: str) -> bool:
        return test_id in self._exact or any(matches(name, test_id) for name in self.ids)

    def inside(self, broken: TestResult) -> bool:
        """Whether an asked test would be in this module, which can't be imported."""
        return broken.outcome is Outcome.ERROR and any(_covers(broken, name) for name in self.ids)


def _module_error(test: TestResult, before: dict[str, TestResult]) -> TestResult | None:
    """The baseline's entry for the module of `test`, if that could not be imported then."""
    if "::" in test.id:
        old = before.get(file_of(test.id))
        return old if old is not None and old.outcome.bad else None
    parts = test.id.split(".")
    for size in range(len(parts) - 1, 0, -1):
        old = before.get(".".join(parts[:size]))
        if old is not None and old.outcome.bad:
            return old
    return None


def _is_module_error(test: TestResult, baseline: TestRun) -> bool:
    """Whether this entry stands for a whole module whose tests the baseline knows."""
    return test.outcome is Outcome.ERROR and any(_covers(test, old.id) for old in baseline.tests)


def _covers(broken: TestResult, test_id: str) -> bool:
    return broken.id != test_id and matches(broken.id, test_id)


def _is_prefix_of_any(old: TestResult, after: dict[str, TestResult]) -> bool:
    return old.outcome.bad and any(matches(old.id, name) for name in after)


def _expected(test_id: str, requested: tuple[str, ...] | None) -> bool:
    return requested is None or any(matches(name, test_id) for name in requested)

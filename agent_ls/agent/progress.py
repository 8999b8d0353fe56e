"""The no-progress detector: pure bookkeeping over judged states and tool calls."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import define, field, frozen

from agent_ls.agent.stops import HandOver
from agent_ls.testing.messages import normalise_error
from agent_ls.testing.results import Outcome, TestResult

Reach = tuple[int, int]
"""How far a test got: (stage, line of the test file that failed). Larger is further.

Stages: 0 not collected or error in set-up, 1 an exception, 2 a failed assertion, 3 passed.
"""


def reach(result: TestResult | None) -> Reach:
    """How far one test got; a later failing line of the test means that more of it passed."""
    if result is None or result.outcome in (Outcome.ERROR, Outcome.SKIPPED):
        return (0, 0)
    if not result.outcome.bad:
        return (3, 0) if result.outcome is Outcome.PASSED else (0, 0)
    lines = [frame.line for frame in result.stack if frame.file == result.file]
    stage = 2 if (result.error_type or "").endswith(("AssertionError", "Failed")) else 1
    return (stage, lines[-1] if lines else 0)


def error_signature(results: Iterable[TestResult]) -> frozenset[tuple[str, str]]:
    """The failing tests with their errors, without what changes by chance."""
    return frozenset(
        (result.id, normalise_error(result.message or result.error_type or result.outcome))
        for result in results
        if result.outcome.bad
    )


@frozen
class Progress:
    """What the detector says about one judged state."""

    made: bool
    reason: str
    failures_in_a_row: int


@define
class ProgressTracker:
    """Compares each judged state with the best so far and stops the session when nothing moves.

    `max_failures`: judged states (or rounds of the guided strategy) in a row without progress.
    `max_repeats`: equal calls with equal observations.
    """

    max_failures: int
    max_repeats: int = 3
    best: dict[str, Reach] = field(factory=dict)
    failures: int = 0
    _trees: list[str] = field(factory=list)
    _calls: dict[str, int] = field(factory=dict)

    def start(self, baseline: Mapping[str, TestResult], asked: Iterable[str], tree: str) -> None:
        """Set the state before the first edit."""
        self.best = {test: reach(baseline.get(test)) for test in asked}
        self._trees = [tree]

    def compare(self, results: Mapping[str, TestResult], regressed: Iterable[str]) -> tuple[bool, str]:
        """Would this state be progress, and why. Changes nothing."""
        broken = list(regressed)
        if broken:
            return False, f"{len(broken)} tests that passed before fail now"
        now = {test: reach(results.get(test)) for test in self.best}
        worse = [test for test in now if now[test] < self.best[test]]
        better = [test for test in now if now[test] > self.best[test]]
        if worse:
            return False, f"{len(worse)} of the asked tests fail earlier than in the best state"
        if not better:
            return False, "the same tests fail at the same place as in the best state"
        passing = [test for test in better if now[test][0] == 3]
        if passing:
            return True, f"{len(passing)} more of the asked tests pass"
        return True, f"{len(better)} of the asked tests get further than before"

    def judged(
        self, tree: str, results: Mapping[str, TestResult], regressed: Iterable[str], *, count: bool = True
    ) -> Progress:
        """Take in a judged state; `count` is False where a whole round counts as one failure.

        Raises HandOver when the state repeats an earlier one (A-B-A) or the cap is reached.
        """
        returned = tree in self._trees[:-1] and tree != self._trees[-1]
        if not self._trees or tree != self._trees[-1]:
            self._trees.append(tree)
        made, reason = self.compare(results, regressed)
        if made:
            self.best = {test: max(self.best[test], reach(results.get(test))) for test in self.best}
            self.failures = 0
        elif count:
            self.failures += 1
        if returned and count and not made:
            raise HandOver("repeated_state", "the edits returned to a state that was already tested")
        if count:
            self._check()
        return Progress(made, reason, self.failures)

    def round_failed(self) -> None:
        """One round (all samples for one suspect) ended without progress. Raises HandOver at the cap."""
        self.failures += 1
        self._check()

    def called(self, name: str, arguments: Mapping[str, Any], observation: str) -> None:
        """Take in a tool call with what it showed. Raises HandOver on the third identical one.

        A call whose observation changes is waiting on something that moves, not a repeat.
        """
        key = json.dumps([name, arguments, normalise_error(observation)], sort_keys=True, default=str)
        self._calls[key] = self._calls.get(key, 0) + 1
        if self._calls[key] >= self.max_repeats:
            raise HandOver(
                "repeated_call", f"the call {name} was made {self.max_repeats} times with the same result"
            )

    def edited(self) -> None:
        """The files changed: what was observed before may be asked again."""
        self._calls.clear()

    def _check(self) -> None:
        if self.failures >= self.max_failures:
            raise HandOver(
                "no_progress", f"{self.failures} verdicts in a row brought no progress (--max-failures)"
            )

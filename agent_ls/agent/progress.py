"""The no-progress detector: pure bookkeeping over judged states and tool calls."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import asdict, define, evolve, field, frozen

from agent_ls.agent.stops import HandOver
from agent_ls.events import Event
from agent_ls.settings import Limits
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


def fingerprint(signature: Iterable[tuple[str, str]]) -> str:
    """A short name for a set of failures: equal names mean the same tests with the same errors; "" none."""
    found = sorted(signature)
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()[:16] if found else ""


@frozen
class State:
    """What the detector needs to know of one judged tree; the `state` of an `attempt` event.

    Attributes:
        tree: git's id of it.
        reach: how far each asked test got.
        errors: `fingerprint` of what fails.
        broken: tests that passed before and fail now, and files that the guard refuses.
        size: changed lines against the base.
        idle: differs from the state judged before it only in comments and blank lines.
        places: where it differs from that state ("path:function"), first the first.
        counted: whether it counts by itself (samples of a round do not).
    """

    tree: str
    reach: Mapping[str, Reach] = field(factory=dict)
    errors: str = ""
    broken: tuple[str, ...] = ()
    size: int = 0
    idle: bool = False
    places: tuple[str, ...] = ()
    counted: bool = True

    def to_json(self) -> dict[str, Any]:
        plain = asdict(self)
        plain["reach"] = {test: list(place) for test, place in self.reach.items()}
        plain["broken"], plain["places"] = list(self.broken), list(self.places)
        return plain

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> State:
        """Raises KeyError and TypeError for what is no state."""
        known = {name: data[name] for name in cls.__annotations__ if name in data}
        known["reach"] = {test: (place[0], place[1]) for test, place in data["reach"].items()}
        known["broken"], known["places"] = tuple(data.get("broken", ())), tuple(data.get("places", ()))
        return cls(**known)


@frozen
class Progress:
    """What the detector says about one judged state."""

    made: bool
    reason: str
    failures_in_a_row: int


@define
class ProgressTracker:
    """Compares each judged state with the best so far and stops the session when nothing moves.

    Progress resets every count. The thresholds are those of `limits`, see `settings.Limits`.
    """

    limits: Limits
    best: dict[str, Reach] = field(factory=dict)
    failures: int = 0
    same: int = 0
    grown: int = 0
    idle: int = 0
    returns: int = 0
    alternations: int = 0
    _last: State = field(factory=lambda: State(""))
    _known: set[str] = field(factory=set)
    _places: list[str] = field(factory=list)
    _calls: dict[str, int] = field(factory=dict)

    def start(self, baseline: Mapping[str, Reach], tree: str, errors: str = "") -> None:
        """Set the state before the first edit: how far each asked test gets, and what fails."""
        self.best = dict(baseline)
        self._last = State(tree, self.best, errors)
        self._known = {tree}

    def compare(self, now: Mapping[str, Reach], broken: Iterable[str] = ()) -> tuple[bool, str]:
        """Would this state be progress, and why. Changes nothing."""
        lost = list(broken)
        if lost:
            return False, f"{len(lost)} tests that passed before fail now"
        now = {test: now.get(test, (0, 0)) for test in self.best}
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

    def judged(self, state: State) -> Progress:
        """Take in a judged state. Raises HandOver when one of the limits is reached."""
        last, moved = self._last, state.tree != self._last.tree
        returned = moved and state.tree in self._known
        self._known.add(state.tree)
        made, reason = self.compare(state.reach, state.broken)
        if made:
            self.best = {test: max(place, state.reach.get(test, (0, 0))) for test, place in self.best.items()}
            self.failures = self.same = self.grown = self.idle = self.returns = self.alternations = 0
            self._places = list(state.places[:1])
        elif state.counted:
            self.failures += 1
            self.same = self.same + 1 if state.errors == last.errors else 1
            self.same *= bool(state.errors)
            self.grown = self.grown + 1 if state.size > last.size and moved else 0
            self.idle = self.idle + 1 if state.idle and moved else 0
            self.returns += returned
            self._went_to(state.places)
        self._last = state
        if state.counted:
            self._check(state)
        return Progress(made, reason, self.failures)

    def _went_to(self, places: tuple[str, ...]) -> None:
        """Count the changes between two places and back; a third place ends the row."""
        if not places or (self._places and places[0] == self._places[-1]):
            return
        back = len(self._places) > 1 and places[0] == self._places[-2]
        self.alternations = self.alternations + 1 if back else bool(self._places)
        self._places.append(places[0])

    def put_back(self, tree: str) -> None:
        """The session itself made the files those of `tree`: that is no return of the model's."""
        self._known.discard(tree)
        self._last = evolve(self._last, tree=tree)

    def round_failed(self) -> None:
        """One round (all samples for one suspect) ended without progress. Raises HandOver at the cap."""
        self.failures += 1
        self._cap()

    def called(self, name: str, arguments: Mapping[str, Any], observation: str) -> None:
        """Take in a tool call with what it showed. Raises HandOver when it was made too often.

        A call whose observation changes is waiting on something that moves, not a repeat.
        """
        key = json.dumps([name, arguments, normalise_error(observation)], sort_keys=True, default=str)
        self._calls[key] = self._calls.get(key, 0) + 1
        if self._calls[key] >= self.limits.max_repeats:
            raise HandOver(
                "repeated_call",
                f"the call {name} was made {self._calls[key]} times with the same result (max_repeats)",
            )

    def edited(self) -> None:
        """The files changed: what was observed before may be asked again."""
        self._calls.clear()

    def _check(self, state: State) -> None:
        """The most telling reason first."""
        limits = self.limits
        if self.returns >= limits.max_returns:
            raise HandOver(
                "repeated_state",
                "the edits returned to a state that was already tested"
                + (f", {self.returns} times" if self.returns > 1 else "")
                + " (max_returns)",
            )
        if self.idle >= limits.max_idle_edits:
            raise HandOver(
                "idle_edits",
                f"{self.idle} edits in a row changed only comments and blank lines (max_idle_edits)",
            )
        if self.alternations >= limits.max_alternations:
            one, two = self._places[-2], self._places[-1]
            raise HandOver(
                "alternating",
                f"the edits go back and forth between {one} and {two} without progress (max_alternations)",
            )
        if self.same >= max(2, limits.max_same_failures or limits.max_failures):
            raise HandOver(
                "same_failure",
                f"{self.same} verdicts in a row: the same tests fail with the same errors, whatever the edit"
                f" ({'max_same_failures' if limits.max_same_failures else '--max-failures'})",
            )
        if self.grown >= (limits.max_growth or limits.max_failures):
            raise HandOver(
                "growing_change",
                f"the change grew {self.grown} times in a row, to {state.size} lines, without progress"
                f" ({'max_growth' if limits.max_growth else '--max-failures'})",
            )
        self._cap()

    def _cap(self) -> None:
        if self.failures >= self.limits.max_failures:
            raise HandOver(
                "no_progress", f"{self.failures} verdicts in a row brought no progress (--max-failures)"
            )


def replay(events: Iterable[Event], limits: Limits) -> tuple[int, HandOver] | None:
    """Feed a recorded session to a fresh detector.

    Returns the `seq` of the event at which it stops, with the stop; None if it never does. Reads the kinds
    `asked`, `attempt`, `put_back`, `round_failed`, `tool_call` and `observation`.
    """
    tracker = ProgressTracker(limits)
    calls: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for event in events:
        data = event.data
        try:
            match event.kind:
                case "asked":
                    places = {test: (place[0], place[1]) for test, place in data["reach"].items()}
                    tracker.start(places, data["tree"], data["errors"])
                case "attempt" if data.get("state"):
                    if data["state"].get("edited", True):
                        tracker.edited()
                    tracker.judged(State.from_json(data["state"]))
                case "put_back":
                    tracker.put_back(data["tree"])
                case "round_failed":
                    tracker.round_failed()
                case "tool_call":
                    calls[data["id"]] = (data["name"], data["arguments"])
                case "observation" if data["id"] in calls:
                    name, arguments = calls[data["id"]]
                    if name == "edit" and not data["is_error"]:
                        tracker.edited()
                    tracker.called(name, arguments, data["text"])
        except HandOver as stop:
            return event.seq, stop
    return None

"""Runs the unchanged program in the fork server: what the tests execute, how they fail, what they cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from attrs import define, field

from agent_ls.repair.forkserver import ForkServer, Message
from agent_ls.testing.ids import file_of
from agent_ls.testing.results import Frame, Outcome, TestResult, TestRun

OBSERVED_PASSING = 80
"""So many passing tests are traced at most, the quickest ones."""
_AT_ONCE = 3
_GO_ON = 1e9
"""Processor time after which a failing test ends the child's run: never."""

Coverage = dict[str, dict[str, set[int]]]
Types = dict[str, dict[int, dict[str, frozenset[str]]]]


@define
class Observation:
    """The unchanged program under its tests.

    `failing` are the asked tests that fail, with their stacks; `coverage` the lines by test and path;
    `passing` the other tests that pass; `types` by path, first line of the function and local name;
    `cpu` the processor seconds of each test, untraced and in the order that candidates run them.
    """

    failing: list[TestResult] = field(factory=list)
    coverage: Coverage = field(factory=dict)
    passing: list[str] = field(factory=list)
    types: Types = field(factory=dict)
    cpu: dict[str, float] = field(factory=dict)
    hanging: set[str] = field(factory=set)


class Observer:
    """Observes over `server`. `check` is called often and may raise to stop."""

    def __init__(
        self,
        server: ForkServer,
        kind: str,
        baseline: TestRun,
        asked: Sequence[str],
        known: Sequence[str],
        check: Callable[[], None],
    ) -> None:
        self._server = server
        self._kind = kind
        self._baseline = baseline.by_id()
        self._asked = list(asked)
        self._known = known
        self._check = check
        self._spoilt: set[str] = set()
        self._cut = 0
        self.seen = Observation()

    def run(self, deadline: float) -> Observation:
        """Measure the asked and the other known tests, then trace them, until `deadline` (monotonic)."""
        good = self._good()[:OBSERVED_PASSING]
        self._measure(good, deadline)
        self._trace(self._asked, deadline)
        seen = {*self.seen.coverage, *(result.id for result in self.seen.failing)}
        # Not observed in time, or not collected: what the baseline said.
        self.seen.failing += [
            self._baseline[test]
            for test in self._asked
            if test not in seen and test in self._baseline and self._baseline[test].outcome.bad
        ]
        self._trace([test for test in good if test not in self._spoilt], deadline)
        return self.seen

    def _good(self) -> list[str]:
        good = [
            test
            for test in self._known
            if test not in self._asked
            and test in self._baseline
            and not self._baseline[test].outcome.bad
            and self._baseline[test].outcome is not Outcome.SKIPPED
        ]
        return sorted(good, key=lambda test: self._baseline[test].duration_s)

    def _trace(self, group: Sequence[str], deadline: float) -> None:
        flying: dict[int, str] = {}
        pending = list(group)
        while (pending or flying) and time.monotonic() < deadline:
            self._check()
            while pending and len(flying) < _AT_ONCE:
                test = pending.pop(0)
                if self._cut >= 2 and group is self._asked:
                    # One more endless loop, or one more long run, teaches nothing new.
                    self.seen.failing.append(self._baseline.get(test) or TestResult(test, Outcome.FAILED))
                    continue
                flying[self._server.submit(self._command(test))] = test
            for message in self._server.read(0.2):
                name = flying.pop(message.get("id", -1), None)
                if name is not None:
                    self._note(name, self._read(name, message))

    def _note(self, name: str, result: TestResult | None) -> None:
        if result is None:
            return
        if name not in self._asked:
            if not result.outcome.bad:
                self.seen.passing.append(name)
            return
        if result.outcome.bad:
            self.seen.failing.append(result)
        if result.error_type == "Timeout":
            self._cut += 1
            if name not in self.seen.cpu:
                self.seen.hanging.add(name)

    def _command(self, test: str) -> Message:
        known = self._baseline.get(test)
        hangs = self._hangs(test)
        duration = known.duration_s if known is not None else 0.2
        limit = 0.5 if hangs else max(1.0, min(5.0, 8 * duration))
        return {
            "op": "try",
            "tests": [test],
            "asked": [test],
            "collect": [file_of(test)] if self._kind == "pytest" else [test],
            "cpu": {},
            "cpu_default": limit,
            "cpu_total": limit + 25,
            "wall": 8 * limit + 10,
            "record": True,
        }

    def _read(self, test: str, message: Message) -> TestResult | None:
        for event in message["events"]:
            if event.get("test") == test:
                self._take(test, event)
                bad = event["outcome"] in ("failed", "timeout")
                error = event.get("error") or ["", ""]
                stack = tuple(Frame(file, line, name) for file, line, name in event.get("stack", []))
                return TestResult(
                    test,
                    Outcome.FAILED if bad else Outcome(event["outcome"]),
                    event.get("wall", 0.0),
                    file_of(test),
                    None,
                    error[1] or None,
                    error[0] or None,
                    stack,
                )
        if message.get("timeout") or not message["events"] or message.get("signal"):
            return self._baseline.get(test) or TestResult(test, Outcome.FAILED)
        return None

    def _take(self, test: str, event: Message) -> None:
        self.seen.coverage[test] = {path: set(found) for path, found in event.get("lines", {}).items()}
        if "cpu" in event:
            self.seen.cpu.setdefault(test, event["cpu"])
        for path, first, names in event.get("types", []):
            table = self.seen.types.setdefault(path, {}).setdefault(first, {})
            for name, kinds in names.items():
                table[name] = table.get(name, frozenset()) | frozenset(kinds)

    def _measure(self, good: Sequence[str], deadline: float) -> None:
        """Run all in one child, untraced, as a candidate's child does.

        A test that passes alone and fails there would fail for every candidate: it is left out.
        """
        bad = [test for test in self._asked if test in self._baseline and not self._hangs(test)]
        bad.sort(key=lambda test: self._baseline[test].duration_s)
        tests = [*bad, *good]
        total = sum(self._baseline[test].duration_s for test in tests)
        if not tests:
            return
        number = self._server.submit(
            {
                "op": "try",
                "tests": tests,
                "asked": tests,
                "collect": list(dict.fromkeys(map(file_of, tests))) if self._kind == "pytest" else tests,
                "cpu": {},
                "cpu_default": max(1.0, total),
                "cpu_total": 2 * total + 30,
                "wall": min(4 * total + 5, max(1.0, 0.5 * (deadline - time.monotonic()))),
                "go_on": _GO_ON,
            }
        )
        while time.monotonic() < deadline:
            self._check()
            for message in self._server.read(0.2):
                if message.get("id") != number:
                    continue
                for event in message["events"]:
                    if "test" in event:
                        self.seen.cpu[event["test"]] = event["cpu"]
                        if event["test"] in good and event["outcome"] == "failed":
                            self._spoilt.add(event["test"])
                return

    def _hangs(self, test: str) -> bool:
        known = self._baseline.get(test)
        return known is not None and "imeout" in (known.error_type or "")

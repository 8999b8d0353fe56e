"""Validates candidates: decides which tests each must pass, and asks the fork servers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from attrs import frozen

from agent_ls.cancel import CancelToken
from agent_ls.repair.edits import Edit
from agent_ls.repair.forkserver import ForkServer, Message, ServerDied
from agent_ls.repair.launch import launch
from agent_ls.repair.source import Source
from agent_ls.testing.ids import file_of
from agent_ls.testing.results import Frame, Outcome, TestResult, TestRun
from agent_ls.testing.runner import TestRunner

SLOTS = 2
MIN_CPU_S = 0.06
"""Processor time that a test may use at least before it counts as hanging."""
PATIENT_CPU_S = 1.5
_OBSERVED_PASSING = 80
_MEMORY = 1 << 30

Types = dict[str, dict[int, dict[str, frozenset[str]]]]


class Unsupported(Exception):
    """These tests can't be run by the engine; the text is a sentence for a person."""


@frozen
class Trial:
    """A candidate: edits of one file."""

    path: str
    edits: tuple[Edit, ...]


@frozen
class Verdict:
    """`plausible`: all asked tests and the covering ones pass. `fixed` are the asked ones that pass."""

    kind: Literal["plausible", "failed", "timeout"]
    fixed: tuple[str, ...] = ()
    failed: str = ""
    error: tuple[str, str] | None = None
    patient: bool = False


class Validator:
    """One search's servers. Open it, observe the unchanged program, then submit trials."""

    def __init__(
        self,
        runner: TestRunner,
        scratch: Path,
        baseline: TestRun,
        asked: Sequence[str],
        cancel: CancelToken,
    ) -> None:
        self._runner = runner
        self._scratch = scratch
        self._baseline = baseline
        self._asked = list(asked)
        self._cancel = cancel
        self._fast: ForkServer | None = None
        self._slow: ForkServer | None = None
        self._modules: list[str] = []
        self._known: list[str] = []
        self._durations = {test.id: test.duration_s for test in baseline.tests}
        self._cpu: dict[str, float] = {}
        self._coverage: dict[str, dict[str, set[int]]] = {}
        self._passing: list[str] = []
        self._trials: dict[int, tuple[Trial, bool, bool, str]] = {}
        self._tickets: dict[tuple[str, int], int] = {}
        self._next = 0
        self._bases: dict[str, Source] = {}
        self.all_slow = False
        if runner.plan.kind == "command" or runner.plan.interpreter is None:
            raise Unsupported("the repair engine needs pytest or unittest; this test command is neither")

    # ------------------------------------------------------------------------------------- servers

    def open(self, deadline: float) -> None:
        """Start the fast server and wait for its collection. Raises Unsupported."""
        self._fast = self._start("fast", {"ids": self._targets()})
        message = self._first(self._fast, deadline)
        if "ready" in message:
            self._known = message["ready"]
            self._modules = message["modules"]
        if not set(self._asked).intersection(self._known):
            # The tests can't even be collected now: every candidate needs its own import.
            self._fast.close()
            self._fast = None
            self.all_slow = True
            if "fatal" in message:
                raise Unsupported(f"the tests can't be loaded: {str(message['fatal'])[-400:]}")

    def _first(self, server: ForkServer, deadline: float) -> Message:
        while time.monotonic() < deadline:
            self._cancel.raise_if_cancelled()
            try:
                messages = server.read(0.2)
            except ServerDied as error:
                raise Unsupported(f"the test process ended at once: {str(error)[-400:]}") from None
            for message in messages:
                return message
        raise Unsupported("the tests could not be collected within the time limit")

    def _targets(self) -> list[str]:
        if self._runner.plan.kind == "pytest":
            return list(dict.fromkeys(file_of(test) for test in self._asked))
        modules = {test.rsplit(".", 2)[0] for test in self._asked}
        same = [test.id for test in self._baseline.tests if test.id.rsplit(".", 2)[0] in modules]
        return list(dict.fromkeys([*self._asked, *same]))

    def _start(self, mode: str, more: Message) -> ForkServer:
        server = launch(
            self._runner,
            self._scratch / mode,
            {"mode": mode, "slots": SLOTS, "memory": _MEMORY, "modules": self._modules, **more},
            self._cancel,
        )
        for path, source in self._bases.items():
            server.base(path, source.text)
        return server

    def close(self) -> None:
        for server in (self._fast, self._slow):
            if server is not None:
                server.close()
        self._fast = self._slow = None

    def _slow_server(self) -> ForkServer:
        if self._slow is None:
            self._slow = self._start("slow", {})
            self._first(self._slow, time.monotonic() + 60)
        return self._slow

    def add_base(self, path: str, source: Source) -> None:
        """Make the unchanged text of a file known to the servers."""
        self._bases[path] = source
        for server in (self._fast, self._slow):
            if server is not None:
                server.base(path, source.text)

    # ------------------------------------------------------------------------------------- observing

    def observe(
        self, deadline: float
    ) -> tuple[list[TestResult], dict[str, dict[str, set[int]]], list[str], Types]:
        """Run the asked tests and the other collected ones on the unchanged program, traced.

        Returns (failing asked tests with their stacks, lines per test, passing tests, types of locals).
        """
        baseline = self._baseline.by_id()
        good = [
            test
            for test in self._known
            if test not in self._asked
            and test in baseline
            and not baseline[test].outcome.bad
            and baseline[test].outcome is not Outcome.SKIPPED
        ]
        good.sort(key=lambda test: self._durations.get(test, 0.0))
        server = self._fast if self._fast is not None else self._slow_server()
        failing: list[TestResult] = []
        types: Types = {}
        hanging = 0
        for group, until in (
            (self._asked, deadline),
            (good[:_OBSERVED_PASSING], deadline),
        ):
            flying: dict[int, str] = {}
            pending = list(group)
            while (pending or flying) and time.monotonic() < until:
                self._cancel.raise_if_cancelled()
                while pending and len(flying) < SLOTS + 1:
                    test = pending.pop(0)
                    if hanging >= 2 and group is self._asked:
                        # One more endless loop teaches nothing new.
                        failing.append(baseline.get(test) or TestResult(test, Outcome.FAILED))
                        continue
                    flying[server.submit(self._observe_command(test))] = test
                for message in server.read(0.2):
                    name = flying.pop(message.get("id", -1), None)
                    if name is not None:
                        result = self._observed(name, message, types)
                        if result is None:
                            continue
                        if name in self._asked:
                            if result.outcome.bad:
                                failing.append(result)
                            if result.error_type == "Timeout":
                                hanging += 1
                        elif not result.outcome.bad:
                            self._passing.append(name)
            if group is self._asked:
                # Not observed in time, or not collected: what the baseline said.
                seen = {*self._coverage, *(result.id for result in failing)}
                failing += [
                    baseline[test]
                    for test in self._asked
                    if test not in seen and test in baseline and baseline[test].outcome.bad
                ]
        return failing, self._coverage, self._passing, types

    def _observe_command(self, test: str) -> Message:
        known = self._baseline.by_id().get(test)
        hangs = known is not None and "imeout" in (known.error_type or "")
        limit = 0.5 if hangs else max(1.0, min(20.0, 8 * self._durations.get(test, 0.2)))
        return {
            "op": "try",
            "tests": [test],
            "asked": [test],
            "collect": [file_of(test)] if self._runner.plan.kind == "pytest" else [test],
            "cpu": {},
            "cpu_default": limit,
            "cpu_total": limit + 25,
            "wall": 8 * limit + 10,
            "record": True,
        }

    def _observed(self, test: str, message: Message, types: Types) -> TestResult | None:
        for event in message["events"]:
            if event.get("test") != test:
                continue
            lines = {path: set(found) for path, found in event.get("lines", {}).items()}
            self._coverage[test] = lines
            if "cpu" in event:
                self._cpu[test] = event["cpu"]
            for path, first, names in event.get("types", []):
                table = types.setdefault(path, {}).setdefault(first, {})
                for name, seen in names.items():
                    table[name] = table.get(name, frozenset()) | frozenset(seen)
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
            known = self._baseline.by_id().get(test)
            return known if known is not None else TestResult(test, Outcome.FAILED)
        return None

    # ------------------------------------------------------------------------------------- trying

    def hungry(self) -> bool:
        """Can another trial be queued without waiting long?"""
        waiting = sum(server.outstanding for server in (self._fast, self._slow) if server is not None)
        return waiting < 3 * SLOTS

    def submit(self, trial: Trial, *, patient: bool = False, confirm: bool = False) -> int:
        """Queue a trial; `patient` gives hanging tests more time, `confirm` imports the project afresh."""
        self._next += 1
        ticket = self._next
        where = "slow" if confirm or self._fast is None else "fast"
        self._trials[ticket] = (trial, patient, confirm, where)
        self._send(ticket, where)
        return ticket

    def _send(self, ticket: int, where: str) -> None:
        trial, patient, _, _ = self._trials[ticket]
        server = self._fast if where == "fast" and self._fast is not None else self._slow_server()
        source = self._bases[trial.path]
        checks = self._covering(trial, source)
        asked = sorted(self._asked, key=lambda test: self._durations.get(test, 0.0))
        floor = PATIENT_CPU_S if patient else MIN_CPU_S
        slowest = max(self._cpu.values(), default=0.0)
        limits = {
            test: floor + 2 * max(self._cpu.get(test, 0.0), self._durations.get(test, 0.0)) for test in checks
        }
        command: Message = {
            "op": "try",
            "tests": [*asked, *checks],
            "asked": asked,
            "cpu": limits,
            "cpu_default": floor + min(3 * slowest, 5.0),
            "cpu_total": sum(limits.values()) + len(asked) * floor + 30,
            "wall": 10 + 6 * (sum(limits.values()) + floor * len(asked)),
            "edits": {
                trial.path: [[edit.start_offset, edit.end_offset, edit.replacement] for edit in trial.edits]
            },
        }
        if where == "fast":
            command["pieces"] = {trial.path: self._pieces(source, trial.edits)}
        elif self._runner.plan.kind == "pytest":
            command["collect"] = list(dict.fromkeys(file_of(test) for test in command["tests"]))
        number = server.submit(command)
        self._tickets[where, number] = ticket

    def _pieces(self, source: Source, edits: Sequence[Edit]) -> list[Message]:
        """The changed functions to compile; empty when the change is not inside one."""
        pieces: dict[int, list[Edit]] = {}
        places = {}
        for edit in edits:
            piece = source.piece_at(edit.start_offset, edit.end_offset)
            if piece.wrapper is None:
                return []
            pieces.setdefault(piece.start, []).append(edit)
            places[piece.start] = piece
        found = []
        for start, group in pieces.items():
            piece = places[start]
            text = source.text[piece.start : piece.end]
            for edit in sorted(group, key=lambda edit: -edit.start_offset):
                a, b = edit.start_offset - start, edit.end_offset - start
                text = text[:a] + edit.replacement + text[b:]
            found.append(
                {"name": piece.name, "line": piece.line, "wrapper": piece.wrapper, "text": text + "\n"}
            )
        return found

    def _covering(self, trial: Trial, source: Source) -> list[str]:
        """Passing tests that run the changed function (or, outside functions, the file), quick ones first."""
        lines: set[int] = set()
        for edit in trial.edits:
            function = source.function_at(edit.line)
            if function is None:
                lines = set()
                break
            lines.update(range(function.lineno, (function.end_lineno or function.lineno) + 1))
        found = [
            test
            for test in self._passing
            if trial.path in self._coverage.get(test, {})
            and (not lines or lines.intersection(self._coverage[test][trial.path]))
        ]
        return sorted(found, key=lambda test: self._cpu.get(test, 0.0))

    def results(self, timeout: float) -> list[tuple[int, Verdict]]:
        """Verdicts that arrive within `timeout` seconds. Raises ServerDied."""
        found: list[tuple[int, Verdict]] = []
        servers = [(name, server) for name, server in (("fast", self._fast), ("slow", self._slow)) if server]
        busy = [item for item in servers if item[1].outstanding]
        for name, server in busy:
            for message in server.read(timeout / len(busy)):
                if "fatal" in message or "ended" in message:
                    raise ServerDied(str(message))
                ticket = self._tickets.pop((name, message.get("id", -1)), None)
                if ticket is None:
                    continue
                if any("slow" in event for event in message["events"]):
                    self._send(ticket, "slow")
                    continue
                _, patient, _, _ = self._trials.pop(ticket)
                found.append((ticket, self._judge(message, patient)))
        return found

    def _judge(self, message: Message, patient: bool) -> Verdict:
        asked = set(self._asked)
        fixed: list[str] = []
        failed, error = "", None
        for event in message["events"]:
            name = event.get("test")
            if name is None:
                continue
            if event["outcome"] == "passed":
                if name in asked:
                    fixed.append(name)
            elif (name in asked or event["outcome"] not in ("skipped", "xfailed")) and not failed:
                failed = name
                error = tuple(event.get("error") or ("", ""))
        missing = any("missing" in event for event in message["events"])
        if message["done"] and not failed and not missing and len(fixed) == len(asked):
            return Verdict("plausible", tuple(fixed), patient=patient)
        kind: Literal["failed", "timeout"] = "timeout" if message["timeout"] else "failed"
        return Verdict(kind, tuple(fixed), failed, error if error is None else (error[0], error[1]), patient)

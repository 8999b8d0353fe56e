"""Validates candidates: decides which tests each must pass, and asks the fork servers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from attrs import frozen

from agent_ls.cancel import CancelToken
from agent_ls.repair.budgets import Budgets
from agent_ls.repair.edits import Edit
from agent_ls.repair.forkserver import ForkServer, Message, ServerDied
from agent_ls.repair.launch import launch
from agent_ls.repair.observation import Coverage, Observation, Observer
from agent_ls.repair.source import Source
from agent_ls.testing.affected import affected_tests
from agent_ls.testing.ids import file_of
from agent_ls.testing.results import Outcome, TestRun
from agent_ls.testing.runner import TestRunner

SLOTS = 2
GUARDS = 200
"""So many passing tests of other files check a patch at most..."""
GUARDS_S = 3.0
"""...and only as many as took so many seconds together in the baseline."""
_MEMORY = 1 << 30


class Unsupported(Exception):
    """These tests can't be run by the engine; the text is a sentence for a person."""


@frozen
class Trial:
    """A candidate: edits of one file."""

    path: str
    edits: tuple[Edit, ...]


@frozen
class Verdict:
    """`plausible`: all tests asked for and the covering ones pass. `fixed` are those asked for that pass;
    `failed` and `error` (type, message) name the first that does not; `level` is the trial's."""

    kind: Literal["plausible", "failed", "timeout"]
    fixed: tuple[str, ...] = ()
    failed: str = ""
    error: tuple[str, str] | None = None
    level: int = 0


@frozen
class _Flight:
    """A trial on its way."""

    trial: Trial
    level: int
    confirm: bool
    asked: list[str]


class Validator:
    """One search's servers. Open it, observe the unchanged program, then submit trials."""

    def __init__(
        self,
        runner: TestRunner,
        scratch: Path,
        baseline: TestRun,
        asked: Sequence[str],
        cancel: CancelToken,
        coverage: dict[str, dict[str, frozenset[int]]],
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
        self._covered = coverage
        self._seen = Observation()
        self._budgets = Budgets(self._asked, self._seen)
        self._flights: dict[int, _Flight] = {}
        self._tickets: dict[tuple[str, int], int] = {}
        self._late: list[tuple[str, Message]] = []
        self._next = 0
        self._bases: dict[str, Source] = {}
        self._guarded: dict[str, dict[str, tuple[dict[str, set[int]], float]]] = {}
        self._guarding: dict[str, float] = {}
        self.tried: dict[str, int] = {}
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
            # Commands wait in its pipe until it is up; nothing else waits for it meanwhile.
            self._slow = self._start("slow", {})
        return self._slow

    def add_base(self, path: str, source: Source) -> None:
        """Make the unchanged text of a file known to the servers."""
        self._bases[path] = source
        for server in (self._fast, self._slow):
            if server is not None:
                server.base(path, source.text)

    def observe(self, deadline: float) -> Observation:
        """Run the asked tests and the other collected ones on the unchanged program.

        Raises ServerDied, and Unsupported when the program can't be imported afresh either.
        """
        server = self._fast
        if server is None:
            server = self._slow_server()
            self._first(server, deadline)
        observer = Observer(
            server,
            self._runner.plan.kind,
            self._baseline,
            self._asked,
            self._known,
            self._cancel.raise_if_cancelled,
        )
        self._seen = observer.run(deadline)
        self._budgets = Budgets(self._asked, self._seen)
        return self._seen

    def _guards(self, path: str) -> dict[str, tuple[dict[str, set[int]], float]]:
        """Passing tests of files that the asked tests are not in, by what they execute (lines by path, and
        processor seconds): those that a change of `path` can reach, as many as fit into a few seconds.

        They are run once on the unchanged program, in one child and traced: what fails there is left out.
        """
        if path not in self._guarded:
            self._guarded[path] = {}
            tests = self._reachable(path)
            if tests:
                self._guarded[path] = self._traced(tests)
        return self._guarded[path]

    def _reachable(self, path: str) -> list[str]:
        known = set(self._known) | set(self._asked)
        passing = {
            test.id: test.duration_s
            for test in self._baseline.tests
            if test.id not in known and test.outcome in (Outcome.PASSED, Outcome.XFAILED)
        }
        if not passing:
            return []
        root = self._runner.view.worktree
        affected = affected_tests(root, [path], self._baseline, self._covered)
        wanted = [test for test in (affected if affected is not None else passing) if test in passing]
        stem = Path(path).stem
        executes = {test for test in wanted if self._covered.get(test, {}).get(path)}
        wanted.sort(key=lambda test: (test not in executes, stem not in test.split("::")[0], passing[test]))
        chosen: list[str] = []
        seconds = 0.0
        for test in wanted[:GUARDS]:
            seconds += passing[test]
            if seconds > GUARDS_S:
                break
            chosen.append(test)
        return chosen

    def _traced(self, tests: list[str]) -> dict[str, tuple[dict[str, set[int]], float]]:
        server = self._slow_server()
        number = server.submit(
            {
                "op": "try",
                "tests": tests,
                "asked": tests,
                "collect": list(dict.fromkeys(map(file_of, tests)))
                if self._runner.plan.kind == "pytest"
                else tests,
                "cpu": {},
                "cpu_default": 4 * GUARDS_S,
                "cpu_total": 8 * GUARDS_S,
                "wall": 8 * GUARDS_S,
                "record": True,
                "go_on": 1e9,
            }
        )
        end = time.monotonic() + 10 * GUARDS_S
        while time.monotonic() < end:
            self._cancel.raise_if_cancelled()
            for message in server.read(0.2):
                if message.get("id") != number:
                    self._late.append(("slow", message))
                    continue
                found = {
                    event["test"]: (
                        {file: set(lines) for file, lines in event.get("lines", {}).items()},
                        event.get("cpu", 0.0),
                    )
                    for event in message["events"]
                    if event.get("outcome") in ("passed", "xfailed")
                }
                self._guarding.update({test: cpu for test, (_, cpu) in found.items()})
                return found
        return {}

    # ------------------------------------------------------------------------------------- trying

    def hungry(self) -> bool:
        """Can another trial be queued without waiting long?"""
        waiting = sum(server.outstanding for server in (self._fast, self._slow) if server is not None)
        return waiting < 3 * SLOTS

    def submit(
        self, trial: Trial, *, level: int = 0, confirm: bool = False, asked: Sequence[str] | None = None
    ) -> int:
        """Queue a trial; returns the ticket that `results` gives back.

        `level` counts earlier attempts that ran out of time. `confirm` imports the project afresh and adds
        the covering tests of other files; `asked` are the tests to pass (default: all that the search
        was asked for).
        """
        self._next += 1
        ticket = self._next
        flight = _Flight(trial, level, confirm, list(self._asked if asked is None else asked))
        self._flights[ticket] = flight
        self._send(ticket, "slow" if confirm or self._fast is None else "fast")
        return ticket

    def _send(self, ticket: int, where: str) -> None:
        flight = self._flights[ticket]
        trial = flight.trial
        server = self._fast if where == "fast" and self._fast is not None else self._slow_server()
        source = self._bases[trial.path]
        checks = self._covering(trial, self._seen.passing, self._seen.coverage)
        if flight.confirm:
            guards = self._guards(trial.path)
            checks += self._covering(trial, list(guards), {test: guards[test][0] for test in guards})
        asked = self._budgets.cheapest_first(flight.asked)
        # Behind a fresh import a test also pays for what the modules do at first use.
        level = flight.level + (where == "slow")
        limits = {test: self._budgets.limit(test, level) for test in [*asked, *checks]}
        for test in checks:
            if test in self._guarding:
                limits[test] += 2 * self._guarding[test]
        command: Message = {
            "op": "try",
            "tests": [*asked, *checks],
            "asked": asked,
            "cpu": limits,
            "cpu_default": self._budgets.limit("", level),
            "cpu_total": sum(limits.values()) + 30,
            # Loops end by their processor time; this ends what sleeps, also on a busy machine.
            "wall": (60 if where == "slow" else 10) + 6 * sum(limits.values()),
            "edits": {
                trial.path: [[edit.start_offset, edit.end_offset, edit.replacement] for edit in trial.edits]
            },
        }
        if where == "fast":
            command["pieces"] = {trial.path: self._pieces(source, trial.edits)}
        elif self._runner.plan.kind == "pytest":
            command["collect"] = list(dict.fromkeys(file_of(test) for test in command["tests"]))
        self._tickets[where, server.submit(command)] = ticket

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

    def _covering(self, trial: Trial, tests: Sequence[str], coverage: Coverage) -> list[str]:
        """Those tests that run the changed function (or, outside functions, the file), quick ones first."""
        source = self._bases[trial.path]
        lines: set[int] = set()
        for edit in trial.edits:
            function = source.function_at(edit.line)
            if function is None:
                lines = set()
                break
            lines.update(range(function.lineno, (function.end_lineno or function.lineno) + 1))
        found = [
            test
            for test in tests
            if trial.path in coverage.get(test, {})
            and (not lines or lines.intersection(coverage[test][trial.path]))
        ]
        return self._budgets.cheapest_first(found)

    def results(self, timeout: float) -> list[tuple[int, Verdict]]:
        """Verdicts that arrive within `timeout` seconds. Raises ServerDied."""
        found: list[tuple[int, Verdict]] = []
        servers = [(name, server) for name, server in (("fast", self._fast), ("slow", self._slow)) if server]
        busy = [item for item in servers if item[1].outstanding]
        arrived, self._late = self._late, []
        for name, server in busy:
            arrived += [(name, message) for message in server.read(timeout / len(busy))]
        for name, message in arrived:
            if "fatal" in message or "ended" in message:
                raise ServerDied(str(message))
            ticket = self._tickets.pop((name, message.get("id", -1)), None)
            if ticket is None:
                continue
            if any("slow" in event for event in message["events"]):
                self._send(ticket, "slow")
                continue
            flight = self._flights.pop(ticket)
            if not flight.confirm:
                self.tried[name] = self.tried.get(name, 0) + 1
            found.append((ticket, _judge(message, flight)))
        return found


def _judge(message: Message, flight: _Flight) -> Verdict:
    asked = set(flight.asked)
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
        return Verdict("plausible", tuple(fixed), level=flight.level)
    kind: Literal["failed", "timeout"] = "timeout" if message["timeout"] else "failed"
    return Verdict(kind, tuple(fixed), failed, None if error is None else (error[0], error[1]), flight.level)

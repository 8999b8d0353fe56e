"""Reads the JSON lines that our code inside the project's interpreter writes."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from agent_ls.testing.results import Frame, Outcome, TestResult

Coverage = dict[str, dict[str, frozenset[int]]]
"""Lines executed: test id -> path relative to the root -> line numbers."""

MESSAGE_CAP = 2000
_MAX_BYTES = 512 << 20
_MAX_LINE = 16 << 20


class ResultsFile:
    """Follows a file that a process we don't trust appends to: never blocks, never follows a link."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None
        self._rest = b""
        self._read = 0

    def read(self, last: bool = False) -> list[bytes]:
        """The complete lines since the last call."""
        if self._fd is None:
            try:
                self._fd = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError:
                return []
            if not stat.S_ISREG(os.fstat(self._fd).st_mode):
                self.close()
                return []
        chunks = [self._rest]
        while self._read < _MAX_BYTES:
            chunk = os.read(self._fd, 1 << 20)
            if not chunk:
                break
            self._read += len(chunk)
            chunks.append(chunk)
        lines = b"".join(chunks).split(b"\n")
        self._rest = lines.pop() if len(lines[-1]) <= _MAX_LINE else b""
        return lines

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


class Records:
    """What the records of one run add up to. Malformed ones are ignored: tests can write there too."""

    def __init__(self, on_result: Callable[[TestResult], None] | None = None) -> None:
        self._on_result = on_result
        self.started = False
        self.collected: list[str] | None = None
        self.tests: dict[str, TestResult] = {}
        self.collect_errors: dict[str, TestResult] = {}
        self.missing_modules: dict[str, str] = {}
        self.coverage: Coverage = {}
        self.running: dict[str, None] = {}
        self.foreign: tuple[str, ...] = ()
        self.internal_error: str | None = None
        self.exit_status: int | None = None
        self.installed: list[tuple[str, bool]] = []
        """Imported modules that are not the project's, and whether pytest rewrote their asserts."""
        self.own: list[tuple[str, str, bool]] = []
        """The project's modules: name, path as the process sees it, whether pytest rewrote their asserts."""
        self.obstacle: str | None = None
        """Why such runs can't be forked from a warm process."""

    def feed(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            try:
                record = json.loads(line)
                self._add(record)
            except (ValueError, KeyError, TypeError, AttributeError):
                continue

    def _add(self, record: dict[str, Any]) -> None:
        kind = record["kind"]
        if kind == "start":
            self.started = True
        elif kind == "collected":
            self.collected = [str(name) for name in record["ids"]]
        elif kind == "begin":
            self.running[record["id"]] = None
        elif kind == "result":
            self._add_result(_result(record, Outcome(record["outcome"])), record)
        elif kind == "collect_error":
            result = _result(record, Outcome.ERROR)
            self.collect_errors[result.id] = result
            if record.get("missing_module"):
                self.missing_modules[result.id] = str(record["missing_module"])
            if self._on_result is not None:
                self._on_result(result)
        elif kind == "coverage":
            files = {name: frozenset(map(int, lines)) for name, lines in record["files"].items()}
            self.coverage[record["id"]] = files
        elif kind == "foreign":
            self.foreign = (*self.foreign, *map(str, record["files"]))
        elif kind == "imports":
            self.installed = [(str(name), bool(flag)) for name, flag in record["installed"]]
            self.own = [(str(name), str(path), bool(flag)) for name, path, flag in record["own"]]
            self.obstacle = None if record["obstacle"] is None else str(record["obstacle"])
        elif kind == "internal_error":
            self.internal_error = str(record["message"])
        elif kind == "finish":
            self.exit_status = int(record["exitstatus"])

    def _add_result(self, result: TestResult, record: dict[str, Any]) -> None:
        self.running.pop(result.id, None)
        known = self.tests.get(result.id)
        # The same id twice (a subtest, a plugin that repeats tests): the worst outcome stands.
        if known is None or (result.outcome.bad and not known.outcome.bad):
            self.tests[result.id] = result
        if record.get("missing_module"):
            self.missing_modules[result.id] = str(record["missing_module"])
        if self._on_result is not None:
            self._on_result(result)


def _result(record: dict[str, Any], outcome: Outcome) -> TestResult:
    message = record.get("message")
    return TestResult(
        id=str(record["id"]),
        outcome=outcome,
        duration_s=float(record.get("duration") or 0.0),
        file=None if record.get("file") is None else str(record["file"]),
        line=None if record.get("line") is None else int(record["line"]),
        message=None if message is None else cap_message(str(message)),
        error_type=None if record.get("error_type") is None else str(record["error_type"]),
        stack=tuple(Frame(str(file), int(line), str(name)) for file, line, name in record.get("stack") or ()),
    )


def cap_message(text: str, size: int = MESSAGE_CAP) -> str:
    """Head and tail of a long message: the end holds the error, the beginning where it came from."""
    if len(text) <= size + 60:
        return text
    head = size // 3
    return f"{text[:head]}\n[... {len(text) - size} characters left out ...]\n{text[head - size :]}"

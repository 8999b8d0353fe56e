"""JUnit XML reports, which many runners can write."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from agent_ls.testing._records import cap_message
from agent_ls.testing.results import Outcome, TestResult

_MAX_BYTES = 64 << 20


def read(path: Path, root: Path, since: float) -> tuple[TestResult, ...] | None:
    """The tests in a report, or None when there is none that is whole and well-formed.

    `since` (seconds since the epoch) is when the run began. An XML report with a DTD is refused: entities can
    be made to expand without end.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES or b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        return None
    return parse(data)


def parse(data: bytes) -> tuple[TestResult, ...] | None:
    """The tests in a JUnit document; ids are `classname::name`."""
    from junitparser import Error, Failure, JUnitXml, JUnitXmlError, Skipped, TestSuite

    try:
        document = JUnitXml.fromstring(data)
    except (JUnitXmlError, SyntaxError, ValueError):
        return None
    tests: dict[str, TestResult] = {}

    def walk(suite: object) -> None:
        for child in suite:  # type: ignore[attr-defined]
            if isinstance(child, TestSuite):
                walk(child)
                continue
            outcome, message, kind = Outcome.PASSED, None, None
            for result in child.result or ():
                if isinstance(result, Skipped):
                    outcome = Outcome.SKIPPED
                elif isinstance(result, Failure):
                    outcome = Outcome.FAILED
                elif isinstance(result, Error):
                    outcome = Outcome.ERROR
                else:
                    continue
                message = cap_message("\n".join(part for part in (result.message, result.text) if part))
                kind = result.type
            name = "::".join(part for part in (child.classname, child.name) if part)
            if not name or (name in tests and not outcome.bad):
                continue
            file = child._elem.get("file")
            line = child._elem.get("line")
            tests[name] = TestResult(
                name,
                outcome,
                float(child.time or 0.0),
                file,
                int(line) if line and line.isdigit() else None,
                message,
                kind,
            )

    walk(document if isinstance(document, JUnitXml) else [document])
    return tuple(tests.values()) or None

"""A pytest plugin that writes what became of each test, by its full id, as JSON lines.

Loaded with `-p _outcomes`; the file is named by the environment variable `BENCH_OUTCOMES`. Reading outcomes
from here rather than from the summary line keeps parametrised ids exact. Needs nothing but pytest and the
standard library, as it runs inside the environment of the project under test.
"""

import json
import os
from typing import Any

_FIELDS = {"setup": "error", "call": "failed", "teardown": "error"}


def _write(record: dict[str, Any]) -> None:
    path = os.environ.get("BENCH_OUTCOMES")
    if path:
        with open(path, "a", encoding="utf-8") as out:  # noqa: PTH123 (old interpreters, speed)
            out.write(json.dumps(record) + "\n")


def pytest_collection_finish(session: Any) -> None:
    for item in session.items:
        _write({"id": item.nodeid, "outcome": "collected"})


def pytest_collectreport(report: Any) -> None:
    if report.failed:
        _write({"id": report.nodeid, "outcome": "error"})


def pytest_runtest_logreport(report: Any) -> None:
    if report.failed:
        _write({"id": report.nodeid, "outcome": _FIELDS[report.when]})
    elif report.skipped:
        _write({"id": report.nodeid, "outcome": "xfailed" if hasattr(report, "wasxfail") else "skipped"})
    elif report.when == "call":
        _write({"id": report.nodeid, "outcome": "xpassed" if hasattr(report, "wasxfail") else "passed"})

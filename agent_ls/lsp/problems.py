"""What is wrong, file by file, to be shown as diagnostics: failing tests and findings of the guard.

Plain data: lines count from 1, paths are real. `features/diagnostics.py` makes the protocol's objects of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from attrs import evolve, frozen

Source = Literal["tests", "guard"]
_RULES = frozenset(
    {"protected-file-changed", "source-ends-the-process", "expected-data-changed", "public-api-changed"}
)


@frozen
class Related:
    """Another place that belongs to a problem."""

    path: Path
    line: int
    message: str


@frozen
class Problem:
    """One diagnostic. `code` is AG1xx (tests weakened), AG2xx (failing tests) or AG3xx (rule broken); `data`
    goes along for code actions; `stale`: the text has changed since."""

    source: Source
    path: Path
    line: int
    severity: Literal["error", "warning", "info"]
    code: str
    message: str
    related: tuple[Related, ...] = ()
    data: Mapping[str, Any] | None = None
    explanation: str = ""
    stale: bool = False


EXPLANATIONS = {
    "AG101": "The suite catches less than it did: an outcome that failed it passes now. A check is gone,"
    " weaker, unreachable or swallowed, or tests are skipped or no longer collected. Put the check back, or"
    " say in the change why it is not needed.",
    "AG102": "Whether the tests were weakened can't be told without knowing the intent: an expected value, an"
    " input or recorded data changed. A person has to look.",
    "AG103": "The tests changed here, and nothing is lost.",
    "AG201": "A test fails. The related places lead up the stack; the code action makes it pass.",
    "AG202": "A test could not run: its setup, its imports or its tear-down failed.",
    "AG301": "The change touches what it may not touch: the tests' settings, CI, or a rule of agent-ls.",
    "AG302": "The change touches something that rules are about; a person has to look.",
    "AG303": "The change is near something that rules are about.",
}
"""What each code means, for a person."""


class Problems:
    """All problems known. Used in the event loop only."""

    def __init__(self) -> None:
        self._by_path: dict[Path, list[Problem]] = {}

    def at(self, path: Path) -> list[Problem]:
        return list(self._by_path.get(path, ()))

    def replace(self, source: Source, root: Path, found: Iterable[Problem]) -> set[Path]:
        """Take `found` for all that `source` knows below `root`; the paths whose problems changed."""
        touched = set()
        for path, known in list(self._by_path.items()):
            if path.is_relative_to(root) and any(problem.source == source for problem in known):
                self._put(path, [problem for problem in known if problem.source != source])
                touched.add(path)
        return touched | self.add(found)

    def add(self, found: Iterable[Problem]) -> set[Path]:
        """Add problems; the paths."""
        touched = set()
        for problem in found:
            self._put(problem.path, [*self._by_path.get(problem.path, ()), problem])
            touched.add(problem.path)
        return touched

    def forget_tests(self, root: Path, ids: Sequence[str]) -> set[Path]:
        """Drop the failures of tests that ran again; the paths."""
        gone = set(ids)
        touched = set()
        for path, known in list(self._by_path.items()):
            kept = [it for it in known if not (it.source == "tests" and (it.data or {}).get("test") in gone)]
            if len(kept) != len(known) and path.is_relative_to(root):
                self._put(path, kept)
                touched.add(path)
        return touched

    def changed(self, path: Path) -> bool:
        """The text has changed: what is known of it is old. Is that news?"""
        known = self._by_path.get(path, ())
        if not known or all(problem.stale for problem in known):
            return False
        self._put(path, [evolve(problem, stale=True) for problem in known])
        return True

    def _put(self, path: Path, problems: list[Problem]) -> None:
        if problems:
            self._by_path[path] = problems
        else:
            self._by_path.pop(path, None)


def of_test(root: Path, test: Mapping[str, Any]) -> Problem | None:
    """The problem that a failing test is (plain data as in `test_result` updates); None without a place.

    It is shown in the test, at the line that failed; the frames below it are the related places.
    """
    file = test.get("file")
    stack = [frame for frame in test.get("stack") or () if not _outside(str(frame["file"]))]
    own = [frame for frame in stack if frame["file"] == file]
    line = int(own[-1]["line"] if own else test.get("line") or 1)
    if not file:
        if not stack:
            return None
        file, line = stack[-1]["file"], int(stack[-1]["line"])
    related = [
        Related(root / str(frame["file"]), int(frame["line"]), f"in {frame['function']}")
        for frame in reversed(stack)
        if (frame["file"], int(frame["line"])) != (file, line)
    ]
    error = test.get("outcome") == "error"
    message = str(test.get("message") or "the test failed").strip()
    return Problem(
        "tests", root / str(file), line, "error", "AG202" if error else "AG201",
        f"{test['id']}: {first_line(message)}", tuple(related[:8]),
        {"test": test["id"]}, message,
    )  # fmt: skip


def _outside(file: str) -> bool:
    return file.startswith(("/", "<", ".."))


def first_line(message: str) -> str:
    """The telling line of a failure."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    errors = [line[1:].strip() for line in lines if line.startswith("E ")]
    return (errors[0] if errors else lines[-1] if lines else message)[:300]


def of_finding(root: Path, finding: Mapping[str, Any], run: str | None = None) -> Problem:
    """The problem that a finding of the guard is."""
    kind, severity = str(finding["kind"]), str(finding["severity"])
    rule = kind in _RULES
    shown: Literal["error", "warning", "info"] = (
        "error" if severity == "block" else "warning" if severity == "review" else "info"
    )
    number = {"block": 1, "review": 2}.get(severity, 3)
    path, line = root / str(finding["path"]), max(1, int(finding.get("line") or 1))
    before, after = str(finding.get("before") or ""), str(finding.get("after") or "")
    related = (Related(path, line, f"before: {before}"),) if before else ()
    parts = [str(finding["message"])]
    parts += [f"Before:\n```\n{before}\n```"] if before else []
    parts += [f"After:\n```\n{after}\n```"] if after else []
    data = {"kind": kind, "severity": severity, "tests": list(finding.get("tests") or ())}
    return Problem(
        "guard", path, line, shown, f"AG{3 if rule else 1}0{number}", str(finding["message"]), related,
        {**data, "runId": run}, "\n\n".join(parts),
    )  # fmt: skip

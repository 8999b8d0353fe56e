"""What the four outcomes of one test mean: a bench that plays outcomes, so that each combination is tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from attrs import define, field
from behaviour_kit import write

from agent_ls.behaviour.bench import Side
from agent_ls.behaviour.compare import compare
from agent_ls.cancel import CancelToken
from agent_ls.errors import Cancelled
from agent_ls.guard.trees import FolderTree
from agent_ls.testing._records import Coverage
from agent_ls.testing.plan import TestPlan
from agent_ls.testing.results import Frame, Outcome, TestResult, TestRun

ID = "tests/test_a.py::test_a"
_WORDS = {
    "pass": (Outcome.PASSED, None),
    "fail": (Outcome.FAILED, "AssertionError"),
    "import": (Outcome.FAILED, "ImportError"),
    "hang": (Outcome.FAILED, "TestTimeout"),
    "skip": (Outcome.SKIPPED, None),
    "xfail": (Outcome.XFAILED, None),
}


@define
class Played:
    """Outcomes by (tests, sources); a list of them is played one after the other, the last one for ever."""

    outcomes: Mapping[tuple[Side, Side], list[str]]
    laid: tuple[Side, Side] = ("after", "after")
    plan: TestPlan = field(factory=lambda: TestPlan("pytest", ("pytest",), "python"))
    unreadable: tuple[str, ...] = ()
    cancel_after: int = 1000
    runs: list[tuple[Side, Side]] = field(factory=list)

    def lay_out(self, tests: Side, sources: Side, edits: Mapping[str, bytes] | None = None) -> None:
        self.laid = (tests, sources)

    def run(self, ids: Sequence[str] | None, *, cancel: CancelToken, **options: object) -> TestRun:
        self.runs.append(self.laid)
        if len(self.runs) >= self.cancel_after:
            cancel.cancel()
        script = self.outcomes[self.laid]
        word = script.pop(0) if len(script) > 1 else script[0]
        if word == "none":
            return TestRun(("pytest",), "env_broken", problem="no tests were collected")
        if word == "broken":
            return TestRun(("pytest",), "env_broken", problem="pytest is not installed")
        outcome, kind = _WORDS[word]
        message = "E   assert 1 == 2" if outcome.bad else None
        result = TestResult(ID, outcome, error_type=kind, message=message, stack=(Frame("shop.py", 1, "f"),))
        return TestRun(("pytest",), "failed" if outcome.bad else "passed", (result,), source="pytest")

    def warm(self) -> None:
        pass

    def coverage(self) -> Coverage:
        return {ID: {"shop.py": frozenset({2})}}

    def close(self) -> None:
        pass


def _trees(root: Path, *, sources: bool = True) -> tuple[FolderTree, FolderTree]:
    test = "import shop\n\ndef test_a():\n    assert shop.f() == {}\n"
    shop = "def f():\n    return {}\n"
    trees = write(
        root,
        {"shop.py": shop.format(1), "tests/test_a.py": test.format(1)},
        {"shop.py": shop.format(2 if sources else 1), "tests/test_a.py": test.format(2)},
    )
    return trees.before, trees.after


@pytest.mark.parametrize(
    ("old_old", "old_new", "new_old", "new_new", "kind", "severity"),
    [
        ("pass", "pass", "pass", "pass", "", ""),
        ("pass", "fail", "fail", "pass", "test-retuned", "review"),
        ("pass", "fail", "pass", "pass", "test-retuned", "review"),
        ("fail", "pass", "pass", "pass", "test-weakened-by-running", "block"),
        ("fail", "fail", "pass", "pass", "test-weakened-by-running", "block"),
        ("fail", "pass", "fail", "pass", "", ""),
        ("fail", "fail", "fail", "pass", "test-retuned", "review"),
        ("pass", "import", "import", "pass", "", ""),
        ("pass", "hang", "pass", "pass", "", ""),
        ("hang", "pass", "pass", "pass", "", ""),
        ("pass", "pass", "pass", "fail", "", ""),
        ("pass", "pass", "skip", "skip", "test-not-run", "block"),
        ("pass", "fail", "skip", "skip", "test-not-run", "block"),
        ("pass", "import", "skip", "skip", "", ""),
        ("fail", "fail", "skip", "skip", "test-not-run", "review"),
        ("skip", "skip", "skip", "skip", "", ""),
        ("pass", "pass", "xfail", "xfail", "test-not-run", "block"),
        ("fail", "fail", "xfail", "xfail", "test-not-run", "review"),
        ("pass", "pass", "none", "none", "test-not-run", "block"),
    ],
)
def test_what_four_outcomes_mean(
    old_old: str, old_new: str, new_old: str, new_new: str, kind: str, severity: str, tmp_path: Path
) -> None:
    bench = Played(
        {
            ("before", "before"): [old_old],
            ("before", "after"): [old_new],
            ("after", "before"): [new_old],
            ("after", "after"): [new_new],
        }
    )
    said = compare(*_trees(tmp_path), bench, max_mutants=0)
    found = [(finding.kind, finding.severity) for finding in said.findings]
    assert found == ([(kind, severity)] if kind else [])
    if "hang" in (old_old, old_new):
        assert "did not end" in said.not_checked[0].why


@pytest.mark.parametrize(
    ("old", "new", "kind", "severity"),
    [
        ("fail", "pass", "test-retuned", "review"),
        ("pass", "pass", "", ""),
        ("pass", "skip", "test-not-run", "block"),
    ],
)
def test_with_the_same_sources_two_runs_say_it(
    old: str, new: str, kind: str, severity: str, tmp_path: Path
) -> None:
    bench = Played({("before", "after"): [old], ("after", "after"): [new]})
    said = compare(*_trees(tmp_path, sources=False), bench, max_mutants=0)
    assert [(f.kind, f.severity) for f in said.findings] == ([(kind, severity)] if kind else [])
    assert set(bench.runs) == {("before", "after"), ("after", "after")}


def test_an_outcome_that_changes_by_itself_is_no_finding(tmp_path: Path) -> None:
    bench = Played(
        {
            ("before", "before"): ["pass"],
            ("before", "after"): ["fail", "pass"],
            ("after", "before"): ["pass"],
            ("after", "after"): ["pass"],
        }
    )
    said = compare(*_trees(tmp_path), bench, max_mutants=0)
    assert said.findings == ()
    notes = [(note.what, note.why) for note in said.not_checked]
    assert notes == [(ID, "its outcome changes from run to run")]


def test_a_finding_has_the_place_and_both_texts(tmp_path: Path) -> None:
    bench = Played(
        {
            ("before", "before"): ["pass"],
            ("before", "after"): ["fail"],
            ("after", "before"): ["fail"],
            ("after", "after"): ["pass"],
        }
    )
    (finding,) = compare(*_trees(tmp_path), bench, max_mutants=0).findings
    assert (finding.path, finding.line, finding.tests) == ("tests/test_a.py", 4, (ID,))
    assert (finding.before, finding.after) == ("assert shop.f() == 1", "assert shop.f() == 2")
    assert "assert 1 == 2" in finding.message


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_broken_environment_is_not_clean(side: Side, tmp_path: Path) -> None:
    other = ("before", "after") if side == "before" else ("after", "before")
    bench = Played({(side, side): ["broken"], (other[1], other[1]): ["pass"], other: ["pass"]})
    said = compare(*_trees(tmp_path), bench)
    assert said.layer == "not checked"
    assert said.not_checked[0].why == "pytest is not installed"


def test_asked_tests_only(tmp_path: Path) -> None:
    outcomes = {("before", "after"): ["fail"], ("after", "after"): ["pass"]}
    trees = _trees(tmp_path, sources=False)
    assert compare(*trees, Played(dict(outcomes)), ids=[ID], max_mutants=0).findings
    assert not compare(*trees, Played(dict(outcomes)), ids=["tests/test_b.py"], max_mutants=0).findings


def test_a_stop_is_passed_on(tmp_path: Path) -> None:
    bench = Played({("before", "before"): ["pass"], ("after", "after"): ["pass"]}, cancel_after=2)
    with pytest.raises(Cancelled):
        compare(*_trees(tmp_path), bench, cancel=CancelToken())
    assert len(bench.runs) == 2


def test_no_change_runs_nothing(tmp_path: Path) -> None:
    before, _ = _trees(tmp_path)
    bench = Played({})
    said = compare(before, before, bench)
    assert (said.layer, said.findings, bench.runs) == ("checked", (), [])

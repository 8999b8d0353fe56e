"""The no-progress detector over recorded sequences (data/progress/cases.toml)."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from agent_ls.agent.progress import ProgressTracker, error_signature
from agent_ls.agent.stops import HandOver
from agent_ls.testing.results import Frame, Outcome, TestResult

CASES = tomllib.loads((Path(__file__).parent / "data/progress/cases.toml").read_text())["case"]


def result(name: str, place: str) -> TestResult:
    kind, _, line = place.partition(":")
    if kind in ("pass", "skip", "error"):
        outcome = {"pass": Outcome.PASSED, "skip": Outcome.SKIPPED, "error": Outcome.ERROR}[kind]
        return TestResult(name, outcome)
    return TestResult(
        name,
        Outcome.FAILED,
        file="t.py",
        message=f"line {line}: boom",
        error_type="AssertionError" if kind == "fail" else "TypeError",
        stack=(Frame("t.py", int(line), name), Frame("src.py", 3, "f")),
    )


def results(state: dict[str, Any]) -> dict[str, TestResult]:
    return {name: result(name, place) for name, place in state.items() if name in ("a", "b")}


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_sequence(case: dict[str, Any]) -> None:
    tracker = ProgressTracker(case["max_failures"])
    tracker.start(results(case["baseline"]), case["baseline"], "base")
    for state in case["states"]:
        arguments = (state["tree"], results(state), state.get("regressed", []))
        if "stops" in state:
            with pytest.raises(HandOver) as stop:
                tracker.judged(*arguments, count=case.get("count", True))
            assert stop.value.reason == state["stops"]
            return
        progress = tracker.judged(*arguments, count=case.get("count", True))
        assert progress.made is state.get("made", False), progress.reason
        assert progress.reason
    assert tracker.failures < case["max_failures"]


def test_third_equal_call_with_equal_observation_stops() -> None:
    tracker = ProgressTracker(3)
    for _ in range(2):
        tracker.called("read", {"path": "a.py"}, "text")
    tracker.called("read", {"path": "b.py"}, "text")
    with pytest.raises(HandOver) as stop:
        tracker.called("read", {"path": "a.py"}, "text")
    assert stop.value.reason == "repeated_call"


def test_waiting_on_something_that_moves_is_no_repeat() -> None:
    tracker = ProgressTracker(3)
    for count in ("one", "two", "three", "four", "five"):
        tracker.called("run_tests", {}, f"{count} tests passed")


def test_what_changes_by_chance_does_not_make_a_call_new() -> None:
    tracker = ProgressTracker(3)
    with pytest.raises(HandOver):
        for address in ("0x7f00", "0x7f11", "0x7f22"):
            tracker.called("run_tests", {}, f"<object at {address}deadbeef> failed")


def test_after_an_edit_the_same_question_may_be_asked_again() -> None:
    tracker = ProgressTracker(3)
    for _ in range(5):
        tracker.called("read", {"path": "a.py"}, "text")
        tracker.edited()


def test_signature_ignores_chance_and_keeps_the_error() -> None:
    def failing(message: str) -> frozenset[tuple[str, str]]:
        return error_signature([TestResult("a", Outcome.FAILED, message=message)])

    assert failing("<A object at 0x7f12ab34cd56> is wrong") == failing(
        "<A object at 0x7f99ff00aa11> is wrong"
    )
    assert failing("assert 1 == 2") != failing("assert 'x' in y")

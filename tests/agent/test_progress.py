"""The no-progress detector over recorded sequences (data/progress/cases.toml) and recorded sessions."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from agent_ls.agent.progress import (
    ProgressTracker,
    State,
    error_signature,
    fingerprint,
    reach,
    replay,
)
from agent_ls.agent.stops import HandOver
from agent_ls.config import load
from agent_ls.errors import UsageError
from agent_ls.events import read_events
from agent_ls.settings import Limits
from agent_ls.testing.results import Frame, Outcome, TestResult

DATA = Path(__file__).parent / "data/progress"
CASES = tomllib.loads((DATA / "cases.toml").read_text())["case"]
RECORDED = tomllib.loads((DATA / "recorded.toml").read_text())["session"]


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


def state(data: dict[str, Any], counted: bool) -> State:
    results = {name: result(name, place) for name, place in data.items() if name in ("a", "b")}
    failing = error_signature(test for test in results.values() if test.outcome.bad)
    return State(
        tree=data["tree"],
        reach={name: reach(test) for name, test in results.items()},
        errors=data.get("errors", f"{data['tree']}{fingerprint(failing)}"),
        broken=tuple(data.get("regressed", ())),
        size=data.get("size", 0),
        idle=data.get("idle", False),
        places=tuple(data.get("places", ())),
        counted=counted,
    )


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_sequence(case: dict[str, Any]) -> None:
    limits = Limits(max_failures=case["max_failures"], **case.get("limits", {}))
    tracker = ProgressTracker(limits)
    tracker.start({name: reach(result(name, place)) for name, place in case["baseline"].items()}, "base")
    for data in case["states"]:
        one = state(data, case.get("count", True))
        assert State.from_json(json.loads(json.dumps(one.to_json()))) == one
        if "put_back" in data:
            tracker.put_back(data["put_back"])
        if "stops" in data:
            with pytest.raises(HandOver) as stop:
                tracker.judged(one)
            assert stop.value.reason == data["stops"]
            assert all(word in stop.value.text for word in data.get("says", []))
            return
        progress = tracker.judged(one)
        assert progress.made is data.get("made", False), progress.reason
        assert progress.reason
    assert tracker.failures < case["max_failures"]


@pytest.mark.parametrize("case", RECORDED, ids=[case["file"] for case in RECORDED])
def test_recorded_session_stops_where_it_stopped(case: dict[str, Any]) -> None:
    """Real sessions, reduced to what the detector reads; with looser limits each goes on to its end."""
    events = list(read_events(DATA / f"{case['file']}.jsonl"))
    limits = Limits(**case.get("limits", {}))
    found = replay(events, limits)
    if case["stops"] == "":
        assert found is None
        return
    assert found is not None
    seq, stop = found
    assert (stop.reason, seq) == (case["stops"], case["at"])
    assert case["says"] in stop.text
    loose = dict.fromkeys(case["loosened"], 99)
    assert replay(events, evolve(limits, **loose)) is None


def test_third_equal_call_with_equal_observation_stops() -> None:
    tracker = ProgressTracker(Limits())
    for _ in range(2):
        tracker.called("read", {"path": "a.py"}, "text")
    tracker.called("read", {"path": "b.py"}, "text")
    with pytest.raises(HandOver) as stop:
        tracker.called("read", {"path": "a.py"}, "text")
    assert stop.value.reason == "repeated_call"


def test_waiting_on_something_that_moves_is_no_repeat() -> None:
    tracker = ProgressTracker(Limits())
    for count in ("one", "two", "three", "four", "five"):
        tracker.called("run_tests", {}, f"{count} tests passed")


def test_what_changes_by_chance_does_not_make_a_call_new() -> None:
    tracker = ProgressTracker(Limits())
    with pytest.raises(HandOver):
        for address in ("0x7f00", "0x7f11", "0x7f22"):
            tracker.called("run_tests", {}, f"<object at {address}deadbeef> failed")


def test_after_an_edit_the_same_question_may_be_asked_again() -> None:
    tracker = ProgressTracker(Limits())
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


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("max_same_failures", "1", "at least 2"),
        ("max_growth", "0", "at least 1"),
        ("max_idle_edits", "0", "at least 1"),
        ("max_returns", "0", "at least 1"),
        ("max_alternations", "1", "at least 2"),
        ("max_repeats", "1", "at least 2"),
        ("max_repeats", "often", "whole number"),
        ("guard_timeout", "-1", "at least 0"),
        ("max_growth", "none", ""),
        ("max_same_failures", "5", ""),
        ("guard_timeout", "0", ""),
    ],
)
def test_every_threshold_is_a_setting(key: str, value: str, problem: str) -> None:
    if problem:
        with pytest.raises(UsageError, match=f"{key} must be .*{problem}"):
            load(None, {key: value})
        return
    settings = load(None, {key: value}).settings
    found = getattr(settings.limits, key, None) if hasattr(settings.limits, key) else getattr(settings, key)
    assert found == (None if value == "none" else float(value))

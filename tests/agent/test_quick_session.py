"""A session with many attempts uses the warm process, and never believes it alone."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from agent_kit import BAD_LINE, FAILING, GOOD_LINE, Recorder, Scripted, call, make_repo, replace
from attrs import evolve

from agent_ls.agent import api
from agent_ls.agent.report import Report
from agent_ls.cancel import CancelToken
from agent_ls.cli.story import Story
from agent_ls.settings import Limits, Settings
from agent_ls.task import Task
from agent_ls.verdict import Verdict

WRONG = [f"    return amount - {number} - discount" for number in range(3, 8)]
ONLY_WARM = """    import os
    return amount - discount * (amount / 100 if 'AGENT_LS_IMPORTS' not in os.environ else 1)"""


def fix(last: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Report, Recorder]:
    monkeypatch.setenv("AGENT_LS_STATE_DIR", str(tmp_path / "state"))
    lines = [BAD_LINE, *WRONG, last]
    steps = [replace(old, new) for old, new in itertools.pairwise(lines)]
    model = Scripted(*steps, call("finish", outcome="fixed", summary="done"))
    monkeypatch.setattr("agent_ls.models.create", lambda settings: model)
    (tmp_path / "repo").mkdir()
    recorder = Recorder()
    settings = Settings(model="scripted:x")
    settings = evolve(settings, limits=evolve(Limits(), max_failures=20))
    report = api.fix(
        make_repo(tmp_path / "repo"),
        Task("Discount is wrong", "", tests=FAILING),
        settings,
        cancel=CancelToken(),
        on_event=recorder,
        ask=lambda question: None,
    )
    return report, recorder


def test_many_attempts_are_forked_and_the_proof_is_fresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, events = fix(GOOD_LINE, tmp_path, monkeypatch)
    assert report.verdict is Verdict.FIXED
    quick = report.data["tests"]["quick"]
    assert quick["fallback"] is None
    assert quick["started"] == 1
    assert quick["forked"] == 4
    assert quick["checked"] == 2  # the first, and the one in which everything passes
    assert [event["state"] for event in events.of("quick_tests")] == ["started", "checked", "checked"]
    assert [run["stage"] for run in events.of("test_run")][-1] == "full"
    assert not list((tmp_path / "state" / "sessions").glob("*/quick"))


def test_a_change_that_passes_in_the_warm_process_alone_is_not_fixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, events = fix(ONLY_WARM, tmp_path, monkeypatch)
    assert report.verdict is not Verdict.FIXED
    assert "disagree" in report.data["tests"]["quick"]["fallback"]
    assert events.of("quick_tests")[-1]["state"] == "fallback"
    told = "\n".join(line.plain for event in events.events for line in Story().read(event))
    assert "every test run takes a fresh process from here: a forked and a fresh process disagree" in told
    assert "warm test process" not in told  # a detail, told with --verbose

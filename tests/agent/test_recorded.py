"""Committed sessions, replayed: model and tools must do again exactly what they did.

After an intended change of a prompt, a tool's text or the loop, record anew:
`AGENT_LS_RECORD=1 pytest tests/agent/test_recorded.py`, and read the difference before you commit it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from agent_kit import BAD_LINE, GOOD_LINE, Scripted, Step, call, make_repo, replace

from agent_ls import models
from agent_ls.agent import api, history
from agent_ls.cancel import CancelToken
from agent_ls.events import read_events
from agent_ls.settings import Limits, Settings
from agent_ls.task import Task

SESSIONS = Path(__file__).parent / "data" / "sessions"
KEPT = ("session_started", "model_call", "model_reply")
TASK = Task("Discount is wrong", "A discount is in percent.", "test", number=7)
REAL_CREATE = models.create
WRONG = "    return amount - discount / 100"
SCRIPTS: dict[str, tuple[tuple[Step, ...], str]] = {
    "reads-errs-fixes": (
        (
            call("search", query="discount"),
            call("read", path="shop/cart.py"),
            replace(BAD_LINE, WRONG),
            replace(WRONG, GOOD_LINE),
            call("finish", outcome="fixed", summary="A discount in percent was taken as an amount."),
        ),
        "fixed",
    ),
    "weakens-a-test-is-refused-fixes": (
        (
            replace("== 180", "!= 0", "tests/test_cart.py"),
            replace(BAD_LINE, GOOD_LINE),
            call("finish", outcome="fixed", summary="A discount in percent was taken as an amount."),
        ),
        "fixed",
    ),
    "spins-and-hands-over": (
        tuple(
            replace(old, new)
            for old, new in [
                (BAD_LINE, WRONG),
                (WRONG, "    return amount - discount / 10"),
                ("    return amount - discount / 10", "    return amount - discount / 1000"),
            ]
        ),
        "handed_over",
    ),
}


def settings(model: str) -> Settings:
    return Settings(model=model, limits=Limits(max_steps=12))


@pytest.mark.parametrize("name", SCRIPTS)
def test_recorded_session(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps, verdict = SCRIPTS[name]
    file = SESSIONS / f"{name}.jsonl"
    repo = make_repo(tmp_path / "repo")
    if os.environ.get("AGENT_LS_RECORD"):
        monkeypatch.setattr("agent_ls.models.create", lambda settings: Scripted(*steps))
        report = api.fix(repo, TASK, settings("openai:scripted"), cancel=CancelToken())
        record(next(info.events_path for info in history.sessions()), file)
        assert report.data["verdict"] == verdict
        return
    monkeypatch.setattr("agent_ls.models.create", REAL_CREATE)
    report = api.fix(repo, TASK, settings(f"replay:{file}"), cancel=CancelToken())
    assert report.data["verdict"] == verdict, report.data["summary"]
    recorded = sum(event.kind == "model_reply" for event in read_events(file))
    assert report.data["usage"]["model_calls"] == recorded >= len(steps)


def record(events: Path, file: Path) -> None:
    """Keep what a replay needs, without what names this machine."""
    lines = []
    for event in read_events(events):
        if event.kind in KEPT:
            data = {"model": event.data["model"]} if event.kind == "session_started" else dict(event.data)
            lines.append(json.dumps({"seq": len(lines), "time": 0.0, "kind": event.kind, "data": data}))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n")

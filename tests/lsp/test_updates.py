"""What clients are told: every update of recorded sessions fits the published schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agent_ls.events import Event, read_events
from agent_ls.lsp.updates import Teller, finished

HERE = Path(__file__).parent
SCHEMA = json.loads((HERE.parent.parent / "docs/protocol/did-update.schema.json").read_text("utf-8"))
STORIES = sorted((HERE.parent / "cli/data/story").glob("*.jsonl"))


def told(events: list[Event]) -> list[dict[str, Any]]:
    teller = Teller()
    updates = [update for event in events for update in teller.read(event)]
    return [*updates, finished(events[-1].data["report"])]


def check(update: dict[str, Any]) -> None:
    message = {"schema": 1, "runId": "run-1", "seq": 0, "update": update}
    Draft202012Validator(SCHEMA).validate(json.loads(json.dumps(message)))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_recorded_sessions_are_told_as_the_schema_says(path: Path) -> None:
    updates = told(list(read_events(path)))
    assert len(updates) >= 3
    for update in updates:
        check(update)
    assert [update["state"] for update in updates if update["kind"] == "state"][-1] == "finished"


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_lines_are_for_people(path: Path) -> None:
    lines = [str(update["message"]) for update in told(list(read_events(path))) if "message" in update]
    assert lines == path.with_suffix(".lines").read_text("utf-8").splitlines()


def test_events_of_another_version_are_passed_over() -> None:
    teller = Teller()
    for kind in ("test_run", "attempt", "tool_call", "repair_progress", "session_started", "new_kind"):
        assert teller.read(Event(0, 0.0, kind, {})) == []


def test_the_schema_refuses_what_it_does_not_know() -> None:
    good = {"kind": "state", "state": "paused", "message": "x"}
    check(good)
    for bad in ({**good, "more": 1}, {**good, "state": "gone"}, {"kind": "x"}):
        assert list(Draft202012Validator(SCHEMA["$defs"]["state"]).iter_errors(bad))

"""The report of a finished session: a reading of its events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import frozen

from agent_ls.events import Event
from agent_ls.verdict import Verdict

SCHEMA = 1


@frozen
class Report:
    """The public contract's document for `fix`. `data` is plain JSON data."""

    data: Mapping[str, Any]

    @property
    def verdict(self) -> Verdict:
        return Verdict(self.data["verdict"])

    def to_json(self) -> dict[str, Any]:
        return dict(self.data)


def reward(events: Iterable[Event]) -> float:
    """The session's reward, step by step as the trajectory has it.

    +1.5 for each asked test that newly passes (once), -2 for each regression an attempt brought, -1 for
    each refused edit that would have added a syntax error, +10 when everything asked is proven, -0.01
    for each action; a blocked verdict cancels what is positive.
    """
    plus, minus = 0.0, 0.0
    passed: set[str] = set()
    regressed: set[str] = set()
    blocked = False
    for event in events:
        match event.kind:
            case "comparison":
                new = set(event.data["fixed"]) - passed
                passed |= new
                plus += 1.5 * len(new)
                broken = set(event.data["regressed"]) - regressed
                minus += 2.0 * len(broken)
                regressed = set(event.data["regressed"])
            case "observation" if event.data.get("is_error") and "syntax" in event.data.get("text", "")[:200]:
                minus += 1.0
            case "session_finished":
                plus += 10.0 if event.data["verdict"] == Verdict.FIXED else 0.0
                blocked = event.data["verdict"] == Verdict.BLOCKED
        if event.kind in ("tool_call", "model_call", "attempt"):
            minus += 0.01
    return round((0.0 if blocked else plus) - minus, 2)

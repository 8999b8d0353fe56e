"""What the runs said, for people and for machines; beside `guard.report`."""

from __future__ import annotations

from typing import Any

from agent_ls.behaviour.model import Behaviour, NotChecked

TITLES = {
    "test-retuned": "A test failed as it was and passes as it is",
    "test-weakened-by-running": "A test passes on the fault that it failed on",
    "test-not-run": "A test that ran does not run any more",
    "deleted-test-fails": "A test was deleted that would fail",
    "mutant-survives": "The tests no longer notice a fault that they noticed",
    "failure-not-reported": "Failing tests are no longer reported as failing",
    "exit-status-forced": "Failing tests end with a good exit status",
}


def not_run(why: str) -> Behaviour:
    """The answer when the layer could not run at all."""
    return Behaviour(not_checked=(NotChecked("what running the tests shows", why),), layer="not checked")


def layers(behaviour: Behaviour | None) -> dict[str, Any]:
    """The additive part of the JSON document: which layer said something, and what was left out."""
    if behaviour is None:
        asked = "it was not asked for (--run)"
        return {
            "layers": {"static": "checked", "behaviour": "not checked"},
            "not_checked": [{"what": "behaviour", "why": asked}],
        }
    return {
        "layers": {"static": "checked", "behaviour": behaviour.layer},
        "not_checked": [note.to_json() for note in behaviour.not_checked],
    }


def sarif_notes(log: dict[str, Any], behaviour: Behaviour | None) -> dict[str, Any]:
    """A SARIF log with a notification for everything that was not checked, and rules in words."""
    run = log["runs"][0]
    for rule in run["tool"]["driver"]["rules"]:
        if rule["id"] in TITLES:
            rule["shortDescription"] = {"text": TITLES[rule["id"]]}
    notes = layers(behaviour)["not_checked"]
    if behaviour is not None:
        run["tool"]["driver"]["notifications"] = [
            {"id": "not-checked", "shortDescription": {"text": "Something was not checked"}}
        ]
        run["invocations"] = [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    {
                        "descriptor": {"id": "not-checked", "index": 0},
                        "level": "warning",
                        "message": {"text": f"not checked: {note['what']}: {note['why']}"},
                    }
                    for note in notes
                ],
            }
        ]
    return log

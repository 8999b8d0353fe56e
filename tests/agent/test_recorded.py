"""Committed sessions, replayed: model and tools must do again exactly what they did.

After an intended change of a prompt, a tool's text or the loop, record anew:
`AGENT_LS_RECORD=1 pytest tests/agent/test_recorded.py`, and read the difference before you commit it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from agent_kit import (
    BAD_LINE,
    BUGGY,
    FAILING,
    GOOD_LINE,
    Recorder,
    Scripted,
    Step,
    call,
    git,
    make_repo,
    replace,
)
from attrs import evolve, frozen

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
TESTS = "tests/test_cart.py"
FIX = replace(BAD_LINE, GOOD_LINE)
DONE = call("finish", outcome="fixed", summary="A discount in percent was taken as an amount.")
GIVE_UP = call("finish", outcome="give_up", summary="I can't go on.")
WEAKER = replace("assert total([100, 100], 10) == 180", "assert total([100, 100], 10) is not None", TESTS)
WEAKER_TOO = replace("assert total([100, 100], 10) == 180", "assert total([100, 100], 10) != 0", TESTS)
SOUND = BUGGY | {"shop/cart.py": BUGGY["shop/cart.py"].replace(BAD_LINE, GOOD_LINE)}
RENAMED = Task("Rename total to amount_due", "The function's name says too little.", "test", number=8)
ADD = Settings(limits=Limits(max_steps=12))
EDIT = Settings(tests="edit", guard_timeout=600.0, limits=Limits(max_steps=12, timeout=None))


def renamed(
    expected: str = "total([100, 100], 10) == 180", instead: str = "amount_due([100, 100], 10) == 180"
) -> Step:
    """The whole refactoring in one call: the function, and the tests under the new name."""
    text = BUGGY[TESTS]
    return call(
        "edit",
        edits=[
            {"path": "shop/cart.py", "old": "def total(", "new": "def amount_due("},
            {
                "path": TESTS,
                "old": text,
                "new": text.replace(expected, instead)
                .replace("import count, total", "import amount_due, count")
                .replace("assert total(", "assert amount_due("),
            },
        ],
    )


@frozen
class Script:
    """What a model does, and how that must end. `shows` are parts of the summary or of what it is told."""

    steps: Sequence[Step]
    verdict: str
    reason: str = "proven"
    files: Mapping[str, str] = BUGGY
    task: Task = TASK
    settings: Settings = ADD
    shows: Sequence[str] = ()
    kinds: Sequence[str] = ()


SCRIPTS: dict[str, Script] = {
    "reads-errs-fixes": Script(
        (
            call("search", query="discount"),
            call("read", path="shop/cart.py"),
            replace(BAD_LINE, WRONG),
            replace(WRONG, GOOD_LINE),
            DONE,
        ),
        "fixed",
    ),
    "weakens-a-test-is-refused-fixes": Script(
        (replace("== 180", "!= 0", TESTS), FIX, DONE),
        "fixed",
        shows=["existing tests may not be changed"],
    ),
    "weakens-where-it-may-edit-is-put-back-fixes": Script(
        (WEAKER, replace(BAD_LINE, GOOD_LINE), DONE),
        "fixed",
        settings=EDIT,
    ),
    "weakens-what-passes-is-put-back-fixes": Script(
        (
            call(
                "edit",
                edits=[
                    {"path": "shop/cart.py", "old": BAD_LINE, "new": "    return max(0, amount - discount)"},
                    *WEAKER.arguments["edits"],
                ],
            ),
            replace("    return max(0, amount - discount)", GOOD_LINE),
            DONE,
        ),
        "fixed",
        settings=EDIT,
        kinds=["put_back"],
        shows=["put back as it was", "Your other changes are kept: shop/cart.py"],
    ),
    "weakens-twice-is-blocked": Script(
        (
            call(
                "edit",
                edits=[
                    {"path": "shop/cart.py", "old": BAD_LINE, "new": "    return max(0, amount - discount)"},
                    *WEAKER.arguments["edits"],
                ],
            ),
            WEAKER_TOO,
        ),
        "blocked",
        "guard",
        settings=EDIT,
        kinds=["put_back"],
    ),
    "spins-and-hands-over": Script(
        tuple(
            replace(old, new)
            for old, new in [
                (BAD_LINE, WRONG),
                (WRONG, "    return amount - 4 - discount"),
                ("    return amount - 4 - discount", "    return amount - 5 - discount"),
            ]
        ),
        "handed_over",
        "no_progress",
        shows=["Question to you: Is what `tests/test_cart.py::test_discount` expects", "agent-ls resume"],
    ),
    "tests-contradict": Script(
        (
            call("read", path=TESTS),
            call("finish", outcome="tests_contradict", summary="The task and a test differ."),
            call(
                "finish",
                outcome="tests_contradict",
                summary="The task wants an amount, a test a percentage.",
                contradictions=[
                    {
                        "test": FAILING[0],
                        "lines": "assert total([100, 100], 10) == 180",
                        "against": "A discount of 10 takes 10 from the sum.",
                    }
                ],
            ),
        ),
        "handed_over",
        "tests_contradict",
        task=evolve(TASK, body="A discount of 10 takes 10 from the sum."),
        kinds=["contradiction", "contradiction"],
        shows=[
            "contradictions is empty",
            "(tests/test_cart.py:9)",
            "against the task",
            "Which is right, the tests or the task?",
        ],
    ),
    "renames-with-equal-tests": Script(
        (renamed(), DONE),
        "fixed",
        files=SOUND,
        task=RENAMED,
        settings=EDIT,
        kinds=["behaviour"],
        shows=["found as strong as they were"],
    ),
    "renames-and-changes-an-expectation": Script(
        (
            call(
                "edit",
                edits=[
                    *renamed(instead="amount_due([100, 100], 10) == 190").arguments["edits"],
                    {"path": "shop/cart.py", "old": GOOD_LINE, "new": GOOD_LINE.replace("100", "200")},
                    {
                        "path": TESTS,
                        "old": "assert amount_due([10], 100) == 0",
                        "new": "assert amount_due([10], 100) == 5",
                    },
                ],
            ),
            DONE,
            DONE,
        ),
        "handed_over",
        "review",
        files=SOUND,
        task=RENAMED,
        settings=EDIT,
        shows=["a person must judge", "rests on edited tests", "git merge agent-ls/issue-8"],
    ),
    "renames-with-weaker-tests": Script(
        (renamed(instead="amount_due([100, 100], 10) >= 0"), DONE, DONE),
        "handed_over",
        "review",
        files=SOUND,
        task=RENAMED,
        settings=EDIT,
        shows=["rests on edited tests: tests/test_cart.py::test_discount."],
    ),
    "tidies-the-tests": Script(
        (replace("def test_plain():", "def test_sum_of_prices():", TESTS), DONE),
        "fixed",
        files=SOUND,
        task=Task("Rename the tests of the cart so that they say what they check"),
        settings=evolve(ADD, guard_timeout=600.0),
        kinds=["behaviour"],
        shows=["found as strong as they were: `tests/test_cart.py::test_"],
    ),
    "answers-the-tests-alone": Script(
        (
            replace(
                BAD_LINE,
                "    if prices == [100, 100] and discount == 10:\n        return 180\n"
                "    if discount == 100:\n        return 0\n    return amount - discount",
            ),
            GIVE_UP,
        ),
        "handed_over",
        "gave_up",
        kinds=["put_back"],
        shows=["put back as it was"],
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_recorded_session(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = SCRIPTS[name]
    file = SESSIONS / f"{name}.jsonl"
    repo = make_repo(tmp_path / "repo", script.files)
    events = Recorder()
    recording = bool(os.environ.get("AGENT_LS_RECORD"))
    if recording:
        monkeypatch.setattr("agent_ls.models.create", lambda settings: Scripted(*script.steps))
    else:
        monkeypatch.setattr("agent_ls.models.create", REAL_CREATE)
    settings = evolve(script.settings, model="openai:scripted" if recording else f"replay:{file}")
    report = api.fix(repo, script.task, settings, cancel=CancelToken(), on_event=events).data
    assert (report["verdict"], report["stop_reason"]) == (script.verdict, script.reason), report["summary"]
    seen = "\n".join([report["summary"], *(event["text"] for event in events.of("observation"))])
    for text in script.shows:
        assert text in seen
    for kind in set(script.kinds):
        assert len(events.of(kind)) >= script.kinds.count(kind)
    if report["branch"] is not None:
        assert git(repo, "show", f"{report['branch']}:{TESTS}").count("assert") == 4
    if recording:
        record(next(info.events_path for info in history.sessions()), file)
        return
    recorded = sum(event.kind == "model_reply" for event in read_events(file))
    assert report["usage"]["model_calls"] == recorded == len(script.steps)


def record(events: Path, file: Path) -> None:
    """Keep what a replay needs, without what names this machine."""
    lines = []
    for event in read_events(events):
        if event.kind in KEPT:
            data = {"model": event.data["model"]} if event.kind == "session_started" else dict(event.data)
            lines.append(json.dumps({"seq": len(lines), "time": 0.0, "kind": event.kind, "data": data}))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n")

"""The prompt as a budget: what is kept, what is cut, what is left out, and that all of it is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agent_kit import Recorder
from hypothesis import given
from hypothesis import strategies as st

from agent_ls.agent.context import KEEP_FULL, SHORT, Conversation, Section, cut, fit, note_sections
from agent_ls.events import EventLog
from agent_ls.models.protocol import Message, ToolCall
from agent_ls.workspace.files import Workspace

WINDOW = 1000


def count(text: str) -> int:
    """Ten characters are a token."""
    return (len(text) + 9) // 10


@pytest.fixture
def events() -> Recorder:
    return Recorder()


@pytest.fixture
def log(tmp_path: Path, events: Recorder) -> EventLog:
    log = EventLog(tmp_path / "events.jsonl")
    log.listen(events)
    return log


def section(name: str, tokens: int, priority: int, floor: bool = False) -> Section:
    return Section(name, "x" * tokens * 10, priority, floor)


FITS: list[tuple[str, int, list[Section], dict[str, int], list[tuple[str, str]]]] = [
    ("all of it", 1000, [section("a", 300, 0), section("b", 300, 6)], {"a": 300, "b": 300}, []),
    (
        "the least important is cut to what is left",
        500,
        [section("notes", 300, 6), section("task", 300, 0)],
        {"notes": 200, "task": 300},
        [("notes", "cut to fit")],
    ),
    (
        "too little room to cut",
        400,
        [section("notes", 300, 6), section("task", 300, 0)],
        {"task": 300},
        [("notes", "no room")],
    ),
    (
        "something small after something large",
        500,
        [section("task", 400, 0), section("file", 900, 3), section("notes", 50, 6)],
        {"task": 400, "notes": 50},
        [("file", "no room")],
    ),
    (
        "a floor is kept before what counts more",
        500,
        [section("task", 450, 5, floor=True), section("plan", 300, 0)],
        {"task": 450},
        [("plan", "no room")],
    ),
    (
        "a floor that is too large itself",
        500,
        [section("task", 900, 0, floor=True)],
        {"task": 500},
        [("task", "cut to fit")],
    ),
]


@pytest.mark.parametrize(
    ("budget", "sections", "kept", "dropped"), [case[1:] for case in FITS], ids=[case[0] for case in FITS]
)
def test_sections_fit_by_priority(
    budget: int,
    sections: list[Section],
    kept: dict[str, int],
    dropped: list[tuple[str, str]],
    log: EventLog,
    events: Recorder,
) -> None:
    found = fit(sections, budget, count, log, WINDOW)
    assert [s.name for s in found] == [s.name for s in sections if s.name in kept]  # the given order stays
    for one in found:
        assert count(one.text) == pytest.approx(kept[one.name], abs=12), one.name
    [said] = events.of("context")
    assert [(item["section"], item["reason"]) for item in said["dropped"]] == dropped
    assert {item["section"] for item in said["kept"]} == set(kept)
    assert said["window"] == WINDOW


@given(st.text(max_size=400), st.integers(30, 500))
def test_cut_keeps_both_ends(text: str, limit: int) -> None:
    short = cut(text, limit, "ask for it")
    if len(text) <= limit:
        assert short == text
        return
    head, tail = short.split("\n[... ")[0], short.split(" ...]\n")[-1]
    assert text.startswith(head)
    assert text.endswith(tail)
    assert "ask for it" in short
    assert len(short) <= limit + 60


def talk(history: list[Message], log: EventLog, window: int = WINDOW, reserve: int = 200) -> Conversation:
    prefix = (Message("system", "s" * 500, cache=True), Message("user", "u" * 500, cache=True))
    return Conversation(prefix, count, window, reserve, log, history)


def turn(number: int, size: int) -> list[Message]:
    calls = (ToolCall(f"c{number}", "read", {"path": "a.py"}),)
    return [
        Message("assistant", f"thought {number}", tool_calls=calls),
        Message("tool", f"<{number}>" + "o" * size, tool_call_id=f"c{number}"),
    ]


def turns(number: int, size: int) -> list[Message]:
    return [message for n in range(number) for message in turn(n, size)]


def test_what_fits_is_sent_as_it_is(log: EventLog, events: Recorder) -> None:
    history = turns(3, 500)
    conversation = talk(history, log)
    assert conversation.assemble(0) == [*conversation.prefix, *history]
    assert conversation.overflow(0) == []
    assert events.events == []


def test_old_observations_are_shortened_first(log: EventLog, events: Recorder) -> None:
    history = turns(KEEP_FULL + 4, 900)
    conversation = talk(history, log, window=1450)
    sent = conversation.assemble(0)
    observations = [message.content for message in sent if message.role == "tool"]
    assert len(observations) == KEEP_FULL + 4
    assert all(len(text) > 900 for text in observations[-KEEP_FULL:])
    assert all(len(text) < SHORT + 80 and "call the tool again" in text for text in observations[:-KEEP_FULL])
    assert conversation.overflow(0) == []
    assert events.events == []
    assert conversation.history == history  # the record itself is not changed


def test_then_whole_turns_go_and_that_is_said(log: EventLog, events: Recorder) -> None:
    conversation = talk(turns(20, 900), log)
    sent = conversation.assemble(0)
    assert sent[:2] == list(conversation.prefix)
    assert "older messages were left out" in sent[2].content
    assert sent[3].role == "assistant"
    [said] = events.of("context")
    assert said["dropped"][0]["reason"] == "no room"


def test_the_oldest_half_can_be_summarised(log: EventLog, events: Recorder) -> None:
    conversation = talk(turns(20, 900), log)
    old = conversation.overflow(0)
    assert 0 < len(old) <= 22
    assert old == conversation.history[: len(old)]
    rest = conversation.history[len(old) :]
    assert rest[0].role == "assistant"
    conversation.replace_oldest(old, "what was learnt")
    assert conversation.history == [Message("user", "what was learnt"), *rest]
    [said] = events.of("context")
    assert said["dropped"][0]["reason"] == "summarised"


@given(
    st.lists(st.tuples(st.integers(0, 1500), st.integers(0, 3)), max_size=14),
    st.integers(0, 150),
    st.sampled_from([1.0, 0.6]),
)
def test_any_conversation_fits_and_no_answer_loses_its_call(
    shape: list[tuple[int, int]], extra: int, shrink: float
) -> None:
    class Silent:
        def append(self, kind: str, **data: Any) -> None: ...

    history: list[Message] = []
    for number, (size, calls) in enumerate(shape):
        made = tuple(ToolCall(f"{number}-{n}", "read", {}) for n in range(calls))
        history.append(Message("assistant", "a" * 20, tool_calls=made))
        history += [Message("tool", "o" * size, tool_call_id=call.id) for call in made]
        if not made:
            history.append(Message("user", "go on"))
    conversation = talk(history, Silent())  # type: ignore[arg-type]
    sent = conversation.assemble(extra, shrink=shrink)
    assert sent[:2] == list(conversation.prefix)
    asked = {call.id for message in sent for call in message.tool_calls}
    answered = {message.tool_call_id for message in sent if message.role == "tool"}
    assert answered == asked
    body = sent[2:]
    if len(body) > 6:
        assert conversation.tokens(sent) <= int(conversation.budget(extra) * shrink) + 20


def test_notes_and_named_files(tmp_path: Path, log: EventLog, events: Recorder) -> None:
    root = tmp_path / "repo"
    files = {
        "AGENTS.md": "Use tabs.\n",
        "CLAUDE.md": "  \n",
        ".agent-ls/context.md": "Ours.",
        "docs/design.md": "Design.",
        ".env": "TOKEN=secret",
        "blob.bin": "\0\1",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "CONTRIBUTING.md").symlink_to("/etc/hostname")
    wanted = ["docs/design.md", ".env", "../outside.md", "none.md", "blob.bin", "/etc/hostname"]
    found = note_sections(Workspace(root), wanted, log)
    assert [one.name for one in found] == [
        "notes: AGENTS.md", "notes: .agent-ls/context.md", "file: docs/design.md",
    ]  # fmt: skip
    assert found[2].priority < found[0].priority  # what a person named outlives the notes
    assert not any(one.floor for one in found)
    said = [note["text"] for note in events.of("note")]
    assert len(said) == len(wanted) - 1
    for name, why in ((".env", "secrets"), ("../outside.md", '".."'), ("none.md", "no such file"),
                      ("blob.bin", "binary"), ("/etc/hostname", "absolute")):  # fmt: skip
        assert any(f"not in the prompt: {name} (" in text and why in text for text in said), name

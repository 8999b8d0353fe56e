"""Record a session's calls, play them back, and find what changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fake_model_server as fake
import pytest
from attrs import asdict, evolve
from fake_model_server import FakeServer
from hypothesis import given
from hypothesis import strategies as st

from agent_ls.cancel import CancelToken
from agent_ls.errors import Cancelled, UsageError
from agent_ls.events import EventLog
from agent_ls.models import create
from agent_ls.models.openai import OpenAIBackend
from agent_ls.models.protocol import (
    MalformedToolCall,
    Message,
    Reply,
    Request,
    ToolCall,
    ToolSchema,
    Usage,
    gather,
)
from agent_ls.models.replay import (
    ReplayBackend,
    ReplayMismatch,
    canonical,
    digest,
    reply_data,
    reply_to_events,
)
from agent_ls.settings import Settings

FIRST = Request(
    [Message("system", "Rules."), Message("user", "Fix\nthe bug.")],
    [ToolSchema("search", "Search.", {"type": "object"})],
    temperature=0.2,
    max_tokens=100,
    stop=("END",),
    seed=1,
    json_schema={"type": "object"},
    grammar="root ::= x",
)
SECOND = evolve(FIRST, messages=[*FIRST.messages, Message("assistant", "Looked."), Message("user", "And?")])


def record(path: Path, calls: list[tuple[Request, Reply | None]], model: str = "openai:m") -> Path:
    log = EventLog(path)
    log.append("session_started", model=model)
    for number, (request, reply) in enumerate(calls, 1):
        log.append("model_call", n=number, digest=digest(request), **canonical(request))
        if reply is not None:
            log.append("model_reply", n=number, seconds=0.1, **reply_data(reply))
    log.close()
    return path


def ask(made: Any, request: Request) -> Reply:
    return gather(made.stream(request, CancelToken()))


REPLIES = [
    Reply("plain text", usage=Usage(1, 2, 3, 0.5)),
    Reply("", (ToolCall("a", "search", {"q": [1, {"x": None}]}),), usage=Usage(), stop_reason="tool_calls"),
    Reply("so", malformed=(MalformedToolCall("search", '{"q', "cut off", "b"),), stop_reason="max_tokens"),
    Reply("", usage=Usage(1, 1, 0, None), stop_reason="refusal"),
]


@pytest.mark.parametrize("reply", REPLIES)
def test_a_reply_comes_back_as_it_was(tmp_path: Path, reply: Reply) -> None:
    made = create(Settings(model=f"replay:{record(tmp_path / 'events.jsonl', [(FIRST, reply)])}"))
    assert ask(made, FIRST) == reply
    assert gather(iter(reply_to_events(asdict(reply)))) == reply


def test_a_session_with_a_real_backend(tmp_path: Path, server: FakeServer) -> None:
    server.script(
        fake.openai_answer("Let me look.", [("a", "search", '{"q": "é"}')]), fake.openai_answer("Done.")
    )
    live = OpenAIBackend("openai:m", None, base_url=server.url)
    replies = [ask(live, FIRST), ask(live, SECOND)]
    path = record(tmp_path / "events.jsonl", [(FIRST, replies[0]), (SECOND, replies[1])])
    for _ in range(2):
        replayed = ReplayBackend(path)
        assert [ask(replayed, FIRST), ask(replayed, SECOND)] == replies
        assert replayed.capabilities.tools
        with pytest.raises(ReplayMismatch, match="call 3 was never recorded"):
            ask(replayed, SECOND)
    assert len(server.requests) == 2


def test_calls_without_an_answer_are_skipped(tmp_path: Path) -> None:
    path = record(tmp_path / "e.jsonl", [(FIRST, None), (FIRST, REPLIES[0])])
    assert ask(ReplayBackend(path), FIRST).text == "plain text"


def _messages(request: Request, index: int, **changes: Any) -> Request:
    messages = list(request.messages)
    messages[index] = evolve(messages[index], **changes)
    return evolve(request, messages=messages)


DIFFERENCES: list[tuple[Request, list[str]]] = [
    (
        _messages(SECOND, 1, content="Fix\nthe bag."),
        ["messages[1].content, line 2, character 9", "bug", "bag"],
    ),
    (_messages(SECOND, 0, content="Rules.\nMore."), ["messages[0].content, line 1, character 6"]),
    (_messages(SECOND, 3, role="assistant"), ["messages[3].role", "user", "assistant"]),
    (evolve(SECOND, messages=SECOND.messages[:3]), ["messages: 4 recorded, 3 now"]),
    (
        _messages(SECOND, 2, tool_calls=(ToolCall("a", "search", {"q": 2}),)),
        ["messages[2].tool_calls: None recorded"],
    ),
    (evolve(SECOND, temperature=0.4), ["temperature: 0.2 recorded, 0.4 now"]),
    (evolve(SECOND, max_tokens=7), ["max_tokens: 100 recorded, 7 now"]),
    (evolve(SECOND, seed=None), ["seed: 1 recorded, None now"]),
    (evolve(SECOND, grammar=None), ["grammar"]),
    (evolve(SECOND, json_schema={"type": "array"}), ["json_schema.type", "object", "array"]),
    (evolve(SECOND, tools=()), ["tools: 1 recorded, 0 now"]),
    (evolve(SECOND, stop=("END", "X")), ["stop: 1 recorded, 2 now"]),
]


@pytest.mark.parametrize(("now", "says"), DIFFERENCES)
def test_the_first_difference_is_named(tmp_path: Path, now: Request, says: list[str]) -> None:
    path = record(tmp_path / "e.jsonl", [(FIRST, REPLIES[0]), (SECOND, REPLIES[0])])
    made = ReplayBackend(path)
    ask(made, FIRST)
    with pytest.raises(ReplayMismatch, match="call 2 differs") as caught:
        ask(made, now)
    for part in says:
        assert part in str(caught.value)


def test_a_difference_is_found_with_messages_alone(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "e.jsonl")
    kept = {key: canonical(FIRST)[key] for key in ("messages", "tools", "temperature")}
    log.append("model_call", n=1, digest=digest(FIRST), **kept)
    log.append("model_reply", n=1, seconds=0, **reply_data(REPLIES[0]))
    made = ReplayBackend(tmp_path / "e.jsonl")
    with pytest.raises(ReplayMismatch, match="a part that the record doesn't keep"):
        ask(made, evolve(FIRST, seed=9))
    assert ask(made, FIRST) == REPLIES[0]


BAD_FILES = {
    "missing": None,
    "empty": b"",
    "no model calls": b'{"seq": 0, "time": 1, "kind": "note", "data": {}}\n',
    "not events": b"[1]\n[2]\n",
    "no JSON": b"\xff\xfe\n",
    "an answer to nothing": b'{"seq": 0, "time": 1, "kind": "model_reply", "data": {"n": 1, "text": "x"}}\n',
}


@pytest.mark.parametrize("content", BAD_FILES.values(), ids=BAD_FILES)
def test_files_that_are_no_record(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "e.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=r"e\.jsonl"):
        ReplayBackend(path)


def test_cancelled_before_the_answer(tmp_path: Path) -> None:
    made = ReplayBackend(record(tmp_path / "e.jsonl", [(FIRST, REPLIES[0])]))
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(Cancelled):
        list(made.stream(FIRST, cancel))


@pytest.mark.parametrize(
    ("model", "local"), [("local:qwen2.5-coder-1.5b", True), ("anthropic:claude-opus-5", False)]
)
def test_capabilities_are_those_of_the_recorded_model(tmp_path: Path, model: str, local: bool) -> None:
    made = ReplayBackend(record(tmp_path / "e.jsonl", [(FIRST, REPLIES[0])], model))
    assert (made.capabilities.local, made.capabilities.grammar) == (local, local)
    assert made.capabilities.window == (8192 if local else 1_000_000)


def test_the_window_is_that_of_the_recorded_prompts(tmp_path: Path) -> None:
    path = record(tmp_path / "e.jsonl", [(FIRST, REPLIES[0])], "openai:on-another-server")
    log = EventLog(path)
    log.append("context", kept=[], dropped=[], window=32_768)
    log.close()
    assert ReplayBackend(path).capabilities.window == 32_768
    assert ReplayBackend(path, window=1000).capabilities.window == 1000


requests = st.builds(
    Request,
    st.lists(st.builds(Message, st.sampled_from(["system", "user"]), st.text(max_size=5)), max_size=3),
    temperature=st.none() | st.floats(0, 2),
    max_tokens=st.integers(1, 9),
    seed=st.none() | st.integers(0, 9),
)


@given(requests, requests)
def test_equal_requests_and_only_they_have_equal_digests(left: Request, right: Request) -> None:
    same = list(left.messages) == list(right.messages) and (left.temperature, left.max_tokens, left.seed) == (
        right.temperature,
        right.max_tokens,
        right.seed,
    )
    assert (digest(left) == digest(right)) is same
    assert digest(canonical(left)) == digest(left)
    marked = evolve(left, messages=[evolve(message, cache=True) for message in left.messages])
    assert digest(marked) == digest(left)

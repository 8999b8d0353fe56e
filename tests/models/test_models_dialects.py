"""What each protocol looks like on the wire, and the ways in which servers differ from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import fake_model_server as fake
import pytest
from fake_model_server import Answer, FakeServer, http_error, sse
from hypothesis import given
from hypothesis import strategies as st

from agent_ls.cancel import CancelToken
from agent_ls.errors import UsageError
from agent_ls.models._chat import ChatAssembler, finish_call
from agent_ls.models.anthropic import AnthropicBackend, render
from agent_ls.models.openai import OpenAIBackend
from agent_ls.models.protocol import (
    MalformedToolCall,
    Message,
    Reply,
    Request,
    ToolCall,
    ToolCallEvent,
    ToolSchema,
    gather,
)
from agent_ls.models.retry import RetryPolicy

FAST = RetryPolicy(first_wait_s=0.001, deadline_s=2.0, stall_s=1.0)
CALL = ToolCall("c.1", "search", {"q": "x"})
TALK = [
    Message("system", "Rules.", cache=True),
    Message("user", "Fix it.", cache=True),
    Message("assistant", "Looking.", tool_calls=(CALL, ToolCall("c2", "search", {}))),
    Message("tool", "found", tool_call_id="c.1"),
    Message("tool", "no such file", tool_call_id="c2", is_error=True),
    Message("user", "Go on."),
]
TOOLS = [ToolSchema("search", "Search.", {"type": "object", "properties": {}})]


def ask(made: Any, request: Request) -> Reply:
    return gather(made.stream(request, CancelToken()))


def claude(server: FakeServer, model: str = "claude-test") -> AnthropicBackend:
    return AnthropicBackend(f"anthropic:{model}", "key", base_url=server.url, policy=FAST)


def gpt(server: FakeServer, key: str | None = "key") -> OpenAIBackend:
    return OpenAIBackend("openai:some/model", key, base_url=server.url, policy=FAST)


def test_anthropic_request(server: FakeServer) -> None:
    server.script(fake.anthropic_answer("ok"))
    request = Request(TALK, TOOLS, temperature=1.4, max_tokens=99, stop=["END", "\n"], seed=3)
    ask(claude(server), request)
    seen = server.requests[0]
    assert seen.path == "/v1/messages"
    assert (seen.headers["x-api-key"], seen.headers["anthropic-version"]) == ("key", "2023-06-01")
    mark = {"cache_control": {"type": "ephemeral"}}
    assert seen.body == {
        "model": "claude-test",
        "max_tokens": 99,
        "stream": True,
        "temperature": 1.0,
        "stop_sequences": ["END"],
        "system": [{"type": "text", "text": "Rules."} | mark],
        "tools": [{"name": "search", "description": "Search.", "input_schema": dict(TOOLS[0].parameters)}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Fix it."} | mark]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Looking."},
                    {"type": "tool_use", "id": "c_1", "name": "search", "input": {"q": "x"}},
                    {"type": "tool_use", "id": "c2", "name": "search", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c_1", "content": "found"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "c2",
                        "content": "no such file",
                        "is_error": True,
                    },
                    {"type": "text", "text": "Go on."},
                ],
            },
        ],
    }


def test_openai_request(server: FakeServer) -> None:
    server.script(fake.openai_answer("ok"))
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    ask(gpt(server), Request(TALK, TOOLS, temperature=0.3, max_tokens=99, seed=3, json_schema=schema))
    seen = server.requests[0]
    assert seen.path == "/v1/chat/completions"
    assert seen.headers["authorization"] == "Bearer key"
    assert seen.body == {
        "model": "some/model",
        "max_tokens": 99,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.3,
        "seed": 3,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": schema},
        },
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "search",
                    "description": "Search.",
                    "parameters": dict(TOOLS[0].parameters),
                },
            }
        ],
        "messages": [
            {"role": "system", "content": "Rules."},
            {"role": "user", "content": "Fix it."},
            {
                "role": "assistant",
                "content": "Looking.",
                "tool_calls": [
                    {
                        "id": "c.1",
                        "type": "function",
                        "function": {"name": "search", "arguments": '{"q": "x"}'},
                    },
                    {"id": "c2", "type": "function", "function": {"name": "search", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "content": "found", "tool_call_id": "c.1"},
            {"role": "tool", "content": "Error: no such file", "tool_call_id": "c2"},
            {"role": "user", "content": "Go on."},
        ],
    }


def test_openai_needs_no_key_on_loopback(server: FakeServer) -> None:
    server.script(fake.openai_answer("ok"))
    assert ask(gpt(server, None), Request([Message("user", "hi")])).text == "ok"
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize(
    ("messages", "roles"),
    [
        ([Message("user", "a"), Message("user", "b")], ["user"]),
        ([Message("assistant", "a")], ["user", "assistant"]),
        ([Message("user", "a"), Message("assistant", "  "), Message("user", "b")], ["user"]),
        ([Message("system", "a")], ["user"]),
        ([Message("user", "a"), Message("assistant", "b \n")], ["user", "assistant"]),
    ],
)
def test_anthropic_roles_alternate(messages: Sequence[Message], roles: list[str]) -> None:
    _, turns = render(messages, {})
    assert [turn["role"] for turn in turns] == roles
    assert turns[-1]["content"][-1]["text"] == turns[-1]["content"][-1]["text"].rstrip()


texts = st.text(st.sampled_from("ab \n"), max_size=4)
messages_of_any_kind = st.lists(
    st.one_of(
        st.builds(Message, st.sampled_from(["system", "user"]), texts, cache=st.booleans()),
        st.builds(Message, st.just("assistant"), texts, st.sampled_from([(), (CALL,)]), cache=st.booleans()),
        st.builds(Message, st.just("tool"), texts, tool_call_id=st.just("c.1"), cache=st.booleans()),
    ),
    max_size=12,
)


@given(messages_of_any_kind)
def test_anthropic_rules_hold_for_any_conversation(messages: list[Message]) -> None:
    system, turns = render(messages, {})
    assert [turn["role"] for turn in turns] == [("user", "assistant")[i % 2] for i in range(len(turns))]
    blocks = system + [block for turn in turns for block in turn["content"]]
    assert all(block["text"].strip() for block in blocks if block["type"] == "text")
    assert sum("cache_control" in block for block in blocks) <= 4
    sent = "".join(
        block.get("text", "") + str(block.get("content") or "") for block in blocks if "type" in block
    )
    for message in messages:
        assert message.content.strip() in sent


def test_thoughts_go_back_in_front_of_their_calls(server: FakeServer) -> None:
    events = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 5}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s1"}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "t1", "name": "search", "input": {}},
        },
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
    server.script(Answer([sse(event, str(event["type"])) for event in events]), fake.anthropic_answer("ok"))
    made = claude(server)
    first = ask(made, Request([Message("user", "hi")]))
    assert first.text == ""
    more = [Message("user", "hi"), Message("assistant", "", first.tool_calls), Message("tool", "", (), "t1")]
    ask(made, Request(more))
    assert server.requests[1].body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "Hm.", "signature": "s1"},
        {"type": "tool_use", "id": "t1", "name": "search", "input": {}},
    ]
    refusal = {"error": {"message": "messages.1.content.0: `thinking` blocks cannot be modified"}}
    server.script(http_error(400, refusal), fake.anthropic_answer("ok"))
    assert ask(made, Request(more)).text == "ok"
    assert [b["type"] for b in server.requests[-1].body["messages"][1]["content"]] == ["tool_use"]


def test_a_paused_turn_goes_on(server: FakeServer) -> None:
    server.script(
        fake.anthropic_answer("Half of ", stop="pause_turn"), fake.anthropic_answer("it, and the rest.")
    )
    reply = ask(claude(server), Request([Message("user", "hi")]))
    assert reply.text == "Half of it, and the rest."
    assert (reply.stop_reason, reply.usage.output_tokens) == ("end", 14)
    assert server.requests[1].body["messages"][1] == {
        "role": "assistant",
        "content": [{"type": "text", "text": "Half of"}],
    }


def test_cached_tokens_and_cost(server: FakeServer) -> None:
    counts = {"input_tokens": 1000, "cache_read_input_tokens": 2000, "cache_creation_input_tokens": 4000}
    server.script(fake.anthropic_answer("ok", usage=counts, output_tokens=100))
    usage = ask(claude(server, "claude-sonnet-4-5-20250929"), Request([Message("user", "hi")])).usage
    assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens) == (7000, 2000, 100)
    assert usage.cost_usd == pytest.approx((1000 * 3 + 2000 * 0.3 + 4000 * 3.75 + 100 * 15) / 1e6)
    counted = {"prompt_tokens": 50, "prompt_tokens_details": {"cached_tokens": 20}}
    server.script(fake.openai_answer("ok", usage=counted))
    usage = ask(gpt(server), Request([Message("user", "hi")])).usage
    assert (usage.input_tokens, usage.cached_tokens, usage.cost_usd) == (50, 20, None)


REFUSALS: list[tuple[str, str, str, set[str]]] = [
    ("openai", "seed", "Unrecognized request argument supplied: seed", {"seed"}),
    ("openai", "temperature", "Unsupported value: 'temperature' does not support 0.5", {"temperature"}),
    ("openai", "stream_options", "stream_options: Extra inputs are not permitted", {"stream_options"}),
    ("openai", "json_schema", "response_format type json_schema is not supported", {"response_format"}),
    (
        "openai",
        "max_tokens",
        "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'",
        {"max_tokens"},
    ),
    ("anthropic", "temperature", "`temperature` is deprecated for this model.", {"temperature"}),
]


@pytest.mark.parametrize(
    ("protocol", "name", "message", "gone"), REFUSALS, ids=[f"{case[0]}-{case[1]}" for case in REFUSALS]
)
def test_a_field_that_the_server_does_not_know_is_left_out(
    server: FakeServer, protocol: str, name: str, message: str, gone: set[str]
) -> None:
    made = claude(server) if protocol == "anthropic" else gpt(server)
    good = fake.anthropic_answer("ok") if protocol == "anthropic" else fake.openai_answer("ok")
    server.script(http_error(400, {"error": {"message": message, "param": name}}), good)
    request = Request([Message("user", "hi")], temperature=0.5, seed=1, json_schema={"type": "object"})
    assert ask(made, request).text == "ok"
    assert ask(made, request).text == "ok"
    first, second, third = (set(seen.body) for seen in server.requests)  # remembered: no fourth request
    assert first - second == gone
    assert second == third
    if name == "max_tokens":
        assert server.requests[1].body["max_completion_tokens"] == 4096


def _delta(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta}]}


def _end(reason: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


def _function(arguments: Any = None, name: str | None = None) -> dict[str, Any]:
    return {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}


WHOLE = {"function": _function('{"q": 1}', "search")}
DIALECTS: dict[str, tuple[list[dict[str, Any]], list[tuple[str, str, dict[str, Any]]], str, str]] = {
    "whole call, no id, finish reason stop": (
        [_delta(tool_calls=[{"index": 0, **WHOLE}]), _end("stop")],
        [("call_1_0", "search", {"q": 1})],
        "",
        "tool_calls",
    ),
    "whole calls without index": (
        [_delta(tool_calls=[{"id": "a", **WHOLE}]), _delta(tool_calls=[{"id": "b", **WHOLE}]), _end("stop")],
        [("a", "search", {"q": 1}), ("b", "search", {"q": 1})],
        "",
        "tool_calls",
    ),
    "index is always 0": (
        [
            _delta(tool_calls=[{"index": 0, "id": "a", **WHOLE}]),
            _delta(tool_calls=[{"index": 0, "id": "b", **WHOLE}]),
            _end("tool_calls"),
        ],
        [("a", "search", {"q": 1}), ("b", "search", {"q": 1})],
        "",
        "tool_calls",
    ),
    "arguments as an object": (
        [
            _delta(tool_calls=[{"index": 0, "id": "a", "function": _function({"q": 1}, "search")}]),
            _end("tool_calls"),
        ],
        [("a", "search", {"q": 1})],
        "",
        "tool_calls",
    ),
    "interleaved calls": (
        [
            _delta(
                tool_calls=[
                    {"index": 0, "id": "a", "function": _function("", "search")},
                    {"index": 1, "id": "b", "function": _function("", "read")},
                ]
            ),
            _delta(tool_calls=[{"index": 1, "function": _function('{"p"')}]),
            _delta(tool_calls=[{"index": 0, "function": _function('{"q": ')}]),
            _delta(tool_calls=[{"index": 1, "function": _function(": 2}")}]),
            _delta(tool_calls=[{"index": 0, "function": _function("1}")}]),
            _end("tool_calls"),
        ],
        [("a", "search", {"q": 1}), ("b", "read", {"p": 2})],
        "",
        "tool_calls",
    ),
    "name and id repeated in each delta": (
        [
            _delta(tool_calls=[{"index": 0, "id": "a", "function": _function('{"q":', "search")}]),
            _delta(tool_calls=[{"index": 0, "id": "a", "function": _function(" 1}", "search")}]),
            _end("tool_calls"),
        ],
        [("a", "search", {"q": 1})],
        "",
        "tool_calls",
    ),
    "reasoning beside the text": (
        [_delta(reasoning_content="let me think"), _delta(content="four"), _end("stop")],
        [],
        "four",
        "end",
    ),
    "text in parts": ([_delta(content=[{"type": "text", "text": "four"}]), _end("eos")], [], "four", "end"),
    "null everywhere": (
        [
            {
                "choices": [
                    {"index": 0, "delta": {"content": None, "tool_calls": None}, "finish_reason": None}
                ]
            },
            {"choices": None, "usage": None},
            {"choices": [None, {"index": 1, "delta": {"content": "another choice"}}]},
            _delta(content="four"),
            _end("stop"),
        ],
        [],
        "four",
        "end",
    ),
    "tool_calls as reason without a call": ([_delta(content="four"), _end("tool_calls")], [], "four", "end"),
    "a refusal": ([_delta(refusal="I won't."), _end("stop")], [], "I won't.", "refusal"),
}


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("ending", ["with [DONE]", "without [DONE]"])
def test_dialects_of_chat_completions(server: FakeServer, name: str, ending: str) -> None:
    chunks, calls, text, stop = DIALECTS[name]
    server.script(Answer([*(sse(chunk) for chunk in chunks), sse("[DONE]") if "with " in ending else b""]))
    reply = ask(gpt(server), Request([Message("user", "hi")]))
    assert [(call.id, call.name, call.arguments) for call in reply.tool_calls] == calls
    assert (reply.text, reply.stop_reason, reply.malformed) == (text, stop, ())
    assert reply.usage.output_tokens > 0  # estimated, reasoning included
    assert reply.usage.input_tokens > 0


def test_hidden_reasoning_is_counted() -> None:
    plain, thinking = ChatAssembler("m", 1), ChatAssembler("m", 1)
    list(plain.feed(_delta(content="four")))
    list(thinking.feed(_delta(content="four", reasoning_content="x" * 320)))
    assert thinking.written_chars - plain.written_chars == 320


def test_servers_that_do_not_stream(server: FakeServer) -> None:
    kind = {"Content-Type": "application/json; charset=utf-8"}
    message = {"role": "assistant", "content": "four", "tool_calls": [{"id": "a", **WHOLE}]}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    server.script(Answer([sse(body)[6:]], 200, kind))
    reply = ask(gpt(server), Request([Message("user", "hi")]))
    assert (reply.text, [call.id for call in reply.tool_calls]) == ("four", ["a"])
    body = {
        "type": "message",
        "content": [
            {"type": "text", "text": "four"},
            {"type": "tool_use", "id": "a", "name": "search", "input": {"q": 1}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }
    server.script(Answer([sse(body)[6:]], 200, kind))
    reply = ask(claude(server), Request([Message("user", "hi")]))
    assert (reply.text, reply.tool_calls) == ("four", (ToolCall("a", "search", {"q": 1}),))
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (3, 4)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_any_chunk_is_survived(chunk: Any) -> None:
    chunks = (
        [chunk] if isinstance(chunk, dict) else [{"choices": chunk}, _delta(content=chunk, tool_calls=chunk)]
    )
    assembler = ChatAssembler("m", 1)
    for each in chunks:
        list(assembler.feed(each))
    events, _ = assembler.finish()
    assert all(isinstance(event, ToolCallEvent | MalformedToolCall) for event in events)


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=3), st.data())
def test_no_prefix_of_a_call_is_taken_for_it(arguments: dict[str, Any], data: st.DataObject) -> None:
    import json

    raw = json.dumps(arguments)
    whole = finish_call("a", "search", raw)
    assert isinstance(whole, ToolCallEvent)
    assert whole.call.arguments == arguments
    end = data.draw(st.integers(1, len(raw) - 1))
    assert isinstance(finish_call("a", "search", raw[:end]), MalformedToolCall)
    assert isinstance(finish_call("a", "search", raw, truncated=True), MalformedToolCall)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("ftp://host/v1", "not an http"),
        ("localhost:8000", "not an http"),
        ("https://", "not an http"),
        ("https://host:99999/v1", "not a URL"),
        ("https://user:pass@host/v1", "user name or password"),
        ("https://host/v1?key=1", "query"),
        ("http://example.com/v1", "unencrypted"),
    ],
)
def test_base_urls_that_are_refused(url: str, says: str) -> None:
    for made in (OpenAIBackend, AnthropicBackend):
        with pytest.raises(UsageError) as caught:
            made("openai:m", "sk-secret", base_url=url)
        assert says in str(caught.value)
        assert "sk-secret" not in str(caught.value)
        assert "pass@" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "sent_to"),
    [
        ("http://localhost:11434", "http://localhost:11434/v1/chat/completions"),
        ("http://192.168.0.5:8000/v1/", "http://192.168.0.5:8000/v1/chat/completions"),
        ("https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/chat/completions"),
        (None, "https://api.openai.com/v1/chat/completions"),
    ],
)
def test_base_urls_that_are_taken(url: str | None, sent_to: str) -> None:
    assert OpenAIBackend("openai:m", "key", base_url=url)._endpoint.url == sent_to


@pytest.mark.parametrize("key", ["with blank", "tab\tinside", "ключ", "new\nline"])
def test_keys_that_cannot_be(key: str) -> None:
    with pytest.raises(UsageError, match="characters") as caught:
        AnthropicBackend("anthropic:m", key)
    assert key not in str(caught.value)

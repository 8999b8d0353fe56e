"""Both hosted backends against a server on loopback: one scenario, two protocols, the same outcome."""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable
from typing import Any

import fake_model_server as fake
import pytest
from fake_model_server import CUT, HANG, Answer, FakeServer, http_error, sse

from agent_ls.cancel import CancelToken
from agent_ls.errors import AgentLsError, Cancelled, ContextTooLong, ProviderError
from agent_ls.models.anthropic import AnthropicBackend
from agent_ls.models.hosted import HostedBackend
from agent_ls.models.openai import OpenAIBackend
from agent_ls.models.protocol import (
    Done,
    Message,
    ModelEvent,
    Request,
    Retrying,
    TextDelta,
    ToolCall,
    ToolCallEvent,
    ToolSchema,
    UsageEvent,
    gather,
)
from agent_ls.models.retry import RetryPolicy

KEY = "sk-verysecret-0123456789"
FAST = RetryPolicy(
    first_wait_s=0.001,
    max_wait_s=0.01,
    deadline_s=5.0,
    stall_s=0.3,
    connect_s=1.0,
    total_s=3.0,
    random=lambda: 0.5,
)
SEARCH = ToolSchema("search", "Search.", {"type": "object", "properties": {"q": {"type": "string"}}})
ASK = Request([Message("system", "Be brief."), Message("user", "Hi")], tools=[SEARCH])

Protocol = str
EVENTS: dict[str, Callable[..., list[bytes]]] = {
    "anthropic": fake.anthropic_events,
    "openai": fake.openai_events,
}


@pytest.fixture(params=["anthropic", "openai"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def backend(protocol: str, server: FakeServer, policy: RetryPolicy = FAST, **options: Any) -> HostedBackend:
    made = AnthropicBackend if protocol == "anthropic" else OpenAIBackend
    return made(f"{protocol}:test-model", KEY, base_url=server.url, policy=policy, **options)


def events_of(
    protocol: str, server: FakeServer, request: Request = ASK, policy: RetryPolicy = FAST
) -> list[ModelEvent]:
    return list(backend(protocol, server, policy).stream(request, CancelToken()))


def answer(protocol: str, *args: Any, **options: Any) -> Answer:
    return Answer(EVENTS[protocol](*args, **options))


def test_text_usage_and_end(protocol: str, server: FakeServer) -> None:
    server.script(answer(protocol, "Hello — wörld"))
    events = events_of(protocol, server)
    reply = gather(iter(events))
    assert (reply.text, reply.stop_reason) == ("Hello — wörld", "end")
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (10, 7)
    assert reply.usage.cost_usd is None  # nobody knows what "test-model" costs
    assert isinstance(events[-1], Done)
    assert len([event for event in events if isinstance(event, TextDelta)]) > 1


def test_tool_calls(protocol: str, server: FakeServer) -> None:
    calls = [("id_1", "search", '{"q": "a\\nb"}'), ("id_2", "search", "")]
    server.script(answer(protocol, "Let me look.", calls))
    reply = gather(iter(events_of(protocol, server)))
    assert reply.tool_calls == (
        ToolCall("id_1", "search", {"q": "a\nb"}),
        ToolCall("id_2", "search", {}),
    )
    assert (reply.stop_reason, reply.malformed) == ("tool_calls", ())


def test_ids_that_repeat_are_told_apart(protocol: str, server: FakeServer) -> None:
    server.script(answer(protocol, "", [("x", "search", "{}"), ("x", "search", "{}")]))
    ids = [call.id for call in gather(iter(events_of(protocol, server))).tool_calls]
    assert len(set(ids)) == 2


@pytest.mark.parametrize(
    ("arguments", "stop", "says"),
    [
        ('{"q": "unfini', "max_tokens", "cut off"),
        ('{"q": "finished"}', "max_tokens", "cut off"),  # a server may close the brackets itself
        ('{"q": "unfini', None, "not valid JSON"),
        ("[1, 2]", None, "not a JSON object"),
        ('"text"', None, "not a JSON object"),
        ("[" * 20_000, None, "not valid JSON"),
    ],
)
def test_a_damaged_call_is_never_a_call(
    protocol: str, server: FakeServer, arguments: str, stop: str | None, says: str
) -> None:
    if stop and protocol == "openai":
        stop = "length"
    server.script(answer(protocol, "", [("a", "search", '{"q": "whole"}'), ("b", "search", arguments)], stop))
    reply = gather(iter(events_of(protocol, server)))
    assert [call.arguments for call in reply.tool_calls] == [{"q": "whole"}]
    assert [(bad.id, bad.raw) for bad in reply.malformed] == [("b", arguments)]
    assert says in reply.malformed[0].error
    assert reply.stop_reason == ("max_tokens" if stop else "tool_calls")


def test_refusal(protocol: str, server: FakeServer) -> None:
    server.script(answer(protocol, "No.", stop="refusal" if protocol == "anthropic" else "content_filter"))
    assert gather(iter(events_of(protocol, server))).stop_reason == "refusal"


def test_an_empty_answer_is_an_answer(protocol: str, server: FakeServer) -> None:
    server.script(answer(protocol, ""))
    reply = gather(iter(events_of(protocol, server)))
    assert (reply.text, reply.tool_calls, reply.stop_reason) == ("", (), "end")


OVERLOADED = {
    "anthropic": sse(
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "error"
    ),
    "openai": sse({"error": {"code": 503, "message": "Overloaded", "type": "server_error"}}),
}


def _broken(name: str, protocol: str) -> Answer:
    """An answer that fails in a way that may pass."""
    whole = EVENTS[protocol]("part of it", [("a", "search", '{"q": "abcdefghijklmnop"}')])
    cut_in_call = whole[: next(i for i, event in enumerate(whole) if b"abc" in event) + 1]
    return {
        "429": http_error(429, {"error": {"type": "rate_limit_error", "message": "slow down"}}),
        "429 with retry-after": http_error(429, {}, retry_after="0.01"),
        "500": http_error(500, b"<html><h1>Internal Server Error</h1></html>"),
        "502": http_error(502, b""),
        "503": http_error(503, {"error": "busy"}),
        "529": http_error(529, {"error": {"type": "overloaded_error", "message": "Overloaded"}}),
        "408": http_error(408, {"detail": "timeout"}),
        "cut in a call": Answer([*cut_in_call, CUT]),
        "ended in a call": Answer(cut_in_call),
        "cut at once": Answer([CUT]),
        "nothing at all": Answer([]),
        "an error event": Answer([*whole[:3], OVERLOADED[protocol]]),
        "a damaged event": Answer([*whole[:3], b'data: {"type": "cont\n\n', *whole[3:]]),
        "not an object": Answer([*whole[:3], b"data: [1]\n\n", *whole[3:]]),
        "stalled": Answer([*whole[:3], HANG]),
        "stalled before the first byte": Answer([HANG]),
    }[name]


TRANSIENT = [
    "429",
    "429 with retry-after",
    "500",
    "502",
    "503",
    "529",
    "408",
    "cut in a call",
    "ended in a call",
    "cut at once",
    "nothing at all",
    "an error event",
    "a damaged event",
    "not an object",
    "stalled",
    "stalled before the first byte",
]


@pytest.mark.parametrize("fault", TRANSIENT)
def test_what_may_pass_is_tried_again(protocol: str, server: FakeServer, fault: str) -> None:
    server.script(_broken(fault, protocol), answer(protocol, "whole", [("z", "search", "{}")]))
    events = events_of(protocol, server)
    assert len(server.requests) == 2
    assert server.requests[0].body == server.requests[1].body
    retry = next(i for i, event in enumerate(events) if isinstance(event, Retrying))
    assert not any(isinstance(event, ToolCallEvent) for event in events[:retry])
    reply = gather(iter(events))
    assert (reply.text, [call.id for call in reply.tool_calls]) == ("whole", ["z"])


@pytest.mark.parametrize("fault", ["529", "cut in a call", "an error event"])
def test_what_does_not_pass_ends_in_an_error(protocol: str, server: FakeServer, fault: str) -> None:
    server.script(_broken(fault, protocol))
    clock = iter(range(1000))
    policy = RetryPolicy(
        first_wait_s=0.001, max_wait_s=0.001, deadline_s=60.0, stall_s=0.3, clock=lambda: float(next(clock))
    )
    with pytest.raises(ProviderError, match="gave up after") as caught:
        events_of(protocol, server, policy=policy)
    assert len(server.requests) >= 2
    assert caught.value.remedy is not None


def test_a_broken_attempt_is_paid_for(server: FakeServer) -> None:
    whole = EVENTS["anthropic"]("part of it")
    server.script(Answer([*whole[:4], CUT]), answer("anthropic", "whole"))
    usage = [event.usage for event in events_of("anthropic", server) if isinstance(event, UsageEvent)]
    assert [(u.input_tokens, u.output_tokens) for u in usage] == [(10, 1), (10, 7)]


def test_retry_after_beyond_the_deadline_is_not_waited_for(protocol: str, server: FakeServer) -> None:
    server.script(http_error(429, {}, retry_after="3600"))
    with pytest.raises(ProviderError, match="asks to wait 3600 s"):
        events_of(protocol, server)
    assert len(server.requests) == 1


LONG = {
    "anthropic": {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": "prompt is too long: 210000 tokens > 200000 maximum",
        },
    },
    "openai": {
        "error": {"message": "too big", "type": "invalid_request_error", "code": "context_length_exceeded"}
    },
}
FOR_GOOD: list[tuple[str, Answer, type[ProviderError], str]] = [
    ("400", http_error(400, {"error": {"message": "tools.0: bad"}}), ProviderError, "tools.0: bad"),
    ("401", http_error(401, {"error": {"message": f"bad key {KEY}"}}), ProviderError, "key is not accepted"),
    ("403", http_error(403, b"<h1>Forbidden</h1>"), ProviderError, "denied: Forbidden"),
    ("404", http_error(404, {"error": {"message": "no such model"}}), ProviderError, "no such model"),
    ("quota", http_error(429, {"error": {"code": "insufficient_quota"}}), ProviderError, "quota"),
    ("said so", http_error(503, {}, x_should_retry="false"), ProviderError, "not available"),
    ("html", Answer([b"<html>Login</html>"], 200, {"Content-Type": "text/html"}), ProviderError, "text/html"),
    (
        "vllm",
        http_error(400, {"message": "This model's maximum context length is 8 tokens.", "code": 400}),
        ContextTooLong,
        "maximum context",
    ),
    (
        "llama.cpp",
        http_error(400, {"error": {"type": "exceed_context_size_error", "message": "request too big"}}),
        ContextTooLong,
        "too big",
    ),
    ("413", http_error(413, {"error": {"type": "request_too_large"}}), ContextTooLong, "window"),
]


@pytest.mark.parametrize(("name", "reply", "kind", "says"), FOR_GOOD, ids=[case[0] for case in FOR_GOOD])
def test_what_will_not_pass_is_raised_at_once(
    protocol: str, server: FakeServer, name: str, reply: Answer, kind: type[ProviderError], says: str
) -> None:
    server.script(reply)
    with pytest.raises(ProviderError) as caught:
        events_of(protocol, server)
    assert type(caught.value) is kind or (
        kind is ProviderError and not isinstance(caught.value, ContextTooLong)
    )
    assert says in str(caught.value)
    assert len(server.requests) == 1


def test_context_too_long_in_both_dialects(protocol: str, server: FakeServer) -> None:
    server.script(http_error(400, LONG[protocol]))
    with pytest.raises(ContextTooLong):
        events_of(protocol, server)
    error = LONG[protocol]["error"]
    server.script(Answer([sse({"type": "error", "error": error}, "error")]))
    with pytest.raises(ContextTooLong):
        events_of(protocol, server)


def test_an_error_in_the_stream_that_will_not_pass(protocol: str, server: FakeServer) -> None:
    error = {"type": "invalid_request_error", "message": "nonsense"}
    server.script(Answer([sse({"type": "error", "error": error}, "error")]))
    with pytest.raises(ProviderError, match="nonsense"):
        events_of(protocol, server)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_the_key_is_not_carried_to_another_host(protocol: str, server: FakeServer, status: int) -> None:
    with FakeServer() as elsewhere:
        elsewhere.script(answer(protocol, "gotcha"))
        server.script(Answer([], status, {"Location": f"{elsewhere.url}/v1/messages"}))
        with pytest.raises(ProviderError, match="redirect"):
            events_of(protocol, server)
        assert elsewhere.requests == []


def test_huge_answers_are_cut(protocol: str, server: FakeServer) -> None:
    whole = EVENTS[protocol]("x" * 5)
    delta = next(event for event in whole if b"xxxxx" in event)
    server.script(Answer([*whole[:3], *[delta.replace(b"xxxxx", b"x" * 100_000)] * 40, *whole[3:]]))
    with pytest.raises(ProviderError, match="longer than"):
        events_of(protocol, server)
    server.script(Answer([b"data: " + b"x" * 100_000] * 60))
    with pytest.raises(ProviderError, match="longer than"):
        events_of(protocol, server)
    server.script(Answer([b"x" * 100_000] * 100, 200, {"Content-Type": "application/json"}))
    with pytest.raises(ProviderError, match="larger than"):
        events_of(protocol, server)
    server.script(http_error(400, b"y" * 1_000_000))
    with pytest.raises(ProviderError) as caught:
        events_of(protocol, server)
    assert len(str(caught.value)) < 1000


def test_a_drip_of_pings_does_not_last_for_ever(protocol: str, server: FakeServer) -> None:
    server.script(Answer([part for _ in range(200) for part in (b": ping\n\n", sse("", "ping"), 0.02)]))
    with pytest.raises(ProviderError, match=r"took longer than 0.2 s"):
        events_of(protocol, server, policy=RetryPolicy(total_s=0.2))
    assert len(server.requests) == 1


def test_a_slow_stream_is_fine(protocol: str, server: FakeServer) -> None:
    parts = [part for event in EVENTS[protocol]("slow but sure") for part in (event[:9], 0.01, event[9:])]
    server.script(Answer(parts))
    assert gather(iter(events_of(protocol, server))).text == "slow but sure"


def test_nobody_listens_there(protocol: str) -> None:
    with FakeServer() as closed:
        pass
    with pytest.raises(ProviderError, match=r"cannot connect.*gave up after 4 attempts"):
        events_of(protocol, closed)


@pytest.mark.parametrize("when", ["before the answer", "in the answer", "while waiting to retry"])
def test_cancel_does_not_wait_for_the_server(protocol: str, server: FakeServer, when: str) -> None:
    whole = EVENTS[protocol]("some text")
    script = {
        "before the answer": Answer([HANG]),
        "in the answer": Answer([*whole[:4], HANG]),
        "while waiting to retry": http_error(429, {}, retry_after="20"),
    }[when]
    server.script(script)
    cancel = CancelToken()
    policy = RetryPolicy(stall_s=25.0, deadline_s=60.0)
    timer = threading.Timer(0.15, cancel.cancel)
    timer.start()
    with pytest.raises(Cancelled):
        list(backend(protocol, server, policy).stream(ASK, cancel))
    timer.join()
    with pytest.raises(Cancelled):
        next(backend(protocol, server).stream(ASK, cancel))
    assert len(server.requests) == 1


def test_closing_the_stream_hangs_up(protocol: str, server: FakeServer) -> None:
    gone = threading.Event()

    def endless(_: object) -> Answer:
        def parts() -> Any:
            try:
                yield from EVENTS[protocol]("some text")[:4]
                while True:
                    yield b": still here\n\n"
                    yield 0.01
            finally:
                gone.set()

        return Answer(parts())

    server.script(endless)
    stream = backend(protocol, server).stream(ASK, CancelToken())
    assert isinstance(next(stream), TextDelta)
    stream.close()
    assert gone.wait(10)


@pytest.mark.parametrize("fault", ["401", "redirect", "429", "cut", "ok"])
def test_the_key_shows_nowhere(
    protocol: str, server: FakeServer, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.script(
        {
            "401": http_error(401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}),
            "redirect": Answer([], 302, {"Location": "http://localhost:1/"}),
            "429": http_error(429, {"error": f"{KEY} is too eager"}, retry_after="999"),
            "cut": Answer([CUT]),
            "ok": answer(protocol, "fine"),
        }[fault]
    )
    made = backend(protocol, server, RetryPolicy(first_wait_s=0.001, deadline_s=0.01))
    shown = [repr(made), repr(made._endpoint), str(made.capabilities)]
    try:
        shown += [repr(event) for event in made.stream(ASK, CancelToken())]
    except AgentLsError as error:
        shown += traceback.format_exception(error)
    sent = server.requests[0].headers
    assert KEY in (sent.get("x-api-key") or sent["authorization"])
    assert KEY not in "".join(shown) + caplog.text

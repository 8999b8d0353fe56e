"""`anthropic:`: the Messages API, streamed, with tools and prompt caching."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import define, field
from httpx_sse import ServerSentEvent

from agent_ls.errors import UsageError
from agent_ls.models._chat import check_size, finish_call, unique_ids
from agent_ls.models._http import BadRequest, Endpoint, check_base_url, failure_in_stream
from agent_ls.models.hosted import Answer, Ending, HostedBackend, check_key, count, mapping, read_json
from agent_ls.models.prices import hosted_model
from agent_ls.models.protocol import (
    Capabilities,
    Message,
    ModelEvent,
    Request,
    StopReason,
    TextDelta,
    ToolCallEvent,
    Usage,
)
from agent_ls.models.retry import RetryPolicy

KEY = "ANTHROPIC_API_KEY"
_BASE_URL = "https://api.anthropic.com"
_VERSION = "2023-06-01"
_WINDOW = 200_000
_MAX_BREAKPOINTS = 4
# Models that think do so out of max_tokens; this much is added so that the answer keeps what was asked for.
_THINKING_TOKENS = 12_000
_STOP: dict[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tool_calls",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "refusal": "refusal",
}


class AnthropicBackend(HostedBackend):
    """Claude models. `seed`, `json_schema` and `grammar` of a request have no effect."""

    def __init__(
        self,
        name: str,
        key: str | None,
        *,
        base_url: str | None = None,
        window: int | None = None,
        policy: RetryPolicy | None = None,
    ) -> None:
        key = check_key(key, KEY)
        if key is None:
            raise UsageError(f"{name} needs an API key", f"Set the environment variable {KEY}.")
        base = check_base_url(base_url or _BASE_URL, key)
        url = f"{base}/messages" if base.endswith("/v1") else f"{base}/v1/messages"
        known = hosted_model(name)
        self._model = name.partition(":")[2]
        self._reasons = known is not None and known.reasoning
        # What a model thought before its tool calls belongs in front of them when they are sent back.
        self._thoughts: dict[str, list[dict[str, Any]]] = {}
        self._keep_thoughts = True
        super().__init__(
            name,
            Endpoint(name, url, {"x-api-key": key, "anthropic-version": _VERSION}, KEY, key),
            Capabilities(window=window or (known.window if known else _WINDOW), tools=True),
            priced=True,
            policy=policy,
        )

    def _body(self, request: Request) -> dict[str, Any]:
        system, messages = render(request.messages, self._thoughts)
        extra = _THINKING_TOKENS if self._reasons else 0
        body: dict[str, Any] = {
            "model": self._model,
            "max_tokens": request.max_tokens + extra,
            "messages": messages,
            "stream": True,
        }
        if system:
            body["system"] = system
        if request.tools:
            body["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}
                for tool in request.tools
            ]
        if request.temperature is not None and not self._reasons:
            body["temperature"] = min(1.0, max(0.0, request.temperature))
        if stop := [text for text in request.stop if text.strip()]:
            body["stop_sequences"] = stop
        return body

    def _optional(self) -> Mapping[str, str]:
        return {"temperature": "temperature", "stop_sequences": "stop_sequences"}

    def _give_way(self, body: Mapping[str, Any], error: BadRequest) -> bool:
        if self._thoughts and "thinking" in error.text:
            self._thoughts.clear()
            self._keep_thoughts = False
            return True
        return super()._give_way(body, error)

    def _answer(self, request: Request) -> Answer:
        return _Answer(self._endpoint, self._thoughts if self._keep_thoughts else {})


def render(
    messages: Sequence[Message], thoughts: Mapping[str, list[dict[str, Any]]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(system blocks, messages) in the API's form: tool results inside user messages, roles alternating,
    no empty text, at most four cache marks. `thoughts` holds thinking blocks by a turn's first tool id."""
    system: list[dict[str, Any]] = []
    turns: list[dict[str, Any]] = []
    marked: list[dict[str, Any]] = []
    for message in messages:
        blocks = _blocks(message, thoughts)
        if not blocks:
            continue
        if message.cache and blocks[-1]["type"] != "thinking":
            marked.append(blocks[-1])
        role = "user" if message.role == "tool" else message.role
        if role == "system":
            system += blocks
        elif turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    if not turns or turns[0]["role"] != "user":
        turns.insert(0, {"role": "user", "content": [{"type": "text", "text": "Go on."}]})
    last = turns[-1]["content"][-1]
    if turns[-1]["role"] == "assistant" and last["type"] == "text":
        last["text"] = last["text"].rstrip()  # the API refuses a last answer that ends in blanks
    # The first mark covers tools and system, the last ones let each turn find the one before it.
    for block in marked[:1] + marked[1:][-(_MAX_BREAKPOINTS - 1) :]:
        block["cache_control"] = {"type": "ephemeral"}
    return system, turns


def _blocks(message: Message, thoughts: Mapping[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    if message.role == "tool":
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": _safe_id(message.tool_call_id or "")}
        if message.content.strip():
            result["content"] = message.content
        if message.is_error:
            result["is_error"] = True
        return [result]
    blocks: list[dict[str, Any]] = []
    if message.tool_calls:
        blocks += thoughts.get(message.tool_calls[0].id, [])
    if message.content.strip():
        blocks.append({"type": "text", "text": message.content})
    for call in message.tool_calls:
        blocks.append(
            {
                "type": "tool_use",
                "id": _safe_id(call.id),
                "name": call.name,
                "input": dict(call.arguments),
            }
        )
    return blocks


def _safe_id(call_id: str) -> str:
    """The API takes only letters, digits, - and _ in ids; other backends' ids may hold more."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", call_id) or "call"


@define
class _Block:
    kind: str
    id: str = ""
    name: str = ""
    arguments: str = ""
    data: dict[str, Any] = field(factory=dict)
    complete: bool = False


class _Answer:
    """The API's stream of content blocks, or one whole message."""

    def __init__(self, endpoint: Endpoint, thoughts: dict[str, list[dict[str, Any]]]) -> None:
        self.written_chars = 0
        self._endpoint = endpoint
        self._thoughts = thoughts
        self._blocks: dict[int, _Block] = {}
        self._usage: dict[str, Any] = {}
        self._stop: str | None = None
        self._ended = False

    def feed(self, event: ServerSentEvent) -> Iterator[ModelEvent]:
        if not event.data.strip():
            return
        data = read_json(event.data)
        match data.get("type"):
            case "error":
                raise failure_in_stream(self._endpoint, data.get("error"))
            case "message" if event.event == "whole":
                yield from self._whole(data)
            case "message_start":
                self._add_usage(mapping(data, "message"))
            case "content_block_start":
                yield from self._start(_index(data), mapping(data, "content_block"))
            case "content_block_delta":
                yield from self._delta(_index(data), mapping(data, "delta"))
            case "content_block_stop":
                if (block := self._blocks.get(_index(data))) is not None:
                    block.complete = True
            case "message_delta":
                self._add_usage(data)
                self._stop = mapping(data, "delta").get("stop_reason") or self._stop
            case "message_stop":
                self._ended = True

    def _whole(self, data: Mapping[str, Any]) -> Iterator[ModelEvent]:
        self._add_usage(data)
        content = data.get("content")
        for index, raw in enumerate(content if isinstance(content, list) else ()):
            if isinstance(raw, dict):
                yield from self._start(index, raw)
                self._blocks[index].complete = True
        self._stop = data.get("stop_reason")
        self._ended = self._stop is not None

    def _start(self, index: int, raw: Mapping[str, Any]) -> Iterator[ModelEvent]:
        block = _Block(
            str(raw.get("type")), str(raw.get("id") or ""), str(raw.get("name") or ""), data=dict(raw)
        )
        self._blocks[index] = block
        if block.kind == "text" and (text := str(raw.get("text") or "")):
            yield self._text(text)
        elif block.kind == "tool_use" and raw.get("input"):
            block.arguments = json.dumps(raw["input"], ensure_ascii=False)
            self._count(block.arguments)

    def _delta(self, index: int, delta: Mapping[str, Any]) -> Iterator[ModelEvent]:
        block = self._blocks.setdefault(index, _Block("text"))
        match delta.get("type"):
            case "text_delta":
                if text := str(delta.get("text") or ""):
                    yield self._text(text)
            case "input_json_delta":
                part = str(delta.get("partial_json") or "")
                self._count(part)
                block.arguments += part
            case "thinking_delta" | "signature_delta":
                key = "thinking" if delta["type"] == "thinking_delta" else "signature"
                part = str(delta.get(key) or "")
                self._count(part)
                block.data[key] = str(block.data.get(key) or "") + part

    def _text(self, text: str) -> TextDelta:
        self._count(text)
        return TextDelta(text)

    def _count(self, text: str) -> None:
        self.written_chars += len(text)
        check_size(self._endpoint.name, self.written_chars)

    def _add_usage(self, data: Mapping[str, Any]) -> None:
        # The counts are cumulative; a later event repeats only some of them.
        self._usage |= {key: value for key, value in mapping(data, "usage").items() if value is not None}

    def usage(self) -> tuple[Usage, int] | None:
        if not self._usage:
            return None
        read = count(self._usage, "cache_read_input_tokens")
        written = count(self._usage, "cache_creation_input_tokens")
        fresh = count(self._usage, "input_tokens")
        return Usage(fresh + read + written, count(self._usage, "output_tokens"), read), written

    def finish(self) -> tuple[list[ModelEvent], Ending] | None:
        if not self._ended:
            return None
        stop: Ending = "pause" if self._stop == "pause_turn" else _STOP.get(self._stop or "", "end")
        ordered = [block for _, block in sorted(self._blocks.items())]
        calls = [block for block in ordered if block.kind == "tool_use"]
        events: list[ModelEvent] = []
        for call_id, block in zip(unique_ids([block.id for block in calls]), calls, strict=True):
            cut = not block.complete or (stop in ("max_tokens", "refusal") and block is ordered[-1])
            events.append(finish_call(call_id, block.name, block.arguments, truncated=cut))
        if calls and stop in ("end", "pause"):
            stop = "tool_calls"
        elif not calls and stop == "tool_calls":
            stop = "end"
        thoughts = [block.data for block in ordered if block.kind in ("thinking", "redacted_thinking")]
        first = next((event.call.id for event in events if isinstance(event, ToolCallEvent)), None)
        if thoughts and first is not None:
            self._thoughts[first] = thoughts
        return events, stop


def _index(data: Mapping[str, Any]) -> int:
    index = data.get("index", 0)
    return index if isinstance(index, int) else 0

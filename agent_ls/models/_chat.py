"""The chat-completions format: requests to it, and its stream of chunks back to model events.

Shared by `openai:` and `local:`, as llama.cpp speaks the same format in process.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import define

from agent_ls.errors import ProviderError
from agent_ls.models.protocol import (
    MalformedToolCall,
    Message,
    ModelEvent,
    Request,
    StopReason,
    TextDelta,
    ToolCall,
    ToolCallEvent,
)

MAX_ANSWER_CHARS = 2_000_000
_STOP: dict[str, StopReason] = {
    "stop": "end",
    "eos": "end",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "refusal",
}


def chat_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages in the chat-completions form."""
    return [_chat_message(message) for message in messages]


def _chat_message(message: Message) -> dict[str, Any]:
    out: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.role == "tool":
        out["tool_call_id"] = message.tool_call_id or ""
        if message.is_error:
            out["content"] = f"Error: {message.content}"
    if message.tool_calls:
        out["content"] = message.content or None
        out["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
            }
            for call in message.tool_calls
        ]
    return out


def chat_tools(request: Request) -> list[dict[str, Any]]:
    """The tools of a request in the chat-completions form."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
            },
        }
        for tool in request.tools
    ]


def schema_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """`response_format` for a JSON schema."""
    return {
        "type": "json_schema",
        "json_schema": {"name": "answer", "strict": _strict(schema), "schema": dict(schema)},
    }


def _strict(schema: Any) -> bool:
    """Whether a schema keeps the rules of strict mode: objects closed, every property required."""
    if isinstance(schema, Mapping):
        if "properties" in schema and (
            schema.get("additionalProperties") is not False
            or set(schema.get("required", ())) != set(schema["properties"])
        ):
            return False
        return all(_strict(value) for value in schema.values())
    return all(_strict(value) for value in schema) if isinstance(schema, list | tuple) else True


def finish_call(
    call_id: str, name: str, raw: str, *, truncated: bool = False
) -> ToolCallEvent | MalformedToolCall:
    """A tool call from its raw JSON arguments; anything but a whole JSON object is malformed.

    A call that was being written when the answer was cut off is malformed even if its arguments parse:
    some servers close the brackets of a broken-off call themselves.
    """
    if truncated:
        return MalformedToolCall(name, raw, "the call was cut off before its end", call_id)
    if not name:
        return MalformedToolCall(name, raw, "the call names no tool", call_id)
    try:
        arguments = json.loads(raw) if raw.strip() else {}
    except (ValueError, RecursionError) as error:
        return MalformedToolCall(name, raw, f"the arguments are not valid JSON: {error}", call_id)
    if not isinstance(arguments, dict):
        return MalformedToolCall(name, raw, "the arguments are not a JSON object", call_id)
    return ToolCallEvent(ToolCall(call_id, name, arguments))


def unique_ids(ids: Sequence[str]) -> list[str]:
    """The ids of one answer's calls, repeated ones changed: each call needs a result of its own."""
    seen: set[str] = set()
    unique = []
    for number, call_id in enumerate(ids):
        while call_id in seen:
            call_id = f"{call_id or 'call'}_{number}"
        seen.add(call_id)
        unique.append(call_id)
    return unique


def check_size(name: str, chars: int) -> None:
    """Raise ProviderError when an answer has grown beyond `MAX_ANSWER_CHARS`."""
    if chars > MAX_ANSWER_CHARS:
        raise ProviderError(
            f"{name}: the answer is longer than {MAX_ANSWER_CHARS:,} characters; reading was stopped"
        )


@define
class _Slot:
    id: str = ""
    name: str = ""
    arguments: str = ""


class ChatAssembler:
    """Turns chunks into events. `feed` chunks, then call `finish` once.

    `raw_usage` is the server's usage object (None if it sent none), `written_chars` counts all that the
    model wrote: text, hidden reasoning and tool arguments. `turn` makes ids for calls that came without.
    """

    def __init__(self, name: str, turn: int) -> None:
        self.raw_usage: Mapping[str, Any] | None = None
        self.written_chars = 0
        self.finish_reason: str | None = None
        self._name = name
        self._turn = turn
        self._slots: list[_Slot] = []
        self._by_index: dict[int, _Slot] = {}
        self._refused = False

    def feed(self, chunk: Mapping[str, Any]) -> Iterator[ModelEvent]:
        """Events of one chunk (also a whole completion: `message` in place of `delta`).

        Raises ProviderError when the answer grows beyond `MAX_ANSWER_CHARS`.
        """
        if isinstance(usage := chunk.get("usage"), Mapping):
            self.raw_usage = usage
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if not isinstance(choice, Mapping) or choice.get("index", 0) not in (0, None):
                continue
            delta = choice.get("delta") or choice.get("message") or {}
            if isinstance(delta, Mapping):
                yield from self._delta(delta)
            if reason := choice.get("finish_reason"):
                self.finish_reason = str(reason)

    def _delta(self, delta: Mapping[str, Any]) -> Iterator[ModelEvent]:
        for key in ("reasoning_content", "reasoning"):
            if isinstance(thought := delta.get(key), str):
                self._count(thought)
                break
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            self._refused = True
            self._count(refusal)
            yield TextDelta(refusal)
        content = delta.get("content")
        if isinstance(content, list):  # some servers send parts
            content = "".join(
                part["text"]
                for part in content
                if isinstance(part, Mapping) and isinstance(part.get("text"), str)
            )
        if isinstance(content, str) and content:
            self._count(content)
            yield TextDelta(content)
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, Mapping):
                self._call(call)

    def _call(self, call: Mapping[str, Any]) -> None:
        function = call.get("function")
        function = function if isinstance(function, Mapping) else {}
        slot = self._slot(call, function)
        if isinstance(call_id := call.get("id"), str) and not slot.id:
            slot.id = call_id
        if isinstance(name := function.get("name"), str) and name != slot.name:
            slot.name += name
        arguments = function.get("arguments")
        if isinstance(arguments, Mapping):
            arguments = json.dumps(arguments, ensure_ascii=False)
        if isinstance(arguments, str):
            self._count(arguments)
            slot.arguments += arguments

    def _slot(self, call: Mapping[str, Any], function: Mapping[str, Any]) -> _Slot:
        """The call a delta belongs to: by index; by position where a server gives none, or always 0."""
        index, call_id = call.get("index"), call.get("id")
        slot = self._by_index.get(index) if isinstance(index, int) else None
        if not isinstance(index, int) and self._slots and not function.get("name"):
            slot = self._slots[-1]
        starts_another = bool(
            slot and call_id and slot.id and call_id != slot.id and function.get("name") and slot.name
        )
        if slot is None or starts_another:
            slot = _Slot()
            self._slots.append(slot)
            if isinstance(index, int):
                self._by_index[index] = slot
        return slot

    def _count(self, text: str) -> None:
        self.written_chars += len(text)
        check_size(self._name, self.written_chars)

    def finish(self) -> tuple[list[ModelEvent], StopReason]:
        """The tool calls, and why the answer ended. To be called once the server said that it is over."""
        stop = _STOP.get(self.finish_reason or "stop", "end")
        events: list[ModelEvent] = []
        ids = unique_ids([slot.id or f"call_{self._turn}_{n}" for n, slot in enumerate(self._slots)])
        for number, (call_id, slot) in enumerate(zip(ids, self._slots, strict=True)):
            cut = stop == "max_tokens" and number == len(self._slots) - 1
            events.append(finish_call(call_id, slot.name, slot.arguments, truncated=cut))
        if self._refused:
            stop = "refusal"
        elif self._slots and stop == "end":
            stop = "tool_calls"
        elif not self._slots and stop == "tool_calls":
            stop = "end"
        return events, stop

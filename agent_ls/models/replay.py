"""`replay:`: the model's side of a recorded session, played back exactly, and what recording needs.

A session's file holds for each call the canonical request (`messages`, `tools`, …) with its digest, and
the reply. A replay checks that the n-th request is the recorded one and answers what was recorded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_ls.cancel import CancelToken
from agent_ls.errors import ProviderError, UsageError
from agent_ls.events import read_events
from agent_ls.models._estimate import estimate_tokens
from agent_ls.models.prices import hosted_model
from agent_ls.models.protocol import (
    Capabilities,
    Done,
    MalformedToolCall,
    Message,
    ModelEvent,
    Reply,
    Request,
    StopReason,
    TextDelta,
    ToolCall,
    ToolCallEvent,
    Usage,
    UsageEvent,
)


class ReplayMismatch(ProviderError):
    """The session asks something else than the recorded one did; the message shows the first difference."""


def canonical(request: Request) -> dict[str, Any]:
    """A request as plain JSON data; equal requests give equal data.

    Left out: `cache` marks, which change what a call costs but not what is asked.
    """
    return {
        "messages": [_message_data(message) for message in request.messages],
        "tools": [
            {"name": tool.name, "description": tool.description, "parameters": _plain(tool.parameters)}
            for tool in request.tools
        ],
        "temperature": None if request.temperature is None else float(request.temperature),
        "max_tokens": request.max_tokens,
        "stop": list(request.stop),
        "seed": request.seed,
        "json_schema": None if request.json_schema is None else _plain(request.json_schema),
        "grammar": request.grammar,
    }


def digest(request: Request | Mapping[str, Any]) -> str:
    """SHA-256 (hex) of a request or of its canonical form."""
    data = canonical(request) if isinstance(request, Request) else request
    text = json.dumps(data, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _message_data(message: Message) -> dict[str, Any]:
    data: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        data["tool_calls"] = [call_data(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        data["tool_call_id"] = message.tool_call_id
    if message.is_error:
        data["is_error"] = True
    return data


def call_data(call: ToolCall) -> dict[str, Any]:
    """A tool call as plain data."""
    return {"id": call.id, "name": call.name, "arguments": _plain(call.arguments)}


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def reply_data(reply: Reply) -> dict[str, Any]:
    """A reply as the data of a `model_reply` event (without `n` and `seconds`)."""
    return {
        "text": reply.text,
        "tool_calls": [call_data(call) for call in reply.tool_calls],
        "malformed": [
            {"id": bad.id, "name": bad.name, "raw": bad.raw, "error": bad.error} for bad in reply.malformed
        ],
        "stop_reason": reply.stop_reason,
        "usage": {
            "input_tokens": reply.usage.input_tokens,
            "output_tokens": reply.usage.output_tokens,
            "cached_tokens": reply.usage.cached_tokens,
            "cost_usd": reply.usage.cost_usd,
        },
    }


def reply_to_events(data: Mapping[str, Any]) -> list[ModelEvent]:
    """The stream that gathers to the reply recorded in `data`. Raises KeyError, TypeError on bad data."""
    events: list[ModelEvent] = []
    if data["text"]:
        events.append(TextDelta(data["text"]))
    for call in data.get("tool_calls") or ():
        events.append(ToolCallEvent(ToolCall(call["id"], call["name"], call["arguments"])))
    for bad in data.get("malformed") or ():
        events.append(MalformedToolCall(bad["name"], bad["raw"], bad["error"], bad.get("id", "")))
    events.append(UsageEvent(Usage(**(data.get("usage") or {}))))
    stop: StopReason = data.get("stop_reason", "end")
    events.append(Done(stop))
    return events


def _window(model: str) -> int:
    """The window that the recorded model had when none was configured: it decides what a prompt holds."""
    if model.startswith("local:"):
        return 8192
    known = hosted_model(model)
    return known.window if known else 200_000


class ReplayBackend:
    """Answers from a session's event file. Calls that the session never got an answer to are skipped.

    Its capabilities are those of the recorded model, so that prompts come out the same.
    """

    def __init__(self, file: Path, *, window: int | None = None) -> None:
        self.name = f"replay:{file}"
        self._calls: list[tuple[Mapping[str, Any], list[ModelEvent]]] = []
        self._next = 0
        recorded_model, recorded_window = "", None
        asked: dict[int, Mapping[str, Any]] = {}
        try:
            for event in read_events(file):
                if event.kind == "session_started":
                    recorded_model = str(event.data.get("model", ""))
                    recorded_window = (event.data.get("settings") or {}).get("context_window")
                elif event.kind == "context" and recorded_window is None:
                    recorded_window = event.data.get("window")  # the server's, where none was configured
                elif event.kind == "model_call":
                    asked[event.data["n"]] = event.data
                elif event.kind == "model_reply":
                    call = asked.pop(event.data["n"])
                    self._calls.append((call, reply_to_events(event.data)))
        except OSError as error:
            raise UsageError(f"cannot read the recorded session {file}: {error.strerror or error}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{file} is not a recorded session: {error}") from error
        if not self._calls:
            raise UsageError(f"{file} holds no answers of a model, so there is nothing to replay")
        self.recorded_model = recorded_model
        local = recorded_model.startswith("local:")
        self.capabilities = Capabilities(
            window=window or recorded_window or _window(recorded_model),
            tools=any(call.get("tools") for call, _ in self._calls),
            json_schema=not recorded_model.startswith("anthropic:"),
            grammar=local,
            local=local,
        )

    def stream(self, request: Request, cancel: CancelToken) -> Iterator[ModelEvent]:
        """See `Backend.stream`. Raises ReplayMismatch at the first request that differs from the record."""
        cancel.raise_if_cancelled()
        number = self._next
        if number >= len(self._calls):
            raise ReplayMismatch(
                f"{self.name}: call {number + 1} was never recorded (the record holds {len(self._calls)})"
            )
        recorded, events = self._calls[number]
        now = canonical(request)
        if recorded.get("digest") != digest(now):
            where = first_difference(recorded, now)
            raise ReplayMismatch(
                f"{self.name}: call {number + 1} differs from the recorded one: {where}",
                "The code, the prompts or the repository changed since the session was recorded.",
            )
        self._next += 1
        yield from events

    def count_tokens(self, text: str) -> int:
        """A conservative estimate."""
        return estimate_tokens(text)

    def close(self) -> None:
        """Nothing to free."""


def first_difference(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Where two canonical requests first differ, for a person; keys missing in `recorded` don't count."""
    for key in ("messages", "tools", *sorted(set(now) - {"messages", "tools"})):
        if key in recorded and (found := _difference(recorded[key], now.get(key), key)):
            return found
    return "a part that the record doesn't keep (its digest is another one)"


def _difference(old: Any, new: Any, where: str) -> str | None:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*new, *(key for key in old if key not in new)]:
            if found := _difference(old.get(key), new.get(key), f"{where}.{key}"):
                return found
        return None
    if isinstance(old, list | tuple) and isinstance(new, list | tuple):
        for position, (left, right) in enumerate(zip(old, new, strict=False)):
            if found := _difference(left, right, f"{where}[{position}]"):
                return found
        return None if len(old) == len(new) else f"{where}: {len(old)} recorded, {len(new)} now"
    if isinstance(old, str) and isinstance(new, str):
        return None if old == new else _text_difference(old, new, where)
    return None if old == new else f"{where}: {old!r} recorded, {new!r} now"


def _text_difference(old: str, new: str, where: str) -> str:
    at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    line = old.count("\n", 0, at) + 1
    start = max(0, at - 30)
    return (
        f"{where}, line {line}, character {at}: "
        f"recorded …{old[start : at + 50]!r}, now …{new[start : at + 50]!r}"
    )

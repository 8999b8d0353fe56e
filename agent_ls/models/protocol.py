"""The one protocol between the loop and any model: messages and tools in, a stream of events out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol

from attrs import field, frozen

from agent_ls.cancel import CancelToken


@frozen
class ToolCall:
    """A complete, well-formed tool call. Truncated or malformed ones never become a `ToolCall`."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@frozen
class Message:
    """One message. `role` "tool" answers call `tool_call_id`; `cache` marks the end of a stable prefix."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    is_error: bool = False
    cache: bool = False


@frozen
class ToolSchema:
    """A tool as the model sees it; `parameters` is a JSON Schema of type object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@frozen
class Request:
    """One model call. `json_schema` or `grammar` (GBNF) constrain the answer where the backend can."""

    messages: Sequence[Message]
    tools: Sequence[ToolSchema] = ()
    temperature: float | None = None
    max_tokens: int = 4096
    stop: Sequence[str] = ()
    seed: int | None = None
    json_schema: Mapping[str, Any] | None = None
    grammar: str | None = None


@frozen
class Usage:
    """Tokens of one or more calls; `cost_usd` is None as soon as any price is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = 0.0

    def __add__(self, other: Usage) -> Usage:
        unknown = self.cost_usd is None or other.cost_usd is None
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            None if unknown else (self.cost_usd or 0.0) + (other.cost_usd or 0.0),
        )


@frozen
class TextDelta:
    text: str


@frozen
class ToolCallEvent:
    call: ToolCall


@frozen
class MalformedToolCall:
    """The model tried to call a tool and failed (bad JSON, cut off, no such form); `error` says how."""

    name: str
    raw: str
    error: str
    id: str = ""


@frozen
class UsageEvent:
    usage: Usage


StopReason = Literal["end", "tool_calls", "max_tokens", "refusal"]


@frozen
class Done:
    """Always the last event of a stream that was read to its end."""

    stop_reason: StopReason


@frozen
class Retrying:
    """The backend waits before it tries again. Text that came before this event is void; calls never come
    before it."""

    reason: str
    attempt: int
    wait_s: float


ModelEvent = TextDelta | ToolCallEvent | MalformedToolCall | UsageEvent | Done | Retrying


@frozen
class Reply:
    """A whole answer, gathered from a stream by `gather`."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    malformed: tuple[MalformedToolCall, ...] = ()
    usage: Usage = field(factory=Usage)
    stop_reason: StopReason = "end"


@frozen
class Capabilities:
    """What the loop needs to know to choose a strategy and a budget. `window` is in tokens."""

    window: int
    tools: bool
    json_schema: bool = False
    grammar: bool = False
    local: bool = False


class Backend(Protocol):
    """A model. `name` is the full model name, such as `anthropic:claude-…`."""

    name: str
    capabilities: Capabilities

    def stream(self, request: Request, cancel: CancelToken) -> Iterator[ModelEvent]:
        """Yield events until `Done`.

        Raises ProviderError (for good, retries used up), ContextTooLong, Cancelled. A stream that
        breaks off is retried inside or raised, never reported as `Done`.
        """
        ...

    def count_tokens(self, text: str) -> int:
        """Tokens of `text`: exact where the model is local, else a conservative estimate."""
        ...

    def close(self) -> None: ...


def gather(events: Iterator[ModelEvent]) -> Reply:
    """Read a stream to its end. Raises what the stream raises."""
    text: list[str] = []
    calls: list[ToolCall] = []
    malformed: list[MalformedToolCall] = []
    usage = Usage()
    stop: StopReason = "end"
    for event in events:
        match event:
            case TextDelta():
                text.append(event.text)
            case ToolCallEvent():
                calls.append(event.call)
            case MalformedToolCall():
                malformed.append(event)
            case UsageEvent():
                usage += event.usage
            case Done():
                stop = event.stop_reason
            case Retrying():
                text.clear()  # the next attempt says it again
    return Reply("".join(text), tuple(calls), tuple(malformed), usage, stop)

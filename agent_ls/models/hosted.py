"""What `anthropic:` and `openai:` have in common: keys, retries, cancelling, sampling options that a model
does not know, and the end of a stream."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Literal, Protocol

from attrs import evolve, frozen
from httpx_sse import ServerSentEvent

from agent_ls.cancel import CancelToken
from agent_ls.errors import ProviderError, UsageError
from agent_ls.models._estimate import estimate_request, estimate_tokens
from agent_ls.models._http import BadRequest, Endpoint, post_stream
from agent_ls.models.prices import price
from agent_ls.models.protocol import (
    Capabilities,
    Done,
    Message,
    ModelEvent,
    Request,
    Retrying,
    StopReason,
    TextDelta,
    Usage,
    UsageEvent,
)
from agent_ls.models.retry import RetryPolicy, TransientError, retrying
from agent_ls.waiting import Connection, pump

_MAX_PAUSES = 5
_UNSUPPORTED = re.compile(
    r"unsupported|not support|does ?n.t support|unknown|unrecogni[sz]ed|not permitted|not allowed|deprecated"
    r"|extra (inputs|fields)|unexpected|only the default|may only|must be|no longer",
    re.I,
)


def check_key(key: str | None, variable: str) -> str | None:
    """The key without blanks around it. Raises UsageError, without showing it, if it can't be one."""
    key = (key or "").strip()
    if not key:
        return None
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(
            f"the API key in {variable} holds characters that no key has", f"Set {variable} anew."
        )
    return key


@frozen
class Paused:
    """The server ends its turn for now and wants to be asked to go on."""


Ending = StopReason | Literal["pause"]


class Answer(Protocol):
    """Reads the events of one attempt; `usage` is what the server has counted so far, None if nothing."""

    def feed(self, event: ServerSentEvent) -> Iterator[ModelEvent]: ...

    def finish(self) -> tuple[list[ModelEvent], Ending] | None:
        """The rest of the events, and why the answer ended. None: the stream broke off."""
        ...

    def usage(self) -> tuple[Usage, int] | None:
        """Tokens, and those of the input that were written to the cache."""
        ...

    @property
    def written_chars(self) -> int: ...


class HostedBackend(ABC):
    """A model behind HTTP. Nothing is sent before `stream`.

    `priced` says whether the price list applies: it does not for other servers that offer the same model.
    """

    def __init__(
        self,
        name: str,
        endpoint: Endpoint,
        capabilities: Capabilities,
        *,
        priced: bool,
        policy: RetryPolicy | None = None,
    ) -> None:
        self.name = name
        self.capabilities = capabilities
        self.policy = policy or RetryPolicy()
        self._endpoint = endpoint
        self._priced = priced
        self._rejected: set[str] = set()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def priced(self) -> bool:
        """Whether the costs of its calls are known, so that a limit on money can be kept."""
        return self._priced and price(self.name, Usage()) is not None

    @abstractmethod
    def _body(self, request: Request) -> dict[str, Any]:
        """The request; fields in `_rejected` are taken out before it is sent."""

    @abstractmethod
    def _answer(self, request: Request) -> Answer: ...

    @abstractmethod
    def _optional(self) -> Mapping[str, str]:
        """Fields that a server may not know: what it may call them -> the field to leave out."""

    def stream(self, request: Request, cancel: CancelToken) -> Iterator[ModelEvent]:
        """See `Backend.stream`. A turn that the server pauses is continued."""
        for _ in range(_MAX_PAUSES):
            text: list[str] = []
            attempt = partial(self._attempt, request, cancel)
            for event in retrying(self.name, attempt, self.policy, cancel):
                if isinstance(event, Paused):
                    break
                if isinstance(event, TextDelta):
                    text.append(event.text)
                elif isinstance(event, Retrying):
                    text.clear()
                yield event
            else:
                return
            request = _continued(request, "".join(text))
        raise ProviderError(f"{self.name}: the server paused the turn {_MAX_PAUSES} times")

    def _attempt(self, request: Request, cancel: CancelToken) -> Iterator[ModelEvent | Paused]:
        while True:
            try:
                yield from self._once(request, cancel)
                return
            except BadRequest as error:
                if not self._give_way(self._body(request), error):
                    raise

    def _give_way(self, body: Mapping[str, Any], error: BadRequest) -> bool:
        """Whether the server refused an optional field, which is then left out from now on."""
        if not _UNSUPPORTED.search(error.text):
            return False
        for called, field in self._optional().items():
            named = error.parameter == called or re.search(rf"\b{called}\b", error.text)
            if named and field not in self._rejected and field in body:
                self._rejected.add(field)
                return True
        return False

    def _once(self, request: Request, cancel: CancelToken) -> Iterator[ModelEvent | Paused]:
        body = {key: value for key, value in self._body(request).items() if key not in self._rejected}
        connection = Connection.new()
        answer = self._answer(request)

        def produce(emit: Callable[[ServerSentEvent], None]) -> None:
            for event in post_stream(self._endpoint, body, self.policy, connection):
                emit(event)

        try:
            for event in pump(produce, cancel, connection.abort):
                yield from answer.feed(event)
            end = answer.finish()
            if end is None:
                raise TransientError("the answer broke off before its end")
        except TransientError:
            if answer.usage() is not None:  # a broken attempt costs what it had read and written
                yield self._counted(request, answer)
            raise
        events, stop = end
        yield from events
        yield self._counted(request, answer)
        yield Paused() if stop == "pause" else Done(stop)

    def _counted(self, request: Request, answer: Answer) -> UsageEvent:
        """The server's count, or an estimate where it gives none."""
        usage, written = answer.usage() or (
            Usage(estimate_request(request), -(-answer.written_chars * 5 // 16)),
            0,
        )
        cost = price(self.name, usage, cache_write_tokens=written) if self._priced else None
        return UsageEvent(Usage(usage.input_tokens, usage.output_tokens, usage.cached_tokens, cost))

    def count_tokens(self, text: str) -> int:
        """A conservative estimate (see `estimate_tokens`)."""
        return estimate_tokens(text)

    def close(self) -> None:
        """Nothing to free: each attempt has its own connection."""
        return


def count(raw: Mapping[str, Any], *keys: str) -> int:
    """The first of `keys` in a usage object as a token count; 0 for anything that is none."""
    for key in keys:
        value = raw.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12:
            return int(value)
    return 0


def _continued(request: Request, said: str) -> Request:
    """The request that lets the model go on after what it said so far."""
    said = said.rstrip()
    if not said:
        return request
    *before, last = request.messages
    if last.role == "assistant" and not last.tool_calls:
        return evolve(request, messages=[*before, Message("assistant", last.content + said)])
    return evolve(request, messages=[*request.messages, Message("assistant", said)])


def read_json(text: str) -> Mapping[str, Any]:
    """One event's data. Raises TransientError if it is no JSON object: the stream is damaged."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise TransientError(f"the stream holds an unreadable event ({text[:60]!r})") from None
    if not isinstance(data, dict):
        raise TransientError(f"the stream holds an event that is no object ({text[:60]!r})")
    return data


def mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """`data[key]` if it is an object, else an empty one."""
    value = data.get(key)
    return value if isinstance(value, Mapping) else {}

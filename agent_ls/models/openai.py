"""`openai:`: chat completions, streamed, with tools; OpenAI and the many servers that speak the same.

Known differences that are bridged: vLLM, Ollama, llama.cpp, LM Studio and OpenRouter may leave out ids, usage
or `index`, send a call whole, send reasoning beside the text, or not know an optional field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from httpx_sse import ServerSentEvent

from agent_ls.errors import UsageError
from agent_ls.models._chat import ChatAssembler, chat_messages, chat_tools, schema_format
from agent_ls.models._http import Endpoint, check_base_url, failure_in_stream, is_loopback
from agent_ls.models.hosted import Answer, Ending, HostedBackend, check_key, count, mapping, read_json
from agent_ls.models.prices import hosted_model
from agent_ls.models.protocol import Capabilities, ModelEvent, Request, Usage
from agent_ls.models.retry import RetryPolicy, TransientError

KEY = "OPENAI_API_KEY"
_BASE_URL = "https://api.openai.com/v1"
_WINDOW = 128_000
# What a self-hosted server holds is not known; many are started with less than the model could do.
_WINDOW_ELSEWHERE = 32_768
_REASONING_TOKENS = 12_000


class OpenAIBackend(HostedBackend):
    """A chat-completions server. `grammar` of a request has no effect; `json_schema` is asked for."""

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
        base = check_base_url(base_url or _BASE_URL, key)
        parts = urlsplit(base)
        if not parts.path:
            base += "/v1"
        self._official = parts.hostname == urlsplit(_BASE_URL).hostname
        if key is None and not is_loopback(parts.hostname or ""):
            raise UsageError(
                f"{name} needs an API key",
                f"Set the environment variable {KEY} (any word will do for a server that asks for none).",
            )
        known = hosted_model(name) if self._official else None
        self._model = name.partition(":")[2]
        self._reasons = known is not None and known.reasoning
        self._limit_field = "max_completion_tokens" if self._official else "max_tokens"
        default = _WINDOW if self._official else _WINDOW_ELSEWHERE
        super().__init__(
            name,
            Endpoint(
                name, f"{base}/chat/completions", {"Authorization": f"Bearer {key}"} if key else {}, KEY, key
            ),
            Capabilities(window=window or (known.window if known else default), tools=True, json_schema=True),
            priced=self._official,
            policy=policy,
        )

    def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._model,
            "messages": chat_messages(request.messages),
            self._limit_field: request.max_tokens + (_REASONING_TOKENS if self._reasons else 0),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            body["tools"] = chat_tools(request)
        if request.temperature is not None and not self._reasons:
            body["temperature"] = request.temperature
        if request.seed is not None:
            body["seed"] = request.seed
        if request.stop and not self._reasons:
            body["stop"] = list(request.stop)[:4]
        if request.json_schema is not None:
            body["response_format"] = schema_format(request.json_schema)
        return body

    def _optional(self) -> Mapping[str, str]:
        fields = ("temperature", "seed", "stop", "stream_options", "response_format")
        return {field: field for field in fields} | {"json_schema": "response_format"}

    def _give_way(self, body: Mapping[str, Any], error: Any) -> bool:
        other = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}[
            self._limit_field
        ]
        if self._limit_field in body and other in error.text:  # "use max_completion_tokens instead"
            swap = f"swap:{other}"
            if swap not in self._rejected:
                self._rejected.add(swap)
                self._limit_field = other
                return True
        return super()._give_way(body, error)

    def _answer(self, request: Request) -> Answer:
        return _Answer(self._endpoint, len(request.messages))


class _Answer:
    """A stream of chunks ended by a finish reason or "[DONE]", or one whole completion."""

    def __init__(self, endpoint: Endpoint, turn: int) -> None:
        self._endpoint = endpoint
        self._chunks = ChatAssembler(endpoint.name, turn)
        self._done = False
        self._answered = False

    @property
    def written_chars(self) -> int:
        return self._chunks.written_chars

    def feed(self, event: ServerSentEvent) -> Iterator[ModelEvent]:
        if event.data.strip() == "[DONE]":
            self._done = True
            return
        if not event.data.strip():
            return
        data = read_json(event.data)
        if data.get("error"):
            raise failure_in_stream(self._endpoint, data["error"])
        if event.event == "whole":
            self._done = True
        self._answered = self._answered or bool(data.get("choices"))
        yield from self._chunks.feed(data)

    def usage(self) -> tuple[Usage, int] | None:
        raw = self._chunks.raw_usage
        if raw is None:
            return None
        # OpenRouter and OpenAI count cached tokens here; DeepSeek in a field of its own.
        cached = count(mapping(raw, "prompt_tokens_details"), "cached_tokens") or count(
            raw, "prompt_cache_hit_tokens"
        )
        sent = count(raw, "prompt_tokens", "input_tokens")
        return Usage(sent, count(raw, "completion_tokens", "output_tokens"), min(cached, sent)), 0

    def finish(self) -> tuple[list[ModelEvent], Ending] | None:
        if self._chunks.finish_reason == "error":  # OpenRouter: the model behind it failed
            raise TransientError("the server ended the answer with an error")
        if self._chunks.finish_reason is None and not (self._done and self._answered):
            return None
        return self._chunks.finish()

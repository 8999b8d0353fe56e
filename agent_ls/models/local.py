"""`local:`: llama.cpp in this process, through xllamacpp.

llama.cpp's server core is loaded as a library and called directly. It also opens a port on loopback
(random, with a random key), which is used for one thing: its tokenizer has no direct call.
"""

from __future__ import annotations

import atexit
import math
import os
import secrets
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_ls.cancel import CancelToken
from agent_ls.errors import ContextTooLong, ProviderError, UsageError
from agent_ls.models._chat import ChatAssembler, chat_messages, chat_tools, schema_format
from agent_ls.models.protocol import Capabilities, Done, ModelEvent, Request, Usage, UsageEvent
from agent_ls.waiting import Stopped, pump

DEFAULT_WINDOW = 8192
# The prompt is read in batches of this many tokens; a stop takes effect between two of them.
_BATCH = 64
_CLOSE_S = 0.5
_EXIT_S = 10.0

_backends: weakref.WeakSet[LocalBackend] = weakref.WeakSet()


def busy() -> bool:
    """Is llama.cpp at work for any backend of this process (which a cancel ends only after a batch)?"""
    return any(backend.busy for backend in _backends)


@atexit.register
def _end() -> None:
    """Let llama.cpp come to rest, and free it: a native thread that calls back into an interpreter which
    is being torn down crashes the process."""
    for backend in list(_backends):
        backend.abandon()
        backend.close(_EXIT_S)


def usable_cores() -> int:
    """Physical cores that this process may use: affinity and a container's CPU quota are respected."""
    import psutil

    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        cores = min(cores, len(os.sched_getaffinity(0)))
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        cores = min(cores, math.ceil(int(quota) / int(period)))
    except (OSError, ValueError):
        pass
    return max(cores, 1)


def default_threads(busy_cores: float | None = None, cores: int | None = None) -> int:
    """Threads to compute with: the usable physical cores less those that are busy now, at least one.

    llama.cpp's threads wait for each other by spinning, so one that has to share its core slows all
    of them down by an order of magnitude: better fewer. `busy_cores` None: measured for 0.2 s.
    """
    cores = usable_cores() if cores is None else cores
    if busy_cores is None:
        import psutil

        busy_cores = psutil.cpu_percent(interval=0.2) / 100 * cores
    return max(1, cores - round(busy_cores))


def require_llama(name: str) -> None:
    """Raise UsageError if llama.cpp is not installed; `name` is the model that needs it."""
    import importlib.util

    if importlib.util.find_spec("xllamacpp") is None:
        raise UsageError(
            f"{name} needs the package xllamacpp, which is not installed",
            "Run: pip install 'agent-ls[local]'",
        )


def start_server(
    file: Path,
    window: int,
    threads: int,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    key: str | None = None,
    alias: str | None = None,
) -> Any:
    """llama.cpp's server with `file` loaded, listening on `host` (`port` 0: a free one), silent.

    It stops when the returned object is no longer referenced. Raises ProviderError.
    """
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.n_ctx = window
    params.n_parallel = 1
    params.n_batch = params.n_ubatch = _BATCH
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads = threads
        cpu.poll = 0
    params.verbosity = 0
    params.cache_prompt = True
    params.warmup = False
    params.fit_params = False
    params.ui = False
    params.endpoint_slots = False
    params.hostnames = [host]
    params.port = port
    if key:
        params.api_keys = [key]
    if alias:
        params.model_alias = {alias}
    try:
        return xllamacpp.Server(params)
    except Exception as error:
        reason = f"; is port {port} taken?" if port else ""
        raise ProviderError(
            f"llama.cpp cannot start with {file.name}: {error}{reason}",
            "Is there enough memory? `agent-ls model install` fetches the file anew if you delete it.",
        ) from error


class LocalBackend:
    """A GGUF file run by llama.cpp. Loaded at the first call, or by `load`.

    The same calls in the same order, with seeds and an equal thread count, give the same answers. (What
    is in the prompt cache changes the last bits of a sum, and so, rarely, a sampled token.) A request
    without a temperature is answered greedily.
    """

    def __init__(
        self,
        name: str,
        file: Path,
        *,
        window: int | None = None,
        tools: bool = False,
        threads: int | None = None,
    ) -> None:
        require_llama(name)
        self.name = name
        self.threads = threads
        self._file = file
        self._window = window or DEFAULT_WINDOW
        self.capabilities = Capabilities(
            window=self._window, tools=tools, json_schema=True, grammar=True, local=True
        )
        self._key = secrets.token_hex(16)
        self._server: Any = None
        self._loading = threading.Lock()
        self._busy = threading.Lock()
        self._waiting: weakref.WeakSet[threading.Event] = weakref.WeakSet()
        _backends.add(self)

    @property
    def busy(self) -> bool:
        """Is a call in progress?"""
        return self._busy.locked()

    def abandon(self) -> None:
        """Stop every call in progress after the batch that is being computed."""
        for abandoned in list(self._waiting):
            abandoned.set()

    def load(self) -> None:
        """Load the model file (seconds). Raises ProviderError when llama.cpp can't read it."""
        with self._loading:
            if self._server is None:
                self._server = self._load()

    def _load(self) -> Any:
        if self.threads is None:
            self.threads = default_threads()
        return start_server(self._file, self._window, self.threads, key=self._key)

    def stream(self, request: Request, cancel: CancelToken) -> Iterator[ModelEvent]:
        """See `Backend.stream`. The constraint is `grammar` if both it and `json_schema` are given."""
        abandoned = threading.Event()
        self._waiting.add(abandoned)
        body = self._body(request)

        def produce(emit: Callable[[ModelEvent], None]) -> None:
            with self._busy:
                if not abandoned.is_set():
                    self.load()
                    self._answer(body, len(request.messages), emit, abandoned)

        yield from pump(produce, cancel, abandoned.set)

    def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "messages": chat_messages(request.messages),
            "max_tokens": request.max_tokens,
            "temperature": 0.0 if request.temperature is None else request.temperature,
            "cache_prompt": True,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,  # calls us between the batches of a prompt, so that a stop is seen
        }
        if request.seed is not None:
            body["seed"] = request.seed
        if request.stop:
            body["stop"] = list(request.stop)
        if request.tools:
            body["tools"] = chat_tools(request)
        if request.grammar is not None:
            body["grammar"] = request.grammar
        elif request.json_schema is not None:
            body["response_format"] = schema_format(request.json_schema)
        return body

    def _answer(
        self,
        body: dict[str, Any],
        turn: int,
        emit: Callable[[ModelEvent], None],
        abandoned: threading.Event,
    ) -> None:
        assembler = ChatAssembler(self.name, turn)
        failure: list[BaseException] = []

        def on_chunk(chunk: Mapping[str, Any]) -> bool:
            """True stops the generation. Exceptions must not reach llama.cpp: it would swallow them."""
            if abandoned.is_set():
                return True
            try:
                if isinstance(error := chunk.get("error"), Mapping):
                    raise _error(error)
                for event in assembler.feed(chunk):
                    emit(event)
            except BaseException as error:
                failure.append(error)
                return True
            return False

        try:
            self._server.handle_chat_completions(body, on_chunk)
        except (ValueError, RuntimeError, TypeError) as error:
            raise ProviderError(f"llama.cpp refused the request: {error}") from error
        if abandoned.is_set():
            raise Stopped
        if failure:
            raise failure[0]
        if assembler.finish_reason is None:
            raise ProviderError("llama.cpp stopped in the middle of an answer")
        events, stop = assembler.finish()
        for event in events:
            emit(event)
        emit(UsageEvent(_usage(assembler.raw_usage or {})))
        emit(Done(stop))

    def count_tokens(self, text: str) -> int:
        """Exact, by the model's own tokenizer; loads the model. Raises ProviderError."""
        import httpx

        self.load()
        try:
            response = httpx.post(
                f"{self._server.listening_address}/tokenize",
                json={"content": text},
                headers={"Authorization": f"Bearer {self._key}"},
                trust_env=False,
                timeout=30.0,
            )
            return len(response.raise_for_status().json()["tokens"])
        except (httpx.HTTPError, ValueError, KeyError) as error:
            raise ProviderError(f"llama.cpp's tokenizer does not answer: {error}") from error

    def close(self, wait_s: float = _CLOSE_S) -> None:
        """Free the model. The backend may be used again.

        After a cancel llama.cpp may still be busy with one batch; that is waited for no longer than
        `wait_s` seconds. The model is then freed with the backend, or with the process.
        """
        if not self._busy.acquire(timeout=wait_s):
            return
        try:
            with self._loading:
                self._server = None
        finally:
            self._busy.release()


def _error(error: Mapping[str, Any]) -> ProviderError:
    message = str(error.get("message", "unknown error"))
    if error.get("type") == "exceed_context_size_error":
        return ContextTooLong(
            message, "Set context_window to a larger value, or give the model less to read."
        )
    return ProviderError(f"llama.cpp: {message}")


def _usage(raw: Mapping[str, Any]) -> Usage:
    details = raw.get("prompt_tokens_details") or {}
    return Usage(
        int(raw.get("prompt_tokens", 0)),
        int(raw.get("completion_tokens", 0)),
        int(details.get("cached_tokens", 0)),
        0.0,
    )

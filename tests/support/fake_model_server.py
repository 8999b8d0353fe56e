"""A model provider on loopback that speaks both protocols and can fail in all the ways that providers do.

    with FakeServer() as server:
        server.script(anthropic_answer("hello"), http_error(529), anthropic_answer(calls=[...]))
        backend = AnthropicBackend("anthropic:x", "key", base_url=server.url)

Each request takes the next scripted answer; the last one is given again when the script is used up.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CUT = object()
"""In `Answer.parts`: break the connection off here, in the middle of a chunked body."""
HANG = object()
"""In `Answer.parts`: send nothing more until the server is closed."""


@dataclass
class Answer:
    """One HTTP answer: `parts` are bytes to send, seconds (float) to sleep, CUT or HANG."""

    parts: Sequence[Any] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "text/event-stream"})


@dataclass
class Seen:
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    body: Any


class FakeServer:
    def __init__(self) -> None:
        self.requests: list[Seen] = []
        self._script: list[Answer | Callable[[Seen], Answer]] = []
        self._lock = threading.Lock()
        self.closing = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                outer._serve(self)

            do_GET = do_POST

            def log_message(self, *args: object) -> None:
                pass

        self._httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._httpd.daemon_threads = True
        self._httpd.block_on_close = False
        self.port = self._httpd.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> FakeServer:
        threading.Thread(target=self._httpd.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.closing.set()
        self._httpd.shutdown()
        self._httpd.server_close()

    def script(self, *answers: Answer | Callable[[Seen], Answer]) -> None:
        """What to answer from now on; a callable gets the request."""
        with self._lock:
            self._script = list(answers)

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length") or 0)
        raw = handler.rfile.read(length)
        body = json.loads(raw) if raw else None
        seen = Seen(handler.path, {k.lower(): v for k, v in handler.headers.items()}, body)
        with self._lock:
            self.requests.append(seen)
            answer = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        if not isinstance(answer, Answer):
            answer = answer(seen)
        try:
            self._send(handler, answer)
        except OSError:
            handler.close_connection = True

    def _send(self, handler: BaseHTTPRequestHandler, answer: Answer) -> None:
        handler.send_response(answer.status)
        for key, value in answer.headers.items():
            handler.send_header(key, value)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.close_connection = True
        for part in answer.parts:
            if part is CUT:
                return
            if part is HANG:
                self.closing.wait(30)
                return
            if isinstance(part, float):
                time.sleep(part)
            elif part:
                handler.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
                handler.wfile.flush()
        handler.wfile.write(b"0\r\n\r\n")


def sse(data: Any, event: str | None = None) -> bytes:
    """One server-sent event; `data` that is no string is sent as JSON."""
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {event}\n" if event else "").encode() + f"data: {text}\n\n".encode()


def http_error(status: int, body: Any = None, **headers: str) -> Answer:
    """An answer with an error status; `body` as JSON, or raw when it is bytes."""
    raw = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
    kind = "text/html" if isinstance(body, bytes) else "application/json"
    return Answer(
        [raw], status, {"Content-Type": kind} | {k.replace("_", "-"): v for k, v in headers.items()}
    )


Call = tuple[str, str, str]
"""(id, tool name, raw JSON arguments)"""


def anthropic_events(
    text: str = "",
    calls: Sequence[Call] = (),
    stop: str | None = None,
    usage: Mapping[str, int] | None = None,
    output_tokens: int = 7,
) -> list[bytes]:
    """The events of one Messages API answer, text and arguments split into small deltas."""
    start = {"usage": {"input_tokens": 10, "output_tokens": 1, **(usage or {})}, "role": "assistant"}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if text:
        blocks.append(
            ({"type": "text", "text": ""}, [{"type": "text_delta", "text": t} for t in _pieces(text)])
        )
    for call_id, name, arguments in calls:
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *_pieces(arguments)]]
        blocks.append(({"type": "tool_use", "id": call_id, "name": name, "input": {}}, deltas))
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    reason = stop or ("tool_use" if calls else "end_turn")
    events.append(
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": output_tokens},
        }
    )
    events.append({"type": "message_stop"})
    return [sse(event, event["type"]) for event in events]


def anthropic_answer(*args: Any, **options: Any) -> Answer:
    """A whole answer of `anthropic_events`."""
    return Answer(anthropic_events(*args, **options))


def openai_events(
    text: str = "",
    calls: Sequence[Call] = (),
    stop: str | None = None,
    usage: Mapping[str, Any] | None = None,
    output_tokens: int = 7,
) -> list[bytes]:
    """The events of one chat-completions answer, text and arguments split into small deltas."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in _pieces(text)]
    for index, (call_id, name, arguments) in enumerate(calls):
        function = {"name": name, "arguments": ""}
        deltas.append(
            {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]}
        )
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in _pieces(arguments)
        ]
    chunks: list[dict[str, Any]] = [
        {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": d, "finish_reason": None}]}
        for d in deltas
    ]
    reason = stop or ("tool_calls" if calls else "stop")
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    counted = {"prompt_tokens": 10, "completion_tokens": output_tokens, **(usage or {})}
    chunks.append({"choices": [], "usage": counted})
    return [*(sse(chunk) for chunk in chunks), sse("[DONE]")]


def openai_answer(*args: Any, **options: Any) -> Answer:
    """A whole answer of `openai_events`."""
    return Answer(openai_events(*args, **options))


def _pieces(text: str, size: int = 5) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]

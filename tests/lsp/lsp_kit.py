"""A client that speaks bytes: it hides nothing of what the server sends, and can misbehave."""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = [sys.executable, "-m", "agent_ls"]
TIMEOUT_S = 30.0


FILES = {
    "pair.py": """\
def larger(a, b):
    \"\"\"The larger of two numbers.\"\"\"
    if a < b:
        return a
    return b
""",
    "test_pair.py": """\
from pair import larger


def test_larger():
    assert larger(1, 2) == 2
    assert larger(5, 3) == 5


def test_equal():
    assert larger(4, 4) == 4
""",
    ".agent-ls/issues/1.md": "# larger() gives the smaller number\n",
}


def make_tiny(root: Path) -> Path:
    """A repository whose issue 1 is fixed in a few seconds."""
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run(["git", *command], cwd=root, check=True)
    return root


class Strict(Exception):
    """The server sent something that is no message: VS Code would shut it down."""


class Client:
    """A server process on pipes. `messages` has everything it sent, in order."""

    def __init__(
        self,
        *arguments: str,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        program: list[str] | None = None,
    ) -> None:
        self.process = subprocess.Popen(
            [*(program or PROGRAM), *(arguments or ("serve", "--stdio"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env={**os.environ, **(env or {})},
        )
        self.messages: list[dict[str, Any]] = []
        self.stderr = ""
        self.answers: dict[str, Any] = {}
        """What the client answers to the server's requests, by method (default null)."""
        self.silent = False
        self._arrived: queue.Queue[dict[str, Any] | Exception | None] = queue.Queue()
        self._next = 0
        self._threads = [
            threading.Thread(target=work, daemon=True) for work in (self._read, self._read_errors)
        ]
        for thread in self._threads:
            thread.start()

    # -- out

    def raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: object) -> None:
        body = json.dumps(message).encode()
        self.raw(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def notify(self, method: str, params: object = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method: str, params: object = None) -> int:
        self._next += 1
        self.send({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        return self._next

    def call(self, method: str, params: object = None, timeout: float = TIMEOUT_S) -> Any:
        """The result, or the error object as a dictionary with "code"."""
        return self.reply(self.ask(method, params), timeout)

    def command(self, name: str, *arguments: object, timeout: float = TIMEOUT_S) -> Any:
        return self.call("workspace/executeCommand", {"command": name, "arguments": list(arguments)}, timeout)

    # -- in

    def reply(self, id: int, timeout: float = TIMEOUT_S) -> Any:
        message = self.wait(lambda m: m.get("id") == id and "method" not in m, timeout)
        return message["error"] if "error" in message else message.get("result")

    def wait(self, wanted: Any, timeout: float = TIMEOUT_S) -> dict[str, Any]:
        """The first message, past or to come, that `wanted` (a function or a method's name) takes."""
        test = (lambda m: m.get("method") == wanted) if isinstance(wanted, str) else wanted
        for message in self.messages:
            if test(message):
                return message
        end = time.monotonic() + timeout
        while True:
            try:
                message = self._arrived.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(
                    f"no such message in {timeout} s; stderr: {self.stderr[-2000:]}"
                ) from None
            if isinstance(message, Exception):
                raise message
            if message is None:
                raise AssertionError(f"the server ended; stderr: {self.stderr[-2000:]}")
            self._take(message)
            if test(message):
                return message

    def drain(self, seconds: float = 0.2) -> None:
        """Take in what arrives within a while."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                message = self._arrived.get(timeout=left)
            except queue.Empty:
                return
            if isinstance(message, Exception):
                raise message
            if message is None:
                return
            self._take(message)

    def _take(self, message: dict[str, Any]) -> None:
        self.messages.append(message)
        if "method" in message and "id" in message and not self.silent:
            answer = self.answers.get(message["method"])
            result = answer(message["params"]) if callable(answer) else answer
            self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def sent(self, method: str) -> list[Any]:
        """The parameters of all messages of a method so far."""
        return [m.get("params") for m in self.messages if m.get("method") == method]

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while True:
            headers = b""
            while not headers.endswith(b"\r\n\r\n"):
                char = stream.read(1)
                if not char:
                    self._arrived.put(Strict(f"stray bytes {headers!r}") if headers else None)
                    return
                headers += char
                if (
                    not re.match(rb"(?i)(c(o(n(t(e(n(t(-.*)?)?)?)?)?)?)?)?", headers)
                    or headers[:1] not in b"Cc"
                ):
                    self._arrived.put(Strict(f"stray bytes {headers!r}"))
                    return
            length = re.search(rb"Content-Length: (\d+)", headers)
            assert length is not None
            self._arrived.put(json.loads(stream.read(int(length[1]))))

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.stderr += line.decode("utf-8", "replace")

    # -- life

    def initialize(self, root: Path | None = None, **more: Any) -> dict[str, Any]:
        """The handshake; returns the capabilities. `more` goes into the parameters."""
        folders = None if root is None else [{"uri": root.as_uri(), "name": root.name}]
        params = {"processId": os.getpid(), "rootUri": None, "capabilities": {}, **more}
        params.setdefault("workspaceFolders", folders)
        result = self.call("initialize", params)
        self.notify("initialized", {})
        capabilities: dict[str, Any] = result["capabilities"]
        return capabilities

    def open(self, uri: str, text: str, language: str = "python", version: int = 1) -> None:
        document = {"uri": uri, "languageId": language, "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def change(self, uri: str, version: int, *changes: dict[str, Any]) -> None:
        self.notify(
            "textDocument/didChange",
            {"textDocument": {"uri": uri, "version": version}, "contentChanges": list(changes)},
        )

    def hang_up(self) -> None:
        """Close the end that the server writes to (the thread that reads it ends with an error)."""
        assert self.process.stdout is not None
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, self.process.stdout.fileno())
        os.close(null)

    def end(self) -> int:
        """`shutdown` and `exit`; the exit code."""
        self.call("shutdown")
        self.notify("exit")
        return self.process.wait(TIMEOUT_S)


@contextmanager
def client(*arguments: str, **more: Any) -> Iterator[Client]:
    """A server for one test; it is killed afterwards if it still lives."""
    made = Client(*arguments, **more)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.process.kill()
        made.process.wait(10)
        for stream in (made.process.stdin, made.process.stdout, made.process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    pass

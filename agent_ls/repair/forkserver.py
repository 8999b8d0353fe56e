"""Talks to the fork server `inside/` that runs in the project's interpreter."""

from __future__ import annotations

import contextlib
import json
import os
import select
import selectors
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

Message = dict[str, Any]
_INSIDE = Path(__file__).parent / "inside"
_NAME = "agent_ls_repair_inside"


class Process(Protocol):
    """What starting the server returns (`agent_ls.sandbox.process.Running`, or a test's own)."""

    def poll(self) -> object | None: ...

    def kill(self) -> None: ...


class ServerDied(Exception):
    """The fork server ended by itself; the text says what it wrote last."""


class ForkServer:
    """One server process and its two FIFOs in `scratch` (a folder seen inside as `seen_scratch`).

    `start` gets the arguments behind the interpreter and starts the process. Raises OSError.
    """

    def __init__(
        self, start: Callable[[list[str]], Process], scratch: Path, seen_scratch: str, config: Message
    ) -> None:
        self._dir = scratch
        scratch.mkdir(parents=True, exist_ok=True)
        for name in ("commands", "replies"):
            os.mkfifo(scratch / name)
        shutil.copytree(_INSIDE, scratch / _NAME, ignore=shutil.ignore_patterns("__pycache__"))
        config = {
            **config,
            "scratch": seen_scratch,
            "commands": f"{seen_scratch}/commands",
            "replies": f"{seen_scratch}/replies",
        }
        (scratch / "config.json").write_text(json.dumps(config), encoding="utf-8")
        # Opened for both, so that neither side waits for the other; its death is seen by poll().
        self._commands = os.open(scratch / "commands", os.O_RDWR | os.O_NONBLOCK)
        self._replies = os.open(scratch / "replies", os.O_RDWR | os.O_NONBLOCK)
        self._rest = b""
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._replies, selectors.EVENT_READ)
        self._next = 0
        self.outstanding = 0
        self._bases: dict[str, str] = {}
        self._process = start([f"{seen_scratch}/{_NAME}", f"{seen_scratch}/config.json"])

    def base(self, path: str, text: str) -> None:
        """Leave the unchanged text of a file where the server can read it."""
        name = f"base{len(self._bases)}"
        (self._dir / name).write_text(text, encoding="utf-8", newline="")
        self._bases[path] = name

    def submit(self, command: Message) -> int:
        """Queue a command; its reply carries the id that is returned. Raises ServerDied."""
        self._next += 1
        message = {**command, "id": self._next, "bases": self._bases}
        self._send(message)
        self.outstanding += 1
        return self._next

    def _send(self, message: Message) -> None:
        data = json.dumps(message).encode("utf-8") + b"\n"
        while data:
            try:
                data = data[os.write(self._commands, data) :]
            except BlockingIOError:  # it does not read: busy, hanging in the project's code, or gone
                if self._process.poll() is not None:
                    raise self._died() from None
                select.select([], [self._commands], [], 0.2)

    def _died(self) -> ServerDied:
        return ServerDied(str(getattr(self._process.poll(), "output", ""))[-2000:])

    def read(self, timeout: float) -> list[Message]:
        """Replies that arrive within `timeout` seconds. Raises ServerDied."""
        end = time.monotonic() + timeout
        while True:
            found = self._available()
            if found:
                self.outstanding -= sum("id" in message for message in found)
                return found
            if self._process.poll() is not None:
                found = self._available()
                if found:
                    return found
                raise self._died()
            left = end - time.monotonic()
            if left <= 0:
                return []
            self._selector.select(min(left, 0.2))

    def _available(self) -> list[Message]:
        with contextlib.suppress(BlockingIOError):
            while True:
                data = os.read(self._replies, 1 << 16)
                if not data:
                    break
                self._rest += data
        *lines, self._rest = self._rest.split(b"\n")
        return [json.loads(line) for line in lines if line]

    def close(self) -> None:
        """Stop the server and everything it started; the scratch folder is removed."""
        with contextlib.suppress(OSError):
            os.write(self._commands, b'{"op": "quit"}\n')  # at once or not at all: it is killed otherwise
        end = time.monotonic() + 0.3
        while self._process.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        if self._process.poll() is None:
            self._process.kill()
        self._selector.close()
        for descriptor in (self._commands, self._replies):
            os.close(descriptor)
        shutil.rmtree(self._dir, ignore_errors=True)

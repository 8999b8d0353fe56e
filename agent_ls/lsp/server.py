"""The server object: what all handlers share, and how it begins and ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter

from agent_ls import __version__
from agent_ls.lsp.documents import Document, Documents
from agent_ls.lsp.folders import Folder, Folders
from agent_ls.lsp.protocol import Protocol
from agent_ls.lsp.runs import Run
from agent_ls.lsp.transport import Connection, WebSocketConnection
from agent_ls.lsp.updates import Update

logger = logging.getLogger(__name__)
T = TypeVar("T")

_WORKERS = 4
_PATIENCE_S = 3.0
"""Seconds that everything may take to end; then the process goes as it is."""
_WATCH_S = 0.5


class Server(LanguageServer):
    """agent-ls as a language server. Handlers run in one event loop; what takes longer than a keystroke runs
    in `work`'s threads, and a session in one of its own (`runs`)."""

    def __init__(self) -> None:
        super().__init__(
            "agent-ls", __version__, types.TextDocumentSyncKind.Incremental,
            protocol_cls=Protocol, converter_factory=default_converter,
        )  # fmt: skip
        self.documents = Documents()
        self.folders = Folders(self._indexing)
        self.ended = asyncio.Event()
        self.exit_code = 1
        self.on_end: list[Callable[[], None]] = []
        """Called when the server ends, in a thread: to stop what was started."""
        self.experimental: Mapping[str, Any] = {}
        """What the client declares under `experimental.agentLs`."""
        self.on_indexing: Callable[[Folder, int, int], None] | None = None
        self.on_update: list[Callable[[Run, Update], None]] = []
        """Told every update of every run, in the event loop."""
        self.on_applied: list[Callable[[Run], None]] = []
        """Told when the editor's texts have become exactly a run's result."""
        self.on_changed: list[Callable[[Document], None]] = []
        self._pool = ThreadPoolExecutor(_WORKERS, "lsp-work")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        protocol = self.protocol
        assert isinstance(protocol, Protocol)
        protocol.exited = self._exit

    @property
    def can_answer(self) -> bool:
        """Can a person type an answer to a question in this client?"""
        return bool(self.experimental.get("answers") or self.experimental.get("requestPermission"))

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        assert self._loop is not None
        return self._loop

    async def work(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a function that may take a while in a thread, and wait for it without blocking the loop."""
        return await self.loop.run_in_executor(self._pool, function, *arguments)

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Let a coroutine run beside; in the event loop."""
        task = self.loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def soon(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function in the event loop, from any thread. Nothing happens once the loop has ended."""
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(function, *arguments)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """To the log: pygls shows every fault as a popup, and for a closed stream forever."""
        logger.error("%s: %s", getattr(source, "__name__", source), error)

    def tell_changed(self, document: Document) -> None:
        """A document's text is another one now."""
        for function in self.on_changed:
            function(document)

    # -- life

    def begin(self) -> None:
        """To be called in the running loop, before the first message."""
        self._loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGTERM)):
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                self._loop.add_signal_handler(number, self._signalled, number)

    def connected(self, connection: Connection | WebSocketConnection) -> None:
        """Messages go to this connection from here on."""
        self.protocol.set_writer(connection, include_headers=False)  # type: ignore[arg-type]

    def receive(self, body: bytes) -> None:
        protocol = self.protocol
        assert isinstance(protocol, Protocol)
        protocol.receive(body)

    def lost(self, reason: str) -> None:
        """The client has gone."""
        if not self.ended.is_set():
            logger.info(reason)
            self._exit(0 if self.protocol._shutdown else 1)

    def _signalled(self, number: int) -> None:
        self._exit(128 + number)

    def _exit(self, code: int) -> None:
        if not self.ended.is_set():
            self.exit_code = code
            self.ended.set()

    def watch_process(self, pid: int | None) -> None:
        """End when the client's process has gone; only if it is visible at all (in a container it may not be,
        and then the end of the stream has to tell)."""
        if pid is None or not _alive(pid):
            return

        def watch() -> None:
            while _alive(pid):
                time.sleep(_WATCH_S)
            self.soon(self.lost, f"the client's process {pid} has gone")

        threading.Thread(target=watch, name="client-watch", daemon=True).start()

    def finish(self) -> None:
        """Stop everything that was started; after a few seconds whatever goes on is left behind."""

        def stop() -> None:
            for function in self.on_end:
                with contextlib.suppress(Exception):
                    function()
            with contextlib.suppress(Exception):
                self.folders.stop()

        stopping = threading.Thread(target=stop, name="stopping", daemon=True)
        stopping.start()
        stopping.join(_PATIENCE_S)

    def _indexing(self, folder: Folder, done: int, total: int) -> None:
        if self.on_indexing is not None:
            self.soon(self.on_indexing, folder, done, total)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError, OSError):
        return True
    return True

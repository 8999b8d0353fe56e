"""How messages come and go: stdio, TCP, WebSocket. One client for each process.

Reading and writing have threads of their own: busy handlers never make the server deaf, and a client that
does not read never makes a handler wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from agent_ls.errors import UsageError
from agent_ls.lsp.framing import MAX_BODY, Framer, FramingError, frame

if TYPE_CHECKING:
    from websockets.asyncio.server import Server, ServerConnection

Deliver = Callable[[bytes], None]
"""Takes one message body; called in the event loop."""
Ended = Callable[[str], None]
"""Told once why no more messages come; called in the event loop."""

MAX_UNSENT = 128 * 1024 * 1024
"""Bytes waiting for a client that does not read; beyond, it counts as dead."""
_READ = 1 << 16
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class _Channel(Protocol):
    def read(self, size: int) -> bytes: ...
    def write(self, data: bytes) -> None: ...
    def close(self) -> None: ...


class Pipes:
    """A pair of descriptors as a channel."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = read, write

    def read(self, size: int) -> bytes:
        return os.read(self._read, size)

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._write, view) :]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._write)


class Socket:
    """A connected socket as a channel."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def read(self, size: int) -> bytes:
        return self._socket.recv(size)

    def write(self, data: bytes) -> None:
        self._socket.sendall(data)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)


class Connection:
    """A framed connection with a client. `write` never blocks and never raises."""

    def __init__(self, channel: _Channel, deliver: Deliver, ended: Ended) -> None:
        self._channel = channel
        self._deliver, self._ended = deliver, ended
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._unsent = 0
        self._lock = threading.Lock()
        self._closed = False
        self._writer = threading.Thread(target=self._send_all, name="lsp-writer", daemon=True)
        self._reader = threading.Thread(target=self._read_all, name="lsp-reader", daemon=True)
        self._writer.start()
        self._reader.start()

    def write(self, body: bytes) -> None:
        """Send one message body."""
        with self._lock:
            if self._closed:
                return
            self._unsent += len(body)
            full = self._unsent > MAX_UNSENT
            self._closed = full
        if full:
            self._tell("the client does not read")
        else:
            self._queue.put(frame(body))

    def close(self, timeout: float = 1.0) -> None:
        """Send what is waiting, for `timeout` seconds at most, and end the stream."""
        with self._lock:
            self._closed = True
        self._queue.put(None)
        self._writer.join(timeout)

    def _send_all(self) -> None:
        while (data := self._queue.get()) is not None:
            try:
                self._channel.write(data)
            except OSError as error:
                with self._lock:
                    self._closed = True
                self._tell(f"the client can't be written to: {error}")
                return
            with self._lock:
                self._unsent -= len(data)
        self._channel.close()

    def _read_all(self) -> None:
        framer = Framer()
        reason = "the client has closed the connection"
        try:
            while data := self._channel.read(_READ):
                for body in framer.feed(data):
                    self._loop.call_soon_threadsafe(self._deliver, body)
        except (OSError, FramingError) as error:
            reason = f"the client's messages can't be read: {error}"
        except RuntimeError:  # the loop has ended
            return
        self._tell(reason)

    def _tell(self, reason: str) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._ended, reason)


def split_address(text: str) -> tuple[str, int]:
    """HOST:PORT, :PORT or PORT (loopback); `[::1]:PORT`. Raises UsageError."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise UsageError(f"{text!r} is no address", "Give HOST:PORT, for example 127.0.0.1:7777.")
    return host, int(port)


async def accept_tcp(host: str, port: int, ready: Callable[[str, int], None]) -> Socket:
    """Wait for the one client, and listen no more. `ready` is told the address. Raises UsageError."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=1)
    except OSError as error:
        raise UsageError(f"can't listen on {host}:{port}: {error}", "Choose another address.") from error
    with listener:
        listener.setblocking(False)
        ready(*listener.getsockname()[:2])
        connection, _ = await asyncio.get_running_loop().sock_accept(listener)
    connection.setblocking(True)
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Socket(connection)


class WebSocketConnection:
    """A WebSocket as a connection: a message is a body, without headers."""

    def __init__(self, socket: ServerConnection, deliver: Deliver, ended: Ended) -> None:
        self._socket = socket
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._unsent = 0
        self._deliver, self._ended = deliver, ended
        self._tasks = [asyncio.create_task(self._read_all()), asyncio.create_task(self._send_all())]

    def write(self, body: bytes) -> None:
        """Send one message body. From any thread."""
        self._loop.call_soon_threadsafe(self._put, body)

    def _put(self, body: bytes) -> None:
        self._unsent += len(body)
        if self._unsent > MAX_UNSENT:
            self._ended("the client does not read")
        else:
            self._queue.put_nowait(body)

    async def finish(self, timeout: float = 1.0) -> None:
        """Send what is waiting, for `timeout` seconds at most, and end the connection."""
        self._queue.put_nowait(None)
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self._tasks[1], timeout)
            await asyncio.wait_for(self._socket.close(), timeout)

    async def _send_all(self) -> None:
        while (body := await self._queue.get()) is not None:
            await self._socket.send(body, text=True)
            self._unsent -= len(body)

    async def _read_all(self) -> None:
        reason = "the client has closed the connection"
        try:
            async for body in self._socket:
                self._deliver(body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass"))
        except Exception as error:  # whatever the library raises, it is the connection's end
            reason = f"the client's messages can't be read: {error}"
        self._ended(reason)


async def accept_websocket(
    host: str, port: int, ready: Callable[[str, int], None], deliver: Deliver, ended: Ended
) -> tuple[WebSocketConnection, Server]:
    """Wait for the one client; others are turned away. Raises UsageError."""
    from websockets.asyncio.server import serve

    first: asyncio.Future[WebSocketConnection] = asyncio.get_running_loop().create_future()

    async def connected(connection: ServerConnection) -> None:
        if first.done():
            await connection.close(1013, "this server has its client")
            return
        first.set_result(WebSocketConnection(connection, deliver, ended))
        await connection.wait_closed()

    try:
        # a page in a browser must not be able to reach a server on loopback: it always tells its origin
        server = await serve(connected, host, port, origins=[None], max_size=MAX_BODY, compression=None)
    except OSError as error:
        raise UsageError(f"can't listen on {host}:{port}: {error}", "Choose another address.") from error
    ready(*next(iter(server.sockets)).getsockname()[:2])
    return await first, server

"""Waits that a stop ends at once: a blocking producer in a thread of its own, a request's socket."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from attrs import define, frozen

from agent_ls.cancel import CancelToken

T = TypeVar("T")


class Stopped(Exception):
    """Raised inside the producer by `emit` once nobody listens any more."""


@frozen
class _Item(Generic[T]):
    value: T


@frozen
class _End:
    error: BaseException | None


class _Wake:
    pass


def pump(
    produce: Callable[[Callable[[T], None]], None],
    cancel: CancelToken,
    stop: Callable[[], None] | None = None,
) -> Iterator[T]:
    """Yield what `produce(emit)` emits in a daemon thread; its exception is raised here.

    On cancel (Cancelled is raised within milliseconds), on an exception in the consumer and when the
    generator is closed, `emit` raises `Stopped` from then on and `stop()` is called to end a wait.
    """
    cancel.raise_if_cancelled()
    # SimpleQueue, as its put is re-entrant: a signal handler may cancel while this thread is in get.
    items: queue.SimpleQueue[_Item[T] | _End | _Wake] = queue.SimpleQueue()
    stopped = threading.Event()

    def emit(value: T) -> None:
        if stopped.is_set():
            raise Stopped
        items.put(_Item(value))

    def work() -> None:
        try:
            produce(emit)
        except Stopped:
            items.put(_End(None))
        except BaseException as error:
            items.put(_End(error))
        else:
            items.put(_End(None))

    finished = False
    try:
        with cancel.on_cancel(lambda: items.put(_Wake())):
            threading.Thread(target=work, name="agent-ls-wait", daemon=True).start()
            while True:
                item = items.get()
                cancel.raise_if_cancelled()
                if isinstance(item, _Item):
                    yield item.value
                elif isinstance(item, _End):
                    finished = True
                    if item.error is not None:
                        raise item.error
                    return
    finally:
        stopped.set()
        if stop is not None and not finished:
            stop()


@define
class Connection:
    """The socket of a running request, so that another thread can end a wait for it."""

    _sockets: list[socket.socket]
    _aborted: bool = False

    @classmethod
    def new(cls) -> Connection:
        return cls([])

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """httpcore's trace hook: remember the socket as soon as there is one."""
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            found = info["return_value"].get_extra_info("socket")
            if found is not None:
                self._sockets.append(found)
                if self._aborted:
                    self.abort()

    def abort(self) -> None:
        """Shut the socket down: a blocked read returns at once. Closing alone would not wake it."""
        self._aborted = True
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

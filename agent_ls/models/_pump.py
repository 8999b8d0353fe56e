"""Run a blocking producer in its own thread, so that a stop is felt at once whatever it waits for."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from attrs import frozen

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
            threading.Thread(target=work, name="agent-ls-model", daemon=True).start()
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

"""Cooperative cancellation that also reaches blocking calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from agent_ls.errors import Cancelled

_SLICE_S = 0.2


class CancelToken:
    """Set once, from any thread or a signal handler; callbacks kill processes and close sockets.

    A signal handler runs in the middle of whatever the main thread does, this class's methods included:
    every lock is re-entrant (that of `threading.Event` is not).
    """

    def __init__(self) -> None:
        self._set = False
        self._waiting = threading.Condition(threading.RLock())
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._next = 0
        self._lock = threading.RLock()

    @property
    def cancelled(self) -> bool:
        return self._set

    def cancel(self) -> None:
        """Ask for the stop; runs every registered callback once. Safe to call repeatedly."""
        with self._lock:
            self._set = True
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
        with self._waiting:
            self._waiting.notify_all()
        for callback in callbacks:
            callback()

    def raise_if_cancelled(self) -> None:
        """Raise `Cancelled` if the stop was asked for."""
        if self._set:
            raise Cancelled

    def wait(self, seconds: float) -> bool:
        """Sleep up to `seconds`; True as soon as the stop is asked for."""
        end = time.monotonic() + seconds
        with self._waiting:
            while not self._set and (left := end - time.monotonic()) > 0:
                # in slices: a handler that runs just before the wait begins would wake nobody
                self._waiting.wait(min(left, _SLICE_S))
        return self._set

    @contextmanager
    def on_cancel(self, callback: Callable[[], None]) -> Iterator[None]:
        """Run `callback` if the stop is asked for inside the block (at once if it already was)."""
        with self._lock:
            key = self._next
            self._next += 1
            already = self._set
            if not already:
                self._callbacks[key] = callback
        if already:
            callback()
        try:
            yield
        finally:
            with self._lock:
                self._callbacks.pop(key, None)

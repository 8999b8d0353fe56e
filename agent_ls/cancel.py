"""Cooperative cancellation that also reaches blocking calls."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from agent_ls.errors import Cancelled


class CancelToken:
    """Set once, from any thread or a signal handler; callbacks kill processes and close sockets."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._next = 0
        self._lock = threading.RLock()  # re-entrant: cancel() may come from a signal handler

    @property
    def cancelled(self) -> bool:
        return self._event.is_set()

    def cancel(self) -> None:
        """Ask for the stop; runs every registered callback once. Safe to call repeatedly."""
        with self._lock:
            self._event.set()
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
        for callback in callbacks:
            callback()

    def raise_if_cancelled(self) -> None:
        """Raise `Cancelled` if the stop was asked for."""
        if self._event.is_set():
            raise Cancelled

    def wait(self, seconds: float) -> bool:
        """Sleep up to `seconds`; True as soon as the stop is asked for."""
        return self._event.wait(seconds)

    @contextmanager
    def on_cancel(self, callback: Callable[[], None]) -> Iterator[None]:
        """Run `callback` if the stop is asked for inside the block (at once if it already was)."""
        with self._lock:
            key = self._next
            self._next += 1
            already = self._event.is_set()
            if not already:
                self._callbacks[key] = callback
        if already:
            callback()
        try:
            yield
        finally:
            with self._lock:
                self._callbacks.pop(key, None)

"""A bounded buffer for output of any size."""

from __future__ import annotations


class Capture:
    """Keeps the first and the last half of `cap` bytes."""

    def __init__(self, cap: int) -> None:
        self._half = max(cap // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail += data[-self._half :]
            if len(self._tail) > 4 * self._half:
                del self._tail[: -self._half]

    @property
    def truncated(self) -> bool:
        return self.total > 2 * self._half

    def text(self) -> str:
        tail = bytes(self._tail[-self._half :])
        head = bytes(self._head)
        if not self.truncated:
            return (head + tail).decode("utf-8", "replace")
        left_out = self.total - len(head) - len(tail)
        return (
            head.decode("utf-8", "replace")
            + f"\n[... {left_out} bytes left out ...]\n"
            + tail.decode("utf-8", "replace")
        )

"""The base protocol's framing: headers, a blank line, a body of so many bytes.

Tolerant in what it reads (header names in any case, bare newlines, unknown headers, stray lines between
messages), as editors and the tools between them differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_BODY = 256 * 1024 * 1024
"""Bytes of one message; more is no editor's."""
_MAX_LINE = 64 * 1024
_LENGTH = re.compile(rb"\s*content-length\s*:\s*(\d{1,12})\s*", re.IGNORECASE)


class FramingError(Exception):
    """The stream can't be read any further: where the next message begins is unknown."""


class Framer:
    """Cuts a stream of bytes, fed in pieces of any size, into message bodies."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._length: int | None = None
        self._in_body = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take in `data`; the bodies that are complete now. Raises FramingError."""
        self._buffer += data
        while True:
            if self._in_body:
                assert self._length is not None
                if len(self._buffer) < self._length:
                    return
                body = bytes(self._buffer[: self._length])
                del self._buffer[: self._length]
                self._length, self._in_body = None, False
                yield body
                continue
            end = self._buffer.find(b"\n")
            if end < 0:
                if len(self._buffer) > _MAX_LINE:
                    raise FramingError("a header line without an end")
                return
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            self._header(line)

    def _header(self, line: bytes) -> None:
        if not line.strip():
            self._in_body = self._length is not None
            return
        found = _LENGTH.fullmatch(line)
        if found:
            self._length = int(found[1])
            if self._length > MAX_BODY:
                raise FramingError(f"a message of {self._length:,} bytes")


def frame(body: bytes) -> bytes:
    """A body with its header."""
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)

"""Linux' inotify(7), the little of it that the index needs: one descriptor, one reader.

watchdog's observer starts a thread for each folder that is watched by itself, and where it watches whole
trees it keeps quiet about folders for which no watch was left and about events that were dropped. Nor can
it be asked for all that happened up to now, which an answer that must not be stale needs; reading the
descriptor can.
"""

from __future__ import annotations

import ctypes
import os
import struct
from functools import cache
from typing import Any, NamedTuple

MODIFY, ATTRIB, CLOSE_WRITE = 0x2, 0x4, 0x8
MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x40, 0x80, 0x100, 0x200
DELETE_SELF, MOVE_SELF = 0x400, 0x800
UNMOUNT, OVERFLOW, IGNORED = 0x2000, 0x4000, 0x8000
ISDIR = 0x40000000
_ONLYDIR, _DONT_FOLLOW, _EXCL_UNLINK = 0x01000000, 0x02000000, 0x04000000
_MASK = (
    MODIFY | ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE | DELETE_SELF | MOVE_SELF
    | _ONLYDIR | _DONT_FOLLOW | _EXCL_UNLINK
)  # fmt: skip
_HEAD = struct.Struct("iIII")
_BUFFER = 1 << 16


class Event(NamedTuple):
    """What happened (`mask`) to the entry `name` of the watched folder, or ("") to the folder itself."""

    watch: int
    mask: int
    name: str


@cache
def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    for name in ("inotify_init1", "inotify_add_watch", "inotify_rm_watch"):
        getattr(libc, name)  # AttributeError where the system has none
    libc.inotify_add_watch.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32)
    return libc


class Inotify:
    """One inotify instance. Not thread-safe. Raises OSError when the system has none (left)."""

    def __init__(self) -> None:
        try:
            self._libc = _libc()
        except AttributeError as error:
            raise OSError("this system has no inotify") from error
        self.descriptor: int = self._libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self.descriptor < 0:
            raise _error()

    def add(self, folder: str) -> int:
        """Watch a folder (no link to one); its number. A folder watched already keeps its number. Raises
        OSError: ENOSPC when no watch is left, ENOENT, ENOTDIR, EACCES."""
        number: int = self._libc.inotify_add_watch(self.descriptor, os.fsencode(folder), _MASK)
        if number < 0:
            raise _error(folder)
        return number

    def remove(self, watch: int) -> None:
        """Watch a folder no more; one that has gone may be removed as well."""
        self._libc.inotify_rm_watch(self.descriptor, watch)

    def read(self) -> list[Event]:
        """The next events that have happened; none when all are read. Never waits."""
        try:
            data = os.read(self.descriptor, _BUFFER)
        except BlockingIOError:
            return []
        events = []
        at = 0
        while at < len(data):
            watch, mask, _, length = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            name = os.fsdecode(data[at : at + length].rstrip(b"\0")) if length else ""
            at += length
            events.append(Event(watch, mask, name))
        return events

    def close(self) -> None:
        """Give all watches back."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def _error(name: str | None = None) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), name)

"""Reads one file of a tree such that what was read and what the file system said of it belong together."""

from __future__ import annotations

import errno
import os
import stat
import time
from typing import NamedTuple

from agent_ls.workspace.index import roles
from agent_ls.workspace.index.hashing import is_settled

_TRIES = 3
FLAGS = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
)


class Read(NamedTuple):
    """A file's bytes (None: `reason` says why it is left out) and its status; `settled` False: it may have
    changed since without a sign, or while it was read."""

    data: bytes | None
    status: os.stat_result | None
    settled: bool
    reason: str | None = None


def read_file(path: str) -> Read | None:
    """Read a file (an absolute path, surrogateescape). None when there is none. Symbolic links, devices and
    files over the limit are left out; one that keeps changing is read as it comes."""
    for attempt in range(_TRIES):
        now = time.time_ns()
        try:
            descriptor = os.open(path, FLAGS)
        except OSError as error:
            return _refused(path, error)
        try:
            before = os.fstat(descriptor)
            if not stat.S_ISREG(before.st_mode):
                return Read(None, before, True, roles.NOT_REGULAR)
            if before.st_size > roles.MAX_TEXT:
                return Read(None, before, True, roles.TOO_LARGE)
            data = _all(descriptor, before.st_size)
            after = os.fstat(descriptor)
        except OSError as error:
            return _refused(path, error)
        finally:
            os.close(descriptor)
        unchanged = (
            before.st_size == len(data) == after.st_size
            and before.st_mtime_ns == after.st_mtime_ns
            and before.st_ctime_ns == after.st_ctime_ns
        )
        if unchanged or attempt == _TRIES - 1:
            settled = unchanged and is_settled(after, now)
            if len(data) > roles.MAX_TEXT:
                return Read(None, after, settled, roles.TOO_LARGE)
            if roles.is_binary(data):
                return Read(None, after, settled, roles.BINARY)
            return Read(data, after, settled)
    raise AssertionError


def _all(descriptor: int, size: int) -> bytes:
    data = os.read(descriptor, size + 1)
    if len(data) == size:
        return data
    parts = [data]
    held = len(data)
    while data and held <= roles.MAX_TEXT:
        data = os.read(descriptor, 1 << 20)
        parts.append(data)
        held += len(data)
    return b"".join(parts)


def _refused(path: str, error: OSError) -> Read | None:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return None
    try:
        status: os.stat_result | None = os.lstat(path)
    except OSError:
        status = None
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return Read(None, status, True, roles.LINK)
    # Permissions may change without a sign that we would compare: it is tried again each time.
    return Read(None, status, False, f"{roles.UNREADABLE}: {os.strerror(error.errno or errno.EIO)}")

"""Deleting a directory tree that a test run may have left in any state."""

from __future__ import annotations

import errno
import math
import os
import stat
import time
from pathlib import Path

_MAX_PATH = 3500
"""Bytes, below the 4096 of Linux by more than one name."""


def remove_tree(path: Path, within: float | None = None) -> bool:
    """Delete a file, symbolic link or directory with all that is in it; nothing happens when it is absent.

    Directories without permissions are opened first. Links are removed, never followed. With `within`
    (seconds) it stops when they are over: False then, and the rest stays. Raises OSError for what can't be
    deleted (another user's file, a mount).
    """
    end = math.inf if within is None else time.monotonic() + within
    for tries_left in (2, 1, 0):
        try:
            return _remove(os.fspath(path), end)
        except OSError as error:
            # a process that is just ending may still write into it
            if error.errno != errno.ENOTEMPTY or not tries_left:
                raise
    return False


def _remove(top: str, end: float) -> bool:
    pending = [top]
    folders: list[str] = []  # each after the one that it lies in; a list, since nesting may be deep
    lifted = 0
    while pending:
        if time.monotonic() > end:
            return False
        folder = pending.pop()
        try:
            mode = os.lstat(folder).st_mode
            if not stat.S_ISDIR(mode):
                os.unlink(folder)  # noqa: PTH108 (strings: this runs once for each of very many files)
                continue
            if mode & stat.S_IRWXU != stat.S_IRWXU:
                os.chmod(folder, stat.S_IMODE(mode) | stat.S_IRWXU)  # noqa: PTH101
            folders.append(folder)
            if _empty(folder, pending):
                continue
        except FileNotFoundError:
            continue
        # Nested so deep that no path reaches what is inside: goes on from a place further up.
        lifted += 1
        shorter = f"{top}/.lifted-{lifted}"
        os.rename(folder, shorter)  # noqa: PTH104
        pending.append(shorter)
    for folder in reversed(folders):
        try:
            os.rmdir(folder)  # noqa: PTH106
        except FileNotFoundError:
            continue
    return True


def _empty(folder: str, pending: list[str]) -> bool:
    """Delete a folder's files and add its folders to `pending`; False when paths get too long for that."""
    if len(os.fsencode(folder)) > _MAX_PATH:
        return False
    with os.scandir(folder) as children:
        for child in children:
            if child.is_dir(follow_symlinks=False):
                pending.append(child.path)
            else:
                os.unlink(child.path)  # noqa: PTH108
    return True

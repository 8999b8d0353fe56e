"""Deleting a directory tree that a test run may have left in any state."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def remove_tree(path: Path) -> None:
    """Delete a file, symbolic link or directory with all that is in it; nothing happens when it is absent.

    Directories without permissions are opened first. Links are removed, never followed. Raises OSError
    for what can't be deleted (another user's file, a mount).
    """
    for tries_left in (2, 1, 0):
        try:
            _remove(path)
        except OSError as error:
            # a process that is just ending may still write into it
            if error.errno != errno.ENOTEMPTY or not tries_left:
                raise
        else:
            return


def _remove(path: Path) -> None:
    pending = [path]
    folders: list[Path] = []  # each after the one that it lies in; a list, since nesting may be deep
    while pending:
        entry = pending.pop()
        try:
            mode = entry.lstat().st_mode
            if not stat.S_ISDIR(mode):
                entry.unlink()
                continue
            if mode & stat.S_IRWXU != stat.S_IRWXU:
                entry.chmod(stat.S_IMODE(mode) | stat.S_IRWXU)
            folders.append(entry)
            with os.scandir(entry) as children:
                pending.extend(Path(child.path) for child in children)
        except FileNotFoundError:
            continue
    for folder in reversed(folders):
        try:
            folder.rmdir()
        except FileNotFoundError:
            continue

"""Deleting a directory tree that a test run may have left in any state."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def remove_tree(path: Path) -> None:
    """Delete a file, symbolic link or directory with all that is in it; nothing happens when it is absent.

    Directories without permissions are opened first. Links are removed, never followed. Raises OSError
    for what can't be deleted (another user's file, a mount).
    """
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(status.st_mode):
        path.unlink(missing_ok=True)
        return
    if status.st_mode & stat.S_IRWXU != stat.S_IRWXU:
        path.chmod(stat.S_IMODE(status.st_mode) | stat.S_IRWXU)
    with os.scandir(path) as entries:
        children = list(entries)
    for child in children:
        if child.is_dir(follow_symlinks=False):
            remove_tree(Path(child.path))
        else:
            Path(child.path).unlink(missing_ok=True)
    try:
        path.rmdir()
    except FileNotFoundError:
        pass

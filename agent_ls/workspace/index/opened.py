"""The index behind a `Workspace`, opened when first asked for and kept as long as the workspace."""

from __future__ import annotations

import sqlite3
import threading
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, finalize

from attrs import frozen

if TYPE_CHECKING:
    from agent_ls.workspace.files import Workspace
    from agent_ls.workspace.index.index import Index
    from agent_ls.workspace.index.view import View


@frozen
class Snapshot:
    """A view that is up to date with the disk; None when every file has to be read, and `note` says why.
    `remark`: why it takes longer than it could."""

    view: View | None
    note: str = ""
    remark: str = ""


_open: WeakKeyDictionary[Workspace, Index] = WeakKeyDictionary()
_lock = threading.Lock()


def snapshot(workspace: Workspace) -> Snapshot:
    """The workspace's files as they are now, through the index. Raises Cancelled."""
    try:
        index = _index(workspace)
        # Whoever edits or runs tests need not tell the index: it looks at every file's status.
        index.refresh()
        return Snapshot(index.view(), remark=index.note or "")
    except (OSError, sqlite3.Error, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return Snapshot(None, f"the index can't be used ({said}), so every file was read")


def _index(workspace: Workspace) -> Index:
    from agent_ls.workspace.index.index import open_index

    with _lock:
        index = _open.get(workspace)
        if index is None:
            index = _open[workspace] = open_index(workspace.root, cancel=workspace.cancel)
            finalize(workspace, index.close)
        return index

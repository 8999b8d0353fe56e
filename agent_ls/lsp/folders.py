"""The folders that the editor has open, each with its repository, its settings and its index."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, field

from agent_ls.errors import AgentLsError, UsageError

if TYPE_CHECKING:
    from agent_ls.settings import Settings
    from agent_ls.workspace.git import Repository
    from agent_ls.workspace.index.live import LiveIndex

logger = logging.getLogger(__name__)


@define(eq=False)
class Folder:
    """One folder of the editor's workspace. `root` is its real path, `uri` what the editor calls it."""

    uri: str
    root: Path
    name: str
    editor_settings: Mapping[str, Any] = field(factory=dict)
    index: LiveIndex | None = None
    problem: str | None = None
    """Why there is no index, for a person."""
    top: Path | None = None
    """The root of the repository around it, if there is one: test ids and branches belong to that."""
    begun: asyncio.Event = field(factory=asyncio.Event)
    """Set when the index was started, or could not be."""

    def repository(self) -> Repository:
        """The repository around the folder. Starts git: not for the event loop. Raises UsageError."""
        from agent_ls.workspace.git import Repository

        return Repository.discover(self.root)

    def settings(self, overrides: Mapping[str, Any]) -> Settings:
        """The settings in force: the repository's, the environment's, the editor's, then `overrides`.

        Raises UsageError that names the key and the place.
        """
        from agent_ls.config import load

        given = {**self.editor_settings, **overrides}
        with contextlib.suppress(UsageError):
            return load(self.repository().root, given).settings
        return load(self.root, given).settings

    def relative(self, path: Path) -> str | None:
        """`path` (real) as the index has it; None outside the folder."""
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            return None


class Folders:
    """All open folders. Changed in the event loop only; the indexes have threads of their own."""

    def __init__(self, on_progress: Callable[[Folder, int, int], None]) -> None:
        self._folders: dict[str, Folder] = {}
        self._on_progress = on_progress

    def __iter__(self) -> Iterator[Folder]:
        return iter(list(self._folders.values()))

    def add(self, uri: str, path: Path, name: str) -> Folder:
        folder = self._folders.get(uri)
        if folder is None:
            folder = self._folders[uri] = Folder(uri, path, name)
        return folder

    def remove(self, uri: str) -> None:
        folder = self._folders.pop(uri, None)
        if folder is not None and folder.index is not None:
            threading.Thread(target=folder.index.stop, name="index-stop", daemon=True).start()

    def holding(self, path: Path) -> Folder | None:
        """The innermost folder that a file is in."""
        found = [folder for folder in self._folders.values() if folder.relative(path) is not None]
        return max(found, key=lambda folder: len(folder.root.parts), default=None)

    def start_index(self, folder: Folder) -> None:
        """Begin to index; returns at once. What prevents it is said in `folder.problem`."""
        from agent_ls.workspace.index.live import LiveIndex

        if folder.index is not None:
            return
        with contextlib.suppress(AgentLsError, OSError):
            folder.top = folder.repository().root
        try:
            index = LiveIndex(
                folder.root, on_progress=lambda done, total: self._on_progress(folder, done, total)
            )
            index.start()
        except (OSError, AgentLsError) as error:
            folder.problem = f"{folder.root} can't be indexed: {error}"
            logger.warning(folder.problem)
            return
        folder.index = index

    def stop(self) -> None:
        """End all indexes."""
        for folder in self._folders.values():
            if folder.index is not None:
                folder.index.stop()

"""Whether git would list the same files as last time, told without asking git.

What git lists depends on its index, the folders that it looks through, the ignore files, and its settings. If
none of these has changed by its status, neither has the list; folders show that files came or went by their
times. Only a status that was already old when git was asked says anything (see `hashing.is_settled`).
"""

# Plain strings instead of Path objects, since this runs at every start.
# ruff: noqa: PTH113, PTH116, PTH118

from __future__ import annotations

import marshal
import os
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agent_ls.workspace.index.hashing import UNSURE, is_settled

if TYPE_CHECKING:
    from agent_ls.cancel import CancelToken

_ABSENT = 1
_VARIABLES = ("HOME", "XDG_CONFIG_HOME")


class Remembered:
    """What a listing depended on. `skipped` is what the listing left out."""

    def __init__(
        self, environment: str, index: tuple[str, int], places: dict[str, int], skipped: dict[str, str]
    ) -> None:
        self._environment = environment
        self._index = index
        self._places = places
        self.skipped = skipped

    def pack(self) -> bytes:
        """As bytes, for `unpack`."""
        data = (self._environment, self._index, self._places, self.skipped)
        return zlib.compress(marshal.dumps(data, 4), 1)

    @classmethod
    def unpack(cls, data: bytes) -> Remembered:
        """The inverse of `pack`. Raises zlib.error for damaged data."""
        return cls(*marshal.loads(zlib.decompress(data)))

    def holds(self) -> bool:
        """Would git list the same files as when this was recorded?"""
        return self._same_index() and self._same_places()

    def after(
        self, root: Path, paths: Iterable[str], skipped: Mapping[str, str], listed_at: int
    ) -> Remembered | None:
        """The same where only git's index was written anew (as `git status` does), after a listing of `paths`
        that was asked for at `listed_at`; None when more has changed."""
        place = self._index[0]
        now = _status_of(place, listed_at)
        if now == UNSURE or not self._same_places():
            return None
        folders = _folders_of(paths)
        if any((f"{root}/{folder}" if folder else str(root)) not in self._places for folder in folders):
            return None
        return Remembered(self._environment, (place, now), self._places, dict(skipped))

    def _same_index(self) -> bool:
        return _signature_at(self._index[0]) == self._index[1]

    def _same_places(self) -> bool:
        if self._environment != _environment():
            return False
        stat = os.stat
        for path, known in self._places.items():
            try:
                status = stat(path)
            except OSError:
                if known != _ABSENT:
                    return False
                continue
            found = hash((status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino))
            if found != known:
                return False
        return True


def _environment() -> str:
    said = [f"{name}={os.environ.get(name)}" for name in _VARIABLES]
    said += sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith("GIT_"))
    return "\n".join(said)


def _signature_at(path: str) -> int:
    try:
        status = os.stat(path)
    except OSError:
        return _ABSENT
    return hash((status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino))


def _status_of(path: str, listed_at: int) -> int:
    """The signature of a file or folder that had settled before `listed_at`; UNSURE when it had not."""
    try:
        status = os.stat(path)
    except OSError:
        return _ABSENT
    if not is_settled(status, listed_at):
        return UNSURE
    return hash((status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino))


def record(
    root: Path,
    paths: Iterable[str],
    skipped: Mapping[str, str],
    listed_at: int,
    cancel: CancelToken | None = None,
) -> Remembered | None:
    """What the listing of `paths`, asked for at `listed_at` (nanoseconds), depends on.

    None when that can't be said: something changed just then, or the tree is only a part of a repository."""
    from agent_ls.workspace.index.scan import git_output

    said = git_output(root, "rev-parse", "--show-prefix", "--git-dir", "--git-common-dir", cancel=cancel)
    lines = os.fsdecode(said or b"").split("\n")
    if len(lines) != 4 or lines[0]:
        return None
    git_dir, common = (os.path.join(root, line) for line in lines[1:3])
    folders = _folders(root, paths, cancel)
    if folders is None:
        return None
    # A folder's own status tells when an ignore file comes or goes, the file's when it changes.
    wanted = folders + [
        f"{folder}/.gitignore" for folder in folders if os.path.lexists(f"{folder}/.gitignore")
    ]
    wanted += _settings(root, git_dir, common, cancel)
    places: dict[str, int] = {}
    for path in wanted:
        places[path] = _status_of(path, listed_at)
        if places[path] == UNSURE:
            return None
    index = os.path.join(git_dir, "index")
    known = _status_of(index, listed_at)
    if known == UNSURE:
        return None
    return Remembered(_environment(), (index, known), places, dict(skipped))


def _settings(root: Path, git_dir: str, common: str, cancel: CancelToken | None) -> list[str]:
    """The files that git's settings and ignore rules outside of the tree come from; some need not exist."""
    from agent_ls.workspace.index.scan import git_output

    home = os.environ.get("HOME", "")
    own = os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    found = {
        f"{git_dir}/HEAD",
        f"{common}/config",
        f"{git_dir}/config.worktree",
        f"{common}/info/exclude",
        f"{git_dir}/info/sparse-checkout",
        os.environ.get("GIT_CONFIG_GLOBAL") or f"{home}/.gitconfig",
        os.environ.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig",
        f"{own}/git/config",
        f"{own}/git/ignore",
    }
    if os.path.isfile(f"{root}/.git"):  # of a linked working tree; the folder's status would say nothing
        found.add(f"{root}/.git")
    listed = git_output(root, "config", "--list", "--show-origin", "-z", "--includes", cancel=cancel) or b""
    for part in listed.split(b"\0"):
        if part.startswith(b"file:"):
            found.add(os.path.join(root, os.fsdecode(part[5:])))
    excludes = git_output(root, "config", "--type=path", "--get", "core.excludesFile", cancel=cancel)
    if excludes:
        found.add(os.path.join(root, os.fsdecode(excludes.removesuffix(b"\n"))))
    return sorted(found)


def _folders_of(paths: Iterable[str]) -> set[str]:
    """The folders that files are in, and those that these are in; "" is the root."""
    found = {""}
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def _folders(root: Path, paths: Iterable[str], cancel: CancelToken | None) -> list[str] | None:
    """The folders that git looks through for files to add: those of listed files, and the others that it
    does not ignore. (Below a folder of another repository it doesn't look.)"""
    from agent_ls.workspace.index.scan import git_output

    known = _folders_of(paths)
    waiting = list(known)
    while waiting:
        others: list[str] = []
        for folder in waiting:
            try:
                with os.scandir(f"{root}/{folder}") as entries:
                    names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
            except NotADirectoryError:
                continue
            except FileNotFoundError:
                # A tracked folder that is not there: its parent tells when it comes back.
                known.discard(folder)
                continue
            except OSError:
                return None
            prefix = f"{folder}/" if folder else ""
            for name in names:
                path = prefix + name
                if name == ".git" or path in known:
                    continue
                if os.path.lexists(f"{root}/{path}/.git"):
                    known.add(path)
                else:
                    others.append(path)
        if not others:
            break
        asked = b"".join(os.fsencode(path) + b"\0" for path in others)
        ignored = git_output(root, "check-ignore", "-z", "--stdin", "--no-index", input=asked, cancel=cancel)
        left_out = set(os.fsdecode(ignored or b"").split("\0"))
        waiting = [path for path in others if path not in left_out]
        known.update(waiting)
    return [f"{root}/{folder}" if folder else str(root) for folder in sorted(known)]

"""The folders that are watched, and what their events mean for the index.

Watches are scarce (and each costs the kernel about 1 kB): every folder that may have files for the index gets
one, and no other does: not those that are ignored, nor git's own, nor nested repositories. A folder is
watched first and read then: what appears meanwhile is seen at least once.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Container, Iterable
from pathlib import Path

from attrs import define, field

from agent_ls.workspace.index import _inotify as inotify
from agent_ls.workspace.index.scan import git_output, is_ignored, list_files

PACKAGES = frozenset({"node_modules", "__pycache__"})
"""Left out where there are no rules of git's that do (see `scan`)."""
_MANY_FOLDERS = 300
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_RULES = ".gitignore"
_FORMING = dict.fromkeys(("HEAD", "objects", "refs", "config"), "rules")


@define
class Pending:
    """What has happened since it was last asked for. More than `limit` paths count as everything."""

    limit: int
    paths: set[str] = field(factory=set)
    everything: str | None = None
    """Why all files have to be looked at."""
    switched: bool = False
    rules: bool = False

    def __bool__(self) -> bool:
        return bool(self.paths) or self.everything is not None

    def path(self, path: str) -> None:
        """A file or folder changed."""
        if self.everything is None:
            self.paths.add(path)
            if len(self.paths) > self.limit:
                self.all(f"more than {self.limit} files changed at once")

    def all(self, reason: str) -> None:
        """Anything may have changed."""
        self.everything = self.everything or reason
        self.paths.clear()

    def clear(self) -> None:
        """Begin anew."""
        self.paths.clear()
        self.everything = None
        self.switched = self.rules = False


class WatchedTree:
    """The inotify watches of one tree. Not thread-safe. Raises OSError when there are not enough watches."""

    def __init__(self, root: Path, pending: Pending) -> None:
        self._root = root
        self._pending = pending
        self._inotify = inotify.Inotify()
        self._folders: dict[int, str] = {}
        self._watches: dict[str, int] = {}
        self._outside: dict[int, dict[str, str]] = {}
        self._identity: tuple[int, int] | None = None
        self._git = False
        self._repopulate = self._retrack = False
        self._nested: set[str] = set()
        self.blind: set[str] = set()
        """Folders that can't be read, and hence not be watched."""
        try:
            self.populate()
        except BaseException:
            self.close()
            raise

    @property
    def descriptor(self) -> int:
        """Readable when something happened."""
        return self._inotify.descriptor

    @property
    def folders(self) -> list[str]:
        """The watched folders, relative to the root ("" is the root itself)."""
        return sorted(self._watches)

    def close(self) -> None:
        """Give all watches back."""
        self._inotify.close()
        self._folders.clear()
        self._watches.clear()
        self._outside.clear()

    def drain(self) -> bool:
        """Take in all that happened until now; was there anything? Raises OSError when no watch is left."""
        seen = False
        if self._identity != _identity(self._root):
            self._pending.all("the folder was moved, deleted or replaced")
            self._repopulate = True
            seen = self._identity is not None or self._root.exists()
        arrived: list[str] = []
        for _ in range(10_000):
            events = self._inotify.read()
            if not events:
                break
            for event in events:
                seen = self._take(event, arrived) or seen
        else:
            self._pending.all("changes come quicker than they can be read")
        if len(arrived) > _MANY_FOLDERS:
            self._pending.all(f"{len(arrived)} new folders")
            self._repopulate = True
        if self._repopulate:
            self.populate()
        else:
            if arrived:
                self._descend(arrived)
            if self._retrack:
                self._retrack = False
                self._follow_tracked()
        return seen

    # what happened

    def _take(self, event: inotify.Event, arrived: list[str]) -> bool:
        """Note what one event means; False for those that mean nothing to us."""
        watch, mask, name = event
        if mask & inotify.OVERFLOW:
            self._pending.all("events were lost")
            self._repopulate = self._pending.rules = True
            return True
        if watch in self._outside:
            return self._take_outside(watch, mask, name)
        folder = self._folders.get(watch)
        if folder is None:
            return False
        if mask & (inotify.IGNORED | inotify.UNMOUNT):
            self._forget(folder)
            if mask & inotify.UNMOUNT:
                self._pending.all("a file system was unmounted")
                self._repopulate = True
            return bool(mask & inotify.UNMOUNT)
        if not name:
            # A folder's own events: its parent tells the same, but the root has no watched parent.
            if folder or not mask & (inotify.DELETE_SELF | inotify.MOVE_SELF | inotify.ATTRIB):
                return False
            self._pending.all("the root folder changed")
            self._repopulate = True
            return True
        path = f"{folder}/{name}" if folder else name
        if name == ".git":
            self._pending.all("git's folder appeared, went or was replaced")
            self._repopulate = self._pending.rules = True
            return True
        if name == _RULES:
            self._pending.all("the ignore rules changed")
            self._repopulate = self._pending.rules = True
            return True
        if folder in self._nested:
            return False
        if mask & inotify.ISDIR:
            return self._take_folder(path, mask, arrived)
        self._pending.path(path)
        return True

    def _take_folder(self, path: str, mask: int, arrived: list[str]) -> bool:
        known = path in self._watches or path in self.blind
        if mask & (inotify.DELETE | inotify.MOVED_FROM):
            self._forget_below(path)
            self._pending.path(path)
            return True
        if mask & (inotify.CREATE | inotify.MOVED_TO):
            arrived.append(path)
            return True
        if mask & inotify.ATTRIB and known:
            # Its permissions may be other ones.
            arrived.append(path)
            self._pending.path(path)
            return True
        return False

    def _take_outside(self, watch: int, mask: int, name: str) -> bool:
        kind = self._outside[watch].get(name)
        if mask & inotify.IGNORED:
            del self._outside[watch]
        # git writes HEAD and index anew and renames them.
        if kind is None or mask & inotify.ATTRIB:
            return False
        self._pending.all(f"git's {name} changed" if kind != "rules" else "the ignore rules changed")
        if kind == "rules":
            self._repopulate = self._pending.rules = True
        else:
            self._pending.switched = self._retrack = True
        return True

    # watches

    def populate(self) -> None:
        """Watch what is to be watched now, and nothing else."""
        self._repopulate = self._retrack = False
        self.blind.clear()
        self._nested.clear()
        self._identity = _identity(self._root)
        wanted: set[str] = set()
        if self._identity is None:
            self._drop(set())
            return
        self._watch_git()
        listed = self._listed_folders()
        level = [""]
        while level:
            deeper: list[str] = []
            for folder in level:
                if self._watch(folder):
                    wanted.add(folder)
                    deeper += self._below(folder, listed)
            level = [path for path in deeper if path in listed]
            level += self._unignored(path for path in deeper if path not in listed)
        self._drop(wanted)

    def _descend(self, arrived: Iterable[str]) -> None:
        """Watch new folders and those in them, and report what is in them."""
        level = sorted({path for path in arrived if path.rpartition("/")[0] in self._watches})
        while level:
            deeper: list[str] = []
            for path in self._unignored(level):
                self._forget_below(path)  # the same name may stand for another folder now
                if self._watch(path):
                    deeper += self._below(path, ())
                if path in self._watches or path in self.blind:
                    self._pending.path(path)
            level = sorted(deeper)

    def _follow_tracked(self) -> None:
        """Watch what git tracks now although the rules leave it out."""
        for folder in sorted(self._listed_folders() - self._watches.keys()):
            self._watch(folder)

    def _watch(self, folder: str) -> bool:
        try:
            watch = self._inotify.add(f"{self._root}/{folder}" if folder else str(self._root))
        except OSError as error:
            if error.errno == errno.EACCES:
                self.blind.add(folder)
            elif error.errno not in _GONE:
                raise
            return False
        before = self._folders.get(watch)
        if before is not None and before != folder:
            # A rename whose events are still to come.
            self._watches.pop(before, None)
        self._folders[watch] = folder
        self._watches[folder] = watch
        return True

    def _below(self, folder: str, listed: Container[str]) -> list[str]:
        """The folders in one, unless git takes it for a nested repository (or a submodule): of that it lists
        no files, as long as it is one."""
        nested = self._git and folder and folder not in listed
        if nested and os.path.lexists(f"{self._root}/{folder}/.git"):
            self._nested.add(folder)
            # git takes it for one only when it is whole, and `git init` may be at work.
            self._watch_outside(f"{self._root}/{folder}/.git", _FORMING)
            return []
        return self._subfolders(folder)

    def _subfolders(self, folder: str) -> list[str]:
        prefix = f"{folder}/" if folder else ""
        try:
            with os.scandir(f"{self._root}/{folder}") as entries:
                return [prefix + entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError as error:
            if error.errno == errno.EACCES:
                self.blind.add(folder)
            return []

    def _forget(self, folder: str) -> None:
        watch = self._watches.pop(folder, None)
        if watch is not None:
            self._folders.pop(watch, None)
        self.blind.discard(folder)
        self._nested.discard(folder)

    def _forget_below(self, folder: str) -> None:
        below = folder + "/"
        for path in [path for path in self._watches if path == folder or path.startswith(below)]:
            self._inotify.remove(self._watches[path])
            self._forget(path)
        self.blind = {path for path in self.blind if path != folder and not path.startswith(below)}

    def _drop(self, wanted: set[str]) -> None:
        for path in [path for path in self._watches if path not in wanted]:
            self._inotify.remove(self._watches[path])
            self._forget(path)

    # what is left out

    def _skipped(self, path: str) -> bool:
        name = path.rpartition("/")[2]
        return name == ".git" or (name in PACKAGES and not self._git)

    def _unignored(self, folders: Iterable[str]) -> list[str]:
        """Those folders that may have files for the index."""
        asked = [path for path in folders if not self._skipped(path)]
        if not asked:
            return []
        if not self._git:
            # Rules for folders only are asked about through a file in it, of a name that no rule has.
            return [path for path in asked if not is_ignored(self._root, f"{path}/\x01", git=False)]
        names = b"".join(os.fsencode(path) + b"/\0" for path in asked)
        # No output: nothing is ignored, or git failed, and then a watch too many does no harm.
        said = git_output(self._root, "check-ignore", "-z", "--stdin", input=names)
        ignored = {name.rstrip("/") for name in os.fsdecode(said or b"").split("\0")}
        return [path for path in asked if path not in ignored]

    def _listed_folders(self) -> set[str]:
        """Folders of tracked files (outside git: of all that are listed), with those above."""
        if self._git:
            names = os.fsdecode(git_output(self._root, "ls-files", "-z", "-c") or b"").split("\0")
        else:
            names = list_files(self._root).paths
        found: set[str] = set()
        for name in names:
            folder = name.rpartition("/")[0]
            while folder and folder not in found:
                found.add(folder)
                folder = folder.rpartition("/")[0]
        return found

    def _watch_git(self) -> None:
        """Watch what decides about files from outside the tree: git's HEAD, index and exclude file, and the
        rules in folders above."""
        said = git_output(
            self._root,
            "rev-parse",
            "--path-format=absolute",
            "--git-dir",
            "--git-path",
            "info",
            "--show-toplevel",
        )
        self._git = said is not None
        for watch in list(self._outside):
            self._inotify.remove(watch)
        self._outside.clear()
        if said is None:
            self._watch_outside(f"{self._root}/.git", _FORMING)
            return
        git_dir, info, top = os.fsdecode(said).split("\n")[:3]
        places = [
            (git_dir, {"HEAD": "head", "index": "index", "config": "rules"}),
            (info, {"exclude": "rules"}),
        ]
        above = self._root
        while str(above) != top and above != above.parent:
            above = above.parent
            places.append((str(above), {_RULES: "rules"}))
        for folder, names in places:
            self._watch_outside(folder, names)

    def _watch_outside(self, folder: str, names: dict[str, str]) -> None:
        try:
            self._outside[self._inotify.add(folder)] = names
        except OSError as error:
            if error.errno not in (*_GONE, errno.EACCES):
                raise


def _identity(root: Path) -> tuple[int, int] | None:
    try:
        status = root.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino

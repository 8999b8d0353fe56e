"""A private copy of a tree that is brought up to date before each use, whatever happened to it meanwhile."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import time
from collections.abc import Iterable
from pathlib import Path

from attrs import define, field

from agent_ls.errors import UsageError

MAX_FILES = 50_000
MAX_BYTES = 1 << 30
_RACY_NS = 100_000_000

_Mark = tuple[int, int, int, int, int]


class TooLarge(UsageError):
    """The tree has more files or bytes than a copy of it is worth."""


@define
class Mirror:
    """Keeps `target` equal to `source` (contents, modes, times, links) at every `sync`.

    What a program changed in the target is undone, also where it kept size and time: a file's change time
    can't be set. Descriptors lead every step and no link is followed, so nothing outside of the target is
    ever written, whatever was planted there. `keep` are paths in the target (relative, with "/") that are
    left alone, as is `.git`. One user at a time, and none while `sync` runs.
    """

    source: Path
    target: Path
    keep: frozenset[str] = frozenset()
    _known: dict[str, tuple[_Mark, _Mark]] = field(factory=dict)
    _files: int = 0
    _bytes: int = 0

    def __attrs_post_init__(self) -> None:
        around: set[str] = set()
        for path in self.keep:
            parts = path.split("/")
            around.update("/".join(parts[:end]) for end in range(1, len(parts) + 1))
        self.keep = frozenset(around)

    def sync(self) -> list[str]:
        """Make the target equal to the source; returns the paths that were written or removed.

        Raises TooLarge, and OSError when it can't be done (the target is then of no more use).
        """
        self.target.mkdir(parents=True, exist_ok=True)
        self._files = self._bytes = 0
        changed: list[str] = []
        known: dict[str, tuple[_Mark, _Mark]] = {}
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
        source = os.open(self.source, flags & ~os.O_NOFOLLOW)
        try:
            target = os.open(self.target, flags)
            try:
                self._folder(source, target, "", known, changed)
            finally:
                os.close(target)
        finally:
            os.close(source)
        self._known = known
        return changed

    def _folder(
        self,
        source: int,
        target: int,
        prefix: str,
        known: dict[str, tuple[_Mark, _Mark]],
        changed: list[str],
    ) -> None:
        wanted = _entries(source)
        found = _entries(target)
        if not prefix:
            wanted.pop(".git", None)
            found.pop(".git", None)
        for name in found.keys() - wanted.keys():
            if prefix + name not in self.keep:
                _remove(name, found[name], target)
                changed.append(prefix + name)
        for name, info in wanted.items():
            path = prefix + name
            there = found.get(name)
            if stat.S_ISDIR(info.st_mode):
                if there is not None and not stat.S_ISDIR(there.st_mode):
                    _remove(name, there, target)
                    there = None
                if there is None:
                    os.mkdir(name, 0o700, dir_fd=target)
                    changed.append(path)
                self._below(name, info, source, target, path, known, changed)
                continue
            self._files += 1
            self._bytes += info.st_size
            if self._files > MAX_FILES or self._bytes > MAX_BYTES:
                raise TooLarge(
                    f"more than {MAX_FILES} files or {MAX_BYTES >> 20} MB",
                    "Run the tests in fresh processes.",
                )
            before = self._known.get(path)
            if before is not None and there is not None and before == (_mark(info), _mark(there)):
                known[path] = before
                continue
            if there is not None:
                _remove(name, there, target)
            if not _copy(name, info, source, target):
                continue
            changed.append(path)
            if abs(time.time_ns() - info.st_ctime_ns) > _RACY_NS:  # it may change again within one tick
                known[path] = (_mark(info), _mark(os.stat(name, dir_fd=target, follow_symlinks=False)))

    def _below(
        self,
        name: str,
        info: os.stat_result,
        source: int,
        target: int,
        path: str,
        known: dict[str, tuple[_Mark, _Mark]],
        changed: list[str],
    ) -> None:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
        inner_source = os.open(name, flags, dir_fd=source)
        try:
            inner_target = os.open(name, flags, dir_fd=target)
            try:
                self._folder(inner_source, inner_target, path + "/", known, changed)
                mode = stat.S_IMODE(info.st_mode)
                if stat.S_IMODE(os.fstat(inner_target).st_mode) != mode:
                    os.fchmod(inner_target, mode)
            finally:
                os.close(inner_target)
        finally:
            os.close(inner_source)


def _entries(folder: int) -> dict[str, os.stat_result]:
    with os.scandir(folder) as entries:
        return {entry.name: entry.stat(follow_symlinks=False) for entry in entries}


def _mark(info: os.stat_result) -> _Mark:
    return (info.st_ino, info.st_size, info.st_mode, info.st_mtime_ns, info.st_ctime_ns)


def _remove(name: str, info: os.stat_result, folder: int) -> None:
    if stat.S_ISDIR(info.st_mode):
        shutil.rmtree(name, dir_fd=folder)
    else:
        os.unlink(name, dir_fd=folder)


def _copy(name: str, info: os.stat_result, source: int, target: int) -> bool:
    """Copy one file or link that is not there; False for what is neither, and for a file that is gone."""
    if stat.S_ISLNK(info.st_mode):
        with contextlib.suppress(FileNotFoundError):
            os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
            return True
        return False
    if not stat.S_ISREG(info.st_mode):
        return False
    try:
        read = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=source)
    except FileNotFoundError:
        return False
    with os.fdopen(read, "rb", buffering=0) as original:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        write = os.open(name, flags, 0o600, dir_fd=target)
        with os.fdopen(write, "wb", buffering=0) as copy:
            shutil.copyfileobj(original, copy, 1 << 20)
            os.fchmod(write, stat.S_IMODE(info.st_mode))
            os.utime(write, ns=(info.st_atime_ns, info.st_mtime_ns))
    return True


def mirror_git(source: Path, target: Path) -> None:
    """Give the copy the same repository: a `.git` file that leads to the source's git directory."""
    dot_git = source / ".git"
    place = target / ".git"
    with contextlib.suppress(FileNotFoundError):
        place.unlink()
    if dot_git.is_file() and not dot_git.is_symlink():
        place.write_bytes(dot_git.read_bytes())
    elif dot_git.is_dir():
        place.write_text(f"gitdir: {dot_git.resolve()}\n", "utf-8", errors="surrogateescape")


def kept_paths(paths: Iterable[Path], repo: Path) -> frozenset[str]:
    """The paths below the repository that the sandbox mounts over the copy, relative to it."""
    found: set[str] = set()
    for path in paths:
        for base in (repo, repo.resolve()):
            with contextlib.suppress(ValueError):
                relative = path.relative_to(base).as_posix()
                if relative != ".":
                    found.add(relative)
    return frozenset(found)

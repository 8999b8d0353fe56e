"""What git ignores but the tests may need: generated modules, built extensions, environments, submodules.

Small things are copied into the worktree, so that a test run may change them; environments and large
directories are named, for the sandbox to bind read-only where they are. Caches and secrets stay behind.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from attrs import define, field, frozen

from agent_ls.cancel import CancelToken
from agent_ls.errors import AgentLsError
from agent_ls.workspace.git import Repository, split_z
from agent_ls.workspace.paths import is_secret_path
from agent_ls.workspace.snapshot import SECRET

MAX_COPIED_BYTES = 200_000_000
MAX_COPIED_FILES = 20_000
"""All copies together; a directory that does not fit is bound, a file left out."""

_CACHES = {
    "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".cache", ".DS_Store",
    ".ipynb_checkpoints", ".agent-ls", ".idea", ".vscode", "htmlcov", ".eggs", ".git",
}  # fmt: skip
_CACHE_FILES = ("*.pyc", "*.pyo", "*.swp", "*~", ".coverage", ".coverage.*")
_BOUND = {"node_modules", ".tox", ".nox", "bower_components"}


@frozen
class IgnoredContent:
    """What became of the ignored content.

    `readonly`: directories of the user's tree (absolute) to bind read-only at the same place; an empty
    directory stands for each in the worktree. `copied`: paths below the root, directories with a
    trailing "/". `left_out`: (path, reason) pairs.
    """

    readonly: tuple[Path, ...]
    copied: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]


@define
class _Carrier:
    """Copies from `source` to `target` until the caps are reached, and keeps the record."""

    source: Path
    target: Path
    bytes_left: int
    files_left: int
    cancel: CancelToken = field(factory=CancelToken)
    readonly: list[Path] = field(factory=list)
    copied: list[str] = field(factory=list)
    left_out: list[tuple[str, str]] = field(factory=list)

    def carry(self, name: str, files: list[str]) -> bool:
        """Copy the `files` that make up the entry `name`, all or none; False when they don't fit."""
        sizes = [os.lstat(self.source / path).st_size for path in files]
        if len(files) > self.files_left or sum(sizes) > self.bytes_left:
            return False
        done = [path for path in files if self._copy(path)]
        self.files_left -= len(files)
        self.bytes_left -= sum(sizes)
        if done:
            self.copied.append(name)
        return True

    def bind(self, path: str) -> None:
        """Name a directory for binding; its mount point is made in the worktree."""
        if self._place(path) is not None:
            (self.target / path).mkdir(parents=True, exist_ok=True)
            self.readonly.append(self.source / path)

    def _place(self, path: str) -> Path | None:
        """Where `path` goes; None when the base has something else in the way (a file, a link)."""
        place = self.target
        for part in path.split("/")[:-1]:
            place = place / part
            if place.is_symlink() or (place.exists() and not place.is_dir()):
                return None
        place = self.target / path
        return None if place.is_symlink() or place.is_file() else place

    def _copy(self, path: str) -> bool:
        self.cancel.raise_if_cancelled()
        place = self._place(path)
        if place is None:
            return False
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self.source / path, place, follow_symlinks=False)
        except OSError as error:
            self.left_out.append((path, error.strerror or "can't be copied"))
            return False
        return True


def bring(repo: Repository, target: Path, cancel: CancelToken | None = None) -> IgnoredContent:
    """Copy ignored content and populated submodules of `repo` into the worktree at `target`.

    Nothing that the worktree holds already is overwritten. Raises Cancelled.
    """
    cancel = cancel or CancelToken()
    repo = repo.until(cancel)
    carrier = _Carrier(repo.root, target, MAX_COPIED_BYTES, MAX_COPIED_FILES, cancel)
    for path in _gitlinks(repo):
        _bring_submodule(carrier, repo, path)
    raw = repo.git("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory", text=False)
    entries: list[tuple[int, str, list[str]]] = []
    above = "/"
    for name in sorted(split_z(raw.data)):
        if name.startswith(above):  # git names some directories and what is in them, too
            continue
        if name.endswith("/"):
            above = name
        if _is_cache(name.rstrip("/")):
            continue
        files: list[str] = []
        if not name.endswith("/"):
            files = _usable(carrier, [name])
        elif _is_bound(repo.root / name):
            carrier.bind(name.rstrip("/"))
            continue
        else:
            walked = _walk(carrier, name.rstrip("/"))
            if walked is None:
                carrier.bind(name.rstrip("/"))
                continue
            files = walked
        if files:
            entries.append((sum(os.lstat(repo.root / path).st_size for path in files), name, files))
    for _, name, files in sorted(entries):
        if carrier.carry(name, files):
            continue
        if name.endswith("/"):
            carrier.bind(name.rstrip("/"))
        else:
            carrier.left_out.append((name, "ignored, and too large to copy"))
    return IgnoredContent(
        tuple(sorted(carrier.readonly)), tuple(sorted(carrier.copied)), tuple(sorted(carrier.left_out))
    )


def _is_cache(path: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    return name in _CACHES or any(fnmatchcase(name, pattern) for pattern in _CACHE_FILES)


def _is_bound(folder: Path) -> bool:
    """An environment, or a directory that by its name is large and not the project's own."""
    return folder.name in _BOUND or (folder / "pyvenv.cfg").is_file() or (folder / "conda-meta").is_dir()


def _usable(carrier: _Carrier, paths: list[str]) -> list[str]:
    """The paths that may be copied; the others are recorded or, when they vanished, passed over."""
    good: list[str] = []
    for path in paths:
        try:
            mode = os.lstat(carrier.source / path).st_mode
        except OSError:
            continue
        if is_secret_path(path):
            carrier.left_out.append((path, SECRET))
        elif stat.S_ISLNK(mode) or (stat.S_ISREG(mode) and os.access(carrier.source / path, os.R_OK)):
            good.append(path)
        else:
            carrier.left_out.append((path, "not a readable regular file"))
    return good


def _walk(carrier: _Carrier, top: str) -> list[str] | None:
    """The files of an ignored directory; None when there are more than the caps allow."""
    files: list[str] = []
    bound: list[str] = []
    size = 0
    for folder, folders, names in os.walk(carrier.source / top):
        carrier.cancel.raise_if_cancelled()
        rel = Path(folder).relative_to(carrier.source).as_posix()
        for name in list(folders):
            path = f"{rel}/{name}"
            if name in _CACHES:
                folders.remove(name)
            elif (carrier.source / path).is_symlink():
                folders.remove(name)
                names.append(name)
            elif _is_bound(carrier.source / path):
                folders.remove(name)
                bound.append(path)
        for name in names:
            path = f"{rel}/{name}"
            if _is_cache(path):
                continue
            files.append(path)
            try:
                size += os.lstat(carrier.source / path).st_size
            except OSError:
                continue
        if len(files) > MAX_COPIED_FILES or size > MAX_COPIED_BYTES:
            return None
    for path in bound:
        carrier.bind(path)
    return _usable(carrier, files)


def _gitlinks(repo: Repository) -> Iterator[str]:
    for entry in split_z(repo.git("ls-files", "-s", "-z", text=False).data):
        meta, path = entry.split("\t", 1)
        if meta.startswith("160000 "):
            yield path


def _bring_submodule(carrier: _Carrier, repo: Repository, path: str, prefix: str = "") -> None:
    """Copy the tracked and untracked files of a populated submodule, and of those inside it."""
    place = repo.root / path
    if place.is_symlink() or not (place / ".git").exists():
        return
    whole = prefix + path
    try:
        inner = Repository.discover(place)
    except AgentLsError as error:
        carrier.left_out.append((whole + "/", error.message))
        return
    if inner.root != place.resolve():
        return
    links = set(_gitlinks(inner))
    names = set(split_z(inner.git("ls-files", "-z", "--cached", text=False).data)) - links
    fresh = split_z(inner.git("ls-files", "-z", "--others", "--exclude-standard", text=False).data)
    files = [f"{whole}/{name}" for name in sorted(names) if os.path.lexists(place / name)]
    files += _usable(carrier, [f"{whole}/{name}" for name in fresh if not name.endswith("/")])
    files = [
        file for file in files if not (carrier.source / file).is_dir() or (carrier.source / file).is_symlink()
    ]
    if not carrier.carry(whole + "/", files):
        carrier.bind(whole)
        return
    for link in sorted(links):
        _bring_submodule(carrier, inner, link, whole + "/")

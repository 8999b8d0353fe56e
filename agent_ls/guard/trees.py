"""The two trees that are compared, and which of their files differ."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Protocol

from attrs import define, field

from agent_ls.workspace.git import Repository, decode, split_z

MAX_BYTES = 2_000_000
"""Larger files are no source and no test; they are only compared."""
_NOT_OURS = {
    ".git",
    "node_modules",
    ".venv",
    "venv",
    "__pycache__",
    ".mypy_cache",
    ".pytest_cache",
    "target",
    ".tox",
}


class Tree(Protocol):
    """A tree of files. Paths are relative, with forward slashes."""

    def paths(self) -> Iterable[str]: ...

    def read(self, path: str) -> bytes | None:
        """A file's bytes; None when it isn't there, is too large or no file."""
        ...


@define(slots=False)
class FolderTree:
    """Files below a directory."""

    root: Path

    @cached_property
    def _paths(self) -> list[str]:
        found = []
        for folder, folders, files in os.walk(self.root):
            folders[:] = sorted(name for name in folders if name not in _NOT_OURS)
            base = Path(folder).relative_to(self.root)
            found += [(base / name).as_posix() for name in sorted(files)]
        return found

    def paths(self) -> Iterable[str]:
        return self._paths

    def read(self, path: str) -> bytes | None:
        full = self.root / path
        try:
            if full.is_symlink() or not full.is_file() or full.stat().st_size > MAX_BYTES:
                return None
            return full.read_bytes()
        except OSError:
            return None


@define(slots=False)
class GitTree:
    """Files of a commit or tree. Blobs are read many at a time."""

    repo: Repository
    tree: str
    _known: dict[str, bytes] = field(factory=dict)

    @cached_property
    def _entries(self) -> dict[str, str]:
        raw = self.repo.git("ls-tree", "-r", "-z", self.tree, text=False).data
        found = {}
        for entry in split_z(raw):
            head, _, path = entry.partition("\t")
            mode, kind, sha = head.split()
            if kind == "blob" and mode != "120000":
                found[path] = sha
        return found

    def paths(self) -> Iterable[str]:
        return self._entries

    def sha(self, path: str) -> str | None:
        return self._entries.get(path)

    def prefetch(self, paths: Iterable[str]) -> None:
        """Read many blobs with one process."""
        wanted = [
            sha for sha in {self._entries[p] for p in paths if p in self._entries} if sha not in self._known
        ]
        if not wanted:
            return
        data = self.repo.git("cat-file", "--batch", input="\n".join(wanted) + "\n", text=False).data
        at = 0
        while at < len(data):
            end = data.index(b"\n", at)
            words = data[at:end].split()
            at = end + 1
            if len(words) != 3:
                continue
            size = int(words[2])
            self._known[decode(words[0])] = data[at : at + size]
            at += size + 1

    def read(self, path: str) -> bytes | None:
        sha = self._entries.get(path)
        if sha is None:
            return None
        if sha not in self._known:
            self.prefetch([path])
        data = self._known.get(sha)
        return None if data is None or len(data) > MAX_BYTES else data


@define(slots=False)
class WorktreeTree:
    """The files of a repository as they are on disk: tracked ones, and new ones that are not ignored."""

    repo: Repository

    @cached_property
    def _files(self) -> FolderTree:
        return FolderTree(self.repo.root)

    @cached_property
    def _paths(self) -> frozenset[str]:
        raw = self.repo.git("ls-files", "-z", "--cached", "--others", "--exclude-standard", text=False).data
        return frozenset(path for path in split_z(raw) if (self.repo.root / path).is_file())

    def paths(self) -> Iterable[str]:
        return self._paths

    def read(self, path: str) -> bytes | None:
        return self._files.read(path) if path in self._paths else None

    def changed_since(self, tree: str) -> list[str]:
        """Paths that differ from a tree, as git sees them."""
        raw = self.repo.git("diff-index", "--name-only", "--no-renames", "-z", tree, text=False).data
        new = self.repo.git("ls-files", "-z", "--others", "--exclude-standard", text=False).data
        return sorted({*split_z(raw), *split_z(new)})


def changed_paths(before: Tree, after: Tree) -> list[str]:
    """Paths whose content differs, that are new or gone; sorted."""
    if isinstance(before, GitTree) and isinstance(after, GitTree):
        one, two = before._entries, after._entries
        changed = sorted(path for path in {*one, *two} if one.get(path) != two.get(path))
        before.prefetch(changed)
        after.prefetch(changed)
        return changed
    if isinstance(before, GitTree) and isinstance(after, WorktreeTree):
        changed = after.changed_since(before.tree)
        before.prefetch(changed)
        return [path for path in changed if before.read(path) != after.read(path)]
    old, new = set(before.paths()), set(after.paths())
    same = {path for path in old & new if before.read(path) == after.read(path)}
    return sorted((old | new) - same)

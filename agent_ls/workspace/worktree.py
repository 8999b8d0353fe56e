"""The session's own copy of the repository: a linked worktree outside the user's tree.

It is detached, so that the user can check the session's branch out at any time, and locked, so that
`git worktree prune` leaves it alone. Whatever a test run does to the files in it, `.git` included, git is
always told explicitly which repository it works on.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Literal

from attrs import frozen

from agent_ls.errors import UsageError
from agent_ls.workspace.git import GitError, Repository, encode, split_z
from agent_ls.workspace.ignored import IgnoredContent, bring
from agent_ls.workspace.removal import remove_tree
from agent_ls.workspace.snapshot import Listing, Snapshot, list_changes, store_changes

LOCK_REASON = "agent-ls session: removed by `agent-ls clean`"
_INDEX = "agent-ls.index"
_BROUGHT = "agent-ls.brought"

ChangeStatus = Literal["added", "modified", "deleted", "renamed", "typechange"]
_STATUS: dict[str, ChangeStatus] = {
    "A": "added", "C": "added", "M": "modified", "D": "deleted", "R": "renamed", "T": "typechange",
}  # fmt: skip


@frozen
class Change:
    """One file that differs between two trees; `old_path` only when it was renamed."""

    path: str
    status: ChangeStatus
    old_path: str | None = None


class Worktree:
    """A worktree at `path`, detached at the commit `base`.

    Trees are the currency: `write_tree` turns the files into one, `reset_to` the files back into it.
    """

    def __init__(self, repo: Repository, path: Path, base: str, admin: Path) -> None:
        self.path = path
        self.base = base
        self._user = repo
        self._admin = admin
        self._repo = Repository.at(path, admin, repo.common_dir)
        self._env = {"GIT_INDEX_FILE": str(admin / _INDEX)}

    @classmethod
    def create(cls, repo: Repository, snapshot: Snapshot, path: Path) -> Worktree:
        """A new worktree with the files of `snapshot` at `path`, which must be free or an empty directory.

        Raises UsageError when it is not, or when it would lie inside the repository's tree or around it.
        """
        return cls._create(repo, snapshot.commit, path)

    @classmethod
    def _create(cls, repo: Repository, base: str, path: Path) -> Worktree:
        path = _outside(repo, path)
        if path.is_symlink() or (path.exists() and (not path.is_dir() or any(path.iterdir()))):
            raise UsageError(f"{path} exists already", "Choose another state directory or session.")
        path.parent.mkdir(parents=True, exist_ok=True)
        repo.git("worktree", "add", "--detach", "--no-checkout", "--lock", str(path), base)
        admin = _find_admin(repo, path)
        if admin is None:
            raise GitError(f"git made no worktree at {path}")
        (admin / "locked").write_text(LOCK_REASON + "\n", encoding="utf-8")
        tree = cls(repo, path, base, admin)
        tree._populate(base)
        return tree

    @classmethod
    def attach(cls, repo: Repository, path: Path, base: str) -> Worktree:
        """The worktree that `create` made at `path`; made anew at `base` where it is missing or damaged."""
        path = _outside(repo, path)
        admin = _find_admin(repo, path)
        if admin is not None and path.is_dir() and not path.is_symlink() and (admin / "HEAD").is_file():
            tree = cls(repo, path, base, admin)
            if tree._usable():
                tree._restore_link()
                return tree
        cls.discard(repo, path)
        return cls._create(repo, repo.resolve(base), path)

    @classmethod
    def discard(cls, repo: Repository, path: Path) -> None:
        """Remove whatever is left of a worktree at `path`, and git's record of it. Never fails on absence."""
        path = _outside(repo, path)
        remove_tree(path)
        while (admin := _find_admin(repo, path)) is not None:
            remove_tree(admin)
        # git itself removes the directory with the last worktree
        try:
            (repo.common_dir / "worktrees").rmdir()
        except OSError:
            pass

    def remove(self) -> None:
        """Delete the files and git's record of the worktree, whatever state they are in. Repeatable."""
        type(self).discard(self._user, self.path)

    def write_tree(self) -> str:
        """The files as a tree: tracked ones and new ones that are not ignored, secret-looking or huge.

        Submodules stay as they are in the base, whatever lies in their directories.
        """
        self._require()
        store_changes(self._repo, self._env, self._changes())
        return self._repo.git("write-tree", "--missing-ok", env=self._env).stdout.strip()

    def left_out(self) -> tuple[tuple[str, str], ...]:
        """(path, reason) of the files that `write_tree` does not store although they are not ignored."""
        return self._changes().left_out

    def reset_to(self, tree: str) -> None:
        """Make the files equal to `tree`: changes are undone, files that it lacks removed unless ignored."""
        self._require()
        listing = self._changes()
        for path, _ in listing.left_out:
            remove_tree(self.path / path.rstrip("/"))
        store_changes(self._repo, self._env, listing)
        self._repo.git("read-tree", "--reset", "-u", tree, env=self._env)
        self._restore_link()

    def diff(self, old_tree: str, new_tree: str) -> str:
        """Unified diff between two trees, with `a/` and `b/`, renames found, binary files included.

        Text is UTF-8 with `surrogateescape` for bytes in other encodings.
        """
        return self._repo.git(
            "diff-tree", "-r", "-p", "--binary", "--full-index", "-M", "-l400", "-U3", "--no-color",
            "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/", "--submodule=short",
            "--ignore-submodules=none", "--diff-algorithm=myers", "--no-relative", f"-O{os.devnull}",
            old_tree, new_tree,
        ).stdout  # fmt: skip

    def changed_files(self, old_tree: str, new_tree: str) -> list[Change]:
        """The files that differ between two trees, by path."""
        raw = self._repo.git("diff-tree", "-r", "-z", "--name-status", "-M", "-l400", "--no-ext-diff",
                             "--ignore-submodules=none", "--no-relative", f"-O{os.devnull}",
                             old_tree, new_tree, text=False)  # fmt: skip
        fields = iter(split_z(raw.data))
        changes: list[Change] = []
        for status in fields:
            first = next(fields)
            if status[0] == "R":
                changes.append(Change(next(fields), "renamed", first))
            else:
                changes.append(Change(first, _STATUS.get(status[0], "modified")))
        return sorted(changes, key=lambda change: change.path)

    def read_blob(self, tree: str, path: str) -> bytes | None:
        """The content of a file in a tree (a symbolic link's target); None for anything else."""
        raw = self._repo.git("ls-tree", "-z", "--full-tree", tree, "--", path, text=False)
        for entry in split_z(raw.data):
            meta, name = entry.split("\t", 1)
            _, kind, sha = meta.split()
            if name == path and kind == "blob":
                return self._repo.git("cat-file", "blob", sha, text=False).data
        return None

    def commit(self, tree: str, message: str, parent: str) -> str:
        """A commit of `tree` on `parent` by the user's identity. No branch moves; see `Repository`."""
        return self._user.commit_tree(tree, message, parent)

    def note_brought(self, content: IgnoredContent) -> None:
        """Remember what was brought: never part of a tree, even if a later state does not ignore it."""
        bound = [folder.relative_to(self._user.root).as_posix() + "/" for folder in content.readonly]
        paths = sorted({*content.copied, *bound})
        (self._admin / _BROUGHT).write_bytes(b"".join(encode(path) + b"\0" for path in paths))

    def _brought(self) -> tuple[str, ...]:
        try:
            return tuple(split_z((self._admin / _BROUGHT).read_bytes()))
        except FileNotFoundError:
            return ()

    def _changes(self) -> Listing:
        files = set(self._brought())
        folders = tuple(path for path in files if path.endswith("/"))
        return list_changes(
            self._repo, self._env, gitlinks=False,
            skip=lambda path: path in files or path.startswith(folders),
        )  # fmt: skip

    def _populate(self, base: str) -> None:
        self._repo.git("read-tree", "--reset", "-u", base)
        shutil.copy2(self._admin / "index", self._admin / _INDEX)

    def _usable(self) -> bool:
        """Can git list the files with our index?"""
        if not (self._admin / _INDEX).is_file():
            return False
        return self._repo.git("ls-files", "-z", env=self._env, check=False).returncode == 0

    def _require(self) -> None:
        if self.path.is_symlink() or not self.path.is_dir():
            raise GitError(f"the worktree {self.path} is gone", "`agent-ls resume` makes it anew.")

    def _restore_link(self) -> None:
        """Put `.git` back as git wrote it, in case a test run damaged it."""
        link = self.path / ".git"
        wanted = f"gitdir: {self._admin}\n".encode(errors="surrogateescape")
        if link.is_symlink() or not link.is_file() or link.read_bytes() != wanted:
            remove_tree(link)
            link.write_bytes(wanted)


def bring_ignored(repo: Repository, worktree: Worktree) -> IgnoredContent:
    """Bring ignored content that tests may need, and submodules, from the user's tree; see `ignored`.

    What is copied never becomes part of a tree, and `reset_to` leaves it alone.
    """
    content = bring(repo, worktree.path)
    worktree.note_brought(content)
    return content


def _outside(repo: Repository, path: Path) -> Path:
    """`path` with its directory resolved. Raises UsageError when it is in or around the user's tree."""
    path = path.absolute()
    path = path.parent.resolve() / path.name
    for place in (repo.root, repo.common_dir, repo.git_dir):
        if path == place or path.is_relative_to(place) or place.is_relative_to(path):
            raise UsageError(
                f"the worktree {path} would lie inside the repository {repo.root}",
                "Move the state directory (AGENT_LS_STATE_DIR) out of it.",
            )
    return path


def _find_admin(repo: Repository, path: Path) -> Path | None:
    """git's own directory for the worktree at `path`, found by the path written in it."""
    link = os.fsencode(path / ".git")
    for entry in sorted((repo.common_dir / "worktrees").glob("*/gitdir")):
        try:
            if entry.read_bytes().removesuffix(b"\n") == link:
                return entry.parent
        except OSError:
            continue
    return None

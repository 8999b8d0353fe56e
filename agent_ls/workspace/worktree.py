"""The session's own copy of the repository: a linked worktree outside the user's tree.

It is detached, so that the user can check the session's branch out at any time, and locked, so that
`git worktree prune` leaves it alone. Whatever a test run does to the files in it, `.git` included, git is
always told explicitly which repository it works on.
"""

from __future__ import annotations

import contextlib
import filecmp
import glob
import os
import shutil
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from attrs import frozen

from agent_ls.cancel import CancelToken
from agent_ls.errors import UsageError
from agent_ls.workspace.git import GitError, Repository, encode, split_z
from agent_ls.workspace.ignored import IgnoredContent, bring
from agent_ls.workspace.removal import remove_tree
from agent_ls.workspace.snapshot import Listing, Snapshot, list_changes, store_changes

LOCK_REASON = "agent-ls session: removed by `agent-ls clean`"
_INDEX = "agent-ls.index"
_BROUGHT = "agent-ls.brought"
_PLAIN = "agent-ls.plain"
_HIDDEN = "agent-ls.hidden"
_BEGINNING_S = 600.0

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
    One process works on a worktree at a time; within it, calls from several threads take turns.
    """

    def __init__(self, repo: Repository, path: Path, base: str, admin: Path) -> None:
        self.path = path
        self.base = base
        self._user = repo
        self._admin = admin
        # sparse only while it is populated: what is edited later counts wherever it lies
        self._repo = Repository.at(path, admin, repo.common_dir).with_setting("core.sparseCheckout", "false")
        self._lock = threading.Lock()
        self._env = {"GIT_INDEX_FILE": str(admin / _INDEX)}

    @classmethod
    def create(
        cls, repo: Repository, snapshot: Snapshot, path: Path, cancel: CancelToken | None = None
    ) -> Worktree:
        """A new worktree with the files of `snapshot` at `path`, which must be free or an empty directory.

        Raises UsageError when it is not, or when it would lie inside the repository's tree or around it, and
        Cancelled (`discard` removes what was begun).
        """
        return cls._create(repo, snapshot.commit, path, cancel)

    @classmethod
    def _create(cls, repo: Repository, base: str, path: Path, cancel: CancelToken | None = None) -> Worktree:
        path = _outside(repo, path)
        if path.is_symlink() or (path.exists() and (not path.is_dir() or any(path.iterdir()))):
            raise UsageError(f"{path} exists already", "Choose another state directory or session.")
        path.parent.mkdir(parents=True, exist_ok=True)
        _add(repo.until(cancel), path, base)
        admin = _find_admin(repo, path)
        if admin is None:
            raise GitError(f"git made no worktree at {path}")
        (admin / "locked").write_text(LOCK_REASON + "\n", encoding="utf-8")
        tree = cls(repo, path, base, admin)
        tree._populate(base, cancel)
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
    def discard(cls, repo: Repository, path: Path, within: float | None = None) -> bool:
        """Remove whatever is left of a worktree at `path`, and git's record of it. Never fails on absence.

        With `within` (seconds), False when not all files could be removed in time; a later call does.
        """
        path = _outside(repo, path)
        if not remove_tree(path, within):
            return False
        while (admin := _find_admin(repo, path)) is not None:
            remove_tree(admin)
        _remove_beginnings(repo, path)
        # git itself removes the directory with the last worktree
        try:
            (repo.common_dir / "worktrees").rmdir()
        except OSError:
            pass
        return True

    def remove(self, within: float | None = None) -> bool:
        """Delete the files and git's record of the worktree, whatever state they are in. Repeatable; see
        `discard`."""
        return type(self).discard(self._user, self.path, within)

    def write_tree(self, changed: Iterable[str] | None = None) -> str:
        """The files as a tree: tracked ones and new ones that are not ignored, secret-looking or huge.

        Submodules stay as they are in the base, whatever lies in their directories. `changed` are the only
        files that may differ from the last tree written (or reset to): where that is known, an eighth of the
        time does.
        """
        with self._owned():
            if changed is not None and self._store_known(list(changed)):
                return self._repo.git("write-tree", "--missing-ok", env=self._env).stdout.strip()
            store_changes(self._repo, self._env, self._changes())
            return self._repo.git("write-tree", "--missing-ok", env=self._env).stdout.strip()

    def _store_known(self, paths: list[str]) -> bool:
        """Bring our index up to date with some files. False, and nothing done, when one of them needs the
        rules for what is stored: a new file, a folder, anything behind a filter or a link."""
        special = (
            self._repo.filters or self._noted(_HIDDEN) or (self._admin / "info/sparse-checkout").exists()
        )
        if special or not all(self._is_plain(path) for path in paths):
            return False
        if not paths:
            return True
        # Without --add it refuses files that are not tracked, and then stores nothing at all.
        done = self._repo.git(
            "update-index", "--remove", "-z", "--stdin", env=self._env, input=_z(paths), check=False
        )
        return done.returncode == 0

    def _is_plain(self, path: str) -> bool:
        """A regular file that can be read, or none, and not behind a link."""
        parts = path.split("/")
        if not path or "\0" in path or not {"", ".", "..", ".git"}.isdisjoint(parts):
            return False
        folder = self.path
        for part in parts[:-1]:
            folder = folder / part
            if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
                return False
        place = folder / parts[-1]
        if not os.path.lexists(place):
            return True
        return place.is_file() and not place.is_symlink() and os.access(place, os.R_OK)

    def remove_unstored(self) -> list[str]:
        """Remove the files that `write_tree` does not store (ignored, secret-looking, huge) and that were not
        brought from the user's tree. Returns their paths: what is tested next is what a commit would hold.
        """
        with self._owned():
            brought = self._noted(_BROUGHT)
            folders = tuple(path for path in brought if path.endswith("/"))
            raw = self._repo.git("ls-files", "-z", "--others", "--ignored", "--exclude-standard",
                                 "--directory", "--no-empty-directory", env=self._env,
                                 text=False)  # fmt: skip
            listing = self._changes()
            unstored = [
                path for path, _ in listing.left_out if path not in self._blobs(self._repo, self._env)
            ]
            removed = []
            for path in (*split_z(raw.data), *unstored):
                kept = path in brought or path.startswith(folders)
                if kept or any(name.startswith(path.rstrip("/") + "/") for name in brought):
                    continue
                remove_tree(self.path / path.rstrip("/"))
                removed.append(path)
            return removed

    def would_store(self, path: str, *, tracked: bool) -> bool:
        """Would `write_tree` hold a change of the file at `path`? `tracked`: it is in the base tree.

        Not so for what git ignores, what was brought (submodules too) and what lies behind a filter.
        """
        brought = self._noted(_BROUGHT)
        folders = tuple(entry for entry in brought if entry.endswith("/"))
        if path in brought or path.startswith(folders) or path in self._noted(_HIDDEN):
            return False
        if tracked:
            return True
        env = {**self._env, "GIT_LITERAL_PATHSPECS": "0"}  # which this command does not know
        return self._repo.git("check-ignore", "-q", "--", f"./{path}", env=env, check=False).returncode == 1

    def left_out(self) -> tuple[tuple[str, str], ...]:
        """(path, reason) of the files that `write_tree` does not store although they are not ignored."""
        return self._changes().left_out

    def reset_to(self, tree: str) -> None:
        """Make the files equal to `tree`: changes are undone, files that it lacks removed unless ignored."""
        with self._owned():
            listing = self._changes()
            for path, _ in listing.left_out:
                remove_tree(self.path / path.rstrip("/"))
            store_changes(self._repo, self._env, listing)
            self._repo.git("read-tree", "--reset", "-u", tree, env=self._env)
            self._show_hidden()
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
        if not path or "\0" in path or path.startswith("/") or ".." in path.split("/"):
            return None
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
        self._note(_BROUGHT, {*content.copied, *bound})

    def _note(self, name: str, paths: Iterable[str]) -> None:
        """Keep a list of paths beside git's record of the worktree, where no test run can change it."""
        (self._admin / name).write_bytes(b"".join(encode(path) + b"\0" for path in sorted(paths)))

    def _noted(self, name: str) -> frozenset[str]:
        try:
            return frozenset(split_z((self._admin / name).read_bytes()))
        except FileNotFoundError:
            return frozenset()

    def _changes(self) -> Listing:
        self._look_at_present()
        files = self._noted(_BROUGHT)
        folders = tuple(path for path in files if path.endswith("/"))
        return list_changes(
            self._repo, self._env, gitlinks=False, stored_plainly=self._noted(_PLAIN),
            skip=lambda path: path in files or path.startswith(folders),
        )  # fmt: skip

    def _populate(self, base: str, cancel: CancelToken | None) -> None:
        """Write the files of `base`, as sparsely as the user's tree."""
        sparse = Repository.at(self.path, self._admin, self._repo.common_dir).until(cancel)
        sparse.git("read-tree", "--reset", "-u", base)
        shutil.copy2(self._admin / "index", self._admin / _INDEX)
        self._show_present()
        self._show_filtered()

    def _sparse(self) -> list[str]:
        """The paths that our index holds but the files need not (the skip-worktree bit)."""
        raw = self._repo.git("ls-files", "-t", "-z", env=self._env, text=False)
        return [entry[2:] for entry in split_z(raw.data) if entry.startswith("S ")]

    def _look_at(self, paths: list[str]) -> None:
        if paths:
            self._repo.git(
                "update-index", "--no-skip-worktree", "-z", "--stdin", env=self._env, input=_z(paths)
            )

    def _look_at_present(self) -> None:
        """A file outside a sparse checkout that was written since counts like any other."""
        hidden = self._noted(_HIDDEN)
        self._look_at([path for path in self._sparse()
                       if path not in hidden and os.path.lexists(self.path / path)])  # fmt: skip

    def _show_present(self) -> None:
        """Write the files outside a sparse checkout that the user's tree holds nevertheless."""
        paths = [path for path in self._sparse() if os.path.lexists(self._user.root / path)]
        if paths:
            self._look_at(paths)
            self._repo.git("checkout-index", "-f", "-u", "-z", "--stdin", env=self._env, input=_z(paths))

    def _show_filtered(self) -> None:
        """Take files that git stores through a filter from the user's tree: we don't run filters.

        Such a file (a large one, an encrypted one) is hidden from our index, so it stays as it is in
        every tree. Where the filter changes nothing the file is treated like any other.
        """
        if not self._repo.filters:
            return
        ours, theirs = self._blobs(self._repo, self._env), self._blobs(self._user, {})
        plain: list[str] = []
        hidden: list[str] = []
        for path in sorted(self._repo.filtered(ours, self._env)):
            source, place = self._user.root / path, self.path / path
            if source.is_symlink() or not (source.is_file() and place.is_file()):
                continue
            if ours[path] != theirs.get(path):  # another version: its content is nowhere to be had
                continue
            if _same_content(source, place):
                plain.append(path)
            else:
                shutil.copy2(source, place)
                hidden.append(path)
        self._hide(hidden)
        self._note(_PLAIN, plain)
        self._note(_HIDDEN, hidden)

    def _show_hidden(self) -> None:
        """Put files behind a filter back where they are missing or no longer hidden from our index."""
        hidden = self._noted(_HIDDEN)
        if not hidden:
            return
        exposed = sorted(hidden & self._blobs(self._repo, self._env).keys() - set(self._sparse()))
        for path in exposed:
            remove_tree(self.path / path)
        self._hide(exposed)
        for path in sorted(hidden):
            self._show_again(path)

    def _hide(self, paths: list[str]) -> None:
        if paths:
            self._repo.git("update-index", "--skip-worktree", "-z", "--stdin", env=self._env, input=_z(paths))

    def _show_again(self, path: str) -> None:
        """Take a file behind a filter from the user's tree once more, if it is missing."""
        folder = self.path
        for part in path.split("/")[:-1]:
            folder = folder / part
            if folder.is_symlink() or not folder.is_dir():  # a link could lead outside
                remove_tree(folder)
                folder.mkdir()
        source, place = self._user.root / path, self.path / path
        if not os.path.lexists(place) and source.is_file() and not source.is_symlink():
            shutil.copy2(source, place)

    @staticmethod
    def _blobs(repo: Repository, env: dict[str, str]) -> dict[str, str]:
        """path -> id of the regular files in an index."""
        entries = split_z(repo.git("ls-files", "-s", "-z", env=env, text=False).data)
        pairs = (entry.split("\t", 1) for entry in entries if entry.startswith("100"))
        return {path: meta.split()[1] for meta, path in pairs}

    def _usable(self) -> bool:
        """Can git list the files with our index?"""
        if not (self._admin / _INDEX).is_file():
            return False
        return self._repo.git("ls-files", "-z", env=self._env, check=False).returncode == 0

    @contextlib.contextmanager
    def _owned(self) -> Iterator[None]:
        """One change of our index at a time; the lock file of a git that was killed is no obstacle."""
        with self._lock:
            if self.path.is_symlink() or not self.path.is_dir():
                raise GitError(f"the worktree {self.path} is gone", "`agent-ls resume` makes it anew.")
            (self._admin / f"{_INDEX}.lock").unlink(missing_ok=True)
            yield

    def _restore_link(self) -> None:
        """Put `.git` back as git wrote it, in case a test run damaged it."""
        link = self.path / ".git"
        wanted = f"gitdir: {self._admin}\n".encode(errors="surrogateescape")
        if link.is_symlink() or not link.is_file() or link.read_bytes() != wanted:
            remove_tree(link)
            link.write_bytes(wanted)


def bring_ignored(repo: Repository, worktree: Worktree, cancel: CancelToken | None = None) -> IgnoredContent:
    """Bring ignored content that tests may need, and submodules, from the user's tree; see `ignored`.

    What is copied never becomes part of a tree, and `reset_to` leaves it alone. Raises Cancelled.
    """
    content = bring(repo, worktree.path, cancel)
    worktree.note_brought(content)
    return content


def _same_content(one: Path, other: Path) -> bool:
    return one.stat().st_size == other.stat().st_size and filecmp.cmp(one, other, shallow=False)


def _z(paths: Iterable[str]) -> bytes:
    return b"".join(encode(path) + b"\0" for path in paths)


def _add(repo: Repository, path: Path, base: str) -> None:
    """`git worktree add`, again if another session just removed the directory of all worktrees."""
    for tries_left in (2, 1, 0):
        result = repo.git(
            "worktree", "add", "--detach", "--no-checkout", "--lock", str(path), base, check=tries_left == 0
        )
        if result.returncode == 0:
            return
        time.sleep(0.02)


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


def _remove_beginnings(repo: Repository, path: Path) -> None:
    """Remove records that a killed `git worktree add` began for `path`: locked, but without a location.

    Only old ones: a young one may belong to a command that is still running.
    """
    for entry in (repo.common_dir / "worktrees").glob(f"{glob.escape(path.name)}*"):
        with contextlib.suppress(OSError):
            young = time.time() - entry.stat().st_mtime < _BEGINNING_S
            if not young and (entry / "locked").exists() and not (entry / "gitdir").exists():
                remove_tree(entry)

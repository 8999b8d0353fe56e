"""The user's uncommitted work as a commit, made without writing anything of theirs.

A copy of the index is brought up to date with the working tree and written as a tree. `git add -A` would
do nearly the same, but it starts `git status` inside submodules (which may run their fsmonitor), stops at
the first file that can't be read, and takes secrets and huge files along.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from attrs import field, frozen

from agent_ls.errors import UsageError
from agent_ls.workspace.git import Repository, encode, split_z
from agent_ls.workspace.paths import is_secret_path

MAX_UNTRACKED_FILE = 50_000_000
"""Bytes; a larger untracked file is left out."""
MAX_UNTRACKED_BYTES = 500_000_000
MAX_UNTRACKED_FILES = 20_000
"""All untracked files together; beyond these the largest are left out."""

MESSAGE = "agent-ls: snapshot of uncommitted work"
_GITLINK = "160000"

# why a file is left out
SECRET = "looks like a file with secrets"
FILTERED = "git stores it through a filter, which agent-ls does not run"
UNREADABLE = "not readable"
NESTED = "a repository of its own"


@frozen
class Snapshot:
    """The state a session starts from: `commit` with `tree`, made at `head`.

    `dirty` means that `commit` is our own, on top of `head`, and holds uncommitted work. `left_out`
    are (path, reason) pairs of files that exist in the user's tree but not in `tree`.
    """

    commit: str
    head: str
    tree: str
    dirty: bool
    left_out: tuple[tuple[str, str], ...] = ()


@frozen
class Listing:
    """What differs between an index and the files: paths to store, paths to drop, and paths left out."""

    changed: tuple[str, ...]
    deleted: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...] = field(default=())


def take_snapshot(
    repo: Repository, scratch: Path, base: str | None, buffers: Mapping[str, bytes] | None = None
) -> Snapshot:
    """The commit to work on: `base` (a revision), or the working tree as it is (None or "worktree").

    Untracked files count unless ignored, secret-looking or huge. `buffers` are texts that an editor has not
    saved, by path: for files of the working tree they count, not what is on the disk. `scratch` is a
    directory outside the repository for a temporary index. Raises UsageError without a commit or for an
    unknown revision.
    """
    head = repo.head()
    if head is None:
        raise UsageError(
            f"{repo.root} has no commit yet",
            "Commit your files once (`git add -A && git commit`), then run agent-ls again.",
        )
    if base is not None and base != "worktree":
        commit = repo.resolve(base)
        return Snapshot(commit, head, repo.tree_of(commit), False)
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="snapshot-", dir=scratch) as folder:
        index = Path(folder) / "index"
        _copy_index(repo, index)
        env = {"GIT_INDEX_FILE": str(index)}
        added = _added_secrets(repo, env)
        remove_paths(repo, env, (path for path, _ in added))
        listing = list_changes(repo, env)
        store_changes(repo, env, listing)
        _store_buffers(repo, env, buffers or {})
        tree = repo.git("write-tree", "--missing-ok", env=env).stdout.strip()
    left_out = tuple(sorted({*added, *listing.left_out}))
    if tree == repo.tree_of(head):
        return Snapshot(head, head, tree, False, left_out)
    return Snapshot(repo.commit_tree(tree, MESSAGE, head), head, tree, True, left_out)


def _store_buffers(repo: Repository, env: dict[str, str], buffers: Mapping[str, bytes]) -> None:
    """Put unsaved texts of files that the index has into it (regular ones: not links, not submodules)."""
    for path, data in sorted(buffers.items()):
        entries = split_z(repo.git("ls-files", "--stage", "-z", "--", path, env=env, text=False).data)
        mode = entries[0].split(" ", 1)[0] if len(entries) == 1 and entries[0].endswith(f"\t{path}") else ""
        if mode not in ("100644", "100755") or repo.filtered([path], env):
            continue
        blob = repo.git("hash-object", "-w", "--stdin", "--path", path, env=env, input=data).stdout.strip()
        line = encode(f"{mode} {blob}\t{path}") + b"\0"
        repo.git("update-index", "-z", "--index-info", env=env, input=line)


def _copy_index(repo: Repository, index: Path) -> None:
    """Copy the index with its time stamp: git compares it with those of the files (the "racy" rule)."""
    try:
        shutil.copy2(repo.git_dir / "index", index)
    except FileNotFoundError:
        repo.git("read-tree", "HEAD", env={"GIT_INDEX_FILE": str(index)})


def _added_secrets(repo: Repository, env: dict[str, str]) -> list[tuple[str, str]]:
    """Secret-looking files that are staged but in no commit."""
    raw = repo.git("diff-index", "--cached", "--name-only", "-z", "--no-renames", "--diff-filter=A",
                   "--ignore-submodules=all", "HEAD", "--", env=env, text=False)  # fmt: skip
    return [(path, SECRET) for path in split_z(raw.data) if is_secret_path(path)]


def list_changes(
    repo: Repository,
    env: dict[str, str],
    *,
    gitlinks: bool = True,
    skip: Callable[[str], bool] = lambda path: False,
    stored_plainly: frozenset[str] = frozenset(),
) -> Listing:
    """Compare the index that `env` names with the files below `repo.root`. Writes nothing.

    Submodules count by the commit that is checked out in them, and not at all without `gitlinks`.
    Untracked paths for which `skip` is true are passed over silently. A file that git stores through a
    filter of the user's (large files, encryption) is left out unless it is known to be `stored_plainly`:
    the filter isn't run, and what should be encrypted must not get into a commit as it is.
    """
    changed: list[str] = []
    deleted: list[str] = []
    left_out: list[tuple[str, str]] = []
    raw = repo.git("diff-files", "--raw", "-z", "--no-renames", "--ignore-submodules=dirty", "--no-ext-diff",
                   env=env, text=False)  # fmt: skip
    entries = split_z(raw.data)
    seen: set[str] = set()
    for meta, path in zip(entries[::2], entries[1::2], strict=True):
        if path in seen or (not gitlinks and meta.startswith(":" + _GITLINK)):
            continue
        seen.add(path)
        try:
            status = _lstat(repo.root, path)
        except PermissionError:
            left_out.append((path, UNREADABLE))
            continue
        if status is None or (stat.S_ISDIR(status.st_mode) and not meta.startswith(":" + _GITLINK)):
            deleted.append(path)
        elif reason := _unusable(repo.root, path, status):
            left_out.append((path, reason))
        else:
            changed.append(path)
    raw = repo.git("ls-files", "-z", "--others", "--exclude-standard", env=env, text=False)
    untracked: list[tuple[int, str]] = []
    for path in split_z(raw.data):
        if skip(path):
            continue
        if path.endswith("/"):
            left_out.append((path, NESTED))
            continue
        try:
            status = _lstat(repo.root, path)
        except PermissionError:
            left_out.append((path, UNREADABLE))
            continue
        if status is None:
            continue
        if is_secret_path(path):
            left_out.append((path, SECRET))
        elif reason := _unusable(repo.root, path, status):
            left_out.append((path, reason))
        elif status.st_size > MAX_UNTRACKED_FILE:
            left_out.append((path, f"untracked and larger than {MAX_UNTRACKED_FILE // 1_000_000} MB"))
        else:
            untracked.append((status.st_size, path))
    total = 0
    for count, (size, path) in enumerate(sorted(untracked), 1):
        total += size
        if count > MAX_UNTRACKED_FILES or total > MAX_UNTRACKED_BYTES:
            left_out.append((path, "too much untracked content"))
        else:
            changed.append(path)
    if filtered := repo.filtered(changed, env) - stored_plainly:
        changed = [path for path in changed if path not in filtered]
        left_out += [(path, FILTERED) for path in sorted(filtered)]
    return Listing(tuple(changed), tuple(deleted), tuple(left_out))


def _lstat(root: Path, path: str) -> os.stat_result | None:
    """The file itself; None when it is missing or lies behind a symbolic link. Raises PermissionError."""
    folder = root
    for part in path.split("/")[:-1]:
        folder = folder / part
        if folder.is_symlink():
            return None
    try:
        return (root / path).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _unusable(root: Path, path: str, status: os.stat_result) -> str | None:
    if stat.S_ISLNK(status.st_mode):
        return None
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return "not a regular file"
    return None if os.access(root / path, os.R_OK) else UNREADABLE


def store_changes(repo: Repository, env: dict[str, str], listing: Listing) -> None:
    """Bring the index that `env` names up to date with `listing`, storing contents as git objects."""
    remove_paths(repo, env, listing.deleted)
    if listing.changed:
        repo.git("update-index", "--add", "--remove", "--replace", "-z", "--stdin", env=env,
                 input=_z(listing.changed))  # fmt: skip


def remove_paths(repo: Repository, env: dict[str, str], paths: Iterable[str]) -> None:
    """Drop the paths from the index that `env` names."""
    if data := _z(paths):
        repo.git("update-index", "--force-remove", "-z", "--stdin", env=env, input=data)


def _z(paths: Iterable[str]) -> bytes:
    return b"".join(encode(path) + b"\0" for path in paths)

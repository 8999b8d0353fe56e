"""A damaged repository: the cause and the remedy instead of git's own words, and nothing is left behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from git_kit import git, start

from agent_ls.errors import UsageError
from agent_ls.verdict import Verdict
from agent_ls.workspace.git import GitResult, Repository, _failure
from agent_ls.workspace.snapshot import take_snapshot
from agent_ls.workspace.worktree import Worktree


def _object(root: Path, rev: str) -> Path:
    sha = git(root, "rev-parse", rev).strip()
    path = root / ".git/objects" / sha[:2] / sha[2:]
    path.chmod(0o644)
    return path


def _spoil(rev: str) -> Callable[[Path], object]:
    return lambda root: _object(root, rev).write_bytes(b"garbage")


def _lose(rev: str) -> Callable[[Path], object]:
    return lambda root: _object(root, rev).unlink()


def _index(content: bytes) -> Callable[[Path], object]:
    return lambda root: (root / ".git/index").write_bytes(content)


def _head(root: Path) -> None:
    (root / ".git/refs/heads/main").write_text("0123456789" * 4 + "\n")


@pytest.mark.parametrize(
    ("damage", "cause", "remedy"),
    [
        (_spoil("HEAD:app.py"), "can't read some of its objects", "git fsck"),
        (_lose("HEAD:app.py"), "can't read some of its objects", "git fsck"),
        (_spoil("HEAD^{tree}"), "can't read some of its objects", "git fsck"),
        (_spoil("HEAD"), "its current commit .* can't be read", "git fsck"),
        (_head, "its current commit 0123456789.* can't be read", "git fsck"),
        (_index(b"DIRC garbage"), "the index of .* is damaged", "git reset"),
        (_index(b""), "the index of .* is damaged", "git reset"),
    ],
    ids=[
        "spoilt file",
        "lost file",
        "spoilt tree",
        "spoilt commit",
        "lost commit",
        "bad index",
        "empty index",
    ],
)
def test_damage_is_named_with_a_remedy(
    damage: Callable[[Path], object], cause: str, remedy: str, root: Path, work: Path
) -> None:
    repo = Repository.discover(start(root))
    damage(root)
    with pytest.raises(UsageError, match=cause) as caught:
        Worktree.create(repo, take_snapshot(repo, work / "scratch", None), work / "tree")
    assert str(root) in caught.value.message
    assert remedy in (caught.value.remedy or "")
    Worktree.discard(repo, work / "tree")
    assert not (root / ".git/worktrees").exists()


@pytest.mark.parametrize(
    ("said", "cause", "verdict"),
    [
        ("error: unable to write loose object file: No space left on device",
         "could not write", Verdict.ERROR),
        ("error: insufficient permission for adding an object to repository database .git/objects",
         "may not write", Verdict.USAGE),
        ("fatal: Unable to create '/r/.git/x.lock': Read-only file system", "may not write", Verdict.USAGE),
        ("fatal: something new", "git write-tree failed", Verdict.ERROR),
    ],
)  # fmt: skip
def test_other_causes(said: str, cause: str, verdict: Verdict, tmp_path: Path) -> None:
    error = _failure(tmp_path, "write-tree", GitResult("", said + "\n", 128, b""))
    assert cause in error.message
    assert said.split(": ", 1)[1] in error.message
    assert error.verdict is verdict
    assert (error.remedy is None) == ("new" in said)

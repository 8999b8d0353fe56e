"""`write_tree` told which files changed makes the same tree as one that looks at everything."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from git_kit import git, write

from agent_ls.workspace.git import Repository
from agent_ls.workspace.snapshot import take_snapshot
from agent_ls.workspace.worktree import Worktree

FILES = {"a.py": "a\n", "pkg/b.py": "b\n", "pkg/c.py": "c\n", "run.sh": "x\n", ".gitignore": "*.log\n"}


@pytest.fixture
def tree(tmp_path: Path) -> Worktree:
    top = tmp_path / "top"
    top.mkdir()
    git(top, "init", "-q", "-b", "main")
    write(top, {**FILES})
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", "first")
    repo = Repository.discover(top)
    return Worktree.create(repo, take_snapshot(repo, tmp_path / "scratch", None), tmp_path / "tree")


def link(root: Path) -> None:
    shutil.rmtree(root / "pkg")
    (root / "pkg").symlink_to("/etc")


def folder(root: Path) -> None:
    (root / "a.py").unlink()
    write(root, {"a.py/inner.py": "inner\n"})


CHANGES: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "nothing": (lambda root: None, []),
    "not really": (lambda root: write(root, {"a.py": "a\n"}), ["a.py"]),
    "edited": (lambda root: write(root, {"pkg/b.py": "other\n"}), ["pkg/b.py"]),
    "two edited": (
        lambda root: (write(root, {"a.py": "1\n"}), write(root, {"pkg/c.py": "2\n"})), ["a.py", "pkg/c.py"],
    ),
    "deleted": (lambda root: (root / "a.py").unlink(), ["a.py"]),
    "folder deleted": (lambda root: shutil.rmtree(root / "pkg"), ["pkg/b.py", "pkg/c.py"]),
    "mode": (lambda root: (root / "run.sh").chmod(0o755), ["run.sh"]),
    "new": (lambda root: (write(root, {"new.py": "n\n"}), write(root, {"a.py": "1\n"})), ["a.py", "new.py"]),
    "ignored": (lambda root: write(root, {"out.log": "n\n"}), ["out.log"]),
    "secret": (lambda root: write(root, {".env": "KEY=1\n"}), [".env"]),
    "never there": (lambda root: None, ["gone.py", "pkg/gone.py"]),
    "behind a link": (link, ["pkg/b.py", "pkg/c.py"]),
    "a folder in its place": (folder, ["a.py", "a.py/inner.py"]),
    "a link": (lambda root: ((root / "a.py").unlink(), (root / "a.py").symlink_to("run.sh")), ["a.py"]),
    "rules": (lambda root: write(root, {".gitignore": "*.txt\n"}), [".gitignore"]),
    "odd paths": (lambda root: write(root, {"a.py": "1\n"}), ["../a.py", "/etc/passwd", "a.py", ".git"]),
}  # fmt: skip


@pytest.mark.parametrize(("change", "paths"), CHANGES.values(), ids=CHANGES.keys())
def test_same_tree(tree: Worktree, change: Callable[[Path], object], paths: list[str]) -> None:
    before = tree.write_tree()
    change(tree.path)
    known = tree.write_tree(paths)
    assert known == tree.write_tree()
    tree.reset_to(before)
    assert tree.write_tree([]) == before == tree.write_tree()


def test_files_that_are_not_named_are_not_looked_at(tree: Worktree) -> None:
    """So that naming too few shows: it is the caller's promise."""
    before = tree.write_tree()
    write(tree.path, {"a.py": "1\n"})
    assert tree.write_tree(["pkg/b.py"]) == before
    assert tree.write_tree(["a.py"]) == tree.write_tree() != before

"""A stop reaches git in the middle of its work, and a hasty removal leaves what a later one finishes."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from git_kit import clean, difference, dirty, fingerprint, write

from agent_ls.cancel import CancelToken
from agent_ls.errors import Cancelled
from agent_ls.workspace.git import Repository
from agent_ls.workspace.removal import remove_tree
from agent_ls.workspace.snapshot import take_snapshot
from agent_ls.workspace.worktree import Worktree, bring_ignored

WRAPPER = """#!/bin/sh
for word; do
    if [ "$word" = "{command}" ]; then echo $$ > {mark}.new; mv {mark}.new {mark}; exec sleep 600; fi
done
exec {git} "$@"
"""


def hang_at(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make git hang at `command`; the returned file has its pid as soon as it does."""
    mark = folder / "hangs"
    program = shutil.which("git")
    write(folder, {"bin/git": WRAPPER.format(command=command, mark=mark, git=program)})
    (folder / "bin/git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return mark


@pytest.mark.parametrize("command", ["diff-files", "update-index", "worktree", "read-tree", "--ignored"])
def test_a_stop_ends_a_git_that_takes_long(
    command: str, root: Path, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = Repository.discover(dirty(root))
    before = fingerprint(root)
    token = CancelToken()
    mark = hang_at(command, tmp_path, monkeypatch)

    def stop_when_it_hangs() -> None:
        while not mark.exists():
            time.sleep(0.01)
        token.cancel()

    thread = threading.Thread(target=stop_when_it_hangs, daemon=True)
    thread.start()
    with pytest.raises(Cancelled):
        snapshot = take_snapshot(repo.until(token), work / "scratch", None)
        tree = Worktree.create(repo, snapshot, work / "tree", token)
        bring_ignored(repo, tree, token)
    thread.join()
    assert not psutil.pid_exists(int(mark.read_text()))
    assert Worktree.discard(repo, work / "tree")
    assert difference(before, fingerprint(root)) == {}


def test_a_hasty_removal_is_finished_later(root: Path, work: Path) -> None:
    repo = Repository.discover(clean(root))
    before = fingerprint(root)
    tree = Worktree.create(repo, take_snapshot(repo, work / "scratch", None), work / "tree")
    assert tree.remove(within=-1.0) is False
    assert tree.path.is_dir()
    assert tree.remove() is True
    assert not tree.path.exists()
    assert difference(before, fingerprint(root)) == {}


def _deep(top: Path) -> None:
    """Folders in folders, so deep that no path reaches the innermost."""
    here = Path.cwd()
    top.mkdir()
    os.chdir(top)
    try:
        for _ in range(60):
            Path("d" * 200).mkdir()
            os.chdir("d" * 200)
            Path("file").write_text("")
    finally:
        os.chdir(here)


def _many(top: Path) -> None:
    for number in range(40):
        write(top, {f"{number}/{name}": "" for name in range(50)})


def _shut(top: Path) -> None:
    write(top, {"a/b/file": ""})
    for folder in ("a/b", "a"):
        (top / folder).chmod(0)


@pytest.mark.parametrize("make", [_deep, _many, _shut])
def test_any_tree_can_be_removed(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "top")
    assert remove_tree(tmp_path / "top")
    assert not (tmp_path / "top").exists()

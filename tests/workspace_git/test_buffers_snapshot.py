"""What an editor has not saved is part of the snapshot, and of nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_kit import CASES, difference, fingerprint, git, write

from agent_ls.workspace.git import Repository
from agent_ls.workspace.snapshot import take_snapshot


@pytest.mark.parametrize("name", CASES)
def test_unsaved_text_counts_and_the_repository_stays(name: str, root: Path, work: Path) -> None:
    repo = Repository.discover(CASES[name].build(root))
    path = next(line for line in git(repo.root, "ls-tree", "-r", "--name-only", "HEAD").splitlines()
                if line.endswith(".py") and (repo.root / line).is_file())  # fmt: skip
    before = fingerprint(repo.root)
    plain = take_snapshot(repo, work / "scratch", None)
    buffered = take_snapshot(repo, work / "scratch", None, {path: b"unsaved = 1\n", "no/such.py": b"x\n"})
    assert difference(before, fingerprint(repo.root)) == {}
    changed = repo.git("diff-tree", "-r", "--name-only", plain.tree, buffered.tree).stdout.split()
    assert changed == [path]
    assert repo.git("cat-file", "blob", f"{buffered.tree}:{path}").stdout == "unsaved = 1\n"
    assert buffered.dirty
    assert plain.head == buffered.head


@pytest.mark.parametrize("name", ["odd [name].py", "sp ace.py", "ümlaut.py", "*.py", ":(top).py"])
def test_odd_names(name: str, root: Path, work: Path) -> None:
    repo = Repository.discover(CASES["clean"].build(root))
    write(repo.root, {name: "saved = 1\n"})
    snapshot = take_snapshot(repo, work / "scratch", None, {name: b"unsaved = 1\n"})
    entries = repo.git("ls-tree", "-r", "-z", snapshot.tree).stdout.split("\0")
    blob = next(line.split()[2] for line in entries if line.endswith(f"\t{name}"))
    assert repo.git("cat-file", "blob", blob).stdout == "unsaved = 1\n"


def test_links_ignored_and_secret_files_keep_their_own(root: Path, work: Path) -> None:
    repo = Repository.discover(CASES["clean"].build(root))
    write(repo.root, {".gitignore": "ignored.py\n", "ignored.py": "a\n", ".env": "KEY=1\n"})
    (repo.root / "link.py").symlink_to("app.py")
    given = dict.fromkeys(("ignored.py", ".env", "link.py"), b"unsaved\n")
    plain = take_snapshot(repo, work / "scratch", None)
    assert take_snapshot(repo, work / "scratch", None, given).tree == plain.tree

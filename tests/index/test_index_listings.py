"""An index that need not ask git again sees all the same whatever changes the list of files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from store_kit import everything, fresh, function, git, make_repo, write

from agent_ls.workspace.index import roles, scan
from agent_ls.workspace.index.index import Index, open_index

FILES = {
    "a.py": function("alpha"),
    "pkg/b.py": function("beta"),
    "pkg/deep/c.py": function("gamma"),
    "ignored/tracked.py": function("tracked"),
    ".gitignore": "/ignored/\n*.log\n/build/\n!keep.log\n",
    "pkg/.gitignore": "local.py\n",
    "other/d.py": function("delta"),
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Grows with every listing that git is asked for."""
    found: list[Path] = []
    real = scan.list_files

    def counting(root: Path, *rest: object) -> scan.Listing:
        found.append(root)
        return real(root, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(scan, "list_files", counting)
    return found


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = make_repo(tmp_path / "repo", {".gitignore": ""})
    write(root, FILES)
    git(root, "add", "-Af")
    git(root, "commit", "-qm", "all")
    write(root, {"logs/only.log": "x", "build/out.py": "x = 1\n", "untracked/e.py": function("epsilon")})
    (root / "empty/er").mkdir(parents=True)
    make_repo(root / "nested", {"n.py": "x = 1\n"})
    (root / "ignored/tracked.py").unlink()
    return root


def settle() -> None:
    """Wait until the file system's clock has moved on from the last change."""
    time.sleep(0.07)


def opened(repo: Path, tmp_path: Path) -> Index:
    return open_index(repo, cache_dir=tmp_path / "cache")


def xdg() -> Path:
    return Path(os.environ["XDG_CONFIG_HOME"])


CHANGES: dict[str, Callable[[Path], object]] = {
    "a file in the root": lambda root: write(root, {"new.py": "x = 1\n"}),
    "a file in an empty folder": lambda root: write(root, {"empty/er/new.py": "x = 1\n"}),
    "a file beside ignored ones": lambda root: write(root, {"logs/new.py": "x = 1\n"}),
    "a file in an untracked folder": lambda root: write(root, {"untracked/new.py": "x = 1\n"}),
    "a file in a new folder": lambda root: write(root, {"pkg/new/new.py": "x = 1\n"}),
    "a file taken back in": lambda root: write(root, {"logs/keep.log": "x\n"}),
    "a tracked file in an ignored folder": lambda root: write(root, {"ignored/tracked.py": "x = 2\n"}),
    "a rule more": lambda root: write(root, {".gitignore": FILES[".gitignore"] + "untracked/\n"}),
    "a rule less": lambda root: write(root, {".gitignore": "/ignored/\n/build/\n"}),
    "a rule below": lambda root: write(root, {"untracked/.gitignore": "*\n"}),
    "a rule file gone": lambda root: write(root, {"pkg/local.py": ""}) or (root / "pkg/.gitignore").unlink(),
    "a rule of the clone": lambda root: write(root, {".git/info/exclude": "untracked\n"}),
    "a rule of the user": lambda root: write(xdg(), {"git/ignore": "untracked\n"}),
    "rules set elsewhere": lambda root: write(root, {"build/rules": "untracked\n"}) or git(root, "config",
        "core.excludesFile", str(root / "build/rules")),
    "tracked no more": lambda root: git(root, "rm", "-q", "--cached", "ignored/tracked.py"),
    "an ignored file tracked": lambda root: git(root, "add", "-f", "build/out.py"),
    "a folder gone": lambda root: (root / "pkg").rename(root.parent / "elsewhere"),
    "a folder renamed": lambda root: (root / "pkg").rename(root / "renamed"),
    "a repository inside": lambda root: make_repo(root / "untracked", {}),
    "a repository inside no more": lambda root: (root / "nested/.git").rename(root.parent / "git"),
    "another branch": lambda root: git(root, "checkout", "-q", "-b", "x") or git(root, "rm", "-q", "a.py"),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_what_changes_the_list_is_seen(
    repo: Path, tmp_path: Path, asked: list[Path], change: Callable[[Path], object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    settle()
    with opened(repo, tmp_path) as index:
        index.refresh()
    with opened(repo, tmp_path) as index:
        before = everything(index)
        assert len(asked) == 1, "the second start need not ask"
        assert before == fresh(repo)
        change(repo)
        index.refresh()
        assert everything(index) == fresh(repo)
        settle()
        index.refresh()
        asked.clear()
        index.refresh()
        assert asked == []
        assert everything(index) == fresh(repo)


def test_an_index_written_anew_asks_once(repo: Path, tmp_path: Path, asked: list[Path]) -> None:
    settle()
    with opened(repo, tmp_path) as index:
        index.refresh()
        (repo / ".git/index").write_bytes((repo / ".git/index").read_bytes())
        settle()
        for _ in range(3):
            index.refresh()
        assert len(asked) == 2
        assert everything(index) == fresh(repo)


def test_linked_working_trees(repo: Path, tmp_path: Path, asked: list[Path]) -> None:
    git(repo, "worktree", "add", "-q", str(tmp_path / "tree"))
    settle()
    for _ in range(3):
        with opened(tmp_path / "tree", tmp_path) as index:
            index.refresh()
    assert len(asked) == 1
    write(tmp_path / "tree", {"new.py": "x = 1\n"})
    with opened(tmp_path / "tree", tmp_path) as index:
        assert everything(index) == fresh(tmp_path / "tree")


def test_a_part_of_a_repository_always_asks(repo: Path, tmp_path: Path, asked: list[Path]) -> None:
    settle()
    for _ in range(2):
        with opened(repo / "pkg", tmp_path) as index:
            index.refresh()
    assert len(asked) == 2
    write(repo, {".gitignore": "deep\n"})
    git(repo, "rm", "-q", "--cached", "pkg/deep/c.py")
    with opened(repo / "pkg", tmp_path) as index:
        index.refresh()
        assert everything(index) == fresh(repo / "pkg")
        assert index.view().file("deep/c.py") is None


def test_a_checkout_that_ends_while_git_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """git's word on what is unchanged counts only when it all comes from one and the same index."""
    names = [f"m{n}.py" for n in range(400)]
    root = make_repo(tmp_path / "repo", {name: function("old") for name in names})
    git(root, "checkout", "-qb", "other")
    write(root, {name: function("newer") for name in names})
    git(root, "commit", "-qam", "other")
    with opened(root, tmp_path) as index:
        index.refresh()
        git(root, "checkout", "-q", "main")
        index.refresh()
        settle()
        # A checkout in the middle: the files are written, git's index is not yet.
        write(root, {name: function("newer") for name in names})
        settle()
        real = scan.git_output
        ended: list[bool] = []

        def ending(root: Path, *arguments: str, **rest: object) -> bytes | None:
            if arguments[0] == "diff-files" and not ended:
                ended.append(True)
                git(root, "symbolic-ref", "HEAD", "refs/heads/other")
                git(root, "reset", "-q")
            return real(root, *arguments, **rest)  # type: ignore[arg-type]

        monkeypatch.setattr(scan, "git_output", ending)
        index.refresh()
        assert ended
        assert len(index.view().definitions("newer")) == 400
        assert everything(index) == fresh(root)


VENDORED = (
    "vendor vendored _vendor node_modules third_party third-party 3rdparty 3rd_party bower_components"
    " site-packages jspm_packages .venv venv .yarn Pods Carthage Godeps"
)
GENERATED = (
    "x_pb2.py x_pb2_grpc.pyi x.pb.go x.g.dart x.freezed.dart x_generated.h X.Designer.cs X.g.cs"
    " package-lock.json npm-shrinkwrap.json yarn.lock go.sum bun.lockb uv.lock"
)


@pytest.mark.parametrize(
    ("role", "paths"),
    [
        ("vendored", [f"a/{folder}/x.py" for folder in VENDORED.split()]),
        ("minified", ["a/x.min.js", "a/x-MIN.css", "x.bundle.js"]),
        ("generated", [f"a/{name}" for name in GENERATED.split()]),
        ("source", ["vendor.py", "party.py", "block.py", "a/bundle.py", "sum.py", "a.py"]),
    ],
)
def test_the_role_of_a_name(role: str, paths: list[str]) -> None:
    assert {path: roles.role_of(path, False, False) for path in paths} == dict.fromkeys(paths, role)


def test_a_plain_root_is_what_git_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_repo(tmp_path / "repository", {"a/b.py": "x = 1\n"})
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    (tmp_path / "link").symlink_to(root)
    assert scan.plain_root(root) == root.resolve()
    assert scan.plain_root(tmp_path / "link") == root.resolve()
    assert scan.plain_root(root / "a") is None
    assert scan.plain_root(tmp_path) is None
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    assert scan.plain_root(root) is None
    monkeypatch.delenv("GIT_DIR")
    with (root / ".git/config").open("a") as file:
        file.write("[core]\n\tworktree = ../elsewhere\n")
    assert scan.plain_root(root) is None

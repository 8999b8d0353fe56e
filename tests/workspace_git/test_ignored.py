"""What of the ignored content is copied, bound or left behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from git_kit import difference, fingerprint, git, start, write

from agent_ls.workspace import ignored
from agent_ls.workspace.git import Repository
from agent_ls.workspace.ignored import IgnoredContent
from agent_ls.workspace.snapshot import SECRET, take_snapshot
from agent_ls.workspace.worktree import Worktree, bring_ignored


def bring(root: Path, work: Path) -> tuple[IgnoredContent, Path]:
    repo = Repository.discover(root)
    before = fingerprint(root)
    snapshot = take_snapshot(repo, work / "scratch", None)
    tree = Worktree.create(repo, snapshot, work / "tree")
    content = bring_ignored(repo, tree)
    assert tree.write_tree() == snapshot.tree
    assert difference(before, fingerprint(root, tree.path)) == {}
    return content, tree.path


@pytest.mark.parametrize(
    ("files", "copied", "bound", "left_out"),
    [
        ({"pkg/_version.py": "v"}, ["pkg/_version.py"], [], {}),
        ({"pkg/fast.so": "so", "x.egg-info/PKG-INFO": "m"}, ["pkg/fast.so", "x.egg-info/"], [], {}),
        ({"build/lib/a.py": "a", "build/lib/__pycache__/a.pyc": "c"}, ["build/"], [], {}),
        ({".venv/pyvenv.cfg": "", ".venv/bin/python": "x"}, [], [".venv"], {}),
        ({"envs/py311/pyvenv.cfg": "", "envs/notes.txt": "n"}, ["envs/"], ["envs/py311"], {}),
        ({"conda/conda-meta/history": ""}, [], ["conda"], {}),
        ({"web/node_modules/a/index.js": "a", ".tox/py/x": "x", ".nox/x": ""}, [],
         [".nox", ".tox", "web/node_modules"], {}),
        ({"__pycache__/a.pyc": "", ".pytest_cache/x": "", ".mypy_cache/x": "", ".ruff_cache/x": "",
          ".hypothesis/x": "", "pkg/a.pyc": "", ".coverage": ""}, [], [], {}),
        ({".env": "TOKEN", "secrets/id_rsa": "k", "secrets/plain.txt": "p"}, ["secrets/"], [],
         {".env": SECRET, "secrets/id_rsa": SECRET}),
        ({"secrets/server.pem": "k"}, [], [], {"secrets/server.pem": SECRET}),
        ({"build/dep/.git/HEAD": "ref: refs/heads/x", "build/dep/a.py": "a"}, ["build/"], [], {}),
        ({"sp ace/ü\n.bin": "x"}, ["sp ace/"], [], {}),
    ],
)  # fmt: skip
def test_what_becomes_of_it(
    files: dict[str, str],
    copied: list[str],
    bound: list[str],
    left_out: dict[str, str],
    root: Path,
    work: Path,
) -> None:
    start(root)
    tops = {
        name.split("/")[0] if "/" in name and not name.startswith(("pkg/", "web/")) else name
        for name in files
    }
    tops = {"web/node_modules" if name.startswith("web/") else name for name in tops}
    lines = "".join("/" + top.replace("\n", "?").replace(" ", "\\ ") + "\n" for top in sorted(tops))
    write(root, {".gitignore": lines})
    git(root, "commit", "-qam", "ignore")
    write(root, files)
    content, tree = bring(root, work)
    assert list(content.copied) == copied
    assert list(content.readonly) == [root.resolve() / path for path in bound]
    assert dict(content.left_out) == left_out
    for path in bound:
        assert list((tree / path).iterdir()) == []
    for name, text in files.items():
        expected = (
            any(name == path or (path.endswith("/") and name.startswith(path)) for path in copied)
            and not any(name.startswith(path + "/") for path in bound)
            and name not in left_out
            and "__pycache__" not in name
            and "/.git/" not in name
        )
        assert (tree / name).exists() is expected, name
        if expected:
            assert (tree / name).read_text() == text
            assert (tree / name).stat().st_mtime_ns == (root / name).stat().st_mtime_ns
            assert (tree / name).stat().st_nlink == 1


def test_caps(root: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ignored, "MAX_COPIED_BYTES", 1000)
    monkeypatch.setattr(ignored, "MAX_COPIED_FILES", 10)
    start(root)
    write(root, {".gitignore": "/*\n!/app.py\n!/.gitignore\n"})
    git(root, "commit", "-qam", "ignore")
    write(root, {f"many/{number}": "" for number in range(11)})
    write(root, {"large/file": "x" * 1001, "medium/file": "x" * 600, "small/file": "x" * 500, "note": "n",
                 "big.bin": "x" * 900})  # fmt: skip
    content, tree = bring(root, work)
    assert content.copied == ("note", "small/")
    assert [path.name for path in content.readonly] == ["large", "many", "medium"]
    assert content.left_out == (("big.bin", "ignored, and too large to copy"),)
    assert (tree / "medium").is_dir() and not (tree / "medium/file").exists()


def test_links_and_special_files(root: Path, work: Path) -> None:
    start(root)
    write(root, {"build/real": "x", "build/tool": "#!"})
    (root / "build/tool").chmod(0o755)
    (root / "build/link").symlink_to("real")
    (root / "build/folder").symlink_to("/usr")
    (root / "build/dangling").symlink_to("nowhere")
    os.mkfifo(root / "build/fifo")
    content, tree = bring(root, work)
    assert content.left_out == (("build/fifo", "not a readable regular file"),)
    assert (tree / "build/link").readlink() == Path("real")
    assert (tree / "build/folder").is_symlink() and (tree / "build/dangling").is_symlink()
    assert os.access(tree / "build/tool", os.X_OK)


def test_nothing_of_the_base_is_overwritten_or_left(root: Path, work: Path) -> None:
    """The base may hold, under an ignored name, a file, a folder or a link that leads out."""
    start(root)
    outside = work / "outside"
    outside.mkdir()
    (root / "data").symlink_to(outside)
    write(root, {"_version.py": "committed\n"})
    git(root, "add", "-A", "-f")
    git(root, "commit", "-qm", "base")
    (root / "data").unlink()
    git(root, "rm", "-q", "--cached", "_version.py", "data")
    write(root, {".gitignore": "data\n_version.py\nvenv\n", "data/x": "x", "_version.py": "generated\n"})
    git(root, "add", "-A")
    git(root, "commit", "-qm", "ignored now")
    repo = Repository.discover(root)
    tree = Worktree.create(repo, take_snapshot(repo, work / "scratch", "HEAD~1"), work / "tree")
    content = bring_ignored(repo, tree)
    assert content.copied == ()
    assert (tree.path / "_version.py").read_text() == "committed\n"
    assert list(outside.iterdir()) == []


def test_nested_submodules(root: Path, work: Path) -> None:
    inner, outer = start(root.parent / "inner"), start(root.parent / "outer")
    start(root)
    allow = ("-c", "protocol.file.allow=always")
    git(outer, *allow, "submodule", "--quiet", "add", str(inner), "deps/inner")
    git(outer, "commit", "-qm", "inner")
    git(root, *allow, "submodule", "--quiet", "add", str(outer), "lib")
    git(root, *allow, "submodule", "--quiet", "update", "--init", "--recursive")
    git(root, "commit", "-qm", "outer")
    write(
        root, {"lib/deps/inner/.env": "TOKEN", "lib/deps/inner/new.py": "n", "lib/build/x": "ignored there"}
    )
    content, tree = bring(root, work)
    assert content.copied == ("lib/", "lib/deps/inner/")
    assert dict(content.left_out) == {"lib/deps/inner/.env": SECRET}
    assert (tree / "lib/deps/inner/new.py").exists() and (tree / "lib/deps/inner/app.py").exists()
    assert not list(tree.glob("lib/**/.git"))

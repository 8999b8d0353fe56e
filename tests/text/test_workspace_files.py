"""Workspace: listing, reading, and edits that fail on the way."""

from __future__ import annotations

import errno
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent_ls.errors import ToolRefused
from agent_ls.workspace import edits as edits_module
from agent_ls.workspace.edits import Create, Delete, Move, Replace, plan_edits
from agent_ls.workspace.files import Workspace
from agent_ls.workspace.paths import TEMPORARY_PREFIX
from agent_ls.workspace.text import write_atomic


def git(root: Path, *args: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *args], cwd=root, check=True
    )


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = tmp_path / "repo with ünïcode"
    root.mkdir()
    git(root, "init", "-q")
    for name, text in {
        "a.py": "x = 1\n",
        "sub/b.py": "y = 2\n",
        "sub/run.sh": "echo\n",
        "gone.py": "z\n",
        ".gitignore": "*.log\nbuild/\n",
        ".github/x.yml": "on: push\n",
        "new\nline.txt": "odd\n",
    }.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    (root / "sub/run.sh").chmod(0o755)
    git(root, "add", ".")
    git(root, "commit", "-qm", "start")
    (root / "gone.py").unlink()
    (root / "untracked.py").write_text("u\n")
    (root / "noise.log").write_text("l\n")
    (root / "build").mkdir()
    (root / "build/out.py").write_text("o\n")
    (root / f"{TEMPORARY_PREFIX}x").write_text("half")
    return root


def snapshot(root: Path) -> dict[str, tuple[bytes, int] | None]:
    return {
        path.relative_to(root).as_posix(): (path.read_bytes(), path.stat().st_mode)
        if path.is_file()
        else None
        for path in root.rglob("*")
        if ".git" not in path.relative_to(root).parts
    }


def test_a_listing_has_what_git_has_and_would_add(repo: Path) -> None:
    assert Workspace(repo).list() == [
        ".github/x.yml", ".gitignore", "a.py", "new\nline.txt", "sub/b.py", "sub/run.sh", "untracked.py",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("globs", "found"),
    [
        (["*.py"], ["a.py", "sub/b.py", "untracked.py"]),
        (["/*.py"], ["a.py", "untracked.py"]),
        (["sub/**"], ["sub/b.py", "sub/run.sh"]),
        (["*.py", "!sub/**"], ["a.py", "untracked.py"]),
        (["!*.py", "!.*", "!new*"], ["sub/run.sh"]),
        (["none"], []),
    ],
)
def test_globs(repo: Path, globs: list[str], found: list[str]) -> None:
    assert Workspace(repo).list(globs) == found


def test_a_bad_glob_is_refused(repo: Path) -> None:
    with pytest.raises(ToolRefused, match="not a valid glob"):
        Workspace(repo).list(["a\\"])


def test_a_listing_does_not_run_what_the_repository_configures(repo: Path, tmp_path: Path) -> None:
    git(repo, "config", "core.fsmonitor", f"touch '{tmp_path}/ran'; false")
    Workspace(repo).list()
    assert not (tmp_path / "ran").exists()


def test_a_listing_does_not_believe_git_variables(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", str(other))
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / "index"))
    assert "a.py" in Workspace(repo).list(["*.py"])


def test_other_repositories_inside_are_left_out(repo: Path) -> None:
    git(repo, "init", "-q", "inner")
    (repo / "inner/c.py").write_text("c\n")
    assert not [path for path in Workspace(repo).list() if path.startswith("inner")]


def test_without_git_all_files_are_listed(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.txt").touch()
    assert Workspace(tmp_path).list() == ["sub/a.txt"]


def test_a_large_binary_or_missing_file_is_refused(repo: Path) -> None:
    with (repo / "huge.txt").open("wb") as file:
        file.truncate(50_000_000)
    (repo / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    workspace = Workspace(repo)
    for rel, reason in (("huge.txt", "50.0 MB"), ("image.png", "binary"), ("none.py", "there is no file")):
        with pytest.raises(ToolRefused, match=reason):
            workspace.read(rel)
        with pytest.raises(ToolRefused, match=reason):
            workspace.apply([Replace(rel, "a", "b")])


def test_a_binary_file_can_be_moved_and_deleted(repo: Path) -> None:
    (repo / "image.png").write_bytes(b"\x89PNG\0")
    workspace = Workspace(repo)
    result = workspace.apply([Move("image.png", "img/a.png")])
    assert (repo / "img/a.png").read_bytes() == b"\x89PNG\0"
    assert "Binary files /dev/null and b/img/a.png differ" in result.diff
    workspace.apply([Delete("img/a.png")])
    assert not (repo / "img").exists()


def test_modes_stay(repo: Path) -> None:
    result = Workspace(repo).apply([Replace("sub/run.sh", "echo", "true"), Move("sub/run.sh", "run.sh")])
    assert (repo / "run.sh").stat().st_mode & 0o777 == 0o755
    assert "new file mode 100755" in result.diff


EDITS = [
    Replace("a.py", "x = 1", "x = 2"),
    Create("deep/er/new.py", "n = 1\n"),
    Move("sub/run.sh", "bin/run.sh"),
    Delete("sub/b.py"),
    Delete("untracked.py"),
]


@pytest.mark.parametrize("failing", [1, 2, 3])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_an_edit_that_fails_on_the_way_is_taken_back(
    repo: Path, monkeypatch: pytest.MonkeyPatch, failing: int, error: BaseException
) -> None:
    before = snapshot(repo)
    calls = 0

    def fails(*args: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise error
        write_atomic(*args)

    monkeypatch.setattr(edits_module, "write_atomic", fails)
    with pytest.raises(ToolRefused if isinstance(error, OSError) else KeyboardInterrupt) as caught:
        Workspace(repo).apply(EDITS)
    if isinstance(error, OSError):
        assert "taken back: No space left" in str(caught.value)
    assert snapshot(repo) == before


def test_what_can_not_be_taken_back_is_named(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(edits_module, "write_atomic", full)
    with pytest.raises(ToolRefused, match=r"could not be put back: a\.py"):
        Workspace(repo).apply([Replace("a.py", "x = 1", "x = 2")])


def test_the_same_edits_all_at_once(repo: Path) -> None:
    result = Workspace(repo).apply(EDITS)
    assert set(result.files) == {
        "a.py", "deep/er/new.py", "sub/run.sh", "bin/run.sh", "sub/b.py", "untracked.py",
    }  # fmt: skip
    assert not (repo / "sub").exists()
    assert (repo / "bin/run.sh").stat().st_mode & 0o777 == 0o755


def test_a_file_that_changed_meanwhile_is_not_overwritten(repo: Path) -> None:
    workspace = Workspace(repo)
    plan = plan_edits(workspace, [Replace("a.py", "x = 1", "x = 2"), Create("c.py", "")])
    (repo / "a.py").write_text("x = 1\nmine = True\n")
    with pytest.raises(ToolRefused, match=r"a\.py was changed"):
        plan.apply()
    assert (repo / "a.py").read_text() == "x = 1\nmine = True\n"
    assert not (repo / "c.py").exists()


def test_a_link_put_in_the_way_meanwhile_is_not_followed(repo: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim.py"
    victim.write_text("x = 1\n")
    plan = plan_edits(Workspace(repo), [Replace("a.py", "x = 1", "x = 2")])
    (repo / "a.py").unlink()
    (repo / "a.py").symlink_to(victim)
    with pytest.raises(ToolRefused, match="symbolic link"):
        plan.apply()
    assert victim.read_text() == "x = 1\n"

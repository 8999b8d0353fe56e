"""The copy that forked runs see equals the worktree after each sync, whatever was done to either."""

from __future__ import annotations

import os
import random
import shutil
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_ls.testing import _mirror
from agent_ls.testing._mirror import Mirror, TooLarge, kept_paths, mirror_git

NAMES = ["a", "b", "c.py", "d"]
OPERATIONS = ["write", "same size", "remove", "folder", "link", "mode", "move", "exotic"]


def look(root: Path) -> dict[str, tuple[object, ...]]:
    """Path -> what makes it equal; sockets and pipes are not copied and do not count."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(root.rglob("*")):
        info = path.lstat()
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            found[name] = ("link", str(path.readlink()))
        elif path.is_dir():
            found[name] = ("folder", stat.S_IMODE(info.st_mode))
        elif path.is_file():
            found[name] = (path.read_bytes(), stat.S_IMODE(info.st_mode), info.st_mtime_ns)
    return found


def change(root: Path, operation: str, random: random.Random) -> None:
    """Do something at a random place of the tree."""
    folders = [root, *(path for path in root.rglob("*") if path.is_dir() and not path.is_symlink())]
    path = random.choice(folders) / random.choice(NAMES)
    if operation == "same size" and path.is_file() and not path.is_symlink():
        before = path.stat()
        path.write_bytes(bytes(reversed(path.read_bytes())))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif operation == "mode" and path.exists() and not path.is_symlink():
        path.chmod(random.choice([0o700, 0o755, 0o711]))
    elif operation == "move" and path.exists():
        target = random.choice(folders) / random.choice(NAMES)
        if not os.path.lexists(target) and not target.is_relative_to(path):
            path.rename(target)
    else:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        if operation in ("write", "same size"):
            path.write_text(random.choice(["", "ab", "text", "other text"]))
        elif operation == "folder":
            path.mkdir()
        elif operation == "link":
            path.symlink_to(random.choice(["a", "/etc", "/nowhere", ".."]))
        elif operation == "exotic":
            os.mkfifo(path)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(OPERATIONS)), max_size=25), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_equal_after_every_sync(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[bool, str]], seed: int
) -> None:
    base = tmp_path_factory.mktemp("mirror")
    source, target = base / "source", base / "target"
    source.mkdir()
    mirror, chance = Mirror(source, target), random.Random(seed)
    mirror.sync()
    for number, (in_target, operation) in enumerate(steps):
        change(target if in_target else source, operation, chance)
        if number % 3 == 2:
            mirror.sync()
            assert look(target) == look(source)
    mirror.sync()
    assert look(target) == look(source)
    shutil.rmtree(base)


def test_nothing_outside_is_written_or_removed(tmp_path: Path) -> None:
    source, target, outside = (tmp_path / name for name in ("source", "target", "outside"))
    for folder in (source / "pkg", outside):
        folder.mkdir(parents=True)
    (source / "pkg" / "mod.py").write_text("new")
    (outside / "mod.py").write_text("untouched")
    mirror = Mirror(source, target)
    mirror.sync()
    shutil.rmtree(target / "pkg")
    (target / "pkg").symlink_to(outside)
    (target / "extra").symlink_to(outside)
    mirror.sync()
    assert [path.name for path in outside.iterdir()] == ["mod.py"]
    assert (outside / "mod.py").read_text() == "untouched"
    assert not (target / "pkg").is_symlink()
    assert look(target) == look(source)
    shutil.rmtree(target)
    target.symlink_to(outside)
    with pytest.raises(OSError):
        mirror.sync()


def test_mount_points_and_git_are_left_alone(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / ".git").mkdir(parents=True)
    (target / "deep" / "env" / "bin").mkdir(parents=True)
    mirror = Mirror(source, target, kept_paths([tmp_path / "repo" / "deep" / "env"], tmp_path / "repo"))
    (target / "other").mkdir()
    mirror_git(source, target)
    assert mirror.sync() == ["other"]
    assert (target / "deep" / "env" / "bin").is_dir()
    assert (target / ".git").read_text() == f"gitdir: {(source / '.git').resolve()}\n"


def test_a_tree_may_be_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_mirror, "MAX_FILES", 2)
    (tmp_path / "source").mkdir()
    for name in "abc":
        (tmp_path / "source" / name).write_text(name)
    with pytest.raises(TooLarge, match="more than 2 files"):
        Mirror(tmp_path / "source", tmp_path / "target").sync()

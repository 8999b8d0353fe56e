"""The watcher: what is told after what happened, with real events of the file system."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_kit import git, make_repository

from agent_ls.workspace.index import _inotify
from agent_ls.workspace.index.watch import Changes, Mode, Watcher

linux = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux'")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make_repository(tmp_path / "repository")
    (root / "build" / "deep").mkdir(parents=True)
    (root / "empty").mkdir()
    return root


@pytest.fixture
def watcher(root: Path) -> Iterator[Watcher]:
    watcher = Watcher(root, lambda: None)
    watcher.start()
    yield watcher
    watcher.stop()


def write(path: Path, text: str = "x = 1\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


STEPS: dict[str, tuple[Callable[[Path], Any], set[str] | None]] = {
    "nothing": (lambda root: None, set()),
    "a file is read": (lambda root: (root / "pkg/uses.py").read_text(), set()),
    "a file is written": (lambda root: write(root / "pkg/uses.py"), {"pkg/uses.py"}),
    "twice": (lambda root: [write(root / "pkg/uses.py") for _ in range(2)], {"pkg/uses.py"}),
    "its time changes": (lambda root: os.utime(root / "pkg/uses.py"), {"pkg/uses.py"}),
    "its mode changes": (lambda root: (root / "pkg/uses.py").chmod(0o600), {"pkg/uses.py"}),
    "a file is made": (lambda root: write(root / "new.py"), {"new.py"}),
    "in an empty folder": (lambda root: write(root / "empty/new.py"), {"empty/new.py"}),
    "a file is deleted": (lambda root: (root / "pkg/uses.py").unlink(), {"pkg/uses.py"}),
    "a file is renamed": (
        lambda root: (root / "pkg/uses.py").rename(root / "used.py"),
        {"pkg/uses.py", "used.py"},
    ),
    "only its case": (
        lambda root: (root / "pkg/uses.py").rename(root / "pkg/Uses.py"),
        {"pkg/uses.py", "pkg/Uses.py"},
    ),
    "a link is made": (lambda root: (root / "link").symlink_to("pkg"), {"link"}),
    "a folder is made": (lambda root: (root / "a/b").mkdir(parents=True), {"a", "a/b"}),
    "a folder with a file": (lambda root: write(root / "a/b/new.py"), {"a", "a/b"}),
    "a folder is renamed": (lambda root: (root / "pkg").rename(root / "lib"), {"pkg", "lib"}),
    "a folder leaves": (lambda root: (root / "web").rename(root.with_name("elsewhere")), {"web"}),
    "a folder goes": (lambda root: shutil.rmtree(root / "web"), {"web", "web/app.ts"}),
    "in an ignored folder": (lambda root: write(root / "build/deep/out.py"), set()),
    "an ignored folder is made": (lambda root: write(root / "pkg/build/out/x.py"), set()),
    "in git's folder": (lambda root: write(root / ".git/something"), set()),
    "a file becomes a folder": (
        lambda root: [(root / "pkg/uses.py").unlink(), write(root / "pkg/uses.py/inner.py")],
        {"pkg/uses.py"},
    ),
    "the ignore rules": (lambda root: write(root / "pkg/.gitignore", "*.txt\n"), None),
    "git's own rules": (lambda root: write(root / ".git/info/exclude", "*.txt\n"), None),
    "a commit": (
        lambda root: [write(root / "pkg/uses.py"), git(root, "commit", "-qam", "second")],
        None,
    ),
    "a branch": (lambda root: git(root, "checkout", "-qb", "other"), None),
    "the root moves": (lambda root: root.rename(root.with_name("moved")), None),
    "the root goes": (lambda root: shutil.rmtree(root), None),
}


@linux
@pytest.mark.parametrize("name", STEPS)
def test_what_happened_before_is_told_at_once(name: str, watcher: Watcher) -> None:
    step, expected = STEPS[name]
    assert watcher.take() == Changes()
    step(watcher.root)
    taken = watcher.take()
    if expected is None:
        assert taken.everything
        assert not taken.paths
    else:
        assert taken == Changes(frozenset(expected))
    assert watcher.take() == Changes()
    assert watcher.mode == "inotify"


@linux
def test_a_switch_of_branches_says_so(watcher: Watcher) -> None:
    git(watcher.root, "checkout", "-qb", "other")
    assert watcher.take().switched
    write(watcher.root / "pkg/uses.py")
    assert not watcher.take().switched


@linux
def test_moved_and_new_folders_are_watched(watcher: Watcher) -> None:
    root = watcher.root
    (root / "pkg").rename(root / "lib")
    (root / "one/two").mkdir(parents=True)
    watcher.take()
    write(root / "lib/uses.py", "y = 1\n")
    write(root / "one/two/three.py")
    assert watcher.take().paths == {"lib/uses.py", "one/two/three.py"}
    shutil.rmtree(root / "one")
    write(root / "one/two/again.py")
    watcher.take()
    write(root / "one/two/again.py", "z = 2\n")
    assert watcher.take().paths == {"one/two/again.py"}


@linux
def test_only_what_may_have_files_for_the_index_is_watched(root: Path) -> None:
    write(root / "build" / "kept.py")
    write(root / "nested/inside/n.py")
    git(root, "init", "-q", "nested")
    write(root / "build/tracked/t.py")
    git(root, "add", "-f", "build/tracked/t.py")
    watcher = Watcher(root, lambda: None)
    watcher.start()
    try:
        assert watcher.folders == ["", "build", "build/tracked", "docs", "empty", "nested", "pkg", "web"]
        write(root / ".gitignore", "")
        watcher.take()
        assert watcher.folders is not None
        assert "build/deep" in watcher.folders
        shutil.rmtree(root / "nested/.git")
        assert watcher.take().everything
        assert "nested/inside" in watcher.folders
        write(root / ".gitignore", "web/\nempty/\n")
        watcher.take()
        assert "empty" not in watcher.folders
        assert "web" in watcher.folders  # it has a tracked file
    finally:
        watcher.stop()


@linux
def test_a_file_tracked_against_the_rules_is_watched_from_then_on(watcher: Watcher) -> None:
    write(watcher.root / "build/deep/kept.py")
    assert not watcher.take()
    git(watcher.root, "add", "-f", "build/deep/kept.py")
    assert watcher.take().everything
    write(watcher.root / "build/deep/kept.py", "kept = 2\n")
    assert watcher.take().paths == {"build/deep/kept.py"}


@linux
def test_outside_git_the_rules_count_as_well(tmp_path: Path) -> None:
    root = tmp_path / "plain"
    write(root / ".gitignore", "out/\n")
    for name in ("src/a.py", "out/b.py", "node_modules/m/c.js", "env/pyvenv.cfg"):
        write(root / name)
    watcher = Watcher(root, lambda: None)
    watcher.start()
    try:
        assert watcher.folders == ["", "src"]
        write(root / "node_modules/m/c.js")
        write(root / "src/out/x.py")
        assert watcher.take() == Changes()
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        taken = watcher.take()
        assert taken.everything
        assert taken.rules
    finally:
        watcher.stop()


@linux
def test_a_worktree_and_a_folder_in_a_repository_follow_their_git(root: Path, tmp_path: Path) -> None:
    git(root, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "side")
    for place in (tmp_path / "tree", root / "pkg"):
        watcher = Watcher(place, lambda: None)
        watcher.start()
        try:
            git(place, "checkout", "-q", "--detach")
            assert watcher.take().switched
            if place == root / "pkg":
                write(root / ".gitignore", "*.py\n")
                assert watcher.take().rules
        finally:
            watcher.stop()


@linux
def test_many_changes_are_told_as_everything(root: Path) -> None:
    watcher = Watcher(root, lambda: None, limit=20)
    watcher.start()
    try:
        for number in range(20):
            write(root / f"n{number}.py")
        assert len(watcher.take().paths) == 20
        for number in range(21):
            write(root / f"n{number}.py")
        assert watcher.take().everything
        (root / "after.py").write_text("")
        assert watcher.take().paths == {"after.py"}
    finally:
        watcher.stop()


@linux
def test_lost_events_are_told_as_everything(watcher: Watcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's queue runs over, since nobody reads it for a while."""
    room = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if room > 200_000:
        pytest.skip(f"a queue of {room} events takes too long to fill")
    one, other = watcher.root / "pkg/uses.py", watcher.root / "web/app.ts"
    with watcher._lock:
        for _ in range(room // 2 + 100):
            os.utime(one)
            os.utime(other)
        (watcher.root / "late/deep").mkdir(parents=True)
        monkeypatch.setattr(watcher._pending, "limit", 10 * room)
        assert watcher.take().everything == "events were lost"
    write(watcher.root / "late/deep/seen.py")
    assert watcher.take().paths == {"late/deep/seen.py"}


@pytest.mark.parametrize(
    ("code", "said"), [(errno.ENOSPC, "max_user_watches"), (errno.EMFILE, "max_user_instances")]
)
@pytest.mark.parametrize("late", [False, True])
@linux
def test_without_watches_it_polls_and_says_so(
    root: Path, monkeypatch: pytest.MonkeyPatch, code: int, said: str, late: bool
) -> None:
    """The system's answer is made up here; the next test has a real one."""

    def refuse(self: _inotify.Inotify, folder: str) -> int:
        raise OSError(code, os.strerror(code))

    told = threading.Event()
    watcher = Watcher(root, told.set)
    if not late:
        monkeypatch.setattr(_inotify.Inotify, "add", refuse)
    watcher.start()
    try:
        if late:
            assert watcher.mode == "inotify"
            monkeypatch.setattr(_inotify.Inotify, "add", refuse)
            (root / "more").mkdir()
        assert watcher.take().everything
        assert watcher.mode == "polling"
        assert watcher.note is not None
        assert said in watcher.note
        assert watcher.take().everything, "without events nothing is known to be unchanged"
        assert told.wait(30)
    finally:
        watcher.stop()


@linux
def test_a_real_shortage_of_watches(root: Path) -> None:
    """In a user namespace of its own, where only three watches are allowed."""
    code = (
        "import sys; from pathlib import Path; from agent_ls.workspace.index.watch import Watcher\n"
        "w = Watcher(Path(sys.argv[1]), lambda: None); w.start(); print(w.mode, w.note); w.stop()"
    )
    script = 'echo 3 > /proc/sys/user/max_inotify_watches && exec "$@"'
    done = subprocess.run(
        ["unshare", "-Ur", "sh", "-c", script, "sh", sys.executable, "-c", code, str(root)],
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.stdout and "Traceback" not in done.stderr:
        pytest.skip(f"no user namespace here: {done.stderr.strip()}")
    assert done.stdout.startswith("polling ")
    assert "fs.inotify.max_user_watches" in done.stdout


@pytest.mark.parametrize("mode", ["inotify", "watchdog", "polling"])
def test_it_calls_when_changes_come_to_rest_and_ends_cleanly(root: Path, mode: Mode) -> None:
    if mode == "inotify" and sys.platform != "linux":
        pytest.skip("inotify is Linux'")
    before = set(threading.enumerate())
    descriptors = _descriptors()
    taken: list[Changes] = []
    told = threading.Event()

    def on_change() -> None:
        taken.append(watcher.take())
        told.set()

    watcher = Watcher(root, on_change, mode=mode)
    watcher.start()
    for number in range(50):
        write(root / f"n{number}.py")
    write(root / "node_modules/m/c.js")
    assert told.wait(30)
    watcher.stop()
    watcher.stop()
    assert taken
    if mode == "inotify":
        # One burst of files, in few portions.
        assert {path for changes in taken for path in changes.paths} >= {
            f"n{number}.py" for number in range(9)
        }
        assert len(taken) < 25
    else:
        assert all(changes.everything for changes in taken)
    assert set(threading.enumerate()) <= before
    assert _descriptors() == descriptors


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir())) if sys.platform == "linux" else 0


@linux
def test_a_folder_that_can_not_be_read_makes_everything_suspect(root: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    (root / "web").chmod(0)
    watcher = Watcher(root, lambda: None)
    watcher.start()
    try:
        assert watcher.take().everything
        (root / "web").chmod(0o755)
        watcher.take()
        assert not watcher.take()
        write(root / "web/app.ts")
        assert watcher.take().paths == {"web/app.ts"}
    finally:
        (root / "web").chmod(0o755)
        watcher.stop()

"""The live index: fresh whatever happened, complete or saying that it isn't, and gone when it is stopped."""

from __future__ import annotations

import mmap
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_kit import assert_fresh, git, make_repository

from agent_ls.errors import Cancelled
from agent_ls.workspace.index import reading
from agent_ls.workspace.index.buffers import Edit
from agent_ls.workspace.index.live import Changed, LiveIndex
from agent_ls.workspace.index.watch import Changes


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repository")


@pytest.fixture
def live(root: Path, tmp_path: Path) -> Iterator[LiveIndex]:
    with LiveIndex(root, cache_dir=tmp_path / "cache") as live:
        live.view(timeout=60)
        yield live


def names(live: LiveIndex, name: str) -> list[str]:
    return [found.path for found in live.view(timeout=60).definitions(name)]


def test_an_edit_shows_at_once(live: LiveIndex) -> None:
    for number in range(50):
        (live.root / "pkg/uses.py").write_text(f"def f{number}(): ...\n")
        assert names(live, f"f{number}") == ["pkg/uses.py"]
        assert names(live, f"f{number - 1}") == []


def test_a_buffer_wins_over_the_disk_until_it_is_closed(live: LiveIndex) -> None:
    live.open_buffer("pkg/uses.py", b"def typed(): ...\n", 1)
    (live.root / "pkg/uses.py").write_text("def saved(): ...\n")
    assert (names(live, "typed"), names(live, "saved")) == (["pkg/uses.py"], [])
    live.change_buffer("pkg/uses.py", [Edit(4, 9, b"retyped")], 2)
    assert (names(live, "typed"), names(live, "retyped")) == ([], ["pkg/uses.py"])
    assert live.ask(lambda view: view.text("pkg/uses.py")) == b"def retyped(): ...\n"
    live.replace_buffer("pkg/uses.py", b"def again(): ...\n", 3)
    assert names(live, "again") == ["pkg/uses.py"]
    live.close_buffer("pkg/uses.py")
    assert (names(live, "again"), names(live, "saved")) == ([], ["pkg/uses.py"])


def test_a_buffer_that_was_never_saved(live: LiveIndex) -> None:
    live.open_buffer("pkg/new.py", b"def unsaved(): ...\n")
    live.open_buffer("build/ignored.py", b"def hidden(): ...\n")
    assert (names(live, "unsaved"), names(live, "hidden")) == (["pkg/new.py"], [])
    (live.root / ".gitignore").write_text("new.py\n")
    assert (names(live, "unsaved"), names(live, "hidden")) == ([], ["build/ignored.py"])
    assert_fresh(live)


def deaf(live: LiveIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on no event arrives."""
    monkeypatch.setattr(live._watcher, "take", lambda: Changes())


def test_without_an_event_the_status_tells(live: LiveIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """Same size, and the time put back: size and time of the change are not all that is compared."""
    path = live.root / "pkg/uses.py"
    deaf(live, monkeypatch)
    for letter in "abcdefgh":
        status = path.stat()
        data = path.read_bytes()
        path.write_bytes(b"def " + letter.encode() + b"(): ...#".ljust(len(data) - 5, b"#"))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert path.stat().st_size == status.st_size
        found = live.ask(lambda view: [item.name for item in view.outline("pkg/uses.py")])
        assert found == [letter]


@pytest.mark.skipif(sys.platform != "linux", reason="as Linux maps memory")
def test_a_write_through_mapped_memory(live: LiveIndex) -> None:
    """inotify tells nothing of it."""
    with (live.root / "pkg/uses.py").open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[:1] = b"#"
        assert live.ask(lambda view: view.text("pkg/uses.py"))[:2] == b"#r"
        mapped[:1] = b"!"
        assert live.ask(lambda view: view.text("pkg/uses.py"))[:2] == b"!r"


def test_with_a_clock_that_goes_backwards(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files look as if they were written after they were read: no status vouches for them then."""
    real = reading.time.time_ns
    monkeypatch.setattr(reading.time, "time_ns", lambda: real() - 3600 * 10**9)
    with LiveIndex(root, cache_dir=tmp_path / "cache") as live:
        live.view(timeout=60)
        deaf(live, monkeypatch)
        monkeypatch.setattr(live._watcher, "took", lambda seconds: None)
        for letter in b"abc":
            path = root / "pkg/uses.py"
            path.write_bytes(bytes([letter]) + path.read_bytes()[1:])
            assert live.ask(lambda view: view.text("pkg/uses.py"))[0] == letter


def test_a_file_replaced_by_another_of_the_same_size_and_time(
    live: LiveIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = live.root / "pkg/shapes.py"
    status = path.stat()
    other = live.root.with_name("other")
    other.write_bytes(path.read_bytes().replace(b"Circle", b"Square"))
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    deaf(live, monkeypatch)
    other.replace(path)
    assert live.ask(lambda view: view.outline("pkg/shapes.py"))[0].name == "Square"


def test_the_root_goes_and_comes_back(live: LiveIndex) -> None:
    away = live.root.with_name("away")
    live.root.rename(away)
    assert live.view().files() == []
    assert live.status().missing
    away.rename(live.root)
    assert_fresh(live)
    (live.root / "pkg/uses.py").write_text("def back(): ...\n")
    assert names(live, "back") == ["pkg/uses.py"]
    shutil.rmtree(live.root)
    assert live.view().files() == []
    make_repository(live.root, {"only.py": "def only(): ...\n"})
    assert names(live, "only") == ["only.py"]
    assert_fresh(live)


def test_a_repository_comes_into_being(tmp_path: Path) -> None:
    root = tmp_path / "plain"
    (root / "out").mkdir(parents=True)
    (root / "out/a.py").write_text("def a(): ...\n")
    with LiveIndex(root, cache_dir=tmp_path / "cache") as live:
        assert names(live, "a") == ["out/a.py"]
        git(root, "init", "-q")
        (root / ".git/info/exclude").write_text("out/\n")
        assert names(live, "a") == []
        assert_fresh(live)


@pytest.mark.slow
def test_a_switch_of_branches_with_ten_thousand_files(tmp_path: Path) -> None:
    files = {f"d{n % 100}/f{n}.py": f"def old{n}(): ...\n" for n in range(10_000)}
    root = make_repository(tmp_path / "large", files)
    git(root, "checkout", "-qb", "other")
    for name in files:
        (root / name).write_text("def new(): ...\n")
    (root / "d0/f0.py").rename(root / "moved.py")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "all")
    told: list[Changed] = []
    with LiveIndex(root, cache_dir=tmp_path / "cache") as live:
        assert len(names(live, "new")) == 10_000
        live.subscribe(told.append)
        git(root, "checkout", "-q", "main")
        assert names(live, "new") == []
        assert names(live, "old0") == ["d0/f0.py"]
        git(root, "checkout", "-q", "other")
        assert len(names(live, "new")) == 10_000
    assert any(changed.switched for changed in told)
    assert len(told) < 40


def test_an_earlier_state_answers_until_the_first_look(root: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    gate = threading.Event()

    def held(root: Path) -> LiveIndex:
        live = LiveIndex(root, cache_dir=cache)
        begin = live._watcher.start

        def later() -> None:
            gate.wait(60)
            begin()

        live._watcher.start = later  # type: ignore[method-assign]
        return live

    for expected in ([], ["pkg/uses.py"]):
        gate.clear()
        with held(root) as live:
            view, complete = live.partial()
            assert not complete
            assert not live.complete
            assert [found.path for found in view.definitions("total")] == expected
            with pytest.raises(TimeoutError):
                live.view(timeout=0.01)
            gate.set()
            assert names(live, "total") == ["pkg/uses.py"]
            assert live.complete
            assert live.partial()[1]


def test_subscribers_hear_of_every_change_once(live: LiveIndex) -> None:
    told: list[Changed] = []
    heard = threading.Event()

    def callback(changed: Changed) -> None:
        told.append(changed)
        live.view()  # it may ask
        heard.set()

    end = live.subscribe(callback)
    (live.root / "pkg/uses.py").write_text("def heard(): ...\n")
    assert heard.wait(30), "nobody has to ask"
    live.view()
    (live.root / "web/app.ts").unlink()
    live.view()
    assert set().union(*(changed.changed for changed in told)) >= {"pkg/uses.py"}
    assert set().union(*(changed.removed for changed in told)) == {"web/app.ts"}
    end()
    count = len(told)
    (live.root / "pkg/uses.py").write_text("")
    live.view()
    live.view()
    assert len(told) == count


def test_a_subscriber_that_fails_does_not_stop_the_index(live: LiveIndex) -> None:
    def fail(changed: Changed) -> None:
        raise LookupError("of its own")

    live.subscribe(fail)
    (live.root / "pkg/uses.py").write_text("def one(): ...\n")
    assert names(live, "one") == ["pkg/uses.py"]
    (live.root / "pkg/uses.py").write_text("def two(): ...\n")
    assert names(live, "two") == ["pkg/uses.py"]


def test_a_failure_is_told_and_made_good(live: LiveIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(live._index, "refresh", lambda changed=None: (_ for _ in ()).throw(LookupError("disk")))
        (live.root / "pkg/uses.py").write_text("def after(): ...\n")
        with pytest.raises(LookupError):
            live.view()
        assert isinstance(live.status().failed, LookupError)
    assert names(live, "after") == ["pkg/uses.py"]
    assert live.status().failed is None


def test_it_ends_with_nothing_left(root: Path, tmp_path: Path) -> None:
    before = set(threading.enumerate())
    live = LiveIndex(root, cache_dir=tmp_path / "cache")
    with pytest.raises(RuntimeError):
        live.view()
    live.start()
    live.view(timeout=60)
    live.stop()
    live.stop()
    assert set(threading.enumerate()) <= before
    with pytest.raises(Cancelled):
        live.view()


def test_stopped_in_the_first_build(root: Path, tmp_path: Path) -> None:
    live = LiveIndex(root, cache_dir=tmp_path / "cache")
    live.start()
    live.stop()
    with LiveIndex(root, cache_dir=tmp_path / "cache") as again:
        assert_fresh(again)


def test_many_ask_while_files_change(live: LiveIndex) -> None:
    failures: list[object] = []

    def asker(number: int) -> None:
        path = live.root / f"asker{number}.py"
        for turn in range(30):
            path.write_text(f"def f{number}_{turn}(): ...\n")
            if names(live, f"f{number}_{turn}") != [path.name]:
                failures.append((number, turn))

    threads = [threading.Thread(target=asker, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert_fresh(live)


def test_what_the_writer_has_taken_but_not_taken_in_is_waited_for(root: Path, tmp_path: Path) -> None:
    with LiveIndex(root, cache_dir=tmp_path / "cache") as live:
        assert names(live, "sudden") == []
        taken, go_on = threading.Event(), threading.Event()
        real = live._watcher.take

        def slowly() -> Changes:
            changes = real()
            if threading.current_thread().name == "index-writer" and changes.paths:
                live._claims.nudged = False  # as where somebody's question made it look
                taken.set()
                go_on.wait(10)
            return changes

        live._watcher.take = slowly  # type: ignore[method-assign]
        (root / "sudden.py").write_text("def sudden(): ...\n")
        assert taken.wait(10)
        found: list[list[str]] = []
        asking = threading.Thread(target=lambda: found.append(names(live, "sudden")))
        asking.start()
        asking.join(0.3)
        go_on.set()
        asking.join(10)
        assert found == [["sudden.py"]]

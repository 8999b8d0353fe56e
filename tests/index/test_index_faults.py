"""What goes wrong around an index: killed processes, damaged files, full disks, odd files."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from store_kit import everything, fresh, function, git, make_repo, write

from agent_ls.cancel import CancelToken
from agent_ls.errors import Cancelled
from agent_ls.workspace.index import scan
from agent_ls.workspace.index.cold import locked
from agent_ls.workspace.index.hashing import is_settled
from agent_ls.workspace.index.index import open_index
from agent_ls.workspace.index.location import Location, fingerprint, index_folder
from agent_ls.workspace.index.records import Skipped

FILES = {f"m{n}.py": function(f"f{n}", f"f{n + 1}") for n in range(12)}

_PROGRAM = """
import sys
from pathlib import Path
from agent_ls.workspace.index import update, build
update.WORKER_BYTES = int(sys.argv[3])
build._CHUNK_FILES = 2
from agent_ls.workspace.index.index import open_index
root = Path(sys.argv[1])
with open_index(root, cache_dir=Path(sys.argv[2])) as index:
    index.refresh()
    for turn in range(int(sys.argv[4])):
        name = f"w{sys.argv[5]}.py"
        (root / name).write_text(f"def turn{turn}(): pass\\n")
        index.refresh([name])
    print(len(index.view().files()), index.note, flush=True)
"""


def start(
    root: Path, cache: Path, *, worker_bytes: int = 10**9, turns: int = 0, name: str = ""
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(root), str(cache), str(worker_bytes), str(turns), name],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def kill(process: subprocess.Popen[str]) -> None:
    """Everything of it, as a machine's out-of-memory killer would not ask either."""
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", FILES)


def damage_at_random(path: Path, seed: int) -> None:
    data = bytearray(path.read_bytes())
    chance = random.Random(seed)
    for _ in range(len(data) // 200):
        data[chance.randrange(len(data))] = chance.randrange(256)
    path.write_bytes(data)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_bytes(b"no database at all, but some text\n" * 200),
    "half": lambda path: os.truncate(path, path.stat().st_size // 2),
    "head": lambda path: os.truncate(path, 100),
    "no page but the first": lambda path: os.truncate(path, 4096),
    "zeros": lambda path: path.write_bytes(path.read_bytes()[:8192] + bytes(path.stat().st_size - 8192)),
    **{f"random {seed}": (lambda path, seed=seed: damage_at_random(path, seed)) for seed in range(12)},
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_database_is_never_believed(
    repo: Path, cache: Path, damage: Callable[[Path], object]
) -> None:
    with open_index(repo, cache_dir=cache) as index:
        index.refresh()
        path = index.database
    damage(path)
    with open_index(repo, cache_dir=cache) as index:
        assert everything(index) == fresh(repo)
        assert index.note is None
    with open_index(repo, cache_dir=cache) as index:
        assert everything(index) == fresh(repo)


def test_damage_while_it_is_open(repo: Path, cache: Path) -> None:
    with open_index(repo, cache_dir=cache) as index:
        index.refresh()
        DAMAGES["zeros"](index.database)
        write(repo, {"m1.py": function("other")})
        index.refresh()
        assert everything(index) == fresh(repo)


@pytest.mark.parametrize("moment", [0.02, 0.1, 0.2, 0.3, 0.5])
@pytest.mark.parametrize("worker_bytes", [0, 10**9])
def test_killed_while_building(repo: Path, cache: Path, moment: float, worker_bytes: int) -> None:
    process = start(repo, cache, worker_bytes=worker_bytes)
    time.sleep(moment)
    kill(process)
    with open_index(repo, cache_dir=cache) as index:
        assert everything(index) == fresh(repo)
        kept = index.database.name
    # What the killed build left is gone.
    assert {path.name for path in (cache / "index").glob("*.sqlite")} == {kept}


@pytest.mark.parametrize("seed", range(4))
def test_killed_while_updating(repo: Path, cache: Path, seed: int) -> None:
    process = start(repo, cache, turns=100_000, name="x")
    while not (repo / "wx.py").exists():
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(random.Random(seed).random() / 4)
    kill(process)
    with open_index(repo, cache_dir=cache) as index:
        assert everything(index) == fresh(repo)
        assert index.note is None


def test_one_large_file_changes(repo: Path, cache: Path) -> None:
    """A worker reads it, and so its words are a segment of their own."""
    text = "1,\n" * 700_000
    write(repo, {"big.json": f"[{text}1]"})
    with open_index(repo, cache_dir=cache) as index:
        assert index.view().files_with("later") == frozenset()
        write(repo, {"big.json": f'[{text}"later"]'})
        index.refresh(["big.json"])
        assert index.view().files_with("later") == {"big.json"}


def test_two_processes_write_at_once(repo: Path, cache: Path) -> None:
    """They also make the database at once: one of them does, the other one waits for it."""
    turns = 40
    processes = [start(repo, cache, turns=turns, name=name) for name in ("one", "two")]
    for process in processes:
        out, error = process.communicate(timeout=60)
        assert process.returncode == 0, error
        assert out.split()[1] == "None"
    assert len(list((cache / "index").glob("*.sqlite"))) == 1
    with open_index(repo, cache_dir=cache) as index:
        for name in ("one", "two"):
            (found,) = index.view().outline(f"w{name}.py")
            assert found.name == f"turn{turns - 1}"
        assert everything(index) == fresh(repo)


def test_another_process_keeps_the_database(repo: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers read, and who would write goes on in memory until the database is free again."""
    monkeypatch.setattr("agent_ls.workspace.index.store._BUSY_MS", 50)
    with open_index(repo, cache_dir=cache) as index:
        index.refresh()
        other = sqlite3.connect(index.database, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        other.execute("UPDATE tree SET seen = 1")
        assert everything(index) == fresh(repo)
        assert index.note is None
        write(repo, {"m1.py": function("later")})
        for refresh in (lambda: index.refresh(["m1.py"]), index.refresh):
            refresh()
            assert [found.path for found in index.view().definitions("later")] == ["m1.py"]
            assert index.note is not None
            assert "in use by another process" in index.note
        with open_index(repo, cache_dir=cache) as second:
            assert everything(second) == fresh(repo)
        other.execute("ROLLBACK")
        write(repo, {"m2.py": function("last")})
        monkeypatch.setattr("agent_ls.workspace.index.connection._BUSY_PAUSE_S", 0.0)
        index.refresh()
        assert index.note is None
        assert everything(index) == fresh(repo)
        assert index.database.is_file()
    other.close()
    with open_index(repo, cache_dir=cache) as index:
        assert everything(index) == fresh(repo)


def test_another_process_never_ends_making_it(
    repo: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_ls.workspace.index.cold.LONGEST_BUILD_S", 0.3)
    location = Location(index_folder(cache), repo, fingerprint())
    with locked(location), open_index(repo, cache_dir=cache) as index:
        assert everything(index) == fresh(repo)
        assert index.note is not None
        assert "another process" in index.note
    cancel = CancelToken()
    monkeypatch.setattr("agent_ls.workspace.index.cold.LONGEST_BUILD_S", 60.0)
    threading.Timer(0.2, cancel.cancel).start()
    with (
        locked(location),
        open_index(repo, cache_dir=cache, cancel=cancel) as index,
        pytest.raises(Cancelled),
    ):
        index.refresh()


def test_the_cache_is_removed_while_it_is_open(repo: Path, cache: Path) -> None:
    with open_index(repo, cache_dir=cache) as index:
        index.refresh()
        shutil.rmtree(cache)
        assert everything(index) == fresh(repo)
        write(repo, {"m1.py": function("later"), "new.py": function("new")})
        index.refresh()
        assert everything(index) == fresh(repo)
        with open_index(repo, cache_dir=cache) as other:
            assert everything(other) == fresh(repo)
        write(repo, {"m3.py": function("last")})
        index.refresh()
        assert everything(index) == fresh(repo)


def test_what_another_process_wrote_shows(repo: Path, cache: Path) -> None:
    with open_index(repo, cache_dir=cache) as index:
        index.refresh()
        process = start(repo, cache, turns=3, name="other")
        assert process.wait(60) == 0
        process.communicate()
        assert [each.path for each in index.view().definitions("turn2")] == ["wother.py"]
        assert index.refresh().parsed == 0
        assert everything(index) == fresh(repo)


def _is_root() -> bool:
    return os.geteuid() == 0


def test_a_cache_that_cannot_be_made(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with open_index(repo, cache_dir=tmp_path / "file") as index:
        assert everything(index) == fresh(repo)
        assert index.note is not None
        assert "in memory" in index.note
        write(repo, {"m1.py": function("other")})
        index.refresh()
        assert everything(index) == fresh(repo)


@pytest.mark.skipif(_is_root(), reason="root may write everywhere")
def test_a_read_only_cache(repo: Path, cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o500)
    with open_index(repo, cache_dir=cache) as index:
        assert everything(index) == fresh(repo)
        assert index.note is not None


_LIMITED = """
import resource, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[4])
from store_kit import everything, fresh, function, write
from agent_ls.workspace.index.index import open_index
root, cache, limit = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
expected = fresh(root)
with open_index(root, cache_dir=cache) as index:
    if sys.argv[5] == "later":
        index.refresh()
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    assert everything(index) == expected
    if sys.argv[5] == "later":
        for n in range(200):
            name = f"n{n % 20}.py"
            text = "\\n".join(f"def n{n}_{m}(): pass" for m in range(n % 30))
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            write(root, {name: text})
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            index.refresh([name])
    assert everything(index) == fresh(root)
    print(index.note)
"""


@pytest.mark.parametrize("when", ["at once", "later"])
def test_a_full_disk(repo: Path, cache: Path, when: str) -> None:
    """Files can't grow beyond a limit, as on a disk that is full."""
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, str(repo), str(cache), "40000" if when == "at once" else "120000",
         str(Path(__file__).parent), when],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "in memory" in done.stdout
    with open_index(repo, cache_dir=cache) as index:
        assert everything(index) == fresh(repo)
        assert index.note is None


@pytest.mark.parametrize("in_git", [True, False])
def test_odd_files_are_left_out_and_named(tmp_path: Path, cache: Path, in_git: bool) -> None:
    root = tmp_path / "odd"
    root.mkdir()
    if in_git:
        git(root, "init", "-q")
    write(root, {
        "good.py": function("good"),
        "picture.png": b"\x89PNG\0\0",
        "huge.txt": b"word " * 1_100_000,
        "large.py": b"x = 1\n" * 170_000,
        ".env": "KEY=1\n",
        "conf/id_rsa": "secret\n",
        "wide.txt": "größe".encode("utf-16"),
        "latin.py": "# gr\xf6\xdfe\ndef latin(): pass\n".encode("latin-1"),
        "min.js": "var a=1;" * 200,
        "vendor/v.py": function("vendored"),
        "api_pb2.py": "# Generated by the protocol buffer compiler.  DO NOT EDIT!\nx = 1\n",
        "sub/inner.py": function("inner"),
    })  # fmt: skip
    (root / os.fsdecode(b"b\xff.py")).write_text("def odd(): pass\n")
    (root / "link.py").symlink_to("good.py")
    (root / "loop").symlink_to(".")
    (root / "self").symlink_to("self")
    (root / "dangling").symlink_to("nowhere")
    os.mkfifo(root / "pipe")
    with open_index(root, cache_dir=cache) as index:
        view = index.view()
        skipped = {each.path: each.reason for each in view.skipped()}
        assert {f.path: f.role for f in view.files()} == {
            "good.py": "source", "large.py": "source", "wide.txt": "source", "latin.py": "source",
            "min.js": "minified", "vendor/v.py": "vendored", "api_pb2.py": "generated",
            "sub/inner.py": "source",
        }  # fmt: skip
        assert view.files_with("größe") == {"wide.txt", "latin.py"}
        assert [found.path for found in view.definitions("latin")] == ["latin.py"]
        assert view.file("large.py").language is None  # type: ignore[union-attr]
        expected = {
            "picture.png": "binary", "huge.txt": "larger than 5 MB", ".env": "secrets",
            "conf/id_rsa": "secrets",
            "large.py": "larger than 1 MB", "b\\xff.py": "not UTF-8", "link.py": "symbolic link",
            "loop": "symbolic link", "self": "symbolic link", "dangling": "symbolic link",
        }  # fmt: skip
        if not in_git:  # git doesn't list it
            expected["pipe"] = "not a regular file"
        assert skipped.keys() == expected.keys()
        assert all(words in skipped[path] for path, words in expected.items())
    assert everything_again(root, cache) == fresh(root)


def everything_again(root: Path, cache: Path) -> object:
    with open_index(root, cache_dir=cache) as index:
        return everything(index)


def test_nested_repositories_and_submodules_are_left_out(repo: Path, cache: Path) -> None:
    make_repo(repo / "nested", {"n.py": function("nested")})
    git(repo, "add", "nested")
    make_repo(repo / "loose", {"l.py": function("loose")})
    with open_index(repo, cache_dir=cache) as index:
        skipped = {each.path: each.reason for each in index.view().skipped()}
        assert skipped == {
            "nested": "a folder of another repository",
            "loose/": "a folder of another repository",
        }


def test_a_folder_replaced_by_a_link_leads_nowhere(tmp_path: Path, repo: Path, cache: Path) -> None:
    write(repo, {"pkg/secret.py": function("inside")})
    git(repo, "add", "-A")
    write(tmp_path / "outside", {"secret.py": function("outside")})
    with open_index(repo, cache_dir=cache) as index:
        index.refresh()
        (repo / "pkg/secret.py").unlink()
        (repo / "pkg").rmdir()
        (repo / "pkg").symlink_to(tmp_path / "outside")
        index.refresh()
        assert index.view().definitions("outside") == []
        assert index.view().definitions("inside") == []
        assert everything(index) == fresh(repo)


@pytest.mark.skipif(_is_root(), reason="root may read everything")
def test_unreadable_files(repo: Path, cache: Path) -> None:
    (repo / "m1.py").chmod(0)
    with open_index(repo, cache_dir=cache) as index:
        (found,) = index.view().skipped()
        assert found == Skipped("m1.py", "can't be read: Permission denied")
        (repo / "m1.py").chmod(0o644)
        index.refresh()
        assert everything(index) == fresh(repo)


@pytest.mark.skipif(_is_root(), reason="root may read everything")
def test_unreadable_folders(repo: Path, cache: Path) -> None:
    write(repo, {"tracked/t.py": function("t"), "new/n.py": function("n")})
    git(repo, "add", "tracked")
    for name in ("tracked", "new"):
        (repo / name).chmod(0)
    try:
        with open_index(repo, cache_dir=cache) as index:
            skipped = {each.path for each in index.view().skipped()}
            assert skipped == {"tracked/", "tracked/t.py", "new/"}
    finally:
        for name in ("tracked", "new"):
            (repo / name).chmod(0o755)


def test_what_git_warns_of() -> None:
    said = (
        b"warning: could not open directory 'new/': Permission denied\n"
        b"warning: could not open directory 'it's \xff/sub/': Permission denied\n"
        b"warning: unable to access '.config/git/ignore': Permission denied\n"
    )
    assert scan._unopened(said.split(b"\n")) == {
        "new/": "can't be read: Permission denied",
        "it's \udcff/sub/": "can't be read: Permission denied",
    }


def test_a_folder_that_can_not_be_opened_is_named(tmp_path: Path, cache: Path) -> None:
    """Its path is longer than the system takes (who may do everything can open any other)."""
    root = tmp_path / "deep"
    root.mkdir()
    write(root, {"a.py": function("a")})
    name = "d" * 250
    here = os.open(root, os.O_RDONLY)
    for depth in range(18):
        os.mkdir(name, dir_fd=here)
        inner = os.open(name, os.O_RDONLY, dir_fd=here)
        if depth in (3, 17):
            os.close(os.open("f.py", os.O_WRONLY | os.O_CREAT, dir_fd=inner))
        os.close(here)
        here = inner
    os.close(here)
    with open_index(root, cache_dir=cache) as index:
        view = index.view()
        assert [file.path.count("/") for file in view.files()] == [0, 4]
        (skipped,) = view.skipped()
        assert skipped.path.startswith(f"{name}/{name}/{name}/")
        assert skipped.path.endswith("/")
        assert skipped.reason == "can't be read: File name too long"


def test_a_file_whose_status_is_refused(repo: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tracked file in a folder without permissions is not taken for deleted."""
    real = os.lstat

    def refusing(path: str) -> os.stat_result:
        if str(path).endswith("m1.py"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    with open_index(repo, cache_dir=cache) as index:
        index.refresh()
        monkeypatch.setattr("agent_ls.workspace.index.update.os.lstat", refusing)
        index.refresh()
        assert list(index.view().skipped()) == [Skipped("m1.py", "can't be read: Permission denied")]
        assert index.view().definitions("f1") == []
        monkeypatch.undo()
        index.refresh()
        assert everything(index) == fresh(repo)


@pytest.mark.parametrize("what", ["pointer", "tree", "database"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_odd_things_in_the_cache(repo: Path, cache: Path, what: str, make: Callable[[Path], None]) -> None:
    patterns = {"pointer": "index/*.txt", "tree": "index/trees/*.txt", "database": "index/*.sqlite"}
    with open_index(repo, cache_dir=cache) as index:
        index.refresh()
    (place,) = cache.glob(patterns[what])
    place.unlink()
    make(place)
    for _ in range(2):
        with open_index(repo, cache_dir=cache) as index:
            assert everything(index) == fresh(repo)


def test_a_cache_inside_the_tree_is_none_of_its_files(repo: Path) -> None:
    for _ in range(2):
        with open_index(repo, cache_dir=repo / "cache") as index:
            assert {file.path for file in index.view().files()} == FILES.keys()
    assert git(repo, "status", "--short") == ""


def test_unreadable_for_the_system(repo: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same where the tests are run by root, who may read everything."""
    real = os.open

    def refusing(path: str, *rest: int, **more: int) -> int:
        if str(path).endswith("m1.py"):
            raise PermissionError(13, "Permission denied", path)
        return real(path, *rest, **more)

    monkeypatch.setattr("agent_ls.workspace.index.reading.os.open", refusing)
    with open_index(repo, cache_dir=cache) as index:
        assert list(index.view().skipped()) == [Skipped("m1.py", "can't be read: Permission denied")]
        monkeypatch.undo()
        index.refresh()
        assert everything(index) == fresh(repo)


def test_a_file_that_changes_while_it_is_read(
    repo: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, turn = os.read, 0

    def restless(descriptor: int, count: int) -> bytes:
        nonlocal turn
        data = real(descriptor, count)
        turn += 1
        write(repo, {"m1.py": function(f"turn{turn}")})
        return data

    monkeypatch.setattr("agent_ls.workspace.index.reading.os.read", restless)
    with open_index(repo, cache_dir=cache) as index:
        write(repo, {"m1.py": function("start")})
        index.refresh()
        monkeypatch.undo()
        index.refresh()
        assert everything(index) == fresh(repo)
        assert [found.path for found in index.view().definitions(f"turn{turn}")] == ["m1.py"]


@pytest.mark.parametrize("ages", ["fresh", "settled", "whole seconds"])
def test_only_settled_times_are_believed(tmp_path: Path, ages: str) -> None:
    path = tmp_path / "f"
    path.write_text("x")
    status = path.stat()
    later = {"fresh": 10_000_000, "settled": 200_000_000, "whole seconds": 200_000_000}[ages]
    if ages == "whole seconds":
        second = status.st_ctime_ns // 10**9
        rough = [*status]
        status = os.stat_result(rough, {"st_mtime_ns": second * 10**9, "st_ctime_ns": second * 10**9})
    latest = max(status.st_mtime_ns, status.st_ctime_ns)
    assert is_settled(status, latest + later) == (ages == "settled")


def test_a_parser_that_dies_costs_one_file(repo: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from agent_ls.workspace.index import build

    (repo / "killer").mkdir()
    (repo / "killer" / "_fatal_worker.py").write_text(
        "import os\n"
        "from agent_ls.workspace.index import _worker\n"
        "real = _worker.handle\n"
        "def handle(task, *rest):\n"
        "    if task[1] == 'm5.py':\n"
        "        os.kill(os.getpid(), 9)\n"
        "    return real(task, *rest)\n"
        "def main():\n"
        "    _worker.handle = handle\n"
        "    _worker.main()\n"
    )
    git(repo, "add", "-A")
    monkeypatch.setattr("agent_ls.sandbox.workers._HOME", str(repo / "killer"))
    monkeypatch.setattr(build, "_MODULE", "_fatal_worker")
    monkeypatch.setattr(build, "_CHUNK_FILES", 4)
    monkeypatch.setattr("agent_ls.workspace.index.update.WORKER_BYTES", 0)
    with open_index(repo, cache_dir=cache) as index:
        view = index.view()
        assert list(view.skipped()) == [Skipped("m5.py", "the parser crashed on it")]
        assert {found.path for n in range(12) for found in view.definitions(f"f{n}")} == FILES.keys() - {
            "m5.py"
        }


def test_more_files_than_the_limit(repo: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "MAX_FILES", 10)
    write(repo, {"docs/a.txt": "a", "docs/b.txt": "b", "c.txt": "c"})
    with open_index(repo, cache_dir=cache) as index:
        view = index.view()
        assert len(view.files()) == 10
        assert all(file.language == "python" for file in view.files())
        skipped = {each.path: each.reason for each in view.skipped()}
        assert {path: reason.rsplit(": ", 1)[1] for path, reason in skipped.items()} == {
            "./": "3 of this folder's are left out",
            "docs/": "2 of this folder's are left out",
        }


@pytest.mark.slow
def test_two_hundred_thousand_files(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated: the listing names them, and they all have the status and the bytes of one of a few."""
    root = tmp_path / "many"
    write(root, {f"real{n}.py": function(f"f{n}") for n in range(10)})
    names = [f"d{n // 1000}/f{n}_{n % 10}.py" for n in range(200_000)]
    real = {f"{root}/{name}": f"{root}/real{name.rsplit('_', 1)[1]}" for name in names}
    lstat, opened = os.lstat, os.open
    monkeypatch.setattr("agent_ls.workspace.index.update.os.lstat", lambda path: lstat(real.get(path, path)))
    monkeypatch.setattr(
        "agent_ls.workspace.index.reading.os.open", lambda path, *rest: opened(real.get(path, path), *rest)
    )
    monkeypatch.setattr(scan, "list_files", lambda root, cancel=None: scan.Listing(names, True, {}))
    monkeypatch.setattr("agent_ls.workspace.index.update._RealFolders.__call__", lambda self, path: True)
    monkeypatch.setattr("agent_ls.workspace.index.update.Updater._by_workers", _in_process)
    time.sleep(0.1)
    with open_index(root, cache_dir=cache) as index:
        done = index.refresh()
        assert (done.read, done.parsed) == (200_000, 10)
        assert len(index.view().files()) == 200_000
        assert len(index.view().definitions("f3")) == 20_000
        assert index.refresh().read == 0


def _in_process(self, candidates, languages):  # type: ignore[no-untyped-def]
    self._here(candidates, languages)


def test_the_limit_is_above_what_is_simulated() -> None:
    assert scan.MAX_FILES >= 200_000

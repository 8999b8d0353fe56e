"""The index against real trees: what it holds, how it follows changes, what it re-uses."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from store_kit import everything, fresh, function, git, make_repo, write

from agent_ls.cancel import CancelToken
from agent_ls.errors import Cancelled
from agent_ls.workspace.index import index as index_module
from agent_ls.workspace.index.index import Index, open_index

FILES = {
    "a.py": function("alpha", "beta"),
    "pkg/__init__.py": "",
    "pkg/b.py": function("beta"),
    "web/app.js": "import {x} from './x';\nexport function gamma() { return alpha; }\n",
    "README.md": "Alpha calls beta; see größe.\n",
}


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", FILES)


def test_answers(repo: Path, cache: Path) -> None:
    with open_index(repo, cache_dir=cache) as index:
        view = index.view()
        assert [(f.path, f.language, f.role) for f in view.files()] == [
            ("README.md", None, "source"),
            ("a.py", "python", "source"),
            ("pkg/__init__.py", "python", "source"),
            ("pkg/b.py", "python", "source"),
            ("web/app.js", "javascript", "source"),
        ]
        (found,) = view.definitions("alpha")
        assert (found.path, found.definition.kind, found.definition.line) == ("a.py", "function", 4)
        assert found.definition.doc == "About alpha."
        assert view.definitions("alph") == []
        assert sorted(view.names()) == ["alpha", "beta", "gamma"]
        assert view.files_with("alpha") == {"a.py", "web/app.js"}
        assert view.files_with("größe") == {"README.md"}
        assert view.files_with("nowhere") == frozenset()
        assert set(view.words("alph")) == {"alpha", "Alpha"}
        assert view.words("Alph") == ["Alpha"]
        assert list(view.postings(["beta", "gamma", "nowhere"])) == [
            ("beta", ["README.md", "a.py", "pkg/b.py"]),
            ("gamma", ["web/app.js"]),
        ]
        assert [(each.module, each.line) for each in view.imports("a.py")] == [("os", 1)]
        assert [each.name for each in view.outline("a.py")] == ["alpha"]
        assert view.text("a.py") == FILES["a.py"].encode()
        assert view.text("nowhere.py") == b""
        assert view.file("nowhere.py") is None
        assert view.file("a.py") in view.files()


def test_the_database_stays_out_of_the_repository(repo: Path, cache: Path) -> None:
    with open_index(repo, cache_dir=cache) as index:
        index.refresh()
        assert index.database.is_relative_to(cache)
        assert index.note is None
    assert git(repo, "status", "--porcelain", "--ignored") == ""


def test_a_second_start_reads_nothing(repo: Path, cache: Path) -> None:
    _settle(repo)
    with open_index(repo, cache_dir=cache) as index:
        assert index.refresh().parsed > 0
        before = everything(index)
    with open_index(repo, cache_dir=cache) as index:
        done = index.refresh()
        assert (done.read, done.parsed, done.changed, done.removed) == (0, 0, (), ())
        assert everything(index) == before


def test_changes_are_followed(repo: Path, cache: Path) -> None:
    with open_index(repo, cache_dir=cache) as index:
        index.refresh()
        write(repo, {"a.py": function("delta"), "new.go": "package x\nfunc Epsilon() {}\n"})
        (repo / "pkg/b.py").unlink()
        done = index.refresh()
        assert (done.changed, done.removed) == (("a.py", "new.go"), ("pkg/b.py",))
        assert index.view().definitions("alpha") == []
        assert everything(index) == fresh(repo)


@pytest.mark.parametrize(
    ("change", "paths"),
    [
        (lambda root: write(root, {"a.py": function("zeta")}), ["a.py"]),
        (lambda root: write(root, {"n/e/w.py": function("zeta")}), ["n/e/w.py"]),
        (lambda root: write(root, {"n/e/w.py": function("zeta")}), ["n"]),
        (lambda root: (root / "a.py").unlink(), ["a.py"]),
        (lambda root: (root / "pkg").rename(root / "moved"), ["pkg", "moved"]),
        (lambda root: (root / "pkg/b.py").rename(root / "c.py"), ["pkg/b.py", "c.py"]),
        (lambda root: write(root, {".gitignore": "*.md\n/web\n"}) or git(root, "rm", "-rq", "--cached", "web",
         "README.md"), [".gitignore"]),
        (lambda root: write(root, {"pkg/.gitignore": "x.py\n", "pkg/x.py": "x = 1\n"}), ["pkg/x.py",
         "pkg/.gitignore"]),
        (lambda root: write(root, {"a.py": b"\0\0"}), ["a.py"]),
        (lambda root: (root / "a.py").unlink() or (root / "a.py").symlink_to("pkg/b.py"), ["a.py"]),
        (lambda root: (root / "a.py").unlink() or write(root, {"a.py/x.py": "y = 1"}), ["a.py"]),
        (lambda root: None, ["a.py", "never/was.py"]),
    ],
)  # fmt: skip
def test_known_changes_are_followed(repo: Path, cache: Path, change, paths: list[str]) -> None:  # type: ignore[no-untyped-def]
    with open_index(repo, cache_dir=cache) as index:
        index.refresh()
        change(repo)
        index.refresh(paths)
        assert everything(index) == fresh(repo)


def test_a_view_says_what_was_and_the_next_one_what_is(repo: Path, cache: Path) -> None:
    with open_index(repo, cache_dir=cache) as index:
        view = index.view()
        write(repo, {"a.py": function("delta")})
        index.refresh(["a.py"])
        assert len(view.definitions("alpha")) == 1
        later = index.view()
        assert later.definitions("alpha") == []
        assert later.version > view.version


def test_text_of_a_file_changed_since_is_taken_in_first(repo: Path, cache: Path) -> None:
    with open_index(repo, cache_dir=cache) as index:
        view = index.view()
        write(repo, {"a.py": function("delta")})
        assert view.text("a.py") == function("delta").encode()
        assert len(view.definitions("delta")) == 1
        assert view.definitions("alpha") == []
        (repo / "a.py").unlink()
        assert view.text("a.py") == b""
        assert view.file("a.py") is None


def test_paths_marked_stale_are_looked_at_before_the_next_view(repo: Path, cache: Path) -> None:
    with open_index(repo, cache_dir=cache) as index:
        index.refresh()
        write(repo, {"a.py": function("delta"), "pkg/b.py": function("epsilon")})
        index.mark_stale(["a.py"])
        assert len(index.view().definitions("delta")) == 1
        assert index.view().definitions("epsilon") == []


def test_same_size_and_same_times_are_no_proof(repo: Path, cache: Path) -> None:
    """A change within the clock's tick, with the old modification time put back."""
    path = repo / "a.py"
    with open_index(repo, cache_dir=cache) as index:
        index.refresh()
        before = path.stat()
        path.write_text(function("gamma", "beta"))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert path.stat().st_size == before.st_size
        index.refresh()
        assert everything(index) == fresh(repo)


def test_open_buffers_win(repo: Path, cache: Path) -> None:
    with open_index(repo, cache_dir=cache) as index:
        index.overlay("a.py", b"def typed():\n    wordy\n")
        index.overlay("brand/new.py", b"class Fresh: pass\n")
        view = index.view()
        assert view.text("a.py") == b"def typed():\n    wordy\n"
        assert [each.path for each in view.definitions("typed")] == ["a.py"]
        assert view.definitions("alpha") == []
        assert "alpha" not in view.names()
        assert view.files_with("wordy") == {"a.py"}
        assert "a.py" not in view.files_with("alpha")
        assert view.files_with("Fresh") == {"brand/new.py"}
        assert view.words("word") == ["wordy"]
        assert view.file("brand/new.py") is not None
        write(repo, {"a.py": function("saved")})
        index.overlay("a.py", None)
        index.overlay("brand/new.py", None)
        assert everything(index) == fresh(repo)


def test_answers_for_many_files_at_once(repo: Path, cache: Path) -> None:
    long = "w" * 200
    write(
        repo,
        {"long.txt": f"{long}\n", "latin.txt": "größe".encode("latin-1"), "more.py": "def beta(): ...\n"},
    )
    with open_index(repo, cache_dir=cache) as index:
        view = index.view()
        assert list(view.paths()) == [file.path for file in view.files()]
        assert view.files_with_any(["alpha", "beta"]) == {
            "a.py",
            "pkg/b.py",
            "web/app.js",
            "more.py",
            "README.md",
        }
        assert view.files_defining(["alpha", "gamma", "nowhere"]) == {"a.py", "web/app.js"}
        for _ in range(2):
            assert view.files_with_long("www", False) == {"long.txt"}
            assert view.files_with_long("wwx", False) == set()
        assert view.not_utf8() == {"latin.txt"}
        layouts = view.layouts(["a.py", "README.md", "nowhere"])
        assert {path: (info, layout.enclosing(5)) for path, (info, layout) in layouts.items()} == {
            "a.py": (view.file("a.py"), "alpha"),
            "README.md": (view.file("README.md"), None),
        }
        write(repo, {"a.py": "\n\n" + function("later"), "latin.txt": "größe", "long.txt": "x" * 200})
        view.current(["a.py", "latin.txt", "long.txt", "pkg/b.py"])
        assert view.layouts(["a.py"])["a.py"][1].enclosing(7) == "later"
        assert view.files_with_any(["later"]) == {"a.py"}
        assert view.not_utf8() == set()
        assert view.files_with_long("www", False) == set() and view.files_with_long("xx", False) == {
            "long.txt"
        }
        index.overlay("a.py", b"def typed():\n    beta\n")
        view = index.view()
        assert view.files_with_any(["later", "typed"]) == view.files_defining(["typed"]) == {"a.py"}
        assert view.layouts(["a.py"])["a.py"][1].enclosing(2) == "typed"
        assert view.files_with_long("zz", False) == set()


def test_buffers_of_files_that_are_left_out_stay_out(repo: Path, cache: Path) -> None:
    write(repo, {".gitignore": "ignored.py\n"})
    with open_index(repo, cache_dir=cache) as index:
        before = everything(index)
        index.overlay("ignored.py", b"def hidden(): pass\n")
        index.overlay(".env", b"TOKEN=1\n")
        for path in (".git/config", "pkg/.GIT/x", "/etc/passwd", "../x.py", "pkg//x.py"):
            index.overlay(path, b"def hidden(): pass\n")
        assert everything(index) == before


def _parses(index: Index) -> int:
    return index.refresh().parsed


def test_worktrees_clones_and_branches_re_use_what_is_known(repo: Path, cache: Path, tmp_path: Path) -> None:
    with open_index(repo, cache_dir=cache) as index:
        assert _parses(index) == 5
        database = index.database
    git(repo, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    git(repo, "clone", "-q", str(repo), str(tmp_path / "clone"))
    for place in ("tree", "clone"):
        with open_index(tmp_path / place, cache_dir=cache) as index:
            assert _parses(index) == 0
            assert index.database == database
            assert everything(index) == fresh(tmp_path / place)
    with open_index(tmp_path / "tree", cache_dir=cache) as index:
        write(tmp_path / "tree", {"a.py": function("branched")})
        git(tmp_path / "tree", "commit", "-qam", "second")
        assert _parses(index) == 1
    with open_index(repo, cache_dir=cache) as index:
        assert _parses(index) == 0
        git(repo, "worktree", "remove", str(tmp_path / "tree"))
        git(repo, "checkout", "-q", "other")
        assert _parses(index) == 0
        assert everything(index) == fresh(repo)
        git(repo, "checkout", "-q", "main")
        assert _parses(index) == 0
        assert everything(index) == fresh(repo)


@pytest.mark.parametrize("attributes", ["", "* text=auto\n", "*.py eol=crlf\n", "*.py ident\n"])
@pytest.mark.parametrize("autocrlf", ["false", "true", "input"])
def test_git_ids_stand_for_bytes_only_where_nothing_converts(
    tmp_path: Path, cache: Path, attributes: str, autocrlf: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_ls.workspace.index.update._GIT_IDS", 1)
    files = {f"f{n}.py": f"# $Id$\r\nname{n} = {n}\r\n" for n in range(3)}
    repo = make_repo(tmp_path / "r", {".gitattributes": attributes, "lf.py": "# $Id$\nx = 1\n"})
    git(repo, "config", "core.autocrlf", autocrlf)
    write(repo, files)
    git(repo, "-c", "core.safecrlf=false", "add", "-A")
    git(repo, "commit", "-qm", "more")
    with open_index(repo, cache_dir=cache) as index:
        assert everything(index) == fresh(repo)
    git(tmp_path, "clone", "-q", "-c", f"core.autocrlf={autocrlf}", str(repo), "clone")
    with open_index(tmp_path / "clone", cache_dir=cache) as index:
        assert everything(index) == fresh(tmp_path / "clone")


def test_git_ids_save_the_reading(
    repo: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_ls.workspace.index.update._GIT_IDS", 1)
    git(repo, "clone", "-q", str(repo), str(tmp_path / "clone"))
    write(tmp_path / "clone", {"a.py": function("changed"), "added.py": function("added")})
    git(tmp_path / "clone", "update-index", "--assume-unchanged", "README.md")
    write(tmp_path / "clone", {"README.md": "other\n"})
    with open_index(repo, cache_dir=cache) as index:
        index.refresh()
    with open_index(tmp_path / "clone", cache_dir=cache) as index:
        done = index.refresh()
        assert (done.read, done.parsed) == (3, 3)
        assert everything(index) == fresh(tmp_path / "clone")


def test_sha256_repositories(tmp_path: Path, cache: Path) -> None:
    root = tmp_path / "sha256"
    root.mkdir()
    git(root, "init", "-q", "--object-format=sha256")
    write(root, FILES)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    with open_index(root, cache_dir=cache) as index:
        index.refresh()
    git(root, "worktree", "add", "-q", "-b", "b", str(tmp_path / "other"))
    with open_index(tmp_path / "other", cache_dir=cache) as index:
        assert _parses(index) == 0
        assert everything(index) == fresh(tmp_path / "other")


def test_a_large_build_uses_workers_and_says_the_same(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = make_repo(
        tmp_path / "r", {f"p{n}/m.py": function(f"f{n}", f"f{n + 1}") for n in range(60)} | FILES
    )
    with open_index(repo, cache_dir=tmp_path / "other") as index:
        expected = everything(index)
    monkeypatch.setattr("agent_ls.workspace.index.update.WORKER_BYTES", 0)
    monkeypatch.setattr("agent_ls.workspace.index.build._CHUNK_FILES", 4)
    seen: list[tuple[int, int]] = []
    with open_index(repo, cache_dir=cache) as index:
        index.on_progress = lambda done, total: seen.append((done, total))
        assert index.refresh().parsed == 65
        assert everything(index) == expected
        assert seen[-1] == (65, 65)
        write(repo, {f"p{n}/m.py": function(f"g{n}") for n in range(30)})
        assert index.refresh().parsed == 30
        assert everything(index) == fresh(repo)
        assert index.rebuild().parsed == 65
        assert everything(index) == fresh(repo)


def test_cancel_leaves_nothing_behind(repo: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_ls.workspace.index.update.WORKER_BYTES", 0)
    token = CancelToken()
    with open_index(repo, cache_dir=cache, cancel=token) as index:
        index.on_progress = lambda done, total: token.cancel()
        with pytest.raises(Cancelled):
            index.refresh()
    assert not list(cache.rglob("*.sqlite*"))
    with open_index(repo, cache_dir=cache) as index:
        assert everything(index) == fresh(repo)


def test_threads_share_an_index(repo: Path, cache: Path) -> None:
    failures: list[BaseException] = []
    with open_index(repo, cache_dir=cache) as index:
        index.refresh()

        def work(number: int) -> None:
            try:
                for turn in range(10):
                    name = f"t{number}_{turn}"
                    write(repo, {f"t{number}.py": function(name)})
                    index.refresh([f"t{number}.py"])
                    view = index.view()
                    assert [each.path for each in view.definitions(name)] == [f"t{number}.py"]
                    assert len(view.definitions("alpha")) == 1
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert everything(index) == fresh(repo)


def test_a_closed_index_says_so(repo: Path, cache: Path) -> None:
    index = open_index(repo, cache_dir=cache)
    index.close()
    with pytest.raises(ValueError, match="closed"):
        index.refresh()


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError, match="nowhere"):
        open_index(tmp_path / "nowhere")


def test_another_schema_is_another_database(repo: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_index(repo, cache_dir=cache) as index:
        index.refresh()
        old = index.database
    monkeypatch.setattr(index_module, "fingerprint", lambda: "1.other")
    with open_index(repo, cache_dir=cache) as index:
        assert _parses(index) == 5
        assert index.database != old
        assert everything(index) == fresh(repo)


def _settle(root: Path) -> None:
    """Make the files old enough that their times can be relied on."""
    import time

    for _ in range(100):
        latest = max(path.stat().st_ctime_ns for path in root.rglob("*.*") if path.is_file())
        if time.time_ns() - latest > 80_000_000:
            return
        time.sleep(0.01)

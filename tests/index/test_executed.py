"""What tests ran, kept from one trace to the next."""

from __future__ import annotations

import shutil
from pathlib import Path

from store_kit import function, git, make_repo, write

from agent_ls.workspace.index import executed as room
from agent_ls.workspace.index.executed import executed, remember
from agent_ls.workspace.index.index import open_index

FILES = {"a.py": function("alpha"), "test_a.py": "def test_one(): pass\n\n\ndef test_two(): pass\n"}
ONE, TWO = "test_a.py::test_one", "test_a.py::test_two"


def asked(root: Path, cache: Path, name: str = "alpha") -> dict[str, dict[str, list[int]]]:
    with open_index(root, memory=True) as index:
        found = executed(index.view(), root, name, cache_dir=cache)
    return {test: {path: sorted(lines) for path, lines in ran.items()} for test, ran in found.items()}


def test_merged_replaced_and_shared(tmp_path: Path) -> None:
    root, cache = make_repo(tmp_path / "repo", FILES), tmp_path / "cache"
    remember(root, root, {ONE: {"a.py": {5, 6}}, TWO: {"a.py": {6}}}, cache_dir=cache)
    assert asked(root, cache) == {ONE: {"a.py": [5, 6]}, TWO: {"a.py": [6]}}
    remember(root, root, {ONE: {"a.py": {7}}}, cache_dir=cache)
    assert asked(root, cache) == {ONE: {"a.py": [7]}, TWO: {"a.py": [6]}}
    git(root, "worktree", "add", "-q", "--detach", str(tmp_path / "tree"))
    assert asked(tmp_path / "tree", cache) == asked(root, cache)
    write(tmp_path / "tree", {"a.py": function("alpha", "beta")})
    assert asked(tmp_path / "tree", cache) == {}
    # What ran in another tree is told where the contents are the same.
    remember(root, tmp_path / "tree", {ONE: {"a.py": {9}}}, cache_dir=cache)
    assert asked(tmp_path / "tree", cache) == {ONE: {"a.py": [9]}}
    assert asked(root, cache) == {TWO: {"a.py": [6]}}


def test_the_oldest_are_forgotten(tmp_path: Path) -> None:
    root, cache = make_repo(tmp_path / "repo", FILES), tmp_path / "cache"
    most = room._MOST_TESTS
    remember(root, root, {f"test_a.py::t{n}": {"a.py": {6}} for n in range(most + 5)}, cache_dir=cache)
    found = asked(root, cache)
    assert len(found) == most
    assert "test_a.py::t4" not in found


def test_what_can_not_be_kept_or_read(tmp_path: Path) -> None:
    root, cache = make_repo(tmp_path / "repo", FILES), tmp_path / "cache"
    cache.write_text("in the way")
    remember(root, root, {ONE: {"a.py": {6}}}, cache_dir=cache)
    assert asked(root, cache) == {}
    cache.unlink()
    remember(root, root, {ONE: {"a.py": {6}, "gone.py": {1}, "no\0name": {1}}}, cache_dir=cache)
    (place,) = (cache / "executed").iterdir()
    good = place.read_bytes()
    for damaged in (b"", good[: len(good) // 2], b"x" * 100, good[:-20] + b"\0" * 20):
        place.write_bytes(damaged)
        assert asked(root, cache) == {}
    place.unlink()
    place.mkdir()
    remember(root, root, {ONE: {"a.py": {6}}}, cache_dir=cache)
    assert asked(root, cache) == {}
    assert [path.name for path in (cache / "executed").iterdir()] == [place.name]
    shutil.rmtree(cache)
    assert asked(root, cache) == {}

"""After any sequence of changes the index says what a fresh one says."""

from __future__ import annotations

import shutil
import tempfile
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_kit import everything, fresh, git, make_repo, write

from agent_ls.workspace.index import maintain, update
from agent_ls.workspace.index.index import open_index
from agent_ls.workspace.index.packed import Row, pack, unpack, unpack_named
from agent_ls.workspace.index.postings import NAMES, WORDS
from agent_ls.workspace.index.store import Store

PATHS = ("a.py", "b.py", "p/a.py", "p/q/c.js", "p/notes.txt", "skip/me.py")
NAMES_ = ("one", "two", "three", "größe")
TEXTS = (
    "",
    *(f"def {name}():\n    {other}\n" for name, other in zip(NAMES_, NAMES_[1:] + NAMES_[:1], strict=True)),
    "function one() { return two; }\nclass Two {}\n",
    "def broken(:\n  three",
    "a\0b",
)
paths, texts = st.sampled_from(PATHS), st.sampled_from(TEXTS)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), paths, texts),
        st.tuples(st.just("delete"), paths, st.just("")),
        st.tuples(st.just("move"), paths, paths),
        st.tuples(
            st.just("ignore"), st.sampled_from(["/skip/\n", "*.txt\n", "p/*\n!p/a.py\n", ""]), st.just("")
        ),
        st.tuples(st.just("refresh"), st.just(""), st.just("")),
        st.tuples(st.just("reopen"), st.just(""), st.just("")),
        st.tuples(st.just("commit"), st.just(""), st.just("")),
        st.tuples(st.just("branch"), st.sampled_from(["main", "other"]), st.just("")),
    ),
    min_size=1,
    max_size=14,
)


def apply(root: Path, kind: str, first: str, second: str) -> list[str] | None:
    """Carry a step out; the paths that a watcher would tell of, None for "anything"."""
    if kind == "write":
        write(root, {first: second})
        return [first]
    if kind == "delete":
        (root / first).unlink(missing_ok=True)
        return [first]
    if kind == "move" and (root / first).exists() and first != second:
        (root / second).parent.mkdir(parents=True, exist_ok=True)
        (root / first).rename(root / second)
        return [first, second]
    if kind == "ignore":
        write(root, {".gitignore": first})
        return [".gitignore"]
    if kind == "commit":
        git(root, "add", "-A")
        git(root, "commit", "-q", "--allow-empty", "-m", "step")
        return None
    if kind == "branch":
        git(root, "add", "-A")
        git(root, "commit", "-q", "--allow-empty", "-m", "step")
        git(root, "checkout", "-q", "-B" if first not in git(root, "branch") else "-f", first)
        return None
    return []


@pytest.mark.slow
@pytest.mark.parametrize("tidy", [False, True])
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sequence=steps)
def test_any_sequence(
    tidy: bool, sequence: list[tuple[str, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(update, "_GIT_IDS", 2)
    folder = Path(tempfile.mkdtemp())
    try:
        if tidy:  # what happens once in hundreds of changes
            for name in ("PENDING_DOCUMENTS", "PENDING_BYTES", "GARBAGE"):
                monkeypatch.setattr(maintain, name, 1)
            monkeypatch.setattr(maintain, "MOST_SEGMENTS", 2)
        root = make_repo(folder / "r", {"a.py": TEXTS[1], "p/a.py": TEXTS[2]})
        index = open_index(root, cache_dir=folder / "cache")
        index.refresh()
        for kind, first, second in sequence:
            changed = apply(root, kind, first, second)
            if kind == "reopen":
                index.close()
                index = open_index(root, cache_dir=folder / "cache")
            index.refresh(changed if kind != "refresh" else None)
        assert everything(index) == fresh(root)
        index.close()
    finally:
        shutil.rmtree(folder)


def test_changes_become_segments_and_garbage_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintain, "PENDING_DOCUMENTS", 20)
    monkeypatch.setattr(maintain, "MOST_SEGMENTS", 3)
    monkeypatch.setattr(maintain, "GARBAGE", 30)
    root = make_repo(tmp_path / "r", {f"m{n}.py": f"def keep{n}(): pass\n" for n in range(5)})
    with open_index(root, cache_dir=tmp_path / "cache") as index:
        index.refresh()
        for turn in range(400):
            write(root, {"m1.py": f"def turn{turn}():\n    word{turn}\n"})
            index.refresh(["m1.py"])
            if turn % 40 == 0:
                assert index.view().files_with(f"word{turn}") == {"m1.py"}
                assert index.view().files_with(f"word{turn - 1}") == frozenset()
        database = index.database
        assert everything(index) == fresh(root)
    store = Store(database)
    assert maintain.tidy(store, 1) in (True, False)
    assert store.blob_count() <= 5 + 30 + 5
    assert store.pending_size()[0] <= 60
    assert len(store.segments()) <= 5
    store.close()
    with open_index(root, cache_dir=tmp_path / "cache") as index:
        assert everything(index) == fresh(root)


def test_trees_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    root = make_repo(tmp_path / "r", {"a.py": "def a(): pass\n"})
    git(root, "worktree", "add", "-q", str(tmp_path / "tree"))
    for place in (root, tmp_path / "tree"):
        with open_index(place, cache_dir=tmp_path / "cache") as index:
            index.refresh()
            database = index.database
    shutil.rmtree(tmp_path / "tree")
    store = Store(database)
    maintain.tidy(store, 1)
    assert [tree[1] for tree in store.trees()] == [str(root).encode()]
    store.close()


terms = st.binary(min_size=1, max_size=6).filter(lambda term: b"\n" not in term and b"\x01" not in term)


@given(
    st.dictionaries(
        terms, st.lists(st.integers(0, 100_000), min_size=1, max_size=5, unique=True), max_size=40
    ),
    st.integers(1, 7),
)
def test_segments_give_back_what_was_put_in(postings: dict[bytes, list[int]], size: int) -> None:
    from agent_ls.workspace.index import postings as module
    from agent_ls.workspace.index.lookup import Lookup

    documents = sorted({number for numbers in postings.values() for number in numbers})
    places = {number: place for place, number in enumerate(documents)}
    by_place = {term: [places[number] for number in numbers] for term, numbers in postings.items()}
    before, module._TERMS = module._TERMS, size
    try:
        chunks = module.encode(by_place)
    finally:
        module._TERMS = before
    store = Store(None)
    store.add_segment(documents, [(WORDS, chunk) for chunk in chunks])
    lookup = Lookup(store)
    assert {term: lookup.ids(WORDS, term) for term in postings} == {t: set(n) for t, n in postings.items()}
    assert lookup.ids(WORDS, b"\xff\xff") == set(postings.get(b"\xff\xff", ()))
    assert lookup.ids(NAMES, b"a") == set()
    assert {term: set(found) for term, found in lookup.all_terms(WORDS)} == {
        term: set(numbers) for term, numbers in postings.items()
    }
    store.close()


rows = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.just("function"), st.integers(1, 10**6), st.text(max_size=9)),
    max_size=100,
)


@given(rows, st.lists(st.tuples(st.text(max_size=5), st.integers(1, 9), st.just(())), max_size=3))
def test_packed_definitions_come_back(definitions: list[Row], imports: list[Row]) -> None:
    packed = pack(definitions, imports)
    assert unpack(packed) == (definitions, imports)
    for name in "abcdefghi":
        assert unpack_named(packed, name) == [row for row in definitions if row[0] == name]


@given(st.integers(0, 10**6), st.integers(1, 255))
def test_damaged_definitions_are_told(place: int, change: int) -> None:
    packed = bytearray(pack([("name", "function", 1)] * 50, [("module", 1, ())]))
    packed[place % len(packed)] ^= change
    with pytest.raises(zlib.error):
        unpack(bytes(packed))


@given(st.lists(st.sets(terms, max_size=6), max_size=12))
def test_pending_documents_are_found(contents: list[set[bytes]]) -> None:
    from agent_ls.workspace.index.postings import Pending

    pending = Pending()
    for number, words in enumerate(contents):
        pending.add(number, b"\n".join(sorted(words)))
    every = set().union(*contents) if contents else set()
    for term in every:
        assert pending.documents(term) == [n for n, words in enumerate(contents) if term in words]
    assert pending.documents(b"no such term") == []

"""Discovery, refs and identity, with the odd inputs that people give."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from git_kit import CASES, clean, git, nested_worktree, shallow, start, submodule, write

from agent_ls.errors import UsageError
from agent_ls.verdict import Verdict
from agent_ls.workspace.git import FALLBACK_IDENTITY, GitError, Repository
from agent_ls.workspace.snapshot import take_snapshot


def _empty_folder(area: Path) -> Path:
    return area


def _missing(area: Path) -> Path:
    return area / "nowhere"


def _below_a_file(area: Path) -> Path:
    write(area, {"file": ""})
    return area / "file" / "below"


def _bare(area: Path) -> Path:
    git(area, "init", "-q", "--bare", "bare.git")
    return area / "bare.git"


def _git_folder(area: Path) -> Path:
    return start(area / "r") / ".git" / "refs"


def _broken_link(area: Path) -> Path:
    write(area, {"r/.git": "gitdir: /nowhere/at/all\n"})
    return area / "r"


def _nonsense_link(area: Path) -> Path:
    write(area, {"r/.git": "nonsense"})
    return area / "r"


def _broken_config(area: Path) -> Path:
    start(area / "r")
    (area / "r/.git/config").write_text("[core\nbroken")
    return area / "r"


def _loop(area: Path) -> Path:
    (area / "loop").symlink_to("loop")
    return area / "loop"


@pytest.mark.parametrize(
    ("place", "cause"),
    [
        (_empty_folder, "is not a git repository"),
        (_missing, "does not exist"),
        (_below_a_file, "does not exist"),
        (_bare, "is a bare repository"),
        (_git_folder, "inside git's own directory"),
        (_broken_link, "is not a usable git repository: not a git repository: /nowhere/at/all"),
        (_nonsense_link, "is not a usable git repository: invalid gitfile format"),
        (_broken_config, "is not a usable git repository: bad config line"),
        (_loop, "can't be opened"),
    ],
)
def test_no_repository(place: Callable[[Path], Path], cause: str, tmp_path: Path) -> None:
    path = place(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError) as caught:
        Repository.discover(path)
    assert cause in caught.value.message
    assert str(path) in caught.value.message
    assert caught.value.remedy
    assert caught.value.verdict is Verdict.USAGE
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_another_users_repository(root: Path) -> None:
    start(root)
    for folder, _, _ in os.walk(root):
        os.chown(folder, 12345, 12345)
    with pytest.raises(UsageError, match="belongs to another user") as caught:
        Repository.discover(root)
    assert "safe.directory" in (caught.value.remedy or "")


def test_no_git_program(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start(root)
    monkeypatch.setenv("PATH", str(root))
    with pytest.raises(UsageError, match="git program was not found"):
        Repository.discover(root)


@pytest.mark.parametrize(
    "name", ["odd_path", "linked_worktree", "inside_submodule", "separate_git_dir", "clean"]
)
def test_discovery_from_below(name: str, root: Path, tmp_path: Path) -> None:
    top = CASES[name].build(root)
    (top / "pkg" / "deep er").mkdir()
    link = tmp_path / "link"
    link.symlink_to(top / "pkg")
    for path in (top, top / "pkg" / "deep er", top / "app.py", link):
        repo = Repository.discover(path)
        assert repo.root == top.resolve()
        assert repo.head() == git(top, "rev-parse", "HEAD").strip()
        assert repo.git("rev-parse", "--git-dir").stdout == f"{repo.git_dir}\n"
        assert (repo.git_dir / "HEAD").is_file() and (repo.common_dir / "objects").is_dir()


def test_the_callers_git_variables_are_ignored(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start(root)
    other = start(root.parent / "other")
    head = git(root, "rev-parse", "HEAD").strip()
    write(other, {"x": "x"})
    git(other, "add", "-A")
    git(other, "commit", "-qm", "x")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / "index"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "user.name")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "From the environment")
    repo = Repository.discover(root)
    assert (repo.root, repo.head()) == (root.resolve(), head)
    assert repo.identity()[0] == "Ada Löve"


def test_unborn_branch(root: Path, work: Path) -> None:
    root.mkdir(parents=True)
    git(root, "init", "-q", "-b", "trunk")
    write(root, {"app.py": "x"})
    repo = Repository.discover(root)
    assert repo.head() is None
    assert repo.current_branch() == "trunk"
    for base in (None, "worktree", "HEAD"):
        with pytest.raises(UsageError, match="no commit yet") as caught:
            take_snapshot(repo, work, base)
        assert "git commit" in (caught.value.remedy or "")
    assert list(work.iterdir()) == []
    assert not any((root / ".git/objects").glob("??"))


@pytest.mark.parametrize(
    ("rev", "found"),
    [
        ("HEAD", True), ("main", True), ("v1", True), ("HEAD~1", True), ("other", True), ("@{0}", True),
        ("HEAD~5", False), ("nonsense", False), ("", False), ("-h", False), ("--all", False),
        ("HEAD:app.py", False), ("a\0b", False), ("main..other", False), ("ümläut\n", False),
        ("0" * 40, False), ("x" * 5000, False),
    ],
)  # fmt: skip
def test_resolve(rev: str, found: bool, root: Path, work: Path) -> None:
    repo = Repository.discover(start(root))
    if found:
        sha = git(root, "rev-parse", rev + "^{commit}").strip()
        assert repo.resolve(rev) == sha
        snapshot = take_snapshot(repo, work, rev)
        assert (snapshot.commit, snapshot.dirty) == (sha, False)
        assert snapshot.tree == git(root, "rev-parse", rev + "^{tree}").strip()
    else:
        with pytest.raises(UsageError, match="names no commit"):
            repo.resolve(rev)


def test_shallow(root: Path) -> None:
    repo = Repository.discover(shallow(root))
    assert repo.is_shallow()
    with pytest.raises(UsageError, match="names no commit") as caught:
        repo.resolve("HEAD~1")
    assert "unshallow" in (caught.value.remedy or "")
    assert not Repository.discover(root.parent / "origin").is_shallow()


BAD_NAMES = (
    "", " ", "a b", "-x", "HEAD", "a..b", "a~1", "a^", "a:b", "a?", "a*", "a[", "a\\b", "/a", "a/", "a//b",
    ".a", "a.lock", "a/.b", "@{-1}", "a@{b", "a\nb", "a\0b", "a\x7f", "a.",
)  # fmt: skip


@pytest.mark.parametrize("name", BAD_NAMES)
def test_bad_branch_names(name: str, root: Path) -> None:
    repo = Repository.discover(start(root))
    refs = git(root, "for-each-ref")
    with pytest.raises(UsageError, match="not a valid branch name"):
        repo.create_branch(name, repo.resolve("HEAD"))
    assert git(root, "for-each-ref") == refs


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("main", "exists already"),
        ("other", "exists already"),
        ("feature/one", "exists already"),
        ("feature", "while the branch 'feature/one' exists"),
        ("main/agent", "while the branch 'main' exists"),
        ("feature/one/two", "while the branch 'feature/one' exists"),
    ],
)
def test_taken_branch_names(name: str, cause: str, packed: bool, root: Path) -> None:
    repo = Repository.discover(start(root))
    git(root, "branch", "feature/one", "HEAD~1")
    if packed:
        git(root, "pack-refs", "--all")
    refs = git(root, "for-each-ref")
    with pytest.raises(UsageError, match=cause):
        repo.create_branch(name, repo.resolve("HEAD"))
    assert git(root, "for-each-ref") == refs


@pytest.mark.parametrize(
    "name", ["agent-ls/issue-1-ümläut", "x", "agent-ls/a'b\"c", "agent-ls/$(touch-x)", "a/b/c/d"]
)
def test_a_branch_from_creation_to_deletion(name: str, root: Path) -> None:
    repo = Repository.discover(start(root))
    new, old = repo.resolve("HEAD"), repo.resolve("HEAD~1")
    assert not repo.branch_exists(name)
    repo.create_branch(name, old)
    assert repo.branch_exists(name)
    with pytest.raises(UsageError, match="changed by someone else"):
        repo.move_branch(name, old, new)
    repo.move_branch(name, new, old)
    assert git(root, "rev-parse", f"refs/heads/{name}").strip() == new
    with pytest.raises(UsageError, match="left as it is"):
        repo.delete_branch(name, old)
    repo.delete_branch(name, new)
    repo.delete_branch(name, new)
    assert not repo.branch_exists(name)


def test_a_branch_that_the_user_checked_out_stays(root: Path) -> None:
    repo = Repository.discover(start(root))
    new, old = repo.resolve("HEAD"), repo.resolve("HEAD~1")
    repo.create_branch("agent-ls/x", old)
    git(root, "worktree", "add", "-q", str(root.parent / "elsewhere"), "agent-ls/x")
    with pytest.raises(UsageError, match=r"is checked out in .*elsewhere and can't be moved"):
        repo.move_branch("agent-ls/x", new, old)
    with pytest.raises(UsageError, match="can't be deleted"):
        repo.delete_branch("agent-ls/x", old)
    assert repo.resolve("agent-ls/x") == old


def test_one_of_many_creates_the_branch(root: Path) -> None:
    repo = Repository.discover(start(root))
    sha = repo.resolve("HEAD")
    outcomes: list[bool] = []

    def create() -> None:
        try:
            repo.create_branch("agent-ls/race", sha)
            outcomes.append(True)
        except UsageError:
            outcomes.append(False)

    threads = [threading.Thread(target=create) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [False] * 5 + [True]


@pytest.mark.parametrize(
    ("settings", "variables", "expected"),
    [
        ("[user]\nname = A\nemail = a@b.c\n", {}, ("A", "a@b.c")),
        ("", {}, FALLBACK_IDENTITY),
        ("[user]\nuseConfigOnly = true\n", {}, FALLBACK_IDENTITY),
        ("[user]\nname = A\n", {}, ("A", FALLBACK_IDENTITY[1])),
        ("[user]\nname = A\nemail = a@b.c\n", {"GIT_AUTHOR_NAME": "E"}, ("E", "a@b.c")),
        ("", {"GIT_AUTHOR_EMAIL": "e@f"}, (FALLBACK_IDENTITY[0], "e@f")),
        ("", {"EMAIL": "mail@x"}, (FALLBACK_IDENTITY[0], "mail@x")),
        ("[user]\nname = \" ,;<>. \"\nemail = \"<a@b>\"\n", {}, (FALLBACK_IDENTITY[0], "a@b")),
        ("[user]\nname = \"A\\nB\"\nemail = a@b\n", {}, ("AB", "a@b")),
        ("[user]\nname = Ünï\nemail = a@b\n[author]\nname = Ö\n", {}, ("Ö", "a@b")),
    ],
)  # fmt: skip
def test_identity(
    settings: str,
    variables: dict[str, str],
    expected: tuple[str, str],
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    repo = Repository.discover(start(root))
    Path(os.environ["GIT_CONFIG_GLOBAL"]).write_text(settings)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert repo.identity() == expected
    commit = repo.commit_tree(
        repo.tree_of("HEAD"), "Ünï: subject\n\nbody\n\nTrailer: yes", repo.resolve("HEAD")
    )
    shown = git(root, "show", "-s", "--format=%an|%ae|%cn|%ce|%P|%B", commit)
    name, email = expected
    parent = repo.resolve("HEAD")
    assert shown.strip() == f"{name}|{email}|{name}|{email}|{parent}|Ünï: subject\n\nbody\n\nTrailer: yes"


@pytest.mark.parametrize(
    ("remotes", "expected"),
    [
        ({}, None),
        ({"origin": "git@host:o/r.git"}, "git@host:o/r.git"),
        ({"upstream": "https://h/u"}, "https://h/u"),
        ({"a": "https://h/a", "b": "https://h/b"}, None),
        ({"a": "https://h/a", "origin": "https://h/o"}, "https://h/o"),
        ({"a": "https://h/a", "origin": "https://h/o", "*branch": "a"}, "https://h/a"),
    ],
)
def test_remote_url(remotes: dict[str, str], expected: str | None, root: Path) -> None:
    start(root)
    for name, url in remotes.items():
        if name == "*branch":
            git(root, "config", "branch.main.remote", url)
        else:
            git(root, "remote", "add", name, url)
    assert Repository.discover(root).remote_url() == expected


def test_nested_places(root: Path) -> None:
    nested_worktree(root)
    assert Repository.discover(root / "nested").root == root.resolve()
    inner = Repository.discover(root / "nested/tree")
    assert (inner.root, inner.current_branch()) == ((root / "nested/tree").resolve(), "other")
    assert inner.common_dir == (root / ".git").resolve()
    assert Repository.discover(root / "nested/repo/pkg").root == (root / "nested/repo").resolve()


def test_a_submodule_without_content(root: Path, work: Path) -> None:
    submodule(root)
    git(root.parent, "clone", "-q", str(root), "clone")
    repo = Repository.discover(root.parent / "clone")
    snapshot = take_snapshot(repo, work, None)
    assert not snapshot.dirty


def test_a_failing_command_says_why(root: Path) -> None:
    repo = Repository.discover(clean(root))
    with pytest.raises(GitError, match=r"git rev-parse failed \(exit 128\): fatal: .*nonsense"):
        repo.git("rev-parse", "nonsense", "--")
    result = repo.git("rev-parse", "--verify", "nonsense", check=False)
    assert (result.returncode, result.stdout) == (128, "")
    assert repo.git("cat-file", "blob", "HEAD:app.py", text=False).data == b"one = 1\nthree = 3\n"
    assert (
        repo.git("hash-object", "--stdin", input="ü").stdout
        == repo.git("hash-object", "--stdin", input="ü".encode()).stdout
    )

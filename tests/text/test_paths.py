"""Ways out of the repository, and into what is off limits."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_ls.errors import ToolRefused
from agent_ls.workspace.edits import Create, Delete, Move, Replace
from agent_ls.workspace.files import Workspace
from agent_ls.workspace.paths import (
    is_secret_path,
    is_test_config,
    is_test_path,
    normalise,
    resolve_inside,
)


def table(key: str) -> list[tuple[str, bool]]:
    names = tomllib.loads((Path(__file__).parent / "data" / "paths.toml").read_text("utf-8"))[key]
    return [(rel, True) for rel in names["yes"]] + [(rel, False) for rel in names["no"]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    (root / "src").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("[core]\n")
    (root / "src" / "a.py").write_text("x = 1\n")
    (tmp_path / "outside.txt").write_text("out\n")
    return root


@pytest.mark.parametrize(
    ("rel", "reason"),
    [
        ("", "empty"), ("  ", "empty"), (".", "itself"), ("./", "itself"),
        ("..", '".."'), ("../outside.txt", '".."'), ("src/../../outside.txt", '".."'),
        ("src/../src/a.py", '".."'),
        ("/etc/passwd", "absolute"), ("//etc/passwd", "absolute"), ("~/x", "absolute"), ("C:/x", "absolute"),
        ("c:x", "absolute"), ("..\\outside.txt", "backslash"), ("a\0b", "NUL"), ("\ud800", "Unicode"),
        ("a" * 300, "too long"), ("a/" * 3000 + "b", "too long"), ("é" * 200, "too long"),
    ],
)  # fmt: skip
def test_paths_that_are_no_plain_relative_ones(root: Path, rel: str, reason: str) -> None:
    with pytest.raises(ToolRefused, match=reason):
        resolve_inside(root, rel)


@pytest.mark.parametrize(
    "rel",
    [
        ".git/config", ".git", "./.git/config", ".GIT/config", ".Git/hooks/pre-commit",
        ".git /config", ".git./config",
        ".git. ./config", "git~1/config", "GIT~1/config", "git~2/config", ".git::$INDEX_ALLOCATION/config",
        ".git:x", ".g\u200cit/config", ".\u200dgit/config", ".gi\ufefft", "．git/config", "sub/.git/config",
        ".git/", ".ğit/../.git",
    ],
)  # fmt: skip
@pytest.mark.parametrize("for_write", [False, True])
def test_gits_folder_is_refused_however_it_is_spelled(root: Path, rel: str, for_write: bool) -> None:
    with pytest.raises(ToolRefused):
        resolve_inside(root, rel, for_write)


@pytest.mark.parametrize(
    "rel", [".gitignore", ".gitattributes", ".github/x.md", "git/config", "a.git/x", "mygit~1"]
)
def test_names_that_only_look_like_it_are_allowed(root: Path, rel: str) -> None:
    assert resolve_inside(root, rel, for_write=True) == root / rel


@pytest.mark.parametrize(
    ("rel", "read", "write"),
    [
        (".agent-ls/config.toml", False, False),
        (".AGENT-LS/config.toml", False, False),
        (".agent-ls/config.toml ", False, False),
        (".agent-ls", False, False),
        (".agent-ls/context.md", True, False),
        (".agent-ls/issues/3.md", True, False),
        (".agent-ls/tools/edit.md", True, False),
        (".env", False, False),
        (".ENV", False, False),
        (".env::$DATA", False, False),
        ("conf/.env.production", False, False),
        (".env.example", True, True),
        ("src/a.py", True, True),
        ("src/new/b.py", True, True),
    ],
)
def test_own_configuration_and_secrets(root: Path, rel: str, read: bool, write: bool) -> None:
    for for_write, allowed in ((False, read), (True, write)):
        if allowed:
            assert resolve_inside(root, rel, for_write) == root / rel
        else:
            with pytest.raises(ToolRefused, match="off limits"):
                resolve_inside(root, rel, for_write)


def test_an_absolute_path_into_the_repository_is_answered_with_the_relative_one(root: Path) -> None:
    for rel in (f"{root}/src/a.py", "/home/someone/project/src/a.py"):
        with pytest.raises(ToolRefused, match=r"absolute.*\nPerhaps you mean src/a\.py\."):
            resolve_inside(root, rel)
    for rel in ("/etc/.git/config", "/src", "/a/../src/a.py"):
        with pytest.raises(ToolRefused, match="absolute") as caught:
            resolve_inside(root, rel)
        assert "Perhaps" not in str(caught.value)


def refuses(root: Path, rel: str, *, read: bool = True) -> None:
    for for_write in (False, True) if read else (True,):
        with pytest.raises(ToolRefused):
            resolve_inside(root, rel, for_write)


def test_symbolic_links_out(root: Path, tmp_path: Path) -> None:
    (root / "file").symlink_to(tmp_path / "outside.txt")
    (root / "relative").symlink_to("../outside.txt")
    (root / "folder").symlink_to(tmp_path)
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("folder")
    (root / "dangling").symlink_to(tmp_path / "not-there")
    (root / "up").symlink_to("..")
    for rel in (
        "file",
        "relative",
        "folder/outside.txt",
        "one/outside.txt",
        "one/new.txt",
        "dangling",
        "up",
        "up/x",
    ):
        refuses(root, rel)


def test_symbolic_links_in_a_circle(root: Path) -> None:
    (root / "loop").symlink_to("loop")
    (root / "ping").symlink_to("pong")
    (root / "pong").symlink_to("ping")
    for rel in ("loop", "ping", "loop/x"):
        with pytest.raises((ToolRefused, OSError)):
            Workspace(root).read(rel)
        refuses(root, rel, read=False)


def test_symbolic_links_inside_are_read_but_not_written(root: Path) -> None:
    (root / "alias.py").symlink_to("src/a.py")
    (root / "lib").symlink_to("src")
    assert Workspace(root).read("alias.py").text == "x = 1\n"
    assert Workspace(root).read("lib/a.py").text == "x = 1\n"
    for rel in ("alias.py", "lib/a.py", "lib/new.py"):
        with pytest.raises(ToolRefused, match="Use the path 'src/"):
            resolve_inside(root, rel, for_write=True)


def test_symbolic_links_to_what_is_off_limits(root: Path) -> None:
    (root / ".env").write_text("KEY=1\n")
    (root / "harmless.txt").symlink_to(".env")
    (root / "settings").symlink_to(".git")
    (root / "here").symlink_to(".")
    for rel in ("harmless.txt", "settings/config", "here", "here/.env", "here/.git/config"):
        refuses(root, rel)


def test_hard_links_are_not_written(root: Path, tmp_path: Path) -> None:
    os.link(tmp_path / "outside.txt", root / "linked.txt")
    with pytest.raises(ToolRefused, match="2 hard links"):
        Workspace(root).apply([Replace("linked.txt", "out", "in")])
    with pytest.raises(ToolRefused, match="2 hard links"):
        Workspace(root).apply([Move("linked.txt", "free.txt")])
    assert (tmp_path / "outside.txt").read_text() == "out\n"


def test_what_is_no_regular_file(root: Path) -> None:
    os.mkfifo(root / "pipe")
    refuses(root, "pipe")
    with pytest.raises(ToolRefused, match="folder"):
        Workspace(root).read("src")
    with pytest.raises(ToolRefused, match="no file"):
        Workspace(root).read("src/a.py/b.py")


def test_the_root_may_itself_be_behind_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(root)
    assert Workspace(tmp_path / "alias").read("src/a.py").text == "x = 1\n"


def test_edits_through_each_way_out_change_nothing(root: Path, tmp_path: Path) -> None:
    (root / "folder").symlink_to(tmp_path)
    workspace = Workspace(root)
    for edit in (
        Create("../new.txt", "x"),
        Create("folder/new.txt", "x"),
        Delete("folder/outside.txt"),
        Move("src/a.py", "folder/a.py"),
        Move("src/a.py", "../a.py"),
        Create(".git/hooks/pre-commit", "x"),
        Create("sub/.Git/config", "x"),
        Move(".git/config", "config.txt"),
        Create(".agent-ls/config.toml", "x"),
    ):
        with pytest.raises(ToolRefused):
            workspace.apply([edit])
    assert sorted(item.name for item in tmp_path.iterdir()) == ["outside.txt", "repo"]
    assert sorted(item.name for item in root.iterdir()) == [".git", "folder", "src"]


@given(st.lists(st.sampled_from([*"./\\~:ab \0é", ".git", "..", ".env"]), max_size=12).map("".join))
@example(" /")
@example("./~")
@example("./a:")
def test_a_normalised_path_is_relative_and_stays_as_it_is(rel: str) -> None:
    try:
        plain = normalise(rel)
    except ToolRefused:
        return
    assert normalise(plain) == plain
    assert not plain.startswith("/") and not {"..", ".", ""} & set(plain.split("/"))


@pytest.mark.parametrize(("rel", "secret"), table("secret"))
def test_secrets_are_told_by_their_names(rel: str, secret: bool) -> None:
    assert is_secret_path(rel) is secret


@pytest.mark.parametrize(("rel", "test"), table("test"))
def test_tests_are_told_by_their_conventions(rel: str, test: bool) -> None:
    assert is_test_path(rel) is test


@pytest.mark.parametrize(("rel", "config"), table("config"))
def test_files_that_steer_the_tests(rel: str, config: bool) -> None:
    assert is_test_config(rel) is config

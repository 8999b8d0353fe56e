"""`agent-ls search`, `symbols`, `refs` where things are not as they should be."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_kit import agent_ls, make_repo

COMMANDS = {
    "symbols": ["symbols", "alpha"],
    "refs": ["refs", "alpha"],
    "search": ["search", "def alpha"],
    "no index": ["search", "def alpha", "--no-index"],
}


def write_names(root: Path) -> None:
    (root / "a.py").write_text("def alpha(): pass\n\n\ndef other(): alpha()\n")


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS.keys())
def test_outside_any_repository(tmp_path: Path, arguments: list[str]) -> None:
    write_names(tmp_path)
    found = agent_ls(*arguments, cwd=tmp_path)
    assert found.code == 0, found.stderr
    assert found.stdout.startswith("a.py:")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("two\nlines.py", "two\\nlines.py"),
        ("tab\t.py", "tab\\t.py"),
        ("\x1b[31mred.py", "\\x1b[31mred.py"),
        ("left\u202eright.py", "left\\u202eright.py"),
        ("größe.py", "größe.py"),
    ],
)
@pytest.mark.parametrize("command", ["symbols", "search"])
def test_names_of_files_are_shown_on_one_line(tmp_path: Path, name: str, shown: str, command: str) -> None:
    root = make_repo(tmp_path / "repo", {name: "def alpha(): pass\n"})
    found = agent_ls(*COMMANDS[command], cwd=root)
    (line,) = found.stdout.splitlines()
    assert line.startswith(f"{shown}:1:")


def test_why_it_takes_long_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_repo(tmp_path / "repo", {"a.py": "def alpha(): pass\n"})
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("AGENT_LS_CACHE_DIR", str(tmp_path / "file"))
    found = agent_ls(*COMMANDS["symbols"], cwd=root)
    assert (found.code, found.stdout) == (0, "a.py:1: function def alpha()\n")
    assert "in memory only" in found.stderr

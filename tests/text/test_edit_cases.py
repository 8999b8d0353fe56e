"""Edits as data: files before, edits or a diff, and the files after or what the error says."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from agent_ls.errors import ToolRefused
from agent_ls.workspace.diffs import parse_diff
from agent_ls.workspace.edits import Create, Delete, Edit, Move, Replace
from agent_ls.workspace.files import Workspace

CASES = [
    pytest.param(case, id=f"{path.stem}: {case['name']}")
    for path in sorted((Path(__file__).parent / "data" / "edits").glob("*.toml"))
    for case in tomllib.loads(path.read_text("utf-8"))["case"]
]


def edits_of(case: dict[str, Any], workspace: Workspace) -> list[Edit]:
    if "diff" in case:
        return parse_diff(case["diff"], workspace.exists)
    edits: list[Edit] = []
    for item in case["edits"]:
        match item:
            case {"path": path, "old": old, "new": new}:
                edits.append(Replace(path, old, new))
            case {"path": path, "create": content}:
                edits.append(Create(path, content))
            case {"path": path, "delete": True}:
                edits.append(Delete(path))
            case {"path": path, "move_to": to}:
                edits.append(Move(path, to))
            case _:
                raise AssertionError(item)
    return edits


def snapshot(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(root).parts
    }


@pytest.mark.parametrize("case", CASES)
def test_case(case: dict[str, Any], tmp_path: Path) -> None:
    assert ("after" in case) != ("error" in case)
    for name, text in case["before"].items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    before = snapshot(tmp_path)
    workspace = Workspace(tmp_path)
    if "error" in case:
        with pytest.raises(ToolRefused) as caught:
            workspace.apply(edits_of(case, workspace))
        for part in case["error"]:
            assert part in str(caught.value)
        assert snapshot(tmp_path) == before
        return
    result = workspace.apply(edits_of(case, workspace))
    expected = before | {name: text.encode() for name, text in case["after"].items() if text is not False}
    for name, text in case["after"].items():
        if text is False:
            del expected[name]
    assert snapshot(tmp_path) == expected
    assert set(result.files) == set(case["after"])
    assert not [path for path in tmp_path.rglob("*") if path.is_dir() and not any(path.iterdir())]
    if not any(b"\r" in data for data in (before | expected).values()):
        check_with_git(tmp_path, before, expected, result.diff)


def check_with_git(root: Path, before: dict[str, bytes], after: dict[str, bytes], diff: str) -> None:
    """The diff that the edit reports, applied by git to the old files, gives the new ones."""
    again = root.with_name(root.name + "-git")
    again.mkdir()
    for name, data in before.items():
        (again / name).parent.mkdir(parents=True, exist_ok=True)
        (again / name).write_bytes(data)
    git = ["git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "-"]
    subprocess.run(git, input=diff.encode(), cwd=again, check=True)
    assert snapshot(again) == after

"""`agent-ls index`: the summary for people, and the document for programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_kit import agent_ls, make_repo

FILES = {"a.py": "def alpha():\n    pass\n", "b.go": "package b\n", "notes.txt": "text\n", ".env": "KEY=1\n"}


@pytest.mark.parametrize("in_git", [True, False])
def test_the_document(tmp_path: Path, in_git: bool) -> None:
    root = tmp_path / "r"
    if in_git:
        make_repo(root, FILES)
    else:
        root.mkdir()
        for name, text in FILES.items():
            (root / name).write_text(text)
    cache = str(tmp_path / "cache")
    first = agent_ls("index", "--json", cwd=root, AGENT_LS_CACHE_DIR=cache).document()
    assert first["schema"] == 1
    assert first["files"] == 3
    assert first["languages"] == {"go": 1, "python": 1, "text": 1}
    assert first["skipped"] == [{"path": ".env", "reason": "its name promises secrets"}]
    assert first["parsed"] == 3
    assert Path(first["database"]).is_relative_to(cache)
    assert first["database_bytes"] == Path(first["database"]).stat().st_size
    assert first["note"] is None
    again = agent_ls("index", "--json", cwd=root, AGENT_LS_CACHE_DIR=cache).document()
    assert (again["parsed"], again["files"], again["database"]) == (0, 3, first["database"])
    anew = agent_ls("index", "--rebuild", "--json", cwd=root, AGENT_LS_CACHE_DIR=cache).document()
    assert (anew["parsed"], anew["files"]) == (3, 3)
    assert anew["database"] != first["database"]
    assert [path.name for path in (tmp_path / "cache/index").glob("*.sqlite")] == [
        Path(anew["database"]).name
    ]


def test_the_summary(tmp_path: Path) -> None:
    root = make_repo(tmp_path / "r", FILES)
    done = agent_ls("index", cwd=root, AGENT_LS_CACHE_DIR=str(tmp_path / "cache"))
    assert done.code == 0
    assert "3 files" in done.stdout
    assert "its name promises secrets: 1 (.env)" in done.stdout
    assert done.stderr == ""


def test_a_cache_that_cannot_be_used(tmp_path: Path) -> None:
    root = make_repo(tmp_path / "r", FILES)
    (tmp_path / "file").write_text("in the way")
    done = agent_ls("index", "--json", cwd=root, AGENT_LS_CACHE_DIR=str(tmp_path / "file"))
    document = done.document()
    assert document["files"] == 3
    assert document["database"] is None
    assert "in memory" in document["note"]


def test_no_such_folder(tmp_path: Path) -> None:
    done = agent_ls("index", "--repo", "nowhere", cwd=tmp_path)
    assert done.code == 2
    assert "nowhere is not a directory" in done.stderr

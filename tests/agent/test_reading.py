"""What a session is told to read first, on a real repository through the real index."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from agent_kit import make_repo

from agent_ls.agent.reading import suspects_by_words, to_read
from agent_ls.task import Task
from agent_ls.workspace.files import Workspace
from agent_ls.workspace.git import Repository


def session(root: Path, task: Task, protected: tuple[str, ...] = ()) -> Any:
    """As much of a session as is asked, with the notes it takes in `noted`."""
    noted: list[str] = []
    return SimpleNamespace(
        task=task,
        workspace=Workspace(root),
        repo=Repository.discover(root),
        baseline=None,
        protected=lambda path: "a test" if path in protected else None,
        note=lambda text, level="info": noted.append(text),
        noted=noted,
    )


JUDGE: Any = SimpleNamespace(to_fix=())
TASK = Task("`total` is wrong", "A discount is in percent.", "test")


def test_the_defining_file_comes_first_with_its_function(tmp_path: Path) -> None:
    first = to_read(session(make_repo(tmp_path / "repo"), TASK), JUDGE)[0]
    assert (first.path, first.symbols[0]) == ("shop/cart.py", "total")
    assert first.reason.startswith("`total` is about") or "defines `total`" in first.reason


def test_functions_become_suspects_but_never_protected_ones(tmp_path: Path) -> None:
    root = make_repo(tmp_path / "repo")
    found = suspects_by_words(session(root, TASK, protected=("tests/test_cart.py",)), JUDGE)
    assert (found[0].path, found[0].function) == ("shop/cart.py", "total")
    assert all(suspect.path != "tests/test_cart.py" and 0 < suspect.score <= 0.5 for suspect in found)
    lines = (root / found[0].path).read_text().split("\n")
    assert "return amount" in lines[found[0].line - 1]


def test_a_failing_tests_message_counts_as_text(tmp_path: Path) -> None:
    given = session(make_repo(tmp_path / "repo"), Task("Fix it", "", "test"))
    message = 'File "shop/cart.py", line 11, in count\n    return len(prices)\nTypeError: no len()'
    given.baseline = SimpleNamespace(by_id=lambda: {"t": SimpleNamespace(message=message)})
    first = to_read(given, SimpleNamespace(to_fix=("t",)))[0]  # type: ignore[arg-type]
    assert (first.path, first.symbols[0]) == ("shop/cart.py", "count")
    assert "stack trace" in first.reason


def test_no_words_no_files(tmp_path: Path) -> None:
    assert to_read(session(make_repo(tmp_path / "repo"), Task("Fix it", "", "test")), JUDGE) == []


def test_an_index_that_fails_is_said_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("agent_ls.workspace.index.index.open_index", broken)
    given = session(make_repo(tmp_path / "repo"), TASK)
    assert to_read(given, JUDGE) == []
    assert "Input/output error" in given.noted[0]

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_ls.workspace.removal import remove_tree


@pytest.fixture(autouse=True)
def _own_settings(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git as on a fresh account: only an identity, none of the machine's settings."""
    home = tmp_path_factory.mktemp("home")
    settings = home / ".gitconfig"
    settings.write_text("[user]\n\tname = Ada Löve\n\temail = ada@example.org\n")
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL",
                 "GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where a test's repository is to be."""
    return tmp_path / "area" / "repo"


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Path]:
    """A session's own directory, outside the repository."""
    folder = tmp_path / "session"
    folder.mkdir()
    yield folder
    remove_tree(folder)  # pytest itself can't delete what some tests leave when they fail

"""Isolation for every test: no user configuration, no shared state, no keys, a fixed git identity."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def isolated(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Private state and configuration folders; returns the state folder. The model cache stays the user's."""
    private = tmp_path_factory.mktemp("agent-ls")
    monkeypatch.setenv("AGENT_LS_STATE_DIR", str(private / "state"))
    monkeypatch.setenv("AGENT_LS_CONFIG_DIR", str(private / "config"))
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GITHUB_TOKEN", "GITLAB_TOKEN", "AGENT_LS_MODEL"):
        monkeypatch.delenv(name, raising=False)
    for kind in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{kind}_NAME", "Test Person")
        monkeypatch.setenv(f"GIT_{kind}_EMAIL", "person@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(private / "gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return private / "state"

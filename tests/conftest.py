"""Isolation for every test: no user configuration, no shared state, no keys, a fixed git identity."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_ls.settings import cache_dir


@pytest.fixture(autouse=True)
def isolated(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Private state, configuration and cache folders; returns the state folder. Models stay the user's."""
    private = tmp_path_factory.mktemp("agent-ls")
    models = cache_dir() / "models"
    (private / "cache").mkdir()
    if models.is_dir():
        (private / "cache" / "models").symlink_to(models)
    monkeypatch.setenv("AGENT_LS_CACHE_DIR", str(private / "cache"))
    monkeypatch.setenv("AGENT_LS_STATE_DIR", str(private / "state"))
    monkeypatch.setenv("AGENT_LS_CONFIG_DIR", str(private / "config"))
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GITHUB_TOKEN", "GITLAB_TOKEN", "AGENT_LS_MODEL"):
        monkeypatch.delenv(name, raising=False)
    for kind in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{kind}_NAME", "Test Person")
        monkeypatch.setenv(f"GIT_{kind}_EMAIL", "person@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(private / "gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    # The plugins of this suite's own environment take seconds to load, at each start of a sample's tests.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return private / "state"

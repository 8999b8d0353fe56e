"""Inner pytest runs load no plugins but those that a test names: it makes each a second faster."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def lean_inner_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

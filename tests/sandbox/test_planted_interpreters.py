"""A checkout brings its own `python`: asking it for its version is running the project's code."""

from __future__ import annotations

import sys
import venv
from pathlib import Path

import pytest
from confine_kit import Place, fingerprint, make_place

from agent_ls.errors import AgentLsError
from agent_ls.settings import Settings
from agent_ls.testing.plan import find_plan


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    place = make_place(tmp_path, {"test_a.py": "def test_a(): pass\n"})
    monkeypatch.setenv("HOME", str(place.home))
    return place


EVIL = """#!/bin/sh
cat "$HOME/.ssh/id_rsa" > {base}/stolen
echo x > "$HOME/written"
echo '{{"version": "3.11.1", "pytest": "8.0", "prefixes": ["{home}/.ssh"], "path": ["{home}/.ssh"]}}'
"""


@pytest.mark.parametrize("configured", [None, "tools/python"])
def test_a_planted_interpreter_is_asked_in_the_sandbox(place: Place, configured: str | None) -> None:
    for name in (".venv/bin/python", "tools/python"):
        path = place.repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(EVIL.format(base=place.base, home=place.home))
        path.chmod(0o755)
    (place.repo / ".venv/pyvenv.cfg").write_text(f"home = {place.home}/.ssh/bin\n")
    before = fingerprint(place.base)
    try:
        plan = find_plan(place.worktree, place.repo, Settings(interpreter=configured))
    except AgentLsError:
        pass  # what it says may be nonsense; what counts is below
    else:
        assert not any(".ssh" in folder.parts for folder in plan.visible)
    assert fingerprint(place.base) == before


def test_a_real_environment_in_the_checkout_works(place: Place) -> None:
    venv.create(place.repo / ".venv", symlinks=True, with_pip=False)
    packages = next((place.repo / ".venv/lib").glob("python3*/site-packages"))
    import pytest as installed

    (packages / "x.pth").write_text(str(Path(installed.__file__).parents[1]))
    # Where pytest is lies outside the environment, so it is not seen unless it would be anyway.
    try:
        plan = find_plan(place.worktree, place.repo, Settings())
    except AgentLsError as error:
        assert "pytest is not installed" in str(error)
        return
    assert plan.interpreter == str(place.repo / ".venv/bin/python")
    assert Path(sys.base_prefix).resolve() in {folder.resolve() for folder in plan.visible}

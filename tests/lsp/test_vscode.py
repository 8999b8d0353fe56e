"""The extension in a real VS Code: its own tests without a display, then code-server driven by Chromium."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent_ls.cli.sample import create_sample

CLIENT = Path(__file__).parents[2] / "vscode-client"
CODE_SERVER = os.environ.get("CODE_SERVER", "")
"""The folder that vscode-client/e2e/install.sh filled."""
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or ""

needs_node = pytest.mark.skipif(
    not (shutil.which("npm") and (CLIENT / "node_modules").is_dir()),
    reason="the extension's packages are not installed: (cd vscode-client && npm ci)",
)
needs_code = pytest.mark.skipif(
    not (CODE_SERVER and (Path(CODE_SERVER) / "node_modules" / "code-server").is_dir() and CHROMIUM),
    reason="no real VS Code: vscode-client/e2e/install.sh DIR, then CODE_SERVER=DIR; and chromium",
)


def npm(*words: str) -> str:
    done = subprocess.run(
        ["npm", *words], cwd=CLIENT, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.slow
@needs_node
def test_types_and_tests_without_a_display() -> None:
    said = npm("test")
    assert "# fail 0" in said or "ℹ fail 0" in said, said[-2000:]


@pytest.mark.slow
@needs_node
@needs_code
def test_in_a_real_vs_code(tmp_path: Path) -> None:
    npm("run", "package")
    npm("run", "build", "--", "tests")
    sample = create_sample(tmp_path / "repo")
    out = tmp_path / "out"
    program = Path(sys.executable).with_name("agent-ls")
    done = subprocess.run(
        ["node", str(CLIENT / "e2e" / "drive.mjs"), str(out), CODE_SERVER, str(sample), str(program)],
        cwd=CLIENT, env={**os.environ, "CHROMIUM": CHROMIUM}, capture_output=True, text=True, timeout=540,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    result = json.loads((out / "result.json").read_text()) if (out / "result.json").exists() else {}
    assert result.get("passed"), done.stdout[-4000:] + done.stderr[-4000:]
    assert len(result["checks"]) >= 15
    assert [it["name"] for it in result["host"] if it.get("error")] == []
    for name in ("palette", "running", "review", "accepted"):
        assert (out / f"vscode-{name}.png").stat().st_size > 20_000, name

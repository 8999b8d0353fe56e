"""Small projects written to disk and run for real, confined."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

from attrs import evolve

from agent_ls.sandbox.confine import View, choose
from agent_ls.settings import Settings
from agent_ls.testing.plan import find_plan
from agent_ls.testing.results import TestRun
from agent_ls.testing.runner import TestRunner


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write `files` (name -> text, dedented) below `folder`."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"), "utf-8")
    return folder


def runner_for(
    base: Path,
    files: dict[str, str],
    *,
    command: tuple[str, ...] | None = None,
    mode: str = "auto",
    settings: Settings | None = None,
    network: bool = False,
) -> TestRunner:
    """A runner over a worktree with `files`; the repository beside it is empty."""
    worktree = write(base / "worktree", files)
    repo = base / "repo"
    scratch = base / "scratch"
    for folder in (worktree, repo, scratch):
        folder.mkdir(exist_ok=True, parents=True)
    settings = settings or Settings(interpreter=sys.executable, test_command=command, test_timeout=120)
    settings = evolve(settings, pass_env=(*settings.pass_env, "PYTEST_DISABLE_PLUGIN_AUTOLOAD"))
    plan = find_plan(worktree, repo, settings)
    sandbox = choose(mode)  # type: ignore[arg-type]
    return TestRunner(plan, sandbox, View(worktree, repo, scratch, network=network), settings)


def outcomes(run: TestRun) -> dict[str, str]:
    """Test id -> outcome."""
    return {test.id: test.outcome.value for test in run.tests}


def git(cwd: Path, *args: str) -> str:
    return subprocess.run(["git", *args], cwd=cwd, check=True, capture_output=True, text=True).stdout

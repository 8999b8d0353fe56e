"""Runs the real program as a subprocess."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from attrs import frozen

PROGRAM = (sys.executable, "-m", "agent_ls")


@frozen
class Outcome:
    code: int
    stdout: str
    stderr: str

    def document(self) -> dict[str, Any]:
        """The one JSON document on stdout; fails when there is anything else."""
        found = json.loads(self.stdout)
        assert isinstance(found, dict)
        assert self.stdout.startswith("{")
        assert self.stdout.endswith("}\n")
        return found


def agent_ls(*arguments: str, cwd: Path, timeout: float = 120, **env: str) -> Outcome:
    done = subprocess.run(
        [*PROGRAM, *arguments],
        cwd=cwd,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def git(cwd: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=cwd, capture_output=True, check=True)
    return done.stdout.decode("utf-8", "surrogateescape")


def make_repo(root: Path, files: dict[str, str], *, commit: bool = True) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", "main")
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if commit:
        git(root, "add", "-A")
        git(root, "commit", "-q", "--allow-empty", "-m", "first")
    return root


def fingerprint(root: Path) -> dict[str, bytes]:
    """Every file below `root` with its bytes, git's own included (but for what reading may refresh)."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }

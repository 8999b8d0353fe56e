"""Puts the bundled sample repository somewhere, with one commit of its own."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from agent_ls.errors import AgentLsError, UsageError
from agent_ls.resources import shipped
from agent_ls.sandbox.process import run_helper

_WHO = {"NAME": "agent-ls demo", "EMAIL": "demo@agent-ls.invalid"}
_CONFIG = ("core.hooksPath=/dev/null", "commit.gpgSign=false", "core.autocrlf=false")


def create_sample(target: Path) -> Path:
    """Copy the sample into the new or empty folder `target`, make it a repository, commit; returns its root.

    The person's git settings, templates and hooks play no part. Raises UsageError when git or the
    place is missing; nothing is left behind then.
    """
    new = not target.exists()
    try:
        shutil.copytree(
            shipped("sample"), target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
        )
        _git(target, "init", "--quiet", "--template=", "--initial-branch=main")
        _git(target, "add", "--all")
        _git(target, "commit", "--quiet", "--no-verify", "-m", "meterly 1.4.2")
    except (OSError, AgentLsError) as error:
        for path in [target] if new else list(target.iterdir()) if target.is_dir() else []:
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise UsageError(
                f"the sample can't be put into {target}: {error}", "Name another --dir."
            ) from error
        raise
    return target.resolve()


def _git(directory: Path, *arguments: str) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
    for role in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{role}_{part}": value for part, value in _WHO.items()}
    settings = [word for setting in _CONFIG for word in ("-c", setting)]
    try:
        done = run_helper(["git", *settings, *arguments], cwd=directory, env=env, timeout=60)
    except FileNotFoundError as error:
        raise UsageError("the git program was not found", "Install git and put it on PATH.") from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise UsageError(f"git {arguments[0]} failed: {said}", "Is your git 2.28 or newer?")

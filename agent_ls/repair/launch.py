"""Starts a fork server for a test plan: arguments, environment, sandbox."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from agent_ls.cancel import CancelToken
from agent_ls.repair.forkserver import ForkServer, Message, Process
from agent_ls.sandbox.environment import scrubbed_env
from agent_ls.testing.ids import file_of
from agent_ls.testing.runner import TestRunner


def launch(runner: TestRunner, folder: Path, more: Message, cancel: CancelToken) -> ForkServer:
    """Start a server that keeps its files in `folder`; `more` is the part of its configuration that
    does not follow from the runner (see `inside/serve.py`). Raises OSError."""
    view = runner.view
    seen = str(runner.sandbox.inside(view, folder))
    root = str(runner.sandbox.inside(view, view.worktree))
    plan = runner.plan
    position = plan.argv.index("-m")
    config: Message = {
        "kind": plan.kind,
        "root": root,
        "cwd": root,
        "args": _options(plan.argv[position + 2 :], view.worktree) if plan.kind == "pytest" else [],
        **more,
    }
    env = _environment(runner)
    if not f"{root}{seen}".isascii():
        # Under a locale without such characters Python could not name its own files.
        env["PYTHONUTF8"] = "1"
    interpreter = plan.argv[:position]

    def start(arguments: list[str]) -> Process:
        return runner.sandbox.start([*interpreter, *arguments], view=view, env=env, cancel=cancel)

    return ForkServer(start, folder, seen, config)


def _environment(runner: TestRunner) -> dict[str, str]:
    env = scrubbed_env(runner.settings.pass_env)
    env.pop("VIRTUAL_ENV", None)
    env.update(runner.plan.env)
    if runner.plan.interpreter is not None:
        env["PATH"] = os.pathsep.join([str(Path(runner.plan.interpreter).parent), env["PATH"]])
    search: list[str] = []
    if not runner.sandbox.mounts:
        search += [str(runner.view.worktree / "src"), str(runner.view.worktree)]
    search += [entry for entry in env.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if search:
        env["PYTHONPATH"] = os.pathsep.join(search)
    # Nothing is written, so no stale bytecode can be there; that of installed packages is used.
    env.update(PYTHONDONTWRITEBYTECODE="1", NO_COLOR="1")
    return env


_VALUED = {"-k", "-m", "-p", "-o", "-c", "-W", "--rootdir", "--ignore", "--deselect", "--import-mode", "-n"}


def _options(arguments: Sequence[str], root: Path) -> list[str]:
    """pytest's arguments without the paths that say which tests to run, and without selections."""
    kept: list[str] = []
    skip = False
    for index, argument in enumerate(arguments):
        if skip:
            skip = False
            continue
        valued = argument in _VALUED
        if argument in ("-k", "-m", "-n", "--deselect"):
            skip = True
            continue
        if argument.startswith(("-k=", "-m=", "-n", "--cov", "--junit", "--numprocesses", "--dist")):
            continue
        if argument in ("-x", "--exitfirst", "--lf", "--ff", "--sw", "-v", "-vv"):
            continue
        if valued:
            kept += [argument, *arguments[index + 1 : index + 2]]
            skip = True
        elif argument.startswith("-") or not (root / file_of(argument)).exists():
            kept.append(argument)
    return kept

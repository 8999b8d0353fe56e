"""Which command runs the tests, and with which interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from attrs import field, frozen

from agent_ls.cancel import CancelToken
from agent_ls.errors import EnvBroken
from agent_ls.settings import Settings
from agent_ls.testing._commands import Recognised, recognise
from agent_ls.testing._detect import detect_kind
from agent_ls.testing._interpreter import Interpreter, find_interpreter, probe_interpreter


@frozen
class TestPlan:
    """How the tests are run.

    `argv` is the base command; ids and our plugin's options are added to it. `interpreter` is the
    Python that runs it (None for other runners). `reasons` say why each choice was made. `env` is added to
    the process's environment; `visible` are folders that the sandbox must not hide.
    """

    __test__ = False

    kind: Literal["pytest", "unittest", "command"]
    argv: tuple[str, ...]
    interpreter: str | None = None
    reasons: tuple[str, ...] = ()
    env: dict[str, str] = field(factory=dict)
    visible: tuple[Path, ...] = ()
    junit: tuple[str, ...] | None = None
    """For a command: the arguments that make it write JUnit XML, `{junit}` standing for the file."""


def find_plan(root: Path, repo_root: Path, settings: Settings, cancel: CancelToken | None = None) -> TestPlan:
    """The plan for the tree at `root`, a copy of the checkout `repo_root` (whose venvs are used).

    Order: the configured command, else what the tree's files say. Raises EnvBroken when there are no tests or
    the interpreter can't run them, with the remedy; and Cancelled.
    """
    reasons: list[str] = []
    command = settings.test_command
    if command:
        recognised = recognise(command)
        reasons.append(f"the test command is configured: {' '.join(command)}")
        if recognised.kind == "command":
            return TestPlan("command", tuple(command), None, tuple(reasons), junit=recognised.junit)
        named = recognised.interpreter
    else:
        detected, why = detect_kind(root)
        reasons.append(why)
        recognised = Recognised(detected, None, ())
        named = None
    found = find_interpreter(repo_root, settings.interpreter, named, recognised.launcher, cancel)
    reasons.append(found.reason)
    facts = probe_interpreter(found, repo_root, settings.sandbox, cancel)
    kind = recognised.kind
    if kind == "pytest" and facts.pytest is None:
        if not command and not _needs_pytest(root):
            kind = "unittest"
            reasons.append(f"pytest is not installed for {found.path}; the tests only need unittest")
        else:
            raise EnvBroken(
                f"pytest is not installed for {found.path} (Python {facts.version})",
                f"Install it there (`{found.path} -m pip install pytest`), or name another interpreter with "
                "`interpreter` in [tool.agent-ls] or AGENT_LS_INTERPRETER.",
            )
    module = "pytest" if kind == "pytest" else "unittest"
    argv = (found.path, *recognised.interpreter_options, "-m", module, *recognised.arguments)
    if kind == "pytest":
        reasons.append(f"pytest {facts.pytest} on Python {facts.version}")
    return TestPlan(kind, argv, found.path, tuple(reasons), _plan_env(found), facts.visible)


def _needs_pytest(root: Path) -> bool:
    from agent_ls.testing._detect import uses_pytest

    return uses_pytest(root)


def _plan_env(found: Interpreter) -> dict[str, str]:
    return {"VIRTUAL_ENV": str(found.venv)} if found.venv is not None else {}

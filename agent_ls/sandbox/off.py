"""No sandbox: the user's own rights, with the limits that the system can set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Unpack, cast

from agent_ls.sandbox import process
from agent_ls.sandbox._limits import Watchdog, apply_limits
from agent_ls.sandbox.process import Launch, ProcessResult, Running, Supervision
from agent_ls.sandbox.view import View


class NoSandbox:
    """Runs in the worktree with the user's own rights; only resources, time and output are bounded."""

    name: Literal["off"] = "off"
    mounts = False

    def run(
        self,
        argv: Sequence[str],
        *,
        view: View,
        env: Mapping[str, str],
        cwd: Path | None = None,
        **watched: Unpack[Supervision],
    ) -> ProcessResult:
        return process.run(argv, cwd=cwd or view.worktree, env=env, **self._launch(view, watched))

    def start(
        self,
        argv: Sequence[str],
        *,
        view: View,
        env: Mapping[str, str],
        cwd: Path | None = None,
        pass_fds: Sequence[int] = (),
        **watched: Unpack[Supervision],
    ) -> Running:
        launch = self._launch(view, watched)
        launch["pass_fds"] = pass_fds
        return process.start(argv, cwd=cwd or view.worktree, env=env, **launch)

    def inside(self, view: View, path: Path) -> Path:
        return path

    def outside(self, view: View, path: Path) -> Path:
        return path

    def in_force(self, view: View | None = None) -> list[str]:
        limits = view.limits.words() if view is not None else "limits of memory, processes and files"
        return ["tests run with your own rights: they can read and change all that you can", limits]

    def _launch(self, view: View, watched: Supervision) -> Launch:
        launch = cast(Launch, dict(watched))
        launch["on_spawn"] = lambda pid: apply_limits(pid, view.limits)
        launch["watch"] = Watchdog(view.worktree, view.limits).check
        return launch

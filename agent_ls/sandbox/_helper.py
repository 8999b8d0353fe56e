"""Runs a short helper program of ours (git, rg) to its end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import frozen

from agent_ls.cancel import CancelToken
from agent_ls.errors import Cancelled


@frozen
class HelperResult:
    """What a short helper program (git, rg) returned; `timed_out` means that it was killed."""

    returncode: int
    stdout: bytes
    stderr: bytes
    timed_out: bool = False


def run_helper(
    argv: Sequence[str],
    *,
    cwd: Path | str,
    env: Mapping[str, str] | None = None,
    input: bytes | None = None,
    timeout: float | None = None,
    cancel: CancelToken | None = None,
) -> HelperResult:
    """Run a helper program of ours to its end and return all of its output.

    `env` None means our own environment. A deadline that passes kills it (`timed_out`). Raises
    `Cancelled` when the token is set, FileNotFoundError or PermissionError when it can't be started;
    any exception, KeyboardInterrupt included, kills the child first.
    """
    if cancel is not None:
        cancel.raise_if_cancelled()
    process = subprocess.Popen(
        list(argv),
        cwd=cwd,
        env=None if env is None else dict(env),
        stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    timed_out = False

    def kill() -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)

    try:
        with cancel.on_cancel(kill) if cancel is not None else contextlib.nullcontext():
            try:
                stdout, stderr = process.communicate(input, timeout)
            except subprocess.TimeoutExpired:
                timed_out = True
                kill()
                stdout, stderr = process.communicate(timeout=5)
    except BaseException:
        kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        raise
    if cancel is not None and cancel.cancelled:
        raise Cancelled
    return HelperResult(process.returncode, stdout, stderr, timed_out)

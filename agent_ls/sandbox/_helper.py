"""Runs a short helper program of ours (git, rg) to its end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from attrs import frozen

from agent_ls.cancel import CancelToken
from agent_ls.errors import Cancelled

_GRACE_S = 0.3
_SLICE_S = 0.2


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

    `env` None means our own environment. A deadline that passes ends it (`timed_out`). Raises
    `Cancelled` when the token is set, FileNotFoundError or PermissionError when it can't be started;
    any exception, KeyboardInterrupt included, ends the child first. Ending means to ask for it (git then
    removes its lock files), and to kill what does not follow.
    """
    if cancel is not None:
        cancel.raise_if_cancelled()
    with _as_file(input) as stdin:
        process = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    timed_out = False

    def ask_to_end() -> None:
        _signal_group(process, signal.SIGTERM)

    try:
        with cancel.on_cancel(ask_to_end) if cancel is not None else contextlib.nullcontext():
            try:
                stdout, stderr = _communicate(process, timeout, cancel)
            except subprocess.TimeoutExpired:
                timed_out = True
                stdout, stderr = _end(process)
    except BaseException:
        with contextlib.suppress(subprocess.TimeoutExpired, ValueError):
            _end(process)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        raise
    if cancel is not None and cancel.cancelled:
        raise Cancelled
    return HelperResult(process.returncode, stdout, stderr, timed_out)


@contextlib.contextmanager
def _as_file(data: bytes | None) -> Iterator[int]:
    """A descriptor that reads as `data`: a file, since a pipe would have to be fed while we wait."""
    if data is None:
        yield subprocess.DEVNULL
    elif hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("agent-ls"), "w+b") as memory:
            memory.write(data)
            memory.seek(0)
            yield memory.fileno()
    else:
        with tempfile.TemporaryFile() as file:
            file.write(data)
            file.seek(0)
            yield file.fileno()


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    if process.returncode is None:  # not reaped yet: the pid is still its own
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)


def _communicate(
    process: subprocess.Popen[bytes], timeout: float | None, cancel: CancelToken | None
) -> tuple[bytes, bytes]:
    """All output. Raises TimeoutExpired at the deadline, and when a child stays after a cancel."""
    if cancel is None:
        return process.communicate(timeout=timeout)
    end = None if timeout is None else time.monotonic() + timeout
    asked: float | None = None
    while True:
        left = _SLICE_S if end is None else max(0.0, min(_SLICE_S, end - time.monotonic()))
        try:
            return process.communicate(timeout=left)
        except subprocess.TimeoutExpired:
            now = time.monotonic()
            if cancel.cancelled:
                asked = asked or now
            if (asked is not None and now - asked >= _GRACE_S) or (end is not None and now >= end):
                raise


def _end(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Ask the child to end, then kill it; what it printed. Raises TimeoutExpired when not even that helps."""
    _signal_group(process, signal.SIGTERM)
    try:
        return process.communicate(timeout=_GRACE_S)
    except subprocess.TimeoutExpired:
        _signal_group(process, signal.SIGKILL)
        return process.communicate(timeout=5)

"""The one place that starts and kills processes.

Every child gets its own session, no stdin, a deadline and a bounded buffer for its output; when it is
gone, so are its descendants, even those that left the session (`PR_SET_CHILD_SUBREAPER`, see prctl(2):
an orphaned descendant becomes our child instead of init's). A pipe that a survivor still holds is
never waited for.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypedDict, Unpack

from attrs import frozen

from agent_ls.cancel import CancelToken
from agent_ls.sandbox._capture import Capture
from agent_ls.sandbox._descendants import RUN_MARKER, DescendantTracker, become_subreaper
from agent_ls.sandbox._helper import HelperResult, run_helper

__all__ = ["HelperResult", "ProcessResult", "Running", "Supervision", "run", "run_helper", "start"]

KILL_GRACE_S = 0.25
"""How long a process may react to SIGTERM before SIGKILL."""
_DRAIN_S = 0.2
_POLL_S = 0.05
_WATCH_S = 0.5


class Supervision(TypedDict, total=False):
    """How a process is watched: `timeout` in seconds from now (default: none); `cancel` ends it;
    `output_cap` in bytes (default 200,000); `on_output` gets decoded text as it comes."""

    timeout: float | None
    cancel: CancelToken | None
    output_cap: int
    on_output: Callable[[str], None] | None


class Launch(Supervision, total=False):
    """How a process is started: `pass_fds` stay open in the child; `on_spawn` gets the pid before anything
    else happens; `watch` is asked about the pid a few times a second and ends the process by returning a
    reason."""

    pass_fds: Sequence[int]
    on_spawn: Callable[[int], None] | None
    watch: Callable[[int], str | None] | None


OUTPUT_CAP = 200_000


@frozen
class ProcessResult:
    """How a process ended.

    `exit_code` is None when it was killed by `signal` or never started (`started` is False, the reason
    stands in `output`). `output` is stdout and stderr merged, head and tail when longer than the cap;
    `output_bytes` counts all of it. `problem` says why a watchdog ended it (disk, processes).
    """

    exit_code: int | None
    signal: int | None
    output: str
    duration_s: float
    timed_out: bool = False
    cancelled: bool = False
    output_bytes: int = 0
    output_truncated: bool = False
    started: bool = True
    problem: str | None = None


class Running:
    """A started process. `wait` returns its result; `kill` ends it and all of its descendants.

    Made by `start`; its output is drained in the background, so it never blocks on a full pipe.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        tracker: DescendantTracker,
        output_cap: int,
        on_output: Callable[[str], None] | None,
    ) -> None:
        self.pid = process.pid
        self._process = process
        self._tracker = tracker
        self._capture = Capture(output_cap)
        self._on_output = on_output
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._started = time.monotonic()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        self._stop = threading.Event()
        self._cancelled = False
        self._timed_out = False
        self._watch: Callable[[int], str | None] | None = None
        self._problem: str | None = None
        self._result: ProcessResult | None = None
        self._done = threading.Event()
        self._thread: threading.Thread | None = None
        self._close_lock = threading.RLock()  # a signal handler may ask for the stop while we hold it

    def poll(self) -> ProcessResult | None:
        """The result, or None while the process runs."""
        return self._result

    def kill(self) -> None:
        """End the process and its descendants; returns when they are gone. Safe to call repeatedly."""
        self._request_stop()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._done.wait(10)

    def wait(self, timeout: float | None = None) -> ProcessResult | None:
        """Wait up to `timeout` seconds (None: for ever) for the end; None when it still runs."""
        self._done.wait(timeout)
        return self._result

    def output(self) -> str:
        """What it has printed so far, head and tail."""
        return self._capture.text()

    def _request_stop(self, cancelled: bool = False) -> None:
        self._cancelled = self._cancelled or cancelled
        self._stop.set()
        with self._close_lock:
            if self._wake_write >= 0:
                with contextlib.suppress(BlockingIOError):
                    os.write(self._wake_write, b"x")

    def _pump(self, deadline: float | None) -> ProcessResult:
        """Drain and supervise until the end; called once, in the caller's thread or our own."""
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        os.set_blocking(pipe, False)
        pidfd = _pidfd(self.pid)
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(pipe, selectors.EVENT_READ)
                selector.register(self._wake_read, selectors.EVENT_READ)
                if pidfd is not None:
                    selector.register(pidfd, selectors.EVENT_READ)
                pipe_open = True
                while not self._exited() and not self._stop.is_set():
                    left = None if deadline is None else deadline - time.monotonic()
                    if left is not None and left <= 0:
                        self._timed_out = True
                        break
                    if self._watch is not None:
                        self._problem = self._watch(self.pid)
                        if self._problem is not None:
                            break
                    longest = _POLL_S if pidfd is None else _WATCH_S if self._watch is not None else None
                    wait = min((limit for limit in (left, longest) if limit is not None), default=None)
                    for key, _ in selector.select(wait):
                        if key.fd == pipe and pipe_open and not self._read(pipe):
                            selector.unregister(pipe)
                            pipe_open = False
            self._end()
            self._drain(pipe)
        finally:
            # Whatever interrupted us (KeyboardInterrupt included): nobody survives.
            self._end()
            if pidfd is not None:
                os.close(pidfd)
            self._process.stdout.close()
            with self._close_lock:
                os.close(self._wake_read)
                os.close(self._wake_write)
                self._wake_write = -1
            code = self._process.returncode
            self._result = ProcessResult(
                exit_code=code if code is not None and code >= 0 else None,
                signal=-code if code is not None and code < 0 else None,
                output=self._capture.text(),
                duration_s=time.monotonic() - self._started,
                timed_out=self._timed_out,
                cancelled=self._cancelled,
                output_bytes=self._capture.total,
                output_truncated=self._capture.truncated,
                problem=self._problem,
            )
            self._done.set()
        return self._result

    def _exited(self) -> bool:
        """Whether the child has ended, without reaping it: its pid must stay taken until the kill."""
        if self._process.returncode is not None:
            return True
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def _end(self) -> None:
        if self._process.returncode is None:
            self._tracker.end(self.pid, self._exited, KILL_GRACE_S)
            self._process.wait()
            self._tracker.sweep()

    def _read(self, pipe: int) -> bool:
        try:
            data = os.read(pipe, 1 << 16)
        except BlockingIOError:
            return True
        if not data:
            return False
        self._capture.add(data)
        if self._on_output is not None:
            self._on_output(self._decoder.decode(data))
        return True

    def _drain(self, pipe: int) -> None:
        """Take what is already in the pipe; a survivor that still holds it can't keep us."""
        end = time.monotonic() + _DRAIN_S
        while time.monotonic() < end:
            before = self._capture.total
            if not self._read(pipe) or self._capture.total == before:
                return


def _pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def start(
    argv: Sequence[str], *, cwd: Path | str, env: Mapping[str, str], **launch: Unpack[Launch]
) -> Running:
    """Start a process and supervise it in the background. Raises OSError when it can't be started."""
    timeout = launch.get("timeout")
    running = _spawn(argv, cwd, env, launch)
    deadline = None if timeout is None else time.monotonic() + timeout

    def supervise() -> None:
        with _cancelling(running, launch.get("cancel")):
            running._pump(deadline)

    running._thread = threading.Thread(target=supervise, name=f"supervise-{running.pid}", daemon=True)
    running._thread.start()
    return running


def run(
    argv: Sequence[str], *, cwd: Path | str, env: Mapping[str, str], **launch: Unpack[Launch]
) -> ProcessResult:
    """Run a process to its end, its deadline or the cancel, and kill all that is left of it.

    A program that can't be started gives a result with `started=False`. KeyboardInterrupt passes
    through after everything was killed.
    """
    timeout, cancel = launch.get("timeout"), launch.get("cancel")
    deadline = None if timeout is None else time.monotonic() + timeout
    if cancel is not None and cancel.cancelled:
        return ProcessResult(None, None, "", 0.0, cancelled=True, started=False)
    try:
        running = _spawn(argv, cwd, env, launch)
    except (OSError, ValueError) as error:
        return ProcessResult(None, None, f"{argv[0]}: {error}", 0.0, started=False)
    with _cancelling(running, cancel):
        return running._pump(deadline)


@contextlib.contextmanager
def _cancelling(running: Running, cancel: CancelToken | None) -> Iterator[None]:
    if cancel is None:
        yield
    else:
        with cancel.on_cancel(lambda: running._request_stop(cancelled=True)):
            yield


_spawner: ThreadPoolExecutor | None = None
_spawner_lock = threading.Lock()


def _forget_spawner() -> None:
    global _spawner, _spawner_lock
    _spawner = None
    _spawner_lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_spawner)


def _spawn(argv: Sequence[str], cwd: Path | str, env: Mapping[str, str], launch: Launch) -> Running:
    global _spawner
    become_subreaper()
    marker = uuid.uuid4().hex
    environment = {**env, RUN_MARKER: marker}
    tracker = DescendantTracker(marker)

    def popen() -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=tuple(launch.get("pass_fds", ())),
            bufsize=0,
            preexec_fn=_reset_signals(),
        )
        tracker.register(process.pid)
        return process

    # One thread that lives as long as we do starts every child: a parent-death signal (bwrap
    # --die-with-parent) is tied to the starting *thread*, which may otherwise end before the child.
    with _spawner_lock:
        if _spawner is None:
            _spawner = ThreadPoolExecutor(1, "spawner")
        future: Future[subprocess.Popen[bytes]] = _spawner.submit(popen)
    try:
        process = future.result()
    except BaseException:
        future.add_done_callback(lambda done: _discard(done, tracker))
        raise
    running = Running(process, tracker, launch.get("output_cap", OUTPUT_CAP), launch.get("on_output"))
    running._watch = launch.get("watch")
    on_spawn = launch.get("on_spawn")
    if on_spawn is not None:
        try:
            on_spawn(process.pid)
        except BaseException:
            running._end()
            raise
    return running


def _reset_signals() -> Callable[[], None] | None:
    """What the child must do so that it starts with every signal at its default; None for nothing.

    A shell's background job and nohup start us with signals ignored, and that would be inherited: tests of
    signals would fail for no reason of theirs.
    """
    ignored = [
        number
        for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}  # Python's own doing
        if signal.getsignal(number) is signal.SIG_IGN
    ]
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    if not ignored and not blocked:
        return None

    def reset() -> None:
        for number in ignored:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    return reset


def _discard(done: Future[subprocess.Popen[bytes]], tracker: DescendantTracker) -> None:
    """Interrupted while the child was being started: end it as soon as it exists."""
    if done.cancelled() or done.exception() is not None:
        return
    process = done.result()
    tracker.end(process.pid, lambda: False, 0.0)
    process.wait()

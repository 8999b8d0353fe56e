"""Our side of the fork server `inside/zygote.py`: start it, have it fork a run, end it."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import socket
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from agent_ls.cancel import CancelToken
from agent_ls.sandbox._capture import Capture
from agent_ls.sandbox.process import ProcessResult, Running
from agent_ls.testing.runner import INSIDE, TestRunner

_READY_S = 60.0
_ANSWER_S = 10.0
"""How long the server may take to end a run after it was told to."""
_TICK_S = 0.05
_PACKET = 1 << 18
_LONGEST_COMMAND = 1 << 17
_OWN_FILES = ("agent_ls_inside", "zygote.json", "facts.json", "sources.json")


class ZygoteError(Exception):
    """The server can't be started, died, or does not answer; the text says which."""


class NotKept(Exception):
    """A package can't be kept imported: `name` (empty: pytest itself) and why."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: {why}" if name else why)
        self.name = name
        self.why = why


@frozen
class Ready:
    """What a server that is ready has imported: `files` and search `path` as seen by it, top-level `names`,
    and its `memory` in bytes."""

    files: tuple[str, ...]
    names: frozenset[str]
    path: tuple[str, ...]
    memory: int


@frozen
class Done:
    """A run that ended. `left` says what it changed in the sandbox for good, if anything; `memory` are the
    server's bytes afterwards."""

    process: ProcessResult
    cpu_s: float
    left: str | None
    memory: int


class Zygote:
    """One server. Not thread-safe: one run at a time. `folder` is its own, below the view's scratch folder.

    Raises ZygoteError when it can't be started.
    """

    def __init__(
        self,
        runner: TestRunner,
        folder: Path,
        modules: Sequence[tuple[str, bool]],
        excluded: Sequence[str] = (),
        cancel: CancelToken | None = None,
    ) -> None:
        self.folder = folder
        self._runner = runner
        self.ready: Ready | None = None
        self._sources: Collection[tuple[str, str, bool]] = ()
        folder.mkdir(parents=True)
        shutil.copytree(INSIDE, folder / "agent_ls_inside", ignore=shutil.ignore_patterns("__pycache__"))
        self.environment = runner.environment(folder)
        view, sandbox = runner.view, runner.sandbox
        position = runner.plan.argv.index("-m")
        self._interpreter = list(runner.plan.argv[:position])
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            (folder / "zygote.json").write_text(
                json.dumps(
                    {
                        "socket": theirs.fileno(),
                        "root": str(sandbox.inside(view, view.worktree)),
                        "modules": list(modules),
                        "excluded": list(excluded),
                        "confined": sandbox.mounts,
                        "sources": str(sandbox.inside(view, folder / "sources.json")),
                        "facts": str(sandbox.inside(view, folder / "facts.json")),
                    }
                ),
                "utf-8",
            )
            self._process: Running = sandbox.start(
                [
                    *self._interpreter,
                    "-m",
                    "agent_ls_inside.zygote",
                    str(sandbox.inside(view, folder / "zygote.json")),
                ],
                view=view,
                env=self.environment,
                cancel=cancel,
                output_cap=8000,
                pass_fds=(theirs.fileno(),),
            )
        except (OSError, ValueError) as error:
            ours.close()
            raise ZygoteError(f"it can't be started: {error}") from error
        finally:
            theirs.close()
        ours.setblocking(False)
        self._socket = ours

    def wait_ready(self, cancel: CancelToken | None = None) -> Ready:
        """Wait until everything is imported. Raises NotKept, ZygoteError."""
        if self.ready is not None:
            return self.ready
        end = time.monotonic() + _READY_S
        message = None
        while message is None:
            if time.monotonic() > end:
                raise ZygoteError(f"it was not ready within {_READY_S:.0f} s")
            if cancel is not None and cancel.cancelled:
                raise ZygoteError("it was cancelled")
            message = self._receive(_TICK_S)
        if "bad" in message:
            name, why = message["bad"]
            raise NotKept(str(name), str(why))
        try:
            facts = json.loads((self.folder / "facts.json").read_text("utf-8"))
            self.ready = Ready(
                tuple(map(str, facts["files"])),
                frozenset(map(str, facts["names"])),
                tuple(map(str, facts["path"])),
                int(message["ready"]),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ZygoteError(f"it does not say what it imported: {error}") from error
        return self.ready

    def run(
        self,
        argv: Sequence[str],
        environment: dict[str, str],
        *,
        timeout: float,
        cancel: CancelToken | None = None,
        output_cap: int,
        on_tick: Callable[[], None],
        sources: Collection[tuple[str, str, bool]] = (),
    ) -> Done:
        """Fork a process that becomes the command `argv`, which starts as the plan's does.

        `sources` are files of the project (module, path as seen inside, whether asserts are rewritten) that
        the server keeps compiled. Ends the process after `timeout` seconds or at the cancel. `on_tick` is
        called now and then meanwhile. Raises ZygoteError; the server is then of no more use.
        """
        changed: dict[str, str | None] = {
            name: value for name, value in environment.items() if self.environment.get(name) != value
        }
        changed |= {name: None for name in self.environment if name not in environment}
        for fixed in ("PYTHONPATH", "TMPDIR"):  # the server's own folder serves all runs
            changed.pop(fixed, None)
        new = sources != self._sources
        if new:
            self._sources = sources
            (self.folder / "sources.json").write_text(json.dumps(list(sources)), "utf-8")
        command = json.dumps(
            {
                "op": "run",
                "arguments": list(argv[len(self._interpreter) + 2 :]),
                "orig_argv": list(argv),
                "env": changed,
                "sources": new,
            }
        ).encode("utf-8")
        if len(command) > _LONGEST_COMMAND:
            raise ZygoteError("the command is too long")
        started = time.monotonic()
        capture = Capture(output_cap)
        reader, writer = os.pipe()
        try:
            try:
                socket.send_fds(self._socket, [command], [writer])
            except OSError as error:
                raise ZygoteError(f"it is gone: {error}") from error
            finally:
                os.close(writer)
            os.set_blocking(reader, False)
            message, timed_out, cancelled = self._attend(reader, capture, started + timeout, cancel, on_tick)
            _drain(reader, capture)
        finally:
            os.close(reader)
        if "done" not in message:
            raise ZygoteError(str(message.get("refused", "it gave no result")))
        status = int(message["done"])
        process = ProcessResult(
            exit_code=os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
            signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
            output=capture.text(),
            duration_s=time.monotonic() - started,
            timed_out=timed_out,
            cancelled=cancelled,
            output_bytes=capture.total,
            output_truncated=capture.truncated,
        )
        left = message.get("left")
        return Done(
            process, float(message["cpu"]), None if left is None else str(left), int(message["memory"])
        )

    def _attend(
        self,
        reader: int,
        capture: Capture,
        deadline: float,
        cancel: CancelToken | None,
        on_tick: Callable[[], None],
    ) -> tuple[dict[str, Any], bool, bool]:
        """The server's answer, whether the deadline passed, whether it was cancelled."""
        timed_out = cancelled = False
        give_up = float("inf")
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(reader, selectors.EVENT_READ)
            while True:
                now = time.monotonic()
                if not (timed_out or cancelled):
                    timed_out = now > deadline
                    cancelled = not timed_out and cancel is not None and cancel.cancelled
                    if timed_out or cancelled:
                        self._send({"op": "kill"})
                        give_up = now + _ANSWER_S
                elif now > give_up:
                    raise ZygoteError("it does not answer")
                for key, _ in selector.select(max(0.0, min(_TICK_S, deadline - now)) or _TICK_S):
                    if key.fd == reader:
                        if not _read(reader, capture):
                            selector.unregister(reader)
                    else:
                        message = self._receive(0)
                        if message is not None:
                            return message, timed_out, cancelled
                if self._process.poll() is not None:
                    message = self._receive(0)
                    if message is not None:
                        return message, timed_out, cancelled
                on_tick()

    def _receive(self, timeout: float) -> dict[str, Any] | None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            ready = selector.select(timeout)
        try:
            data = self._socket.recv(_PACKET) if ready else None
        except BlockingIOError:
            return None
        except OSError as error:
            raise ZygoteError(f"it is gone: {error}") from error
        if data:
            try:
                message = json.loads(data)
            except ValueError as error:
                raise ZygoteError("it sends what is no message") from error
            if isinstance(message, dict):
                return message
        ended = self._process.poll()
        if data == b"" or ended is not None:
            ended = ended or self._process.wait(1.0)
            output = ended.output if ended is not None else self._process.output()
            raise ZygoteError(f"it ended by itself: {output.strip()[-300:] or _ending(ended)}")
        return None

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._socket.send(json.dumps(message).encode("utf-8"))
        except OSError as error:
            raise ZygoteError(f"it is gone: {error}") from error

    def clean(self) -> None:
        """Remove what a run left in the scratch folder and in ours (a database beside the environment's)."""
        for folder, kept in ((self.folder.parent, (self.folder.name,)), (self.folder, _OWN_FILES)):
            for path in folder.iterdir():
                if path.name not in kept:
                    if path.is_dir() and not path.is_symlink():
                        shutil.rmtree(path, ignore_errors=True)
                    else:
                        path.unlink(missing_ok=True)

    @property
    def pid(self) -> int:
        """The process that our side started (the sandbox's, where there is one)."""
        return self._process.pid

    def close(self) -> None:
        """End the server and everything below it. Safe to call repeatedly."""
        self._socket.close()
        self._process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def _ending(result: ProcessResult | None) -> str:
    if result is None:
        return "it closed the connection"
    return f"signal {result.signal}" if result.signal is not None else f"exit code {result.exit_code}"


def _read(reader: int, capture: Capture) -> bool:
    with contextlib.suppress(BlockingIOError):
        data = os.read(reader, 1 << 16)
        capture.add(data)
        return bool(data)
    return True


def _drain(reader: int, capture: Capture) -> None:
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        before = capture.total
        if not _read(reader, capture) or capture.total == before:
            return

"""Long-lived helper programs of our own that are spoken to over their pipes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

_HOME = str(Path(__file__).resolve().parents[2])
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); import importlib;"
    " importlib.import_module(sys.argv[2]).main()"
)


class Worker:
    """A Python process that runs `module.main()` of ours, isolated from the current folder and PYTHONPATH, in
    a session of its own. It ends when its stdin is closed, or is killed; as a context manager it is."""

    def __init__(self, module: str) -> None:
        """Raises OSError when it can't be started."""
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _START, _HOME, module],
            cwd=os.sep,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.stdin: BinaryIO = self._process.stdin  # type: ignore[assignment]
        self.stdout: BinaryIO = self._process.stdout  # type: ignore[assignment]

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """End it at once; may be called from any thread, and more than once."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End it and wait until it is gone."""
        self.kill()
        for stream in (self.stdin, self.stdout):
            with contextlib.suppress(OSError, ValueError):
                stream.close()
        self._process.wait()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

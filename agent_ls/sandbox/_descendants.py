"""Finds and kills every descendant of a run, also those that left its session and lost their parent."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable

RUN_MARKER = "AGENT_LS_RUN"
"""Environment variable that tells which run an orphan belongs to."""
_PR_SET_CHILD_SUBREAPER = 36
_SETTLE_S = 3.0

_lock = threading.Lock()
_active: dict[int, str] = {}  # pid of each direct child of ours -> marker of its run
_subreaper = False


def become_subreaper() -> None:
    """Orphaned descendants become our children (Linux; elsewhere only the process group is reached)."""
    global _subreaper
    if _subreaper or not sys.platform.startswith("linux"):
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _subreaper = True


def kill_all() -> None:
    """End every process below ours: runs are killed, helpers (git) asked, so that they remove their locks.

    For a signal handler that is about to leave: takes no lock, imports nothing, waits for nothing.
    """
    runs = list(_active)
    for pid in runs:
        _signal_group(pid, signal.SIGKILL)
    for child in _children(os.getpid()):
        if child not in runs and _marker_of(child) is None:
            _signal_group(child, signal.SIGTERM)
            continue
        pending = [child]
        while pending:
            pid = pending.pop()
            pending += _children(pid)
            _signal_all([pid], signal.SIGKILL)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            with open(f"/proc/{pid}/task/{task}/children") as file:  # noqa: PTH123
                found += map(int, file.read().split())
    return found


class DescendantTracker:
    """Ends one run: its process group, its descendants, and the orphans that carry its marker."""

    def __init__(self, marker: str) -> None:
        self._marker = marker
        self._since = 0.0
        self._pid: int | None = None

    def register(self, pid: int) -> None:
        import psutil

        self._pid = pid
        with contextlib.suppress(psutil.Error):
            # From the same clock as the orphans' times; the wall clock may be off by seconds.
            self._since = psutil.Process(pid).create_time()
        with _lock:
            _active[pid] = self._marker

    def end(self, pid: int, exited: Callable[[], bool], grace: float) -> None:
        """Terminate, then kill, `pid` (not yet reaped) and everything below it."""
        if not exited() and grace > 0:
            _signal_group(pid, signal.SIGTERM)
            end = time.monotonic() + grace
            while not exited() and time.monotonic() < end:
                time.sleep(0.01)
        end = time.monotonic() + _SETTLE_S
        while time.monotonic() < end:
            below = self._members(pid)
            # Stopped first, so that a fork bomb can't outrun the kills.
            _signal_all(below, signal.SIGSTOP)
            _signal_group(pid, signal.SIGKILL)
            _signal_all(below, signal.SIGKILL)
            if not exited():
                _signal_all([pid], signal.SIGKILL)
            if not below and exited():
                return
            time.sleep(0.005)

    def sweep(self) -> None:
        """After the child was reaped: kill and reap the orphans that came to us, forget the run."""
        end = time.monotonic() + _SETTLE_S
        while time.monotonic() < end:
            orphans = self._orphans()
            if not orphans:
                break
            _signal_all(orphans, signal.SIGKILL)
            time.sleep(0.005)
        with _lock:
            if self._pid is not None:
                _active.pop(self._pid, None)

    def _members(self, pid: int) -> list[int]:
        import psutil

        found: list[int] = []
        with contextlib.suppress(psutil.Error):
            for process in psutil.Process(pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    if process.status() != psutil.STATUS_ZOMBIE:
                        found.append(process.pid)
        return found + self._orphans()

    def _orphans(self) -> list[int]:
        """Living orphans of this run and what is below them; dead ones are reaped on the way."""
        import psutil

        if not _subreaper:
            return []
        found: list[int] = []
        with _lock:
            known = dict(_active)
        alone = set(known.values()) <= {self._marker}
        own_session = os.getsid(0)
        for child in psutil.Process().children():
            if child.pid in known:
                continue
            try:
                # Children that the rest of our program started share our session; a run's never do.
                if os.getsid(child.pid) == own_session or child.create_time() < self._since:
                    continue
                if child.status() == psutil.STATUS_ZOMBIE:
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(child.pid, os.WNOHANG)
                    continue
                marker = _marker_of(child.pid)
                if marker == self._marker or (marker is None and alone):
                    found.append(child.pid)
                    found.extend(below.pid for below in child.children(recursive=True))
            except (psutil.Error, ProcessLookupError):
                continue
        return found


def _marker_of(pid: int) -> str | None:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            data = file.read()
    except OSError:
        return None
    prefix = RUN_MARKER.encode() + b"="
    for entry in data.split(b"\0"):
        if entry.startswith(prefix):
            return entry[len(prefix) :].decode("ascii", "replace")
    return None


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _signal_all(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)

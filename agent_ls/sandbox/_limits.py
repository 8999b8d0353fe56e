"""Resource limits of a test process, and the watchdog for what limits can't express."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from pathlib import Path

MAX_FILE_BYTES = 2 << 30
MAX_PROCESSES = 4096
MAX_DISK_BYTES = 8 << 30
"""How much the free space of the worktree's disk may shrink during one run."""
_MIN_FREE_BYTES = 256 << 20
_INTERVAL_S = 0.5


def apply_limits(pid: int) -> None:
    """Limit file size, core dumps and memory of a process and of what it starts later.

    RLIMIT_FSIZE 2 GB; RLIMIT_CORE 0; RLIMIT_DATA (private writable memory) three quarters of the
    machine's, so that a runaway allocation is a MemoryError and not the machine's end. RLIMIT_AS is left
    alone: sanitizers, JITs and Go reserve far more address space than they use. The process is also
    the kernel's first choice when memory runs out. What can't be limited stays as it is.
    """
    if not sys.platform.startswith("linux"):
        return
    import resource

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = {
        resource.RLIMIT_FSIZE: MAX_FILE_BYTES,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_DATA: max(memory * 3 // 4, 2 << 30),
    }
    for kind, wanted in limits.items():
        with contextlib.suppress(OSError, ValueError):
            _, hard = resource.prlimit(pid, kind)
            if hard != resource.RLIM_INFINITY:
                wanted = min(wanted, hard)
            resource.prlimit(pid, kind, (wanted, wanted))
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000")


class Watchdog:
    """Tells when a run fills the disk or floods the machine with processes.

    RLIMIT_NPROC is not used: it counts all of a user's threads and does not bind root.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._next = time.monotonic() + _INTERVAL_S
        self._free = self._free_bytes()
        self._tasks = _tasks()

    def check(self, pid: int) -> str | None:
        """Why the run of `pid` must end now, or None. Cheap; looks twice a second at most."""
        now = time.monotonic()
        if now < self._next:
            return None
        self._next = now + _INTERVAL_S
        free = self._free_bytes()
        if self._free - free > MAX_DISK_BYTES or (
            free < _MIN_FREE_BYTES and self._free - free > _MIN_FREE_BYTES
        ):
            return f"it filled the disk: {(self._free - free) >> 20} MB in this run"
        if _tasks() - self._tasks > MAX_PROCESSES:
            import psutil

            with contextlib.suppress(psutil.Error):
                count = len(psutil.Process(pid).children(recursive=True))
                if count > MAX_PROCESSES:
                    return f"it started {count} processes (at most {MAX_PROCESSES} are allowed)"
        return None

    def _free_bytes(self) -> int:
        try:
            return shutil.disk_usage(self._folder).free
        except OSError:
            return 0


def _tasks() -> int:
    """All threads of the machine: one small read, whatever their number."""
    try:
        return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
    except (OSError, ValueError, IndexError):
        return 0

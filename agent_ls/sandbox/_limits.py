"""Resource limits of a test process, and the watchdog for what limits can't express."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from pathlib import Path

from attrs import frozen

from agent_ls.settings import Settings

_MB = 1 << 20
_MIN_FREE_BYTES = 256 * _MB
_LEAST_MEMORY = 2 << 30
_INTERVAL_S = 0.5
_COUNT_S = 2.0
"""The processes of a run are counted so often at least."""


@frozen
class ResourceLimits:
    """What one run may use; None means no limit, but for `memory_mb`: three quarters of the machine's.

    `memory_mb` binds each process and all of a run together; `processes` counts threads too; `file_mb` is the
    size of one file; `disk_mb` how much the free space of the worktree's disk may shrink during the run;
    `cpu_s` the CPU seconds of one process.
    """

    memory_mb: int | None = None
    processes: int = 4096
    file_mb: int = 2048
    disk_mb: int = 8192
    cpu_s: int | None = None

    @property
    def memory(self) -> int:
        """Bytes."""
        if self.memory_mb is not None:
            return self.memory_mb * _MB
        return max(_physical_memory() * 3 // 4, _LEAST_MEMORY)

    def words(self) -> str:
        """The limits as a sentence for people."""
        said = [
            f"{self.memory // _MB:,} MB of memory",
            f"{self.processes:,} processes and threads",
            f"{self.file_mb:,} MB in one file",
            f"{self.disk_mb:,} MB of disk in one run",
        ]
        if self.cpu_s is not None:
            said.append(f"{self.cpu_s:,} CPU seconds in one process")
        return "at most " + ", ".join(said)


def limits_of(settings: Settings) -> ResourceLimits:
    """The limits that the settings ask for."""
    return ResourceLimits(
        memory_mb=settings.test_memory_mb,
        processes=settings.test_processes,
        file_mb=settings.test_file_mb,
        disk_mb=settings.test_disk_mb,
        cpu_s=settings.test_cpu_s,
    )


def _physical_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def rlimits(limits: ResourceLimits) -> dict[int, int]:
    """The limits as `resource` knows them.

    RLIMIT_DATA (private writable memory) makes a runaway allocation a MemoryError and not the machine's end.
    RLIMIT_AS is left alone: sanitizers, JITs and Go reserve far more address space than they use.
    """
    import resource

    found = {
        resource.RLIMIT_FSIZE: limits.file_mb * _MB,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_DATA: limits.memory,
    }
    if limits.cpu_s is not None:
        found[resource.RLIMIT_CPU] = limits.cpu_s
    return found


def apply_limits(pid: int, limits: ResourceLimits = ResourceLimits()) -> None:
    """Limit a process and what it starts later; what can't be limited stays as it is.

    The process also becomes the kernel's first choice when memory runs out. The number of processes is
    limited where the process has a user namespace of its own: elsewhere RLIMIT_NPROC would count all of the
    user's, and it does not bind root (the watchdog looks after those).
    """
    if not sys.platform.startswith("linux"):
        return
    import resource

    wanted = rlimits(limits)
    if os.geteuid() != 0 and _own_user_namespace(pid):
        wanted[resource.RLIMIT_NPROC] = limits.processes
    for kind, value in wanted.items():
        with contextlib.suppress(OSError, ValueError):
            _, hard = resource.prlimit(pid, kind)
            if hard != resource.RLIM_INFINITY:
                value = min(value, hard)
            resource.prlimit(pid, kind, (value, value))
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000")


def _own_user_namespace(pid: int) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/ns/user") != os.readlink("/proc/self/ns/user")  # noqa: PTH115
    except OSError:
        return False


class Watchdog:
    """Tells when a run fills the disk or the memory, or floods the machine with processes."""

    def __init__(self, folder: Path, limits: ResourceLimits = ResourceLimits()) -> None:
        self._folder = folder
        self._limits = limits
        self._next = time.monotonic() + _INTERVAL_S
        self._free, self._inodes = self._room()
        self._tasks, self._count = _tasks(), self._next
        self._memory = _available_memory()

    def check(self, pid: int) -> str | None:
        """Why the run of `pid` must end now, or None. Cheap; looks twice a second at most."""
        now = time.monotonic()
        if now < self._next:
            return None
        self._next = now + _INTERVAL_S
        return self._disk() or self._processes(pid) or self._too_much_memory(pid)

    def _disk(self) -> str | None:
        free, inodes = self._room()
        used = self._free - free
        if used > self._limits.disk_mb * _MB or (free < _MIN_FREE_BYTES and used > _MIN_FREE_BYTES):
            return f"it filled the disk: {used >> 20} MB in this run"
        if self._inodes - inodes > max(100_000, self._inodes // 2):
            return f"it filled the disk: {self._inodes - inodes} files in this run"
        return None

    def _processes(self, pid: int) -> str | None:
        most = self._limits.processes
        # The machine's own count is cheap, but others' processes that end meanwhile hide what the run starts.
        now = time.monotonic()
        if _tasks() - self._tasks <= most and now < self._count:
            return None
        self._count = now + _COUNT_S
        count = sum(threads for _, threads in _tree(pid))
        return (
            f"it started {count} processes and threads (at most {most} are allowed)" if count > most else None
        )

    def _too_much_memory(self, pid: int) -> str | None:
        """Memory of all processes of the run and of what they wrote into file systems in memory."""
        gone = self._memory - _available_memory()
        if gone <= self._limits.memory // 2:
            return None
        used = sum(_resident(member) for member, _ in _tree(pid))
        if used > self._limits.memory:
            # Pages that forked processes share were counted once for each.
            used = sum(_proportional(member) for member, _ in _tree(pid))
        most = self._limits.memory
        if used > most:
            return f"its processes used {used >> 20} MB of memory together (at most {most >> 20} are allowed)"
        if gone > most and _available_memory() < _physical_memory() // 10:
            return f"the machine ran out of memory during this run: {gone >> 20} MB less than before"
        return None

    def _room(self) -> tuple[int, int]:
        """Free bytes and free inodes."""
        try:
            inodes = os.statvfs(self._folder).f_favail
            return shutil.disk_usage(self._folder).free, inodes
        except (OSError, AttributeError):
            return 0, 0


def _tasks() -> int:
    """All threads of the machine: one small read, whatever their number."""
    try:
        return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
    except (OSError, ValueError, IndexError):
        return 0


def _available_memory() -> int:
    """Bytes; 0 where it can't be told."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0


def _tree(pid: int) -> list[tuple[int, int]]:
    """(pid, number of threads) of a process and all below it."""
    import psutil

    found = []
    with contextlib.suppress(psutil.Error):
        top = psutil.Process(pid)
        for process in (top, *top.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                found.append((process.pid, process.num_threads()))
    return found


def _resident(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _proportional(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return _resident(pid)

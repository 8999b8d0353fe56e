"""What a run left in the sandbox: processes, files in memory, shared memory."""

# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: PTH101, PTH107, PTH112, PTH114, PTH118, PTH123, PTH208, UP031

import os
import sys
import time
from typing import Any

MARKER = "AGENT_LS_RUN"


def unescape(text):
    return (
        text.encode("ascii", "surrogateescape")
        .decode("unicode_escape")
        .encode("latin-1")
        .decode(sys.getfilesystemencoding(), "surrogateescape")
    )


class Private:
    """The sandbox's own memory file systems (temporary files, the hidden home): as they were at the start."""

    def __init__(self):
        self.roots = []
        self.mounts = set()
        try:
            with open("/proc/self/mountinfo", "rb") as file:
                lines = file.read().decode("latin-1").splitlines()
        except OSError:
            lines = []
        for line in lines:
            left, _, right = line.partition(" - ")
            place = unescape(left.split()[4])
            self.mounts.add(place)
            if right.split()[0] == "tmpfs" and os.access(place, os.W_OK):
                self.roots.append(place)
        self.before = self.look()

    def look(self):
        found: Any = {}
        pending = list(self.roots)
        while pending:
            folder = pending.pop()
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.path in self.mounts and entry.path not in self.roots:
                            continue
                        info = entry.stat(follow_symlinks=False)
                        if entry.is_dir(follow_symlinks=False):
                            found[entry.path] = (info.st_mode, info.st_uid, info.st_gid)
                            if entry.path not in self.roots:
                                pending.append(entry.path)
                        else:
                            found[entry.path] = (info.st_mode, info.st_ino, info.st_size, info.st_ctime_ns)
            except OSError:
                found[folder] = None
        return found

    def restore(self):
        """Remove what is new. Returns what is left over, or was changed or removed."""
        now = self.look()
        if now == self.before:
            return None
        for path in sorted(set(now) - set(self.before), key=len):
            remove(path)
        now = self.look()
        for path in sorted(set(now) ^ set(self.before)):
            return path
        for path in sorted(now):
            if now[path] != self.before[path]:
                return path
        return None


def remove(path):
    """Remove a file, a link or a folder, also one that forbids it."""
    import shutil

    try:
        if not os.path.isdir(path) or os.path.islink(path):
            os.remove(path)
            return
        shutil.rmtree(path, ignore_errors=True)
        if os.path.isdir(path):
            os.chmod(path, 0o700)
            for folder, folders, _ in os.walk(path):
                for name in folders:
                    if not os.path.islink(os.path.join(folder, name)):
                        os.chmod(os.path.join(folder, name), 0o700)
            shutil.rmtree(path, ignore_errors=True)
    except OSError:
        pass


def shared_memory_left():
    """Whether System V objects are left in our IPC namespace."""
    for name in ("shm", "sem", "msg"):
        try:
            with open("/proc/sysvipc/" + name) as file:
                if len(file.read().splitlines()) > 1:
                    return "/proc/sysvipc/" + name
        except OSError:
            continue
    return None


def processes():
    try:
        return {name for name in os.listdir("/proc") if name.isdigit()}
    except OSError:
        return set()


def leftovers(confined, before):
    """Processes that a run left: all new ones in our PID namespace, or those that carry our run's mark."""
    mark = ("%s=%s" % (MARKER, os.environ.get(MARKER, ""))).encode()
    found = []
    for name in processes() - before:
        try:
            with open("/proc/%s/stat" % name, "rb") as file:
                if file.read().rsplit(b")", 1)[1].split()[0] in (b"Z", b"X"):
                    continue
            if not confined:
                with open("/proc/%s/environ" % name, "rb") as file:
                    if mark not in file.read().split(b"\0"):
                        continue
        except (OSError, IndexError):
            continue
        found.append(int(name))
    return found


def ended(pid, seconds):
    """Whether our child ends within so many seconds; it is not reaped."""
    end = time.monotonic() + seconds
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > end:
            return False
        time.sleep(0.0005)
    return True


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except OSError:
        pass


def send_signal(pid, number):
    """To the process group that the child leads; the child alone where it has none yet."""
    for send in (os.killpg, os.kill):
        try:
            send(pid, number)
        except OSError:
            pass


def memory_used():
    """Resident bytes."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0

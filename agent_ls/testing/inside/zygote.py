"""Fork server: keeps pytest and third-party modules imported, forks a process for each run of tests.

Started as `-m agent_ls_inside.zygote CONFIG` in the project's interpreter (Python 3.8+) with one end of a
SEQPACKET socket, whose number is in the configuration. It has one thread and one run at a time, and never
imports a file of the project. Each child becomes what `python -m pytest ARGUMENTS` would be: its own
session, arguments, `__main__`, search path, warning filters, output pipe, environment; it leaves through
the interpreter's own exit, so that exit hooks and threads behave as they do elsewhere.

Messages, one JSON object a packet. To us: `run` (arguments, env; the write end of the output pipe is
attached), `kill` (ends the run). From us: `ready` (memory in bytes; the file `facts` then says what is
imported), `bad` (a module that can't be kept imported, and why), `done` (wait status, what could not be
cleaned up), `refused` (why nothing can be forked).
"""

# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: PTH101, PTH107, PTH112, PTH114, PTH120, PTH123, PTH208, UP031

import gc
import json
import os
import runpy
import select
import signal
import sys
import time
from typing import Any

try:
    import _socket
except ImportError:  # the client then says why there is no server
    _socket = None  # type: ignore[assignment]

_GRACE_S = 0.25
_PACKET = 1 << 18
_MARKER = "AGENT_LS_RUN"


class Refused(Exception):
    """A module can't be kept imported: (name, why)."""


# -- what is kept imported


class _State:
    def trace(self, text):
        pass


class _Config:
    """As much of a pytest configuration as its assertion rewriting asks for."""

    def __init__(self, key):
        self.stash = {key: _State()}

    def getini(self, name):
        return [] if name == "python_files" else False


def rewriting_hook(names):
    """An import hook that rewrites asserts of exactly these modules, as the run that found them did."""
    from _pytest.assertion.rewrite import AssertionRewritingHook, assertstate_key

    class Hook(AssertionRewritingHook):
        def _early_rewrite_bailout(self, name, state):
            return name not in names

        def _should_rewrite(self, name, fn, state):
            return name in names

    config: Any = _Config(assertstate_key)
    hook = Hook(config)
    hook.set_session(None)
    return hook


def threads():
    """How many threads this process has, native ones included."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        import threading

        return threading.active_count()


def preload(modules, own, excluded):
    """Import `modules` ([name, asserts rewritten]) in this order. Raises Refused for the first that starts
    a thread or brings in a file for which `own` is true. Modules that can't be imported are left out."""
    rewritten = {name for name, flag in modules if flag}
    hook = None
    if rewritten:
        try:
            hook = rewriting_hook(rewritten)
        except Exception:  # a pytest whose internals differ: those modules are imported in each run
            hook = None
        if hook is None:
            modules = [entry for entry in modules if not entry[1]]
        else:
            sys.meta_path.insert(0, hook)
    skipped = tuple(excluded)
    try:
        for name, _ in modules:
            top = name.partition(".")[0]
            if name in sys.modules or top in skipped:
                continue
            before = set(sys.modules)
            try:
                __import__(name)
            except BaseException:
                # Half-imported modules would be taken for good ones.
                for new in set(sys.modules) - before:
                    del sys.modules[new]
                continue
            if threads() > 1:
                raise Refused(top, "it starts a thread when imported")
            for new in set(sys.modules) - before:
                path = getattr(sys.modules.get(new), "__file__", None)
                if isinstance(path, str) and own(path):
                    raise Refused(top, "it imports %s, a file of the project" % new)
    finally:
        if hook is not None:
            sys.meta_path.remove(hook)


# -- cleaning up behind a run


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
    import shutil

    def retry(function, name, error):
        try:
            os.chmod(os.path.dirname(name), 0o700)
            os.chmod(name, 0o700)
            function(name)
        except OSError:
            pass

    try:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, onerror=retry)
        elif os.path.lexists(path):
            os.remove(path)
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
    mark = ("%s=%s" % (_MARKER, os.environ.get(_MARKER, ""))).encode()
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


# -- the server


class Server:
    def __init__(self, config, channel):
        self.config = config
        self.channel = channel
        self.confined = config["confined"]
        self.private = None

    def send(self, **message):
        self.channel.send(json.dumps(message).encode("utf-8"))

    def receive(self):
        """The next message and the descriptor that came with it; None at the end."""
        data, extra, _, _ = self.channel.recvmsg(_PACKET, _socket.CMSG_SPACE(4))
        fd = -1
        for level, kind, payload in extra:
            if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
                fd = int.from_bytes(payload[:4], sys.byteorder)
        return (json.loads(data.decode("utf-8")), fd) if data else (None, fd)

    def serve(self):
        """Returns None at the end, and in each child the command that it is to carry out."""
        while True:
            command, output = self.receive()
            if command is None:
                return None
            if command["op"] != "run":
                continue
            if threads() > 1:
                self.send(refused="it has more than one thread")
                continue
            before = processes()
            alive, held = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(alive)
                self.channel.close()
                command["output"] = output
                return command
            os.close(held)
            os.close(output)
            status, usage, over = self.attend(pid, alive)
            os.close(alive)
            left = self.clean_up(before)
            self.send(done=status, cpu=usage.ru_utime + usage.ru_stime, left=left, memory=memory_used())
            if over:
                return None

    def attend(self, pid, alive):
        """Wait for the run's end, or end it when we are told to or when nobody listens any more."""
        over = False
        while True:
            done, status, usage = os.wait4(pid, os.WNOHANG)
            if done:
                return status, usage, over
            ready, _, _ = select.select([self.channel, alive], [], [], 0.02)
            if alive in ready:
                # It ended, or a test closed all descriptors. (A grandchild may hold it open: hence 0.02.)
                ended(pid, 0.05)
            if self.channel in ready:
                command, _ = self.receive()
                over = over or command is None
                if command is None or command["op"] == "kill":
                    self.end(pid)

    def end(self, pid):
        """First a request, then force, as for any other run of tests."""
        send_signal(pid, signal.SIGTERM)
        ended(pid, _GRACE_S)
        send_signal(pid, signal.SIGKILL)

    def clean_up(self, before):
        """End what the run left. Returns what it changed for good, or None."""
        end = time.monotonic() + 3
        while time.monotonic() < end:
            left = leftovers(self.confined, before)
            if not left:
                break
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for pid in left:
                    try:
                        os.kill(pid, number)
                    except OSError:
                        pass
            reap()
            time.sleep(0.002)
        else:
            return "processes that can't be ended"
        if self.private is None:
            return None
        return self.private.restore() or shared_memory_left()


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


# -- becoming a run


class Start:
    """What an interpreter has when it starts, taken before anything is imported for tests."""

    def __init__(self):
        self.path = list(sys.path)
        self.warnings = None
        if "warnings" in sys.modules:
            self.warnings = list(sys.modules["warnings"].filters)

    def restore(self, root):
        sys.path[:] = self.path
        warnings = sys.modules.get("warnings")
        if warnings is not None and self.warnings is not None and warnings.filters != self.warnings:
            warnings.filters[:] = self.warnings
            mutated = getattr(warnings, "_filters_mutated", None) or getattr(
                warnings, "_filters_mutated_lock_held", None
            )
            if mutated is not None:
                mutated()
        for path in list(sys.path_importer_cache):
            if below(path, root):
                del sys.path_importer_cache[path]


def below(path, root):
    return path in ("", root) or path.startswith(root + os.sep)


def become(command, start, root):
    """Turn this forked child into a fresh `python -m pytest`, up to the start of pytest itself."""
    try:
        os.setsid()
    except OSError:
        pass
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(command["output"], 1)
    os.dup2(command["output"], 2)
    os.close(command["output"])
    for name, value in command["env"].items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    start.restore(root)
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[:] = command["orig_argv"]
    sys.argv[:] = ["pytest", *command["arguments"]]
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:  # the standard library's generator seeds itself anew after a fork
        numpy.seed()
    if "tempfile" in sys.modules:
        sys.modules["tempfile"].__dict__["tempdir"] = None


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        config = json.load(file)
    root = config["root"]
    os.set_inheritable(config["socket"], False)
    channel = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, config["socket"])
    start = Start()
    server = Server(config, channel)

    def own(path):
        from .common import is_own, relative

        return is_own(relative(path))

    try:
        # A name of the project's must not be found in place of an installed one.
        sys.path[:] = [path for path in sys.path if not below(path, root) or "site-packages" in path]
        import pytest  # noqa: F401

        preload(config["modules"], own, config["excluded"])
    except Refused as reason:
        server.send(bad=reason.args)
        return
    except BaseException as error:
        server.send(bad=["", "pytest can't be kept imported: %s: %s" % (type(error).__name__, error)])
        return
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    facts = {
        "files": sorted({file for file in files if isinstance(file, str)}),
        "names": sorted({name.partition(".")[0] for name in sys.modules}),
        "path": [path for path in start.path if os.path.isdir(path)],
    }
    with open(config["facts"], "w", encoding="utf-8") as file:
        json.dump(facts, file)
    # What imports left in the home or in temporary folders (caches) is there in a fresh process too.
    server.private = Private() if config["confined"] else None
    gc.collect()
    gc.freeze()
    server.send(ready=memory_used())
    command = server.serve()
    if command is not None:
        become(command, start, root)
        del server, channel, config
        runpy.run_module("pytest", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

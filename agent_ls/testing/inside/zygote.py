"""Fork server: keeps pytest and third-party modules imported, forks a process for each run of tests.

Started as `-m agent_ls_inside.zygote CONFIG` in the project's interpreter (Python 3.8+) with one end of a
SEQPACKET socket, whose number is in the configuration. It has one thread and one run at a time. Files of the
project it compiles, so that each run need not, but never executes. Each child becomes what `python -m pytest
ARGUMENTS` would be: its own session, arguments, `__main__`, search path, warning filters, output pipe,
environment; it leaves through the interpreter's own exit, so that exit hooks and threads behave as they do
elsewhere.

Messages, one JSON object a packet. To us: `run` (arguments, env, whether the file `sources` is new; the write
end of the output pipe is attached), `kill` (ends the run). From us: `ready` (memory in bytes; the file
`facts` then says what is imported), `bad` (a module that can't be kept imported, and why), `done` (wait
status, what could not be cleaned up), `refused` (why nothing can be forked).
"""

# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: PTH112, PTH123, UP031

import atexit
import gc
import json
import os
import runpy
import select
import signal
import sys
import time

from .cleaning import Private, ended, leftovers, memory_used, processes, reap, send_signal, shared_memory_left
from .preloading import Compiled, Refused, Start, below, preload, threads

try:
    import _socket
except ImportError:  # the client then says why there is no server
    _socket = None  # type: ignore[assignment]

_GRACE_S = 0.25
_PACKET = 1 << 18


class Server:
    def __init__(self, config, channel):
        self.config = config
        self.channel = channel
        self.confined = config["confined"]
        self.private = None
        self.compiled = Compiled(config["root"])

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
            if command["sources"]:
                with open(self.config["sources"], encoding="utf-8") as file:
                    self.compiled.want(json.load(file))
            self.compiled.refresh()
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


def finish(program):
    """Run the program and end the process as the interpreter would, but leave its memory to the system:
    taking apart all that is imported would cost as much as a small test."""
    code = 0
    try:
        program()
    except SystemExit as stop:
        if stop.code is not None and not isinstance(stop.code, int):
            print(stop.code, file=sys.stderr)
            code = 1
        else:
            code = int(stop.code or 0)
    # Anything else leaves through the interpreter itself.
    if "threading" in sys.modules:
        sys.modules["threading"]._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not getattr(stream, "closed", False):
            try:
                stream.flush()
            except Exception:
                code = 120
    os._exit(code & 0xFF)


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
        server.compiled.install()
        del server, channel, config
        finish(lambda: runpy.run_module("pytest", run_name="__main__", alter_sys=True))


if __name__ == "__main__":
    main()

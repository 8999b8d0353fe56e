"""Forks a child for every command, ends it when it hangs, and reports what it found."""

# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: PTH102, PTH118, PTH123, UP031

import errno
import gc
import json
import os
import resource
import select
import shutil
import signal
import tempfile
import time
import traceback


class Channel:
    """JSON lines in and out through the two FIFOs named in the configuration."""

    def __init__(self, commands, replies):
        # Opened for reading and writing, so that neither open() nor a restart of the other end blocks.
        self.fd = os.open(commands, os.O_RDWR)
        self.out = os.open(replies, os.O_RDWR)
        self.rest = b""

    def read(self):
        data = os.read(self.fd, 1 << 16)
        self.rest += data
        lines = self.rest.split(b"\n")
        self.rest = lines.pop()
        return [json.loads(line.decode("utf-8")) for line in lines if line]

    def send(self, message):
        write_all(self.out, json.dumps(message).encode("utf-8") + b"\n")


def write_all(fd, data):
    while data:
        done = os.write(fd, data)
        data = data[done:]


class Child:
    """A forked child at work on one command."""

    def __init__(self, command, pid, fd, scratch, wall):
        self.command = command
        self.pid = pid
        self.fd = fd
        self.scratch = scratch
        self.buffer = b""
        self.closed = False
        self.wall = wall
        self.started = time.monotonic()
        self.last_cpu = -1.0
        self.idle_since = self.started

    def lines(self):
        parts = self.buffer.split(b"\n")
        found = []
        for part in parts[:-1]:
            try:
                found.append(json.loads(part.decode("utf-8")))
            except ValueError:
                pass
        return found

    def pump(self):
        while True:
            try:
                data = os.read(self.fd, 1 << 16)
            except OSError as error:
                if error.errno in (errno.EAGAIN, errno.EWOULDBLOCK):
                    return
                data = b""
            if not data:
                self.closed = True
                return
            self.buffer += data

    def overdue(self, now):
        """Out of wall time, or blocked: no processor time used and not runnable for a while."""
        if now - self.started > self.wall:
            return True
        state, used = process_state(self.pid)
        if state != "S" or used != self.last_cpu:
            self.last_cpu = used
            self.idle_since = now
            return False
        return now - self.idle_since > self.command.get("idle", 3.0)


def process_state(pid):
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            fields = file.read().rsplit(b")", 1)[1].split()
        return fields[0].decode(), int(fields[11]) + int(fields[12])
    except (OSError, IndexError, ValueError):
        return "?", 0


class Server:
    """Forks children for commands, at most `slots` at once, and reports what they found."""

    def __init__(self, config, channel, job):
        self.config = config
        self.channel = channel
        self.job = job  # called in the child: job(command, emit)
        self.slots = config["slots"]
        self.waiting = []
        self.running = {}
        self.parent = os.getppid()

    def loop(self):
        gc.collect()
        if hasattr(gc, "freeze"):
            gc.freeze()
        while True:
            while self.waiting and len(self.running) < self.slots:
                self.start(self.waiting.pop(0))
            fds = [self.channel.fd, *list(self.running)]
            ready, _, _ = select.select(fds, [], [], 0.05 if self.running else 1.0)
            if os.getppid() != self.parent:
                self.stop()
                return
            for fd in ready:
                if fd == self.channel.fd:
                    for command in self.channel.read():
                        if command["op"] == "quit":
                            self.stop()
                            return
                        if command["op"] == "drop":
                            self.waiting = []
                        else:
                            self.waiting.append(command)
                elif fd in self.running:
                    self.running[fd].pump()
            now = time.monotonic()
            for fd, child in list(self.running.items()):
                if child.closed or b'"done"' in child.buffer:
                    self.finish(fd, child, False)
                elif now - child.started > 0.04 and child.overdue(now):
                    self.finish(fd, child, True)

    def start(self, command):
        reader, writer = os.pipe()
        scratch = os.path.join(self.config["scratch"], "c{}".format(command["id"]))
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.close(reader)
                enter_child(self.config, scratch, command)
                self.job(command, lambda message: write_all(writer, json.dumps(message).encode() + b"\n"))
                write_all(writer, b'{"done": 1}\n')
                status = 0
            except BaseException:
                try:
                    text = traceback.format_exc()[-2000:]
                    write_all(writer, json.dumps({"crash": text}).encode() + b"\n")
                except BaseException:
                    pass
            finally:
                os._exit(status)
        os.close(writer)
        os.set_blocking(reader, False)
        self.running[reader] = Child(command, pid, reader, scratch, command.get("wall", 60.0))

    def finish(self, fd, child, killed):
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            try:
                os.kill(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            _, status = os.waitpid(child.pid, 0)
        except ChildProcessError:
            status = 0
        child.pump()
        os.close(fd)
        del self.running[fd]
        shutil.rmtree(child.scratch, ignore_errors=True)
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        done = b'"done"' in child.buffer
        timed_out = not done and (killed or number in (signal.SIGPROF, signal.SIGXCPU, signal.SIGKILL))
        self.channel.send(
            {
                "id": child.command["id"],
                "events": [line for line in child.lines() if "done" not in line],
                "timeout": timed_out,
                "signal": number,
                "done": done,
            }
        )

    def stop(self):
        for fd, child in list(self.running.items()):
            self.finish(fd, child, True)


def enter_child(config, scratch, command):
    os.setpgid(0, 0)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    extra = config.get("memory", 1 << 30)
    try:
        with open("/proc/self/statm") as file:
            pages = file.read().split()
        page = resource.getpagesize()
        limit_to(resource.RLIMIT_AS, int(pages[0]) * page + extra)
    except (OSError, ValueError, IndexError):
        pass
    limit_to(resource.RLIMIT_CORE, 0)
    limit_to(resource.RLIMIT_CPU, int(command.get("cpu_total", 60)) + 2)
    limit_to(resource.RLIMIT_FSIZE, 1 << 28)
    tempfile.tempdir = None
    os.environ["TMPDIR"] = scratch
    os.mkdir(scratch)


def limit_to(kind, value):
    try:
        _, hard = resource.getrlimit(kind)
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.setrlimit(kind, (value, hard))
    except (ValueError, OSError):
        pass


def arm(seconds):
    """End this process by SIGPROF after so many seconds of its own processor time (0 disarms)."""
    signal.setitimer(signal.ITIMER_PROF, seconds)

"""Fork server that runs tests against candidate patches. Runs in the PROJECT's interpreter.

Self-contained on purpose: standard library (Python 3.8+) and, for pytest suites, the project's own
pytest. It is copied next to its configuration file and started as `python _worker.py config.json`.

`fast` mode collects the tests once and then forks for every candidate; the child exchanges the code
object of the one changed function in every live function object, which is exact as long as that
function was not called while the modules were imported (a profile hook watches for that; then the
answer is `slow`). `slow` mode keeps only pytest and third-party modules warm, and each child imports
the project afresh with the candidate's source in place of the file's.

Protocol: JSON lines over two FIFOs. Every candidate runs in its own child, so no state can leak.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: PTH102, PTH113, PTH118, PTH123, UP031, B905

import errno
import gc
import importlib.machinery
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
import types
from typing import Any

MESSAGE_CAP = 300
FUTURE_FLAGS = 0x10000 | 0x20000 | 0x80000 | 0x100000 | 0x200000 | 0x400000 | 0x800000 | 0x1000000


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


# ------------------------------------------------------------------------------------------ recording


class Recorder:
    """Lines executed and types of locals seen, for files below the root."""

    MAX_TYPES = 6

    def __init__(self, root):
        self.root = os.path.realpath(root) + os.sep
        self.files = {}  # co_filename -> set of lines, or None for a file outside the project
        self.types = {}  # (filename, first line of the code) -> {name: {type name}}
        self.left = {}  # id(code) -> lines not yet seen, and how often locals were read
        self.keep = []
        self.seen = {}

    def lines_of(self, code):
        name = code.co_filename
        if name in self.files:
            return self.files[name]
        real = os.path.realpath(name)
        inside = real.startswith(self.root) and "site-packages" not in real and os.path.isfile(real)
        self.files[name] = set() if inside else None
        return self.files[name]

    def globally(self, frame, event, arg):
        code = frame.f_code
        lines = self.lines_of(code)
        if lines is None:
            return None
        count = self.seen.get(code, 0)
        self.seen[code] = count + 1
        lines.add(frame.f_lineno)
        left = self.left.get(code)
        if left is None:
            left = {line for line in code_lines(code) if line is not None}
            self.left[code] = left
        if not left and count > 40:
            return None
        key = (code.co_filename, code.co_firstlineno)

        def locally(frame, event, arg):
            if event == "line":
                line = frame.f_lineno
                lines.add(line)
                left.discard(line)
            elif event == "return" and count <= 40:
                self.note_types(key, frame, arg)
            return locally

        if count <= 40:
            self.note_types(key, frame, None)
        return locally

    def note_types(self, key, frame, value):
        table = self.types.setdefault(key, {})
        for name, item in list(frame.f_locals.items()):
            if name.isidentifier():
                seen = table.setdefault(name, {})
                if len(seen) < self.MAX_TYPES:
                    seen[type(item).__name__] = 1
        if value is not None:
            seen = table.setdefault("return", {})
            if len(seen) < self.MAX_TYPES:
                seen[type(value).__name__] = 1

    def start(self):
        threading.settrace(self.globally)
        sys.settrace(self.globally)

    def stop(self):
        sys.settrace(None)
        threading.settrace(None)

    def result(self):
        lines: dict[Any, Any] = {}
        for name, found in list(self.files.items()):
            if found:
                relative = os.path.relpath(os.path.realpath(name), self.root)
                lines.setdefault(relative, set()).update(found)
        types_ = []
        for (name, first), table in list(self.types.items()):
            relative = os.path.relpath(os.path.realpath(name), self.root)
            types_.append([relative, first, {key: list(value) for key, value in list(table.items())}])
        return {"lines": {name: sorted(found) for name, found in lines.items()}, "types": types_}


def code_lines(code):
    if hasattr(code, "co_lines"):
        return [line for _, _, line in code.co_lines()]
    import dis

    return [line for _, line in dis.findlinestarts(code)]


def stack_of(trace, root):
    """Frames of a traceback inside the project, outermost first (both ends of a deep recursion)."""
    root = os.path.realpath(root) + os.sep
    frames = []
    while trace is not None:
        code = trace.tb_frame.f_code
        real = os.path.realpath(code.co_filename)
        if real.startswith(root) and "site-packages" not in real:
            frames.append([os.path.relpath(real, root), trace.tb_lineno, code.co_name])
        trace = trace.tb_next
    return frames if len(frames) <= 60 else frames[:30] + frames[-30:]


def live_stack(frame, root):
    root = os.path.realpath(root) + os.sep
    frames = []
    while frame is not None:
        real = os.path.realpath(frame.f_code.co_filename)
        if real.startswith(root) and "site-packages" not in real:
            frames.append([os.path.relpath(real, root), frame.f_lineno, frame.f_code.co_name])
        frame = frame.f_back
    frames.reverse()
    return frames if len(frames) <= 60 else frames[:30] + frames[-30:]


# -------------------------------------------------------------------------------------- pytest, unittest


def brief(*args, **kwargs):
    return "failed"


class PytestDriver:
    """Collected pytest items; also the plugin that takes over the run loop."""

    def __init__(self, config):
        self.config = config
        self.items = []
        self.names = []
        self.by_id = {}
        self.report = {}
        self.error = None
        self.takeover: Any = None
        self.collect_errors = []

    def arguments(self, ids):
        arguments = list(self.config.get("args", []))
        arguments += ["-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:faulthandler"]
        arguments += ["-s", "-q", "--tb=native", "--continue-on-collection-errors"]
        import importlib.util

        if importlib.util.find_spec("xdist") is not None:
            arguments += ["-n0"]
        if importlib.util.find_spec("pytest_cov") is not None:
            arguments += ["--no-cov"]
        return arguments + list(ids)

    def run(self, ids, takeover):
        import pytest

        self.takeover = takeover
        return pytest.main(self.arguments(ids), plugins=[self])

    # hooks
    def pytest_collectreport(self, report):
        if report.failed:
            self.collect_errors.append([report.nodeid, str(report.longrepr)[-MESSAGE_CAP * 3 :]])

    def pytest_assertrepr_compare(self, config, op, left, right):
        return [op]  # no diffs

    def pytest_runtestloop(self, session):
        self.items = list(session.items)
        rootdir = os.path.realpath(str(getattr(session.config, "rootpath", session.config.rootdir)))
        root = os.path.realpath(self.config["root"])
        self.names = []
        for item in self.items:
            # The id that `pytest <id>` accepts from the root: paths are relative to it, not to rootdir.
            path, separator, rest = item.nodeid.partition("::")
            if rootdir != root:
                path = os.path.relpath(os.path.join(rootdir, path), root)
            self.names.append(path + separator + rest)
            # Nobody reads the tracebacks, and a deep recursion's takes longer to format than to run.
            item.repr_failure = brief
            item._repr_failure_py = brief
        self.by_id = dict(zip(self.names, self.items))
        assert self.takeover is not None
        self.takeover(self)
        return True

    def pytest_runtest_makereport(self, item, call):
        if call.excinfo is not None:
            value = call.excinfo.value
            skip = type(value).__name__ == "Skipped"
            if not skip:
                self.error = (
                    type(value).__name__,
                    str(value)[:MESSAGE_CAP],
                    call.excinfo._excinfo[2] if hasattr(call.excinfo, "_excinfo") else call.excinfo.tb,
                )

    def pytest_runtest_logreport(self, report):
        if report.outcome == "failed":
            self.report["failed"] = True
        elif report.outcome == "skipped":
            self.report["xfailed" if hasattr(report, "wasxfail") else "skipped"] = True
        elif report.when == "call":
            self.report["passed"] = True

    def ids(self):
        return list(self.names)

    def has(self, identifier):
        return identifier in self.by_id

    def prepare_child(self, scratch):
        item = self.items[0] if self.items else None
        factory = getattr(item.config, "_tmp_path_factory", None) if item is not None else None
        if factory is not None and getattr(factory, "_basetemp", 1) is None:
            import pathlib

            factory._given_basetemp = pathlib.Path(scratch) / "pytest"

    def run_one(self, identifier, following):
        """(outcome, error) of one test; the session's fixtures stay up for the following one."""
        item = self.by_id[identifier]
        self.report, self.error = {}, None
        nextitem = self.by_id.get(following) if following is not None else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
        for name in ("failed", "xfailed", "skipped", "passed"):
            if name in self.report:
                return name, self.error
        return "failed", self.error


class UnittestDriver:
    """Tests loaded with unittest's own loader."""

    def __init__(self, config):
        self.config = config
        self.by_id = {}
        self.order = []
        self.collect_errors = []

    def run(self, ids, takeover):
        import unittest

        loader = unittest.TestLoader()
        names = []
        for identifier in ids:
            names.append(identifier)
        suites = []
        for name in names:
            suites.append(loader.loadTestsFromName(name))
        for error in loader.errors:
            self.collect_errors.append(["", str(error)[-MESSAGE_CAP * 3 :]])
        for suite in suites:
            self.add(suite)
        takeover(self)
        return 0

    def add(self, suite):
        if hasattr(suite, "__iter__"):
            for test in suite:
                self.add(test)
        elif suite.id() not in self.by_id:
            self.by_id[suite.id()] = suite
            self.order.append(suite.id())

    def ids(self):
        return list(self.order)

    def has(self, identifier):
        return identifier in self.by_id

    def prepare_child(self, scratch):
        pass

    def run_one(self, identifier, following):
        import unittest

        errors = []

        class Result(unittest.TestResult):
            def addFailure(self, test, error):
                errors.append(error)
                super().addFailure(test, error)

            def addError(self, test, error):
                errors.append(error)
                super().addError(test, error)

            def addSubTest(self, test, subtest, error):
                if error is not None:
                    errors.append(error)
                super().addSubTest(test, subtest, error)

        result = Result()
        unittest.TestSuite([self.by_id[identifier]]).run(result)
        if errors:
            kind, value, trace = errors[0]
            return "failed", (kind.__name__, str(value)[:MESSAGE_CAP], trace)
        if result.skipped:
            return "skipped", None
        if result.expectedFailures:
            return "xfailed", None
        return ("passed" if result.testsRun and not result.unexpectedSuccesses else "failed"), None


def driver_for(config):
    return UnittestDriver(config) if config["kind"] == "unittest" else PytestDriver(config)


# ------------------------------------------------------------------------------------------- in the child


def run_tests(driver, command, emit, root):
    """Run the command's tests in order; stop early as the command says."""
    asked = set(command.get("asked", ()))
    tests = [test for test in command["tests"] if driver.has(test)]
    missing = [test for test in command["tests"] if not driver.has(test)]
    if missing:
        emit({"missing": missing})
        if any(test in asked for test in missing):
            return
    limits = command["cpu"]
    default = command["cpu_default"]
    record = command.get("record")
    spent = 0.0
    failed = False
    for index, test in enumerate(tests):
        if failed and (test not in asked or spent > command.get("go_on", 0.01)):
            break
        following = tests[index + 1] if index + 1 < len(tests) else None
        limit = limits.get(test, default)
        recorder = Recorder(root) if record else None
        emit({"start": test})
        if recorder is not None:
            finish_on_alarm(recorder, test, emit, root)
        arm(limit)
        before = time.process_time()
        wall = time.monotonic()
        if recorder is not None:
            recorder.start()
        try:
            outcome, error = driver.run_one(test, following)
        finally:
            if recorder is not None:
                recorder.stop()
        arm(0)
        used = time.process_time() - before
        spent += used
        event = {"test": test, "outcome": outcome, "cpu": used, "wall": time.monotonic() - wall}
        if error is not None:
            event["error"] = [error[0], error[1]]
            if record:
                event["stack"] = stack_of(error[2], root)
        if recorder is not None:
            event.update(recorder.result())
        emit(event)
        if outcome not in ("passed", "skipped", "xfailed"):
            failed = True
            if record and command.get("once"):
                break


def finish_on_alarm(recorder, test, emit, root):
    """A recorded test that runs too long still gives its lines and where it was."""

    def handler(number, frame):
        recorder.stop()
        event = {"test": test, "outcome": "timeout", "stack": live_stack(frame, root)}
        event["error"] = ["Timeout", "the test did not end"]
        event.update(recorder.result())
        emit(event)
        emit({"done": 1})
        os._exit(0)

    signal.signal(signal.SIGPROF, handler)


class LiveCode:
    """The project's functions that exist after import, to exchange their code in a child."""

    def __init__(self, root, executed):
        self.root = os.path.realpath(root) + os.sep
        self.executed = executed
        self.by_key: dict[Any, Any] = {}
        self.by_code: dict[Any, Any] = {}
        real = {}
        for thing in gc.get_objects():
            if type(thing) is types.FunctionType:
                code = thing.__code__
                name = code.co_filename
                if name not in real:
                    path = os.path.realpath(name)
                    real[name] = path if path.startswith(self.root) else None
                if real[name] is not None:
                    key = (real[name], code.co_name, code.co_firstlineno)
                    self.by_key.setdefault(key, []).append(thing)
                    self.by_code.setdefault(id(code), []).append(thing)
        self.loaded = set()
        for module in list(sys.modules.values()):
            place = getattr(module, "__file__", None)
            if isinstance(place, str):
                self.loaded.add(os.path.realpath(place))

    def exchange(self, path, piece):
        """Put the compiled piece in place; False when that is not exact."""
        functions = self.by_key.get((path, piece["name"], piece["line"]), [])
        if not functions:
            return False
        old = functions[0].__code__
        if any(function.__code__ is not old for function in functions):
            return False
        text = "\n" * (piece["line"] - 2) + piece["wrapper"] + "\n" + piece["text"]
        if piece["line"] == 1:
            text = piece["text"]
        code = compile(text, old.co_filename, "exec", flags=old.co_flags & FUTURE_FLAGS, dont_inherit=True)
        new = find_code(code, piece["name"], piece["line"])
        if new is None:
            return False
        pairs: list[Any] = []
        if not pair_code(old, new, pairs):
            live_nested = [c for c in nested_codes(old) if id(c) in self.by_code or id(c) in self.executed]
            if live_nested:
                return False
            pairs = [(old, new)]
        todo = []
        for before, after in pairs:
            if id(before) in self.executed:
                return False
            for function in self.by_code.get(id(before), []):
                if len(after.co_freevars) != len(before.co_freevars):
                    return False
                if after.co_freevars != before.co_freevars:
                    return False
                todo.append((function, after))
        for function, after in todo:
            function.__code__ = after
        return True


def nested_codes(code):
    found = []
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            found.append(const)
            found.extend(nested_codes(const))
    return found


def find_code(code, name, line):
    for const in nested_codes(code):
        if const.co_name == name and const.co_firstlineno == line:
            return const
    return None


def pair_code(old, new, pairs):
    pairs.append((old, new))
    before = [const for const in old.co_consts if isinstance(const, types.CodeType)]
    after = [const for const in new.co_consts if isinstance(const, types.CodeType)]
    if [code.co_name for code in before] != [code.co_name for code in after]:
        return False
    return all(pair_code(a, b, pairs) for a, b in zip(before, after))


def override_sources(sources):
    """Imports of these files (real path -> text) use the given text instead of the file's."""
    loader: Any = importlib.machinery.SourceFileLoader
    original = loader.get_code

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        text = sources.get(os.path.realpath(path))
        if text is None:
            return original(self, fullname)
        return compile(text, path, "exec", dont_inherit=True)

    loader.get_code = get_code


def full_sources(command, root, bases):
    """Full text of each file of the candidate: the base's text with the splices applied."""
    found = {}
    for path, edits in command.get("edits", {}).items():
        real = os.path.realpath(os.path.join(root, path))
        if path not in bases:
            with open(
                os.path.join(bases["dir"], command["bases"][path]), encoding="utf-8", newline=""
            ) as file:
                bases[path] = file.read()
        text = bases[path]
        for start, end, replacement in sorted(edits, reverse=True):
            text = text[:start] + replacement + text[end:]
        found[real] = text
    return found


def serve_fast(config, channel):
    root = config["root"]
    executed = {}
    bases = {"dir": config["scratch"]}

    def watch(frame, event, arg):
        if event == "call":
            executed[id(frame.f_code)] = frame.f_code

    def takeover(driver):
        sys.setprofile(None)
        threading.setprofile(None)
        live = LiveCode(root, executed)
        third_party = []
        prefix = os.path.realpath(root) + os.sep
        for name, module in list(sys.modules.items()):
            path = getattr(module, "__file__", None)
            if isinstance(path, str):
                real = os.path.realpath(path)
                if "site-packages" in real or not real.startswith(prefix):
                    third_party.append(name)
        channel.send(
            {
                "ready": driver.ids(),
                "errors": driver.collect_errors[:20],
                "modules": third_party,
                "python": sys.version.split()[0],
            }
        )

        def job(command, emit):
            driver.prepare_child(os.environ["TMPDIR"])
            missing = {}
            for path, pieces in command.get("pieces", {}).items():
                real = os.path.realpath(os.path.join(root, path))
                if real not in live.loaded:
                    missing[path] = command["edits"][path]
                    continue
                if not pieces or not all(live.exchange(real, piece) for piece in pieces):
                    emit({"slow": path})
                    return
            if missing:
                override_sources(full_sources(dict(command, edits=missing), root, bases))
            run_tests(driver, command, emit, root)

        Server(config, channel, job).loop()

    threading.setprofile(watch)
    sys.setprofile(watch)
    driver = driver_for(config)
    status = driver.run(config["ids"], takeover)
    sys.setprofile(None)
    channel.send({"ended": int(status), "errors": driver.collect_errors[:20]})


def serve_slow(config, channel):
    root = config["root"]
    prefix = os.path.realpath(root) + os.sep
    bases = {"dir": config["scratch"]}
    if config["kind"] != "unittest":
        import pytest  # noqa: F401  (kept warm)
    before = set(sys.modules)
    for name in config.get("modules", []):
        if name in sys.modules or name.startswith(("_pytest", "pytest", "conftest", "__main")):
            continue
        try:
            __import__(name)
        except BaseException:
            pass
    for name in set(sys.modules) - before:
        path = getattr(sys.modules[name], "__file__", None)
        if isinstance(path, str):
            real = os.path.realpath(path)
            if real.startswith(prefix) and "site-packages" not in real:
                del sys.modules[name]
    channel.send({"ready": [], "errors": [], "modules": [], "python": sys.version.split()[0]})

    def job(command, emit):
        override_sources(full_sources(command, root, bases))
        sys.dont_write_bytecode = True
        driver = driver_for(config)

        def takeover(driver):
            driver.prepare_child(os.environ["TMPDIR"])
            if driver.collect_errors:
                emit({"errors": driver.collect_errors[:5]})
            if command.get("all"):
                command["tests"] = command["tests"] or driver.ids()
            arm(0)
            run_tests(driver, command, emit, root)

        arm(command.get("cpu_import", 20.0))
        status = driver.run(command.get("collect") or command["tests"], takeover)
        emit({"ended": int(status)})

    Server(config, channel, job).loop()


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        config = json.load(file)
    os.chdir(config["cwd"])
    # What `python -m pytest` has: the directory it was started in, not the script's own.
    sys.path[0] = config["cwd"]
    sys.dont_write_bytecode = True
    channel = Channel(config["commands"], config["replies"])
    try:
        (serve_fast if config["mode"] == "fast" else serve_slow)(config, channel)
    except BaseException:
        channel.send({"fatal": traceback.format_exc()[-3000:]})
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()

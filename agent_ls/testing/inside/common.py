"""Records, paths, the per-test alarm and the line tracer, shared by both runners."""

# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=union-attr
# ruff: noqa: PTH109, PTH110, PTH117, PTH118, UP031

import json
import os
import signal
import sys
import threading
from typing import Any

ROOT = os.path.realpath(os.environ.get("AGENT_LS_ROOT") or os.getcwd())
MESSAGE_CAP = 2000
STACK_CAP = 40
COLLECT_TIMEOUT_S = 30.0
_EXTRA_ALARMS = 4


class TestTimeout(BaseException):
    """The test took too long. Not an Exception, so that `except Exception` in a loop can't swallow it."""

    __test__ = False


class Writer:
    def __init__(self, path):
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, kind, **data):
        data["kind"] = kind
        line = json.dumps(data, ensure_ascii=True, default=repr).encode("ascii") + b"\n"
        try:
            os.write(self._fd, line)
        except OSError:
            # A test closed our descriptor or filled the disk: the run itself must go on.
            pass


def cap(text, size=MESSAGE_CAP):
    if len(text) <= size:
        return text
    head = size // 3
    return text[:head] + "\n[... %d characters left out ...]\n" % (len(text) - size) + text[head - size :]


def relative(path):
    """A path relative to the root with forward slashes, or unchanged where it lies outside."""
    if str(path).startswith("<"):
        return str(path)
    try:
        path = os.path.realpath(path)
    except (OSError, ValueError):
        return str(path)
    if path == ROOT or path.startswith(ROOT + os.sep):
        return os.path.relpath(path, ROOT).replace(os.sep, "/")
    return path


def is_own(name):
    """Whether a path as `relative` gives it is a file of the project."""
    return not (os.path.isabs(name) or name.startswith("<") or "site-packages/" in name)


def is_installed(path):
    """Whether a module's file belongs to the interpreter, to its site-packages, or to us."""
    if "site-packages" in path or "dist-packages" in path or "agent_ls_inside" in path:
        return True
    path = os.path.realpath(path)
    return path != ROOT and not path.startswith(ROOT + os.sep) and path.startswith(_LIBRARIES)


_LIBRARIES = os.path.realpath(os.__file__).rpartition(os.sep)[0] + os.sep


def inside_root(frames):
    """The frames from the first one below the root on: what leads there is the runner's business."""
    frames = [frame for frame in frames if "agent_ls_inside" not in frame[0]]
    inside = [index for index, frame in enumerate(frames) if is_own(frame[0])]
    frames = frames[inside[0] :] if inside else frames[-10:]
    return frames[-STACK_CAP:]


class Alarm:
    """Raises TestTimeout in the main thread while a phase of a test runs."""

    def __init__(self, writer, on_hard_stop):
        self._writer = writer
        self._on_hard_stop = on_hard_stop
        self._usable = hasattr(signal, "setitimer")
        self._in_phase = False
        self._pending = False
        self._fired = 0
        self._tries = 0
        self._seconds = 0.0
        self._previous = None
        self.expired = False

    def start(self, seconds):
        if not self._usable or threading.current_thread() is not threading.main_thread():
            return
        self._pending = False
        self._fired = 0
        self._tries = 0
        self._seconds = seconds
        self.expired = False
        self._previous = signal.signal(signal.SIGALRM, self._ring)
        signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)

    def stop(self):
        if self._previous is None:
            return
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._previous)
        self._previous = None

    def enter(self):
        __tracebackhide__ = True
        self._in_phase = True
        if self._pending:
            self._raise()

    def leave(self):
        self._in_phase = False

    def _ring(self, signum, frame):
        __tracebackhide__ = True
        if frame is not None and frame.f_code.co_filename == __file__ and self._tries < 200:
            self._tries += 1  # in the line tracer: wait for the test's own code, which is to be shown
            signal.setitimer(signal.ITIMER_REAL, 0.0005, 1.0)
            return
        self._fired += 1
        if self._fired > _EXTRA_ALARMS:
            self._on_hard_stop(frame, self._seconds)
        if self._in_phase:
            self._raise()
        self._pending = True

    def _raise(self):
        __tracebackhide__ = True
        self._pending = False
        if self.expired and self._fired <= 1:
            return
        self.expired = True
        raise TestTimeout("not finished within %g s" % self._seconds)


def is_source(path):
    """Whether lines of this file are worth recording: below the root, not a test, not installed."""
    name = relative(path)
    if os.path.isabs(name) or not name.endswith(".py"):
        return False
    parts = name.split("/")
    if any(part in _NOT_SOURCE or part.startswith(".") for part in parts[:-1]):
        return False
    base = parts[-1]
    return not (base.startswith("test_") or base.endswith("_test.py") or base in ("conftest.py", "tests.py"))


_NOT_SOURCE = {
    "tests",
    "test",
    "site-packages",
    "dist-packages",
    "node_modules",
    "__pycache__",
    "venv",
    "env",
}


class Tracer:
    """Lines executed per test: sys.monitoring where there is one (3.12+), else sys.settrace."""

    def __init__(self):
        self._known = {}
        self._lines = {}
        self._tool = None
        self._monitoring: Any = getattr(sys, "monitoring", None)
        if self._monitoring is not None:
            for tool in (3, 4, 2, 1):
                if self._monitoring.get_tool(tool) is None:
                    self._monitoring.use_tool_id(tool, "agent-ls")
                    self._tool = tool
                    break
        if self._tool is not None:
            line = self._monitoring.events.LINE
            self._monitoring.register_callback(self._tool, line, self._on_line)

    def _name(self, filename):
        try:
            return self._known[filename]
        except KeyError:
            name = relative(filename) if is_source(filename) else None
            self._known[filename] = name
            return name

    def _on_line(self, code, line):
        name = self._name(code.co_filename)
        if name is not None:
            self._lines.setdefault(name, set()).add(line)
        return self._monitoring.DISABLE

    def _on_call(self, frame, event, arg):
        __tracebackhide__ = True
        name = self._name(frame.f_code.co_filename)
        if name is None:
            return None
        add = self._lines.setdefault(name, set()).add

        def on_event(frame, event, arg):
            __tracebackhide__ = True
            if event == "line":
                add(frame.f_lineno)
            return on_event

        return on_event

    def start(self):
        self._lines = {}
        if self._tool is not None:
            self._monitoring.set_events(self._tool, self._monitoring.events.LINE)
            self._monitoring.restart_events()
        else:
            threading.settrace(self._on_call)
            sys.settrace(self._on_call)

    def stop(self):
        if self._tool is not None:
            self._monitoring.set_events(self._tool, 0)
        else:
            sys.settrace(None)
            threading.settrace(None)
        lines, self._lines = self._lines, {}
        return {name: sorted(numbers) for name, numbers in lines.items() if numbers}


def foreign_modules(original):
    """Modules of the project that were not imported from the copy under test.

    They come from the original checkout (an editable install without a sandbox), or from an installed copy.
    """
    found = []
    for name in filter(None, os.environ.get("AGENT_LS_OWN_PACKAGES", "").split(",")):
        path = getattr(sys.modules.get(name), "__file__", None)
        if isinstance(path, str) and "site-packages" in path and not is_own(relative(path)):
            found.append(path)
    if not original or os.path.realpath(original) == ROOT:
        return found
    prefix = os.path.realpath(original) + os.sep
    folders = {}
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if not isinstance(path, str):
            continue
        folder, _, base = path.rpartition(os.sep)
        if folder not in folders:
            folders[folder] = os.path.realpath(folder or os.sep) + os.sep
        if not (folders[folder] + base).startswith(prefix):
            continue
        name = (folders[folder] + base)[len(prefix) :]
        if os.path.exists(os.path.join(ROOT, name)):
            found.append(name)
    return sorted(found)[:20]

"""Lines executed, types of locals seen, and stacks, for files of the project."""

# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: PTH113

import os
import sys
import threading
from typing import Any


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

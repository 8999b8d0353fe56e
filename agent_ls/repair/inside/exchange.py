"""Puts a candidate in place: exchanges code objects, or the source that an import reads."""

# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: PTH118, PTH123, B905

import gc
import importlib.machinery
import os
import sys
import types
from typing import Any

FUTURE_FLAGS = 0x10000 | 0x20000 | 0x80000 | 0x100000 | 0x200000 | 0x400000 | 0x800000 | 0x1000000


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

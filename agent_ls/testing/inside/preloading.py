"""What the fork server keeps: installed modules imported, files of the project compiled, never executed."""

# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: PTH116, PTH123, PTH208, UP031

import functools
import importlib.machinery
import os
import stat
import sys
from typing import Any

_LARGEST_SOURCE = 4 << 20


class Refused(Exception):
    """A module can't be kept imported: (name, why)."""


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
                # The parts of a package that failed would be taken for those of a good one.
                for new in set(sys.modules) - before:
                    if new.startswith(top + "."):
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


class Compiled:
    """Code objects of the project's files, so that no run compiles what did not change.

    They are compiled here and executed in the runs only. A code object is used for exactly the bytes that it
    was made from. Files whose compilation warns or fails are left to the runs.
    """

    def __init__(self, root):
        self.root = root
        self.wanted = []
        self.marks = {}
        self.sources = {}
        self.rewritten = {}
        loader: Any = importlib.machinery.SourceFileLoader
        self.original = loader.source_to_code
        # Not a function of our own: its frame would stand in tracebacks.
        self.plain = functools.lru_cache(None)(self.original)

    def want(self, entries):
        """What to keep compiled: [module, path, asserts rewritten]."""
        self.wanted = [entry for entry in entries if below(entry[1], self.root)]

    def refresh(self):
        """Compile what is new or changed."""
        for name, path, rewritten in self.wanted:
            try:
                info = os.stat(path)
                mark = (info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
                if self.marks.get((name, path)) == mark:
                    continue
                if not stat.S_ISREG(info.st_mode) or info.st_size > _LARGEST_SOURCE:
                    continue
                with open(path, "rb") as file:
                    source = file.read()
                self.marks[name, path] = mark
                if self.sources.get(path) != source:
                    self.sources[path] = source
                    self.compile(name, path, rewritten, source)
            except Exception:
                continue

    def compile(self, name, path, rewritten, source):
        import warnings

        self.rewritten.pop(path, None)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                if rewritten:
                    code = rewrite(path)
                else:
                    loader = importlib.machinery.SourceFileLoader(name, path)
                    code = self.original(loader, source, path)
            except (Exception, RecursionError):
                told.append(None)  # type: ignore[arg-type]
        if told:
            return
        if rewritten:
            self.rewritten[path] = (source, code)
        else:
            self.plain(loader, source, path)

    def install(self):
        """In a run: use what is compiled."""
        loader: Any = importlib.machinery.SourceFileLoader
        loader.source_to_code = self.plain
        if not self.rewritten:
            return
        from _pytest.assertion import rewrite as module

        read, known = module._read_pyc, self.rewritten

        def read_pyc(source, *rest):
            entry = known.get(str(source))
            if entry is not None:
                with open(source, "rb") as file:
                    if file.read() == entry[0]:
                        return entry[1]
            return read(source, *rest)

        module._read_pyc = read_pyc


def rewrite(path):
    from pathlib import Path

    from _pytest.assertion.rewrite import _rewrite_test, assertstate_key

    config: Any = _Config(assertstate_key)
    return _rewrite_test(Path(path), config)[1]

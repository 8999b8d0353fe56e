"""Runs unittest as `python -m unittest` would and streams outcomes as JSON lines.

Started with `-m agent_ls_inside.unittest_main [arguments of python -m unittest]`. The environment is that
of the pytest plugin. Ids are dotted names that `python -m unittest <id>` accepts.
"""
# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: PTH100, PTH110, PTH112, PTH118, PTH123, UP028, RUF005

import json
import os
import re
import sys
import time
import traceback
import unittest
from typing import Any

from .common import Alarm, Tracer, Writer, cap, foreign_modules, inside_root, relative

_FAILED_LOAD = "unittest.loader._FailedTest"


class Result(unittest.TestResult):
    """Writes a record when a test begins and one when its outcome is known."""

    def __init__(self, writer, tracer, alarm, failfast):
        super().__init__()
        self.failfast = failfast
        self.writer = writer
        self.tracer = tracer
        self.alarm = alarm
        self.seconds = float(os.environ.get("AGENT_LS_TEST_TIMEOUT") or 0)
        self.outcome: Any = None
        self.current: Any = None
        self.all_tests: Any = []

    def startTest(self, test):
        super().startTest(test)
        self.current = test.id()
        self.outcome = ("passed", None, None)
        self.began = time.time()
        self.writer.write("begin", id=self.current)
        if self.tracer is not None:
            self.tracer.start()
        if self.seconds:
            self.alarm.start(self.seconds)
            self.alarm.enter()

    def stopTest(self, test):
        self.alarm.leave()
        self.alarm.stop()
        if self.tracer is not None:
            self.writer.write("coverage", id=self.current, files=self.tracer.stop())
        outcome, error, reason = self.outcome
        self.record(test, outcome, error, reason, time.time() - self.began)
        self.current = None
        super().stopTest(test)

    def record(self, test, outcome, error, reason, duration):
        if type(test).__module__ + "." + type(test).__name__ == _FAILED_LOAD:
            self.record_load_error(test, error)
            return
        file, line = place_of(test)
        details = details_of(error)
        message = None
        if error is not None:
            message = cap(text_of(error))
        elif reason:
            message = cap(str(reason))
        self.writer.write(
            "result",
            id=test.id(),
            outcome=outcome,
            duration=duration,
            file=file,
            line=line,
            message=message,
            **details,
        )

    def record_load_error(self, test, error):
        """A module that can't be imported is a placeholder test whose error carries the traceback's text."""
        text = str(error[1]) if error is not None else ""
        last = [line for line in text.strip().splitlines() if line and not line.startswith(" ")]
        kind = last[-1].partition(":")[0].strip() if last else None
        missing = None
        if kind == "ModuleNotFoundError" and "'" in last[-1]:
            missing = last[-1].split("'")[1]
        places = re.findall(r'^  File "([^"]+)", line (\d+), in (.+)$', text, re.MULTILINE)
        places += [
            (file, line, "")
            for file, line in re.findall(r'^  File "([^"]+)", line (\d+)$', text, re.MULTILINE)
        ]
        stack = [[relative(file), int(line), name] for file, line, name in places]
        stack = inside_root(stack)
        self.writer.write(
            "collect_error",
            id=test.id().rpartition("_FailedTest.")[2],
            file=stack[-1][0] if stack else None,
            line=stack[-1][1] if stack else None,
            message=cap(text),
            error_type=kind,
            missing_module=missing,
            stack=stack,
        )

    def worse(self, outcome, error):
        order = ("passed", "skipped", "xfailed", "xpassed", "failed", "error")
        if order.index(outcome) > order.index(self.outcome[0]):
            self.outcome = (outcome, error, None)

    def addError(self, test, err):
        super().addError(test, err)
        if self.current is None or not hasattr(test, "_testMethodName"):
            self.record_fixture(test, err)
        else:
            # unittest makes no difference between an error in the test and one in its fixtures.
            self.worse("failed" if err[0].__name__ == "TestTimeout" else "error", err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.worse("failed", err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        if self.current is None and hasattr(test, "_testMethodName"):
            # Python 3.12.1 does not call startTest for a test that a decorator skips, only stopTest.
            self.current = test.id()
            self.began = time.time()
            self.outcome = ("skipped", None, reason)
        elif self.current is None:
            self.record_fixture(test, None, reason)
        elif self.outcome[0] == "passed":
            self.outcome = ("skipped", None, reason)

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.worse("xfailed", err)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        # The runner counts it as a failure of the run.
        self.outcome = ("failed", None, "unexpected success")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.worse("failed" if issubclass(err[0], test.failureException) else "error", err)

    def record_fixture(self, holder, err, reason=None):
        """setUpClass, setUpModule and their tear-downs: `setUpClass (tests.test_x.Case)`."""
        name = getattr(holder, "description", None) or str(holder)
        target = name[name.find("(") + 1 : name.rfind(")")] if "(" in name else name
        for case in self.tests_below(target):
            file, line = place_of(case)
            self.writer.write(
                "result",
                id=case.id(),
                outcome="skipped" if err is None else "error",
                duration=0.0,
                file=file,
                line=line,
                message=cap(name + "\n" + text_of(err)) if err else reason,
                **details_of(err),
            )

    def tests_below(self, target):
        return [case for case in self.all_tests if case.id().startswith(target + ".")]


def strip(err):
    """Without the frames of unittest itself, which say nothing about the failure."""
    kind, value, trace = err
    while trace is not None and "__unittest" in trace.tb_frame.f_globals:
        trace = trace.tb_next
    return kind, value, trace


def text_of(err):
    formatted = traceback.TracebackException(*strip(err))
    frames = [frame for frame in formatted.stack if "agent_ls_inside" not in frame.filename]
    formatted.stack = traceback.StackSummary.from_list(frames)
    return "".join(formatted.format())


def details_of(err):
    if err is None:
        return {"error_type": None, "stack": []}
    frames = [
        [relative(frame.filename), frame.lineno or 0, frame.name]
        for frame in traceback.extract_tb(strip(err)[2])
        if os.sep + "unittest" + os.sep not in frame.filename
    ]
    details = {"error_type": err[0].__name__, "stack": inside_root(frames)}
    if isinstance(err[1], ModuleNotFoundError) and err[1].name:
        details["missing_module"] = err[1].name
    return details


def place_of(test):
    import inspect

    method: Any = getattr(test, getattr(test, "_testMethodName", ""), None)
    try:
        function = inspect.unwrap(method)
        return relative(inspect.getsourcefile(function)), inspect.getsourcelines(function)[1]
    except Exception:
        module = sys.modules.get(type(test).__module__)
        file = getattr(module, "__file__", None)
        return (relative(file) if file else None), None


def flatten(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            for inner in flatten(test):
                yield inner
        else:
            yield test


class Runner:
    """Stands in for TextTestRunner in unittest.main, which parses arguments and loads the tests."""

    writer: Any = None

    def __init__(self, **options):
        self.failfast = bool(options.get("failfast")) or os.environ.get("AGENT_LS_FAILFAST") == "1"
        self.buffer = bool(options.get("buffer"))

    def run(self, suite):
        tracer = Tracer() if os.environ.get("AGENT_LS_TRACE") == "1" else None
        result = Result(self.writer, tracer, None, self.failfast)
        result.buffer = self.buffer
        result.alarm = Alarm(self.writer, lambda frame, seconds: self.hard_stop(result, frame, seconds))
        tests = list(flatten(suite))
        result.all_tests = tests
        self.writer.write("collected", ids=[test.id() for test in tests if not is_load_error(test)])
        result.startTestRun()
        suite(result)
        result.stopTestRun()
        return result

    def hard_stop(self, result, frame, seconds):
        stack = "".join(traceback.format_stack(frame)[-8:])
        text = "TestTimeout: not finished within %g s, and it catches what should stop it. It hung at:\n%s"
        if result.tracer is not None:
            self.writer.write("coverage", id=result.current, files=result.tracer.stop())
        self.writer.write(
            "result",
            id=result.current,
            outcome="failed",
            duration=time.time() - result.began,
            file=None,
            line=None,
            message=cap(text % (seconds, stack)),
            error_type="TestTimeout",
            stack=[],
        )
        os._exit(124)


def loose_folders():
    """Test folders that are no packages: discovery from the root passes them by."""
    return [
        name
        for name in ("tests", "test")
        if os.path.isdir(name) and not os.path.exists(os.path.join(name, "__init__.py"))
    ]


class Loader(unittest.TestLoader):
    """Discovery from the root also looks into `tests` when that is no package."""

    def discover(self, start_dir, pattern="test*.py", top_level_dir=None):
        suite = super().discover(start_dir, pattern, top_level_dir)
        if start_dir == "." and top_level_dir is None:
            for name in loose_folders():
                suite.addTests(unittest.TestLoader().discover(name, pattern, name))
        return suite


def tops(arguments):
    """The top-level folders of `discover [-s START] [-t TOP]`, as absolute paths."""
    if not arguments or arguments[0] != "discover":
        return [os.path.abspath(name) for name in loose_folders()] if not arguments else []
    values = {}
    for option, long in (("-s", "--start-directory"), ("-t", "--top-level-directory")):
        for index, argument in enumerate(arguments):
            if argument in (option, long) and index + 1 < len(arguments):
                values[option] = arguments[index + 1]
            elif argument.startswith(long + "="):
                values[option] = argument[len(long) + 1 :]
    place = values.get("-t") or values.get("-s")
    return [os.path.abspath(place)] if place else [os.path.abspath(name) for name in loose_folders()]


def dotted(name, folders):
    """unittest's name of what a path names (tests/test_x.py::Case::test_a), as seen from one of `folders`."""
    path, _, rest = name.partition("::")
    whole = os.path.abspath(path)
    for folder in folders if path.endswith(".py") else []:
        if whole.startswith(os.path.join(folder, "")):
            module = os.path.relpath(whole, folder)[: -len(".py")].replace(os.sep, ".")
            return ".".join([module] + (rest.split("::") if rest else []))
    return name


def is_load_error(test):
    return type(test).__module__ + "." + type(test).__name__ == _FAILED_LOAD


def main():
    writer = Writer(os.environ["AGENT_LS_RESULTS"])
    Runner.writer = writer
    writer.write("start", runner="unittest", version=sys.version.split()[0], rootdir=".")
    arguments = sys.argv[1:]
    ids_file = os.environ.get("AGENT_LS_IDS")
    if ids_file:
        with open(ids_file, encoding="utf-8") as file:
            ids = json.load(file)
        # Names are relative to where discovery had its top.
        folders = tops(arguments)
        sys.path[1:1] = folders
        arguments = [dotted(name, [*folders, os.path.abspath(".")]) for name in ids]
    # `-m agent_ls_inside...` put the current folder first, as `python -m unittest` does.
    code = 0
    try:
        program = unittest.main(
            module=None,
            argv=["python -m unittest"] + list(arguments),
            testRunner=Runner,
            testLoader=Loader(),
            exit=False,
        )
        code = 0 if program.result.wasSuccessful() else 1
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    writer.write("foreign", files=foreign_modules(os.environ.get("AGENT_LS_ORIGINAL_ROOT")))
    writer.write("finish", exitstatus=code)
    sys.exit(code)


if __name__ == "__main__":
    main()

"""A pytest plugin that streams outcomes as JSON lines.

Runs inside the project's interpreter (Python 3.8+, pytest 7 to 9), where our package is not installed:
the runner copies this folder and loads it with `-p agent_ls_inside.pytest_plugin`.

Environment: AGENT_LS_RESULTS (file to append to), AGENT_LS_ROOT (repository root as seen here),
AGENT_LS_IDS (file with a JSON list of ids to run; optional), AGENT_LS_TEST_TIMEOUT (seconds per test),
AGENT_LS_TRACE=1 (lines executed per test), AGENT_LS_IMPORTS=1 (report what was imported),
AGENT_LS_ORIGINAL_ROOT (report modules imported from there).

Each record is one write to a file opened for appending, so xdist workers and forked children can
share it and a crash loses at most the record being written.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: PTH118, PTH123, UP031

import json
import os
import sys
import time

import pytest

from .common import (
    COLLECT_TIMEOUT_S,
    ROOT,
    Alarm,
    Tracer,
    Writer,
    cap,
    foreign_modules,
    inside_root,
    is_installed,
    relative,
)


def stack_of(excinfo):
    frames = []
    for entry in excinfo.traceback:
        try:
            frames.append([relative(str(entry.path)), entry.lineno + 1, entry.name])
        except Exception:  # an entry without source
            continue
    return inside_root(frames)


class Plugin:
    def __init__(self, config, writer):
        self.config = config
        self.writer = writer
        self.worker = getattr(config, "workerinput", None)
        self.leads = self.worker is None or self.worker.get("workerid") == "gw0"
        self.reports = {}
        self.current = None
        self.timeout = float(os.environ.get("AGENT_LS_TEST_TIMEOUT") or 0)
        self.alarm = Alarm(writer, self.hard_stop)
        self.tracer = Tracer() if os.environ.get("AGENT_LS_TRACE") == "1" else None
        self.wanted = None
        ids_file = os.environ.get("AGENT_LS_IDS")
        if ids_file:
            with open(ids_file, encoding="utf-8") as file:
                self.wanted = json.load(file)
        self.rootdir = os.path.realpath(str(config.rootpath))

    # -- ids

    def id_of(self, nodeid):
        """The id that `pytest <id>` accepts from our root: paths are relative to it, not to rootdir."""
        if self.rootdir == ROOT:
            return nodeid
        path, separator, rest = nodeid.partition("::")
        return relative(os.path.join(self.rootdir, path)) + separator + rest

    # -- collection

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, session, config, items):
        if self.wanted is not None:
            exact = set(self.wanted)
            prefixes = tuple(
                prefix for want in self.wanted for prefix in (want + "[", want + "::", want.rstrip("/") + "/")
            )
            keep, drop, raw = [], [], set()
            for item in items:
                name = self.id_of(item.nodeid)
                # the configured command may name the file too: collected twice, it would run twice
                fresh = item.nodeid not in raw
                raw.add(item.nodeid)
                if fresh and (name in exact or name.startswith(prefixes) or "." in exact):
                    keep.append(item)
                else:
                    drop.append(item)
            if drop:
                items[:] = keep
                config.hook.pytest_deselected(items=drop)
        if self.leads:
            self.writer.write("collected", ids=[self.id_of(item.nodeid) for item in items])

    @pytest.hookimpl(hookwrapper=True)
    def pytest_make_collect_report(self, collector):
        if self.timeout and isinstance(collector, pytest.Module):
            self.alarm.start(max(COLLECT_TIMEOUT_S, 3 * self.timeout))
            self.alarm.enter()
        try:
            outcome = yield
        finally:
            self.alarm.leave()
            self.alarm.stop()
        report = outcome.get_result()
        call = report.__dict__.get("call")
        excinfo = getattr(call, "excinfo", None)
        if report.failed and excinfo is not None:
            report.agent_ls = error_details(excinfo)

    def pytest_collectreport(self, report):
        if not report.failed or self.worker is not None:
            return
        details = getattr(report, "agent_ls", None) or {}
        name = self.id_of(report.nodeid)
        self.writer.write(
            "collect_error",
            id=name or ".",
            file=name.partition("::")[0] or None,
            message=cap(text_of(report)),
            error_type=details.get("error_type"),
            missing_module=details.get("missing_module"),
            stack=details.get("stack", []),
            line=details["stack"][-1][1] if details.get("stack") else None,
        )

    # -- running

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        self.current = self.id_of(item.nodeid)
        self.started = time.time()
        self.writer.write("begin", id=self.current)
        if self.tracer is not None:
            self.tracer.start()
        if self.timeout:
            self.alarm.start(self.timeout)
        try:
            yield
        finally:
            self.alarm.stop()
            if self.tracer is not None:
                self.writer.write("coverage", id=self.current, files=self.tracer.stop())
            self.current = None

    def _phase(self):
        self.alarm.enter()
        try:
            yield
        finally:
            self.alarm.leave()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item):
        yield from self._phase()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item):
        yield from self._phase()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item, nextitem):
        yield from self._phase()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        outcome = yield
        report = outcome.get_result()
        if call.excinfo is not None and not report.skipped:
            report.agent_ls = error_details(call.excinfo)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report):
        if self.worker is not None or report.outcome == "rerun":
            return
        self.reports.setdefault(report.nodeid, []).append(report)
        if report.when == "teardown" or report.when not in ("setup", "call"):
            self.emit(report.nodeid, self.reports.pop(report.nodeid))

    def emit(self, nodeid, reports):
        outcome, culprit = fold(reports)
        details = getattr(culprit, "agent_ls", None) or {}
        location = getattr(reports[0], "location", None) or (None, None, None)
        name = self.id_of(nodeid)
        message = None
        if culprit is not None:
            message = cap(text_of(culprit))
        self.writer.write(
            "result",
            id=name,
            outcome=outcome,
            duration=sum(getattr(report, "duration", 0.0) or 0.0 for report in reports),
            file=relative(os.path.join(self.rootdir, location[0]))
            if location[0]
            else name.partition("::")[0],
            line=location[1] + 1 if location[1] is not None else None,
            message=message,
            error_type=details.get("error_type"),
            missing_module=details.get("missing_module"),
            stack=details.get("stack", []),
        )

    def hard_stop(self, frame, seconds):
        """The test swallows every interruption: record it and end the process, the rest is unknown."""
        import traceback

        stack = "".join(traceback.format_stack(frame)[-8:])
        text = "TestTimeout: not finished within %g s, and it catches what should stop it. It hung at:\n%s"
        if self.tracer is not None:
            self.writer.write("coverage", id=self.current, files=self.tracer.stop())
        self.writer.write(
            "result",
            id=self.current,
            outcome="failed",
            duration=time.time() - self.started,
            file=(self.current or "").partition("::")[0],
            line=None,
            message=cap(text % (seconds, stack)),
            error_type="TestTimeout",
            stack=[],
        )
        os._exit(124)

    # -- the end

    def pytest_internalerror(self, excrepr):
        self.writer.write("internal_error", message=cap(str(excrepr)))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session, exitstatus):
        self.writer.write("foreign", files=foreign_modules(os.environ.get("AGENT_LS_ORIGINAL_ROOT")))
        if self.worker is None:
            self.writer.write("finish", exitstatus=int(exitstatus))

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config):
        # Only now: plugins import what they need for their summary after the session's end.
        if self.worker is None and os.environ.get("AGENT_LS_IMPORTS") == "1":
            installed, own = imported_modules()
            if config.getini("enable_assertion_pass_hook"):  # their rewritten code differs
                own = [entry for entry in own if not entry[2]]
            self.writer.write("imports", installed=installed, own=own, obstacle=obstacle(config))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node, ids):
        pass


def imported_modules():
    """What is imported, in the order in which it was: [name, whether pytest rewrote the asserts] of modules
    that are not the project's, and [name, path, whether …] of those that are and have a source file."""
    from importlib.machinery import SourceFileLoader

    from _pytest.assertion.rewrite import AssertionRewritingHook

    installed, own = [], []
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        if spec is None or getattr(spec, "name", None) != name:
            continue
        path = getattr(module, "__file__", None)
        rewritten = isinstance(spec.loader, AssertionRewritingHook)
        if path is None:
            # built in; a namespace package comes with what is in it
            if getattr(spec, "origin", None) == "built-in":
                installed.append([name, False])
        elif not isinstance(path, str):
            continue
        elif is_installed(path):
            installed.append([name, rewritten])
        elif rewritten or type(spec.loader) is SourceFileLoader:
            own.append([name, spec.origin, rewritten])
    return installed, own


def obstacle(config):
    """Why the runs of this configuration can't be forked from a warm process, or None."""
    if getattr(config.option, "numprocesses", None) or getattr(config.option, "dist", "no") != "no":
        return "pytest-xdist distributes the tests"
    for name in ("forked", "boxed", "looponfail"):
        if getattr(config.option, name, False):
            return "the option --%s is in use" % name
    return None


def error_details(excinfo):
    value = excinfo.value
    cause = value
    while type(cause).__name__ == "CollectError" and cause.__cause__ is not None:
        cause = cause.__cause__
    details = {"error_type": type(cause).__name__, "stack": stack_of(excinfo)}
    if cause is not value and cause.__traceback__ is not None:
        import traceback

        trace = traceback.extract_tb(cause.__traceback__)
        details["stack"] = inside_root([[relative(f.filename), f.lineno or 0, f.name] for f in trace])
    if isinstance(cause, ModuleNotFoundError) and cause.name:
        details["missing_module"] = cause.name
    return details


def text_of(report):
    text = getattr(report, "longreprtext", None)
    if text is None:
        text = "" if report.longrepr is None else str(report.longrepr)
    if isinstance(report.longrepr, tuple) and len(report.longrepr) == 3:
        text = str(report.longrepr[2])
    return text


def fold(reports):
    """One outcome from the phases of a test, and the report that explains it."""
    skipped = xfailed = xpassed = None
    for report in reports:
        if report.failed:
            in_call = report.when == "call"
            return ("failed" if in_call else "error"), report
        if report.skipped:
            if hasattr(report, "wasxfail"):
                xfailed = xfailed or report
            else:
                skipped = skipped or report
        elif report.passed and hasattr(report, "wasxfail") and report.when == "call":
            xpassed = report
    if xfailed is not None:
        return "xfailed", xfailed
    if skipped is not None:
        return "skipped", skipped
    if xpassed is not None:
        return "xpassed", None
    return "passed", None


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config, parser, args):
    # Coverage gates say nothing about the outcome of a test, and measuring them slows every run.
    if hasattr(early_config.known_args_namespace, "no_cov"):
        early_config.known_args_namespace.no_cov = True


def pytest_configure(config):
    path = os.environ.get("AGENT_LS_RESULTS")
    if not path:
        return
    writer = Writer(path)
    plugin = Plugin(config, writer)
    config.pluginmanager.register(plugin, "agent-ls-reporter")
    if plugin.worker is None:
        writer.write("start", runner="pytest", version=pytest.__version__, rootdir=relative(plugin.rootdir))

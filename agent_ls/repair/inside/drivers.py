"""Collect tests and run one of them: pytest items, unittest cases."""

# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: PTH118, B905

import os
from typing import Any

MESSAGE_CAP = 300


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
        return arguments + list(ids)

    def run(self, ids, takeover):
        import pytest

        self.takeover = takeover
        return pytest.main(self.arguments(ids), plugins=[self, in_one_process(pytest)])

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


def in_one_process(pytest):
    """A plugin that turns off xdist and pytest-cov; where they are not loaded, their options are errors."""

    class InOneProcess:
        @pytest.hookimpl(hookwrapper=True)
        def pytest_load_initial_conftests(self, early_config):
            early = early_config.known_args_namespace
            if getattr(early, "cov_source", None):
                early.cov_source = []
            yield

        @pytest.hookimpl(hookwrapper=True)
        def pytest_cmdline_main(self, config):
            option = config.option
            if getattr(option, "cov_source", None):
                option.cov_source = []
            if hasattr(option, "numprocesses"):
                option.numprocesses, option.dist, option.tx = None, "no", []
            yield

    return InOneProcess()


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

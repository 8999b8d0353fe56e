"""Runs a test plan in the sandbox and reads what the runner says, test by test."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from attrs import evolve

from agent_ls.cancel import CancelToken
from agent_ls.sandbox._limits import limits_of
from agent_ls.sandbox.confine import Sandbox, View
from agent_ls.sandbox.environment import scrubbed_env
from agent_ls.sandbox.process import ProcessResult
from agent_ls.settings import Settings
from agent_ls.testing import _junit, _verdict
from agent_ls.testing._records import Coverage, Records, ResultsFile
from agent_ls.testing.ids import file_of
from agent_ls.testing.plan import TestPlan
from agent_ls.testing.results import Outcome, TestResult, TestRun
from agent_ls.workspace.removal import remove_tree

INSIDE = Path(__file__).parent / "inside"
OUTPUT_CAP = 200_000
_POLL_S = 0.1


class TestRunner:
    """Runs one plan over one view.

    `coverage` holds the lines of the last traced run, per test and file; `installed` the modules that the
    last run of pytest had imported and that are not the project's (name, whether their asserts were
    rewritten), `own` those that are (name, path as seen inside, …); `obstacle` why such a run can't be forked
    from a warm process.
    """

    __test__ = False

    def __init__(self, plan: TestPlan, sandbox: Sandbox, view: View, settings: Settings) -> None:
        self.plan = plan
        self.sandbox = sandbox
        self.settings = settings
        self.view = evolve(
            view,
            visible=(*view.visible, *plan.visible),
            protect=True,
            limits=limits_of(settings),
        )
        self.coverage: Coverage = {}
        self.installed: tuple[tuple[str, bool], ...] = ()
        self.own: tuple[tuple[str, str, bool], ...] = ()
        self.obstacle: str | None = None

    def run(
        self,
        ids: Sequence[str] | None = None,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        trace: bool = False,
        per_test_timeout: float | None = None,
        on_result: Callable[[TestResult], None] | None = None,
        stop_on_first_failure: bool = False,
    ) -> TestRun:
        """Run the tests `ids` (None: all) and return what is known when they end.

        `timeout` (seconds, default `settings.test_timeout`) bounds the whole run, `per_test_timeout` each
        test. `on_result` is called from another thread as outcomes arrive. Never raises for what
        the tests do; a run that says nothing about the code has the outcome `env_broken`.
        """
        requested = None if ids is None else tuple(dict.fromkeys(ids))
        if requested == ():
            return TestRun((*self.plan.argv,), "passed", source=_SOURCES[self.plan.kind], requested=())
        limit = self.settings.test_timeout if timeout is None else timeout
        with self.control_dir() as control:
            if self.plan.kind == "command":
                return self._run_command(control, requested, limit, cancel, on_result)
            return self._run_python(
                control,
                requested,
                limit,
                cancel,
                trace,
                self.settings.per_test_timeout if per_test_timeout is None else per_test_timeout,
                on_result,
                stop_on_first_failure,
            )

    def _run_python(
        self,
        control: Path,
        requested: tuple[str, ...] | None,
        timeout: float,
        cancel: CancelToken | None,
        trace: bool,
        per_test_timeout: float | None,
        on_result: Callable[[TestResult], None] | None,
        stop_on_first_failure: bool,
    ) -> TestRun:
        shutil.copytree(INSIDE, control / "agent_ls_inside", ignore=shutil.ignore_patterns("__pycache__"))
        arguments, env, known = self.prepare(
            control, requested, trace, per_test_timeout, stop_on_first_failure
        )
        if known == ():
            return _verdict.no_such_tests(self.plan, requested or (), requested or ())
        env["AGENT_LS_IMPORTS"] = "1"
        results = ResultsFile(control / "results.jsonl")
        records = Records(on_result)
        with _tailing(results, records):
            process = self.sandbox.run(
                arguments,
                view=self.view,
                env=env,
                timeout=timeout,
                cancel=cancel,
                output_cap=OUTPUT_CAP,
            )
        self.coverage = records.coverage
        if records.coverage:
            from agent_ls.workspace.index.executed import remember

            remember(self.view.repo, self.view.worktree, records.coverage)
        if records.installed:
            self.installed, self.own = tuple(records.installed), tuple(records.own)
            self.obstacle = records.obstacle
        return _verdict.judge(self.plan, process, records, requested, self.view.worktree)

    def prepare(
        self,
        control: Path,
        requested: tuple[str, ...] | None,
        trace: bool,
        per_test_timeout: float | None,
        stop_on_first_failure: bool,
    ) -> tuple[list[str], dict[str, str], tuple[str, ...] | None]:
        """Command and environment of a Python run whose private folder is `control`, and the requested
        tests whose files exist."""
        env = self.environment(control)
        if trace:
            env["AGENT_LS_TRACE"] = "1"
        if per_test_timeout:
            env["AGENT_LS_TEST_TIMEOUT"] = f"{per_test_timeout:g}"
        if self.plan.kind == "pytest":
            arguments, known = self._pytest_arguments(control, requested, env, stop_on_first_failure)
            return arguments, env, known
        return self._unittest_arguments(control, requested, env, stop_on_first_failure), env, requested

    def _pytest_arguments(
        self,
        control: Path,
        requested: tuple[str, ...] | None,
        env: dict[str, str],
        stop_on_first_failure: bool,
    ) -> tuple[list[str], tuple[str, ...] | None]:
        inside = self.sandbox.inside(self.view, control)
        argv = [
            *self.plan.argv,
            *("-p", "agent_ls_inside.pytest_plugin"),
            # Not `-p no:cacheprovider`: options such as --lf in the project's own settings would be unknown.
            *("-o", f"cache_dir={inside / 'cache'}"),
            "--tb=short",
            "--color=no",
            "--continue-on-collection-errors",
            f"--maxfail={1 if stop_on_first_failure else 0}",
        ]
        if requested is None:
            return argv, None
        known = tuple(name for name in requested if (self.view.worktree / file_of(name)).exists())
        (control / "ids.json").write_text(json.dumps(known), "utf-8")
        env["AGENT_LS_IDS"] = str(inside / "ids.json")
        files = list(dict.fromkeys(file_of(name) for name in known))
        if sum(len(os.fsencode(name)) + 1 for name in files) > 100_000:
            files = ["."]
        return [*argv, "--", *files] if any(name.startswith("-") for name in files) else [
            *argv,
            *files,
        ], known

    def _unittest_arguments(
        self,
        control: Path,
        requested: tuple[str, ...] | None,
        env: dict[str, str],
        stop_on_first_failure: bool,
    ) -> list[str]:
        position = self.plan.argv.index("-m")
        argv = [*self.plan.argv[:position], "-m", "agent_ls_inside.unittest_main"]
        if stop_on_first_failure:
            env["AGENT_LS_FAILFAST"] = "1"
        if requested is not None:
            (control / "ids.json").write_text(json.dumps(requested), "utf-8")
            env["AGENT_LS_IDS"] = str(self.sandbox.inside(self.view, control / "ids.json"))
        return [*argv, *self.plan.argv[position + 2 :]]

    def _run_command(
        self,
        control: Path,
        requested: tuple[str, ...] | None,
        timeout: float,
        cancel: CancelToken | None,
        on_result: Callable[[TestResult], None] | None,
    ) -> TestRun:
        argv = list(self.plan.argv)
        report = control / "junit.xml"
        if self.plan.junit is not None:
            place = str(self.sandbox.inside(self.view, report))
            argv = [part.replace("{junit}", place) for part in (*argv, *self.plan.junit)]
        started = time.time()
        process = self.sandbox.run(
            argv,
            view=self.view,
            env=self.environment(control),
            timeout=timeout,
            cancel=cancel,
            output_cap=OUTPUT_CAP,
        )
        tests = _junit.read(report, self.view.worktree, started) if process.started else None
        run = _verdict.judge_command(self.plan, process, tests, requested)
        if on_result is not None:
            for test in run.tests:
                on_result(test)
        return run

    def environment(self, control: Path) -> dict[str, str]:
        """The environment of a test process whose private folder, below the scratch folder, is `control`."""
        inside = self.sandbox.inside(self.view, control)
        env = scrubbed_env(self.settings.pass_env)
        env.pop("VIRTUAL_ENV", None)
        env.update(self.plan.env)
        if self.plan.interpreter is not None:
            # Tests that start `python` or a console script get those of the chosen environment.
            env["PATH"] = os.pathsep.join([str(Path(self.plan.interpreter).parent), env["PATH"]])
        search = [str(inside)]
        if not self.sandbox.mounts:
            # Without the bind mount an editable install leads to the user's checkout; this comes before it.
            search += [str(self.view.worktree / "src"), str(self.view.worktree)]
            env["AGENT_LS_ORIGINAL_ROOT"] = str(self.view.repo)
        source = self.view.worktree / "src"
        own = sorted(path.parent.name for path in source.glob("*/__init__.py"))
        if own and not (source / "__init__.py").exists():
            env["AGENT_LS_OWN_PACKAGES"] = ",".join(own)
            # Before site-packages: a copy installed there would be tested in place of the agent's work.
            search.append(str(self.sandbox.inside(self.view, source)))
        search += [entry for entry in env.get("PYTHONPATH", "").split(os.pathsep) if entry]
        env.update(
            PYTHONPATH=os.pathsep.join(search),
            # A stale .pyc (two edits within one second, same size) is never used: none is written.
            PYTHONDONTWRITEBYTECODE="1",
            HYPOTHESIS_STORAGE_DIRECTORY=str(inside / "hypothesis"),
            AGENT_LS_RESULTS=str(inside / "results.jsonl"),
            AGENT_LS_ROOT=str(self.sandbox.inside(self.view, self.view.worktree)),
            NO_COLOR="1",
        )
        return env

    @contextmanager
    def control_dir(self) -> Iterator[Path]:
        """A fresh folder: whatever an earlier run left in the scratch folder can't be in its way."""
        control = self.view.scratch / f"run-{uuid.uuid4().hex[:12]}"
        control.mkdir(parents=True)
        try:
            yield control
        finally:
            with suppress(OSError):  # what another user's process left there; the session's end tries again
                remove_tree(control)


_SOURCES: dict[str, _verdict.Source] = {"pytest": "pytest", "unittest": "unittest", "command": "exit-code"}


@contextmanager
def _tailing(results: ResultsFile, records: Records) -> Iterator[None]:
    """Feed records as they are written; all of them have been read when the block ends."""
    done = threading.Event()

    def follow() -> None:
        while not done.wait(_POLL_S):
            records.feed(results.read())

    thread = threading.Thread(target=follow, name="test-results", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        records.feed(results.read(last=True))
        results.close()


__all__ = ["Outcome", "ProcessResult", "TestRunner"]

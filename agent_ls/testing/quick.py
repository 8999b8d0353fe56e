"""Runs tests in processes forked from a warm one, with the results of a fresh process or not at all.

The warm process (`inside/zygote.py`) keeps pytest, its plugins and the installed modules that the tests
import, and nothing of the project. It lives in the same sandbox, under the same limits and with the same
environment as any run. Because an overlay must not change below those who use it, it sees a copy of the
worktree that is brought up to date before each run and from which all that a run changed is removed.

Results are compared with a fresh process's at the first run, at every `check_every`-th, and when everything
passes that did not before; those runs return the fresh result. Any difference, and anything that goes
wrong, ends the warm process for good: from then on every run is a fresh one, and `reason` says why.
"""

from __future__ import annotations

import shutil
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from attrs import define, evolve, frozen

from agent_ls.cancel import CancelToken
from agent_ls.errors import UsageError
from agent_ls.testing import _fingerprint, _verdict
from agent_ls.testing._mirror import Mirror, kept_paths, mirror_git
from agent_ls.testing._records import Records, ResultsFile
from agent_ls.testing._zygote import Done, NotKept, Zygote, ZygoteError
from agent_ls.testing.ids import file_of
from agent_ls.testing.results import TestResult, TestRun
from agent_ls.testing.runner import OUTPUT_CAP, TestRunner

CHECK_EVERY = 20
_MAX_EXCLUDED = 12
_MAX_SOILED = 3
_GROWTH_BYTES = 64 << 20
_MORE_MODULES = 10

State = Literal["started", "restarted", "checked", "fallback"]


@frozen
class QuickEvent:
    """Something happened to the warm process: `state`, and the reason as text."""

    state: State
    reason: str


@define
class QuickCounts:
    """Runs so far: `forked` ones, `checked` among them, `fresh` ones, and starts of the warm process."""

    forked: int = 0
    checked: int = 0
    fresh: int = 0
    started: int = 0


@frozen
class _Options:
    timeout: float | None
    cancel: CancelToken | None
    per_test_timeout: float | None


class _Fallback(Exception):
    """The warm process is of no use here; the text says why."""


class QuickRunner:
    """Runs selected tests of one runner's plan quickly. Thread-safe: one run at a time. Close it.

    `folder` is a private folder of ours outside of the worktree; it is made, and removed by `close`.
    `on_event` hears of starts, checks and the fallback. The first `after` runs (at least one, to learn what
    the tests import) are fresh ones; then the warm process is started in the background.
    """

    def __init__(
        self,
        runner: TestRunner,
        folder: Path,
        *,
        on_event: Callable[[QuickEvent], None] | None = None,
        check_every: int = CHECK_EVERY,
        after: int = 1,
    ) -> None:
        self._runner = runner
        self._folder = folder
        self._on_event = on_event
        self._check_every = check_every
        self._after = after
        self._lock = threading.RLock()
        self._zygote: Zygote | None = None
        self._number = 0
        self._mirror: Mirror | None = None
        self._inner: TestRunner | None = None
        self._modules: tuple[tuple[str, bool], ...] = ()
        self._own: dict[tuple[str, str], tuple[str, str, bool]] = {}
        self._excluded: dict[str, str] = {}
        self._print: _fingerprint.Fingerprint = {}
        self._watched: tuple[list[str], list[str]] = ([], [])
        self._soiled = 0
        self._passed: set[tuple[str, ...]] = set()
        self.counts = QuickCounts()
        self.reason: str | None = _unfit(runner)
        """Why all runs are fresh ones; None while they need not be."""

    def run(
        self,
        ids: Sequence[str] | None,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        per_test_timeout: float | None = None,
        on_result: Callable[[TestResult], None] | None = None,
    ) -> TestRun:
        """Run the tests `ids`, as `TestRunner.run` does and with the same result.

        None (the full suite) always takes a fresh process. `timeout` in seconds bounds the run; a check
        beside it has as much again.
        """
        requested = None if ids is None else tuple(dict.fromkeys(ids))
        options = _Options(timeout, cancel, per_test_timeout)
        with self._lock:
            if not requested or self.reason is not None:
                return self._fresh(requested, options, on_result)
            if self._after > 0 or not (self._modules or self._runner.installed):
                self._after -= 1
                run = self._fresh(requested, options, on_result)
                if self._after <= 0:
                    self.warm()
                return run
            try:
                self._learn()
                zygote = self._ensure(requested, cancel)
                quick = self._forked(zygote, requested, options, on_result)
            except (_Fallback, ZygoteError, UsageError, OSError) as error:
                if cancel is None or not cancel.cancelled:
                    self._fall_back(str(error))
                return self._fresh(requested, options, on_result)
            except BaseException:  # interrupted: the warm process is still at work on this run
                self._stop()
                raise
            return self._checked(requested, quick, options)

    def warm(self) -> None:
        """Start the warm process now, without waiting for it, if it is known what it should import."""
        with self._lock:
            if self.reason is None and self._zygote is None and self._runner.installed:
                try:
                    self._learn()
                    self._start()
                except (_Fallback, ZygoteError, UsageError, OSError) as error:
                    self._fall_back(str(error))

    def close(self) -> None:
        """End the warm process and remove its folder; later runs are fresh ones."""
        with self._lock:
            if self.reason is None:
                self.reason = "closed"
            self._stop()
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> QuickRunner:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The warm process (the sandbox's, where there is one); None when there is none."""
        return None if self._zygote is None else self._zygote.pid

    # -- kinds of runs

    def _fresh(
        self,
        requested: tuple[str, ...] | None,
        options: _Options,
        on_result: Callable[[TestResult], None] | None = None,
    ) -> TestRun:
        self.counts.fresh += 1
        return self._runner.run(
            requested,
            timeout=options.timeout,
            cancel=options.cancel,
            per_test_timeout=options.per_test_timeout,
            on_result=on_result,
        )

    def _forked(
        self,
        zygote: Zygote,
        requested: tuple[str, ...],
        options: _Options,
        on_result: Callable[[TestResult], None] | None,
    ) -> TestRun:
        inner = self._inner
        assert inner is not None
        settings = inner.settings
        with inner.control_dir() as control:
            argv, env, known = inner.prepare(
                control,
                requested,
                False,
                settings.per_test_timeout if options.per_test_timeout is None else options.per_test_timeout,
                False,
            )
            if known == ():
                return _verdict.no_such_tests(inner.plan, requested, requested)
            results = ResultsFile(control / "results.jsonl")
            records = Records(on_result)
            try:
                done = zygote.run(
                    argv,
                    env,
                    timeout=settings.test_timeout if options.timeout is None else options.timeout,
                    cancel=options.cancel,
                    output_cap=OUTPUT_CAP,
                    on_tick=lambda: records.feed(results.read()),
                    sources=tuple(self._own.values()),
                )
                records.feed(results.read(last=True))
            finally:
                results.close()
        self.counts.forked += 1
        self._afterwards(zygote, done)
        return _verdict.judge(inner.plan, done.process, records, requested, inner.view.worktree)

    def _afterwards(self, zygote: Zygote, done: Done) -> None:
        """Drop a warm process that a run left its marks on, or that grows."""
        assert zygote.ready is not None
        zygote.clean()
        if done.left is not None:
            self._soiled += 1
            if self._soiled >= _MAX_SOILED:
                raise _Fallback(f"the tests leave things behind that only a new process removes: {done.left}")
            self._stop(f"a test changed {done.left}")
        else:
            self._soiled = 0
            if done.memory > zygote.ready.memory + _GROWTH_BYTES:
                self._stop(f"its memory grew to {done.memory >> 20} MB")

    def _checked(self, requested: tuple[str, ...], quick: TestRun, options: _Options) -> TestRun:
        """The run itself, or that of a fresh process where one is due; they must agree."""
        passed = quick.outcome == "passed"
        newly = passed and requested not in self._passed
        due = (self.counts.forked - 1) % self._check_every == 0
        if quick.outcome == "timeout" or not (due or newly or quick.outcome == "env_broken"):
            return quick
        fresh = self._fresh(requested, options)
        if fresh.outcome == "timeout":
            return fresh
        self.counts.checked += 1
        found = differs(quick, fresh)
        if found is not None:
            self._fall_back(f"a forked and a fresh process disagree: {found}")
            return fresh
        self._tell("checked", f"a fresh process gives the same results ({len(fresh.tests)} tests)")
        if passed:
            self._passed.add(requested)
        return fresh

    # -- the warm process

    def _learn(self) -> None:
        """Take over what fresh runs imported; more than a few new modules are worth a new start."""
        if self._runner.obstacle is not None:
            raise _Fallback(self._runner.obstacle)
        self._own |= {entry[:2]: entry for entry in self._runner.own}
        known = {name for name, _ in self._modules}
        new = [entry for entry in self._runner.installed if entry[0] not in known]
        if len(new) > (_MORE_MODULES if self._modules else 0):
            self._modules = (*self._modules, *new)
            self._stop("the tests import more modules")

    def _start(self) -> Zygote:
        if self._inner is None:
            self._inner = self._make_inner()
        if self._mirror is not None:
            self._mirror.sync()
        self._number += 1
        zygote = Zygote(
            self._inner,
            self._folder / "scratch" / f"zygote-{self._number}",
            self._modules,
            tuple(self._excluded),
        )
        self._zygote = zygote
        self._print = self._configuration(zygote)
        self.counts.started += 1
        return zygote

    def _make_inner(self) -> TestRunner:
        """The same runner over our own scratch folder and, where there is a sandbox, our own copy."""
        outer = self._runner
        (self._folder / "scratch").mkdir(parents=True, exist_ok=True)
        view = evolve(outer.view, scratch=self._folder / "scratch", protect=False)
        if outer.sandbox.mounts:
            tree = self._folder / "tree"
            self._mirror = Mirror(view.worktree, tree, kept_paths((*view.readonly, *view.visible), view.repo))
            tree.mkdir(exist_ok=True)
            mirror_git(view.worktree, tree)
            view = evolve(view, worktree=tree)
        inner = TestRunner(outer.plan, outer.sandbox, view, outer.settings)
        inner.view = evolve(inner.view, visible=outer.view.visible, protect=False)
        return inner

    def _ensure(self, requested: tuple[str, ...], cancel: CancelToken | None) -> Zygote:
        """The warm process, ready and up to date. Raises _Fallback, ZygoteError."""
        if self._zygote is not None:
            if self._mirror is not None:
                self._mirror.sync()
            changed = _fingerprint.difference(self._print, self._now(self._zygote))
            if changed is not None:
                self._stop(f"{changed} changed")
        while True:
            zygote = self._zygote or self._start()
            first = zygote.ready is None
            try:
                ready = zygote.wait_ready(cancel)
            except NotKept as problem:
                self._exclude(problem)
                continue
            if first:
                self._watched = self._seen(zygote)
                self._print |= _fingerprint.installed(*self._watched)
                note = f"; imported in each run: {', '.join(self._excluded)}" if self._excluded else ""
                self._tell("started", f"{len(ready.files)} modules are kept imported{note}")
            break
        assert self._inner is not None
        root = self._inner.view.worktree
        folders = {root, root / "src"} | {_base(root / file_of(name)) for name in requested}
        name = _fingerprint.shadowed(ready.names, sorted(folders))
        if name is not None:
            raise _Fallback(f"{name} of the project has the name of an installed module")
        return zygote

    def _exclude(self, problem: NotKept) -> None:
        self._stop()
        plugin = any(flag and name.partition(".")[0] == problem.name for name, flag in self._modules)
        if not problem.name or plugin or len(self._excluded) >= _MAX_EXCLUDED:
            raise _Fallback(str(problem))
        self._excluded[problem.name] = problem.why

    def _configuration(self, zygote: Zygote) -> _fingerprint.Fingerprint:
        assert self._inner is not None
        return {
            **_fingerprint.configuration(self._runner.view.worktree, self._runner.plan.interpreter),
            **_fingerprint.environment(self._inner.environment(zygote.folder)),
        }

    def _now(self, zygote: Zygote) -> _fingerprint.Fingerprint:
        now = self._configuration(zygote)
        if zygote.ready is not None:
            now |= _fingerprint.installed(*self._watched)
        return now

    def _seen(self, zygote: Zygote) -> tuple[list[str], list[str]]:
        """The host paths of what the warm process imported and of its search path (not the project's)."""
        assert self._inner is not None and zygote.ready is not None
        view, sandbox = self._inner.view, self._inner.sandbox
        apart = tuple(str(path) for path in (*view.readonly, *view.visible))
        root = str(sandbox.inside(view, view.worktree))

        def host(name: str) -> str:
            return name if name.startswith(apart) else str(sandbox.outside(view, Path(name)))

        folders = [
            host(name)
            for name in zygote.ready.path
            if "site-packages" in name or not (name == root or name.startswith(f"{root}/"))
        ]
        scratch = str(view.scratch)
        folders = [name for name in folders if not name.startswith(scratch)]
        kept = [name for name in zygote.ready.files if "site-packages" in name or "dist-packages" in name]
        return [host(name) for name in kept], folders

    def _stop(self, reason: str | None = None) -> None:
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None
            if reason is not None:
                self._tell("restarted", reason)

    def _fall_back(self, reason: str) -> None:
        self.reason = reason
        self._stop()
        self._tell("fallback", reason)

    def _tell(self, state: State, reason: str) -> None:
        if self._on_event is not None:
            self._on_event(QuickEvent(state, reason))


def differs(one: TestRun, other: TestRun) -> str | None:
    """The first difference of two runs of the same tests that is not a matter of time, or None."""
    before, after = one.by_id(), other.by_id()
    for name in dict.fromkeys((*before, *after)):
        was, now = before.get(name), after.get(name)
        if was is None or now is None:
            return f"{name} was reported by only one of them"
        if (was.outcome, was.error_type) != (now.outcome, now.error_type):
            kinds = [f"{test.outcome} {test.error_type or ''}".strip() for test in (was, now)]
            return f"{name}: {' and '.join(kinds)}"
    for field in ("outcome", "truncated", "unknown"):
        if getattr(one, field) != getattr(other, field):
            return f"{field}: {getattr(one, field)} and {getattr(other, field)}"
    return None


def _unfit(runner: TestRunner) -> str | None:
    if runner.plan.kind != "pytest":
        return "the tests are not run by pytest"
    if not hasattr(socket, "SOCK_SEQPACKET") or not sys.platform.startswith("linux"):
        return f"processes can't be forked safely on {sys.platform}"
    return None


def _base(file: Path) -> Path:
    """The folder that pytest puts on the search path for a test file: the first that is no package."""
    folder = file.parent
    while (folder / "__init__.py").exists():
        folder = folder.parent
    return folder

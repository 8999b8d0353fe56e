"""What front ends call: run a task, go on with it, run tests, locate faults."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve

from agent_ls.agent.finish import finish
from agent_ls.agent.history import SessionInfo, best_tree, find_session, last_tip, start_and_end
from agent_ls.agent.judge import Judge
from agent_ls.agent.judgement import for_review
from agent_ls.agent.locating import locate as locate_suspects
from agent_ls.agent.report import Report
from agent_ls.agent.session import Ask, Session, lock_session, open_session
from agent_ls.agent.stops import HandOver, Stop
from agent_ls.agent.strategies import needs_failing_test, only_read, run_strategies
from agent_ls.cancel import CancelToken
from agent_ls.errors import AgentLsError, UsageError
from agent_ls.events import Event
from agent_ls.repair.localise import Suspect
from agent_ls.settings import Settings
from agent_ls.task import Task
from agent_ls.testing.results import TestResult, TestRun
from agent_ls.verdict import Verdict
from agent_ls.workspace.git import Repository
from agent_ls.workspace.worktree import Worktree

OnEvent = Callable[[Event], None]
OnText = Callable[[str], None]


def _nobody(question: str) -> str | None:
    return None


def _ignore(event: Event) -> None:
    return None


def fix(
    repo_path: Path,
    task: Task,
    settings: Settings,
    *,
    cancel: CancelToken,
    on_event: OnEvent = _ignore,
    ask: Ask = _nobody,
    on_text: OnText | None = None,
    buffers: Mapping[str, bytes] | None = None,
) -> Report:
    """Work on one task to a verdict. `on_text` gets a model's answers piece by piece, for a display;
    `buffers` are texts that an editor has not saved, by path.

    Raises AgentLsError only for what ends before a session exists (no repository, no sandbox, a taken
    branch, an unknown test …), leaving nothing behind. Everything later is a verdict in the report.
    """
    if settings.candidates != 1:
        raise UsageError("--candidates above 1 is not available in this version", "Leave it out.")
    session = open_session(
        repo_path, task, settings, cancel=cancel, on_event=on_event, ask=ask, buffers=buffers
    )
    session.on_text = on_text
    return run_session(session)


def run_session(session: Session, *, resume_tree: str | None = None) -> Report:
    """Baseline, strategies, verdict, commit; the worktree is removed whatever happens."""
    judge = Judge(session)
    verdict, reason, text, explanation = Verdict.ERROR, "error", "", ""
    try:
        try:
            session.cancel.raise_if_cancelled()
            if session.settings.permission == "read":
                raise HandOver("permission", only_read(session))
            judge.baseline(need_failing=needs_failing_test(session.settings))
            if resume_tree is not None and resume_tree != session.base_tree:
                session.worktree.reset_to(resume_tree)
                judge.judge("state of the earlier session", count=False)
            text = run_strategies(session, judge)
            raise HandOver("out_of_ideas", text)
        except Stop as stop:
            verdict, reason, text = stop.verdict, stop.reason, stop.text
            explanation = stop.text if verdict is Verdict.FIXED else ""
        except AgentLsError as error:
            if error.verdict is Verdict.USAGE and not session.attempts:
                _discard(session)
                raise
            verdict, reason, text = error.verdict, str(error.verdict), str(error)
            if verdict is Verdict.USAGE:  # a wrong setting that showed late: what was reached is kept
                verdict = Verdict.HANDED_OVER
            session.note(str(error), "warning")
        best = judge.best
        if verdict in (Verdict.HANDED_OVER, Verdict.BUDGET, Verdict.CANCELLED) and best and best.green:
            # a limit or a stop that came after the proof does not undo the proof
            judge.final, verdict = best, Verdict.FIXED
            explanation = f"Proven before the session stopped ({text})."
        elif _waits_for_review(verdict, reason) and best and best.for_review:
            text = f"{for_review(best)} The session stopped then: {text}."
            verdict, reason = Verdict.HANDED_OVER, "review"
        return finish(session, judge, verdict, reason, text, explanation=explanation)
    finally:
        session.close()


def _waits_for_review(verdict: Verdict, reason: str) -> bool:
    """Did a session stop for nothing that is more important than a proven state for a person to judge?"""
    return verdict in (Verdict.HANDED_OVER, Verdict.BUDGET) and reason not in (
        "review",
        "tests_contradict",
        "question",
    )


def _discard(session: Session) -> None:
    """Undo what `open_session` made: the task was not one."""
    if session.tip == session.snapshot.commit and session.repo.branch_exists(session.branch):
        session.repo.delete_branch(session.branch, session.snapshot.commit)
    session.log.append("session_cleaned")
    session.forget = True


def resume(
    session_id: str,
    settings: Settings,
    *,
    cancel: CancelToken,
    on_event: OnEvent = _ignore,
    ask: Ask = _nobody,
    on_text: OnText | None = None,
) -> Report:
    """Go on with a session that was handed over, cancelled, stopped at a limit or killed.

    The best state it reached is the starting point of a new session on the same base and branch; the
    event file alone says what that is. Raises UsageError for a running or a fixed session.
    """
    info = find_session(session_id)
    if info.running:
        raise UsageError(f"session {info.id} is running", "Stop it first, or wait for it.")
    start, end = start_and_end(info.events_path)
    assert start is not None
    if end is not None and end.data["verdict"] == Verdict.FIXED:
        raise UsageError(f"session {info.id} is fixed already", f"Its branch is {end.data['branch']}.")
    # Held to the end: the same session can't be resumed twice at once, nor cleaned meanwhile.
    with lock_session(info.events_path.parent, tries=5):
        return _go_on(info, start, end, settings, cancel, on_event, ask, on_text)


def _go_on(
    info: SessionInfo,
    start: Event,
    end: Event | None,
    settings: Settings,
    cancel: CancelToken,
    on_event: OnEvent,
    ask: Ask,
    on_text: Callable[[str], None] | None,
) -> Report:
    repo = Repository.discover(Path(start.data["repo"]))
    base, branch = start.data["base"], start.data["branch"]
    if end is not None and end.data["branch"]:
        branch = end.data["branch"]
    best = best_tree(info.events_path)
    Worktree.discard(repo, info.events_path.parent / "tree")  # left by a kill or a hasty stop
    tip = None
    if repo.branch_exists(branch):
        tip = repo.resolve(f"refs/heads/{branch}")
        if tip not in (base, last_tip(info.events_path)):
            raise UsageError(
                f"the branch {branch} has commits that the session did not make",
                "Merge or rename it, or start anew with `agent-ls fix`.",
            )
    raw = dict(start.data["task"])
    raw["tests"] = tuple(raw["tests"])
    task = Task(**raw)
    session = open_session(
        repo.root,
        task,
        evolve(settings, base=base, branch=branch),
        cancel=cancel,
        on_event=on_event,
        ask=ask,
        tip=tip,
    )
    session.on_text = on_text
    session.log.append("session_resumed", of=info.id, tree=best, tip=tip)
    return run_session(session, resume_tree=best)


def run_tests(
    repo_path: Path,
    ids: Sequence[str],
    settings: Settings,
    *,
    cancel: CancelToken,
    on_result: Callable[[TestResult], None] | None = None,
    buffers: Mapping[str, bytes] | None = None,
) -> TestRun:
    """Run tests on a copy of the user's tree as it is now (with `buffers`, see `fix`), and leave nothing
    behind.

    Raises UsageError when one of `ids` names no test.
    """
    with _temporary(repo_path, settings, cancel, buffers=buffers) as session:
        run = session.runner.run(
            list(ids) or None,
            timeout=settings.test_timeout,
            cancel=cancel,
            per_test_timeout=settings.per_test_timeout,
            on_result=on_result,
        )
    if run.unknown:
        raise UsageError(run.problem or "no such tests", run.remedy)
    return run


def locate(
    repo_path: Path, tests: Sequence[str], settings: Settings, *, cancel: CancelToken
) -> Sequence[Suspect]:
    """Suspect lines for the failing tests (all, or the named ones), most suspicious first.

    Raises EnvBroken when the tests can't be run and UsageError for an unknown test.
    """
    with _temporary(repo_path, settings, cancel, tuple(tests)) as session:
        judge = Judge(session)
        try:
            judge.baseline(need_failing=True)
        except HandOver:
            return []
        return locate_suspects(session, judge)


class _temporary:
    """A session that leaves no trace: no branch, no event file."""

    def __init__(
        self,
        repo_path: Path,
        settings: Settings,
        cancel: CancelToken,
        tests: tuple[str, ...] = (),
        buffers: Mapping[str, bytes] | None = None,
    ) -> None:
        task = Task(title=f"temporary {time.time_ns()}", tests=tests)
        self._session = open_session(
            repo_path,
            task,
            evolve(settings, branch=None),
            cancel=cancel,
            on_event=_ignore,
            ask=_nobody,
            buffers=buffers,
        )

    def __enter__(self) -> Session:
        return self._session

    def __exit__(self, *exc: Any) -> None:
        _discard(self._session)
        self._session.close()

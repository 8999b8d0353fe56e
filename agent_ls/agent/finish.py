"""Ends a session: keep the best state as one commit on the branch, write the report and the summary."""

from __future__ import annotations

from typing import Any

from attrs import asdict, evolve

from agent_ls.agent.checking import check_session
from agent_ls.agent.handover import resumable, summary
from agent_ls.agent.judge import Judge
from agent_ls.agent.judgement import Judgement
from agent_ls.agent.report import SCHEMA, Report, reward
from agent_ls.agent.session import Session, reserve
from agent_ls.errors import UsageError
from agent_ls.events import read_events
from agent_ls.testing.results import Comparison, TestRun
from agent_ls.verdict import Verdict


def finish(
    session: Session,
    judge: Judge,
    verdict: Verdict,
    reason: str,
    text: str,
    *,
    explanation: str = "",
) -> Report:
    """Commit what is worth keeping and append `session_finished`. Returns the report.

    A fixed session gets one commit with the fix. Any other verdict keeps the best state so far, marked as
    not verified, if it got anywhere; a session that did not leaves no branch behind.
    """
    best = judge.final if verdict is Verdict.FIXED else _guarded(session, judge)
    base_tree, base = session.base_tree, session.snapshot.commit
    commit: str | None = None
    if best is not None and best.tree != base_tree and best.worth_keeping and verdict is not Verdict.BLOCKED:
        commit = session.worktree.commit(best.tree, commit_message(session, verdict, text, explanation), base)
        _publish(session, commit)
    elif session.tip == base:
        _give_back(session)
    shown = best if commit else None
    guarded = judge.refused if verdict is Verdict.BLOCKED else shown
    diff = session.worktree.diff(base_tree, shown.tree) if shown else ""
    changes = session.worktree.changed_files(base_tree, shown.tree) if shown else []
    data: dict[str, Any] = {
        "schema": SCHEMA,
        "verdict": str(verdict),
        "exit_code": verdict.exit_code,
        "session": session.id,
        "branch": session.branch if commit or session.tip != base else None,
        "base": base,
        "head": session.snapshot.head,
        "dirty": session.snapshot.dirty,
        "commit": commit,
        "diff": diff,
        "files_changed": [change.path for change in changes],
        "tests": _tests(session, shown or judge.best),
        "guard": {
            "findings": [finding.to_json() for finding in (guarded.findings if guarded else ())],
            "equal": list(guarded.equal) if guarded else [],
            "rests_on": list(guarded.rests_on) if guarded else [],
            "not_checked": list(guarded.not_checked) if guarded else [],
            "refusals": judge.refusals,
        },
        "usage": session.meter.report(session.settings.model),
        "limits": _limits(session),
        "steps": session.meter.steps,
        "stop_reason": reason,
        "resumable": resumable(verdict, reason),
    }
    data["summary"] = summary(session, judge, verdict, reason, text, explanation, data)
    session.log.append("usage", **data["usage"])
    data["reward"] = reward(read_events(session.log.path)) + (10.0 if verdict is Verdict.FIXED else 0.0)
    # What is returned is what was written down: without secrets.
    finished = session.log.append(
        "session_finished",
        verdict=str(verdict),
        stop_reason=reason,
        summary=data["summary"],
        commit=commit,
        branch=data["branch"],
        report=data,
    )
    return Report(dict(finished.data["report"]))


def _guarded(session: Session, judge: Judge) -> Judgement | None:
    """The best state, looked at by the guard even where its tests did not get that far; None if refused.

    A person goes on from what is kept: it must not carry weakened tests.
    """
    best = judge.best
    if best is None or best.stage == "full" or not best.worth_keeping or best.tree == session.base_tree:
        return best
    best = evolve(best, findings=check_session(session, best.tree))
    if best.blocked:
        judge.refused, judge.refusals = best, judge.refusals + 1
        session.note("the best state is not kept: " + best.blocking[0].place_and_message, "warning")
        judge.best = None
        return None
    return best


def _publish(session: Session, commit: str) -> None:
    """Put the commit on the session's branch; on another one where a person took that branch meanwhile."""
    try:
        if session.repo.branch_exists(session.branch):
            session.repo.move_branch(session.branch, commit, session.tip)
        else:
            session.repo.create_branch(session.branch, commit)
    except UsageError as error:
        session.note(f"{error.message}; the result goes to another branch", "warning")
        session.branch = reserve(session.repo, session.branch, commit, chosen=False)
    session.tip = commit


def _give_back(session: Session) -> None:
    """Delete the branch that was reserved and not needed, unless a person uses it by now."""
    try:
        session.repo.delete_branch(session.branch, session.snapshot.commit)
    except UsageError as error:
        session.note(error.message, "warning")


def commit_message(session: Session, verdict: Verdict, text: str, explanation: str) -> str:
    """Subject, what was done and why, and for which issue."""
    task = session.task
    title = " ".join(task.title.split())[:60] or "the task"
    if verdict is Verdict.FIXED:
        subject = f"Fix: {title}" if task.number is None else f"Fix #{task.number}: {title}"
    else:
        subject = f"Not verified: best attempt at {title}"
    lines = [subject, "", explanation.strip() or text.strip(), ""]
    if task.source:
        lines.append(f"Issue: {task.source}")
    if task.url:
        lines.append(f"Link: {task.url}")
    lines += [f"Agent-Session: {session.id}", f"Agent-Verdict: {verdict}"]
    return "\n".join(lines) + "\n"


def _limits(session: Session) -> dict[str, Any]:
    limits = session.settings.limits
    return {
        "max_steps": limits.max_steps,
        "max_failures": limits.max_failures,
        "max_same_failures": limits.max_same_failures or limits.max_failures,
        "max_growth": limits.max_growth or limits.max_failures,
        "max_idle_edits": limits.max_idle_edits,
        "max_returns": limits.max_returns,
        "max_alternations": limits.max_alternations,
        "max_repeats": limits.max_repeats,
        "max_tokens": limits.max_tokens,
        "max_cost": limits.max_cost,
        "timeout": limits.timeout,
        "permission": session.settings.permission,
        "candidates": session.settings.candidates,
        "sandbox": session.runner.sandbox.name,
        "network": session.settings.network,
        "test_timeout": session.settings.test_timeout,
        "tests": session.settings.tests,
        "guard_timeout": session.settings.guard_timeout,
    }


def _tests(session: Session, best: Judgement | None) -> dict[str, Any]:
    baseline: TestRun | None = session.baseline
    comparison = best.comparison if best else Comparison(still_failing=session.asked)
    final: dict[str, int] | None = None
    if best and best.stage == "full" and baseline is not None:
        final = evolve(baseline, tests=tuple(best.results.values())).counts()
    return {
        "command": list(baseline.command) if baseline else [],
        "source": baseline.source if baseline else None,
        "baseline": baseline.counts() if baseline else None,
        "final": final,
        "fixed": list(comparison.fixed),
        "regressed": list(comparison.regressed),
        "still_failing": list(comparison.still_failing),
        "pre_existing": list(comparison.pre_existing),
        "flaky": list(comparison.flaky),
        "added": list(comparison.added),
        "missing": list(comparison.missing),
        "proven_by": list(best.proven_by) if best else [],
        "quick": {**asdict(session.quick.counts), "fallback": session.quick.reason},
    }

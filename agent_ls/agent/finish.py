"""Ends a session: keep the best state as one commit on the branch, write the report and the summary."""

from __future__ import annotations

from typing import Any

from attrs import asdict

from agent_ls.agent.judge import Judge, Judgement, first_line
from agent_ls.agent.report import SCHEMA, Report, reward
from agent_ls.agent.session import Session, reserve
from agent_ls.errors import UsageError
from agent_ls.events import read_events
from agent_ls.prompts import render
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
    best = judge.final if verdict is Verdict.FIXED else judge.best
    base_tree, base = session.base_tree, session.snapshot.commit
    commit: str | None = None
    if best is not None and best.tree != base_tree and best.worth_keeping and verdict is not Verdict.BLOCKED:
        commit = session.worktree.commit(best.tree, commit_message(session, verdict, text, explanation), base)
        _publish(session, commit)
    elif session.tip == base:
        _give_back(session)
    shown = best if commit else None
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
        "guard": {"findings": [finding.to_json() for finding in (best.findings if best else ())]},
        "usage": session.meter.report(session.settings.model),
        "limits": _limits(session),
        "steps": session.meter.steps,
        "stop_reason": reason,
    }
    data["summary"] = _summary(session, judge, verdict, text, explanation, data)
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
        "max_tokens": limits.max_tokens,
        "max_cost": limits.max_cost,
        "timeout": limits.timeout,
        "permission": session.settings.permission,
        "candidates": session.settings.candidates,
        "sandbox": session.runner.sandbox.name,
        "network": session.settings.network,
        "test_timeout": session.settings.test_timeout,
    }


def _tests(session: Session, best: Judgement | None) -> dict[str, Any]:
    baseline: TestRun | None = session.baseline
    comparison = best.comparison if best else Comparison(still_failing=session.asked)
    final: dict[str, int] | None = None
    if best and best.stage == "full" and baseline is not None:
        from attrs import evolve

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


SHOWN_ATTEMPTS = 12
SHOWN_LINES = 8


def _attempts(session: Session) -> list[dict[str, Any]]:
    """The last attempts as a person wants to see them: `label`, `taught`, and the `lines` of a short diff."""
    events = [event.data for event in read_events(session.log.path) if event.kind == "attempt"]
    return [
        {"label": data["label"], "taught": data["taught"], "lines": short_diff(data["diff"], SHOWN_LINES)}
        for data in events[-SHOWN_ATTEMPTS:]
    ]


def short_diff(diff: str, most: int) -> list[str]:
    """The changed lines of a unified diff, at most `most`, each file named before its own."""
    lines: list[str] = []
    inside = False
    for line in diff.splitlines():
        if line.startswith("diff --git "):
            inside = False
        elif line.startswith("@@"):
            inside = True
        elif (not inside and line.startswith("+++ ")) or (inside and line.startswith(("+", "-"))):
            lines.append(line)
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], f"… {len(lines) - most + 1} more lines"]


def _summary(
    session: Session, judge: Judge, verdict: Verdict, text: str, explanation: str, data: dict[str, Any]
) -> str:
    failing = []
    if judge.best is not None and verdict is not Verdict.FIXED:
        failing = [(result.id, first_line(result)) for result in judge.best.failing[:8]]
    elif session.baseline is not None and verdict is not Verdict.FIXED:
        known = session.baseline.by_id()
        failing = [(id, first_line(known[id])) for id in session.asked if known[id].outcome.bad][:8]
    return render(
        "summary",
        task=session.task,
        verdict=str(verdict),
        text=text,
        explanation=explanation.strip(),
        report=data,
        failing=failing,
        attempts=_attempts(session),
        suspects=session.suspects[:5],
        session_id=session.id,
    )

"""What a person needs to go on from where a session stopped: a reading of its events and judgements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from agent_ls.agent.judge import Judge
from agent_ls.agent.judgement import first_line
from agent_ls.agent.session import Session
from agent_ls.events import read_events
from agent_ls.prompts import render
from agent_ls.testing.results import TestResult
from agent_ls.verdict import Verdict

SHOWN_ATTEMPTS = 12
SHOWN_LINES = 8
SHOWN_TESTS = 8
_NO_RESUME = frozenset({"nothing_fails", "tests_contradict", "review", "question"})
"""Reasons for which going on with the same session would end the same way."""


def resumable(verdict: Verdict, reason: str) -> bool:
    """Could going on with the same session end otherwise?"""
    stopped = (
        Verdict.HANDED_OVER,
        Verdict.BUDGET,
        Verdict.CANCELLED,
        Verdict.PROVIDER_ERROR,
        Verdict.ERROR,
        Verdict.ENV_BROKEN,
    )
    return verdict in stopped and reason not in _NO_RESUME


def summary(
    session: Session,
    judge: Judge,
    verdict: Verdict,
    reason: str,
    text: str,
    explanation: str,
    report: dict[str, Any],
) -> str:
    """The report's Markdown for a person."""
    failing = _failing(session, judge) if verdict is not Verdict.FIXED else []
    attempts = _attempts(session)
    place = _place(session, attempts)
    advice = Advice.of(session, verdict, reason, failing, place, report)
    return render(
        "summary",
        task=session.task,
        verdict=str(verdict),
        reason=reason,
        text=text.strip(),
        explanation=explanation.strip(),
        report=report,
        failing=[(test.id, first_line(test)) for test in failing[:SHOWN_TESTS]],
        more_failing=max(0, len(failing) - SHOWN_TESTS),
        attempts=attempts[-SHOWN_ATTEMPTS:],
        earlier=max(0, len(attempts) - SHOWN_ATTEMPTS),
        refusals=judge.refusals,
        suspects=session.suspects[:5],
        question=advice.question,
        next_steps=advice.steps,
    )


def _failing(session: Session, judge: Judge) -> list[TestResult]:
    if judge.best is not None:
        return list(judge.best.failing)
    if session.baseline is None:
        return []
    known = session.baseline.by_id()
    return [known[id] for id in session.asked if known[id].outcome.bad]


def _attempts(session: Session) -> list[dict[str, Any]]:
    """The attempts for a person: `label`, `taught`, `rules_out`, the `lines` of a short diff, `places`."""
    events = [event.data for event in read_events(session.log.path) if event.kind == "attempt"]
    return [
        {
            "label": data["label"],
            "taught": data["taught"],
            "rules_out": data.get("rules_out", ""),
            "lines": short_diff(data["diff"], SHOWN_LINES),
            "places": (data.get("state") or {}).get("places", []),
        }
        for data in events
    ]


def _place(session: Session, attempts: Sequence[dict[str, Any]]) -> str:
    """The most likely place of the fault, in words; "" when nothing points anywhere."""
    if session.suspects:
        first = session.suspects[0]
        return f"`{first.path}:{first.line}`" + (f" in `{first.function}`" if first.function else "")
    places = [place for attempt in attempts for place in attempt["places"][:1]]
    return f"`{max(places, key=places.count)}`" if places else ""


@frozen
class Advice:
    """The question to the person ("" for none), and what they can do; nothing that can't help."""

    question: str
    steps: tuple[str, ...]

    @classmethod
    def of(
        cls,
        session: Session,
        verdict: Verdict,
        reason: str,
        failing: Sequence[TestResult],
        place: str,
        report: dict[str, Any],
    ) -> Advice:
        if verdict not in (Verdict.HANDED_OVER, Verdict.BUDGET, Verdict.CANCELLED, Verdict.BLOCKED):
            return cls("", ())
        return cls(_question(reason, failing, place), tuple(_steps(session, verdict, reason, report)))


def _question(reason: str, failing: Sequence[TestResult], place: str) -> str:
    match reason:
        case "tests_contradict":
            return (
                "Which is right, the tests or the task? The other one has to change before this can be fixed."
            )
        case "review":
            return "Does the change still demand of the code what it should? Nothing else is open."
        case "question" | "permission":
            return ""  # the text above is one
        case "nothing_fails":
            return "Which test fails because of this task, or what should one check?"
    if not failing:
        return ""
    test = failing[0]
    told = first_line(test)
    where = f" If it is, should {place} be what meets it?" if place else ""
    return f"Is what `{test.id}` expects ({told}) right?{where}"


def _steps(session: Session, verdict: Verdict, reason: str, report: dict[str, Any]) -> list[str]:
    steps = []
    resume = f"agent-ls resume {session.id}"
    by_engine = session.settings.model == "repair"
    if report["branch"] and reason == "review":
        steps.append(f"If the change is right, take the branch: `git merge {report['branch']}`.")
    match reason:
        case "nothing_fails":
            steps.append("Write a test that fails because of this task, then run the same command again.")
            if by_engine or session.settings.strategy == "guided":
                steps.append("Or name a model with tools (`--model`): it can add such a test itself.")
        case "tests_contradict":
            steps.append("Correct the tests or the task's text, then run the same command again.")
        case "question":
            steps.append("Put the answer into the task's text, then run the same command again.")
        case "permission":
            steps.append(f"Allow edits: `{resume} --permission fix`.")
        case "max_steps" | "max_tokens" | "max_cost" | "timeout":
            steps.append(f"Go on with more: `{resume} --{reason.replace('_', '-')} N`.")
    if verdict is Verdict.BLOCKED:
        steps.append("Look at what was refused before another try: the tests may ask for what can't be had.")
    elif verdict is Verdict.CANCELLED:
        steps.append(f"Go on with `{resume}`.")
    elif verdict is Verdict.HANDED_OVER and resumable(verdict, reason) and reason != "permission":
        if by_engine:  # it would search the same edits again
            steps.append(f"Go on with a model: `{resume} --model NAME`.")
        else:
            steps.append(
                f"Go on from the best state with `{resume}`, or with another model (`--model NAME`)."
            )
    steps.append(f"Everything that happened: `agent-ls show {session.id}`.")
    return steps


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

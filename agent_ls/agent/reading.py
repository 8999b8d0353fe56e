"""What to read first for a session's task, by its words and failing tests: in prompts, and as suspects."""

from __future__ import annotations

from attrs import frozen

from agent_ls.agent.judge import Judge
from agent_ls.agent.session import Session
from agent_ls.repair.localise import Suspect
from agent_ls.workspace.index.context import Candidate

FILES = 5
SYMBOLS = 3
_MESSAGES = 3
_MESSAGE = 2000
_CALLABLE = frozenset({"function", "method", "constructor"})


@frozen
class Reading:
    """One file: why (in words), and the names of what to look at in it."""

    path: str
    reason: str
    symbols: tuple[str, ...]


def to_read(session: Session, judge: Judge, limit: int = FILES) -> list[Reading]:
    """Files that the task and its failing tests point at, best first; [] where the index can't be used."""
    return [
        Reading(
            candidate.path,
            next((r for r in candidate.reasons if r != "changed recently"), ""),
            tuple(symbol.name for symbol in candidate.symbols[:SYMBOLS]),
        )
        for candidate in _candidates(session, judge, limit)
    ]


def suspects_by_words(session: Session, judge: Judge, limit: int = FILES) -> list[Suspect]:
    """Functions that the task and its failing tests point at, where no test tells which lines ran.

    Scores go from 0.5 down, as words prove nothing.
    """
    candidates = [c for c in _candidates(session, judge, limit) if not session.protected(c.path)]
    top = candidates[0].score if candidates else 1.0
    found = []
    for candidate in candidates:
        functions = [symbol for symbol in candidate.symbols if symbol.kind in _CALLABLE]
        for place, symbol in enumerate(functions):
            score = 0.5 * candidate.score / top / (1 + place)
            found.append(Suspect(candidate.path, symbol.end_line, symbol.name, score))
    return sorted(found, key=lambda suspect: -suspect.score)


def _candidates(session: Session, judge: Judge, limit: int) -> list[Candidate]:
    from agent_ls.workspace.index.context import context
    from agent_ls.workspace.index.opened import snapshot
    from agent_ls.workspace.index.recency import recently_changed

    found = snapshot(session.workspace)
    if found.view is None:
        session.note(found.note, "warning")
        return []
    candidates = context(
        found.view, _text(session, judge), limit=limit, recent=recently_changed(session.repo)
    )
    # Weak ones only distract.
    least = candidates[0].score / 4 if candidates else 0.0
    return [candidate for candidate in candidates if candidate.score >= least]


def _text(session: Session, judge: Judge) -> str:
    """The task's words, and what the failing tests say."""
    baseline = session.baseline
    known = baseline.by_id() if baseline is not None else {}
    messages = [(known[id].message or "")[-_MESSAGE:] for id in judge.to_fix[:_MESSAGES] if id in known]
    return "\n\n".join([session.task.title, session.task.body, *messages])

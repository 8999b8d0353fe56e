"""Fault localisation for a session: traces tests where needed and ranks the lines."""

from __future__ import annotations

from collections.abc import Sequence

from agent_ls.agent.judge import Judge
from agent_ls.agent.session import Session
from agent_ls.repair.localise import Suspect, rank

PASSING_SAMPLE = 200
"""So many passing tests are traced at most: enough to tell common lines from suspicious ones."""


def locate(session: Session, judge: Judge) -> Sequence[Suspect]:
    """Suspect lines, most suspicious first; empty if nothing fails."""
    baseline = session.baseline
    assert baseline is not None
    results = baseline.by_id()
    failing = [results[id] for id in judge.to_fix]
    if not failing:
        return []
    coverage = dict(judge.coverage)
    if coverage and session.meter.remaining_s() > 60:
        files = {test.file for test in failing}
        passing = [test.id for test in baseline.tests if not test.outcome.bad]
        near = [id for id in passing if results[id].file in files] or passing
        if near:
            coverage |= judge.trace(near[:PASSING_SAMPLE])
    passed = {test.id for test in baseline.tests if not test.outcome.bad}
    return rank(failing, coverage, passed, root=session.worktree.path)

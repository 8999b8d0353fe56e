"""The strategy without a model: the built-in repair engine proposes, the judge decides."""

from __future__ import annotations

from agent_ls.agent.judge import Judge
from agent_ls.agent.session import Session
from agent_ls.agent.stops import Fixed, Stop
from agent_ls.errors import AgentLsError
from agent_ls.repair.engine import Patch, Progress, RepairEngine
from agent_ls.workspace.text import write_atomic

FIRST_PASS_S = 60.0
"""Time for the engine when a model comes after it."""


def repair(session: Session, judge: Judge, *, first_pass: bool = False) -> str:
    """Search for a patch and judge the ranked candidates.

    Raises Fixed on proof and HandOver from the no-progress detector. Returns one sentence on why no
    fix was found otherwise.
    """
    baseline = session.baseline
    assert baseline is not None
    session.meter.check()
    failing = judge.to_fix
    many = f"{len(failing)} failing tests" if len(failing) != 1 else "the failing test"
    session.phase("repair", f"searching an edit that makes {many} pass")

    def on_progress(progress: Progress) -> None:
        session.log.append(
            "repair_progress",
            tried=progress.tried,
            total=progress.total,
            per_second=round(progress.per_second, 1),
            best=progress.best,
        )

    engine = RepairEngine(session.runner, session.workspace, cancel=session.cancel, on_progress=on_progress)
    budget = max(session.meter.remaining_s() - 2 * judge.allowance(), session.meter.remaining_s() / 2)
    if first_pass:
        budget = min(budget, FIRST_PASS_S)
    session.meter.steps += 1
    try:
        result = engine.search(baseline, failing, budget_s=min(budget, 3600.0))
    except (AgentLsError, Stop):
        raise
    except Exception as error:
        if not first_pass:
            raise
        # a fault of ours, but the model can still do the work
        session.note(f"the repair engine failed: {type(error).__name__}: {error}", "warning")
        return "the repair engine failed"
    session.cancel.raise_if_cancelled()
    session.suspects = result.suspects
    for patch in result.patches:
        session.meter.check()
        session.meter.steps += 1
        _apply(session, patch)
        judgement = judge.judge(
            f"{patch.description} at {patch.path}:{patch.line}",
            suspect=f"{patch.path}:{patch.line}",
            count=False,
        )
        if judgement.green:
            judge.final = judgement
            raise Fixed("proven", _explain(patch, result.tried, result.seconds))
        session.worktree.reset_to(session.base_tree)
    if result.partial is not None:
        _apply(session, result.partial)
        judge.judge(
            f"{result.partial.description} at {result.partial.path}:{result.partial.line}", count=False
        )
        session.worktree.reset_to(session.base_tree)
    return (
        f"the repair engine found no fix: {result.tried:,} candidate edits tried in {result.seconds:.0f} s "
        f"({result.stopped})"
    )


def _apply(session: Session, patch: Patch) -> None:
    path = session.workspace.resolve(patch.path, for_write=True)
    file = session.workspace.read(patch.path).with_text(patch.new_text)
    write_atomic(path, file.to_bytes(), path.stat().st_mode & 0o7777)


def _explain(patch: Patch, tried: int, seconds: float) -> str:
    return (
        f"{patch.description} at {patch.path}:{patch.line}. Found by the built-in repair engine among "
        f"{tried:,} candidates in {seconds:.1f} s."
    )

"""Chooses how a task is worked on: repair engine, guided small model, model with tools."""

from __future__ import annotations

from typing import Literal

from agent_ls.agent.guided import Guided
from agent_ls.agent.judge import Judge
from agent_ls.agent.locating import locate
from agent_ls.agent.loop import drive
from agent_ls.agent.repairing import repair
from agent_ls.agent.session import Session
from agent_ls.agent.stops import HandOver
from agent_ls.models.protocol import Backend
from agent_ls.settings import Settings

Strategy = Literal["repair", "guided", "tools"]
REPAIR = "repair"


def needs_failing_test(settings: Settings) -> bool:
    """Only a model with tools can add the test that proves a fix."""
    if settings.model == REPAIR or settings.strategy == "guided":
        return True
    return settings.strategy == "auto" and settings.model.startswith("local:")


def choose(settings: Settings, backend: Backend | None) -> Strategy:
    """The strategy for the main model: the user's word, else by what the model can do."""
    if backend is None:
        return "repair"
    if settings.strategy != "auto":
        return settings.strategy
    return "guided" if backend.capabilities.local or not backend.capabilities.tools else "tools"


def only_read(session: Session) -> str:
    """What can be said where no process may run and no file may change: the places to look at."""
    from agent_ls.workspace.index.context import context
    from agent_ls.workspace.index.opened import snapshot

    said = "running tests needs --permission test, editing --permission fix; it is read"
    view = snapshot(session.workspace).view
    found = context(view, f"{session.task.title}\n{session.task.body}", limit=5) if view is not None else []
    if not found:
        return said
    places = "; ".join(f"{item.path} ({item.reasons[0]})" if item.reasons else item.path for item in found)
    return f"{said}. By the words of the task, look at: {places}"


def run_strategies(session: Session, judge: Judge) -> str:
    """Run the first pass (if any) and the model's strategy.

    Raises Stop with the verdict. Returns why nothing was found when all ended without one.
    """
    settings = session.settings
    if settings.permission in ("read", "test"):
        session.suspects = locate(session, judge)
        raise HandOver("permission", f"editing needs --permission fix; it is {settings.permission}")
    said = []
    if settings.model == REPAIR:
        return repair(session, judge)
    if settings.first == REPAIR and judge.to_fix:
        said.append(repair(session, judge, first_pass=True))
    backend = _backend(session)
    try:
        if choose(settings, backend) == "guided":
            said.append(Guided(session, judge, backend).run())
        else:
            from agent_ls.toolbox.registry import load_tools

            if judge.to_fix:
                session.suspects = session.suspects or locate(session, judge)
            drive(session, judge, backend, load_tools(settings.permission, session.worktree.path))
    finally:
        backend.close()
    return "; ".join(said)


def _backend(session: Session) -> Backend:
    from agent_ls.models import create

    return create(session.settings)

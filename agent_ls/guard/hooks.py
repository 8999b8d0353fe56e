from __future__ import annotations

from agent_ls.guard.protected import Finding
from agent_ls.guard.world import World


def review_hooks(old: World, new: World, changed: list[str]) -> list[Finding]:
    return []

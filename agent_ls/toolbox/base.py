"""What a tool gets and what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from attrs import frozen

from agent_ls.masking import SecretMask
from agent_ls.workspace.edits import EditResult
from agent_ls.workspace.files import Workspace


@frozen
class ToolOutput:
    """What the model sees of a call. `finished` ends the session's turn-taking."""

    text: str
    is_error: bool = False
    finished: bool = False


@frozen
class Claim:
    """That lines of a test contradict something: `against` quotes the task, or another test."""

    test: str
    lines: str
    against: str


class ToolContext(Protocol):
    """What a session provides to the tools. Paths are relative to the worktree's root."""

    @property
    def workspace(self) -> Workspace: ...

    def protected(self, rel: str) -> str | None:
        """Why this path may not be edited in this session; None when it may."""
        ...

    def seen(self, rel: str) -> bool:
        """Has the model been shown this file?"""
        ...

    def mark_seen(self, rel: str) -> None: ...

    @property
    def mask(self) -> SecretMask:
        """What stands for secrets in what the model sees, and back."""
        ...

    def withheld(self, rel: str) -> str | None:
        """Why the model may not be shown this file (git ignores it); None when it may."""
        ...

    def denied(self, tool: str, reason: str) -> None:
        """Called for every request that the session's permission or rules refuse."""
        ...

    def run_tests(self, ids: Sequence[str]) -> ToolOutput:
        """Run these tests (empty: those of the task, then what the change can affect)."""
        ...

    def locate(self) -> ToolOutput:
        """Rank the places that the failing tests point at."""
        ...

    def ask_human(self, question: str) -> str | None:
        """A person's answer; None when nobody answers."""
        ...

    def finish(self, outcome: str, summary: str, evidence: str, claims: Sequence[Claim] = ()) -> ToolOutput:
        """End the work; the session checks the claim before it believes it."""
        ...

    def after_edit(self, result: EditResult) -> None:
        """Called after every edit that was carried out."""
        ...

"""A repository on disk and the least of a session around it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from attrs import define, field

from agent_ls.masking import SecretMask
from agent_ls.toolbox.base import ToolOutput
from agent_ls.workspace.edits import EditResult
from agent_ls.workspace.files import Workspace


@define
class Session:
    """A ToolContext that remembers what it was asked."""

    workspace: Workspace
    locked: dict[str, str] = field(factory=dict)
    shown: set[str] = field(factory=set)
    asked: list[object] = field(factory=list)
    answer: str | None = None
    mask: SecretMask = field(factory=SecretMask)
    hidden: dict[str, str] = field(factory=dict)
    refused: list[tuple[str, str]] = field(factory=list)

    def withheld(self, rel: str) -> str | None:
        return self.hidden.get(rel)

    def denied(self, tool: str, reason: str) -> None:
        self.refused.append((tool, reason))

    def protected(self, rel: str) -> str | None:
        return self.locked.get(rel)

    def seen(self, rel: str) -> bool:
        return rel in self.shown

    def mark_seen(self, rel: str) -> None:
        self.shown.add(rel)

    def run_tests(self, ids: Sequence[str]) -> ToolOutput:
        self.asked.append(("run_tests", tuple(ids)))
        return ToolOutput("1 passed")

    def locate(self) -> ToolOutput:
        self.asked.append("locate")
        return ToolOutput("a.py:2 area")

    def ask_human(self, question: str) -> str | None:
        self.asked.append(question)
        return self.answer

    def finish(self, outcome: str, summary: str, evidence: str, claims: object = ()) -> ToolOutput:
        self.asked.append((outcome, summary, evidence))
        return ToolOutput("finished", finished=True)

    def after_edit(self, result: EditResult) -> None:
        self.asked.append(result.files)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    root = tmp_path / "repo"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / "src").mkdir()
    (root / "src" / "shape.py").write_text(
        "class Shape:\n    def area(self):\n        return self.a * self.b\n\n\ndef total(shapes):\n"
        "    return sum(s.area() for s in shapes)\n"
    )
    (root / "notes.txt").write_text("the area of a Shape\n")
    return Session(Workspace(root))

"""The Agent Client Protocol, with the package's own client."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lsp_kit import make_tiny

from agent_ls.acp.prompts import understand

acp = pytest.importorskip("acp")
BUG, FIX = "if a < b:", "if a > b:"


@pytest.mark.parametrize(
    ("text", "kind", "target"),
    [
        ("/issue 12", "issue", "12"),
        ("fix issue #7.", "issue", "7"),
        ("#3", "issue", "3"),
        ("/test a::b c::d", "test", ["a::b", "c::d"]),
        ("/test", "test", []),
        ("/accept", "accept", None),
        ("the total is 3 too high", "prompt", "the total is 3 too high"),
    ],
)
def test_what_a_person_writes_is_understood(text: str, kind: str, target: Any) -> None:
    assert understand(text) == (kind, target)


class Panel:
    """An editor's agent panel: it keeps what it is told, has unsaved text, and allows or refuses writing."""

    def __init__(self, files: dict[str, str], answer: str = "write") -> None:
        self.updates: list[Any] = []
        self.files, self.answer = files, answer
        self.asked: list[Any] = []

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self.updates.append(update)

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **kwargs: Any) -> Any:
        self.asked.append(tool_call)
        outcome = acp.schema.AllowedOutcome(outcome="selected", option_id=self.answer)
        return acp.schema.RequestPermissionResponse(outcome=outcome)

    async def read_text_file(self, path: str, session_id: str, **kwargs: Any) -> Any:
        return acp.schema.ReadTextFileResponse(content=self.files.get(path) or Path(path).read_text())

    async def write_text_file(self, content: str, path: str, session_id: str, **kwargs: Any) -> Any:
        self.files[path] = content
        return acp.schema.WriteTextFileResponse()

    def on_connect(self, conn: Any) -> None:
        pass

    def said(self) -> str:
        chunks = [it for it in self.updates if it.session_update == "agent_message_chunk"]
        return "".join(it.content.text for it in chunks)


async def converse(panel: Panel, root: Path, *prompts: str, cancel_after: float | None = None) -> list[str]:
    """Send prompts one after the other; the stop reasons."""
    from acp.stdio import spawn_agent_process

    reasons = []
    async with spawn_agent_process(panel, sys.executable, "-m", "agent_ls", "acp") as (agent, _):
        await agent.initialize(
            protocol_version=acp.PROTOCOL_VERSION,
            client_capabilities=acp.schema.ClientCapabilities(
                fs=acp.schema.FileSystemCapabilities(read_text_file=True, write_text_file=True)
            ),
        )
        session = await agent.new_session(cwd=str(root), mcp_servers=[])
        for text in prompts:
            turn = asyncio.ensure_future(
                agent.prompt(session_id=session.session_id, prompt=[acp.text_block(text)])
            )
            if cancel_after is not None:
                await asyncio.sleep(cancel_after)
                await agent.cancel(session_id=session.session_id)
            reasons.append((await asyncio.wait_for(turn, 120)).stop_reason)
        await asyncio.sleep(0.2)
    return reasons


@pytest.mark.slow
def test_an_issue_is_fixed_and_written_with_permission(tmp_path: Path) -> None:
    root = make_tiny(tmp_path / "repo")
    period = root / "pair.py"
    panel = Panel({str(period): "# mine\n" + period.read_text()})
    reasons = asyncio.run(converse(panel, root, "/issue 1", "/accept", "/discard", "/accept"))
    assert reasons == ["end_turn"] * 4
    assert "**fixed: the asked tests pass" in panel.said()
    kinds = {it.session_update for it in panel.updates}
    assert {"available_commands_update", "agent_thought_chunk", "tool_call", "agent_message_chunk"} <= kinds
    [edit] = [it for it in panel.updates if it.session_update == "tool_call" and it.kind == "edit"]
    assert [(BUG in it.old_text, FIX in it.new_text) for it in edit.content if it.type == "diff"] == [
        (True, True)
    ]
    assert len(panel.asked) == 1
    assert panel.files[str(period)] == "# mine\n" + period.read_text().replace(BUG, FIX)
    assert "The branch is deleted." in panel.said()
    branches = subprocess.run(["git", "branch"], cwd=root, capture_output=True, text=True, check=True)
    assert branches.stdout.split() == ["*", "main"]


@pytest.mark.slow
def test_a_cancelled_prompt_ends_the_run(tmp_path: Path) -> None:
    root = make_tiny(tmp_path / "repo")
    panel = Panel({})
    assert asyncio.run(converse(panel, root, "/issue 1", cancel_after=2.5)) == ["cancelled"]
    assert "cancelled" in panel.said()


def test_wrong_prompts_are_answered(tmp_path: Path) -> None:
    panel = Panel({})
    reasons = asyncio.run(converse(panel, tmp_path, " ", "/accept", "/issue x"))
    assert reasons == ["end_turn"] * 3
    assert "There is no result." in panel.said()
    assert "no git repository" in panel.said().lower() or "is not" in panel.said()

"""A run's updates (`lsp/updates.py`) as those of the protocol."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import acp
from unidiff import PatchSet
from unidiff.errors import UnidiffParseError

_MOST = 4000


def translate(update: dict[str, Any], root: Path | None) -> Iterator[Any]:
    """The session updates that one update of a run becomes."""
    kind = update["kind"]
    if kind == "state":
        if update["state"] == "finished":
            yield acp.update_agent_message_text(_ending(update))
        elif update["state"] == "asking":
            yield acp.update_agent_message_text(f"{update['question']}\n")
        else:
            yield acp.update_agent_thought_text(f"{update.get('warning') or update['message']}\n")
    elif kind == "test_result" and "message" in update:
        status = "failed" if update["outcome"] == "env_broken" else "completed"
        text = "\n\n".join(f"{it['id']}\n{it['message']}" for it in update["failing"][:5])
        yield acp.start_tool_call(
            f"tests-{update['stage']}-{update['durationMs']}",
            update["message"],
            kind="execute",
            status=status,  # type: ignore[arg-type]
            content=[acp.tool_content(acp.text_block(text[:_MOST]))] if text else None,
        )
    elif kind == "tool_call":
        content: list[Any] = [*_diffs(update.get("diff") or "", root)]
        if update.get("content"):
            content.append(acp.tool_content(acp.text_block(str(update["content"])[:_MOST])))
        yield acp.start_tool_call(
            update["toolCallId"],
            update["title"],
            kind=update["toolKind"],
            status=update["status"],
            content=content or None,
            raw_input=update.get("arguments"),
        )
    elif kind == "tool_call_update":
        yield acp.update_tool_call(
            update["toolCallId"],
            status=update["status"],
            content=[acp.tool_content(acp.text_block(str(update["content"])[:_MOST]))],
        )
    elif kind == "agent_message_chunk" and not update["final"]:
        yield acp.update_agent_message_text(update["text"])
    elif kind == "guard":
        for finding in update["findings"]:
            place = f"{finding['path']}:{finding['line']}"
            said = f"{finding['severity']}: {place}: {finding['message']}\n"
            yield acp.update_agent_message_text(said)


def _ending(update: dict[str, Any]) -> str:
    parts = [f"\n**{update['message']}**", str(update.get("summary") or "")]
    if update.get("branch") and update.get("commit"):
        parts.append(
            f"Branch `{update['branch']}`. `/accept` writes it into your files, `/discard` deletes it."
        )
    return "\n\n".join(part for part in parts if part) + "\n"


def _diffs(diff: str, root: Path | None) -> Iterator[Any]:
    """Each file's hunks of a unified diff, as old and new text."""
    try:
        files = PatchSet(diff) if diff else []
    except UnidiffParseError:
        return
    for file in files:
        for hunk in file:
            old = "".join(line.value for line in hunk if not line.is_added)
            new = "".join(line.value for line in hunk if not line.is_removed)
            path = str(root / file.path) if root is not None else str(file.path)
            yield acp.tool_diff_content(path, new, old)

"""What a person writes in an agent panel, as a kind of run and its target."""

from __future__ import annotations

import re
from typing import Any

COMMANDS = (
    ("issue", "Fix an issue by its number", "number"),
    ("test", "Make failing tests pass", "ids, or nothing for all that fail"),
    ("accept", "Write the newest result into your files", "nothing"),
    ("discard", "Throw the newest result away", "nothing"),
)
_COMMAND = re.compile(r"/(issue|test|accept|discard)\b\s*(.*)", re.DOTALL)
_NUMBER = re.compile(r"(?:fix\s+)?(?:issue\s+)?#?(\d+)\.?", re.IGNORECASE)


def understand(text: str) -> tuple[str, Any]:
    """(kind, target) as `run.start` takes them; the kinds `accept` and `discard` stand for themselves."""
    text = text.strip()
    command = _COMMAND.fullmatch(text)
    if command:
        name, rest = command[1], command[2].strip()
        if name == "issue":
            return "issue", rest
        if name == "test":
            return "test", rest.split()
        return name, None
    number = _NUMBER.fullmatch(text)
    return ("issue", number[1]) if number else ("prompt", text)

"""What a model is shown of a failing test: the message and the lines concerned, not the test's whole text."""

from __future__ import annotations

import re

from agent_ls.testing.results import TestResult

CAP = 1500
"""Characters of one failure."""
_FRAME = re.compile(r"^\s*(>)?\s*\d+ \|")
"""A line of a code frame as jest, vitest and rustc print it."""
_CAPTURED = re.compile(r"^-{3,} ?Captured .*-{3,}$")
CAPTURED_LINES = 12


def shown(result: TestResult, cap: int = CAP) -> str:
    """The failure's message and stack: errors, the failing line of each frame, the end of captured output.

    Source around the failing line (as long tracebacks and code frames print it) is left out: a test's text
    with its literals is read when it is asked for. Capped in the middle, where the least is told.
    """
    text = result.message or result.error_type or str(result.outcome)
    lines = _telling(text.splitlines())
    text = "\n".join(lines).strip("\n")
    if len(text) <= cap:
        return text
    head, tail = text[: cap // 3], text[-(cap - cap // 3) :]
    head = head[: head.rindex("\n")] if "\n" in head else head
    tail = tail[tail.index("\n") + 1 :] if "\n" in tail else tail
    return f"{head}\n[…]\n{tail}"


def _telling(lines: list[str]) -> list[str]:
    lines = _captured_end(lines)
    if any(_FRAME.match(line) and line.lstrip().startswith(">") for line in lines):
        return [line for line in lines if not _FRAME.match(line) or line.lstrip().startswith(">")]
    marked = any(line.startswith(">") for line in lines) and any(line.startswith("E ") for line in lines)
    if not marked:
        return lines
    # pytest's long form: the function's text up to the failing line, which is marked
    return [
        line
        for line in lines
        if not line.strip() or line.startswith((">", "E ", "_ ", "---")) or re.match(r"^\S+:\d+: ", line)
    ]


def _captured_end(lines: list[str]) -> list[str]:
    found: list[str] = []
    section: list[str] | None = None
    for line in [*lines, "--- Captured end ---"]:
        if _CAPTURED.match(line.strip()):
            if section is not None:
                found += section if len(section) <= CAPTURED_LINES else ["[…]", *section[-CAPTURED_LINES:]]
            section = []
            found.append(line)
        elif section is not None:
            section.append(line)
        else:
            found.append(line)
    return found[:-1]

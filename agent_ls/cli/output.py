"""How anything reaches a terminal or a pipe: JSON on stdout, and texts made harmless."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

_real_stdout: int | None = None

# Everything that could move the cursor, change the terminal or reorder what is read.
_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,4000}(?:\x07|\x1b\\)?"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)

_CONTROL_OR_BREAK = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def visible(text: str) -> str:
    """`text` without control sequences and invisible characters; newlines and tabs stay."""
    text = _CONTROL.sub("", text.replace("\r\n", "\n"))
    return text.encode("utf-8", "replace").decode("utf-8")


def named(text: str) -> str:
    """A name (of a file) on one line, and such that two that differ show differently: what can't be shown as
    it is has an escape."""
    shown = _CONTROL_OR_BREAK.sub(lambda found: repr(found[0])[1:-1], text)
    return shown.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def emit_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document on the real stdout. A name that is no UTF-8 stays valid JSON (an escape)."""
    line = json.dumps(document, ensure_ascii=False, indent=2, default=_plain) + "\n"
    data = line.encode("utf-8", "backslashreplace")
    sys.stdout.flush()
    try:
        target = _real_stdout if _real_stdout is not None else sys.stdout.fileno()
    except OSError:  # not a file at all: a caller's own stream
        sys.stdout.write(data.decode("utf-8"))
        return
    while data:
        data = data[os.write(target, data) :]


def _plain(value: Any) -> Any:
    import attrs

    if attrs.has(type(value)):
        return attrs.asdict(value, recurse=False)
    if isinstance(value, set | frozenset):
        return sorted(value)
    return str(value)


@contextmanager
def only_json_on_stdout(wanted: bool) -> Iterator[None]:
    """While inside, whatever else writes to stdout (a library's C code too) lands on stderr."""
    global _real_stdout
    if not wanted or _real_stdout is not None:
        yield
        return
    sys.stdout.flush()
    _real_stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(_real_stdout, 1)
        os.close(_real_stdout)
        _real_stdout = None


def is_terminal(stream: TextIO) -> bool:
    """May `stream` get control codes?"""
    return (
        stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in ("", "dumb")
    )


def console(stream: TextIO) -> Console:
    """A rich console that writes plain lines unless `stream` is a terminal that may be coloured."""
    from rich.console import Console
    from rich.theme import Theme

    class OurConsole(Console):
        def on_broken_pipe(self) -> None:
            raise

    fancy = is_terminal(stream)
    return OurConsole(
        file=stream,
        force_terminal=fancy,
        no_color=not fancy,
        color_system="auto" if fancy else None,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=not fancy,
        theme=Theme({"markdown.code": "cyan", "markdown.code_block": "none"}),
        legacy_windows=False,
    )

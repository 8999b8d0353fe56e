"""What a fault of agent-ls itself leaves behind: a short message, and the traceback in a file."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Sequence


def crash(error: Exception, arguments: Sequence[str], *, verbose: bool) -> tuple[str, str]:
    """Write the traceback to the state folder and return (message, remedy) for a person."""
    from agent_ls import __version__
    from agent_ls.redact import make_redactor
    from agent_ls.settings import state_dir

    redact = make_redactor()
    text = redact("".join(traceback.format_exception(error)))
    if verbose:
        sys.stderr.write(text)
    first = redact(str(error).partition("\n")[0])
    message = f"an unexpected error: {type(error).__name__}" + (f": {first}" if first else "")
    path = state_dir() / "crashes" / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    command = arguments[0] if arguments else ""
    head = f"agent-ls {__version__}, Python {sys.version.split()[0]}, {sys.platform}, command {command}\n\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(head + text, encoding="utf-8", errors="backslashreplace")
    except OSError as failed:
        return message, f"The traceback could not be written ({failed}); --verbose shows it."
    return message, f"This is a fault of agent-ls. The traceback is in {path}; please report it."

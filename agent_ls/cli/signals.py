"""Ctrl-C and SIGTERM: the first asks for a stop, the second kills what runs and leaves at once."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from agent_ls.cancel import CancelToken
from agent_ls.sandbox._descendants import kill_all

_SHOW_CURSOR = b"\x1b[?25h"


@contextmanager
def cancel_on_signals() -> Iterator[CancelToken]:
    """A token that the first SIGINT, SIGTERM or SIGHUP sets; a second signal exits with 130 at once."""
    token = CancelToken()

    def stop(number: int, frame: FrameType | None) -> None:
        if token.cancelled:
            kill_all()
            if sys.stderr.isatty():
                os.write(2, _SHOW_CURSOR + b"\n")
            os._exit(130)
        token.cancel()

    numbers = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield token
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

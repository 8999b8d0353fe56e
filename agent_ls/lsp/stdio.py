"""Standard input and output, taken away from everybody else.

Whatever a library prints, or a child process writes, would end an editor's session (VS Code shuts a server
down for a stray byte), and a child that inherits standard input steals messages.
"""

from __future__ import annotations

import os
import sys


def claim_stdio() -> tuple[int, int]:
    """Private descriptors (not inherited by children) of standard input and output; descriptor 0 reads
    nothing from here on, and 1 goes to standard error.
    """
    sys.stdout.flush()
    read, write = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # started without a standard error
        os.dup2(null, 1)
        os.dup2(null, 2)
    os.close(null)
    return read, write

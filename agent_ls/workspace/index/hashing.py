"""How the index tells contents and files apart: git's blob ids, and what the file system says of a file.

Nothing here is imported but the standard library, and hashlib only once something is hashed: this is part of
every start.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

UNSURE = 0
"""The signature of a file whose content has to be compared again before it is believed."""

_TICK_NS = 50_000_000
_COARSE_TICK_NS = 2_100_000_000
_SECOND_NS = 1_000_000_000


@cache
def _new(algorithm: str) -> Callable[[bytes], Any]:
    import hashlib
    from functools import partial

    return partial(hashlib.new, algorithm, usedforsecurity=False)


def blob_id(data: bytes, algorithm: str = "sha1") -> bytes:
    """git's id of a blob of these bytes; `algorithm` is the repository's ("sha1" or "sha256")."""
    digest = _new(algorithm)(b"blob %d\0" % len(data))
    digest.update(data)
    found: bytes = digest.digest()
    return found


def signature(status: os.stat_result, blob: int) -> int:
    """One number for what the file system says of a file, and for the content it was found to have.

    Size, both times and the inode, as git compares them; the content's number is part of it, so that a row
    whose parts don't belong together (a damaged database) doesn't count as clean. (A tuple of integers has
    the same hash in every process.)
    """
    return hash((status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, blob)) or 1


def is_settled(status: os.stat_result, read_at_ns: int) -> bool:
    """Would a change after `read_at_ns` (the clock before the file was read) also change its times?

    A change within the file system's tick after the last one leaves them as they are (git calls such entries
    racily clean). Times of whole seconds speak for a file system that counts in seconds.
    """
    latest = max(status.st_mtime_ns, status.st_ctime_ns)
    coarse = status.st_mtime_ns % _SECOND_NS == 0 and status.st_ctime_ns % _SECOND_NS == 0
    return latest + (_COARSE_TICK_NS if coarse else _TICK_NS) < read_at_ns

"""How a file's definitions and imports are kept: rows of plain values, marshalled and compressed.

zlib's checksum guards what marshal reads.
"""

from __future__ import annotations

import marshal
import zlib
from collections.abc import Sequence
from typing import Any

GENERATED, LONG_LINES, BROKEN, ONLY_TEXT = 1, 2, 4, 8
"""Flags of a content."""

Row = tuple[Any, ...]
"""The fields of a Definition or an Import, in order."""

_MARSHAL = 4  # understood by all Pythons that run us
_LEVEL = 1


def pack(definitions: Sequence[Row], imports: Sequence[Row]) -> bytes:
    """Rows as bytes."""
    return zlib.compress(marshal.dumps((list(definitions), list(imports)), _MARSHAL), _LEVEL)


def unpack(packed: bytes) -> tuple[list[Row], list[Row]]:
    """The rows of definitions and imports. Raises zlib.error for damaged data."""
    if not packed:
        return [], []
    definitions, imports = marshal.loads(zlib.decompress(packed))
    return definitions, imports

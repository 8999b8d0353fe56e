"""How a file's definitions and imports are kept: rows of plain values, marshalled and compressed.

Checksums guard what marshal reads.
"""

from __future__ import annotations

import marshal
import zlib
from collections.abc import Sequence
from typing import Any

GENERATED, LONG_LINES, BROKEN, ONLY_TEXT, TOO_SLOW = 1, 2, 4, 8, 16
NOT_UTF8 = 32
"""Flags of a content. NOT_UTF8: in another encoding, or with a byte order mark."""

Row = tuple[Any, ...]
"""The fields of a Definition or an Import, in order."""

_MARSHAL = 4  # understood by all Pythons that run us
_LEVEL = 1
_GROUP = 32


def pack(definitions: Sequence[Row], imports: Sequence[Row]) -> bytes:
    """Rows as bytes: a checksum, the definitions' names, and the rows in groups that can be read alone, so
    that one definition of a long file is found quickly."""
    groups = [
        _compressed(list(definitions[start : start + _GROUP])) for start in range(0, len(definitions), _GROUP)
    ]
    names = tuple(row[0] for row in definitions)
    body = marshal.dumps((names, tuple(groups), _compressed(list(imports))), _MARSHAL)
    return zlib.crc32(body).to_bytes(4, "little") + body


def unpack(packed: bytes) -> tuple[list[Row], list[Row]]:
    """The rows of definitions and imports. Raises zlib.error for damaged data."""
    if not packed:
        return [], []
    _, groups, imports = _body(packed)
    return [row for group in groups for row in _rows(group)], _rows(imports)


def unpack_named(packed: bytes, name: str) -> list[Row]:
    """The rows of the definitions of one name. Raises zlib.error for damaged data."""
    if not packed:
        return []
    names, groups, _ = _body(packed)
    found: list[Row] = []
    place = -1
    read: tuple[int, list[Row]] = (-1, [])
    for _count in range(names.count(name)):
        place = names.index(name, place + 1)
        if read[0] != place // _GROUP:
            read = (place // _GROUP, _rows(groups[place // _GROUP]))
        found.append(read[1][place % _GROUP])
    return found


def _compressed(rows: list[Row]) -> bytes:
    return zlib.compress(marshal.dumps(rows, _MARSHAL), _LEVEL)


def _rows(group: bytes) -> list[Row]:
    rows: list[Row] = marshal.loads(zlib.decompress(group))
    return rows


def _body(packed: bytes) -> tuple[tuple[str, ...], tuple[bytes, ...], bytes]:
    body = memoryview(packed)[4:]
    if zlib.crc32(body) != int.from_bytes(packed[:4], "little"):
        raise zlib.error("the checksum of a file's definitions is wrong")
    names, groups, imports = marshal.loads(body)
    return names, groups, imports

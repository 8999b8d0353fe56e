"""What the index says of one file's bytes: made in the workers of a large build, in process otherwise.

Results are tuples and bytes, so that they cross processes and reach the database without being built anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from agent_ls.workspace.grammars import refined
from agent_ls.workspace.index import roles
from agent_ls.workspace.index.packed import (
    BROKEN,
    GENERATED,
    LONG_LINES,
    NOT_UTF8,
    ONLY_TEXT,
    TOO_SLOW,
    Row,
    pack,
)
from agent_ls.workspace.index.words import as_utf8, words_in
from agent_ls.workspace.parsing import TooSlow

if TYPE_CHECKING:
    from agent_ls.workspace.index.records import Definition, FileTags


class Content(NamedTuple):
    """A file's bytes, understood. `tags` is packed ("" for text without definitions and imports), `words`
    and `names` are sets of UTF-8 terms."""

    size: int
    language: str | None
    flags: int
    tags: bytes
    words: set[bytes]
    names: set[bytes]


def understand(
    language: str | None, data: bytes, *, text: bool = True, tags: FileTags | None = None
) -> Content:
    """Read a file's bytes (no binary). `text` False leaves the words out; `tags` are known already."""
    flags = 0
    if roles.is_generated(data):
        flags |= GENERATED
    if roles.has_long_lines(data):
        flags |= LONG_LINES
        if language in roles.MAY_BE_MINIFIED:
            language = None
    if language is not None and len(data) > roles.MAX_PARSED:
        language = None
        flags |= ONLY_TEXT
    definitions: Sequence[Row] = ()
    imports: Sequence[Row] = ()
    language = refined(language, data)
    if language is not None:
        if tags is not None:
            definitions = [_row(found) for found in tags.definitions]
            imports = [(found.module, found.line, found.names) for found in tags.imports]
            broken = tags.broken
        else:
            from agent_ls.workspace.index.tags import definitions_and_imports

            try:
                definitions, imports, broken = definitions_and_imports(language, data)
            except TooSlow:
                language, broken = None, False
                flags |= TOO_SLOW
        if broken:
            flags |= BROKEN
    packed = b""
    if definitions or imports:
        packed = pack(definitions, imports)
    utf8 = as_utf8(data)
    if utf8 is not data:
        flags |= NOT_UTF8
    words = words_in(utf8) if text else set()
    names = {row[0].encode("utf-8", "replace").replace(b"\n", b" ") for row in definitions}
    return Content(len(data), language, flags, packed, words, names)


def _row(d: Definition) -> Row:
    return (d.name, d.kind, d.line, d.name_line, d.column, d.end_line, d.container, d.signature, d.doc)

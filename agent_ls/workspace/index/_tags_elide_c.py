"""C and C++ with the bodies of functions blanked, for definitions only (see `_tags_elide`).

What stands between the braces of a function is mostly expressions and local variables, none of which is a
symbol; the parser takes half of its time for them, and in files of macros they hold most of the errors. A
body that mentions a type, a `using` or the preprocessor stays as it is, as does one whose end is not certain.
"""

from __future__ import annotations

import re

_SHORTEST = 24
_DEEPEST = 8
_STRING = (
    rb'"(?:[^"\\\n]++|\\.)*+"'
    rb"|'(?:[^'\\\n]++|\\.)++'"
    rb"|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/|/"
)
_INSIDE = rb"[^{}\"'/#]++|" + _STRING


def _braces() -> bytes:
    """A balanced pair of braces and what is in it; possessive, so that no text is tried twice."""
    inner = rb"(?!)"
    for _ in range(_DEEPEST):
        inner = rb"\{(?:" + _INSIDE + rb"|" + inner + rb")*+\}"
    return inner


_head_end = re.compile(
    rb"\)\s*+(?:(?:const|noexcept|override|final|mutable|volatile|&&?)\s*+)*+(?:->\s*+[\w:<>,&* ]++)?+\{"
).search
_body = re.compile(_braces(), re.DOTALL).match
_defining = re.compile(rb"\b(?:class|struct|union|enum|using|typedef|namespace|concept|R\")").search
_containing = re.compile(rb"\b(?:class|struct|union|enum|namespace|extern|concept|requires)\b").search
_TEMPLATE = re.compile(rb"template\s*<[^<>]*(?:<[^<>]*>[^<>]*)*>")


def elided(source: bytes) -> bytes:
    """`source` with bodies blanked; as long as before, and the very object when there is nothing to blank."""
    pieces: list[bytes] = []
    done = 0
    found = _head_end(source)
    while found is not None:
        start = found.end()
        body = _body(source, start - 1)
        if body is not None and _is_plain(source, found.start(), start, body.end() - 1):
            end = body.end() - 1
            # Without the semicolon it could be an initialiser.
            pieces += (source[done:start], b";" + b" " * (end - start - 1))
            done = end
            start = end + 1
        found = _head_end(source, start)
    if not pieces:
        return source
    pieces.append(source[done:])
    return b"".join(pieces)


def _is_plain(source: bytes, head: int, start: int, end: int) -> bool:
    """Whether this is the inside of a function's braces (`head` is near their beginning), and defines no
    symbol."""
    if end - start < _SHORTEST or _defining(source, start, end):
        return False
    # The brace that closes stands first in its line and not deeper than the line that opens.
    line = source.rfind(b"\n", start, end) + 1
    if line:
        before = source[line:end]
        opening = source[source.rfind(b"\n", 0, start) + 1 : start]
        if before.strip() or len(before) > len(opening) - len(opening.lstrip()):
            return False
    line = source.rfind(b"\n", 0, head) + 1
    before = source[line:head]
    if b"//" in before or before.count(b'"') % 2 or before.lstrip().startswith((b"*", b"#")):
        return False  # in a comment, a string or a macro
    text = source[max(source.rfind(sign, 0, head) for sign in (b";", b"}", b"{")) + 1 : head]
    return not _containing(text) or not _containing(_TEMPLATE.sub(b"", text))

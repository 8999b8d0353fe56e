"""Python with the bodies of plain functions blanked, for definitions only.

Three quarters of the time of a cold build are spent in the parser, most of that in bodies of functions that
define and import nothing. Such a body becomes one identifier of the same length: the tree around it stays
the same, to the byte, and syntax errors inside the body do no harm outside. Where it is not certain that a
piece of text is the whole body of a function, it is left alone.
"""

from __future__ import annotations

import re
from functools import lru_cache

_SHORTEST = 24
_HEAD_LINES = 40
_UNFINISHED = frozenset(b"\\:;,")


def elided(source: bytes) -> bytes:
    """`source` with bodies blanked; as long as before, and the very object when there is nothing to blank."""
    if b"\t" in source or b"\r" in source:
        return source
    find, rfind = source.find, source.rfind
    pieces: list[bytes] = []
    done = 0
    at = find(b"def ")
    while at >= 0:
        after = at + 4
        line_start = rfind(b"\n", 0, at) + 1
        before = source[line_start:at]
        if before and not before.isspace():
            if before.strip() != b"async":
                at = find(b"def ", after)
                continue
            indent = len(before) - len(before.lstrip())
        else:
            indent = at - line_start
        start = _body_start(source, at)
        if start >= 0:
            found = _dedent(indent).search(source, start - 1)
            end = found.start() if found else len(source)
            first, last = _statements(source, start, end)
            if last - first >= _SHORTEST and _is_plain(source, first, last):
                pieces += (source[done:first], b"x" * (last - first))
                done = last
                after = end
        at = find(b"def ", after)
    if not pieces:
        return source
    pieces.append(source[done:])
    return b"".join(pieces)


@lru_cache(maxsize=64)
def _dedent(indent: int) -> re.Pattern[bytes]:
    """The start of a line that ends a block of a head with this indentation."""
    return re.compile(rb"\n {0,%d}[^ \n#]" % indent)


def _body_start(source: bytes, at: int) -> int:
    """Where the lines below the head of the function at `at` start; -1 when that can't be told simply."""
    end = source.find(b"\n", at)
    if end < 0:
        return -1
    for _ in range(_HEAD_LINES):
        head = source[at:end]
        if _is_balanced(head):
            return end + 1 if head.endswith(b":") else -1
        end = source.find(b"\n", end + 1)
        if end < 0:
            break
    return -1


def _is_balanced(text: bytes) -> bool:
    count = text.count
    return count(b"(") == count(b")") and count(b"[") == count(b"]") and count(b"{") == count(b"}")


def _statements(source: bytes, start: int, end: int) -> tuple[int, int]:
    """The range from the first statement to the last, without comments around them."""
    body = source[start:end]
    text = body.rstrip()
    while text[(line := text.rfind(b"\n") + 1) :].lstrip().startswith(b"#") and line:
        text = text[:line].rstrip()
    last = start + len(text)
    text = text.lstrip()
    while text.startswith(b"#"):
        text = text[text.find(b"\n") :].lstrip() if b"\n" in text else b""
    return last - len(text), last


def _is_plain(source: bytes, first: int, last: int) -> bool:
    """Whether this is a whole body (no bracket or string goes on behind it) without definitions."""
    text = source[first:last]
    if text[-1] in _UNFINISHED or not _is_balanced(text) or b"#" in text[text.rfind(b"\n") + 1 :]:
        return False
    double, single = text.count(b'"""'), text.count(b"'''")
    if double % 2 or single % 2 or (double and single):
        return False
    return not mentions(source, first, last)


def mentions(source: bytes, start: int, end: int) -> bool:
    """Whether statements of Python in this range may define or import something: a word that does so stands
    where a statement can begin."""
    for word in (b"import ", b"def ", b"class "):
        at = source.find(word, start, end)
        while at >= 0:
            before = source[source.rfind(b"\n", 0, at) + 1 : at].strip()
            if not before or before.endswith((b":", b";", b"async")) or b"from" in before:
                return True
            at = source.find(word, at + 1, end)
    return False

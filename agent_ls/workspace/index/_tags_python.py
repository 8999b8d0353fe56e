"""Definitions and imports of Python, read from its lines instead of a syntax tree.

queries/python.scm says what a definition is; this module finds the same in a third of the time, since a tree
is mostly expressions, which define nothing. It relies on what Python's lexical analysis says of lines,
brackets, strings and indentation (https://docs.python.org/3/reference/lexical_analysis.html) and on nothing
else. A text in which these don't fit together, or that does something unusual with them (tabs, several
statements on a line), is left to the parser. A syntax error inside a line does no harm around it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from agent_ls.workspace.index._tags_elide import mentions
from agent_ls.workspace.index._tags_imports import STATEMENT_BYTES, read_python
from agent_ls.workspace.index._tags_text import SIGNATURE, docstring, signature

DefinitionRow = tuple[str, str, int, int, int, int, str | None, str, str]
ImportRow = tuple[str, int, tuple[str, ...]]
Found = tuple[list[DefinitionRow], list[ImportRow], set[int]]
"""Rows of definitions and of imports, and the offsets of the defined names."""

_NAME = rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*+"
# All quantifiers are possessive: no text is tried twice.
_STRING = (
    rb'"""(?:[^"\\]++|\\.|"(?!""))*+"""'
    rb"|'''(?:[^'\\]++|\\.|'(?!''))*+'''"
    rb'|"(?!"")(?:[^"\\\n]++|\\.)*+"'
    rb"|'(?!'')(?:[^'\\\n]++|\\.)*+'"
)
_INSIDE = rb"[^\"'#\\()\[\]{}]++|" + _STRING + rb"|#[^\n]*+|\\\n"
_BRACKETS = rb"[(\[{](?:" + _INSIDE + rb"|[(\[{](?:" + _INSIDE + rb")*+[)\]}])*+[)\]}]"
_GAP = rb"((?: *+(?:#[^\n]*+)?+\n)*+(?: *+#[^\n]*+\Z)?+)( *+)"
_FUNCTION, _CLASS, _ASSIGNED, _IMPORT, _OUTER, _COMPOUND, _ANNOTATED, _TYPE = range(3, 11)
_statement = re.compile(
    # Blank lines and comments, the indentation, then what tells the kind of statement.
    _GAP + rb"(?:(?:async +)?+def +(" + _NAME + rb")|class +(" + _NAME + rb")|(" + _NAME + rb") *+=(?!=)"
    rb"|(from|import)\b|(@)|(if|elif|else|try|except|finally|with|for|while|async|(?:match|case)\b(?! *:))\b"
    rb"|(?!lambda\b)(" + _NAME + rb") *+:(?!=)|type +(" + _NAME + rb") *+[=\[]|)",
    re.DOTALL,
).match
_to_end = re.compile(
    rb"((?:[^\n\"'#\\()\[\]{};]++|" + _STRING + rb"|" + _BRACKETS + rb")*+)(?:#[^\n]*+)?+(?:\n|\Z)", re.DOTALL
).match
_to_colon = re.compile(
    rb"(?:[^\n\"'#\\()\[\]{};:]++|" + _STRING + rb"|" + _BRACKETS + rb")*+: *+", re.DOTALL
).match
_tokens = re.compile(_STRING + rb"|#[^\n]*+|\\\n|[()\[\]{}\n;\"'\\]", re.DOTALL).finditer
_equals = re.compile(_STRING + rb"|#[^\n]*+|[()\[\]{},]|[-+*/%&|^@<>!:]*+=++", re.DOTALL).finditer
_body = re.compile(_GAP).match
_next_target = re.compile(rb" *+(?:(" + _NAME + rb") *+=(?!=)|\\)").match
_name = re.compile(_NAME).fullmatch
_harmless = re.compile(rb"(?:pass|return|raise|break|continue|yield|del)\b|\.\.\.|[\w.]++\(").match
_UNFINISHED = frozenset(b"\\:;,")
_COLON, _SPACE = b": "
_NO_BRACKETS = bytes(set(range(256)) - set(b"()[]{}"))


class _UnsureError(Exception):
    """The parser has to judge."""


class _Head(NamedTuple):
    """A definition whose end is not known yet: the place of its row, and the row's fields around the end."""

    place: int
    before: tuple[str, str, int, int, int]
    after: tuple[str | None, str, str]


def python_definitions(source: bytes) -> Found | None:
    """What `source` defines and imports; None when that takes a parser."""
    if b"\t" in source or b"\r" in source or b"\f" in source or source.startswith(b"\xef\xbb\xbf"):
        return None
    try:
        if not source.isascii():
            source.decode("utf-8")
        return _read(source)
    except (_UnsureError, UnicodeDecodeError):
        return None


def _read(source: bytes) -> Found:
    """One long loop over the statements, since it is a large part of a cold build. Raises _UnsureError."""
    rows: list[DefinitionRow | None] = []
    imports: list[ImportRow] = []
    names: set[int] = set()
    # The blocks around the current one: indentation, container, its kind, head.
    blocks: list[tuple[int, str | None, str, _Head | None]] = []
    indent, container, inside = 0, None, ""
    head: _Head | None = None
    # A head that opens a block: container and kind inside of it, and the definition that it makes.
    opens: tuple[str | None, str, tuple[int, str, str, int, int, int, int, int] | None] | None = None
    outer = 0  # the line of the first decorator
    count, size = source.count, len(source)
    at, line, last_line = 0, 1, 0
    while True:
        found = _statement(source, at)
        assert found is not None
        line_start, start = found.regs[1][1], found.regs[2][1]
        if line_start != at:
            line += count(b"\n", at, line_start)
        here = start - line_start
        if opens is not None:
            if here <= indent or start >= size:
                raise _UnsureError
            blocks.append((indent, container, inside, head))
            new, head = opens[2], None
            if new is not None:
                place, name, kind, first, name_line, column, head_start, head_end = new
                text = _signature(source, kind, head_start, head_end, start)
                head = _Head(
                    place, (name, kind, first, name_line, column), (container, text, docstring(source, start))
                )
            indent, container, inside = here, opens[0], opens[1]
            opens = None
        elif here != indent or start >= size:
            if start >= size:
                here = -1
            elif here > indent:
                raise _UnsureError
            closing = source[at:line_start] if line_start != at and b"#" in source[at:line_start] else b""
            number = line - closing.count(b"\n") - 1
            for comment in closing.split(b"\n"):
                number += 1
                text_of_it = comment.lstrip(b" ")
                if text_of_it:
                    depth = len(comment) - len(text_of_it)
                    while here < indent > depth:
                        if head is not None:
                            rows[head.place] = (*head.before, last_line, *head.after)
                        indent, container, inside, head = blocks.pop()
                    if here < indent:
                        last_line = number
            while here < indent and blocks:
                if head is not None:
                    rows[head.place] = (*head.before, last_line, *head.after)
                indent, container, inside, head = blocks.pop()
            if start >= size:
                break
            if here != indent:
                raise _UnsureError
        statement = found.lastindex
        rest = _to_end(source, found.end())
        if rest is not None:
            stop = rest.regs[1][1]
            at = rest.regs[0][1]
        else:
            stop, at = _line_end(source, start)
        while source[stop - 1] == _SPACE:
            stop -= 1
        last_line = line + count(b"\n", start, stop)
        if outer and statement not in (_FUNCTION, _CLASS, _OUTER):
            raise _UnsureError
        if statement in (_FUNCTION, _CLASS):
            name_start, name_end = found.regs[statement]
            name = source[name_start:name_end].decode()
            if statement == _CLASS:
                kind = "class"
            else:
                kind = "method" if inside == "class" else "function"
            first = outer or line
            outer = 0
            names.add(name_start)
            place = len(rows)
            rows.append(None)
            column = name_start - line_start + 1
            if source[stop - 1] != _COLON:
                body = _body_on_line(source, start, stop, statement == _FUNCTION)
                text = _signature(source, kind, start, stop, body)
                doc = docstring(source, body)
                rows[place] = (name, kind, first, line, column, last_line, container, text, doc)
            elif statement == _FUNCTION and (block := _plain_block(source, at, here)) is not None:
                body, last, end = block
                text = _signature(source, kind, start, stop, body)
                doc = docstring(source, body)
                name_line = line
                line = last_line + 1 + count(b"\n", at, body)
                last_line = line + count(b"\n", body, last)
                rows[place] = (name, kind, first, name_line, column, last_line, container, text, doc)
                line = last_line + count(b"\n", last, end)
                at = end
                continue
            else:
                dotted = f"{container}.{name}" if container else name
                opens = (dotted, kind, (place, name, kind, first, line, column, start, stop))
        elif statement == _IMPORT:
            said = source[start : min(stop, start + STATEMENT_BYTES)].decode("utf-8", "replace")
            imports += [(module, line, taken) for module, taken in read_python(said) if module]
        elif statement == _OUTER:
            outer = outer or line
        elif statement == _COMPOUND and source[stop - 1] == _COLON:
            opens = (container, inside, None)
        elif source[stop - 1] == _COLON:
            raise _UnsureError
        elif statement == _TYPE:
            name_start, name_end = found.regs[_TYPE]
            names.add(name_start)
            name = source[name_start:name_end].decode()
            text = signature("python", "type", source, start, stop, 0)
            column = name_start - line_start + 1
            rows.append((name, "type", line, line, column, last_line, container, text, ""))
        elif inside in ("function", "method"):
            # Only what is imported or defined counts here.
            if statement == _COMPOUND and mentions(source, start, stop):
                raise _UnsureError
        elif statement == _COMPOUND and found[_COMPOUND] not in (b"match", b"case"):
            colon = _to_colon(source, start)
            if colon is None or not _harmless(source, colon.end()):
                raise _UnsureError
        else:
            targets = [found.regs[statement]] if statement in (_ASSIGNED, _ANNOTATED) else []
            after = found.end() if statement == _ASSIGNED else 0
            if not targets and b"=" in source[start:stop]:
                targets, after = _targets(source, start, stop)
            if after and (second := _next_target(source, after)) is not None:
                if second.regs[1][0] < 0:  # it may stand on the next line
                    raise _UnsureError
                targets.append(second.regs[1])
            if targets:
                text = signature("python", "variable", source, start, stop, 0)
            for name_start, name_end in targets:
                names.add(name_start)
                name = source[name_start:name_end].decode()
                column = len(source[line_start:name_start].decode()) + 1
                rows.append((name, "variable", line, line, column, last_line, container, text, ""))
        line = last_line + 1
    return [row for row in rows if row is not None], imports, names


def _signature(source: bytes, kind: str, start: int, stop: int, body: int) -> str:
    """As `signature`, quick for a head on one line with nothing between it and the body."""
    if body > stop and stop - start < SIGNATURE:
        head = source[start:stop]
        if b"\n" not in head and b"  " not in head and b"#" not in source[stop:body]:
            return head.decode().rstrip(" :{=")
    return signature("python", kind, source, start, body, body)


def _line_end(source: bytes, start: int) -> tuple[int, int]:
    """Where the statement at `start` ends, and where the next line starts; for what `_to_end` can't tell."""
    depth = 0
    comment = -1
    for token in _tokens(source, start):
        sign = token[0]
        if sign in (b"(", b"[", b"{"):
            depth += 1
        elif sign in (b")", b"]", b"}"):
            depth -= 1
            if depth < 0:
                break
        elif sign == b"\n":
            if not depth:
                if source[start : token.start()].rstrip().endswith(b"\\"):
                    break
                return token.start() if comment < 0 else comment, token.end()
        elif sign.startswith(b"#"):
            if not depth:
                comment = token.start()
        elif (sign == b";" and not depth) or sign in (b'"', b"'", b"\\"):
            break
    else:
        if not depth:
            return len(source) if comment < 0 else comment, len(source)
    raise _UnsureError


@lru_cache(maxsize=64)
def _dedent(indent: int) -> re.Pattern[bytes]:
    """The start of a line that ends a block of a head with this indentation."""
    return re.compile(rb"\n {0,%d}[^ \n#]" % indent)


def _plain_block(source: bytes, at: int, indent: int) -> tuple[int, int, int] | None:
    """The block that starts in the line at `at`, below a head with this indentation: where its first
    statement starts, where its last one ends, and where the line behind it starts. None when it may define or
    import something, when comments follow it, or when its end can't be told at a glance."""
    found = _body(source, at)
    assert found is not None
    body = found.end()
    if body - found.regs[1][1] <= indent:
        raise _UnsureError
    end = _dedent(indent).search(source, body)
    stop = end.start() if end is not None else len(source)
    text = source[body:stop].rstrip()
    last_line = text[text.rfind(b"\n") + 1 :]
    if not text or text[-1] in _UNFINISHED or last_line.lstrip().startswith(b"#"):
        return None
    brackets = text.translate(None, _NO_BRACKETS)
    if brackets:
        number = brackets.count
        if (
            number(b"(") != number(b")") or number(b"[") != number(b"]") or number(b"{") != number(b"}")
        ):  # fmt: skip
            return None
    double, single = text.count(b'"""'), text.count(b"'''")
    if double % 2 or single % 2 or (double and single):
        return None
    last = body + len(text)
    if mentions(source, body, last):
        return None
    return body, last, stop + 1 if end is not None else len(source)


def _body_on_line(source: bytes, start: int, stop: int, function: bool) -> int:
    """Where the body starts of a definition whose body is on the line of its head."""
    found = _to_colon(source, start)
    if found is None or found.end() >= stop:
        raise _UnsureError
    body = found.end()
    if mentions(source, body, stop) if function else not _harmless(source, body):
        raise _UnsureError
    return body


def _targets(source: bytes, start: int, stop: int) -> tuple[list[tuple[int, int]], int]:
    """The names that a statement assigns to (ranges), and where its value starts; ([], 0) without any."""
    depth = 0
    several = False
    for token in _equals(source, start, stop):
        sign = token[0]
        if sign in (b"(", b"[", b"{"):
            depth += 1
        elif sign in (b")", b"]", b"}"):
            depth -= 1
        elif sign == b",":
            several = several or not depth
        elif not depth and sign == b"=":
            break
        elif not depth and sign.endswith(b"=") and sign not in (b"==", b"!=", b"<=", b">="):
            return [], 0
    else:
        return [], 0
    left, after = source[start : token.start()].rstrip(), token.end()
    if left.startswith(b"[") and left.endswith(b"]") and left.count(b"[") == 1:
        return [], after
    tuple_like = left.startswith(b"(")
    if not tuple_like and not several:
        return [], after
    if tuple_like:
        if not left.endswith(b")"):
            raise _UnsureError
        left, start = left[1:-1], start + 1
    if any(sign in left for sign in (b"(", b"[", b"{", b":", b"\n", b"#", b"\\")):
        raise _UnsureError
    found = []
    for part in left.split(b","):
        word = part.strip()
        if _name(word):
            at = start + len(part) - len(part.lstrip())
            found.append((at, at + len(word)))
        start += len(part) + 1
    return found, after

"""What tags read from a file's bytes around a node: lines, names, heads and documentation.

Byte slices instead of further nodes: a node's attributes cost as much as a search over a hundred bytes.
"""

from __future__ import annotations

import re

FUNCTIONS = frozenset({"function", "method", "constructor"})
_VALUES = frozenset({"variable", "constant", "field", "property"})
_TYPES = frozenset(
    {"class", "interface", "struct", "trait", "enum", "union", "object", "protocol", "container", "member"}
)  # fmt: skip
_FREE_METHODS = frozenset({"ruby", "javascript", "typescript", "tsx"})
"""Languages whose grammar has methods outside types."""

SIGNATURE = 200
_HEAD_BYTES = 4 * SIGNATURE + 400
_DOC = 200
_DOC_BYTES = 1000
_COMMENT_LINES = 60
_COMMENT_BYTES = 8000

_plain = re.compile(rb"[\w$\x80-\xff]+").fullmatch
_NOT_OWNERS = frozenset(
    {"exports", "module.exports", "this", "self", "window", "globalThis", "global", "prototype", "super"}
)

Shape = tuple[str, str, str]
"""Kind, name, and the dotted containers that the definition names itself."""


def shape(
    language: str,
    kind: str,
    inside: str,
    source: bytes,
    start: int,
    end: int,
    owner_start: int,
    owner_end: int,
) -> Shape | None:
    """What the name at `start` to `end` defines, or None when it is no symbol. `inside` is the kind of the
    nearest definition around it ("" at the top): values inside functions are no symbols."""
    if kind in _VALUES and (inside in FUNCTIONS or (kind == "variable" and inside in _VALUES)):
        return None
    raw = source[start:end]
    if raw == b"_" and language != "python":
        return None  # what is thrown away
    if raw in _NO_NAMES and language in ("c", "cpp"):
        return None
    if language == "python":
        if kind == "function" and inside == "class":
            kind = "method"
        return kind, raw.decode("utf-8", "replace"), ""
    if _plain(raw):
        name, owners = raw.decode("utf-8", "replace"), ""
    else:
        name, owners = _name(raw)
        if not name:
            return None
    if owner_end:
        if name == "exports" and source[owner_start:owner_end] == b"module":
            return None
        named = _owner(source[owner_start:owner_end])
        owners = f"{named}.{owners}" if named and owners else named or owners
    if kind == "function":
        if inside in _TYPES:
            kind = "method"
    elif (
        kind == "method" and language in _FREE_METHODS and not owners and (not inside or inside in FUNCTIONS)
    ):
        kind = "function"
    if kind == "variable":
        if inside in _TYPES and language != "python":
            kind = "field"
        if language in ("c", "cpp") and _EXTERN.match(source, source.rfind(b"\n", 0, start) + 1):
            return None
    elif kind == "alias":
        name = name.rstrip("=")
    return kind, name, owners


_NO_NAMES = frozenset((b"if", b"else", b"for", b"while", b"switch", b"return", b"catch", b"typedef", b"auto"))
"""What broken C may make definitions of."""
_EXTERN = re.compile(rb"\s*extern\b[^=\n]*$", re.MULTILINE)

_CALL_OPERATOR = re.compile(r"operator ?\( ?\)")
_TEMPLATE = re.compile(r"<[^<>]*>")


def _name(raw: bytes) -> tuple[str, str]:
    """(last name, dotted containers) of a name that is more than an identifier: quoted, qualified, an
    operator."""
    text = " ".join(raw[:_HEAD_BYTES].decode("utf-8", "replace").split())
    if text[:1] in "'\"`":
        text = text.strip("'\"`")
        return ("", "") if not text or "${" in text or len(text) > 100 else (text, "")
    if not text[:1].isidentifier() and text[:1] not in "\\:~":
        return text, ""  # an operator as a method's name
    if text[:1] == ":" and text[:2] != "::":
        return text[1:].strip("'\""), ""  # Ruby's symbols
    operator = text.find("operator")
    if operator >= 0 and not _CALL_OPERATOR.match(text, operator):
        text = text.split("(")[0].rstrip()
    if operator >= 0 and (operator == 0 or text[operator - 1] in ": "):
        head, last = text[:operator], text[operator:]
    else:
        before = None
        while before != text:
            before, text = text, _TEMPLATE.sub("", text)
        head, _, last = text.replace("::", ".").replace("\\", ".").rpartition(".")
    head = _TEMPLATE.sub("", head).replace("::", ".").replace("\\", ".").replace(" ", "").strip(".")
    return last.strip(), head


def _owner(raw: bytes) -> str:
    """Containers before a name: "A.prototype" -> "A", "*T" -> "T", "module.exports" -> ""."""
    text = "".join(raw[:_HEAD_BYTES].decode("utf-8", "replace").split()).removesuffix(".prototype")
    if text in _NOT_OWNERS:
        return ""
    text = text.removeprefix("module.exports.").removeprefix("exports.").removeprefix("this.")
    return text if re.fullmatch(r"[\w$.#]+", text) else ""


class Lines:
    """Lines and columns (from 1) of byte offsets, cheap for offsets that mostly grow."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._ascii = source.isascii()
        self._at = 0
        self._line = 1

    def line(self, offset: int) -> int:
        if offset >= self._at:
            self._line += self._source.count(b"\n", self._at, offset)
        else:
            self._line -= self._source.count(b"\n", offset, self._at)
        self._at = offset
        return self._line

    def place(self, offset: int) -> tuple[int, int]:
        start = self._source.rfind(b"\n", 0, offset) + 1
        if self._ascii:
            return self.line(offset), offset - start + 1
        return self.line(offset), len(self._source[start:offset].decode("utf-8", "replace")) + 1


_PYTHON_COMMENT = re.compile(rb"#[^\n'\"]*$", re.MULTILINE)
_ANNOTATIONS = re.compile(r"^(?:@[\w.]+(?:\((?:[^()]|\([^()]*\))*\))?\s+(?=[\w@<]))+(?!interface)")


def signature(language: str, kind: str, source: bytes, start: int, end: int, body: int) -> str:
    """The head of a definition on one line: up to its body, or the first line of one without."""
    if body:
        head = source[start : min(body, start + _HEAD_BYTES)]
        if language == "python":
            if b"#" in head:
                head = _PYTHON_COMMENT.sub(b"", head)
            elif b"  " not in head and b"\n" not in head and len(head) <= SIGNATURE:
                return head.decode("utf-8", "replace").rstrip(" :\t\r")
    else:
        head = source[start : min(end, start + _HEAD_BYTES)]
        if kind not in FUNCTIONS:
            head = head.split(b"\n", 1)[0]
    text = head.decode("utf-8", "replace")
    if "\n" in text or "  " in text or "\t" in text or text[-1:] in " \r":
        text = " ".join(text.split())
    if text.endswith(("{", ":", "=", ">")):
        text = text.removesuffix("=>").rstrip(" {:=")
    return text if len(text) <= SIGNATURE else text[:SIGNATURE] + "…"


_QUOTES = frozenset(b"\"'rRuUbB")
_DOCSTRING = re.compile(rb"[rRuUbB]{0,2}(\"\"\"|'''|\"|')\s*")


def docstring(source: bytes, body: int) -> str:
    """The first line of a Python docstring that starts at `body`; "" when something else does."""
    if body >= len(source) or source[body] not in _QUOTES:  # an unfinished head has an empty body at the end
        return ""
    found = _DOCSTRING.match(source, body)
    if found is None:
        return ""
    start = found.end()
    end = source.find(b"\n", start, start + _DOC_BYTES)
    line = source[start : end if end >= 0 else start + _DOC_BYTES]
    close = line.find(found[1])
    return _short((line if close < 0 else line[:close]).decode("utf-8", "replace"))


_DECORATION = re.compile(r"^[/*!#\s]+|[*/\s]+$|</?[a-z]+>")


def comment_above(language: str, source: bytes, first: int) -> tuple[str, int]:
    """The first line of the comment right above what starts at `first`, and how many lines of attributes
    (Rust's `#[...]`, C#'s `[...]`) stand between."""
    at = source.rfind(b"\n", 0, first) + 1
    if source[at:first].strip():
        return "", 0
    attributes = 0
    hash_comments = language in ("ruby", "bash", "php")
    lines: list[bytes] = []
    for _ in range(_COMMENT_LINES):
        if at == 0:
            break
        end = at - 1
        at = source.rfind(b"\n", 0, end) + 1
        line = source[at : min(end, at + _DOC_BYTES)].strip()
        if line.startswith(b"//") or (hash_comments and line.startswith(b"#") and not line.startswith(b"#!")):
            lines.append(line)
            continue
        if lines:
            break
        if line.endswith(b"*/"):
            start = source.rfind(b"/*", max(0, end - _COMMENT_BYTES), end)
            if start < 0 or source[source.rfind(b"\n", 0, start) + 1 : start].strip():
                return "", attributes
            lines = source[start:end].split(b"\n")[:_COMMENT_LINES]
            lines.reverse()
            break
        if line.startswith(b"#[") and line.endswith(b"]"):
            attributes += 1
            continue
        break
    for line in reversed(lines):
        text = _DECORATION.sub("", line.decode("utf-8", "replace")).strip()
        if text:
            return _short(text), attributes
    return "", attributes


def _short(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _DOC else text[:_DOC] + "…"


# Each starts with a literal, which lets `re` skip quickly; group 1 is what goes.
_MACROS = (
    re.compile(rb"class ([A-Z][A-Z0-9_]{2,}(?:\([^()\n]*\))?)(?= +[A-Za-z_])"),
    re.compile(rb"struct ([A-Z][A-Z0-9_]{2,}(?:\([^()\n]*\))?)(?= +[A-Za-z_]\w*\s*(?:final\s*)?[:{<])"),
    # MACRO_THAT_ASSIGN_OR_RETURN(type name, ...)
    re.compile(
        rb"ASSIGN\w*\((\s*(?:const\s+)?[a-z][\w:]*(?:<[^<>(),;]*(?:<[^<>();]*>)?[^<>(),;]*>)?[&*\s]*\s[&*]*)"
        rb"(?=[a-z_]\w*\s*,)"
    ),
    # MY_EXPORT int f(); and macros alone on their lines.
    re.compile(
        rb"\n([ \t]*(?:[A-Z][A-Z0-9]*_)+(?:EXPORT|API|PUBLIC|NOINLINE|FORCE_INLINE|ALWAYS_INLINE|INLINE"
        rb"|EXTERN|DEPRECATED|VISIBILITY|NORETURN|NODISCARD|HIDDEN)(?:\([^()\n]*\))?(?=[ \t]+[\w:\[])"
        rb"|[A-Z][A-Z0-9_]{3,}(?:[ \t]*\([^()\n]*(?:\n[^()\n]*){0,3}\))?(?=[ \t]*\r?\n(?!\{)))"
    ),
)
_NO_BREAK = re.compile(rb"[^\n]")


def without_macros(source: bytes) -> bytes:
    """C and C++ with those macros blanked that stand where only attributes may, or alone on a line, and the
    type in `MACRO(type name, ...)`: the grammar makes errors of them and loses what is behind."""
    spans = [found.span(1) for macro in _MACROS for found in macro.finditer(source)]
    if not spans:
        return source
    blanked = bytearray(source)
    for start, end in spans:
        blanked[start:end] = _NO_BREAK.sub(b" ", source[start:end])
    return bytes(blanked)


def as_parsed(language: str, source: bytes) -> bytes:
    """The text that the parser gets: as long as `source`, with the same line breaks."""
    return without_macros(source) if language in ("c", "cpp") else source

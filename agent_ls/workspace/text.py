"""The one type that reads and writes text; encoding, line ends, final newline and mode stay as they are."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import stat
import tempfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path

from attrs import evolve, frozen

from agent_ls.errors import ToolRefused
from agent_ls.workspace.paths import TEMPORARY_PREFIX

MAX_BYTES = 5_000_000
"""Larger files are not read for editing."""

# Universal newlines, as Python and the editors' protocol count lines; form feeds and U+2028 are content.
_LINE = re.compile(r"([^\r\n]*)(\r\n|\n|\r|\Z)")
# PEP 263: only in the first two lines, the first of which must be a comment or blank for the second to count.
_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK = re.compile(rb"^[ \t\f]*(?:#|$)")
# The longer mark first: the UTF-32 LE mark begins with that of UTF-16 LE.
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Control characters that turn up in text: tab, line ends, vertical tab, form feed, backspace, bell, escape.
_BINARY = re.compile(r"[\x00\x01-\x06\x0e-\x1a\x1c-\x1f]")
_SAMPLE_BYTES = 65_536
_DIFF_CELLS = 4_000_000


class NotText(ToolRefused):
    """The bytes are not text that could be read and written back exactly."""


@frozen(slots=False)
class TextFile:
    """The content of one text file.

    `lines` has no line ends; `eols` holds each line's own ("\\n", "\\r\\n", "\\r", or "" for a last line
    without one). `guessed` tells that nothing in the file names its encoding and that it isn't UTF-8:
    then only characters that the file already holds (or ASCII) may be written. `mode` is the
    permission bits where the file was read from disk.
    """

    lines: tuple[str, ...]
    eols: tuple[str, ...]
    encoding: str = "utf-8"
    bom: bytes = b""
    guessed: bool = False
    mode: int | None = None

    @classmethod
    def read(cls, path: Path) -> TextFile:
        """Read a file of up to 5 MB. Raises NotText, ToolRefused (too large) and OSError."""
        status = path.stat()
        check_size(path.name, status.st_size)
        return evolve(cls.from_bytes(path.read_bytes(), path.name), mode=stat.S_IMODE(status.st_mode))

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "") -> TextFile:
        """Decode `data`; `name` is the file's, for messages and the rules of its language.

        The encoding is that of the byte order mark, else of the coding comment (PEP 263) in Python
        files, else UTF-8, else of a coding comment in any other file, else a guess. Raises NotText
        for binary data and for whatever does not come back byte for byte.
        """
        check_size(name, len(data))
        text, encoding, bom, guessed = _decode(data, name)
        pairs = [match.groups() for match in _LINE.finditer(text)]
        if pairs and pairs[-1] == ("", ""):
            pairs.pop()
        file = cls(
            tuple(line for line, _ in pairs), tuple(eol for _, eol in pairs), encoding, bom, guessed, None
        )
        if file.to_bytes() != data:
            raise NotText(f"{_called(name)} can't be written back exactly in its encoding ({encoding})")
        return file

    @classmethod
    def new(cls, text: str) -> TextFile:
        """A file that does not exist yet: UTF-8, its line ends as they stand in `text`."""
        pairs = [match.groups() for match in _LINE.finditer(text)]
        if pairs and pairs[-1] == ("", ""):
            pairs.pop()
        file = cls(tuple(line for line, _ in pairs), tuple(eol for _, eol in pairs))
        return file._checked()

    @cached_property
    def text(self) -> str:
        """The whole text with "\\n" for every line end."""
        joined = "\n".join(self.lines)
        return joined + "\n" if self.eols and self.eols[-1] else joined

    @cached_property
    def _starts(self) -> list[int]:
        """Offset in `text` of each line's first character."""
        starts, offset = [], 0
        for line in self.lines:
            starts.append(offset)
            offset += len(line) + 1
        return starts

    @property
    def _final_newline(self) -> bool:
        """Does the text end where a new line starts? (So does an empty one.)"""
        return not self.eols or bool(self.eols[-1])

    @property
    def main_eol(self) -> str:
        """The most frequent line end, "\\n" where there is none."""
        counted = Counter(eol for eol in self.eols if eol)
        return counted.most_common(1)[0][0] if counted else "\n"

    def line_of(self, offset: int) -> int:
        """The 1-based number of the line that holds this offset of `text`."""
        return max(1, bisect_right(self._starts, offset))

    def to_bytes(self) -> bytes:
        """The file's bytes. Raises ToolRefused where its encoding lacks a character."""
        text = "".join(line + eol for line, eol in zip(self.lines, self.eols, strict=True))
        try:
            return self.bom + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            bad = text[error.start : error.end]
            line = len(re.findall(r"\r\n|\n|\r", text[: error.start])) + 1
            raise ToolRefused(
                f"the text has {bad[:20]!r} (line {line}), which can't be written in the file's encoding "
                f"({self.encoding})",
                "Use characters of that encoding or an escape sequence.",
            ) from None

    def with_text(self, text: str) -> TextFile:
        """The same file with another text; lines that stay keep their own ends, new ones take their
        neighbours'. Raises ToolRefused where the encoding can't hold the text."""
        text = _normalised(text)
        old = self.text
        limit = min(len(old), len(text))
        start = len(os.path.commonprefix((old, text)))  # noqa: RUF071 (meant by character)
        end = 0
        while end < limit - start and old[len(old) - 1 - end] == text[len(text) - 1 - end]:
            end += 1
        return self.replace_span(start, len(old) - end, text[start : len(text) - end])

    def replace_lines(self, first: int, last: int, lines: Sequence[str]) -> TextFile:
        """Replace the lines `first` to `last` (1-based, both included; `last = first - 1` inserts before
        `first`) by `lines` (without line ends). A file without a final newline stays so unless it grows
        at its end. Raises ToolRefused as `with_text`, ValueError for lines that don't exist."""
        if not 1 <= first <= len(self.lines) + 1 or not first - 1 <= last <= len(self.lines):
            raise ValueError(f"no lines {first} to {last} in a file of {len(self.lines)}")
        return self._spliced(first - 1, last, list(lines), self._final_newline)

    def replace_span(self, start: int, end: int, new: str) -> TextFile:
        """Replace the characters `start` to `end` (offsets in `text`, end excluded) by `new`; only the
        bytes of the lines that the span touches change. Raises ToolRefused as `with_text`."""
        new = _normalised(new)
        text, starts, count = self.text, self._starts, len(self.lines)
        if not 0 <= start <= end <= len(text):
            raise ValueError(f"no span {start} to {end} in a text of {len(text)} characters")
        behind = start == len(text) and self._final_newline
        first = count if behind else bisect_right(starts, start) - 1
        head = (text[starts[first] : start] if first < count else "") + new
        boundary = end == len(text) if self._final_newline else False
        if first < count:
            boundary = boundary or end == starts[bisect_right(starts, end) - 1]
        if end == len(text):
            stop, tail = count, ""
        elif boundary and (not head or head.endswith("\n")):
            stop, tail = bisect_right(starts, end) - 1, ""
        else:
            stop = bisect_right(starts, end)
            tail = text[end : starts[stop] if stop < count else len(text)]
        body = head + tail
        final = body.endswith("\n") if stop == count and body else None
        return self._spliced(first, stop, _split(body), final)

    def _spliced(self, first: int, stop: int, new: list[str], final_newline: bool | None) -> TextFile:
        """Lines `first` to `stop` (0-based, end excluded) replaced, and their line ends chosen;
        `final_newline` None leaves the end of the file as it is."""
        old, own = self.lines[first:stop], self.eols[first:stop]
        before = self.eols[first - 1] if first else ""
        after = next((eol for eol in self.eols[stop:] if eol), "")
        chosen: list[str] = []
        for tag, i1, i2, j1, j2 in _opcodes(old, new):
            for offset in range(j2 - j1):
                kept = own[i1 + offset] if tag != "insert" and i1 + offset < i2 else ""
                near = chosen[-1] if chosen else before
                chosen.append(kept or near or (own[0] if own else "") or after or self.main_eol)
        lines = (*self.lines[:first], *new, *self.lines[stop:])
        eols = [*self.eols[:first], *chosen, *self.eols[stop:]]
        for index in range(max(0, first - 1), len(eols) - 1):
            if not eols[index]:  # the old last line is no longer the last
                eols[index] = (eols[index - 1] if index else "") or self.main_eol
        if eols and final_newline is False:
            eols[-1] = ""
        elif eols and final_newline and not eols[-1]:
            eols[-1] = (eols[-2] if len(eols) > 1 else "") or self.main_eol
        return evolve(self, lines=lines, eols=tuple(eols))._checked(self)

    def _checked(self, before: TextFile | None = None) -> TextFile:
        data = self.to_bytes()
        text = "".join(line + eol for line, eol in zip(self.lines, self.eols, strict=True))
        control = set(_BINARY.findall(text)) - set(_BINARY.findall(before.text if before else ""))
        if control:
            raise ToolRefused(f"the new text contains the control character {min(control)!r}")
        if data[len(self.bom) :].decode(self.encoding) != text:
            raise ToolRefused(f"the new text does not survive the file's encoding ({self.encoding})")
        if self.guessed and before is not None:
            foreign = {char for char in set(text) - set(before.text) - {"\r"} if ord(char) > 127}
            if foreign:
                raise ToolRefused(
                    f"nothing says what the file's encoding is (perhaps {self.encoding}), so "
                    f"{''.join(sorted(foreign))[:20]!r} can't be written into it safely",
                    "Use ASCII or characters that the file already contains.",
                )
        return self


def _split(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def _normalised(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _called(name: str) -> str:
    return repr(name) if name else "the text"


def check_size(name: str, size: int) -> None:
    """Raises ToolRefused for a file that is too large to edit."""
    if size > MAX_BYTES:
        raise ToolRefused(
            f"{_called(name)} has {size / 1e6:.1f} MB; files over {MAX_BYTES // 1_000_000} MB are not "
            "read or edited",
            "Use search to look into it.",
        )


def _opcodes(old: Sequence[str], new: Sequence[str]) -> list[tuple[str, int, int, int, int]]:
    if len(old) * len(new) > _DIFF_CELLS or not old or not new:
        return [("replace", 0, len(old), 0, len(new))]
    return [tuple(code) for code in SequenceMatcher(None, old, new, autojunk=False).get_opcodes()]  # type: ignore[misc]


def cookie(data: bytes) -> str | None:
    """The encoding that a comment in the first two lines names (PEP 263), or None."""
    for line in re.split(rb"\r\n|\n|\r", data[:1000])[:2]:
        match = _COOKIE.match(line)
        if match:
            return match.group(1).decode("ascii", "replace")
        if not _BLANK.match(line):
            return None
    return None


def _decode(data: bytes, name: str) -> tuple[str, str, bytes, bool]:
    """Text, encoding, byte order mark, and whether the encoding is a guess."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            try:
                return data[len(bom) :].decode(encoding), encoding, bom, False
            except UnicodeDecodeError as error:
                if encoding == "utf-32-le":
                    continue
                raise NotText(f"{_called(name)} starts like {encoding} but isn't ({error.reason})") from None
    if b"\0" in data:
        raise NotText(f"{_called(name)} is binary, not text")
    declared = cookie(data)
    if declared is not None and name.casefold().endswith((".py", ".pyi", ".pyw")):
        return _by_cookie(data, name, declared)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    else:
        if len(_BINARY.findall(text)) > 0.02 * len(text):
            raise NotText(f"{_called(name)} is binary, not text")
        return text, "utf-8", b"", False
    if declared is not None:
        with contextlib.suppress(NotText):
            return _by_cookie(data, name, declared)
    return _guess(data, name)


def _by_cookie(data: bytes, name: str, declared: str) -> tuple[str, str, bytes, bool]:
    try:
        info = codecs.lookup(declared)
        text, encoding = data.decode(declared), info.name
    except (LookupError, UnicodeError, ValueError) as error:
        reason = (
            f"{error.reason} at byte {error.start}" if isinstance(error, UnicodeDecodeError) else str(error)
        )
        raise NotText(f"{_called(name)} says that its encoding is {declared}, but: {reason}") from None
    return text, encoding, b"", False


def _guess(data: bytes, name: str) -> tuple[str, str, bytes, bool]:
    """Neither marked nor UTF-8: the guess of charset-normalizer where it recognises a language, else
    Windows-1252 or Latin-1. A wrong guess changes no byte; see `TextFile.guessed`."""
    from charset_normalizer import from_bytes

    latin = data.decode("latin-1")
    if len(_BINARY.findall(latin)) > 0.001 * len(latin):
        raise NotText(f"{_called(name)} is binary, not text")
    best = from_bytes(data[:_SAMPLE_BYTES]).best()
    if best is None:
        raise NotText(f"{_called(name)} has no encoding that could be told: it is neither UTF-8 nor marked")
    candidates = ["cp1252", "latin-1"]
    if best.coherence >= 0.5 and not best.encoding.startswith("utf"):
        candidates.insert(0, best.encoding)
    for encoding in candidates:
        with contextlib.suppress(UnicodeDecodeError):
            text = data.decode(encoding)
            if text.encode(encoding) == data:
                return text, encoding, b"", True
    raise NotText(f"{_called(name)} has no encoding that could be told")


def write_atomic(path: Path, data: bytes, mode: int | None = None) -> None:
    """Replace the file in one step: a reader sees the old or the new bytes, never a part.

    Missing folders are made. `mode` is the permission bits, by default those of the file replaced or
    what the umask gives a new one. Raises OSError, with nothing left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if mode is None:
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
        except FileNotFoundError:
            umask = os.umask(0)
            os.umask(umask)
            mode = 0o666 & ~umask
    handle, temporary = tempfile.mkstemp(prefix=TEMPORARY_PREFIX, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise

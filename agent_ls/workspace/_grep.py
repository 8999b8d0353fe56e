"""Search lines of files with Python's `re`; also a program of its own, so that a regular expression that
runs away can be stopped. Standard library only: it is started as `python -I _grep.py`.

In: one JSON object {root, files, texts, pattern, flags, clauses, fold, limit, seconds} on stdin, with `texts`
the text of files that is not what the disk has. Out: one JSON array [path, line, column, end column, text]
per hit, then the object {"end": "done" | "limit" | "timeout", "path": …}.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, AnyStr, Generic

MAX_FILE = 64_000_000
MAX_TEXT = 400
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
BOMS = tuple(bom for bom, _ in _BOMS)
"""Byte order marks that say a file's encoding."""
ODD = "ſıİ\u212a"
"""What equals an ASCII letter (s, i, i, k) when case is ignored, although neither lower() makes it one."""
_ODD = re.compile(f"[{ODD}]")
_HEAD = 8192
_TALLIED = 200_000
"""So many characters are looked at before the rarest literal is chosen."""

Span = tuple[int, int, int, str]
"""Line, column and end column (behind the match), from 1 in characters, and the line's text, capped."""
Found = tuple[str, int, int, int, str]
"""A path and a span in that file."""


class OutOfTime(Exception):
    """The deadline passed; `args` is the path that was being searched."""


class LineTooLong(Exception):
    """A line is longer than the expression may be tried on in this process."""


def decoded(data: bytes) -> str | None:
    """The text for searching (a wrong character is better than a missed file), None for binary data."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return data[len(bom) :].decode(encoding, "replace")
    if b"\0" in data[:_HEAD]:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


class Matcher:
    """Finds the lines of a text that match `pattern`. `clauses` (none: every line is tried) are sets of
    literals; a matching line has one of each set, in small letters with `fold`.

    `plain` says that the pattern is nothing but the one literal. `longest` is the longest line (0: any) that
    the pattern may be tried on. `whole`, `whole_ascii` and `rooms` are those of `query.Query`.
    """

    def __init__(
        self,
        pattern: re.Pattern[str],
        clauses: Iterable[Iterable[str]] = (),
        fold: bool = False,
        longest: int = 0,
        *,
        plain: bool = False,
        whole: re.Pattern[str] | None = None,
        whole_ascii: re.Pattern[bytes] | None = None,
        rooms: Sequence[tuple[int, int]] = (),
    ) -> None:
        sets = [tuple(sorted(clause)) for clause in clauses]
        self._pattern = pattern
        self._fold = fold
        self._longest = longest
        self._plain = plain and len(sets) == 1 and len(sets[0]) == 1
        self._whole, self._whole_ascii, self._rooms = whole, whole_ascii, rooms
        self._singles = [literals[0] for literals in sets if len(literals) == 1]
        self._tally = [0] * len(self._singles)
        self._tallied = 0 if len(self._singles) > 1 else _TALLIED
        several = max(
            (literals for literals in sets if len(literals) > 1),
            key=lambda literals: (min(map(len, literals)), -len(literals)),
            default=None,
        )
        # One literal is found much more quickly than one of several.
        self._several = "|".join(map(re.escape, several)) if several and not self._singles else None

    def search(self, data: bytes, deadline: float = float("inf"), most: int = sys.maxsize) -> list[Span]:
        """The first match in each line that has one, of the first `most` such lines; nothing in binary data.
        Raises OutOfTime when `time.monotonic()` passes the deadline, LineTooLong."""
        if data.isascii() and b"\0" not in data[:_HEAD]:
            if b"\r" in data:
                data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            return self._search(_Ascii(data), deadline, most)
        text = decoded(data)
        if text is None:
            return []
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        return self._search(_Text(text), deadline, most)

    def _search(self, hay: _Hay[Any], deadline: float, most: int) -> list[Span]:
        ascii_only = isinstance(hay, _Ascii)
        if self._plain and not (self._fold and not ascii_only):
            if self._fold:
                hay.lower()
            return hay.literals(hay.needle(self._singles[0]), most)
        whole = self._whole_ascii if ascii_only else self._whole
        if whole is not None and self._has_room(hay):
            return hay.matches(whole, most)
        if self._fold and (self._singles or self._several) and not hay.lower():
            return self._lines(hay, hay.every_line(), (), deadline, most)
        if self._singles:
            best = self._rarest(hay)
            others = [literal for place, literal in enumerate(self._singles) if place != best]
            lines = hay.lines_with(hay.needle(self._singles[best]))
            return self._lines(hay, lines, [hay.needle(other) for other in others], deadline, most)
        lines = hay.lines_with_any(self._several) if self._several is not None else hay.every_line()
        return self._lines(hay, lines, (), deadline, most)

    def _has_room(self, hay: _Hay[Any]) -> bool:
        size = len(hay)
        for length, room in self._rooms:
            if size <= room:
                return hay.has_no_line_over(length)
        return False

    def _rarest(self, hay: _Hay[Any]) -> int:
        """Which of the literals is the rarest, as far as the texts until now tell."""
        if self._tallied < _TALLIED:
            self._tallied += len(hay)
            for place, literal in enumerate(self._singles):
                self._tally[place] += hay.count(hay.needle(literal))
        return self._tally.index(min(self._tally))

    def _lines(
        self,
        hay: _Hay[Any],
        lines: Iterable[tuple[int, int, int]],
        others: Sequence[Any],
        deadline: float,
        most: int,
    ) -> list[Span]:
        search = self._pattern.search
        longest = self._longest or len(hay)
        found: list[Span] = []
        for number, start, end in lines:
            if others and not all(hay.has(other, start, end) for other in others):
                continue
            if end - start > longest:
                raise LineTooLong
            line = hay.text(start, end)
            match = search(line)
            if match is not None:
                found.append((number, match.start() + 1, match.end() + 1, line[:MAX_TEXT]))
                if len(found) >= most:
                    return found
            if time.monotonic() > deadline:
                raise OutOfTime
        return found


class _Hay(Generic[AnyStr]):
    """A text whose lines end with a newline each; `low` is what literals are looked for in."""

    newline: AnyStr

    def __init__(self, whole: AnyStr) -> None:
        self.whole: AnyStr = whole
        self.low: AnyStr = whole

    def __len__(self) -> int:
        return len(self.whole)

    def needle(self, literal: str) -> AnyStr:
        raise NotImplementedError

    def text(self, start: int, end: int) -> str:
        raise NotImplementedError

    def lower(self) -> bool:
        """Look for literals in small letters from now on; False where that can't be done."""
        raise NotImplementedError

    def lines_with_any(self, pattern: str) -> Iterator[tuple[int, int, int]]:
        """As `lines_with`, for several literals as an expression."""
        raise NotImplementedError

    def count(self, needle: AnyStr) -> int:
        return self.low.count(needle)

    def has(self, needle: AnyStr, start: int, end: int) -> bool:
        return self.low.find(needle, start, end) >= 0

    def has_no_line_over(self, length: int) -> bool:
        """Surely so? Of a longer line, some stretch of half that length would be all within it."""
        find, newline, step = self.whole.find, self.newline, length // 2
        for start in range(0, len(self.whole) - step + 1, step):
            if find(newline, start, start + step) < 0:
                return False
        return True

    def literals(self, needle: AnyStr, most: int) -> list[Span]:
        """The first place of the needle in each line that has it."""
        low, newline, size = self.low, self.newline, len(needle)
        found: list[Span] = []
        number, counted = 1, 0
        at = low.find(needle)
        while at >= 0 and len(found) < most:
            start = low.rfind(newline, counted, at) + 1 or counted
            number += low.count(newline, counted, start)
            end = low.find(newline, at + size)
            if end < 0:
                end = len(low)
            column = at - start + 1
            found.append((number, column, column + size, self.text(start, min(end, start + MAX_TEXT))))
            number += 1
            counted = end + 1
            at = low.find(needle, counted)
        return found

    def matches(self, pattern: re.Pattern[AnyStr], most: int) -> list[Span]:
        """The first match in each line that has one, of a pattern that looks for them itself."""
        whole, newline = self.whole, self.newline
        found: list[Span] = []
        number, counted = 1, 0
        match = pattern.search(whole)
        while match is not None and len(found) < most:
            at, behind = match.span()
            start = whole.rfind(newline, counted, at) + 1 or counted
            number += whole.count(newline, counted, start)
            end = whole.find(newline, behind)
            if end < 0:
                end = len(whole)
            line = self.text(start, min(end, start + MAX_TEXT))
            found.append((number, at - start + 1, behind - start + 1, line))
            number += 1
            counted = end + 1
            match = pattern.search(whole, counted)
        return found

    def lines_with(self, needle: AnyStr) -> Iterator[tuple[int, int, int]]:
        """(number, start, end) of the lines that have a literal."""
        low, newline = self.low, self.newline
        number, counted = 1, 0
        at = low.find(needle)
        while at >= 0:
            start = low.rfind(newline, counted, at) + 1 or counted
            number += low.count(newline, counted, start)
            end = low.find(newline, at)
            if end < 0:
                end = len(low)
            yield number, start, end
            number += 1
            counted = end + 1
            at = low.find(needle, counted)

    def _lines_at(self, pattern: re.Pattern[AnyStr]) -> Iterator[tuple[int, int, int]]:
        low, newline = self.low, self.newline
        number, counted = 1, 0
        while (match := pattern.search(low, counted)) is not None:
            at = match.start()
            start = low.rfind(newline, counted, at) + 1 or counted
            number += low.count(newline, counted, start)
            end = low.find(newline, at)
            if end < 0:
                end = len(low)
            yield number, start, end
            number += 1
            counted = end + 1

    def every_line(self) -> Iterator[tuple[int, int, int]]:
        """(number, start, end) of all lines."""
        whole, newline = self.whole, self.newline
        start = number = 0
        while start < len(whole):
            number += 1
            end = whole.find(newline, start)
            if end < 0:
                end = len(whole)
            yield number, start, end
            start = end + 1


class _Ascii(_Hay[bytes]):
    newline = b"\n"

    def needle(self, literal: str) -> bytes:
        return literal.encode("utf-8", "surrogatepass")

    def text(self, start: int, end: int) -> str:
        return self.whole[start:end].decode("ascii")

    def lower(self) -> bool:
        self.low = self.whole.lower()
        return True

    def lines_with_any(self, pattern: str) -> Iterator[tuple[int, int, int]]:
        return self._lines_at(re.compile(pattern.encode("utf-8", "surrogatepass")))


class _Text(_Hay[str]):
    newline = "\n"

    def needle(self, literal: str) -> str:
        return literal

    def text(self, start: int, end: int) -> str:
        return self.whole[start:end]

    def lower(self) -> bool:
        low = self.whole.lower()
        if len(low) != len(self.whole) or _ODD.search(self.whole):
            return False
        self.low = low
        return True

    def lines_with_any(self, pattern: str) -> Iterator[tuple[int, int, int]]:
        return self._lines_at(re.compile(pattern))


def read(path: Path) -> bytes | None:
    """A file's bytes; None when it can't be read or is too large to be searched."""
    try:
        return path.read_bytes() if path.stat().st_size <= MAX_FILE else None
    except OSError:
        return None


def scan(
    files: Iterable[str],
    matcher: Matcher,
    reader: Callable[[str], bytes | None],
    deadline: float = float("inf"),
    put_off: Callable[[str], None] | None = None,
    most: int = sys.maxsize,
) -> Iterator[Found]:
    """The first match in each line that has one, file by file, at most `most` of a file.

    Raises OutOfTime once `time.monotonic()` has passed `deadline`, and whatever `reader` raises. A file with
    a line too long for the matcher gives no hit but goes to `put_off`.
    """
    for rel in files:
        data = reader(rel)
        if time.monotonic() > deadline:
            raise OutOfTime(rel)
        if data is None:
            continue
        try:
            # All of a file or nothing: its last line may be the one that is too long.
            found = matcher.search(data, deadline, most)
        except OutOfTime:
            raise OutOfTime(rel) from None
        except LineTooLong:
            if put_off is None:
                raise
            put_off(rel)
            continue
        for span in found:
            yield rel, *span


def _main() -> None:
    task = json.load(sys.stdin)
    matcher = Matcher(re.compile(task["pattern"], task["flags"]), task["clauses"], task["fold"])
    root, texts = Path(task["root"]), task["texts"]
    now = [""]

    def alarm(_signal: int, _frame: object) -> None:
        raise OutOfTime(now[0])

    def reader(rel: str) -> bytes | None:
        now[0] = rel
        return texts[rel].encode("utf-8", "replace") if rel in texts else read(root / rel)

    if hasattr(signal, "setitimer"):  # `re` looks for signals while it matches
        signal.signal(signal.SIGALRM, alarm)
        signal.setitimer(signal.ITIMER_REAL, task["seconds"])
    end = {"end": "done", "path": ""}
    try:
        for number, hit in enumerate(scan(task["files"], matcher, reader), 1):
            print(json.dumps(hit), flush=True)
            if number >= task["limit"]:
                end = {"end": "limit", "path": hit[0]}
                return
    except OutOfTime:
        end = {"end": "timeout", "path": now[0]}
    finally:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        print(json.dumps(end), flush=True)


if __name__ == "__main__":
    _main()

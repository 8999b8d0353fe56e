"""Search lines of files with Python's `re`; also a program of its own, so that a regular expression that
runs away can be stopped. Standard library only: it is started as `python -I _grep.py`.

In: one JSON object {root, files, texts, pattern, flags, needles, fold, limit, seconds} on stdin, with `texts`
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
from itertools import islice
from pathlib import Path

MAX_FILE = 64_000_000
MAX_TEXT = 400
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
BOMS = tuple(bom for bom, _ in _BOMS)
"""Byte order marks that say a file's encoding."""
ODD = "ſıİ\u212a"
"""What equals an ASCII letter (s, i, i, k) when case is ignored, although neither lower() makes it one."""
_ODD = re.compile(f"[{ODD}]")

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
    if b"\0" in data[:8192]:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


class Matcher:
    """Finds the lines of a text that match. `needles` (none: every line is tried) are literals of which a
    matching line contains at least one; they save trying the pattern on most lines. With `fold` they are
    lower-case ASCII and case is ignored. `longest` is how many characters a line may have (0: any number)."""

    def __init__(
        self, pattern: re.Pattern[str], needles: Sequence[str] = (), fold: bool = False, longest: int = 0
    ) -> None:
        self._pattern = pattern
        self._needle = needles[0] if len(needles) == 1 else None
        self._needles = re.compile("|".join(map(re.escape, needles))) if len(needles) > 1 else None
        self._fold = fold
        self._longest = longest

    def spans(self, text: str, deadline: float = float("inf")) -> Iterator[Span]:
        """The first match in each line that has one. Raises OutOfTime when `time.monotonic()` passes the
        deadline, LineTooLong."""
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        search = self._pattern.search
        longest = self._longest or len(text)
        for number, start, end in self._lines(text):
            line = text[start:end]
            if end - start > longest:
                raise LineTooLong
            match = search(line)
            if match is not None:
                yield number, match.start() + 1, match.end() + 1, line[:MAX_TEXT]
            if time.monotonic() > deadline:
                raise OutOfTime

    def _lines(self, text: str) -> Iterator[tuple[int, int, int]]:
        """(number, start, end) of the lines that may match."""
        hay = text
        if self._fold and (self._needle or self._needles):
            hay = text.lower()
            if not text.isascii() and (len(hay) != len(text) or _ODD.search(text)):
                yield from _all_lines(text)
                return
        if self._needle is None and self._needles is None:
            yield from _all_lines(text)
            return
        needle, needles = self._needle, self._needles
        number, counted, position = 1, 0, 0
        while True:
            if needle is not None:
                at = hay.find(needle, position)
            else:
                assert needles is not None
                found = needles.search(hay, position)
                at = found.start() if found is not None else -1
            if at < 0:
                return
            start = text.rfind("\n", position, at) + 1 or position
            end = text.find("\n", at)
            number += text.count("\n", counted, start)
            counted = start
            yield number, start, end if end >= 0 else len(text)
            if end < 0:
                return
            position = end + 1


def _all_lines(text: str) -> Iterator[tuple[int, int, int]]:
    start = 0
    number = 0
    while start < len(text):
        number += 1
        end = text.find("\n", start)
        if end < 0:
            end = len(text)
        yield number, start, end
        start = end + 1


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
        text = decoded(data) if data is not None else None
        if text is None:
            continue
        try:
            # With `put_off` all of a file or nothing: its last line may be the one that is too long.
            found = islice(matcher.spans(text, deadline), most)
            for span in found if put_off is None else list(found):
                yield rel, *span
        except OutOfTime:
            raise OutOfTime(rel) from None
        except LineTooLong:
            if put_off is None:
                raise
            put_off(rel)


def _main() -> None:
    task = json.load(sys.stdin)
    matcher = Matcher(re.compile(task["pattern"], task["flags"]), task["needles"], task["fold"])
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

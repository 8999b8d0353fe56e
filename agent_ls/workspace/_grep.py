"""Search lines of files with Python's `re`; also a program of its own, so that a regular expression that
runs away can be stopped. Standard library only: it is started as `python -I _grep.py`.

In: one JSON object {root, files, pattern, ignore_case, limit, seconds} on stdin. Out: one JSON array
[path, line, column, text] per hit, then the object {"end": "done" | "limit" | "timeout", "path": …}.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

MAX_FILE = 64_000_000
MAX_TEXT = 400
_EOL = re.compile(r"\r\n|\n|\r")
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
BOMS = tuple(bom for bom, _ in _BOMS)
"""Byte order marks that say a file's encoding."""


class OutOfTime(Exception):
    """The deadline passed; `args` is the path that was being searched."""


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


def scan(
    root: Path,
    files: Sequence[str],
    pattern: re.Pattern[str],
    deadline: float,
    between: Callable[[], None] = lambda: None,
) -> Iterator[tuple[str, int, int, str]]:
    """(path, line, column, text) of the first match in each line that has one; lines and columns from 1.

    Raises OutOfTime between two files once `time.monotonic()` has passed `deadline`, and whatever
    `between`, called there too, raises.
    """
    for rel in files:
        between()
        if time.monotonic() > deadline:
            raise OutOfTime(rel)
        path = root / rel
        try:
            if path.stat().st_size > MAX_FILE:
                continue
            text = decoded(path.read_bytes())
        except OSError:
            continue
        if text is None:
            continue
        for number, line in enumerate(_EOL.split(text), 1):
            match = pattern.search(line)
            if match is not None:
                yield rel, number, match.start() + 1, line[:MAX_TEXT]


def _main() -> None:
    task = json.load(sys.stdin)
    pattern = re.compile(task["pattern"], re.IGNORECASE if task["ignore_case"] else 0)
    now = [""]

    def alarm(_signal: int, _frame: object) -> None:
        raise OutOfTime(now[0])

    if hasattr(signal, "setitimer"):  # `re` looks for signals while it matches
        signal.signal(signal.SIGALRM, alarm)
        signal.setitimer(signal.ITIMER_REAL, task["seconds"])
    found = 0
    end = {"end": "done", "path": ""}
    try:
        for rel in task["files"]:
            now[0] = rel
            for hit in scan(Path(task["root"]), [rel], pattern, float("inf")):
                print(json.dumps(hit), flush=True)
                found += 1
                if found >= task["limit"]:
                    end = {"end": "limit", "path": rel}
                    return
    except OutOfTime as stop:
        end = {"end": "timeout", "path": str(stop)}
    finally:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        print(json.dumps(end), flush=True)


if __name__ == "__main__":
    _main()

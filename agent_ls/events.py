"""The trajectory: one append-only JSONL file per session, the only state there is.

Terminal view, report, reward, resume, replay and export are readings of this file. `docs/events.md` lists the
kinds and their data: it is public.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

Redactor = Callable[[str], str]


@frozen
class Event:
    """One line of the trajectory: `seq` without gaps from 0, `time` in seconds since the epoch."""

    seq: int
    time: float
    kind: str
    data: Mapping[str, Any]


class EventLog:
    """Appends events to a file and hands each to the listeners. Thread-safe.

    A torn last line (the process was killed while writing) is cut off when the log is opened for
    appending, so that no reader ever sees half an event followed by a whole one.
    """

    def __init__(self, path: Path, redact: Redactor | None = None) -> None:
        self.path = path
        self._redact = redact
        self._listeners: list[Callable[[Event], None]] = []
        self._lock = threading.RLock()
        path.parent.mkdir(parents=True, exist_ok=True)
        events = list(read_events(path)) if path.exists() else []
        self._next = events[-1].seq + 1 if events else 0
        self._file = path.open("ab")
        if events or path.stat().st_size:
            sound = _sound_length(path)
            if sound < path.stat().st_size:
                self._file.truncate(sound)

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Call `listener` with every later event, in the thread that appends it."""
        self._listeners.append(listener)

    def append(self, kind: str, **data: Any) -> Event:
        """Write one event durably (flushed, and synced for the first and last of a session)."""
        with self._lock:
            event = Event(self._next, time.time(), kind, data)
            line = json.dumps(
                {"seq": event.seq, "time": event.time, "kind": kind, "data": data}, ensure_ascii=False
            )
            if self._redact is not None:
                redacted = self._redact(line)
                if redacted != line:  # displays and reports see what the file holds
                    line, event = redacted, evolve(event, data=json.loads(redacted)["data"])
            self._file.write(line.encode("utf-8", "surrogatepass") + b"\n")
            self._file.flush()
            if kind in ("session_started", "attempt", "session_finished"):
                os.fsync(self._file.fileno())
            self._next += 1
        for listener in list(self._listeners):
            listener(event)
        return event

    def close(self) -> None:
        self._file.close()


def _sound_length(path: Path) -> int:
    data = path.read_bytes()
    return data.rfind(b"\n") + 1


def read_events(path: Path) -> Iterator[Event]:
    """Events of a file, oldest first; a torn last line is left out. Raises ValueError on other damage."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            try:
                raw = json.loads(line.decode("utf-8", "surrogatepass"))
                yield Event(raw["seq"], raw["time"], raw["kind"], raw["data"])
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path}: line {number} is not an event: {error}") from error

"""Runs: sessions that the editor started. Each has a thread; what it tells goes to the client in order.

Knows nothing of the protocol: `Listener` is told, `Runs` is asked, from any thread.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from attrs import define, field

from agent_ls.cancel import CancelToken
from agent_ls.errors import AgentLsError, UsageError
from agent_ls.lsp.folders import Folder
from agent_ls.lsp.updates import Teller, Update, finished

if TYPE_CHECKING:
    from agent_ls.events import Event

logger = logging.getLogger(__name__)

State = Literal["running", "paused", "asking", "finished"]
MAX_RUNS = 4
"""Runs that work at the same time."""
_CHUNK = 200
"""Characters of a model's answer that are sent together."""


class Ended(Protocol):
    """What a run ends with: an object with a verdict, an exit code and a summary, as JSON data."""

    def to_json(self) -> dict[str, Any]: ...


class Listener(Protocol):
    """Who is told what runs do; called in the run's thread."""

    def updated(self, run: Run, seq: int, update: Update) -> None: ...
    def asked(self, run: Run, question: str) -> None: ...


@define(eq=False)
class Run:
    """One run. `updates` are all it told so far: the position is the `seq`."""

    id: str
    kind: str
    title: str
    folder: Folder
    branch: str | None
    started: float = field(factory=time.time)
    state: State = "running"
    updates: list[Update] = field(factory=list)
    report: dict[str, Any] | None = None
    session: str | None = None
    question: str | None = None
    root: Path | None = None
    """The repository's root, once it is known."""
    decided: str | None = None
    """What became of the result: applied, merged, discarded."""
    cancel: CancelToken = field(factory=CancelToken)
    teller: Teller = field(factory=Teller)
    _lock: threading.RLock = field(factory=threading.RLock)
    _listener: Listener | None = None
    _going: threading.Event = field(factory=threading.Event)
    _answered: threading.Event = field(factory=threading.Event)
    _answer: str | None = None
    _text: str = ""
    thread: threading.Thread | None = None

    def status(self) -> dict[str, Any]:
        """The run as JSON data, without its updates."""
        return {
            "runId": self.id,
            "kind": self.kind,
            "title": self.title,
            "folder": self.folder.uri,
            "branch": self.branch,
            "session": self.session,
            "state": self.state,
            "message": self.teller.line,
            "percent": self.teller.percent,
            "question": self.question,
            "verdict": None if self.report is None else self.report["verdict"],
            "decided": self.decided,
            "started": self.started,
            "seq": len(self.updates),
        }

    def tell(self, update: Update) -> None:
        """Add an update and pass it on."""
        with self._lock:
            self._flush()
            self._add(update)

    def _add(self, update: Update) -> None:
        seq = len(self.updates)
        self.updates.append(update)
        if self._listener is not None:
            self._listener.updated(self, seq, update)

    def on_event(self, event: Event) -> None:
        """A session's event. Waits here while the run is paused: between two steps nothing is lost."""
        for update in self.teller.read(event):
            if update.get("session"):
                self.session = update["session"]
                self.branch = update.get("branch") or self.branch
            self.tell(update)
        while not self._going.wait(0.1):
            if self.cancel.cancelled:
                return

    def on_text(self, text: str) -> None:
        """A piece of the model's answer."""
        with self._lock:
            self._text += text
            if len(self._text) >= _CHUNK or "\n" in text:
                self._flush()

    def _flush(self) -> None:
        if self._text:
            text, self._text = self._text, ""
            self._add({"kind": "agent_message_chunk", "text": text, "final": False})

    def ask(self, question: str) -> str | None:
        """Ask the person and wait; None for no answer."""
        with self._lock:
            self._answer = None
            self._answered.clear()
            self.question, self.state = question, "asking"
        self.tell({"kind": "state", "state": "asking", "message": question, "question": question})
        if self._listener is not None:
            self._listener.asked(self, question)
        while not self._answered.wait(0.2):
            if self.cancel.cancelled:
                break
        with self._lock:
            self.question, self.state = None, "running"
            return self._answer

    def answer(self, text: str | None) -> bool:
        """The person's answer; False when nothing was asked."""
        with self._lock:
            if self.question is None:
                return False
            self._answer = text
            self._answered.set()
            return True

    def pause(self) -> None:
        """Stop before the next step; no effect on one that has ended."""
        with self._lock:
            if self.state != "running":
                return
            self._going.clear()
            self.state = "paused"
        self.tell({"kind": "state", "state": "paused", "message": "paused"})

    def go_on(self) -> None:
        """End a pause."""
        with self._lock:
            if self.state != "paused":
                return
            self.state = "running"
            self._going.set()
        self.tell({"kind": "state", "state": "running", "message": self.teller.line})


Work = Callable[[Run], Ended]


class Runs:
    """All runs of this server."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._runs: dict[str, Run] = {}
        self._lock = threading.Lock()

    def start(self, kind: str, title: str, folder: Folder, branch: str | None, work: Work) -> Run:
        """Begin a run in a thread; returns at once. `work` does it. Raises UsageError when too many work."""
        run = Run(f"run-{secrets.token_hex(4)}", kind, title, folder, branch)
        run._listener = self._listener
        with self._lock:
            if sum(it.state != "finished" for it in self._runs.values()) >= MAX_RUNS:
                raise UsageError(f"{MAX_RUNS} runs are at work", "Wait for one to end, or stop one.")
            self._runs[run.id] = run
        self._launch(run, work)
        return run

    def again(self, run: Run, work: Work) -> None:
        """Let an ended run go on under its id. Raises UsageError for one that works."""
        with self._lock:
            if run.state != "finished":
                raise UsageError(f"{run.id} has not ended", "Its status says what it does.")
            run.state, run.report, run.cancel = "running", None, CancelToken()
        self._launch(run, work)

    def _launch(self, run: Run, work: Work) -> None:
        run._going.set()
        run.thread = threading.Thread(target=self._work, args=(run, work), name=run.id, daemon=True)
        run.thread.start()

    def _work(self, run: Run, work: Work) -> None:
        report: dict[str, Any]
        try:
            report = work(run).to_json()
        except AgentLsError as error:
            report = _failed(str(error.verdict), error.verdict.exit_code, f"{error.message}", error.remedy)
        except Exception as error:  # a fault of ours must reach the person, and end nobody else's run
            logger.exception("run %s failed", run.id)
            report = _failed("error", 1, f"an unexpected error: {type(error).__name__}: {error}", None)
        with run._lock:
            run.report = report
            run.session = report.get("session") or run.session
            if report.get("branch") or report["verdict"] != "usage":
                run.branch = report.get("branch")
            run.state = "finished"
            update = finished(report)
            run.teller.line = update["message"]
            run.tell(update)

    def get(self, id: str) -> Run:
        """Raises UsageError for an unknown one."""
        run = self._runs.get(id)
        if run is None:
            raise UsageError(f"there is no run {id!r}", "agent-ls.run.list tells which there are.")
        return run

    def all(self) -> list[Run]:
        return list(self._runs.values())

    @property
    def working(self) -> list[Run]:
        return [run for run in self._runs.values() if run.state != "finished"]

    def stop(self) -> None:
        """Cancel all runs and wait for their ends; for the server's own end."""
        working = self.working
        for run in working:
            run.cancel.cancel()
        for run in working:
            if run.thread is not None:
                run.thread.join(2.5)


def _failed(verdict: str, code: int, message: str, remedy: str | None) -> dict[str, Any]:
    summary = f"{message}\n\n{remedy}" if remedy else message
    return {"verdict": verdict, "exit_code": code, "summary": summary, "stop_reason": verdict}

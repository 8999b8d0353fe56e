"""What runs tell, as notifications and progress. Called in the runs' threads; sends in the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

from lsprotocol import types

from agent_ls.lsp.folders import Folder
from agent_ls.lsp.protocol import answer
from agent_ls.lsp.runs import Run, Runs
from agent_ls.lsp.server import Server
from agent_ls.lsp.updates import Update

DID_UPDATE = "agent-ls/run/didUpdate"
DID_CHANGE_STATUS = "agent-ls/didChangeStatus"
REQUEST_PERMISSION = "agent-ls/requestPermission"
SCHEMA = 1
_REPORT_S = 0.1
"""Seconds between two reports of one progress at least; the last one is never lost."""
_CREATE_S = 5.0


class _Progress:
    """One work-done progress: begun once, ended once, whatever happens in between."""

    def __init__(self, server: Server, token: int | str, made_by_client: bool) -> None:
        self.token = token
        self._server = server
        self._made_by_client = made_by_client
        self._begun = self._ended = False
        self._last = 0.0
        self._waiting: asyncio.TimerHandle | None = None
        self._now: tuple[str, int | None] = ("", None)

    async def begin(self, title: str) -> None:
        if not self._made_by_client:
            create = self._server.protocol.send_request_async(
                types.WINDOW_WORK_DONE_PROGRESS_CREATE, types.WorkDoneProgressCreateParams(self.token)
            )
            await answer(create, _CREATE_S)
        if self._ended:
            return
        self._begun = True
        self._send(types.WorkDoneProgressBegin(title, cancellable=True, message=self._now[0] or None))

    def report(self, message: str, percent: int | None) -> None:
        if (message, percent) == self._now:
            return
        self._now = (message, percent)
        if not self._begun or self._ended or self._waiting is not None:
            return
        wait = self._last + _REPORT_S - time.monotonic()
        if wait <= 0:
            self._flush()
        else:
            self._waiting = self._server.loop.call_later(wait, self._flush)

    def _flush(self) -> None:
        self._waiting = None
        if self._begun and not self._ended:
            self._last = time.monotonic()
            message, percent = self._now
            self._send(types.WorkDoneProgressReport(message=message[:200], percentage=percent))

    def end(self, message: str) -> None:
        if self._ended:
            return
        self._ended = True
        if self._waiting is not None:
            self._waiting.cancel()
        if self._begun:
            self._send(types.WorkDoneProgressEnd(message=message[:200]))

    def _send(
        self, value: types.WorkDoneProgressBegin | types.WorkDoneProgressReport | types.WorkDoneProgressEnd
    ) -> None:
        self._server.protocol.notify(types.PROGRESS, types.ProgressParams(self.token, value))


class Streams:
    """The listener of all runs."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.runs = Runs(self)
        self._progress: dict[str, _Progress] = {}
        self._indexing: dict[Folder, _Progress] = {}
        self._status = ""
        server.on_end.append(self.runs.stop)
        server.on_indexing = self.indexing

    # -- progress

    def begin_progress(self, run: Run, token: int | str | None) -> None:
        """Show a run as work that is being done; the client made the token, or is asked to take ours."""
        progress = self._new(token if token is not None else f"agent-ls/run/{run.id}", token is not None)
        if progress is not None:
            self._progress[run.id] = progress
            self._server.spawn(self._begin(progress, run))
        self._tell_status()

    async def _begin(self, progress: _Progress, run: Run) -> None:
        await progress.begin(f"Agent: {run.title}"[:120])
        if run.state == "finished":
            progress.end(run.teller.line)

    def _new(self, token: int | str, made_by_client: bool) -> _Progress | None:
        window = self._server.client_capabilities.window
        if not made_by_client and not (window and window.work_done_progress):
            return None
        return _Progress(self._server, token, made_by_client)

    def cancelled(self, token: int | str) -> None:
        """The person pressed the cancel button of a progress."""
        for id, progress in self._progress.items():
            if progress.token == token:
                with contextlib.suppress(Exception):
                    self.runs.get(id).cancel.cancel()

    def indexing(self, folder: Folder, done: int, total: int) -> None:
        """An index is being built; in the event loop."""
        progress = self._indexing.get(folder)
        if progress is None:
            progress = self._new(f"agent-ls/index/{id(folder)}", False)
            if progress is None:
                return
            self._indexing[folder] = progress
            self._server.spawn(progress.begin(f"Indexing {folder.name}"))
        progress.report(f"{done:,} of {total:,} files", 100 * done // total if total else None)
        if done >= total:
            progress.end(f"{total:,} files")
            del self._indexing[folder]

    # -- Listener

    def updated(self, run: Run, seq: int, update: Update) -> None:
        self._server.soon(self._updated, run, seq, update)

    def _updated(self, run: Run, seq: int, update: Update) -> None:
        self._server.protocol.notify(
            DID_UPDATE, {"schema": SCHEMA, "runId": run.id, "seq": seq, "update": update}
        )
        progress = self._progress.get(run.id)
        if update["kind"] == "state" and update["state"] == "finished":
            if progress is not None:
                progress.end(str(update["message"]))
                del self._progress[run.id]
            self._tell_status()
        elif progress is not None:
            progress.report(run.teller.line, run.teller.percent)
        for function in self._server.on_update:
            function(run, update)

    def asked(self, run: Run, question: str) -> None:
        self._server.soon(lambda: self._server.spawn(self._ask(run, question)))

    async def _ask(self, run: Run, question: str) -> None:
        """Put a question to the person. A client of ours can take a text; another shows two buttons, and the
        answer may come by `run.answer` as well."""
        if self._server.experimental.get("answers"):
            return  # it saw the update, and answers by `run.answer`
        if self._server.experimental.get("requestPermission"):
            params = {"runId": run.id, "question": question, "options": _OPTIONS, "text": True}
            reply = await answer(
                self._server.protocol.send_request_async(REQUEST_PERMISSION, params), 24 * 3600
            )
            run.answer(_text_of(reply))
            return
        actions = [types.MessageActionItem(title=name) for name in ("Go on without an answer", "Stop")]
        shown = f"{run.title}: {question}"[:2000]
        chosen = await answer(
            self._server.window_show_message_request_async(
                types.ShowMessageRequestParams(types.MessageType.Info, shown, actions)
            ),
            24 * 3600,
        )
        if run.question != question:
            return  # answered meanwhile
        if chosen is not None and chosen.title == "Stop":
            run.cancel.cancel()
        else:
            run.answer(None)  # no answer means no

    def _tell_status(self) -> None:
        """The state of everything for a status bar (Copilot's shape)."""
        working = self.runs.working
        kind, message = ("Busy", working[0].title) if working else ("Normal", "")
        if len(working) > 1:
            message = f"{len(working)} runs"
        if f"{kind}{message}" != self._status:
            self._status = f"{kind}{message}"
            self._server.protocol.notify(DID_CHANGE_STATUS, {"kind": kind, "message": message})


_OPTIONS = [
    {"optionId": "answer", "name": "Answer", "kind": "allow_once"},
    {"optionId": "none", "name": "No answer", "kind": "reject_once"},
]


def _text_of(reply: Any) -> str | None:
    """The text in a client's answer to `requestPermission`, however it wrapped it."""
    text = reply.get("text") if isinstance(reply, dict) else getattr(reply, "text", None)
    return text if isinstance(text, str) and text.strip() else None


def register(server: Server, streams: Streams) -> None:
    @server.feature(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    def cancelled(ls: Server, params: types.WorkDoneProgressCancelParams) -> None:
        streams.cancelled(params.token)

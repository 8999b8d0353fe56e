"""The agent's side of the protocol: sessions, prompts, cancel, permission to write."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import acp
from acp import schema
from attrs import define, field

from agent_ls import __version__
from agent_ls.acp.prompts import COMMANDS, understand
from agent_ls.acp.told import translate
from agent_ls.errors import AgentLsError
from agent_ls.lsp.folders import Folder
from agent_ls.lsp.results import FileResult, blocked, file_results
from agent_ls.lsp.runs import Run, Runs
from agent_ls.lsp.tasks import make_task
from agent_ls.lsp.updates import Update

if TYPE_CHECKING:
    from agent_ls.agent.report import Report


@define(eq=False)
class _Session:
    """A conversation about one folder; `run` is the newest."""

    id: str
    folder: Folder
    run: Run | None = None
    turn: asyncio.Event = field(factory=asyncio.Event)
    """Set when the person's turn begins: the run has ended, or asks."""


class Agent:
    """One connection's agent. A prompt starts a run, or answers the question of the one that waits."""

    def __init__(self) -> None:
        self._client: Any = None
        self._can_write = self._can_read = False
        self._sessions: dict[str, _Session] = {}
        self._by_run: dict[str, _Session] = {}
        self.runs = Runs(self)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sending: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        self._tasks: set[asyncio.Task[Any]] = set()

    def on_connect(self, conn: Any) -> None:
        self._client = conn
        self._loop = asyncio.get_running_loop()
        task = self._loop.create_task(self._send_all())
        self._tasks.add(task)

    # -- what a client asks

    async def initialize(
        self, protocol_version: int, client_capabilities: Any = None, client_info: Any = None, **kwargs: Any
    ) -> schema.InitializeResponse:
        files = getattr(client_capabilities, "fs", None)
        self._can_write = bool(getattr(files, "write_text_file", False))
        self._can_read = bool(getattr(files, "read_text_file", False))
        return schema.InitializeResponse(
            protocol_version=min(protocol_version, acp.PROTOCOL_VERSION),
            agent_capabilities=schema.AgentCapabilities(load_session=False),
            agent_info=schema.Implementation(name="agent-ls", title="agent-ls", version=__version__),
        )

    async def new_session(self, cwd: str, **kwargs: Any) -> schema.NewSessionResponse:
        root = Path(cwd).resolve()
        if not root.is_dir():
            raise acp.RequestError.invalid_params({"cwd": f"{cwd} is not a directory"})
        session = _Session(f"session-{secrets.token_hex(6)}", Folder(root.as_uri(), root, root.name))
        self._sessions[session.id] = session
        commands = [
            schema.AvailableCommand(
                name=name,
                description=text,
                input=schema.AvailableCommandInput(schema.UnstructuredCommandInput(hint=hint)),
            )
            for name, text, hint in COMMANDS
        ]
        self._sending.put_nowait((session.id, acp.helpers.update_available_commands(commands)))
        return schema.NewSessionResponse(session_id=session.id)

    async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> schema.PromptResponse:
        session = self._session(session_id)
        text = "\n".join(str(block.text) for block in prompt if getattr(block, "type", "") == "text").strip()
        if not text:
            return await self._say(session, "Say what is to be fixed, or `/issue N`, `/test ID`.", "end_turn")
        run = session.run
        session.turn.clear()
        if run is not None and run.question is not None:
            run.answer(text)
        elif run is not None and run.state != "finished":
            return await self._say(session, "The run is still at work.", "end_turn")
        else:
            kind, target = understand(text)
            if kind in ("accept", "discard"):
                return await self._decide(session, kind)
            try:
                session.run = self._start(session, kind, target)
            except AgentLsError as error:
                return await self._say(session, f"{error.message}. {error.remedy or ''}", "end_turn")
        await session.turn.wait()
        await self._sent()
        assert session.run is not None
        verdict = (session.run.report or {}).get("verdict")
        return schema.PromptResponse(stop_reason="cancelled" if verdict == "cancelled" else "end_turn")

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        session = self._session(session_id)
        if session.run is not None:
            session.run.cancel.cancel()

    async def close_session(self, session_id: str, **kwargs: Any) -> schema.CloseSessionResponse:
        await self.cancel(session_id)
        self._sessions.pop(session_id, None)
        return schema.CloseSessionResponse()

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        raise acp.RequestError.method_not_found(method)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        return None

    # -- runs

    def _start(self, session: _Session, kind: str, target: Any) -> Run:
        folder = session.folder

        def work(run: Run) -> Report:
            from agent_ls.agent.api import fix

            repo = folder.repository()
            run.root = repo.root
            task = make_task(kind, target, repo, run.cancel)
            run.title = task.title
            return fix(
                repo.root, task, folder.settings({}), cancel=run.cancel, on_event=run.on_event,
                ask=run.ask, on_text=run.on_text,
            )  # fmt: skip

        run = self.runs.start(kind, str(target), folder, None, work)
        self._by_run[run.id] = session
        return run

    def updated(self, run: Run, seq: int, update: Update) -> None:
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._updated, run, update)

    def _updated(self, run: Run, update: Update) -> None:
        session = self._by_run.get(run.id)
        if session is None:
            return
        for told in translate(update, run.root):
            self._sending.put_nowait((session.id, told))
        if update["kind"] == "state" and update["state"] in ("finished", "asking"):
            session.turn.set()

    def asked(self, run: Run, question: str) -> None:
        """The next prompt is the answer."""

    # -- results

    async def _decide(self, session: _Session, kind: str) -> schema.PromptResponse:
        run = session.run
        report = run.report if run is not None else None
        gone = run is not None and run.decided == "discarded"
        if run is None or report is None or not report.get("commit") or gone:
            return await self._say(session, "There is no result.", "end_turn")
        try:
            repo = await asyncio.to_thread(session.folder.repository)
            if kind == "discard":
                await asyncio.to_thread(repo.delete_branch, report["branch"], report["commit"])
                run.decided = "discarded"
                return await self._say(session, "The branch is deleted.", "end_turn")
            texts = await self._texts(session, report)
            base, commit = str(report["base"]), str(report["commit"])
            results = await asyncio.to_thread(file_results, repo, base, commit, texts)
            return await self._write(session, repo.root, results)
        except AgentLsError as error:
            return await self._say(session, f"{error.message}. {error.remedy or ''}", "end_turn")

    async def _texts(self, session: _Session, report: dict[str, Any]) -> dict[str, str]:
        """The editor's texts of the files that a result changes, unsaved ones too, where it can be asked."""
        found: dict[str, str] = {}
        root = session.run.root if session.run is not None else None
        for path in report.get("files_changed") or () if self._can_read and root is not None else ():
            with contextlib.suppress(acp.RequestError):
                reply = await self._client.read_text_file(session_id=session.id, path=str(root / path))
                found[path] = reply.content
        return found

    async def _write(
        self, session: _Session, root: Path, results: tuple[FileResult, ...]
    ) -> schema.PromptResponse:
        stuck = blocked(results)
        if stuck:
            names = ", ".join(it.path for it in stuck)
            return await self._say(session, f"Not written: your text has moved on in {names}.", "end_turn")
        todo = [it for it in results if it.fate in ("apply", "merge") and it.merged is not None]
        if not todo:
            return await self._say(session, "Your files have this change already.", "end_turn")
        if not self._can_write:
            return await self._say(session, "This editor lets no agent write: merge the branch.", "end_turn")
        content = [acp.tool_diff_content(str(root / it.path), it.merged or "", it.current) for it in todo]
        call = acp.update_tool_call("accept", title="Write the result", kind="edit", content=content)
        options = [
            schema.PermissionOption(option_id="write", name="Write", kind="allow_once"),
            schema.PermissionOption(option_id="leave", name="Leave", kind="reject_once"),
        ]
        reply = await self._client.request_permission(session_id=session.id, tool_call=call, options=options)
        if getattr(reply.outcome, "option_id", None) != "write":
            return await self._say(session, "Nothing was written.", "end_turn")
        for result in todo:
            await self._client.write_text_file(
                session_id=session.id, path=str(root / result.path), content=result.merged or ""
            )
        return await self._say(session, f"Written: {', '.join(it.path for it in todo)}.", "end_turn")

    # -- sending: in order, one after the other

    async def _send_all(self) -> None:
        while True:
            session_id, update = await self._sending.get()
            with contextlib.suppress(Exception):  # the client has gone, or refuses one update
                await self._client.session_update(session_id=session_id, update=update)
            self._sending.task_done()

    async def _sent(self) -> None:
        await self._sending.join()

    async def _say(self, session: _Session, text: str, stop: Any) -> schema.PromptResponse:
        self._sending.put_nowait((session.id, acp.update_agent_message_text(text + "\n")))
        await self._sent()
        return schema.PromptResponse(stop_reason=stop)

    def _session(self, id: str) -> _Session:
        session = self._sessions.get(id)
        if session is None:
            raise acp.RequestError.invalid_params({"sessionId": f"there is no session {id!r}"})
        return session

"""Texts to look at that are no files: a run's patch and its story, under the scheme `agent-ls:`.

A client without `workspace/textDocumentContent` gets a file in our state folder in its place.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from agent_ls.errors import UsageError
from agent_ls.lsp.documents import uri_of
from agent_ls.lsp.features.streaming import Streams
from agent_ls.lsp.problems import EXPLANATIONS
from agent_ls.lsp.protocol import answer
from agent_ls.lsp.runs import Run
from agent_ls.lsp.server import Server

SCHEME = "agent-ls"
_ANSWER_S = 5.0
NAMES = ("patch.diff", "summary.md")


def register(server: Server, streams: Streams) -> None:
    @server.feature(types.WORKSPACE_TEXT_DOCUMENT_CONTENT)
    def content(ls: Server, params: types.TextDocumentContentParams) -> types.TextDocumentContentResult:
        parts = urlsplit(params.uri)
        id, _, name = unquote(parts.path).strip("/").partition("/")
        if id == "explain":
            return types.TextDocumentContentResult(f"# {name}\n\n{EXPLANATIONS.get(name, 'Unknown.')}\n")
        try:
            return types.TextDocumentContentResult(text(streams.runs.get(id), name))
        except UsageError as error:
            raise JsonRpcInvalidParams(f"{error.message}. {error.remedy}") from error


def text(run: Run, name: str) -> str:
    """A run's text of that name. Raises UsageError for another name."""
    report = run.report or {}
    if name == "patch.diff":
        return str(report.get("diff") or "")
    if name == "summary.md":
        return f"# {run.title}\n\n{report.get('summary') or run.teller.line}\n"
    raise UsageError(f"there is no text {name!r} of a run", f"There are {', '.join(NAMES)}.")


def described(server: Server, code: str) -> types.CodeDescription | None:
    """Where a diagnostic's code is explained, for a client that can open it."""
    return types.CodeDescription(f"{SCHEME}:/explain/{code}") if can_preview(server) else None


def can_preview(server: Server) -> bool:
    workspace = server.client_capabilities.workspace
    can = workspace.text_document_content if workspace is not None else None
    return bool(can and can.dynamic_registration)


async def announce(server: Server) -> None:
    """Tell the client of the scheme, where it can be told."""
    if can_preview(server):
        options: Any = types.TextDocumentContentRegistrationOptions([SCHEME])
        registration = types.Registration("agent-ls-previews", types.WORKSPACE_TEXT_DOCUMENT_CONTENT, options)
        await answer(
            server.client_register_capability_async(types.RegistrationParams([registration])), _ANSWER_S
        )


def previews(server: Server, run: Run) -> dict[str, str]:
    """Name -> URI of a run's texts. May write files: not for the event loop."""
    if can_preview(server):
        return {name: f"{SCHEME}:/{run.id}/{name}" for name in NAMES}
    from agent_ls.settings import state_dir

    folder = state_dir() / "previews" / run.id
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        (folder / name).write_text(text(run, name), "utf-8", "surrogatepass")
    return {name: uri_of(folder / name) for name in NAMES}

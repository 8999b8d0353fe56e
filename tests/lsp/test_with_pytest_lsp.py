"""The server as the profiles of two editors see it, with the client of pytest-lsp."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

from agent_ls.cli.sample import create_sample

COMMAND = [sys.executable, "-m", "agent_ls", "serve", "--stdio"]


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return create_sample(tmp_path / "repo")


@pytest_lsp.fixture(
    config=ClientServerConfig(server_command=COMMAND), params=["visual-studio-code", "neovim"]
)
async def client(
    request: pytest.FixtureRequest, lsp_client: LanguageClient, sample: Path
) -> AsyncIterator[None]:
    parameters = types.InitializeParams(
        capabilities=client_capabilities(request.param),
        workspace_folders=[types.WorkspaceFolder(uri=sample.as_uri(), name="repo")],
    )
    await lsp_client.initialize_session(parameters)
    yield
    await lsp_client.shutdown_session()


@pytest.mark.slow
@pytest.mark.asyncio
async def test_a_session_as_an_editor_sees_it(client: LanguageClient, sample: Path) -> None:
    updates: list[dict[str, object]] = []

    @client.feature("agent-ls/run/didUpdate")
    def update(params: object) -> None:
        updates.append({"seq": params.seq, "update": params.update})  # type: ignore[attr-defined]

    @client.feature("agent-ls/didChangeStatus")
    def status(params: object) -> None:
        pass

    uri = (sample / "meterly" / "period.py").as_uri()
    symbols = await client.text_document_document_symbol_async(
        types.DocumentSymbolParams(types.TextDocumentIdentifier(uri))
    )
    assert symbols is not None
    assert [symbol.name for symbol in symbols] == ["Period"]
    started = await client.workspace_execute_command_async(
        types.ExecuteCommandParams("agent-ls.run.start", [{"kind": "issue", "target": 1}])
    )
    for _ in range(1200):
        if updates and getattr(updates[-1]["update"], "state", "") == "finished":
            break
        await asyncio.sleep(0.1)
    assert [it["seq"] for it in updates] == list(range(len(updates)))
    end = updates[-1]["update"]
    assert end.verdict == "fixed"  # type: ignore[attr-defined]
    assert end.branch == started.branch  # type: ignore[attr-defined, union-attr]
    for token, reports in client.progress_reports.items():
        assert str(token).startswith("agent-ls/")
        assert (reports[0].kind, reports[-1].kind) == ("begin", "end")

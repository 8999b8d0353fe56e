"""The server as the profiles of two editors see it, with the client of pytest-lsp."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_lsp
from lsp_kit import make_tiny
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

COMMAND = [sys.executable, "-m", "agent_ls", "serve", "--stdio"]


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return make_tiny(tmp_path / "repo")


@pytest_lsp.fixture(
    config=ClientServerConfig(server_command=COMMAND), params=["visual-studio-code", "neovim"]
)
async def client(
    request: pytest.FixtureRequest, lsp_client: LanguageClient, sample: Path
) -> AsyncIterator[None]:
    @lsp_client.feature(types.CLIENT_REGISTER_CAPABILITY)
    def register(params: types.RegistrationParams) -> None:
        pass

    @lsp_client.feature(types.WORKSPACE_CODE_LENS_REFRESH)
    def refresh(params: None) -> None:
        pass

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
    uri = (sample / "pair.py").as_uri()
    symbols = await client.text_document_document_symbol_async(
        types.DocumentSymbolParams(types.TextDocumentIdentifier(uri))
    )
    assert symbols is not None
    assert [symbol.name for symbol in symbols] == ["larger"]
    started: Any = await client.workspace_execute_command_async(
        types.ExecuteCommandParams("agent-ls.run.start", [{"kind": "issue", "target": 1}])
    )
    run: Any = None
    for _ in range(900):
        run = await client.workspace_execute_command_async(
            types.ExecuteCommandParams("agent-ls.run.status", [{"runId": started["runId"]}])
        )
        if run["state"] == "finished":
            break
        await asyncio.sleep(0.1)
    assert run["verdict"] == "fixed"
    assert run["branch"] == started["branch"]
    await asyncio.sleep(0.2)
    assert "agent-ls/run/" + run["runId"] in client.progress_reports
    shown: Any = await client.workspace_execute_command_async(
        types.ExecuteCommandParams("agent-ls.run.accept", [{"runId": run["runId"], "how": "diff"}])
    )
    assert shown["previews"]["patch.diff"].startswith("file:")  # neither profile has virtual texts yet
    content: Any = await client.workspace_text_document_content_async(
        types.TextDocumentContentParams(f"agent-ls:/{run['runId']}/patch.diff")
    )
    assert content.text == shown["diff"]
    for token, reports in client.progress_reports.items():
        assert str(token).startswith("agent-ls/")
        assert (reports[0].kind, reports[-1].kind) == ("begin", "end")

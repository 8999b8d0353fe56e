"""From `initialize` to `exit`: folders, settings, the client's process."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from lsprotocol import types

from agent_ls.lsp.documents import path_of
from agent_ls.lsp.features.previews import announce
from agent_ls.lsp.features.syncing import overlay
from agent_ls.lsp.folders import Folder
from agent_ls.lsp.protocol import answer
from agent_ls.lsp.server import Server

logger = logging.getLogger(__name__)
SECTION = "agentLs"
"""The section of the editor's settings that is ours."""
_ANSWER_S = 5.0


def register(server: Server) -> None:
    server.feature(types.INITIALIZE)(initialize)
    server.feature(types.INITIALIZED)(initialized)
    server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)(did_change_folders)
    server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(did_change_configuration)


def initialize(server: Server, params: types.InitializeParams) -> None:
    """Take in who the client is. Nothing is read from the disk here."""
    server.watch_process(params.process_id)
    server.documents.encoding = server.workspace.position_encoding or "utf-16"  # type: ignore[assignment]
    experimental = params.capabilities.experimental
    if isinstance(experimental, Mapping) and isinstance(experimental.get("agentLs"), Mapping):
        server.experimental = dict(experimental["agentLs"])
    given = [(folder.uri, folder.name) for folder in params.workspace_folders or ()]
    if not given and params.root_uri:
        given = [(params.root_uri, "")]
    for uri, name in given:
        _add(server, uri, name)
    _take_settings(server, params.initialization_options)


async def initialized(server: Server, params: types.InitializedParams) -> None:
    await _ask_settings(server)
    for folder in list(server.folders):
        await begin(server, folder)
    workspace = server.client_capabilities.workspace
    await announce(server)
    changing = workspace and workspace.did_change_configuration
    if changing and changing.dynamic_registration:
        await answer(
            server.client_register_capability_async(
                types.RegistrationParams(
                    [types.Registration("agent-ls-settings", types.WORKSPACE_DID_CHANGE_CONFIGURATION)]
                )
            ),
            _ANSWER_S,
        )


async def begin(server: Server, folder: Folder) -> None:
    """Start a folder's index, with the documents that are open in it."""
    await server.work(server.folders.start_index, folder)
    folder.begun.set()
    for document in list(server.documents):
        if document.path is not None and server.folders.holding(document.path) is folder:
            overlay(server, document)


def _add(server: Server, uri: str, name: str) -> Folder | None:
    path = path_of(uri)
    if path is None or not path.is_dir():
        logger.warning("the folder %s is left out: it is no directory here", uri)
        return None
    return server.folders.add(uri, path, name or path.name)


async def did_change_folders(server: Server, params: types.DidChangeWorkspaceFoldersParams) -> None:
    for gone in params.event.removed:
        server.folders.remove(gone.uri)
    added = [_add(server, folder.uri, folder.name) for folder in params.event.added]
    await _ask_settings(server)
    for folder in added:
        if folder is not None:
            await begin(server, folder)


async def did_change_configuration(server: Server, params: types.DidChangeConfigurationParams) -> None:
    _take_settings(server, params.settings)
    await _ask_settings(server)


def _take_settings(server: Server, given: Any) -> None:
    """Settings that came unasked, for all folders; nested under our section or not."""
    if isinstance(given, Mapping):
        own = given.get(SECTION, given)
        if isinstance(own, Mapping):
            for folder in server.folders:
                folder.editor_settings = plain(own)


async def _ask_settings(server: Server) -> None:
    """Ask for each folder's settings, where the client can be asked."""
    workspace = server.client_capabilities.workspace
    folders = list(server.folders)
    if workspace is None or not workspace.configuration or not folders:
        return
    items = [types.ConfigurationItem(scope_uri=folder.uri, section=SECTION) for folder in folders]
    found = await answer(server.workspace_configuration_async(types.ConfigurationParams(items)), _ANSWER_S)
    for folder, own in zip(folders, found or (), strict=False):
        if isinstance(own, Mapping):
            folder.editor_settings = plain(own)


def plain(given: Mapping[str, Any]) -> dict[str, Any]:
    """An editor's settings under the names of ours: `testCommand` is `test_command`; what is unset (null,
    empty) is left to the other layers, what only the client needs is left out."""
    found: dict[str, Any] = {}
    for key, value in given.items():
        if value in (None, "", []) or key in _CLIENTS_OWN:
            continue
        name = "".join(f"_{char.lower()}" if char.isupper() else char for char in str(key))
        found[name] = value
    return found


_CLIENTS_OWN = frozenset({"server", "trace", "client", "codeLens", "path"})

"""Open documents: their texts come from the editor, and the index sees them as they are on the screen."""

from __future__ import annotations

import logging

from lsprotocol import types

from agent_ls.lsp.documents import Document, OutOfStep
from agent_ls.lsp.server import Server

logger = logging.getLogger(__name__)


def register(server: Server) -> None:
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(did_open)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(did_change)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(did_close)
    server.feature(types.TEXT_DOCUMENT_DID_SAVE, types.SaveOptions(include_text=False))(did_save)


def did_open(server: Server, params: types.DidOpenTextDocumentParams) -> None:
    document = server.documents.open(params.text_document)
    overlay(server, document)
    server.tell_changed(document)


def did_change(server: Server, params: types.DidChangeTextDocumentParams) -> None:
    try:
        document = server.documents.change(params)
    except OutOfStep as problem:
        logger.warning("a change was left out: %s", problem)
        return
    overlay(server, document)
    server.tell_changed(document)


def did_close(server: Server, params: types.DidCloseTextDocumentParams) -> None:
    document = server.documents.close(params.text_document.uri)
    if document is None or document.path is None:
        return
    folder = server.folders.holding(document.path)
    if folder is not None and folder.index is not None:
        folder.index.close_buffer(str(folder.relative(document.path)))


def did_save(server: Server, params: types.DidSaveTextDocumentParams) -> None:
    document = server.documents.get(params.text_document.uri)
    if document is not None:
        server.tell_changed(document)


def overlay(server: Server, document: Document) -> None:
    """Let the index of the document's folder have its text."""
    if document.path is None:
        return
    folder = server.folders.holding(document.path)
    if folder is None or folder.index is None:
        return
    path = str(folder.relative(document.path))
    try:
        folder.index.replace_buffer(path, document.data(), document.version)
    except KeyError:
        folder.index.open_buffer(path, document.data(), document.version)

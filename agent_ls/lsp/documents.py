"""The editor's open documents, by the files that they are.

A file is known by its real path: an editor may name one file in several ways (`c%3A`, a symlinked folder),
and reading the disk in place of the buffer would be an answer about a text that nobody sees.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from attrs import frozen
from lsprotocol import types

from agent_ls.lsp.positions import Encoding, Lines


@frozen
class Document:
    """An open document as the editor shows it. `path` is None for one that is no file (a new one, a diff)."""

    uri: str
    path: Path | None
    version: int
    language: str
    lines: Lines

    @property
    def text(self) -> str:
        return self.lines.text

    def data(self) -> bytes:
        """The text as bytes: UTF-8, what can't be written so is replaced."""
        return self.text.encode("utf-8", "replace")


class OutOfStep(Exception):
    """A change of a document that is not open, or older than what is known."""


class Documents:
    """All open documents. Used in the event loop only."""

    def __init__(self) -> None:
        self.encoding: Encoding = "utf-16"
        self._by_uri: dict[str, Document] = {}

    def __iter__(self) -> Iterator[Document]:
        return iter(list(self._by_uri.values()))

    def open(self, item: types.TextDocumentItem) -> Document:
        """Take in a document; one that is open already is replaced."""
        document = Document(
            item.uri, path_of(item.uri), item.version, str(item.language_id), Lines(item.text)
        )
        self._by_uri[_key(item.uri)] = document
        return document

    def change(self, params: types.DidChangeTextDocumentParams) -> Document:
        """Apply changes one after the other. Raises OutOfStep."""
        identifier = params.text_document
        known = self._by_uri.get(_key(identifier.uri))
        if known is None:
            raise OutOfStep(f"{identifier.uri} is not open")
        lines = known.lines
        for change in params.content_changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                start, end = lines.span(change.range, self.encoding)
                lines = Lines(lines.text[:start] + change.text + lines.text[end:])
            else:
                lines = Lines(change.text)
        document = Document(known.uri, known.path, identifier.version, known.language, lines)
        self._by_uri[_key(identifier.uri)] = document
        return document

    def close(self, uri: str) -> Document | None:
        return self._by_uri.pop(_key(uri), None)

    def get(self, uri: str) -> Document | None:
        """The open document of that name, or of the same file under another name."""
        found = self._by_uri.get(_key(uri))
        if found is not None:
            return found
        path = path_of(uri)
        return self.at(path) if path is not None else None

    def at(self, path: Path) -> Document | None:
        """The open document of a file (its real path)."""
        return next((document for document in self._by_uri.values() if document.path == path), None)


def _key(uri: str) -> str:
    return unquote(uri)


def path_of(uri: str) -> Path | None:
    """The real path of a `file:` URI; None for other schemes."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return None
    name = unquote(parts.path, errors="surrogateescape")
    if os.name == "nt" and len(name) > 2 and name[0] == "/" and name[2] == ":":
        name = name[1].upper() + name[2:]
    return Path(os.path.realpath(name))


def uri_of(path: Path) -> str:
    """The `file:` URI of a path, with what is no UTF-8 escaped byte by byte."""
    from urllib.parse import quote_from_bytes

    name = os.fsencode(path)
    if os.name == "nt":
        return "file:///" + quote_from_bytes(name.replace(b"\\", b"/"))
    return "file://" + quote_from_bytes(name)

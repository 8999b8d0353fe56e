"""Symbols of a document and of the workspace, from the index."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from agent_ls.lsp.documents import path_of, uri_of
from agent_ls.lsp.folders import Folder
from agent_ls.lsp.positions import Encoding, Lines, units
from agent_ls.lsp.server import Server

if TYPE_CHECKING:
    from agent_ls.workspace.index.records import Definition
    from agent_ls.workspace.index.view import View

_MOST = 200
_KINDS = {
    "class": types.SymbolKind.Class,
    "struct": types.SymbolKind.Struct,
    "interface": types.SymbolKind.Interface,
    "trait": types.SymbolKind.Interface,
    "enum": types.SymbolKind.Enum,
    "function": types.SymbolKind.Function,
    "method": types.SymbolKind.Method,
    "constructor": types.SymbolKind.Constructor,
    "constant": types.SymbolKind.Constant,
    "variable": types.SymbolKind.Variable,
    "property": types.SymbolKind.Property,
    "field": types.SymbolKind.Field,
    "module": types.SymbolKind.Module,
    "namespace": types.SymbolKind.Namespace,
    "package": types.SymbolKind.Package,
    "type": types.SymbolKind.Class,
    "macro": types.SymbolKind.Function,
}


def register(server: Server) -> None:
    server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)(document_symbols)
    server.feature(types.WORKSPACE_SYMBOL)(workspace_symbols)


async def document_symbols(
    server: Server, params: types.DocumentSymbolParams
) -> list[types.DocumentSymbol] | None:
    path = path_of(params.text_document.uri)
    folder = server.folders.holding(path) if path is not None else None
    if path is None or folder is None:
        return None
    await folder.begun.wait()
    if folder.index is None:
        return None
    document = server.documents.get(params.text_document.uri)
    lines = document.lines if document is not None else await server.work(_read, path)
    name = str(folder.relative(path))
    index = folder.index
    outline = await server.work(lambda: index.ask(lambda view: list(view.outline(name))))
    return tree(outline, lines, server.documents.encoding)


def tree(outline: list[Definition], lines: Lines, encoding: Encoding) -> list[types.DocumentSymbol]:
    """Definitions, in order of their lines, nested by their containers."""
    top: list[types.DocumentSymbol] = []
    below: dict[str, list[types.DocumentSymbol]] = {}
    for definition in sorted(outline, key=lambda it: (it.line, -it.end_line)):
        symbol = types.DocumentSymbol(
            name=definition.name or "?",
            kind=_KINDS.get(definition.kind, types.SymbolKind.Variable),
            range=types.Range(
                types.Position(definition.line - 1, 0),
                types.Position(definition.end_line - 1, units(lines.line(definition.end_line - 1), encoding)),
            ),
            selection_range=_name_range(definition, lines, encoding),
            detail=definition.signature[:200] or None,
            children=(children := list[types.DocumentSymbol]()),
        )
        below.get(definition.container or "", top).append(symbol)
        below[definition.qualified] = children
    return top


def _name_range(definition: Definition, lines: Lines, encoding: Encoding) -> types.Range:
    row = definition.name_line - 1
    text = lines.line(row)
    start = units(text[: definition.column - 1], encoding)
    end = start + units(text[definition.column - 1 :][: len(definition.name)], encoding)
    return types.Range(types.Position(row, start), types.Position(row, end))


async def workspace_symbols(
    server: Server, params: types.WorkspaceSymbolParams
) -> list[types.WorkspaceSymbol]:
    found: list[types.WorkspaceSymbol] = []
    query = params.query.strip()
    for folder in list(server.folders):
        await folder.begun.wait()
        if folder.index is None or not query:
            continue
        index = folder.index
        rows = await server.work(lambda index=index: index.ask(lambda view: _matching(view, query)))
        found += [_symbol(folder, path, definition, server.documents.encoding) for path, definition in rows]
    return found[:_MOST]


def _matching(view: View, query: str) -> list[tuple[str, Definition]]:
    from agent_ls.errors import ToolRefused
    from agent_ls.workspace.index.similar import find_definitions

    try:
        matches = find_definitions(view, query, limit=_MOST)
    except ToolRefused:
        return []
    return [(it.path, it.definition) for it in matches.found]


def _symbol(folder: Folder, path: str, definition: Definition, encoding: Encoding) -> types.WorkspaceSymbol:
    # the name's column counts characters: for a line with others before it the editor is a little off, and
    # reading every file for that would make this slow
    start = types.Position(definition.name_line - 1, definition.column - 1)
    end = types.Position(start.line, start.character + units(definition.name, encoding))
    return types.WorkspaceSymbol(
        location=types.Location(uri_of(folder.root / path), types.Range(start, end)),
        name=definition.name,
        kind=_KINDS.get(definition.kind, types.SymbolKind.Variable),
        container_name=definition.container,
    )


def _read(path: Path) -> Lines:
    try:
        return Lines(path.read_text("utf-8", "replace"))
    except OSError:
        return Lines("")

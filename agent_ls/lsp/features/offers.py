"""What the editor offers at a place: code actions and code lenses. Each ends in a command of ours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from agent_ls.lsp.documents import Document, path_of
from agent_ls.lsp.features.diagnostics import Diagnostics
from agent_ls.lsp.folders import Folder
from agent_ls.lsp.server import Server
from agent_ls.testing.ids import dotted, matches
from agent_ls.workspace.paths import is_test_path

if TYPE_CHECKING:
    from agent_ls.workspace.index.records import Definition

START = "agent-ls.run.start"
_MARKS = {"passed": "✓ passed", "failed": "✗ failed", "error": "✗ error", "skipped": "skipped"}


def register(server: Server, diagnostics: Diagnostics) -> None:
    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(
            [types.CodeActionKind.QuickFix, types.CodeActionKind.Refactor], resolve_provider=True
        ),
    )
    async def code_actions(ls: Server, params: types.CodeActionParams) -> list[types.CodeAction]:
        return await _actions(server, params)

    @server.feature(types.CODE_ACTION_RESOLVE)
    def resolve(ls: Server, action: types.CodeAction) -> types.CodeAction:
        return _resolved(server, action)

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS, types.CodeLensOptions(resolve_provider=False))
    async def code_lenses(ls: Server, params: types.CodeLensParams) -> list[types.CodeLens] | None:
        return await _lenses(server, diagnostics, params)


async def _actions(server: Server, params: types.CodeActionParams) -> list[types.CodeAction]:
    path = path_of(params.text_document.uri)
    folder = server.folders.holding(path) if path is not None else None
    if path is None or folder is None:
        return []
    wanted = params.context.only
    found: list[types.CodeAction] = []
    if _asked(wanted, types.CodeActionKind.QuickFix):
        found += [_fix(folder, path, params.text_document.uri, it) for it in params.context.diagnostics]
        test = await _test_at(server, folder, path, params.range.start.line + 1)
        if test is not None and not any(
            matches(test, _test_of(it) or "") for it in params.context.diagnostics
        ):
            found.append(
                types.CodeAction(
                    title=f"Make this test pass: {test.rpartition('::')[2]}",
                    kind=types.CodeActionKind.QuickFix,
                    data={"kind": "test", "target": test, "folder": folder.uri},
                )
            )
    empty = params.range.start == params.range.end
    if not empty and _asked(wanted, types.CodeActionKind.Refactor) and server.can_answer:
        found.append(
            types.CodeAction(
                title="Refactor with agent…",
                kind=types.CodeActionKind.Refactor,
                data={
                    "kind": "refactor",
                    "folder": folder.uri,
                    "target": _place(folder, path, params.text_document.uri, params.range),
                },
            )
        )
    return found


def _asked(wanted: Any, kind: types.CodeActionKind) -> bool:
    return not wanted or any(str(getattr(it, "value", it)) == kind.value or it == "" for it in wanted)


def _fix(folder: Folder, path: Path, uri: str, diagnostic: types.Diagnostic) -> types.CodeAction:
    short = " ".join(diagnostic.message.split())
    test = _test_of(diagnostic)
    target: Any = test
    if test is None:
        target = {
            **_place(folder, path, uri, diagnostic.range),
            "message": diagnostic.message,
            "source": diagnostic.source,
            "code": None if diagnostic.code is None else str(diagnostic.code),
        }
    return types.CodeAction(
        title=f"Fix with agent: {short[:80]}",
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic],
        data={"kind": "diagnostic" if test is None else "test", "target": target, "folder": folder.uri},
    )


def _test_of(diagnostic: types.Diagnostic) -> str | None:
    from agent_ls.lsp.features.commands import plain

    data = plain(diagnostic.data)
    if diagnostic.source == "agent-ls" and isinstance(data, Mapping) and data.get("test"):
        return str(data["test"])
    return None


def _place(folder: Folder, path: Path, uri: str, range: types.Range) -> dict[str, Any]:
    return {
        "uri": uri,
        "path": folder.relative(path),
        "line": range.start.line + 1,
        "endLine": range.end.line + 1,
    }


def _resolved(server: Server, action: types.CodeAction) -> types.CodeAction:
    """Add the command, with the text as it is at that moment."""
    from agent_ls.lsp.features.commands import plain

    data = plain(action.data) or {}
    target = data.get("target")
    if isinstance(target, dict) and isinstance(target.get("uri"), str):
        document = server.documents.get(target["uri"])
        if document is not None:
            target["text"] = _excerpt(document, int(target["line"]), int(target["endLine"]))
    action.command = types.Command(title=action.title, command=START, arguments=[data])
    return action


def _excerpt(document: Document, first: int, last: int) -> str:
    stop = min(last + 3, first + 200, len(document.lines))
    return "\n".join(document.lines.line(number) for number in range(max(0, first - 4), stop))


async def _test_at(server: Server, folder: Folder, path: Path, line: int) -> str | None:
    """The id of the test that a line is in."""
    inside = [
        (definition, test)
        for definition, test in await _tests(server, folder, path)
        if definition.line <= line <= definition.end_line
    ]
    return inside[-1][1] if inside else None


async def _tests(server: Server, folder: Folder, path: Path) -> list[tuple[Definition, str]]:
    """The test functions of a Python file, with the ids that pytest gives them (unittest takes them too)."""
    await folder.begun.wait()
    name = folder.relative(path)
    if folder.index is None or name is None or not path.name.endswith(".py"):
        return []
    top = folder.top or folder.root
    prefix = path.relative_to(top).as_posix()
    if not is_test_path(prefix):
        return []
    index = folder.index
    outline = await server.work(lambda: index.ask(lambda view: list(view.outline(name))))
    return [
        (it, f"{prefix}::{it.qualified.replace('.', '::')}")
        for it in outline
        if it.kind in ("function", "method") and it.name.startswith("test") and _collected(it)
    ]


def _collected(definition: Definition) -> bool:
    """Is it at the top or in a class (not inside another function)?"""
    container = definition.container or ""
    return all(part[:1].isupper() or part[:1] == "_" for part in container.split(".") if part)


async def _lenses(
    server: Server, diagnostics: Diagnostics, params: types.CodeLensParams
) -> list[types.CodeLens] | None:
    path = path_of(params.text_document.uri)
    folder = server.folders.holding(path) if path is not None else None
    if path is None or folder is None:
        return None
    lenses = []
    top = folder.top or folder.root
    for definition, test in await _tests(server, folder, path):
        row = definition.name_line - 1
        place = types.Range(types.Position(row, 0), types.Position(row, 0))
        known = (diagnostics.outcomes.get((top, name)) for name in (test, *dotted(test)))
        outcome = next(filter(None, known), "")
        mark = f"{_MARKS[outcome]} · " if outcome in _MARKS else ""
        run: list[Any] = [{"ids": [test], "folder": folder.uri}]
        fix: list[Any] = [{"kind": "test", "target": test, "folder": folder.uri}]
        lenses.append(
            types.CodeLens(
                place, types.Command(title=f"{mark}run", command="agent-ls.tests.run", arguments=run)
            )
        )
        if outcome != "passed":
            lenses.append(types.CodeLens(place, types.Command(title="fix", command=START, arguments=fix)))
    return lenses

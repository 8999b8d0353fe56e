"""What becomes of a run's result: looked at, applied to the editor's texts, merged by git, or thrown away."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from agent_ls.errors import UsageError
from agent_ls.lsp.documents import uri_of
from agent_ls.lsp.features.previews import previews
from agent_ls.lsp.features.streaming import Streams
from agent_ls.lsp.positions import Encoding, Lines
from agent_ls.lsp.protocol import answer
from agent_ls.lsp.results import FileResult, blocked, file_results
from agent_ls.lsp.runs import Run
from agent_ls.lsp.server import Server

if TYPE_CHECKING:
    from agent_ls.workspace.git import Repository

HOW = ("diff", "apply", "merge", "keep")
_ANNOTATION = "agent-ls"
_APPLY_S = 24 * 3600.0
_LOOK_S = 3.0
"""Seconds in which an editor that says it applied an edit tells of it."""


async def accept(server: Server, streams: Streams, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Take a result over: `{runId, how}`. `diff`: `{diff, files}` to look at; `apply`: as one edit of the
    editor's texts; `merge`: git merges the branch into the one that is checked out; `keep`: leave the
    branch."""
    run = streams.runs.get(str(arguments.get("runId")))
    how = arguments.get("how", "diff")
    if how not in HOW:
        raise UsageError(f"a result can't be accepted by {how!r}", f"Ways are {', '.join(HOW)}.")
    report = run.report
    if report is None or not report.get("commit"):
        raise UsageError(f"{run.id} has no result to accept", "It has not ended, or it changed nothing.")
    if how == "keep":
        return {**run.status(), "applied": False}
    repo = await server.work(run.folder.repository)
    if how == "merge":
        return await _merge(server, run, repo, report)
    results = await _results(server, repo, report)
    if how == "diff":
        files = [_plain(repo.root, it) for it in results]
        shown = await server.work(previews, server, run)
        return {**run.status(), "diff": report.get("diff") or "", "files": files, "previews": shown}
    return await _apply(server, run, repo, results)


async def reject(server: Server, streams: Streams, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Throw a result away: its branch is deleted, unless a person has committed to it or checked it out."""
    run = streams.runs.get(str(arguments.get("runId")))
    run.cancel.cancel()
    if run.thread is not None and run.thread.is_alive():
        await server.work(run.thread.join, 10)
    report = run.report or {}
    branch, commit = report.get("branch"), report.get("commit")
    if branch and commit and run.decided != "discarded":
        repo = await server.work(run.folder.repository)
        await server.work(repo.delete_branch, str(branch), str(commit))
        run.decided = "discarded"
    return run.status()


async def _results(server: Server, repo: Repository, report: Mapping[str, Any]) -> Sequence[FileResult]:
    texts = {
        document.path.relative_to(repo.root).as_posix(): document.text
        for document in server.documents
        if document.path is not None and document.path.is_relative_to(repo.root)
    }
    return await server.work(file_results, repo, str(report["base"]), str(report["commit"]), texts)


def _plain(root: Path, result: FileResult) -> dict[str, Any]:
    """A file for the client's own diff view."""
    return {
        "path": result.path,
        "uri": uri_of(root / result.path),
        "fate": result.fate,
        "before": result.old,
        "after": result.new,
        "merged": result.merged,
    }


async def _apply(server: Server, run: Run, repo: Repository, results: Sequence[FileResult]) -> dict[str, Any]:
    stuck = blocked(results)
    if stuck:
        return {
            **run.status(),
            "applied": False,
            "reason": "your text has moved on where the result changes it",
            "conflicts": [_plain(repo.root, it) for it in stuck],
        }
    todo = [it for it in results if it.fate in ("apply", "merge")]
    if not todo:
        _applied(server, run)
        return {**run.status(), "applied": True, "reason": "your files have this change already"}
    edit = workspace_edit(server, repo.root, todo, run.title)
    reply = await answer(
        server.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(edit, f"Agent: {run.title}"[:120])),
        _APPLY_S,
    )
    reason = None
    applied = bool(reply is not None and reply.applied)
    if not applied:
        reason = (reply.failure_reason if reply is not None else None) or "the editor did not apply it"
    elif missing := await _missing(server, repo.root, todo):
        applied = False
        reason = f"the editor says that it applied the edit, but {missing} is not so"
    if applied:
        _applied(server, run, exactly=all(it.fate == "apply" for it in todo))
    return {**run.status(), "applied": applied, "reason": reason}


def _applied(server: Server, run: Run, *, exactly: bool = True) -> None:
    run.decided = "applied"
    for function in server.on_applied if exactly else ():
        function(run)


async def _missing(server: Server, root: Path, results: Sequence[FileResult]) -> str | None:
    """A file whose open text did not become what it should (an editor may say "applied" after it skipped a
    stale edit). Files that are not open can't be looked at: the editor has them in buffers that it has not
    saved."""
    for _ in range(int(_LOOK_S / 0.1)):
        wrong = None
        for result in results:
            document = server.documents.at(root / result.path)
            if document is not None and _feeds(document.text) != (result.merged or ""):
                wrong = result.path
        if wrong is None:
            return None
        await asyncio.sleep(0.1)
    return wrong


def _feeds(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def workspace_edit(
    server: Server, root: Path, results: Sequence[FileResult], title: str
) -> types.WorkspaceEdit:
    """One edit for all files, with versions where they are open, to be confirmed where the editor can ask."""
    workspace = server.client_capabilities.workspace
    can = workspace.workspace_edit if workspace is not None else None
    annotated = bool(can and can.change_annotation_support)
    encoding = server.documents.encoding
    changes: list[Any] = []
    plain: dict[str, list[types.TextEdit]] = {}
    for result in results:
        path = root / result.path
        document = server.documents.at(path)
        uri = document.uri if document is not None else uri_of(path)
        if result.merged is None:
            changes.append(types.DeleteFile(uri=uri, annotation_id=_ANNOTATION if annotated else None))
            continue
        if result.current is None:
            changes.append(types.CreateFile(uri=uri, annotation_id=_ANNOTATION if annotated else None))
        now = document.text if document is not None else _raw(path, result.current)
        edits = text_edits(now, result.merged, encoding)
        plain[uri] = edits
        chosen: list[Any] = edits
        if annotated:
            chosen = [types.AnnotatedTextEdit(_ANNOTATION, it.range, it.new_text) for it in edits]
        changes.append(
            types.TextDocumentEdit(
                types.OptionalVersionedTextDocumentIdentifier(
                    uri, document.version if document is not None else None
                ),
                chosen,
            )
        )
    if not (can and can.document_changes):
        return types.WorkspaceEdit(changes=plain)
    annotations = {_ANNOTATION: types.ChangeAnnotation(f"Agent: {title}"[:120], needs_confirmation=True)}
    return types.WorkspaceEdit(
        document_changes=changes, change_annotations=annotations if annotated else None
    )


def _raw(path: Path, current: str | None) -> str:
    """The text of a file that is not open, as an editor would show it, with its own line ends."""
    from agent_ls.workspace.text import TextFile

    if current is None:
        return ""
    file = TextFile.read(path)
    return "".join(line + eol for line, eol in zip(file.lines, file.eols, strict=True))


def text_edits(now: str, wanted: str, encoding: Encoding) -> list[types.TextEdit]:
    """The smallest edits by whole lines from `now` to `wanted` (which has line feeds only); line ends stay
    those of `now`."""
    lines = Lines(now)
    eol = "\r\n" if "\r\n" in now else "\n"
    old = _split(_feeds(now))
    new = _split(wanted)
    edits = []
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, first, last, start, stop in matcher.get_opcodes():
        if tag == "equal":
            continue
        begin, end = _line_start(lines, first), _line_start(lines, last)
        text = "".join(new[start:stop]).replace("\n", eol)
        edits.append(
            types.TextEdit(types.Range(lines.position(begin, encoding), lines.position(end, encoding)), text)
        )
    return edits


def _split(text: str) -> list[str]:
    """Lines with their line feeds; the last without one if it has none."""
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _line_start(lines: Lines, number: int) -> int:
    from lsprotocol.types import Position

    return lines.offset(Position(number, 0), "utf-32")


async def _merge(server: Server, run: Run, repo: Repository, report: Mapping[str, Any]) -> dict[str, Any]:
    """What a person would do: `git merge`. Never here: the user's tree is not ours to write. The command is
    answered for the client's terminal."""
    import shlex

    root, branch = shlex.quote(str(repo.root)), shlex.quote(str(report["branch"]))
    return {**run.status(), "applied": False, "command": f"git -C {root} merge {branch}"}

"""What `agent-ls refs` answers, as rows for people and programs alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from attrs import field, frozen

from agent_ls.cancel import CancelToken
from agent_ls.workspace.index.executed import executed
from agent_ls.workspace.index.importers import importers
from agent_ls.workspace.index.records import Definition, Use
from agent_ls.workspace.index.references import callees, callers, references
from agent_ls.workspace.index.related_tests import related_tests
from agent_ls.workspace.index.view import View

Row = dict[str, Any]


@frozen
class Answer:
    """Rows of the JSON document (with "note", a remark for people), more of its fields, and what to say."""

    rows: list[Row]
    complete: bool = True
    said: list[str] = field(factory=list)
    more: dict[str, Any] = field(factory=dict)


def answer(
    view: View,
    root: Path,
    mode: str | None,
    name: str,
    kinds: Sequence[str],
    globs: Sequence[str],
    limit: int,
    cancel: CancelToken | None,
) -> Answer:
    """Uses of a name in the tree at `root`, or with `mode` its "callers", "callees", "importers" or "tests".
    Raises ToolRefused."""
    if mode == "callees":
        return _callees(view, name, globs, limit)
    if mode == "importers":
        return _importers(view, name, limit)
    if mode == "tests":
        return _tests(view, root, name, limit)
    if mode == "callers":
        found, uses = callers(view, name, globs=globs, limit=limit, cancel=cancel)
        rows = [
            {**_row(it.path, it.definition, it.calls[0].reference.line), **_calls(it.calls)} for it in found
        ]
    else:
        uses = references(view, name, kinds=kinds, globs=globs, limit=limit, cancel=cancel)
        rows = [_use(it) for it in uses.found]
    said = [uses.note] if uses.note else []
    if not rows:
        said.append(f"nothing {'calls' if mode else 'uses'} {name!r}")
    return Answer(rows, uses.complete, said)


def _use(use: Use) -> Row:
    reference = use.reference
    return {
        "name": reference.name,
        "kind": reference.kind,
        "path": use.path,
        "line": reference.line,
        "end_line": reference.line,
        "container": use.inside,
        "signature": use.text.strip(),
        "column": reference.column,
        "note": f"[{use.inside}]" if use.inside else "",
    }


def _row(path: str, definition: Definition | None, line: int) -> Row:
    """A definition, or the top of a file."""
    if definition is None:
        fields = {
            "name": path.rsplit("/", 1)[-1],
            "kind": "file",
            "path": path,
            "line": line,
            "end_line": line,
        }
        return {**fields, "container": None, "signature": ""}
    return {
        "name": definition.name,
        "kind": definition.kind,
        "path": path,
        "line": definition.line,
        "end_line": definition.end_line,
        "container": definition.container,
        "signature": definition.signature,
    }


def _calls(calls: Iterable[Use]) -> Row:
    lines = sorted({use.reference.line for use in calls})
    return {"calls": lines, "note": f"calls in line {', '.join(map(str, lines))}"}


def _callees(view: View, name: str, globs: Sequence[str], limit: int) -> Answer:
    rows: list[Row] = []
    unresolved: list[Row] = []
    said: list[str] = []
    every = callees(view, name, globs=globs)
    for caller, called in every:
        where = f"{caller.definition.qualified} ({caller.path}:{caller.definition.line})"
        unknown = [it for it in called if not it.definitions]
        for it in called:
            for found in it.definitions:
                row = _row(found.path, found.definition, found.definition.line)
                note = f"called by {where}" if len(every) > 1 else _calls(it.calls)["note"]
                rows.append({**row, **_calls(it.calls), "note": note})
        if unknown:
            names = ", ".join(dict.fromkeys(it.name for it in unknown))
            said.append(f"{where} also calls, defined elsewhere or in too many places: {names}")
            unresolved += [{"name": it.name, "calls": _calls(it.calls)["calls"]} for it in unknown]
    if not every:
        said.append(f"nothing that could call is named {name!r}")
    return Answer(rows[:limit], len(rows) <= limit, said, {"unresolved": unresolved})


def _importers(view: View, target: str, limit: int) -> Answer:
    rows = []
    found = importers(view, target)
    for it in found[:limit]:
        statement = it.statement
        names = f" ({', '.join(statement.names)})" if statement.names else ""
        rows.append(
            {
                "name": statement.module,
                "kind": "import",
                "path": it.path,
                "line": statement.line,
                "end_line": statement.line,
                "container": None,
                "signature": statement.module + names,
            }
        )
    said = [] if found else [f"nothing imports {target}"]
    return Answer(rows, len(found) <= limit, said)


def _tests(view: View, root: Path, name: str, limit: int) -> Answer:
    found = related_tests(view, name, executed=executed(view, root, name), limit=limit + 1)
    rows = []
    for it in found[:limit]:
        row = _row(it.path, it.definition, it.line)
        more = {"id": it.id, "distance": it.distance, "reason": it.reason, "note": it.reason}
        rows.append({**row, "signature": row["signature"] or it.id, **more})
    said = [] if found else [f"no test is known that uses {name!r}"]
    return Answer(rows, len(found) <= limit, said)

"""refs: the definition of a name, its uses, callers, callees and tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from attrs import frozen

from agent_ls.errors import ToolRefused
from agent_ls.toolbox.base import ToolContext, ToolOutput
from agent_ls.workspace.index.executed import executed
from agent_ls.workspace.index.opened import snapshot
from agent_ls.workspace.index.references import Uses, callees, callers, references
from agent_ls.workspace.index.related_tests import related_tests
from agent_ls.workspace.index.similar import find_definitions
from agent_ls.workspace.index.view import View

_FEW = 12
_MANY = 100
_DEFINITIONS = 5
_TEXT = 160
_COUNTED = 1000

What = Literal["uses", "callers", "callees", "tests"]


@frozen
class Arguments:
    name: str
    what: What | None = None
    globs: tuple[str, ...] = ()


def run(ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
    """The definition first, then what was asked for, or the first of each. Raises ToolRefused for an empty
    name, a bad glob, or when there is no index to ask."""
    asked = Arguments(**arguments)
    known = snapshot(ctx.workspace)
    view = known.view
    if view is None:
        raise ToolRefused(f"refs has no answer now: {known.note}; search finds the name")
    lines, exact = _definitions(view, asked.name)
    if exact or asked.what is not None:
        if asked.what == "callers":
            lines += _callers(ctx, view, asked)
        elif asked.what in (None, "uses"):
            lines += _uses(ctx, view, asked)
        if asked.what in (None, "callees"):
            lines += _callees(view, asked)
        if asked.what in (None, "tests"):
            lines += _tests(ctx, view, asked)
    if known.note:
        lines.append(f"[{known.note}]")
    return ToolOutput("\n".join(lines))


def _definitions(view: View, name: str) -> tuple[list[str], bool]:
    """Lines on where it is defined, and whether it is (rather than something of a similar name)."""
    matches = find_definitions(view, name, limit=_COUNTED)
    exact = matches.how in ("exact", "case")
    if exact:
        lines = ["defined:"]
    elif matches.found:
        lines = [f"nothing called {name!r} is defined; similar names are:"]
    else:
        return [f"nothing called {name!r} is defined here"], False
    for found in matches.found[:_DEFINITIONS]:
        it = found.definition
        lines.append(f"  {found.path}:{it.line}-{it.end_line}: {it.kind} {it.qualified}: {it.signature}")
    return lines + _rest(len(matches.found), _DEFINITIONS), exact


def _uses(ctx: ToolContext, view: View, asked: Arguments) -> list[str]:
    uses = references(view, asked.name, globs=asked.globs, limit=_COUNTED, cancel=ctx.workspace.cancel)
    if not uses.found:
        return ["used: nowhere", *_incomplete(uses)]
    kinds = Counter(use.reference.kind for use in uses.found)
    said = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    lines = [f"used in {len({use.path for use in uses.found})} files ({said}):"]
    most = _most(asked)
    path = ""
    for use in uses.found[:most]:
        if use.path != path:
            path = use.path
            lines.append(f"  {path}")
        inside = f"  [{use.inside}]" if use.inside else ""
        lines.append(f"    {use.reference.line}: {use.text.strip()[:_TEXT]}{inside}")
    return [*lines, *_rest(len(uses.found), most), *_incomplete(uses)]


def _callers(ctx: ToolContext, view: View, asked: Arguments) -> list[str]:
    found, uses = callers(view, asked.name, globs=asked.globs, limit=_COUNTED, cancel=ctx.workspace.cancel)
    lines = ["called by:" if found else "called by: nothing"]
    for it in found[:_MANY]:
        definition = it.definition
        who = f"{definition.kind} {definition.qualified}" if definition is not None else "the file's top"
        at = ", ".join(str(line) for line in sorted({use.reference.line for use in it.calls}))
        lines.append(f"  {it.path}: {who}, in line {at}")
    return [*lines, *_rest(len(found), _MANY), *_incomplete(uses)]


def _callees(view: View, asked: Arguments) -> list[str]:
    lines: list[str] = []
    most = _most(asked)
    for caller, called in callees(view, asked.name)[:_DEFINITIONS]:
        ours = [it for it in called if it.definitions]
        others = list(dict.fromkeys(it.name for it in called if not it.definitions))
        if not called:
            continue
        lines.append(f"{caller.definition.qualified} ({caller.path}:{caller.definition.line}) calls:")
        for it in ours[:most]:
            places = ", ".join(f"{found.path}:{found.definition.line}" for found in it.definitions)
            lines.append(f"  {it.name} ({places})")
        lines += _rest(len(ours), most)
        if others:
            lines.append(f"  from elsewhere: {', '.join(others[:most])}{' …' if len(others) > most else ''}")
    if asked.what == "callees" and not lines:
        lines.append("calls: nothing")
    return lines


def _tests(ctx: ToolContext, view: View, asked: Arguments) -> list[str]:
    ran = executed(view, ctx.workspace.root, asked.name)
    found = related_tests(view, asked.name, executed=ran, limit=_COUNTED)
    most = _most(asked)
    lines = ["tests:" if found else "tests: none that is known to touch it"]
    lines += [f"  {it.id}  ({it.reason})" for it in found[:most]]
    return lines + _rest(len(found), most)


def _most(asked: Arguments) -> int:
    return _FEW if asked.what is None else _MANY


def _rest(count: int, shown: int) -> list[str]:
    return [f"  … and {count - shown} more"] if count > shown else []


def _incomplete(uses: Uses) -> Sequence[str]:
    return [f"[not complete: {uses.note}]"] if not uses.complete else []

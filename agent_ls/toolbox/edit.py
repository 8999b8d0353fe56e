"""edit: change, create, delete and move files, all edits of a call or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from agent_ls.errors import ToolRefused
from agent_ls.toolbox.base import ToolContext, ToolOutput
from agent_ls.workspace.diffs import parse_diff
from agent_ls.workspace.edits import Create, Delete, Edit, Move, Replace
from agent_ls.workspace.paths import normalise


@frozen
class Item:
    path: str
    old: str | None = None
    new: str | None = None
    create: str | None = None
    delete: bool | None = None
    move_to: str | None = None


@frozen
class Arguments:
    edits: tuple[Item, ...] | None = None
    diff: str | None = None


def run(ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
    """The diff of what changed. Raises ToolRefused when any of the edits can't be carried out."""
    items = arguments.get("edits")
    asked = Arguments(None if items is None else tuple(Item(**item) for item in items), arguments.get("diff"))
    if (asked.edits is None) == (asked.diff is None):
        raise ToolRefused("give either edits or a diff")
    if asked.diff is not None:
        edits = parse_diff(asked.diff, ctx.workspace.exists)
    else:
        edits = [_edit(item, number) for number, item in enumerate(asked.edits or (), 1)]
    _check(ctx, edits)
    try:
        result = ctx.workspace.apply(edits)
    except ToolRefused as error:
        unread = {path for edit in edits if (path := edit.path) and _unread(ctx, path)}
        if unread and error.remedy is None:
            error.remedy = f"You have not read {', '.join(sorted(unread))} in this session."
        raise
    for path in result.files:
        ctx.mark_seen(path)
    ctx.after_edit(result)
    return ToolOutput(f"done; the change:\n{result.diff}")


def _edit(item: Item, number: int) -> Edit:
    replaces = item.old is not None or item.new is not None
    kinds = [
        replaces and "old and new",
        item.create is not None and "create",
        item.delete and "delete",
        item.move_to is not None and "move_to",
    ]
    given = [kind for kind in kinds if kind]
    if len(given) != 1:
        what = f"has {' and '.join(given)} at once" if given else "says nothing to do"
        raise ToolRefused(
            f"edit {number} ({item.path[:80]}) {what}",
            "An edit has either old and new, or create, or delete, or move_to.",
        )
    if item.create is not None:
        return Create(item.path, item.create)
    if item.delete:
        return Delete(item.path)
    if item.move_to is not None:
        return Move(item.path, item.move_to)
    if item.old is None or item.new is None:
        raise ToolRefused(f"edit {number} ({item.path[:80]}) needs both old and new")
    return Replace(item.path, item.old, item.new)


def _check(ctx: ToolContext, edits: Sequence[Edit]) -> None:
    """Refuse protected paths, and the removal of files that the model has never looked at."""
    made = {normalise(edit.path) for edit in edits if isinstance(edit, Create)}
    for edit in edits:
        for rel in (edit.path, edit.to) if isinstance(edit, Move) else (edit.path,):
            path = normalise(rel)
            ctx.workspace.resolve(path, for_write=True)
            reason = ctx.protected(path)
            if reason is not None:
                ctx.denied("edit", f"{path}: {reason}")
                raise ToolRefused(f"{path} may not be changed in this session: {reason}")
        if isinstance(edit, Delete):
            path = normalise(edit.path)
            if path not in made and ctx.workspace.exists(path) and not ctx.seen(path):
                raise ToolRefused(f"{path} would be deleted unread", "Read it first.")


def _unread(ctx: ToolContext, rel: str) -> bool:
    path = normalise(rel)
    return ctx.workspace.exists(path) and not ctx.seen(path)

"""`agent-ls search`, `symbols`, `refs`, `locate`: reading the repository."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from agent_ls.cli.options import Context, common_reading, common_testing
from agent_ls.errors import ToolRefused, UsageError

if TYPE_CHECKING:
    from agent_ls.workspace.files import Workspace
    from agent_ls.workspace.index.records import Definition
    from agent_ls.workspace.index.view import View
    from agent_ls.workspace.search import SearchResult
    from agent_ls.workspace.syntax import Symbol

_Function = TypeVar("_Function", bound=Callable[..., Any])
Row = dict[str, Any]

_PLACE, _MATCH, _DIM, _PLAIN = "\x1b[36m", "\x1b[1;31m", "\x1b[2m", "\x1b[0m"


def _limit(what: str, default: int) -> Callable[[_Function], _Function]:
    kind = click.IntRange(1)
    return click.option(
        "--limit", type=kind, default=default, show_default=True, metavar="N", help=f"At most N {what}."
    )


_glob = click.option(
    "--glob", "-g", "globs", multiple=True, metavar="PATTERN", help="Only files whose path matches."
)
_no_index = click.option("--no-index", is_flag=True, help="Read every file instead of asking the index.")


@contextmanager
def _asking(context: Context, no_index: bool = False) -> Iterator[tuple[Workspace, View | None]]:
    """The repository's files and, unless it can't or shall not be used, an up-to-date view of their index. A
    refusal becomes an error of usage."""
    from agent_ls.cli.output import only_json_on_stdout
    from agent_ls.cli.signals import cancel_on_signals
    from agent_ls.workspace.files import Workspace
    from agent_ls.workspace.index.opened import snapshot

    root = context.tree()
    with only_json_on_stdout(context.as_json), cancel_on_signals() as cancel:
        workspace = Workspace(root, cancel)
        view = None
        if not no_index:
            known = snapshot(workspace)
            view = known.view
            if known.note or known.remark:
                sys.stderr.write(f"{known.note or known.remark}\n")
        try:
            yield workspace, view
        except ToolRefused as error:
            raise UsageError(error.message, error.remedy) from error


@click.command(
    epilog="Exit codes are those of ripgrep: 0 with hits, 1 without, 2 for a bad query. Definitions come"
    " first, then other code, then comments and prose."
)
@click.argument("query")
@click.option("--regex", is_flag=True, help="QUERY is a regular expression.")
@click.option("--word", "-w", is_flag=True, help="Whole words only.")
@click.option("--ignore-case", "-i", is_flag=True, help="Take capitals and small letters as equal.")
@click.option("--smart-case", "-S", is_flag=True, help="Ignore case unless QUERY has a capital letter.")
@_glob
@_limit("hits", 200)
@_no_index
@common_reading
def search(
    query: str,
    regex: bool,
    word: bool,
    ignore_case: bool,
    smart_case: bool,
    globs: tuple[str, ...],
    limit: int,
    no_index: bool,
    **given: Any,
) -> int:
    """Search QUERY in the repository's files; ignored files are left out."""
    context = Context.of(given)
    if not query:
        raise UsageError("the query is empty", "Give a text to look for.")
    from agent_ls.workspace.search import search as search_files

    with _asking(context, no_index) as (workspace, view):
        found = search_files(
            workspace,
            query,
            regex=regex,
            word=word,
            case="insensitive" if ignore_case else "smart" if smart_case else "sensitive",
            globs=globs,
            limit=limit,
            view=view,
        )
        if context.as_json:
            from agent_ls.cli.output import emit_json

            fields = ("path", "line", "column", "text", "symbol")
            hits = [{name: getattr(hit, name) for name in fields} for hit in found.hits]
            emit_json({"schema": 1, "hits": hits, "complete": found.complete})
        else:
            _show_hits(found)
    return 0 if found.hits else 1


def _show_hits(found: SearchResult) -> None:
    from agent_ls.cli.output import is_terminal, named, visible

    place, match, plain = (_PLACE, _MATCH, _PLAIN) if is_terminal(sys.stdout) else ("", "", "")
    for hit in found.hits:
        start, end = hit.column - 1, hit.end_column - 1
        before, inside, after = hit.text[:start], hit.text[start:end], hit.text[end:]
        shown = f"{visible(before)}{match if inside else ''}{visible(inside)}{plain if inside else ''}"
        sys.stdout.write(
            f"{place}{named(hit.path)}:{hit.line}:{hit.column}:{plain} {shown}{visible(after)}\n"
        )
    if not found.complete:
        sys.stderr.write(f"{found.note}\n")


@click.command()
@click.argument("name")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only these: class, function, method, …")
@_glob
@_limit("definitions", 200)
@common_reading
def symbols(name: str, kinds: tuple[str, ...], globs: tuple[str, ...], limit: int, **given: Any) -> int:
    """Find where NAME is defined (functions, classes, methods, constants).

    NAME may have its containers in front, as in Shape.area. When nothing has exactly that name, names that
    differ in case are shown, then those that contain or abbreviate it.
    """
    context = Context.of(given)
    from agent_ls.cli.output import emit_json, visible
    from agent_ls.workspace.index.similar import find_definitions

    with _asking(context) as (workspace, view):
        if view is not None:
            matches = find_definitions(view, name, kinds=kinds, globs=globs, limit=limit)
            rows = [_row(it.path, it.definition) for it in matches.found]
            how, complete = str(matches.how), matches.complete
        else:
            from agent_ls.workspace.symbols import find_symbols

            every = find_symbols(workspace, name, globs)
            rows = [_row(it.path, it) for it in every if not kinds or it.kind in kinds]
            how, complete = "exact" if rows else "none", len(rows) <= limit
            rows = rows[:limit]
        if context.as_json:
            emit_json({"schema": 1, "symbols": rows, "match": how, "complete": complete})
            return 0
    if how == "none":
        sys.stderr.write(f"nothing named {visible(name)!r} is defined here\n")
    elif how == "similar":
        sys.stderr.write(f"nothing named {visible(name)!r} is defined here; similar names:\n")
    _show_rows(rows)
    if not complete:
        sys.stderr.write(f"only the first {limit} definitions are shown\n")
    return 0


def _row(path: str, it: Definition | Symbol) -> Row:
    return {
        "name": it.name,
        "kind": it.kind,
        "path": path,
        "line": it.line,
        "end_line": it.end_line,
        "container": it.container,
        "signature": it.signature,
    }


def _show_rows(rows: Iterable[Row]) -> None:
    from agent_ls.cli.output import is_terminal, named, visible

    place, dim, plain = (_PLACE, _DIM, _PLAIN) if is_terminal(sys.stdout) else ("", "", "")
    for row in rows:
        said = named(row["signature"] or row["name"])
        where = f"{named(row['path'])}:{row['line']}"
        note = f"  {dim}{visible(row['note'])}{plain}" if row.get("note") else ""
        sys.stdout.write(f"{place}{where}:{plain} {dim}{row['kind']}{plain} {said}{note}\n")


@click.command(
    epilog="Uses are found by name: which of several definitions of one name is meant isn't told."
    " --tests knows what the code says, and which lines tests ran when they were last traced (by `fix` or"
    " `locate`), as long as the files are what they were."
)
@click.argument("name")
@click.option("--callers", "mode", flag_value="callers", help="The definitions that call NAME.")
@click.option("--callees", "mode", flag_value="callees", help="The definitions that NAME calls.")
@click.option("--importers", "mode", flag_value="importers", help="Who imports the file or module NAME.")
@click.option("--tests", "mode", flag_value="tests", help="The tests that use NAME, also through a helper.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(["call", "read", "import", "type"]),
    help="Only uses of this kind.",
)
@_glob
@_limit("places", 500)
@common_reading
def refs(
    name: str, mode: str | None, kinds: tuple[str, ...], globs: tuple[str, ...], limit: int, **given: Any
) -> int:
    """Find where NAME is used: calls, reads, imports, types."""
    context = Context.of(given)
    if kinds and mode is not None:
        raise UsageError("--kind is for uses alone", f"Leave --kind or --{mode} away.")
    if globs and mode in ("importers", "tests"):
        raise UsageError(f"--glob does not go with --{mode}", f"Leave --glob or --{mode} away.")
    from agent_ls.cli.commands._refs import answer
    from agent_ls.cli.output import emit_json

    with _asking(context) as (workspace, view):
        if view is None:
            raise UsageError("uses can't be found without the index", "See what was said of it above.")
        found = answer(view, workspace.root, mode, name, kinds, globs, limit, workspace.cancel)
        if context.as_json:
            rows = [{key: value for key, value in row.items() if key != "note"} for row in found.rows]
            emit_json({"schema": 1, "symbols": rows, "complete": found.complete, **found.more})
            return 0
    _show_rows(found.rows)
    for line in found.said:
        sys.stderr.write(f"{line}\n")
    return 0


@click.command()
@click.option("--test", "tests", multiple=True, metavar="ID", help="A failing test (default: all that fail).")
@click.option(
    "--limit", type=click.IntRange(1), default=20, show_default=True, metavar="N", help="At most N places."
)
@common_testing
def locate(tests: tuple[str, ...], limit: int, **given: Any) -> int:
    """Run the failing tests and rank the lines most likely at fault."""
    context = Context.of(given)
    repo = context.repository()
    settings = context.load(repo.root).settings

    from agent_ls.agent.api import locate as locate_faults
    from agent_ls.cli.output import console, emit_json, named, only_json_on_stdout, visible
    from agent_ls.cli.signals import cancel_on_signals

    with only_json_on_stdout(context.as_json), cancel_on_signals() as cancel:
        suspects = list(locate_faults(repo.root, list(tests), settings, cancel=cancel))[:limit]
        if context.as_json:
            rows = [
                {"path": s.path, "line": s.line, "function": s.function, "score": s.score} for s in suspects
            ]
            emit_json({"schema": 1, "suspects": rows})
            return 0
    from rich.text import Text

    out = console(sys.stdout)
    for suspect in suspects:
        out.print(
            Text.assemble(
                (f"{suspect.score:6.3f}  ", "bold"),
                (f"{named(suspect.path)}:{suspect.line}", "cyan"),
                (f"  {visible(suspect.function or '')}", "dim"),
            ),
            soft_wrap=True,
        )
    if not suspects:
        sys.stderr.write("no line stands out\n")
    return 0

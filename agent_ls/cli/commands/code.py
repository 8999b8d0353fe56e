"""`agent-ls search`, `symbols`, `locate`: reading the repository."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from agent_ls.cli.options import Context, common
from agent_ls.errors import ToolRefused, UsageError

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _limit(what: str, default: int) -> Callable[[_Function], _Function]:
    kind = click.IntRange(1)
    return click.option(
        "--limit", type=kind, default=default, show_default=True, metavar="N", help=f"At most N {what}."
    )


@click.command()
@click.argument("query")
@click.option("--regex", is_flag=True, help="QUERY is a regular expression.")
@click.option("--word", "-w", is_flag=True, help="Whole words only.")
@click.option("--ignore-case", "-i", is_flag=True, help="Take capitals and small letters as equal.")
@click.option("--glob", "globs", multiple=True, metavar="PATTERN", help="Only files whose path matches.")
@_limit("hits", 200)
@common
def search(
    query: str, regex: bool, word: bool, ignore_case: bool, globs: tuple[str, ...], limit: int, **given: Any
) -> int:
    """Search QUERY in the repository's files; ignored files are left out."""
    context = Context.of(given)
    repo = context.repository()
    if not query:
        raise UsageError("the query is empty", "Give a text to look for.")

    from agent_ls.cli.output import console, emit_json, only_json_on_stdout, visible
    from agent_ls.workspace.files import Workspace
    from agent_ls.workspace.search import search as search_files

    with only_json_on_stdout(context.as_json):
        try:
            found = search_files(
                Workspace(repo.root),
                query,
                regex=regex,
                word=word,
                case="insensitive" if ignore_case else "sensitive",
                globs=globs,
                limit=limit,
            )
        except ToolRefused as error:
            raise UsageError(error.message, error.remedy) from error
        if context.as_json:
            hits = [
                {
                    "path": hit.path,
                    "line": hit.line,
                    "column": hit.column,
                    "text": hit.text,
                    "symbol": hit.symbol,
                }
                for hit in found.hits
            ]
            emit_json({"schema": 1, "hits": hits, "complete": found.complete})
            return 0
    from rich.text import Text

    out = console(sys.stdout)
    for hit in found.hits:
        line = Text.assemble((f"{visible(hit.path)}:{hit.line}:{hit.column}: ", "cyan"), visible(hit.text))
        out.print(line, soft_wrap=True)
    if not found.complete:
        sys.stderr.write(f"{found.note}\n")
    return 0


@click.command()
@click.argument("name")
@common
def symbols(name: str, **given: Any) -> int:
    """Find where NAME is defined (functions, classes, methods, constants)."""
    context = Context.of(given)
    repo = context.repository()

    from agent_ls.cli.output import console, emit_json, only_json_on_stdout, visible
    from agent_ls.workspace.files import Workspace
    from agent_ls.workspace.symbols import find_symbols

    with only_json_on_stdout(context.as_json):
        try:
            found = find_symbols(Workspace(repo.root), name)
        except ToolRefused as error:
            raise UsageError(error.message, error.remedy) from error
        if context.as_json:
            rows = [
                {
                    "name": symbol.name,
                    "kind": symbol.kind,
                    "path": symbol.path,
                    "line": symbol.line,
                    "end_line": symbol.end_line,
                    "container": symbol.container,
                    "signature": symbol.signature,
                }
                for symbol in found
            ]
            emit_json({"schema": 1, "symbols": rows})
            return 0
    from rich.text import Text

    out = console(sys.stdout)
    for symbol in found:
        out.print(
            Text.assemble(
                (f"{visible(symbol.path)}:{symbol.line}: ", "cyan"),
                (f"{symbol.kind} ", "dim"),
                visible(symbol.signature or symbol.name),
            ),
            soft_wrap=True,
        )
    if not found:
        sys.stderr.write(f"nothing named {visible(name)!r} is defined here\n")
    return 0


@click.command()
@click.option("--test", "tests", multiple=True, metavar="ID", help="A failing test (default: all that fail).")
@click.option(
    "--limit", type=click.IntRange(1), default=20, show_default=True, metavar="N", help="At most N places."
)
@common
def locate(tests: tuple[str, ...], limit: int, **given: Any) -> int:
    """Run the failing tests and rank the lines most likely at fault."""
    context = Context.of(given)
    repo = context.repository()
    settings = context.load(repo.root).settings

    from agent_ls.agent.api import locate as locate_faults
    from agent_ls.cli.output import console, emit_json, only_json_on_stdout, visible
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
                (f"{visible(suspect.path)}:{suspect.line}", "cyan"),
                (f"  {visible(suspect.function or '')}", "dim"),
            ),
            soft_wrap=True,
        )
    if not suspects:
        sys.stderr.write("no line stands out\n")
    return 0

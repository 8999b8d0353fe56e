"""`agent-ls map`, `agent-ls context`: where to look in a repository, in general and for one task."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from agent_ls.cli.options import Context, common_reading
from agent_ls.errors import UsageError


@click.command()
@click.option(
    "--tokens",
    type=click.IntRange(64),
    default=1024,
    show_default=True,
    metavar="N",
    help="Room for the overview.",
)
@click.option("--about", metavar="TEXT", help="Put first what these words or names are about.")
@click.option("--file", "files", multiple=True, metavar="PATH", help="Put first what this file builds on.")
@common_reading
def map(tokens: int, about: str | None, files: tuple[str, ...], **given: Any) -> int:
    """Print the repository's most important files and definitions, within a token budget."""
    context = Context.of(given)
    root = context.tree()

    from agent_ls.cli.output import console, emit_json, only_json_on_stdout, visible
    from agent_ls.models._estimate import estimate_tokens
    from agent_ls.workspace.index.index import open_index
    from agent_ls.workspace.index.issue_text import mentions
    from agent_ls.workspace.index.repomap import Focus, repo_map

    with only_json_on_stdout(context.as_json), open_index(root) as index:
        view = index.view()
        for path in files:
            if view.file(path) is None:
                raise UsageError(
                    f"{path} is no file of the repository's index",
                    "Name it relative to the repository's root; ignored files are left out.",
                )
        found = mentions(about or "")
        focus = Focus(
            names=frozenset([*found.names, *(about or "").split()]),
            files=files,
            recent=_recent(context, root),
        )
        overview = repo_map(view, tokens, focus, count=estimate_tokens)
        if context.as_json:
            rows = [{"path": path, "rank": rank} for path, rank in overview.files]
            emit_json({"schema": 1, "text": overview.text, "tokens": overview.tokens, "files": rows})
            return 0
    from rich.text import Text

    out = console(sys.stdout)
    for line in overview.text.splitlines():
        out.print(Text(visible(line), "" if line.startswith(" ") else "bold cyan"), soft_wrap=True)
    if not overview.files:
        sys.stderr.write("no source file in a language that the index reads\n")
    elif not context.quiet:
        sys.stderr.write(
            f"{len(overview.shown)} of {len(overview.files)} source files, about {overview.tokens} tokens\n"
        )
    return 0


@click.command()
@click.argument("text", required=False)
@click.option("--issue", type=click.IntRange(1), metavar="N", help="Take the text of issue N.")
@click.option(
    "--issue-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Take the text of a file.",
)
@click.option(
    "--limit", type=click.IntRange(1), default=10, show_default=True, metavar="N", help="At most N files."
)
@common_reading
def context(text: str | None, issue: int | None, issue_file: Path | None, limit: int, **given: Any) -> int:
    """Rank the files to read for a task, with the reasons why. TEXT is the task in words; "-" reads stdin."""
    options = Context.of(given)
    root = options.tree()
    if sum(source is not None for source in (text, issue, issue_file)) != 1:
        raise UsageError(
            "give the task once: TEXT, --issue N or --issue-file FILE",
            'For example: agent-ls context "naturalsize rounds 999.9 up wrongly"',
        )

    from agent_ls.cli.output import console, emit_json, named, only_json_on_stdout, visible
    from agent_ls.workspace.index.context import context as find_context
    from agent_ls.workspace.index.index import open_index

    with only_json_on_stdout(options.as_json):
        task = _task_text(options, text, issue, issue_file)
        if not task.strip():
            raise UsageError("the task is empty", "Say in a few words what is to be done.")
        with open_index(root) as index:
            found = find_context(index.view(), task, limit=limit, recent=_recent(options, root))
        if options.as_json:
            rows = [
                {
                    "path": candidate.path,
                    "score": candidate.score,
                    "reasons": list(candidate.reasons),
                    "symbols": [
                        {
                            "name": symbol.name,
                            "kind": symbol.kind,
                            "line": symbol.line,
                            "end_line": symbol.end_line,
                            "signature": symbol.signature,
                        }
                        for symbol in candidate.symbols
                    ],
                }
                for candidate in found
            ]
            emit_json({"schema": 1, "files": rows})
            return 0
    from rich.text import Text

    from agent_ls.cli.story import one_line

    out = console(sys.stdout)
    for candidate in found:
        out.print(
            Text.assemble((f"{candidate.score:6.2f}  ", "bold"), (named(candidate.path), "cyan")),
            soft_wrap=True,
        )
        for reason in candidate.reasons:
            out.print(Text(f"          {visible(reason)}", "dim"), soft_wrap=True)
        for symbol in candidate.symbols[:3]:
            place = f"          {symbol.line}: "
            out.print(
                Text.assemble((place, "dim"), one_line(symbol.signature or symbol.name, 120)), soft_wrap=True
            )
    if found and not options.quiet:
        sys.stderr.write("the higher a score the better the fit; scores compare within one answer only\n")
    if not found:
        sys.stderr.write("nothing in the repository matches the task's words\n")
    return 0


def _recent(context: Context, root: Path) -> dict[str, float]:
    from agent_ls.workspace.index.recency import recently_changed

    return {} if root is context.repo else recently_changed(context.repository())


def _task_text(options: Context, text: str | None, issue: int | None, issue_file: Path | None) -> str:
    """The task's words, from wherever they come. Raises UsageError, ProviderError."""
    if issue is not None:
        import os

        from agent_ls.issues.find import resolve_issue

        task = resolve_issue(options.repository(), issue, os.environ)
        return f"{task.title}\n\n{task.body}"
    if issue_file is not None:
        return issue_file.read_text("utf-8", "replace")
    if text == "-":
        return sys.stdin.buffer.read(1_000_000).decode("utf-8", "replace")
    return text or ""

"""`agent-ls index`: build the workspace index or bring it up to date, and say what is in it."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from agent_ls.cli.options import Context, common_reading

if TYPE_CHECKING:
    from agent_ls.workspace.index.view import View

_SHOWN_PER_REASON = 3


@click.command()
@click.option("--rebuild", is_flag=True, help="Forget what is there and index everything anew.")
@common_reading
def index(rebuild: bool, **given: Any) -> int:
    """Index the repository's files, or bring the index up to date.

    Other commands do so by themselves; this one shows what the index holds and what it leaves out.
    """
    context = Context.of(given)
    root = context.tree()

    from agent_ls.cli.output import emit_json, only_json_on_stdout
    from agent_ls.cli.signals import cancel_on_signals
    from agent_ls.workspace.index.index import open_index

    started = time.perf_counter()
    with (
        only_json_on_stdout(context.as_json),
        cancel_on_signals() as cancel,
        open_index(root, cancel=cancel) as opened,
    ):
        with _progress(quiet=context.quiet or context.as_json) as update:
            opened.on_progress = update
            done = opened.rebuild() if rebuild else opened.refresh()
        seconds = time.perf_counter() - started
        view = opened.view()
        if context.as_json:
            skipped = view.skipped()
            languages = Counter(file.language or "text" for file in view.files())
            document = {
                "schema": 1,
                "files": len(view.files()),
                "skipped": [{"path": each.path, "reason": each.reason} for each in skipped],
                "seconds": round(seconds, 3),
                "database": None if opened.note else str(opened.database),
                "database_bytes": opened.database_bytes,
                "languages": dict(sorted(languages.items())),
                "changed": len(done.changed),
                "removed": len(done.removed),
                "parsed": done.parsed,
                "note": opened.note,
            }
            emit_json(document)
            return 0
        if opened.note:
            sys.stderr.write(f"{opened.note}\n")
        where = "in memory" if opened.note else str(opened.database)
        _show(view, seconds, f"{opened.database_bytes / 1e6:.1f} MB, {where}", context.verbose)
    return 0


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on a terminal, from the first tenth of a second on; elsewhere nothing."""
    from agent_ls.cli.output import console, is_terminal

    if quiet or not is_terminal(sys.stderr):
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("files"),
        console=console(sys.stderr),
        transient=True,
    )
    with bar:
        task = bar.add_task("Indexing", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _show(view: View, seconds: float, database: str, verbose: bool) -> None:
    from agent_ls.cli.output import named, visible

    files = view.files()
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for file in files:
        language = file.language or "text"
        counts[language] += 1
        sizes[language] += file.size
    # Plain lines, without the console's library, whose start takes longer than all else.
    lines = [f"{len(files):,} files in {seconds:.2f} s; database {visible(database)}"]
    rows = [("language", "files", "kB")]
    rows += [(name, f"{count:,}", f"{sizes[name] / 1000:,.0f}") for name, count in counts.most_common()]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines += [f"{n:<{widths[0]}}  {count:>{widths[1]}}  {kb:>{widths[2]}}" for n, count, kb in rows]
    roles = Counter(file.role for file in files if file.role != "source")
    if roles:
        said = ", ".join(f"{count:,} {role}" for role, count in roles.most_common())
        lines.append(f"not written by hand: {said}")
    skipped = view.skipped()
    if skipped:
        lines.append(f"left out or not read fully: {len(skipped):,}")
    paths: dict[str, list[str]] = {}
    for each in skipped:
        paths.setdefault(each.reason, []).append(each.path)
    for reason, named_paths in sorted(paths.items(), key=lambda item: -len(item[1])):
        count = len(named_paths)
        shown = named_paths if verbose else named_paths[:_SHOWN_PER_REASON]
        more = f" and {count - len(shown):,} more" if count > len(shown) else ""
        lines.append(f"  {visible(reason)}: {count:,} ({', '.join(map(named, shown))}{more})")
    sys.stdout.write("\n".join(lines) + "\n")

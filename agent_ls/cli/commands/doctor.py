"""`agent-ls doctor`: what was found, and the remedy for each thing that is missing."""

from __future__ import annotations

import sys
from typing import Any

import click

from agent_ls.cli.options import Context, common_testing

_MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "missing": ("✗", "red")}


@click.command()
@common_testing
def doctor(**given: Any) -> int:
    """Say what was found on this machine, and what to do about what is missing."""
    context = Context.of(given)

    from agent_ls.cli.checks import Check, run_checks
    from agent_ls.cli.output import console, emit_json, only_json_on_stdout, visible

    with only_json_on_stdout(context.as_json):
        checks: list[Check] = run_checks(context)
    broken = any(check.state == "missing" for check in checks)
    if context.as_json:
        rows = [
            {
                "name": check.name,
                "state": check.state,
                "found": check.found,
                "details": list(check.details),
                "remedy": check.remedy,
            }
            for check in checks
        ]
        emit_json({"schema": 1, "ok": not broken, "checks": rows})
        return 0
    from rich.text import Text

    out = console(sys.stdout)
    for check in checks:
        mark, style = _MARKS[check.state]
        out.print(
            Text.assemble((f"{mark} ", style), (f"{check.name:<14}", "bold"), visible(check.found)),
            soft_wrap=True,
        )
        for detail in check.details:
            out.print(Text(f"    {visible(detail)}", "dim"), soft_wrap=True)
        if check.remedy:
            out.print(Text.assemble("    ", ("→ ", style), visible(check.remedy)), soft_wrap=True)
    return 0

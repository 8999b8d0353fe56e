"""`agent-ls test`: run the tests and print parsed results."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from agent_ls.cli.options import Context, common_testing
from agent_ls.errors import EnvBroken
from agent_ls.verdict import EXIT_TESTS_FAILED, Verdict

if TYPE_CHECKING:
    from agent_ls.testing.results import TestResult, TestRun

_MARKS = {
    "passed": ("✓", "green"),
    "failed": ("✗", "red"),
    "error": ("✗", "red"),
    "skipped": ("-", "yellow"),
    "xfailed": ("x", "dim"),
    "xpassed": ("X", "yellow"),
}


@click.command()
@click.argument("ids", nargs=-1)
@common_testing
def test(ids: tuple[str, ...], **given: Any) -> int:
    """Run the tests (all, or those named) in a copy of your files and print parsed results."""
    context = Context.of(given)
    repo = context.repository()
    settings = context.load(repo.root).settings

    from agent_ls.agent.api import run_tests
    from agent_ls.cli.output import console, emit_json, only_json_on_stdout
    from agent_ls.cli.signals import cancel_on_signals
    from agent_ls.testing.results import TestRun

    with only_json_on_stdout(context.as_json):
        out = console(sys.stderr if context.as_json else sys.stdout)

        def show(result: TestResult) -> None:
            if context.quiet or not (context.verbose or result.outcome.bad):
                return
            from rich.text import Text

            from agent_ls.cli.story import one_line

            mark, style = _MARKS[str(result.outcome)]
            out.print(Text(f"{mark} {one_line(result.id, 200)}", style), soft_wrap=True)

        try:
            with cancel_on_signals() as cancel:
                run = run_tests(repo.root, list(ids), settings, cancel=cancel, on_result=show)
        except EnvBroken as error:  # known before anything could be run
            run = TestRun((), "env_broken", problem=error.message, remedy=error.remedy)
        _print(run, context, out)
        if context.as_json:
            emit_json(document(run))
    if run.outcome == "env_broken":
        return Verdict.ENV_BROKEN.exit_code
    return 0 if run.outcome == "passed" else EXIT_TESTS_FAILED


def document(run: TestRun) -> dict[str, Any]:
    """The contract's document for `test --json`."""
    return {
        "schema": 1,
        "command": list(run.command),
        "outcome": run.outcome,
        "source": run.source,
        "counts": run.counts(),
        "duration_s": run.duration_s,
        "tests": [
            {
                "id": test.id,
                "outcome": str(test.outcome),
                "duration_s": test.duration_s,
                "file": test.file,
                "line": test.line,
                "message": test.message,
                "stack": [{"file": f.file, "line": f.line, "function": f.function} for f in test.stack],
            }
            for test in run.tests
        ],
        "truncated": run.truncated,
        "problem": run.problem,
        "remedy": run.remedy,
    }


def _print(run: TestRun, context: Context, out: Any) -> None:
    from rich.text import Text

    from agent_ls.cli.output import visible
    from agent_ls.cli.story import counts_text, duration

    if not context.quiet:
        for test in run.tests:
            if test.outcome.bad and test.message:
                out.print()
                out.print(Text(visible(test.id), "bold red"), soft_wrap=True)
                out.print(Text(visible(test.message).rstrip()), soft_wrap=True)
    if run.outcome == "env_broken":
        out.print(Text(f"the tests can't be run: {visible(run.problem or '')}", "bold red"), soft_wrap=True)
        if run.remedy:
            out.print(Text(visible(run.remedy)), soft_wrap=True)
        if run.output and not context.quiet:
            out.print(Text(visible(run.output).rstrip()[-4000:], "dim"), soft_wrap=True)
        return
    line = counts_text(run.counts())
    line.append(f"  {duration(run.duration_s)}", "dim")
    if run.outcome == "timeout":
        line.append("  stopped at the deadline; what was known by then", "yellow")
    elif run.truncated:
        line.append("  the run ended early", "yellow")
    out.print(line, soft_wrap=True)

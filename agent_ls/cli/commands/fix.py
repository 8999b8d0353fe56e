"""`agent-ls fix`: the main job."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_ls.cli.options import Context, common
from agent_ls.errors import UsageError

if TYPE_CHECKING:
    from agent_ls.task import Task
    from agent_ls.workspace.git import Repository


@click.command()
@click.option("--issue", metavar="N", help="The issue's number: .agent-ls/issues/N.md, else the tracker's.")
@click.option("--issue-file", metavar="FILE", help="A Markdown file that describes the issue.")
@click.option("--text", metavar="TEXT", help="What is wrong, in your words.")
@click.option(
    "--test", "tests", multiple=True, metavar="ID", help="A failing test to make pass (repeatable)."
)
@click.option("--branch", metavar="NAME", help="The new branch's name (default: agent-ls/…).")
@common
def fix(
    issue: str | None, issue_file: str | None, text: str | None, tests: tuple[str, ...], branch: str | None,
    **given: Any,
) -> int:  # fmt: skip
    """Fix an issue or failing tests on a new branch, and prove it with the tests.

    Without an issue, a text or a test: make all failing tests pass.
    """
    context = Context.of(given)
    if branch is not None:
        context.overrides["branch"] = branch
    number = _number(issue)
    sources = [name for name, value in (("--issue", issue), ("--issue-file", issue_file), ("--text", text))
               if value is not None]  # fmt: skip
    if len(sources) > 1:
        raise UsageError(f"{' and '.join(sources)} exclude each other", "Give one of them.")
    from agent_ls.cli.running import check_model, elsewhere, run_session

    repo = context.repository()
    loaded = context.load(repo.root)
    settings = loaded.settings
    check_model(settings, loaded.origins)
    task = _task(repo, number, issue_file, text, tests)

    from agent_ls.agent.api import fix as fix_task

    return run_session(
        context,
        lambda cancel, view: fix_task(
            repo.root,
            task,
            settings,
            cancel=cancel,
            on_event=view.on_event,
            ask=view.ask,
            on_text=view.on_text,
        ),
        elsewhere(repo.root),
    )


def _number(issue: str | None) -> int | None:
    if issue is None:
        return None
    digits = issue.strip().removeprefix("#")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 12:
        raise UsageError(f"--issue takes a number, not {issue!r}", "For example: --issue 12")
    return int(digits)


def _task(
    repo: Repository, number: int | None, issue_file: str | None, text: str | None, tests: tuple[str, ...]
) -> Task:
    from attrs import evolve

    from agent_ls.cli.signals import cancel_on_signals
    from agent_ls.issues import from_file, from_text, resolve_issue
    from agent_ls.task import Task

    if number is not None:
        with cancel_on_signals() as cancel:
            task = resolve_issue(repo, number, os.environ, cancel)
    elif issue_file is not None:
        task = from_file(Path(issue_file))
    elif text is not None:
        task = from_text(text)
    else:
        shown = (
            tests[0] if len(tests) == 1 else f"{len(tests)} failing tests" if tests else "the failing tests"
        )
        task = Task(title=f"Make {shown} pass", source="--test")
    return evolve(task, tests=tuple(dict.fromkeys((*task.tests, *tests))))

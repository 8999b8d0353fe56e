"""`agent-ls guard`: what a change did to the tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_ls import __version__
from agent_ls.cli.options import Context, common_reading
from agent_ls.errors import UsageError

if TYPE_CHECKING:
    from agent_ls.guard.protected import Finding
    from agent_ls.guard.trees import Tree


@click.command()
@click.argument("start", metavar="BASE", required=False)
@click.argument("end", metavar="[HEAD]", required=False)
@click.option("--before", metavar="DIR", help="Compare two directories: the one before the change …")
@click.option("--after", metavar="DIR", help="… and the one after it.")
@click.option("--staged", is_flag=True, help="Compare HEAD with what is staged (for pre-commit).")
@click.option("--sarif", "as_sarif", is_flag=True, help="Print SARIF 2.1.0 for code scanning.")
@click.option(
    "--format",
    "layout",
    type=click.Choice(["text", "github"]),
    default="text",
    help="github: annotations in a workflow's log.",
)
@common_reading
def guard(
    start: str | None,
    end: str | None,
    before: str | None,
    after: str | None,
    staged: bool,
    as_sarif: bool,
    layout: str,
    **given: Any,
) -> int:
    """Say what the change from BASE to HEAD did to the tests.

    BASE and HEAD are revisions; without HEAD your files as they are now count. Exit codes: 0 clean, 5 the
    tests catch less than before, 8 a person should look.
    """
    context = Context.of(given)
    if as_sarif and context.as_json:
        raise UsageError("--json and --sarif exclude each other", "Ask for one of them.")

    from agent_ls.cli.output import emit_json, only_json_on_stdout
    from agent_ls.guard.report import exit_code, github, sarif
    from agent_ls.guard.review import review

    with only_json_on_stdout(context.as_json or as_sarif):
        findings = review(
            *_trees(context, start or context.overrides.get("base"), end, before, after, staged)
        )
        if as_sarif:
            emit_json(sarif(findings, __version__))
        elif context.as_json:
            emit_json({"schema": 1, "findings": [finding.to_json() for finding in findings]})
    if not (as_sarif or context.as_json):
        if layout == "github":
            for line in github(findings):
                sys.stdout.write(line + "\n")
        else:
            _print(findings, quiet=context.quiet)
    return exit_code(findings)


def _trees(
    context: Context, base: str | None, head: str | None, before: str | None, after: str | None, staged: bool
) -> tuple[Tree, Tree]:
    from agent_ls.guard.trees import FolderTree, GitTree

    if before is not None or after is not None:
        if before is None or after is None:
            raise UsageError("--before and --after belong together", "Name both directories.")
        if base is not None or staged:
            raise UsageError("directories and revisions exclude each other", "Give one of them.")
        for folder in (before, after):
            if not Path(folder).is_dir():
                raise UsageError(f"{folder} is not a directory", "Name two directories that hold the files.")
        return FolderTree(Path(before)), FolderTree(Path(after))
    repo = context.repository()
    if staged:
        start = repo.resolve(base or "HEAD")
        index = repo.git("write-tree").stdout.strip()
        return GitTree(repo, repo.tree_of(start)), GitTree(repo, index)
    if base is None:
        raise UsageError("what shall be compared?", "Name a revision, as in: agent-ls guard main")
    if head is None and ".." in base:
        base, _, head = base.partition("...") if "..." in base else base.partition("..")
        head = head or "HEAD"
    start_tree = GitTree(repo, repo.tree_of(repo.resolve(base)))
    if head is not None:
        return start_tree, GitTree(repo, repo.tree_of(repo.resolve(head)))
    from agent_ls.guard.trees import WorktreeTree

    return start_tree, WorktreeTree(repo)


def _print(findings: list[Finding], *, quiet: bool) -> None:
    from rich.text import Text

    from agent_ls.cli.output import console, visible

    out = console(sys.stdout)
    colours = {"block": "bold red", "review": "yellow", "info": "dim"}
    for finding in findings:
        head = Text.assemble(
            (f"{finding.severity:<7}", colours[finding.severity]),
            (f"{visible(finding.path)}:{finding.line}: ", "cyan"),
            visible(finding.message),
            (f"  [{finding.kind}]", "dim"),
        )
        out.print(head, soft_wrap=True)
        if not quiet:
            for sign, text in (("-", finding.before), ("+", finding.after)):
                if text:
                    out.print(Text(f"        {sign} {visible(text)}", "dim"), soft_wrap=True)
    counts = {s: sum(f.severity == s for f in findings) for s in ("block", "review", "info")}
    if not findings:
        out.print("The tests catch what they caught before.")
    else:
        out.print(", ".join(f"{number} {word}" for word, number in counts.items() if number))

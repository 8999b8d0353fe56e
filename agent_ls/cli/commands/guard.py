"""`agent-ls guard`: what a change did to the tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import frozen

from agent_ls import __version__
from agent_ls.cli.options import Context, common_testing
from agent_ls.errors import EnvBroken, UsageError

if TYPE_CHECKING:
    from agent_ls.behaviour.model import Behaviour
    from agent_ls.guard.protected import Finding
    from agent_ls.guard.trees import FolderTree, GitTree, Tree
    from agent_ls.workspace.git import Repository

BUDGET_S = 120.0


@frozen
class Change:
    """What is compared. `repo` is None for two directories; `base` is a commit of the repository."""

    before: Tree
    after: Tree
    repo: Repository | None = None
    base: str = ""


@click.command()
@click.argument("start", metavar="BASE", required=False)
@click.argument("end", metavar="[HEAD]", required=False)
@click.option("--before", metavar="DIR", help="Compare two directories: the one before the change …")
@click.option("--after", metavar="DIR", help="… and the one after it.")
@click.option("--staged", is_flag=True, help="Compare HEAD with what is staged (for pre-commit).")
@click.option(
    "--run",
    "running",
    is_flag=True,
    help="Also run old and new tests on old and new sources, and on mutants.",
)
@click.option(
    "--budget",
    metavar="SECONDS",
    type=click.FloatRange(min=1),
    default=BUDGET_S,
    show_default=True,
    help="With --run: time for all runs together.",
)
@click.option("--sarif", "as_sarif", is_flag=True, help="Print SARIF 2.1.0 for code scanning.")
@click.option(
    "--format",
    "layout",
    type=click.Choice(["text", "github"]),
    default="text",
    help="github: annotations in a workflow's log.",
)
@common_testing
def guard(
    start: str | None,
    end: str | None,
    before: str | None,
    after: str | None,
    staged: bool,
    running: bool,
    budget: float,
    as_sarif: bool,
    layout: str,
    **given: Any,
) -> int:
    """Say what the change from BASE to HEAD did to the tests.

    BASE and HEAD are revisions; without HEAD your files as they are now count. Exit codes: 0 clean, 5 the
    tests catch less than before, 8 a person should look. With --run tests are run, in copies and in the
    sandbox; what could not be checked is said.
    """
    context = Context.of(given)
    if as_sarif and context.as_json:
        raise UsageError("--json and --sarif exclude each other", "Ask for one of them.")

    from agent_ls.behaviour.report import layers, sarif_notes
    from agent_ls.cli.output import emit_json, only_json_on_stdout
    from agent_ls.guard.report import exit_code, github, sarif
    from agent_ls.guard.review import review

    with only_json_on_stdout(context.as_json or as_sarif):
        base = start or context.overrides.get("base")
        change = _change(context, base, end, before, after, staged, running)
        findings = review(change.before, change.after)
        behaviour = _run(context, change, budget) if running else None
        if behaviour is not None:
            findings = _merged(findings, behaviour.findings)
        if as_sarif:
            emit_json(sarif_notes(sarif(findings, __version__), behaviour))
        elif context.as_json:
            found = [finding.to_json() for finding in findings]
            emit_json({"schema": 1, "findings": found, **layers(behaviour)})
    if not (as_sarif or context.as_json):
        if layout == "github":
            for line in (*github(findings), *_github_notes(behaviour)):
                sys.stdout.write(line + "\n")
        else:
            _print(findings, behaviour, quiet=context.quiet)
    return exit_code(findings)


def _change(
    context: Context,
    base: str | None,
    head: str | None,
    before: str | None,
    after: str | None,
    staged: bool,
    running: bool,
) -> Change:
    from agent_ls.guard.trees import FolderTree, GitTree, WorktreeTree

    if before is not None or after is not None:
        if before is None or after is None:
            raise UsageError("--before and --after belong together", "Name both directories.")
        if base is not None or staged:
            raise UsageError("directories and revisions exclude each other", "Give one of them.")
        for folder in (before, after):
            if not Path(folder).is_dir():
                raise UsageError(f"{folder} is not a directory", "Name two directories that hold the files.")
        return Change(FolderTree(Path(before)), FolderTree(Path(after)))
    repo = context.repository()
    if staged:
        start = repo.resolve(base or "HEAD")
        return Change(GitTree(repo, repo.tree_of(start)), GitTree(repo, _staged(repo)), repo, start)
    if base is None:
        raise UsageError("what shall be compared?", "Name a revision, as in: agent-ls guard main")
    if head is None and ".." in base:
        base, _, head = base.partition("...") if "..." in base else base.partition("..")
        head = head or "HEAD"
    start = repo.resolve(base)
    start_tree = GitTree(repo, repo.tree_of(start))
    if head is not None:
        return Change(start_tree, GitTree(repo, repo.tree_of(repo.resolve(head))), repo, start)
    if running:
        return Change(start_tree, GitTree(repo, _snapshot(repo)), repo, start)
    return Change(start_tree, WorktreeTree(repo), repo, start)


def _staged(repo: Repository) -> str:
    """What is staged, as a tree. Git would note it in the index: a copy is used."""
    import shutil
    import tempfile

    with tempfile.TemporaryDirectory(prefix="agent-ls-") as folder:
        index = Path(folder) / "index"
        if (repo.git_dir / "index").exists():
            shutil.copy2(repo.git_dir / "index", index)
        return repo.git("write-tree", env={"GIT_INDEX_FILE": str(index)}).stdout.strip()


def _snapshot(repo: Repository) -> str:
    """The files as they are now, as a tree: what is run must not change meanwhile."""
    import tempfile

    from agent_ls.workspace.snapshot import take_snapshot

    with tempfile.TemporaryDirectory(prefix="agent-ls-") as folder:
        return take_snapshot(repo, Path(folder), None).tree


def _run(context: Context, change: Change, budget: float) -> Behaviour:
    """What running says; where the tests can't be run at all, why."""
    from typing import cast

    from agent_ls.behaviour.compare import compare
    from agent_ls.behaviour.place import folder_bench, git_bench
    from agent_ls.behaviour.report import not_run
    from agent_ls.cli.signals import cancel_on_signals

    def say(text: str) -> None:
        if not context.quiet:
            sys.stderr.write(f"running: {text}\n")
            sys.stderr.flush()

    with cancel_on_signals() as cancel:
        try:
            if change.repo is not None:
                settings = context.load(change.repo.root).settings
                before, after = cast("GitTree", change.before), cast("GitTree", change.after)
                place = git_bench(change.repo, change.base, before, after, settings, cancel)
            else:
                # the settings of the tree before: the change must not choose how it is judged
                root = cast("FolderTree", change.before).root.resolve()
                settings = context.load(root).settings
                place = folder_bench(
                    cast("FolderTree", change.before), cast("FolderTree", change.after), settings, cancel
                )
            with place as bench:
                return compare(change.before, change.after, bench, budget_s=budget, cancel=cancel, say=say)
        except EnvBroken as error:
            return not_run(error.message)


def _merged(static: list[Finding], run: tuple[Finding, ...]) -> list[Finding]:
    order = {"block": 0, "review": 1, "info": 2}
    unique: dict[tuple[str, int, str], Finding] = {}
    for finding in (*static, *run):
        unique.setdefault((finding.path, finding.line, finding.kind), finding)
    return sorted(unique.values(), key=lambda f: (order[f.severity], f.path, f.line, f.kind))


def _github_notes(behaviour: Behaviour | None) -> list[str]:
    from agent_ls.guard.report import _data

    notes = behaviour.not_checked if behaviour is not None else ()
    return [f"::warning title=Not checked::{_data(f'{note.what}: {note.why}')}" for note in notes]


def _print(findings: list[Finding], behaviour: Behaviour | None, *, quiet: bool) -> None:
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
    if behaviour is not None:
        for note in behaviour.not_checked:
            out.print(
                Text.assemble(("not checked: ", "yellow"), visible(f"{note.what}: {note.why}")),
                soft_wrap=True,
            )
    if findings:
        out.print(", ".join(f"{number} {word}" for word, number in counts.items() if number))
    elif behaviour is None:
        out.print("The tests catch what they caught before, as far as reading tells.")
    elif behaviour.layer == "checked":
        out.print("The tests catch what they caught before, as far as reading and running tell.")
    else:
        word = "only in part" if behaviour.layer == "partly" else "not"
        out.print(f"Reading finds nothing; the tests could {word} be checked by running.")
    if behaviour is not None and not quiet:
        equal = f", {len(behaviour.equal)} edited tests as strong as before" if behaviour.equal else ""
        out.print(Text(f"{behaviour.runs} runs, {behaviour.mutants} mutants{equal}", "dim"), soft_wrap=True)

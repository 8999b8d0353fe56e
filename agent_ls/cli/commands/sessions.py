"""`agent-ls resume`, `sessions`, `show`, `clean`: what the event files tell."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import evolve

from agent_ls.cli.options import LIMITS, Context, common, common_reading
from agent_ls.errors import UsageError

if TYPE_CHECKING:
    from agent_ls.agent.history import SessionInfo
    from agent_ls.events import Event


@click.command()
@click.argument("session")
@common
def resume(session: str, **given: Any) -> int:
    """Go on with SESSION after a hand-over or a crash.

    It keeps the settings that it began with; options given here win.
    """
    context = Context.of(given)

    from agent_ls.agent.api import resume as resume_session
    from agent_ls.cli.running import check_model, elsewhere, run_session

    info = _find(session, context)
    root = Path(info.repo)
    overrides = {**_recorded_settings(info), **context.overrides}
    settings = evolve(context, overrides=overrides).load(root if root.is_dir() else None).settings
    check_model(settings)
    return run_session(
        context,
        lambda cancel, view: resume_session(
            info.id,
            settings,
            cancel=cancel,
            on_event=view.on_event,
            ask=view.ask,
            on_text=view.on_text,
        ),
        elsewhere(root),
    )


def _recorded_settings(info: SessionInfo) -> dict[str, Any]:
    """The settings of the session's beginning, without what belongs to one run only."""
    from agent_ls.config import KEYS

    first = next((e for e in _events(info) if e.kind == "session_started"), None)
    recorded = dict(first.data.get("settings") or {}) if first is not None else {}
    recorded |= recorded.pop("limits", None) or {}
    skip = ("api_key", "base", "branch")
    # A limit that was switched off is a value too; for other keys None means the default.
    recorded = {key: "none" if value is None and key in LIMITS else value for key, value in recorded.items()}
    return {key: value for key, value in recorded.items() if key in KEYS and key not in skip and value != []}


_all_repos = click.option("--all-repos", is_flag=True, help="Those of every repository on this machine.")


@click.command()
@_all_repos
@common_reading
def sessions(all_repos: bool, **given: Any) -> int:
    """List this repository's sessions, newest first (outside of any repository: all)."""
    context = Context.of(given)

    from agent_ls.agent.history import sessions as past_sessions
    from agent_ls.cli.output import console, emit_json
    from agent_ls.cli.render import table
    from agent_ls.cli.story import one_line

    root = None if all_repos else _root(context)
    found = past_sessions(root)
    if context.as_json:
        rows = [
            {
                "id": info.id,
                "repo": str(info.repo),
                "title": info.title,
                "branch": info.branch,
                "verdict": None if info.verdict is None else str(info.verdict),
                "started": info.started,
                "running": info.running,
                "events": str(info.events_path),
            }
            for info in found
        ]
        emit_json({"schema": 1, "sessions": rows})
        return 0
    if not found:
        where = f" in {root} (--all-repos: elsewhere)" if root is not None else ""
        sys.stderr.write(f"no sessions yet{where}\n")
        return 0
    heads = ["session", "started", "verdict", "branch", "task"]
    lines = [
        [
            info.id,
            time.strftime("%Y-%m-%d %H:%M", time.localtime(info.started)),
            "running" if info.running else str(info.verdict or "interrupted"),
            info.branch or "",
            one_line(info.title, 60),
        ]
        for info in found
    ]
    if root is None:
        heads.append("repository")
        for line, info in zip(lines, found, strict=True):
            line.append(one_line(str(info.repo), 200))
    table(lines, heads, console(sys.stdout))
    return 0


def _root(context: Context) -> Path | None:
    """The root of the repository that a command is about; None where there is none around it and none was
    named."""
    if context.repo != Path():
        return context.repository().root
    try:
        return context.repository().root
    except UsageError:
        return None


@click.command()
@click.argument("session")
@click.option("--events", is_flag=True, help="List the events themselves, one a line.")
@common_reading
def show(session: str, events: bool, **given: Any) -> int:
    """Show what SESSION did, as it looked when it ran."""
    context = Context.of(given)

    from agent_ls.cli.output import console, emit_json, visible
    from agent_ls.cli.render import summary
    from agent_ls.cli.running import elsewhere
    from agent_ls.cli.story import Story

    info = _find(session, context)
    out = console(sys.stdout)
    if events and not context.as_json:
        import json

        for event in _events(info):
            text = json.dumps(dict(event.data), ensure_ascii=False)
            text = text if context.verbose or len(text) <= 200 else text[:199] + "…"
            sys.stdout.write(f"{event.seq:>5} {event.kind:<18} {visible(text)}\n")
        return 0
    story = Story(verbose=context.verbose)
    shown = [(event, story.read(event)) for event in _events(info)]
    report = dict(story.report or {})
    if context.as_json:
        document: dict[str, Any] = report or {
            "schema": 1, "session": info.id, "verdict": None, "branch": info.branch, "running": info.running,
        }  # fmt: skip
        if events:
            document["events"] = [
                {"seq": e.seq, "time": e.time, "kind": e.kind, "data": dict(e.data)} for e, _ in shown
            ]
        emit_json(document)
        return 0
    for _, lines in shown:
        for line in lines:
            out.print(line, soft_wrap=True)
    if report:
        dirty = bool(report.get("dirty", story.started.get("dirty", False)))
        summary(report, out, repo=elsewhere(Path(info.repo)), dirty=dirty, quiet=context.quiet)
    elif info.running:
        sys.stdout.write("still running\n")
    else:
        sys.stdout.write(f"interrupted; go on with: agent-ls resume {info.id}\n")
    return 0


@click.command(
    epilog="A branch stays unless --branches is given; one that has further commits or is checked out always"
    " does."
)
@click.argument("session", required=False)
@click.option("--all", "everything", is_flag=True, help="Also sessions that could be resumed.")
@click.option("--branches", is_flag=True, help="Also the branches of the sessions that are removed.")
@_all_repos
@common_reading
def clean(session: str | None, everything: bool, branches: bool, all_repos: bool, **given: Any) -> int:
    """Remove SESSION, or every finished one of this repository, and what killed ones left."""
    context = Context.of(given)

    from agent_ls.agent.history import clean as clean_sessions
    from agent_ls.cli.output import emit_json, visible
    from agent_ls.cli.story import plural

    root = None
    if session is None and not all_repos:
        root = _root(context)
        if root is None:
            raise UsageError(
                "there is no repository around this directory",
                "Name a session, or a repository with --repo; --all-repos means every one.",
            )
    chosen = None if session is None else _find(session, context).id
    done = clean_sessions(chosen, repo=root, everything=everything, branches=branches)
    if context.as_json:
        document = {"removed": list(done.sessions), "kept_branches": dict(done.kept)}
        emit_json({"schema": 1, **document, "deleted_branches": dict(done.deleted)})
        return 0
    for name in done.sessions:
        sys.stdout.write(f"removed {name}\n")
    for name, commit in done.deleted.items():
        sys.stdout.write(f"deleted the branch {visible(name)} (it was {commit[:10]})\n")
    for name in done.kept:
        sys.stdout.write(
            f"the branch {visible(name)} stays (to delete it: git branch -D {shlex.quote(name)})\n"
        )
    sys.stdout.flush()
    if not done.sessions:
        resumable = [info for info in _of(root, chosen) if not info.running]
        sys.stderr.write("nothing to remove")
        if resumable:
            sys.stderr.write(f"; {plural(len(resumable), 'session')} can be resumed: --all removes them too")
        sys.stderr.write("\n")
    return 0


def _of(root: Path | None, chosen: str | None) -> list[SessionInfo]:
    from agent_ls.agent.history import sessions as past_sessions

    return [] if chosen is not None else past_sessions(root)


def _events(info: SessionInfo) -> Iterator[Event]:
    """The session's events. Raises UsageError where the file is damaged or gone."""
    from agent_ls.events import read_events

    try:
        yield from read_events(info.events_path)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"the event file is damaged: {error}", f"agent-ls clean {info.id} removes it."
        ) from error


def _find(session: str, context: Context) -> SessionInfo:
    """The session of that id or an unambiguous beginning of it; `last` is the newest of this repository
    (outside of any: of all). Raises UsageError."""
    from agent_ls.agent.history import find_session, sessions

    if session == "last":
        root = _root(context)
        newest = next(iter(sessions(root)), None)
        if newest is None:
            where = f" in {root}" if root is not None else ""
            raise UsageError(f"there is no session yet{where}", "`agent-ls sessions --all-repos` lists all.")
        return newest
    if not session:
        raise UsageError("the session's id is empty", "`agent-ls sessions` lists them.")
    return find_session(session)

"""The commands of `workspace/executeCommand`. None of them waits for a session: they start, tell and stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve
from pygls.exceptions import JsonRpcInvalidParams

from agent_ls.errors import AgentLsError, Cancelled, UsageError
from agent_ls.lsp.documents import path_of
from agent_ls.lsp.features import checking, review
from agent_ls.lsp.features.diagnostics import Diagnostics
from agent_ls.lsp.features.streaming import Streams
from agent_ls.lsp.folders import Folder
from agent_ls.lsp.protocol import WORK_DONE_TOKEN
from agent_ls.lsp.runs import Run
from agent_ls.lsp.server import Server
from agent_ls.lsp.tasks import KINDS, LIMITS, make_task
from agent_ls.lsp.unsaved import unsaved

if TYPE_CHECKING:
    from agent_ls.agent.report import Report
    from agent_ls.task import Task

_Arguments = Mapping[str, Any]


def register(server: Server, streams: Streams, diagnostics: Diagnostics) -> None:
    async def run_tests(server: Server, streams: Streams, arguments: _Arguments) -> dict[str, Any]:
        folder = _folder(server, arguments)
        return await checking.run_tests(server, streams, diagnostics, folder, arguments)

    async def review_change(server: Server, streams: Streams, arguments: _Arguments) -> dict[str, Any]:
        return await checking.review_change(server, diagnostics, _folder(server, arguments), arguments)

    commands: dict[str, Callable[[Server, Streams, _Arguments], Any]] = {
        "agent-ls.run.start": start,
        "agent-ls.run.cancel": cancel,
        "agent-ls.run.pause": pause,
        "agent-ls.run.resume": resume,
        "agent-ls.run.status": status,
        "agent-ls.run.list": list_runs,
        "agent-ls.run.get": get,
        "agent-ls.run.answer": answer,
        "agent-ls.run.accept": review.accept,
        "agent-ls.run.reject": review.reject,
        "agent-ls.tests.run": run_tests,
        "agent-ls.guard.review": review_change,
    }
    for name, function in commands.items():
        server.command(name)(_command(server, streams, function))


def _command(
    server: Server, streams: Streams, function: Callable[[Server, Streams, _Arguments], Any]
) -> Callable[..., Any]:
    """A handler that takes one object, and answers a wrong request with its remedy."""

    async def handle(*given: Any) -> Any:
        arguments = plain(given[0]) if given else {}
        if not isinstance(arguments, Mapping):
            raise JsonRpcInvalidParams("the argument is one object; docs/protocol.md has its fields")
        try:
            return await function(server, streams, arguments)
        except AgentLsError as error:
            raise JsonRpcInvalidParams(
                f"{error.message}. {error.remedy}" if error.remedy else error.message
            ) from error

    return handle


def plain(value: Any) -> Any:
    """JSON data from what pygls makes of it (named tuples in place of objects)."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {key: plain(item) for key, item in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


async def start(server: Server, streams: Streams, arguments: _Arguments) -> dict[str, Any]:
    """Begin a run: `{kind, target, folder?, limits?, model?, permission?, tests?}`. Answers
    `{runId, branch}` at once; everything else is told by updates."""
    kind, target = arguments.get("kind"), arguments.get("target")
    if kind not in KINDS:
        raise UsageError(f"no run is of the kind {kind!r}", f"Kinds are {', '.join(KINDS)}.")
    folder = _folder(server, arguments)
    overrides = _overrides(arguments)
    if kind == "refactor":
        overrides.setdefault("permission", "refactor")
    documents = list(server.documents)
    place = target if kind == "refactor" and isinstance(target, Mapping) else {"instruction": "said"}
    branch: str | None = None
    if not place.get("instruction") and server.can_answer:
        title = f"Refactor {place.get('path')}:{place.get('line', 1)}"
    else:
        branch, title = await server.work(_reserve, folder, str(kind), target)

    def work(run: Run) -> Report:
        from agent_ls.agent.api import fix

        wanted = target
        if branch is None:
            instruction = run.ask("How shall this be refactored?")
            if not instruction:
                raise Cancelled
            wanted = {**place, "instruction": instruction}
        repo = folder.repository()
        settings = folder.settings(overrides)
        task = make_task(str(kind), wanted, repo, run.cancel)
        run.title = task.title
        if branch is not None:
            settings = evolve(settings, branch=branch)
        run.root = repo.root
        buffers = unsaved(documents, repo.root)
        return fix(
            repo.root, task, settings, buffers=buffers, cancel=run.cancel, on_event=run.on_event,
            ask=run.ask, on_text=run.on_text,
        )  # fmt: skip

    run = streams.runs.start(str(kind), title, folder, branch, work)
    streams.begin_progress(run, WORK_DONE_TOKEN.get())
    return {"runId": run.id, "branch": branch}


def _reserve(folder: Folder, kind: str, target: Any) -> tuple[str | None, str]:
    """The branch that a run will make, and a title until its task is known. Raises UsageError."""
    from agent_ls.agent.session import branch_name, free_branch
    from agent_ls.cancel import CancelToken
    from agent_ls.issues.find import local_issue

    repo = folder.repository()
    if kind == "issue":
        number = int(str(target).strip().removeprefix("#") or 0) if _is_number(target) else 0
        known = local_issue(repo, number)
        if known is None:  # a tracker's: its title is not known yet
            if not number:
                make_task(kind, target, repo, CancelToken())  # says what is wrong
            return free_branch(repo, f"agent-ls/issue-{number}"), f"issue {number}"
        task: Task = known
    else:
        task = make_task(kind, target, repo, CancelToken())
    return free_branch(repo, branch_name(task)), task.title


def _is_number(target: Any) -> bool:
    text = str(target).strip().removeprefix("#")
    return text.isascii() and text.isdigit() and len(text) < 13


def _overrides(arguments: _Arguments) -> dict[str, Any]:
    """What the request sets, checked where settings are: limits and the like."""
    limits = arguments.get("limits") or {}
    if not isinstance(limits, Mapping):
        raise UsageError("limits are an object", f"Its keys are {', '.join(LIMITS)}.")
    found: dict[str, Any] = {}
    for key, value in limits.items():
        name = "".join(f"_{char.lower()}" if char.isupper() else char for char in str(key))
        if name not in LIMITS:
            raise UsageError(f"there is no limit {key!r}", f"Limits are {', '.join(LIMITS)}.")
        found[name] = value
    for key in ("model", "permission", "strategy", "base"):
        if arguments.get(key):
            found[key] = str(arguments[key])
    return found


def _folder(server: Server, arguments: _Arguments) -> Folder:
    """The folder that a run is for: the named one, the one that the target's file is in, or the only one."""
    folders = list(server.folders)
    named = arguments.get("folder")
    target = arguments.get("target")
    path: Path | None = None
    if isinstance(named, str) and named:
        path = path_of(named) if "://" in named else Path(named)
        if path is None or server.folders.holding(path) is None:
            raise UsageError(f"{named!r} is not open here", "Name a folder of the workspace.")
    elif isinstance(target, Mapping) and isinstance(target.get("uri"), str):
        path = path_of(target["uri"])
    if path is not None:
        found = server.folders.holding(path)
        if found is not None:
            return found
    if len(folders) == 1:
        return folders[0]
    if not folders:
        raise UsageError("no folder is open", "Open a folder with a git repository.")
    raise UsageError("several folders are open", "Say which with `folder`.")


def _run(streams: Streams, arguments: _Arguments) -> Run:
    id = arguments.get("runId")
    if not isinstance(id, str):
        raise UsageError("runId is missing", "agent-ls.run.list tells which runs there are.")
    return streams.runs.get(id)


async def cancel(server: Server, streams: Streams, arguments: _Arguments) -> dict[str, Any]:
    """Stop a run: within a second, its processes too. Nothing happens to one that has ended."""
    run = _run(streams, arguments)
    run.cancel.cancel()
    return run.status()


async def pause(server: Server, streams: Streams, arguments: _Arguments) -> dict[str, Any]:
    """Let a run stop before its next step."""
    run = _run(streams, arguments)
    run.pause()
    return run.status()


async def resume(server: Server, streams: Streams, arguments: _Arguments) -> dict[str, Any]:
    """Let a paused run go on; one that was handed over, stopped or cancelled goes on from its best state,
    with `{answer}` to the question it ended with and new `{limits}`."""
    run = _run(streams, arguments)
    if run.state == "paused":
        run.go_on()
        return run.status()
    if run.state != "finished":
        return run.status()
    session = run.session
    if session is None or (run.report or {}).get("verdict") in ("fixed", "usage"):
        raise UsageError(f"{run.id} can't go on", "It is fixed, or it never began.")
    overrides = _overrides(arguments)

    def work(run: Run) -> Report:
        from agent_ls.agent.api import resume as resume_session

        return resume_session(
            session, run.folder.settings(overrides), cancel=run.cancel, on_event=run.on_event,
            ask=run.ask, on_text=run.on_text,
        )  # fmt: skip

    streams.runs.again(run, work)
    streams.begin_progress(run, WORK_DONE_TOKEN.get())
    return run.status()


async def status(server: Server, streams: Streams, arguments: _Arguments) -> dict[str, Any]:
    """One run's state."""
    return _run(streams, arguments).status()


async def list_runs(server: Server, streams: Streams, arguments: _Arguments) -> dict[str, Any]:
    """All runs of this server, oldest first."""
    return {"schema": 1, "runs": [run.status() for run in streams.runs.all()]}


async def get(server: Server, streams: Streams, arguments: _Arguments) -> dict[str, Any]:
    """A run with its updates from `{fromSeq}` on, and its report once it has ended."""
    run = _run(streams, arguments)
    first = arguments.get("fromSeq", 0)
    if not isinstance(first, int) or isinstance(first, bool) or first < 0:
        raise UsageError("fromSeq is a number from 0", "Give the seq after the last one that you have.")
    updates = [{"seq": seq, "update": update} for seq, update in enumerate(list(run.updates)) if seq >= first]
    return {"schema": 1, **run.status(), "updates": updates, "report": run.report}


async def answer(server: Server, streams: Streams, arguments: _Arguments) -> dict[str, Any]:
    """The person's answer to a run's question: `{text}`, null for none."""
    run = _run(streams, arguments)
    text = arguments.get("text")
    if text is not None and not isinstance(text, str):
        raise UsageError("an answer is a text", "Or null for none.")
    accepted = run.answer(text)
    return {**run.status(), "accepted": accepted}

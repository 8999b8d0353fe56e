"""What a person asks in the editor, as a task of the loop."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent_ls.errors import UsageError
from agent_ls.issues.text import from_text
from agent_ls.task import Task

if TYPE_CHECKING:
    from agent_ls.cancel import CancelToken
    from agent_ls.workspace.git import Repository

KINDS = ("issue", "test", "diagnostic", "refactor", "prompt")
LIMITS = ("max_steps", "max_failures", "max_tokens", "max_cost", "timeout")


def make_task(kind: str, target: Any, repo: Repository, cancel: CancelToken) -> Task:
    """The task for `run.start {kind, target}`. May ask an issue tracker: not for the event loop.

    Targets: a number (issue), an id or a list of ids (test), `{path, line, message, source, code, text}`
    (diagnostic), `{path, line, endLine, text, instruction}` (refactor), a text (prompt). Raises UsageError.
    """
    if kind == "issue":
        from agent_ls.issues import resolve_issue

        return resolve_issue(repo, _number(target), os.environ, cancel)
    if kind == "test":
        ids = _ids(target)
        shown = ids[0] if len(ids) == 1 else f"{len(ids)} failing tests" if ids else "the failing tests"
        return Task(title=f"Make {shown} pass", source="the editor", tests=ids)
    if kind == "prompt":
        text = target.get("text") if isinstance(target, Mapping) else target
        tests = _ids(target.get("tests") or ()) if isinstance(target, Mapping) else ()
        task = from_text(_text(text, "a prompt needs a text"))
        return Task(task.title, task.body, "the editor", tests=tests)
    if not isinstance(target, Mapping):
        raise UsageError(f"the target of a {kind} is an object", "See docs/protocol.md.")
    where = f"{_text(target.get('path'), 'the target has no path')}:{target.get('line', 1)}"
    if kind == "diagnostic":
        message = _text(target.get("message"), "the target has no message")
        named = " ".join(str(target[key]) for key in ("source", "code") if target.get(key))
        body = f"{named or 'A tool'} reports at {where}:\n\n{message}\n"
        return _with_code(f"Fix {' '.join(message.split())[:100]} at {where}", body, target)
    instruction = _text(target.get("instruction"), "the target has no instruction")
    body = f"{instruction}\n\nIt is about {where} to line {target.get('endLine', target.get('line', 1))}.\n"
    return _with_code(" ".join(instruction.split())[:120], body, target)


def _with_code(title: str, body: str, target: Mapping[str, Any]) -> Task:
    text = target.get("text")
    if isinstance(text, str) and text.strip():
        body += f"\n```\n{text.rstrip()}\n```\n"
    task = from_text(f"{title}\n\n{body}")
    return Task(task.title, task.body, "the editor", tests=_ids(target.get("tests") or ()))


def _number(target: Any) -> int:
    text = str(target).strip().removeprefix("#")
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 10**12):
        raise UsageError(f"an issue is a number, not {target!r}", "For example 12.")
    return int(text)


def _ids(target: Any) -> tuple[str, ...]:
    ids = [target] if isinstance(target, str) else target
    if not isinstance(ids, Sequence) or not all(isinstance(it, str) and it.strip() for it in ids):
        raise UsageError("tests are named by their ids", "For example tests/test_x.py::test_y.")
    return tuple(dict.fromkeys(ids))


def _text(value: Any, missing: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UsageError(missing, "See docs/protocol.md.")
    return value

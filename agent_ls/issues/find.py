"""Finds issue N of a repository: first its own files, then the tracker that the git remote names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from agent_ls.cancel import CancelToken
from agent_ls.errors import UsageError
from agent_ls.issues.text import from_file
from agent_ls.task import Task
from agent_ls.workspace.paths import is_secret_path


class HasRemote(Protocol):
    """What is needed of a `workspace.git.Repository`."""

    @property
    def root(self) -> Path: ...

    def remote_url(self) -> str | None: ...


def resolve_issue(
    repo: HasRemote, number: int, env: Mapping[str, str], cancel: CancelToken | None = None
) -> Task:
    """Issue `number` as a task. `env` holds tokens and base URLs (see `remote.tracker_of`).

    Raises UsageError that lists where it was looked for, ProviderError when the tracker can't be
    reached, Cancelled.
    """
    if number < 1:
        raise UsageError(f"issue numbers begin with 1, not {number}", "Give the issue's number.")
    name = f".agent-ls/issues/{number}.md"
    task = local_issue(repo, number)
    if task is not None:
        return task
    looked = [f"{name} (no such file)"]
    url = repo.remote_url()
    if url is None:
        looked.append("the issue tracker (the repository has no git remote)")
    else:
        from agent_ls.issues.remote import tracker_of

        tracker = tracker_of(url, env)
        if tracker is None:
            looked.append(
                f"the issue tracker (the remote {_without_login(url)} is neither GitHub nor GitLab)"
            )
        else:
            task = tracker.issue(number, cancel or CancelToken())
            if task is not None:
                return task
            looked.append(f"{tracker.issue_url(number)} (no such issue{tracker.hint_when_missing()})")
    raise UsageError(
        f"issue {number} was not found; looked at: {'; '.join(looked)}",
        f"Write {name}, or use --issue-file or --text.",
    )


def local_issue(repo: HasRemote, number: int) -> Task | None:
    """Issue `number` from the repository's own files, None if there is no such file. Raises UsageError."""
    name = f".agent-ls/issues/{number}.md"
    local = repo.root / name
    if number < 1 or not os.path.lexists(local):
        return None
    _refuse_link_outside(repo.root, local, name)
    return from_file(local, number, name)


def _refuse_link_outside(root: Path, local: Path, name: str) -> None:
    """A cloned repository must not be able to pass off a file of this machine as an issue."""
    real = Path(os.path.realpath(local))
    inside = real.is_relative_to(os.path.realpath(root))
    if not inside or is_secret_path(real.relative_to(os.path.realpath(root)).as_posix()):
        raise UsageError(
            f"{name} is a link to {'a file with secrets' if inside else 'a file outside the repository'}",
            "Put the issue's text there itself, or name a file with --issue-file.",
        )


def _without_login(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    host, slash, path = rest.partition("/")
    return scheme + separator + host.rpartition("@")[2] + slash + path

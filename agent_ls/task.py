"""What is asked: plain data that every front end fills and the loop reads."""

from __future__ import annotations

from attrs import frozen


@frozen
class Task:
    """One task. `number` is the issue's; `tests` are ids of tests that must pass in the end.

    `source` says where the text came from, for a person ("issue 12 of .agent-ls/issues", a URL, "--text").
    Title and body are untrusted text, already stripped of invisible characters and capped.
    """

    title: str
    body: str = ""
    source: str = ""
    number: int | None = None
    url: str | None = None
    tests: tuple[str, ...] = ()

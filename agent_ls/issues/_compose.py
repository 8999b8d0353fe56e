"""One task out of a tracker's issue and its comments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from agent_ls.issues.text import MAX_BYTES, cap, sanitise, title_of
from agent_ls.task import Task


@frozen
class Comment:
    """As the server sent it: any field may be missing or of the wrong type."""

    author: Any
    created: Any
    body: Any


def compose(
    *,
    title: Any,
    body: Any,
    comments: Sequence[Comment],
    left_out: str | None,
    number: int,
    source: str,
    url: Any,
) -> Task:
    """The task; every text is sanitised on its own, so that none can hide what follows it."""
    parts = [sanitise(body).strip() if isinstance(body, str) else ""]
    for comment in comments:
        text = sanitise(comment.body).strip() if isinstance(comment.body, str) else ""
        if text:
            author = title_of(comment.author)[:60] if isinstance(comment.author, str) else "someone"
            day = f" on {title_of(comment.created)[:10]}" if isinstance(comment.created, str) else ""
            parts.append(f"Comment by {author}{day}:\n\n{text}")
    if left_out:
        parts.append(f"[{title_of(left_out)}]")
    link = title_of(url) if isinstance(url, str) and url.startswith(("https://", "http://")) else None
    name = title_of(title) if isinstance(title, str) else ""
    text = cap("\n\n".join(part for part in parts if part), MAX_BYTES)
    return Task(name or f"Issue {number}", text, source, number, link)

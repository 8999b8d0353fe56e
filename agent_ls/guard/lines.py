"""Lines that a change added or took away, as a text sees them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from agent_ls.guard.world import World

_COMMENT = re.compile(r"^\s*(?:#(?!\[)|//(?!go:build)|\*|/\*|--\s|<!--|;)")


def text_of(world: World, path: str) -> str:
    """A file's text; "" when it isn't there."""
    data = world.tree.read(path) if path in world.all_paths else None
    return data.decode("utf-8", "replace").replace("\r\n", "\n") if data is not None else ""


def new_lines(before: str, after: str, *, comments: bool = False) -> Iterator[tuple[int, str]]:
    """(number, line) of lines of `after` that `before` has not, or has fewer times; no blank lines."""
    left = Counter(" ".join(line.split()) for line in before.splitlines())
    for number, line in enumerate(after.splitlines(), 1):
        plain = " ".join(line.split())
        if not plain or (not comments and _COMMENT.match(line)):
            continue
        if left[plain]:
            left[plain] -= 1
        else:
            yield number, line


def line_of(text: str, part: str) -> int:
    """The first line that holds `part`, else 1."""
    at = text.find(part)
    return text.count("\n", 0, at) + 1 if at >= 0 else 1

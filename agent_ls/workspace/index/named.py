"""The places that a task's text names outright: paths, stack frames, names in code, quoted messages."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from attrs import frozen

from agent_ls.workspace.index.graph import Graph, Indexed, is_test
from agent_ls.workspace.index.issue_text import Frame, Mentions
from agent_ls.workspace.index.records import Definition, Found

FEW = 6
"""Files that may mention a name which nobody defines."""
MAX_PLACES = 12
"""A name that more definitions share says too little for each of them."""


@frozen
class Place:
    """A file that the text names in some way; `score` is about 1 for a clear hint, 3 for a certain one."""

    path: str
    score: float
    reason: str
    definition: Definition | None = None


def named_places(view: Indexed, graph: Graph, found: Mentions) -> Iterator[Place]:
    """All places, a file may come several times."""
    yield from _frames(view, graph, found.frames)
    for frame in found.paths:
        paths = _matching(view, frame.path)
        for path in paths:
            yield Place(
                path, 3.0 / len(paths), f"named in the task ({frame.path})", _around(view, path, frame.line)
            )
    yield from _names(view, graph, found)
    for message in found.messages:
        yield from _message(view, message)


def _matching(view: Indexed, written: str) -> list[str]:
    """The files that a written path may mean: the longest common tail wins, at most a few."""
    wanted = [part for part in written.split("/") if part not in ("", ".", "..")]
    if not wanted:
        return []
    best: list[str] = []
    most = 0
    for info in view.files():
        parts = info.path.split("/")
        if parts[-1] != wanted[-1]:
            continue
        same = 0
        while same < min(len(parts), len(wanted)) and parts[-1 - same] == wanted[-1 - same]:
            same += 1
        if same > most:
            best, most = [], same
        if same == most:
            best.append(info.path)
    return best if len(best) <= 4 else []


def _around(view: Indexed, path: str, line: int | None) -> Definition | None:
    if line is None:
        return None
    inside = [d for d in view.outline(path) if d.line <= line <= d.end_line]
    return min(inside, key=lambda d: d.end_line - d.line, default=None)


def _frames(view: Indexed, graph: Graph, frames: Sequence[Frame]) -> Iterator[Place]:
    """The innermost frame of the project is where it broke; its callers follow."""
    known = []
    for frame in frames:
        paths = _matching(view, frame.path)
        if len(paths) == 1:
            known.append((frame, paths[0]))
    for index, (frame, path) in enumerate(reversed(known)):
        definition = _around(view, path, frame.line)
        if frame.function and (definition is None or definition.name != frame.function):
            same = [d for d in view.outline(path) if d.name == frame.function]
            definition = same[0] if same else definition
        where = f"line {frame.line}" if frame.line else "the stack"
        score = 3.0 if index == 0 else max(0.4, 1.5 / index)
        yield Place(path, score, f"in the stack trace ({where})", definition)


def _names(view: Indexed, graph: Graph, found: Mentions) -> Iterator[Place]:
    size = max(2, len(graph.paths))
    for name, weight in found.names.items():
        pieces = name.split(".")
        last = pieces[-1]
        if len(pieces) == 1 and last in found.own:
            continue
        weight *= 1.5 if last in found.imported else 1.0
        places = view.definitions(last)
        source = [place for place in places if not is_test(place.path) and place.path in graph.number]
        if source:
            yield from _defined(view, source, pieces, name, weight, size)
        elif len(last) > 3:
            yield from _mentioned(view, graph, last, weight, size)
        if len(pieces) > 1:
            yield from _module(graph, pieces, name, weight)


def _defined(
    view: Indexed, places: Sequence[Found], pieces: Sequence[str], name: str, weight: float, size: int
) -> Iterator[Place]:
    last = pieces[-1]
    fits = [_fit(place, pieces[:-1]) for place in places]
    if len(pieces) > 1 and max(fits) > 0:
        chosen = [(place, fit) for place, fit in zip(places, fits, strict=True) if fit == max(fits)]
    else:
        # "x.get": which class x is of nobody knows, so the name alone counts, and less.
        chosen = [(place, 0) for place in places]
        if len(pieces) > 1:
            weight *= 0.6
    files = {place.path for place, _ in chosen}
    if len(files) > MAX_PLACES:
        return
    rarity = math.log1p(size / max(1, len(view.files_with(last)))) / math.log1p(size)
    looks = 1.0 if re.search(r"[A-Z_]", last[1:]) or len(last) > 8 else 0.6
    score = weight * looks * rarity * (1.0 + 0.5 * (max(fit for _, fit in chosen) > 0)) / len(files) ** 0.8
    done = set()
    for place, _ in chosen:
        if place.path not in done:
            done.add(place.path)
            shown = place.definition.qualified if len(pieces) > 1 else last
            yield Place(place.path, score, f"defines `{shown}`, named in the task", place.definition)


def _fit(place: Found, before: Sequence[str]) -> int:
    """How many of the names before the last one are the definition's containers, module or packages."""
    around = {
        *(place.definition.container or "").split("."),
        *PurePosixPath(place.path).with_suffix("").parts,
    }
    return sum(name in around for name in before)


def _mentioned(view: Indexed, graph: Graph, word: str, weight: float, size: int) -> Iterator[Place]:
    """A name that nobody defines (a parameter, an option, a key): the few files that know it."""
    files = [path for path in view.files_with(word) if path in graph.number and not is_test(path)]
    if not files or len(files) > FEW:
        return
    score = 0.6 * weight / len(files) ** 0.8
    for path in sorted(files):
        yield Place(path, score, f"mentions `{word}`, as {_few(len(files))}")


def _few(count: int) -> str:
    return "no other source file does" if count == 1 else f"only {count} source files do"


def _module(graph: Graph, pieces: Sequence[str], name: str, weight: float) -> Iterator[Place]:
    """`package.module.thing` names a module by its dotted path."""
    for end in range(len(pieces), 1, -1):
        tail = "/".join(pieces[:end])
        paths = [path for path in graph.paths if _is_module(path, tail)]
        if len(paths) == 1:
            yield Place(paths[0], 0.6 * weight, f"is the module of `{name}`, named in the task")
            return


def _is_module(path: str, tail: str) -> bool:
    bare = path.rpartition(".")[0]
    bare = bare.removesuffix("/__init__").removesuffix("/index")
    return bare == tail or bare.endswith("/" + tail)


_PIECES = re.compile(r"[^\s\w.,:;!?/()=<>*+-]+|\d+|%\w|\{[^}]*\}")


def _message(view: Indexed, message: str) -> Iterator[Place]:
    """The files whose text has the message, or its longest part without values."""
    pieces = [message, *_PIECES.split(message)]
    for piece in sorted({piece.strip(" .:,;") for piece in pieces}, key=len, reverse=True):
        words = piece.split()
        for length in range(len(words), 2, -1):
            for start in range(len(words) - length + 1):
                part = " ".join(words[start : start + length])
                if len(part) < 12:
                    continue
                paths = _with_text(view, part)
                if paths and len(paths) <= 4:
                    for path, line in paths:
                        yield Place(
                            path, 2.0 / len(paths), f"has the message “{part}”", _around(view, path, line)
                        )
                    return


def _with_text(view: Indexed, part: str) -> list[tuple[str, int]]:
    words = [word for word in re.findall(r"[A-Za-z_0-9]+", part) if len(word) > 2]
    if not words:
        return []
    # The outer words may be cut in the text ("argument" of "arguments"), the inner ones not.
    files: frozenset[str] | None = None
    for word in words[1:-1] or words:
        holders = view.files_with(word)
        files = holders if files is None else files & holders
        if not files:
            return []
    found = []
    for path in sorted(files or ()):
        if is_test(path):
            continue
        data = view.text(path)
        at = data.find(part.encode())
        if at >= 0:
            found.append((path, data.count(b"\n", 0, at) + 1))
        if len(found) > 4:
            break
    return found

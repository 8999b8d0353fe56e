"""Definitions by name: exactly, then whatever the case, then by a part or an abbreviation of the name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import PurePosixPath
from typing import Literal, Protocol

from attrs import frozen

from agent_ls.errors import ToolRefused
from agent_ls.workspace.files import matching_globs
from agent_ls.workspace.index.records import FileInfo, Found
from agent_ls.workspace.paths import is_test_path

How = Literal["exact", "case", "similar", "none"]

_MAX_NAMES = 200


class DefinitionView(Protocol):
    """What a look for definitions asks of a snapshot of the index."""

    def file(self, path: str) -> FileInfo | None: ...
    def definitions(self, name: str) -> list[Found]: ...
    def names(self) -> Collection[str]: ...
    def names_like(self, fragment: str, fold: bool = True) -> list[str]: ...


@frozen
class Matches:
    """Definitions, best first, and how they match the name: "similar" is a guess. `complete` is False when
    there are more."""

    found: tuple[Found, ...]
    how: How
    complete: bool = True


def normalised(name: str) -> str:
    """A name with its containers as records have them: "Shape::area()" and "Shape#area" are "Shape.area".

    Raises ToolRefused for an empty one.
    """
    wanted = name.strip().replace("::", ".").replace("#", ".").removesuffix("()").strip(".")
    if not wanted.rsplit(".", 1)[-1]:
        raise ToolRefused("the name is empty")
    return wanted


def find_definitions(
    view: DefinitionView,
    name: str,
    *,
    kinds: Collection[str] = (),
    globs: Sequence[str] = (),
    limit: int = 100,
) -> Matches:
    """What is called `name`: "area", with containers "Shape.area", with its module "shapes.Shape.area".

    Exact names come alone; without any, names that differ in case; without these, names that contain the
    text, are abbreviated by it ("gdf" for get_deferred_fields) or differ by a typing error, best first. Files
    written by hand come before others, what isn't a test before tests. `kinds` ("class", "method", …) and
    `globs` (as for a search) narrow. Raises ToolRefused for an empty name.
    """
    wanted = normalised(name)
    last = wanted.rsplit(".", 1)[-1]

    def choose(found: Iterable[Found]) -> list[Found]:
        chosen = [item for item in found if not kinds or item.definition.kind in kinds]
        if globs and chosen:
            paths = set(matching_globs(sorted({item.path for item in chosen}), globs))
            chosen = [item for item in chosen if item.path in paths]
        return chosen

    exact = choose(item for item in view.definitions(last) if is_called(item, wanted))
    if exact:
        return _matches(_by_place(view, exact), "exact", limit)
    folded = wanted.casefold()
    alike = [other for other in view.names_like(last) if other.casefold() == last.casefold()]
    case = choose(
        item for other in alike for item in view.definitions(other) if is_called(item, folded, fold=True)
    )
    if case:
        return _matches(_by_place(view, case), "case", limit)
    similar: list[Found] = []
    if last != wanted:
        similar = _by_place(view, choose(view.definitions(last)))
    for other in _similar_names(view, last):
        if len(similar) > limit:
            break
        if other != last:
            similar += _by_place(view, choose(view.definitions(other)))
    return _matches(similar, "similar" if similar else "none", limit)


def _matches(found: Sequence[Found], how: How, limit: int) -> Matches:
    return Matches(tuple(found[:limit]), how, len(found) <= limit)


def is_called(found: Found, wanted: str, *, fold: bool = False) -> bool:
    """Is `wanted` the definition's name with some of its containers, or all of them and its module's?"""
    full = found.definition.qualified
    if "." not in wanted:
        return (found.definition.name.casefold() if fold else found.definition.name) == wanted
    bare = PurePosixPath(found.path).with_suffix("").as_posix().replace("/", ".")
    whole = f".{bare.removesuffix('.__init__').removesuffix('.index')}.{full}"
    if fold:
        full, whole = full.casefold(), whole.casefold()
    return full == wanted or whole.endswith("." + wanted)


def _by_place(view: DefinitionView, found: Iterable[Found]) -> list[Found]:
    """Files written by hand first, then what isn't a test, then what is nested least, by path and line."""

    def key(item: Found) -> tuple[bool, bool, int, str, int]:
        info = view.file(item.path)
        aside = info is not None and info.role != "source"
        depth = (item.definition.container or "").count(".") + bool(item.definition.container)
        return aside, is_test_path(item.path), depth, item.path, item.definition.line

    return sorted(found, key=key)


def _similar_names(view: DefinitionView, name: str) -> list[str]:
    """Defined names that may be meant, best first."""
    folded = name.lower()
    scored = [(_part_score(other, folded), len(other), other) for other in view.names_like(folded)]
    if len(name) > 1 and len(scored) < _MAX_NAMES:
        every = view.names()
        letters = "".join(re.escape(letter) + ".*?" for letter in folded)
        abbreviated = re.compile(letters, re.DOTALL).match
        for other in every:
            lowered = other.lower()
            if lowered[:1] == folded[:1] and folded not in lowered and abbreviated(lowered):
                humps = "".join(part[:1] for part in _PARTS.findall(other)).lower()
                scored.append((3 if humps.startswith(folded) else 4, len(other), other))
        if not scored:
            near = [other for other in every if abs(len(other) - len(name)) <= 2 and len(other) > 2]
            lowered_names = {other.lower(): other for other in near}
            for close in difflib.get_close_matches(folded, lowered_names, 10, 0.75):
                scored.append((5, len(close), lowered_names[close]))
    scored.sort()
    return [other for _score, _length, other in scored[:_MAX_NAMES]]


_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")


def _part_score(name: str, folded: str) -> int:
    """0 when the name starts with the text, 1 when one of its parts does, 2 when it contains it."""
    lowered = name.lower()
    if lowered.startswith(folded):
        return 0
    at = lowered.find(folded)
    while at > 0:
        if name[at - 1] in "_-$" or (name[at].isupper() and not name[at - 1].isupper()):
            return 1
        at = lowered.find(folded, at + 1)
    return 2

"""Uses of a name: the files that have the word are parsed again, since references are not stored.

A name is all that counts: which of several definitions with one name a use means isn't told.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal, Protocol

from attrs import field, frozen

from agent_ls.cancel import CancelToken
from agent_ls.workspace.files import matching_globs
from agent_ls.workspace.index.importers import Modules
from agent_ls.workspace.index.records import (
    Definition,
    FileInfo,
    FileTags,
    Found,
    Import,
    Reference,
    ReferenceKind,
    Use,
)
from agent_ls.workspace.index.similar import DefinitionView, find_definitions, normalised
from agent_ls.workspace.index.tags import parse_bytes, tags
from agent_ls.workspace.parsing import TooSlow
from agent_ls.workspace.paths import is_test_path

_MAX_TEXT = 400
_MAX_PARSED = 1_000_000
_CALLED = 5
_MANY_PLACES = 60
"""With more places than this in a file, one run of the query over all of it is quicker."""
_CAPTURES: tuple[tuple[str, ReferenceKind | Literal["local"]], ...] = (
    ("local", "local"),
    ("reference.call", "call"),
    ("reference.import", "import"),
    ("reference.type", "type"),
    ("reference.read", "read"),
)


class ReferenceView(DefinitionView, Protocol):
    """What a look for uses asks of a snapshot of the index."""

    def files(self) -> Sequence[FileInfo]: ...
    def imports(self, path: str) -> list[Import]: ...
    def outline(self, path: str) -> list[Definition]: ...
    def files_with(self, word: str) -> frozenset[str]: ...
    def text(self, path: str) -> bytes: ...


@frozen
class Uses:
    """Uses, by file. `complete` is False when there may be more; `note` then says why."""

    found: tuple[Use, ...]
    complete: bool = True
    note: str = ""


@frozen
class Caller:
    """A definition that calls something (`definition` None: the file calls it at its top) and the calls."""

    path: str
    definition: Definition | None
    calls: tuple[Use, ...]


@frozen
class Callee:
    """A name that a definition calls, where it does, and the definitions that are probably meant (none: not
    one of this repository, or too many share the name)."""

    name: str
    calls: tuple[Use, ...]
    definitions: tuple[Found, ...] = field(default=())


def references(
    view: ReferenceView,
    name: str,
    *,
    kinds: Collection[str] = (),
    globs: Sequence[str] = (),
    limit: int = 1000,
    seconds: float = 20.0,
    cancel: CancelToken | None = None,
) -> Uses:
    """Where `name` is used; of "Shape.area" the last part counts, and files that know Shape come first.

    Then come files written by hand, those that aren't tests, by path and line. `kinds` are kinds of
    references. Raises ToolRefused for an empty name, Cancelled.
    """
    wanted = normalised(name)
    *around, last = wanted.split(".")
    paths = _in_order(view, last, around, globs)
    deadline = time.monotonic() + seconds
    found: list[Use] = []
    slow: list[str] = []
    for path in paths:
        if cancel is not None:
            cancel.raise_if_cancelled()
        try:
            for use in _uses_in(view, path, last):
                if kinds and use.reference.kind not in kinds:
                    continue
                if len(found) == limit:
                    return Uses(tuple(found), False, f"only the first {limit} uses are shown")
                found.append(use)
        except TooSlow:
            slow.append(path)
        if time.monotonic() > deadline:
            return Uses(tuple(found), False, f"the time was up after {path}")
    if slow:
        return Uses(tuple(found), False, f"not looked into, as its syntax takes too long: {', '.join(slow)}")
    return Uses(tuple(found))


def _in_order(view: ReferenceView, last: str, around: Sequence[str], globs: Sequence[str]) -> list[str]:
    paths = sorted(files_naming(view, last))
    if globs:
        paths = matching_globs(paths, globs)
    knowing = view.files_with(around[-1]) if around else frozenset()
    infos = {path: view.file(path) for path in paths}

    def key(path: str) -> tuple[bool, bool, bool, str]:
        info = infos[path]
        return path not in knowing, info is None or info.role != "source", is_test_path(path), path

    return sorted(paths, key=key)


def files_naming(view: ReferenceView, name: str) -> frozenset[str]:
    """The files that have the words of a name ("save!" and "$scope" have one each)."""
    words = re.findall(r"[A-Za-z0-9_\u0080-\U0010ffff]+", name)
    return frozenset.intersection(*(view.files_with(word) for word in words)) if words else frozenset()


def parsed(view: ReferenceView, path: str) -> tuple[FileTags, bytes] | None:
    """A file's tags with references, and its bytes; None when it isn't parsed (no grammar, too large or slow
    to, minified)."""
    info = view.file(path)
    data = _source(view, info)
    if info is None or info.language is None or data is None:
        return None
    try:
        return tags(info.language, data), data
    except TooSlow:
        return None


def _source(view: ReferenceView, info: FileInfo | None) -> bytes | None:
    if info is None or info.language is None or info.role == "minified" or info.size > _MAX_PARSED:
        return None
    try:
        data = view.text(info.path)
    except OSError:
        return None
    return data if len(data) <= _MAX_PARSED else None


def uses_in(view: ReferenceView, path: str, name: str) -> Iterator[Use]:
    """The uses of exactly this name in one file, by line; none in one that is too slow to parse."""
    try:
        yield from _uses_in(view, path, name)
    except TooSlow:
        return


def _uses_in(view: ReferenceView, path: str, name: str) -> Iterator[Use]:
    info = view.file(path)
    data = _source(view, info)
    if info is None or info.language is None or data is None or name.encode() not in data:
        return
    every = references_to(info.language, data, name)
    if every:
        outline = view.outline(path)
        defined = {(it.name_line, it.column) for it in outline if it.name == name}
        found = [it for it in every if (it.line, it.column) not in defined]
        yield from _uses(path, found, outline, data)


def references_to(language: str, data: bytes, name: str) -> list[Reference]:
    """The references of one name in a source text, as `tags` has them (the names of definitions may be among
    them): the query is run around the places that have the text only. Raises TooSlow."""
    from tree_sitter import QueryCursor

    from agent_ls.workspace.index._tags_query import tag_queries
    from agent_ls.workspace.index._tags_text import Lines

    query = tag_queries(language).references
    places = [match.start() for match in re.finditer(re.escape(name.encode()), data)]
    if query is None or not places:
        return []
    if len(places) > _MANY_PLACES:
        return [it for it in tags(language, data).references if it.name == name]
    root = parse_bytes(language, data).root_node
    lines = Lines(data)
    size = len(name.encode())
    found: list[Reference] = []
    for start in places:
        cursor = QueryCursor(query)
        cursor.set_byte_range(start, start + size)
        captured = cursor.captures(root)
        kind = next(
            (
                kind
                for capture, kind in _CAPTURES
                if any(node.byte_range == (start, start + size) for node in captured.get(capture, ()))
            ),
            None,
        )
        if kind is not None and kind != "local":
            line, column = lines.place(start)
            found.append(Reference(name, kind, line, column, column + len(name)))
    return found


def _uses(
    path: str, references: Iterable[Reference], definitions: Sequence[Definition], data: bytes
) -> Iterator[Use]:
    lines: list[bytes] | None = None
    for reference in references:
        lines = data.split(b"\n") if lines is None else lines
        line = lines[reference.line - 1] if reference.line <= len(lines) else b""
        inner = innermost(definitions, reference.line)
        yield Use(
            path,
            reference,
            line.decode("utf-8", "replace").rstrip("\r")[:_MAX_TEXT],
            inner.qualified if inner is not None else None,
        )


def innermost(definitions: Iterable[Definition], line: int) -> Definition | None:
    """The smallest definition around a line, values of one line left out."""
    around = [
        it
        for it in definitions
        if it.line <= line <= it.end_line and (it.kind not in _VALUES or it.line < it.end_line)
    ]
    return min(around, key=lambda it: (it.end_line - it.line, -it.column), default=None)


_VALUES = frozenset({"variable", "constant", "field", "property", "pair"})


def callers(
    view: ReferenceView,
    name: str,
    *,
    globs: Sequence[str] = (),
    limit: int = 1000,
    seconds: float = 20.0,
    cancel: CancelToken | None = None,
) -> tuple[list[Caller], Uses]:
    """The definitions that call `name`, in the order of `references`, and these calls."""
    calls = references(view, name, kinds=("call",), globs=globs, limit=limit, seconds=seconds, cancel=cancel)
    grouped: dict[tuple[str, str | None, int], list[Use]] = {}
    around: dict[tuple[str, str | None, int], Definition | None] = {}
    outlines: dict[str, Sequence[Definition]] = {}
    for use in calls.found:
        if use.path not in outlines:
            outlines[use.path] = view.outline(use.path)
        inner = innermost(outlines[use.path], use.reference.line)
        key = (use.path, use.inside, inner.line if inner is not None else 0)
        grouped.setdefault(key, []).append(use)
        around[key] = inner
    return [Caller(key[0], around[key], tuple(uses)) for key, uses in grouped.items()], calls


def callees(view: ReferenceView, name: str, *, globs: Sequence[str] = ()) -> list[tuple[Found, list[Callee]]]:
    """For each definition called `name`: what its body calls, in order of the first call, each with the
    definitions that are probably meant: those in the same class or file, then those that the file imports,
    then the only ones there are."""
    matches = find_definitions(view, name, globs=globs, limit=20)
    if matches.how == "similar":
        return []
    modules: Modules | None = None
    answer = []
    for found in matches.found:
        if found.definition.kind in _VALUES:
            continue
        known = parsed(view, found.path)
        if known is None:
            continue
        modules = modules or Modules(info.path for info in view.files())
        answer.append((found, _called_in(view, modules, found, *known)))
    return answer


def _called_in(
    view: ReferenceView, modules: Modules, found: Found, known: FileTags, data: bytes
) -> list[Callee]:
    inside = found.definition
    calls: dict[str, list[Reference]] = {}
    for reference in known.references:
        if reference.kind == "call" and inside.name_line <= reference.line <= inside.end_line:
            calls.setdefault(reference.name, []).append(reference)
    imported = {
        name: modules.resolve(found.path, known.language, it) for it in known.imports for name in it.names
    }
    every = {path for it in known.imports for path in modules.resolve(found.path, known.language, it)}
    callees = []
    for name, uses in calls.items():
        meant = _meant(view.definitions(name), found, set(imported.get(name, ())), every)
        callees.append(Callee(name, tuple(_uses(found.path, uses, known.definitions, data)), tuple(meant)))
    return callees


def _meant(
    candidates: Sequence[Found], caller: Found, from_import: Collection[str], imported: Collection[str]
) -> list[Found]:
    """The closest of the definitions, if these are few."""

    def distance(it: Found) -> int:
        if it.path == caller.path:
            same = it.definition.container in (caller.definition.container, caller.definition.qualified)
            return 0 if same else 2
        if it.path in from_import:
            return 1
        return 3 if it.path in imported else 4

    callable_ones = [it for it in candidates if it.definition.kind not in _VALUES]
    nearest = min(map(distance, callable_ones), default=0)
    closest = [it for it in callable_ones if distance(it) == nearest]
    return closest if len(closest) <= _CALLED else []

"""The definition-reference graph of a repository: an edge from each file that mentions a name to each file
that defines it.

Weights say how much a mention tells: a rare, long, composed name that one file defines tells a lot, `get`
tells nothing. The idea (PageRank over such a graph) is that of aider's repository map; the weights are ours.
"""

from __future__ import annotations

import math
import re
import threading
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import PurePosixPath
from typing import Protocol, runtime_checkable
from weakref import WeakKeyDictionary

from attrs import field, frozen

from agent_ls.workspace.index._collector import paused
from agent_ls.workspace.index.pagerank import Incoming, Links, pagerank
from agent_ls.workspace.index.records import Definition, FileInfo, Found, Import
from agent_ls.workspace.index.subwords import parts, stem

MAX_DEFINERS = 12
"""A name that more files define points nowhere."""
COMMON = 0.25
"""A name in a larger share of the files (of a repository of some size) is a plain word."""
FEW_FILES = 40
"""In repositories up to this size no name counts as common."""


class Indexed(Protocol):
    """What the overview and the context need of a snapshot of the index."""

    @property
    def version(self) -> int: ...
    def files(self) -> Sequence[FileInfo]: ...
    def definitions(self, name: str) -> list[Found]: ...
    def names(self) -> Collection[str]: ...
    def outline(self, path: str) -> list[Definition]: ...
    def imports(self, path: str) -> list[Import]: ...
    def words(self, fragment: str) -> list[str]: ...
    def files_with(self, word: str) -> frozenset[str]: ...
    def postings(self, words: Iterable[str]) -> Iterator[tuple[str, Sequence[str]]]: ...
    def text(self, path: str) -> bytes: ...


Crossings = tuple[Mapping[int, Sequence[str]], Iterable[tuple[str, Sequence[int], Sequence[int]]]]
"""(number -> the paths of a content; name, numbers of the contents that define and that mention it)"""


@runtime_checkable
class HasCrossings(Protocol):
    """A snapshot that can list all names with their definers and mentions in one go."""

    def crossings(self) -> Crossings: ...


@frozen(eq=False)
class Name:
    """A defined name: the files (numbers) that define it, how many mention it, what one mention weighs."""

    definers: tuple[int, ...]
    mentions: int
    weight: float


@frozen(eq=False, slots=False)
class Graph:
    """The graph of one snapshot; nodes are numbered as `paths`."""

    paths: tuple[str, ...]
    number: Mapping[str, int]
    names: Mapping[str, Name]
    incoming: Incoming = field(repr=False)
    links: Links
    tests: frozenset[int]

    @cached_property
    def ranks(self) -> Sequence[float]:
        """The ranks of all files, without any focus."""
        return pagerank(self.links)

    @cached_property
    def path_stems(self) -> Mapping[str, frozenset[str]]:
        """Each path's words, as stems."""
        return {path: frozenset(stem(part) for part in parts(path.rpartition(".")[0])) for path in self.paths}

    @cached_property
    def path_frequency(self) -> Mapping[str, int]:
        """In how many paths each stem stands."""
        return Counter(term for stems in self.path_stems.values() for term in stems)


_TEST_FOLDERS = frozenset({"test", "tests", "testing", "__tests__", "spec", "specs", "testsuite", "test-d"})
_TEST_NAME = re.compile(
    r"^(test_.*|.*_test|.*_tests|conftest|test|tests)\.\w+$|\.(test|spec)\.\w+$"
    r"|[a-z0-9](Test|Tests|TestCase|Spec)\.\w+$"
)


def is_test(path: str) -> bool:
    """Is it a test or a test's helper, by the usual naming in all languages?"""
    pure = PurePosixPath(path)
    return any(part.casefold() in _TEST_FOLDERS for part in pure.parts[:-1]) or bool(
        _TEST_NAME.search(pure.name)
    )


_ASIDE_FOLDERS = {
    *("doc", "docs", "example", "examples", "samples", "demo", "demos", "benchmark", "benchmarks", "bench"),
    *("website", "changelog", "news", "fixtures", "vendor", "third_party", "_vendor", "node_modules", "dist"),
    *("scripts", "tools", ".github", "ci"),
}


def is_aside(path: str) -> bool:
    """Does it lie in a folder beside the product: documentation, examples, scripts, vendored code?"""
    return any(part.casefold() in _ASIDE_FOLDERS for part in PurePosixPath(path).parts[:-1])


_COMPOSED = re.compile(r"[a-z0-9][A-Z]|[A-Za-z0-9]_[A-Za-z0-9]")


def style_weight(name: str) -> float:
    """How much a name tells by its looks: short, plain and private ones tell less."""
    weight = 1.0
    if _COMPOSED.search(name) and len(name) >= 6:
        weight *= 3.0
    elif len(name) >= 10:
        weight *= 1.5
    elif len(name) <= 3:
        weight *= 0.15
    elif name.islower():
        weight *= 0.6
    if name.startswith("_"):
        weight *= 0.3 if not name.startswith("__") else 0.1
    return weight


_graphs: WeakKeyDictionary[object, tuple[int, Graph]] = WeakKeyDictionary()
_lock = threading.Lock()


def graph_of(view: Indexed) -> Graph:
    """The graph of a snapshot; the last one of each index is kept for as long as the index lives."""
    source = getattr(view, "source", view)
    with _lock:
        known = _graphs.get(source)
    if known is not None and known[0] == view.version:
        return known[1]
    with paused():
        graph = build(view)
    with _lock:
        _graphs[source] = (view.version, graph)
    return graph


def build(view: Indexed) -> Graph:
    """Build the graph from the index's names and words. Generated and minified files are left out."""
    paths = tuple(sorted(info.path for info in view.files() if info.role == "source" and info.language))
    number = {path: index for index, path in enumerate(paths)}
    tests = frozenset(index for index, path in enumerate(paths) if is_test(path))
    size = len(paths)
    limit = size if size <= FEW_FILES else max(FEW_FILES, int(size * COMMON))
    held, crossings = view.crossings() if isinstance(view, HasCrossings) else _crossings(view)
    # A content that stands in several files counts as the first of them.
    node = {
        key: min(nodes)
        for key, known in held.items()
        if (nodes := [number[path] for path in known if path in number])
    }
    get = node.get
    rows: list[dict[int, float]] = [{} for _ in paths]
    names: dict[str, Name] = {}
    for name, definers, mentions in crossings:
        where = {get(key, -1) for key in definers}
        where.discard(-1)
        if not where or len(where) > MAX_DEFINERS or len(name) < 2:
            continue
        sources = [source for key in mentions if (source := get(key, -1)) >= 0]
        if len(sources) > limit:
            continue
        weight = style_weight(name) * math.log1p(size / (len(sources) or 1)) / len(where) ** 1.5
        names[name] = Name(tuple(sorted(where)), len(sources), weight)
        if len(sources) < 2 and where.issuperset(sources):
            continue
        for target in where:
            row = rows[target]
            # A name that a test defines says nothing of the product.
            share = weight * 0.2 if target in tests else weight
            for source in sources:
                row[source] = row.get(source, 0.0) + share
            row.pop(target, None)
    incoming = [(tuple(row), array("d", row.values())) for row in rows]
    links = Links(incoming)
    return Graph(paths, number, names, incoming, links, tests)


def _crossings(view: Indexed) -> Crossings:
    """The same, name by name."""
    number = {info.path: index for index, info in enumerate(view.files())}
    definers = {name: [number[found.path] for found in view.definitions(name)] for name in view.names()}
    mentions = {name: [number[path] for path in files] for name, files in view.postings(definers)}
    held = {index: [path] for path, index in number.items()}
    return held, [(name, places, mentions.get(name, [])) for name, places in definers.items()]

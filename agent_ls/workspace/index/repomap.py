"""The ranked overview of a repository: its most important files with their most important definitions, as an
outline that keeps to a token budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from attrs import field, frozen

from agent_ls.workspace.index.graph import Graph, Indexed, graph_of, is_aside, is_test
from agent_ls.workspace.index.pagerank import pagerank
from agent_ls.workspace.index.records import Definition

CountTokens = Callable[[str], int]

CHARS_PER_TOKEN = 3.2
"""Rather too few than too many, so that the budget holds."""
_MAX_LINE = 110
_MENTIONED = 10.0
"""A name of the task's words pulls so many times as strongly."""
_ASKED = 0.3
"""Share of the ranks that goes to the focus itself."""
_PER_FILE = 40
_KINDS = {
    **dict.fromkeys(("class", "interface", "struct", "trait", "enum"), 1.5),
    **dict.fromkeys(("function", "method", "constructor", "macro", "type"), 1.0),
}
"""Fields and constants tell less of what a file is for."""


def estimate(text: str) -> int:
    """Tokens of `text`, where no model's own count is at hand."""
    return math.ceil(len(text.encode("utf-8", "replace")) / CHARS_PER_TOKEN)


@frozen
class Focus:
    """What the overview is for: names or words of the task, files that are open or that it names, files of
    failing tests, and recently changed files with a weight from 0 to 1 each. Unknown ones are ignored."""

    names: frozenset[str] = frozenset()
    files: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    recent: Mapping[str, float] = field(factory=dict)


NO_FOCUS = Focus()


@frozen
class RepoMap:
    """`text` for a model or a person; `files` all ranked files as (path, rank), best first, ranks sum to 1;
    `shown` the paths in the text."""

    text: str
    files: tuple[tuple[str, float], ...] = field(repr=False)
    shown: tuple[str, ...] = ()
    tokens: int = 0


def repo_map(
    view: Indexed, tokens: int, focus: Focus = NO_FOCUS, *, count: CountTokens = estimate
) -> RepoMap:
    """The overview of a snapshot in at most `tokens` tokens as `count` measures them ("" if nothing fits).

    Files of the focus themselves are listed like others. Tests and what lies beside the product
    (documentation, examples, scripts) weigh less than the product, unless the focus names them.
    """
    graph = graph_of(view)
    ranks = file_ranks(graph, focus)
    order = sorted(range(len(graph.paths)), key=lambda node: (-ranks[node], graph.paths[node]))
    files = tuple((graph.paths[node], ranks[node]) for node in order)
    if tokens <= 0 or not files:
        return RepoMap("", files)
    # A header line takes some tokens at least, so more files can't be shown.
    most = max(1, tokens // 4)
    blocks: list[_Block] = []
    heads: dict[tuple[str, str], str] = {}
    for path, rank in files[:most]:
        outline = view.outline(path)
        heads.update(((path, definition.qualified), _head(definition)) for definition in outline)
        shares = _shares(outline, graph, focus)
        blocks.append((rank, path, None))
        blocks += [(rank * share, path, definition) for definition, share in shares]
        if len(blocks) > tokens:
            break
    blocks.sort(key=lambda block: -block[0])
    return _fitting(blocks, heads, tokens, count, files)


def file_ranks(graph: Graph, focus: Focus = NO_FOCUS) -> list[float]:
    """Each node's rank under the focus; they sum to 1."""
    teleport: dict[int, float] = {}

    def point(path: str, weight: float) -> None:
        node = graph.number.get(path)
        if node is not None:
            teleport[node] = teleport.get(node, 0.0) + weight

    for path in focus.files:
        point(path, 10.0)
    for path in focus.tests:
        point(path, 8.0)
    extra = _mentioned(graph, focus.names, teleport)
    asked = {node: weight / sum(teleport.values()) for node, weight in teleport.items()}
    for path, weight in focus.recent.items():
        point(path, 2.0 * weight)
    if teleport:
        # The rest of the surfers start anywhere, so that the whole stays in sight.
        anywhere = 0.2 * sum(teleport.values()) / len(graph.paths)
        teleport = {node: teleport.get(node, 0.0) + anywhere for node in range(len(graph.paths))}
        ranks = pagerank(graph.links, teleport, extra=extra)
        if asked:
            # What is asked for comes before what it builds on.
            ranks = [(1 - _ASKED) * rank + _ASKED * asked.get(node, 0.0) for node, rank in enumerate(ranks)]
    else:
        ranks = list(graph.ranks)
    named = {*focus.files, *focus.tests}
    for node, path in enumerate(graph.paths):
        if path in named:
            continue
        if is_test(path):
            ranks[node] *= 0.15
        elif is_aside(path):
            ranks[node] *= 0.3
    total = sum(ranks)
    return [rank / total for rank in ranks]


def _mentioned(graph: Graph, names: Iterable[str], teleport: dict[int, float]) -> dict[int, dict[int, float]]:
    """Edges to the definers of the focus's names, and the surfers that start there."""
    extra: dict[int, dict[int, float]] = {}
    for name in sorted(set(names)):
        entry = graph.names.get(name.rpartition(".")[2])
        if entry is None:
            continue
        for target in entry.definers:
            teleport[target] = teleport.get(target, 0.0) + min(4.0, entry.weight) / len(entry.definers)
            for source in graph.incoming[target][0][:200]:
                row = extra.setdefault(target, {})
                row[source] = row.get(source, 0.0) + _MENTIONED * entry.weight / len(entry.definers)
    return extra


_Block = tuple[float, str, Definition | None]
"""What a block is worth, the file, and its definition (None: the file's own line)."""


def _shares(outline: Sequence[Definition], graph: Graph, focus: Focus) -> list[tuple[Definition, float]]:
    """The definitions of a file, the most important first, with their share of the file's rank (below 1)."""
    weights: dict[Definition, float] = {}
    for definition in outline:
        entry = graph.names.get(definition.name)
        if definition.name.startswith("__"):
            continue
        weight = entry.weight * math.sqrt(entry.mentions) if entry else 0.05
        weight *= _KINDS.get(definition.kind, 0.2)
        if definition.name in focus.names or definition.qualified in focus.names:
            weight *= _MENTIONED
        weights[definition] = weight
    best = sorted(weights, key=lambda definition: (-weights[definition], definition.line))[:_PER_FILE]
    total = sum(weights.values()) or 1.0
    return [(definition, weights[definition] / total) for definition in best]


def _fitting(
    blocks: Sequence[_Block],
    heads: Mapping[tuple[str, str], str],
    tokens: int,
    count: CountTokens,
    files: tuple[tuple[str, float], ...],
) -> RepoMap:
    """As many of the best blocks as the budget holds, by bisection over their number."""
    low, high = 0, len(blocks)
    best = ("", 0, 0)
    while low < high:
        # An outline line takes about twelve tokens; the first guess is the likely answer.
        middle = (low + high + 1) // 2 if best[1] or high < len(blocks) else min(high, max(1, tokens // 12))
        text = _render(blocks[:middle], heads)
        used = count(text)
        if used <= tokens:
            low, best = middle, (text, used, middle)
        else:
            high = middle - 1
    text, used, number = best
    shown = tuple(dict.fromkeys(path for _, path, _ in blocks[:number]))
    return RepoMap(text, files, shown, used)


def _render(blocks: Sequence[_Block], heads: Mapping[tuple[str, str], str]) -> str:
    chosen: dict[str, list[Definition]] = {}
    for _, path, definition in blocks:
        chosen.setdefault(path, [])
        if definition is not None:
            chosen[path].append(definition)
    lines: list[str] = []
    for path, definitions in chosen.items():
        lines.append(f"{path}:" if definitions else path)
        open_containers: list[str] = []
        for definition in sorted(definitions, key=lambda d: (d.line, d.column)):
            containers = definition.container.split(".") if definition.container else []
            shared = 0
            while (
                shared < min(len(containers), len(open_containers))
                and containers[shared] == open_containers[shared]
            ):
                shared += 1
            for depth in range(shared, len(containers)):
                around = ".".join(containers[: depth + 1])
                lines.append("  " * (depth + 1) + heads.get((path, around), around))
            lines.append("  " * (len(containers) + 1) + _head(definition))
            open_containers = [*containers, definition.name]
    return "\n".join(lines) + "\n" if lines else ""


def _head(definition: Definition) -> str:
    text = definition.signature or f"{definition.kind} {definition.name}"
    return text if len(text) <= _MAX_LINE else text[: _MAX_LINE - 1] + "…"

"""Personalised PageRank on a weighted, directed graph, without a numeric library.

Brin and Page, "The anatomy of a large-scale hypertextual web search engine" (1998); the teleport vector after
Haveliwala, "Topic-sensitive PageRank" (2002).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter, mul, sub
from typing import Any

DAMPING = 0.85
TOLERANCE = 1e-4
"""Sum of all changes in one round at which the ranks count as settled (they sum to 1)."""
ROUNDS = 40

Incoming = Sequence[tuple[Sequence[int], Sequence[float]]]
"""For each node the nodes that point at it and the edges' weights."""


class Links:
    """The incoming edges of a graph, made ready for repeated ranking.

    `incoming` has one entry a node: (sources, weights), weights above 0, no source twice. `out` is the sum of
    the weights that leave each node.
    """

    __slots__ = ("out", "rows", "size")

    def __init__(self, incoming: Incoming) -> None:
        self.size = len(incoming)
        self.out = [0.0] * self.size
        self.rows: list[tuple[int, Any, Sequence[float]]] = []
        for node, (sources, weights) in enumerate(incoming):
            for source, weight in zip(sources, weights, strict=True):
                self.out[source] += weight
            if sources:
                # itemgetter gathers in C; with one index it returns the item itself, so that is doubled.
                indices = sources if len(sources) > 1 else (sources[0], sources[0])
                self.rows.append((node, itemgetter(*indices), weights))


def pagerank(
    links: Links,
    teleport: Mapping[int, float] | None = None,
    *,
    extra: Mapping[int, Mapping[int, float]] | None = None,
    start: Sequence[float] | None = None,
    damping: float = DAMPING,
) -> list[float]:
    """Each node's rank; the ranks sum to 1 ([] for an empty graph).

    `teleport` says where the random surfer starts anew (node -> weight, any scale; None or all zero:
    anywhere). `extra` are further edges, target -> source -> weight, added to those of `links`. `start` is a
    guess to begin from, such as another teleport's ranks. A node without outgoing edges leads to the
    teleport.
    """
    size = links.size
    if not size:
        return []
    total = sum(teleport.values()) if teleport else 0.0
    if teleport and total > 0:
        base = [0.0] * size
        for node, weight in teleport.items():
            base[node] = weight / total
    else:
        base = [1.0 / size] * size
    out = links.out
    if extra:
        out = list(out)
        for sources in extra.values():
            for source, weight in sources.items():
                out[source] += weight
    scale = [damping / weight if weight > 0 else 0.0 for weight in out]
    dead = [node for node, weight in enumerate(out) if weight <= 0]
    rank = list(start) if start is not None and len(start) == size else base
    for _ in range(ROUNDS):
        flow = list(map(mul, rank, scale))
        jump = 1.0 - damping + damping * sum(rank[node] for node in dead)
        new = [jump * share for share in base]
        for node, gather, weights in links.rows:
            new[node] += sum(map(mul, gather(flow), weights))
        if extra:
            for node, sources in extra.items():
                new[node] += sum(flow[source] * weight for source, weight in sources.items())
        change = sum(map(abs, map(sub, new, rank)))
        rank = new
        if change < TOLERANCE:
            break
    total = sum(rank)
    return [share / total for share in rank]

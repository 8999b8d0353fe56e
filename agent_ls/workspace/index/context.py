"""The files and symbols to read for a task, each with the reasons why, from the task's text alone.

What the text names outright (paths, stack frames, names in code, quoted messages) counts most; its words are
compared with each file and its definitions (BM25: Robertson and Zaragoza, "The probabilistic relevance
framework", 2009); what is found spreads over the definition-reference graph (personalised PageRank).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from attrs import define, field, frozen

from agent_ls.workspace.index.graph import Graph, Indexed, graph_of, is_aside, is_test
from agent_ls.workspace.index.issue_text import mentions
from agent_ls.workspace.index.lexical import Lexical, Match, terms_of
from agent_ls.workspace.index.named import Place, named_places
from agent_ls.workspace.index.pagerank import pagerank
from agent_ls.workspace.index.records import Definition

MAX_REASONS = 4
_DATA = (".json", ".yaml", ".yml", ".toml", ".css", ".html", ".d.ts", ".d.mts", ".d.cts", ".pyi")
"""Data and declarations: what is wrong is seldom wrong there."""
MAX_SYMBOLS = 4


@frozen
class Weights:
    """How much each kind of evidence counts; found on other projects' fixes than those it is measured on."""

    words: float = 1.0
    passage: float = 1.0
    path: float = 0.5
    name: float = 0.5
    spread: float = 0.35
    prior: float = 0.05
    recent: float = 0.1
    test: float = 0.25
    aside: float = 0.4
    data: float = 0.5
    text: float = 0.15


DEFAULT = Weights()


@frozen
class Symbol:
    """A definition worth reading in a candidate file."""

    name: str
    kind: str
    line: int
    end_line: int
    signature: str = ""


@frozen
class Candidate:
    """A file to read. `score` compares within one answer only; `reasons` are for people, best first."""

    path: str
    score: float
    reasons: tuple[str, ...]
    symbols: tuple[Symbol, ...] = ()


@define
class _Evidence:
    """What speaks for one file."""

    score: float = 0.0
    reasons: list[tuple[float, str]] = field(factory=list)
    symbols: dict[Definition, float] = field(factory=dict)

    def add(
        self, score: float, reason: str, definition: Definition | None = None, *, telling: float = 1.0
    ) -> None:
        """`telling`: how much a reason says to a person, against what it weighs."""
        self.score += score
        self.reasons.append((score * telling, reason))
        if definition is not None:
            self.symbols[definition] = max(self.symbols.get(definition, 0.0), score)


def context(
    view: Indexed,
    text: str,
    *,
    limit: int = 10,
    recent: Mapping[str, float] | None = None,
    weights: Weights = DEFAULT,
) -> list[Candidate]:
    """The files to read for the task that `text` describes, best first, at most `limit`.

    `recent` gives recently changed files with a weight from 0 to 1 (see `recency`). Tests, documentation and
    examples come after the sources that they are about, unless nothing else matches. An empty text gives [].
    """
    graph, places, matches = gather(view, text)
    return weigh(graph, places, matches, limit=limit, recent=recent, weights=weights)


def gather(view: Indexed, text: str) -> tuple[Graph, list[Place], list[Match]]:
    """What the index has to say to a text, before it is weighed."""
    found = mentions(text)
    graph = graph_of(view)
    lexical = Lexical(view, graph, found.words, found.forms)
    return graph, list(named_places(view, graph, found)), lexical.best()


def weigh(
    graph: Graph,
    places: Sequence[Place],
    matches: Sequence[Match],
    *,
    limit: int,
    recent: Mapping[str, float] | None = None,
    weights: Weights = DEFAULT,
) -> list[Candidate]:
    """The candidates that the gathered evidence speaks for; see `context`."""
    evidence: dict[str, _Evidence] = defaultdict(_Evidence)
    for place in places:
        evidence[place.path].add(weights.name * place.score, place.reason, place.definition, telling=3.0)
    _lexical(matches, evidence, weights)
    _spread(graph, evidence, weights)
    for path, share in (recent or {}).items():
        if path in evidence and evidence[path].score > 0:
            evidence[path].add(weights.recent * share, "changed recently")
    ranked = []
    for path, item in evidence.items():
        score = item.score * _standing(graph, path, weights)
        if score > 0:
            ranked.append((score, path))
    ranked.sort(key=lambda entry: (-entry[0], entry[1]))
    return [_candidate(path, score, evidence[path]) for score, path in ranked[:limit]]


def _standing(graph: Graph, path: str, weights: Weights) -> float:
    """The factor for what kind of file it is."""
    if path not in graph.number:
        return weights.text
    if is_test(path):
        return weights.test
    if path.endswith(_DATA):
        return weights.data
    return weights.aside if is_aside(path) else 1.0


def _lexical(matches: Sequence[Match], evidence: dict[str, _Evidence], weights: Weights) -> None:
    top = max((match.score for match in matches), default=0.0)
    top_path = max((match.in_path for match in matches), default=0.0)
    top_passage = max((match.passage for match in matches), default=0.0)
    for match in matches:
        score = weights.words * match.score / top if top else 0.0
        told = terms_of(match)
        evidence[match.path].add(score, f"has the task's words {told}", telling=0.5)
        if match.in_path and top_path:
            evidence[match.path].add(
                weights.path * match.in_path / top_path, "its name is among the task's words"
            )
        if match.definition is not None and top_passage:
            score = weights.passage * match.passage / top_passage
            name = match.definition.qualified
            evidence[match.path].add(
                score, f"`{name}` is about {terms_of(match, inside=True)}", match.definition
            )
        for definition, share in match.others:
            if top_passage:
                evidence[match.path].symbols.setdefault(
                    definition, weights.passage * share / top_passage * 0.8
                )


def _spread(graph: Graph, evidence: dict[str, _Evidence], weights: Weights) -> None:
    """Let the files that the evidence names vouch for those whose names they use."""
    best = sorted(
        ((item.score, path) for path, item in evidence.items() if path in graph.number and item.score > 0),
        reverse=True,
    )[:30]
    if not best:
        return
    teleport = {
        graph.number[path]: (score / best[0][0]) ** 2 * (0.3 if is_test(path) else 1.0)
        for score, path in best
    }
    ranks = pagerank(graph.links, teleport, start=graph.ranks, damping=0.5)
    # What only starts at a file, or comes back from files that use nothing, is no vote for it.
    lost = sum(rank for node, rank in enumerate(ranks) if graph.links.out[node] <= 0)
    jump = (1.0 - 0.5 + 0.5 * lost) / sum(teleport.values())
    flow = [max(0.0, rank - jump * teleport.get(node, 0.0)) for node, rank in enumerate(ranks)]
    top = max(flow)
    highest = max(graph.ranks)
    if top <= 1e-4:
        return
    for node, share in enumerate(flow):
        if share < 0.02 * top:
            continue
        path = graph.paths[node]
        users = _users(graph, node, teleport, path)
        score = weights.spread * (share / top) ** 0.5
        reason = "used by " + " and ".join(users) if users else "what fits the task builds on it, over others"
        evidence[path].add(score, reason)
    for path, item in evidence.items():
        if path in graph.number and item.score > 0:
            item.score += weights.prior * math.sqrt(graph.ranks[graph.number[path]] / highest)


def _users(graph: Graph, node: int, teleport: Mapping[int, float], path: str) -> list[str]:
    sources, weights = graph.incoming[node]
    votes = [
        (teleport[source] * weight / graph.links.out[source], source)
        for source, weight in zip(sources, weights, strict=True)
        if source in teleport
    ]
    votes = [vote for vote in votes if vote[1] not in graph.tests] or votes
    return [graph.paths[source] for _, source in sorted(votes, reverse=True)[:2]]


def _candidate(path: str, score: float, item: _Evidence) -> Candidate:
    reasons = [text for share, text in sorted(item.reasons, key=lambda reason: -reason[0]) if share > 0]
    symbols = sorted(item.symbols, key=lambda definition: (-item.symbols[definition], definition.line))
    return Candidate(
        path,
        round(score, 4),
        tuple(dict.fromkeys(reasons))[:MAX_REASONS],
        tuple(Symbol(d.qualified, d.kind, d.line, d.end_line, d.signature) for d in symbols[:MAX_SYMBOLS]),
    )

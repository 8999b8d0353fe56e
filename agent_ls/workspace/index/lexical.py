"""How well the words of a task fit each file and the definitions in it (BM25 over identifiers' parts)."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from attrs import field, frozen

from agent_ls.workspace.index.graph import Graph, Indexed, is_aside, is_test
from agent_ls.workspace.index.records import Definition
from agent_ls.workspace.index.subwords import parts, stem

READ = 150
"""So many of the most promising files are read; the others are judged by the index alone."""
LOOKED_INTO = 60
"""So many of the best of them are looked into, definition by definition."""
MAX_FORMS = 400
"""Words of the dictionary that one term may stand for."""
MAX_BYTES = 1_000_000
K1, B = 1.2, 0.6
IN_NAME, IN_PATH = 3.0, 4.0
"""A term in a definition's name, or in the path, counts as so many in the text."""
_WORD = re.compile(r"[^\W\d]\w*")
_CALLABLE = frozenset({"function", "method", "constructor", "macro"})


@frozen
class Match:
    """One file's fit. `score` is that of the whole file, `passage` that of its best definition, `in_path`
    that of its name and folders; `terms` and
    `inside` are the matching terms of the two, the most telling first; `others` further definitions."""

    path: str
    score: float
    terms: tuple[str, ...]
    passage: float = 0.0
    definition: Definition | None = None
    inside: tuple[str, ...] = ()
    others: tuple[tuple[Definition, float], ...] = ()
    in_path: float = 0.0
    forms: Mapping[str, str] = field(factory=dict, repr=False, eq=False)


@frozen
class _File:
    """A file that was read: its fit, its terms (the most telling first), the words that hold them."""

    path: str
    score: float
    terms: tuple[str, ...]
    text: str
    hits: Mapping[str, tuple[str, ...]]


def terms_of(match: Match, *, inside: bool = False, limit: int = 4) -> str:
    """The most telling terms for people: “rollover”, “suffix”."""
    terms = match.inside if inside else match.terms
    return ", ".join(f"“{match.forms.get(term, term)}”" for term in terms[:limit])


class Lexical:
    """The words of one task (stem -> weight) against one snapshot."""

    def __init__(
        self, view: Indexed, graph: Graph, words: Mapping[str, float], forms: Mapping[str, str]
    ) -> None:
        self._view = view
        self._graph = graph
        self._forms = forms
        self._known: dict[str, tuple[str, ...]] = {}
        self._idf: dict[str, float] = {}
        self._holders: dict[str, set[str]] = {}
        self._weights = {term: math.sqrt(weight) for term, weight in words.items()}
        self._in_names = self._names(words)
        size = max(1, len(graph.paths))
        for term, weight in words.items():
            holders = self._find(term)
            if holders:
                idf = math.log1p((size - len(holders) + 0.5) / (len(holders) + 0.5))
                self._idf[term] = max(idf, 0.05) * math.sqrt(weight)
                self._holders[term] = holders

    def _find(self, term: str) -> set[str]:
        """The files in which the term stands in some form, also as a part of an identifier."""
        forms = [word for word in self._view.words(term) if any(stem(part) == term for part in parts(word))]
        forms.sort(key=len)
        known = self._graph.number
        return {
            path for _, paths in self._view.postings(forms[:MAX_FORMS]) for path in paths if path in known
        } | set(self._in_path(term))

    def _in_path(self, term: str) -> Iterator[str]:
        for path, stems in self._graph.path_stems.items():
            if term in stems:
                yield path

    def _names(self, words: Mapping[str, float]) -> dict[str, Counter[str]]:
        """File -> how often each term stands in the names that it defines (only once a name)."""
        found: dict[str, Counter[str]] = defaultdict(Counter)
        for name, entry in self._graph.names.items():
            for term in {stem(part) for part in parts(name)}:
                if term in words:
                    for node in entry.definers:
                        found[self._graph.paths[node]][term] += 1
        return found

    def best(self) -> list[Match]:
        """The files that fit, best first."""
        rough: dict[str, float] = defaultdict(float)
        for term, holders in self._holders.items():
            for path in holders:
                rough[path] += self._idf[term]
        for path, names in self._in_names.items():
            for term, count in names.items():
                rough[path] += self._idf.get(term, 0.0) * math.sqrt(min(count, 4))
        for path in rough:
            if is_test(path) or is_aside(path):
                rough[path] *= 0.5
        chosen = sorted(rough, key=lambda path: (-rough[path], path))[:READ]
        files = sorted(self._read(chosen), key=lambda file: (-file.score, file.path))
        return [
            self._match(file, self._passages(file) if place < LOOKED_INTO else [])
            for place, file in enumerate(files)
        ]

    def _match(self, file: _File, passages: Sequence[tuple[Definition, float, tuple[str, ...]]]) -> Match:
        definition, passage, inside = passages[0] if passages else (None, 0.0, ())
        return Match(
            file.path,
            file.score,
            file.terms,
            passage,
            definition,
            inside,
            tuple((other, share) for other, share, _ in passages[1:4]),
            self._path_score(file.path),
            self._forms,
        )

    def _read(self, chosen: Sequence[str]) -> Iterator[_File]:
        texts = {path: self._view.text(path)[:MAX_BYTES].decode("utf-8", "replace") for path in chosen}
        counts = {path: Counter(_WORD.findall(text)) for path, text in texts.items()}
        lengths = {path: sum(count.values()) for path, count in counts.items()}
        average = (sum(lengths.values()) / len(lengths) if lengths else 0.0) or 1.0
        for path in chosen:
            hits = {word: found for word in counts[path] if (found := self._terms_in(word))}
            terms: Counter[str] = Counter()
            for word, found in hits.items():
                for term in set(found):
                    terms[term] += counts[path][word]
            own = self._graph.path_stems[path]
            shares: dict[str, float] = {}
            norm = K1 * (1 - B + B * lengths[path] / average)
            for term in terms.keys() | (own & self._idf.keys()):
                boosted = terms[term] + IN_NAME * self._in_names[path][term] + IN_PATH * (term in own)
                shares[term] = self._idf[term] * boosted * (K1 + 1) / (boosted + norm)
            telling = tuple(sorted(shares, key=lambda term: (-shares[term], term)))
            yield _File(path, sum(shares[term] for term in telling), telling, texts[path], hits)

    def _path_score(self, path: str) -> float:
        """How well the file's name (and half as much its folders) fits: rare names tell more."""
        frequency = self._graph.path_frequency
        name = {stem(part) for part in parts(path.rpartition("/")[2].rpartition(".")[0])}
        size = len(self._graph.paths)
        return math.fsum(
            self._weights[term]
            * math.log1p(size / frequency[term])
            * (1.0 / math.sqrt(len(name)) if term in name else 0.3)
            for term in self._graph.path_stems[path]
            if term in self._weights
        )

    def _terms_in(self, word: str) -> tuple[str, ...]:
        """The task's terms in a word of the text."""
        known = self._known.get(word)
        if known is None:
            known = tuple(term for part in parts(word) if (term := stem(part)) in self._idf)
            self._known[word] = known
        return known

    def _passages(self, file: _File) -> list[tuple[Definition, float, tuple[str, ...]]]:
        """The definitions of a file with the fit of each, best first; only those that fit at all."""
        lines: list[int] = []
        terms_at: list[tuple[str, ...]] = []
        line, start = 1, 0
        for at, terms in sorted(_occurrences(file.text, file.hits)):
            line += file.text.count("\n", start, at)
            start = at
            lines.append(line)
            terms_at.append(terms)
        found = []
        for definition in self._view.outline(file.path):
            if definition.kind not in _CALLABLE and definition.end_line - definition.line > 60:
                continue
            counts: Counter[str] = Counter()
            for index in range(bisect_left(lines, definition.line), bisect_right(lines, definition.end_line)):
                counts.update(terms_at[index])
            for part in parts(definition.qualified):
                if stem(part) in self._idf:
                    counts[stem(part)] += 2
            if not counts:
                continue
            length = (definition.end_line - definition.line + 1) / 20
            norm = K1 * (1 - 0.3 + 0.3 * length)
            shares = {
                term: self._idf[term] * count * (K1 + 1) / (count + norm) for term, count in counts.items()
            }
            inside = tuple(sorted(shares, key=lambda term: (-shares[term], term)))
            found.append((definition, sum(shares.values()), inside))
        found.sort(key=lambda entry: (-entry[1], entry[0].line))
        return found


def _occurrences(text: str, hits: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """(position, terms) of each whole word of `hits`. Quicker than one regular expression for all."""
    for word, terms in hits.items():
        at = text.find(word)
        while at >= 0:
            end = at + len(word)
            if not (_inside(text[at - 1 : at]) or _inside(text[end : end + 1])):
                yield at, terms
            at = text.find(word, end)


def _inside(char: str) -> bool:
    return char.isalnum() or char == "_"

"""Identifiers taken apart into words, and words reduced to a common form."""

from __future__ import annotations

import re
from functools import lru_cache

_PART = re.compile(r"[A-Z]{2,}(?=s(?![a-z]))|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_WIDE = re.compile(r"[^\W\d_]+|\d+")


@lru_cache(maxsize=100_000)
def parts(identifier: str) -> tuple[str, ...]:
    """The words in an identifier, in lower case: "parseHTTPDate_v2" -> parse, http, date, v, 2."""
    if not identifier.isascii():
        spread = "".join(
            f" {char}" if char.isupper() and before.islower() else char
            for before, char in zip(" " + identifier, identifier, strict=False)
        )
        return tuple(part.lower() for part in _WIDE.findall(spread))
    return tuple(part.lower() for part in _PART.findall(identifier))


_ENDINGS = tuple(
    (ending, instead)
    for instead, endings in (
        ("at", "ational ations ation ators ator ating ated ates ate"),
        ("iz", "izations ization izing ized izes izer ize"),
        ("ic", "ications ication"),
        ("ss", "sses"),
        ("y", "iers ier ies ied"),
        ("", "nesses ness ments ment ings ing ers er ed es ly able s e"),
    )
    for ending in endings.split()
)
"""What is cut and what stands instead; the longest ending counts."""
_BY_LENGTH = sorted(_ENDINGS, key=lambda pair: -len(pair[0]))


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """A form that a word shares with its inflections: parser, parsed, parsing, parses -> pars. Crude, as it
    only has to bring the same words of an issue and of the code together."""
    if len(word) < 4 or not word.isascii():
        return word
    for ending, instead in _BY_LENGTH:
        if word.endswith(ending) and len(word) - len(ending) + len(instead) >= (4 if len(ending) > 3 else 3):
            if ending == "s" and word.endswith(("ss", "us", "is")):
                return word
            base = word[: -len(ending)] + instead
            # "running", "dropped": the doubled consonant goes.
            if (
                ending in ("ing", "ed", "er", "ers")
                and len(base) > 3
                and base[-1] == base[-2]
                and base[-1] not in "lsz"
            ):
                return base[:-1]
            return base
    return word

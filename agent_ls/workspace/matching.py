"""Where in a text an old passage stands: exactly, ignoring trailing blanks, or uniformly re-indented.

The three tiers are tried in this order. A tier that finds one place decides; one that finds several is
an error (a looser tier could only find more). There is no similarity score that could accept a place
that merely looks alike: similar lines are only shown to whoever asked.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from difflib import SequenceMatcher

from attrs import frozen

from agent_ls.errors import ToolRefused

_SHOWN_LINES = 40
_SHOWN_PLACES = 10
_NUMBERED = re.compile(r"\s*\d+\s*[|:→\t]")


@frozen
class Place:
    """The characters `start` to `end` of the text are to become `new`; `tier` is 1, 2 or 3."""

    start: int
    end: int
    new: str
    tier: int


def find_place(
    text: str, old: str, new: str, *, path: str, line: int | None = None, whole_lines: bool = False
) -> Place:
    """The one place where `old` stands in `text` (all with "\\n" ends) and what to put there.

    `line` (1-based) chooses among several places only where one of them starts exactly there.
    `whole_lines` asks that `old` start and end where lines do. Raises ToolRefused when `old` is empty,
    equals `new`, stands in several places or in none; the message lists the places or the nearest lines.
    """
    if not old:
        raise ToolRefused(
            f"{path}: the old text is empty, so nothing says where the new text belongs",
            "Quote the lines around the place; to make a new file, use create.",
        )
    if old == new:
        raise ToolRefused(f"{path}: old and new text are the same; the edit would change nothing")
    starts = _line_starts(text)
    places = _exact(text, old, new, whole_lines)
    if not places:
        wanted = _lines(old)
        if not any(item.strip() for item in wanted):
            raise ToolRefused(f"{path}: the old text is only blank lines", "Quote lines around the place.")
        have = text.split("\n")
        places = _ignoring_trailing_blanks(text, have, starts, wanted, new)
        places = places or _reindented(text, have, starts, wanted, new, path)
    numbers = [_line_number(starts, place.start) for place in places]
    if len(places) > 1 and line is not None and numbers.count(line) == 1:
        return places[numbers.index(line)]
    if len(places) > 1:
        raise ToolRefused(_ambiguous(path, text, places[0].tier, numbers))
    if not places:
        raise ToolRefused(_miss(path, text, old, new))
    if text[places[0].start : places[0].end] == places[0].new:
        raise ToolRefused(f"{path}: the text there already reads like that; the edit would change nothing")
    return places[0]


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer("\n", text))]


def _line_number(starts: Sequence[int], offset: int) -> int:
    return bisect_right(starts, offset)


def _exact(text: str, old: str, new: str, whole_lines: bool) -> list[Place]:
    places = []
    found = text.find(old)
    while found >= 0:
        end = found + len(old)
        at_lines = (found == 0 or text[found - 1] == "\n") and (
            end == len(text) or text[end - 1] == "\n" or text[end] == "\n"
        )
        if at_lines or not whole_lines:
            places.append(Place(found, end, new, 1))
        found = text.find(old, found + 1)  # overlapping places count: they are ambiguous too
    return places


def _windows(have: Sequence[str], wanted: Sequence[str], first_keys: dict[str, list[int]]) -> list[int]:
    """Window starts at which the first line that isn't blank could stand."""
    index = next(i for i, line in enumerate(wanted) if line.strip())
    starts = (at - index for at in first_keys.get(wanted[index].strip(), ()))
    return [start for start in starts if start >= 0 and start + len(wanted) <= len(have)]


def _by_content(have: Sequence[str]) -> dict[str, list[int]]:
    positions: dict[str, list[int]] = defaultdict(list)
    for number, line in enumerate(have):
        positions[line.strip()].append(number)
    return positions


def _ignoring_trailing_blanks(
    text: str, have: Sequence[str], starts: Sequence[int], wanted: Sequence[str], new: str
) -> list[Place]:
    stripped = [line.rstrip(" \t") for line in wanted]
    places = []
    for at in _windows(have, wanted, _by_content(have)):
        window = have[at : at + len(wanted)]
        if [line.rstrip(" \t") for line in window] == stripped:
            places.append(_place(text, starts, at, window, wanted, _lines(new), 2))
    return places


def _reindented(
    text: str,
    have: Sequence[str],
    starts: Sequence[int],
    wanted: Sequence[str],
    new: str,
    path: str,
) -> list[Place]:
    places: list[Place] = []
    failed: ToolRefused | None = None
    for at in _windows(have, wanted, _by_content(have)):
        window = have[at : at + len(wanted)]
        shift = _shift(window, wanted)
        if shift is None:
            continue
        try:
            shifted = [_shifted(line, shift) for line in _lines(new)]
        except ValueError:
            failed = ToolRefused(
                f"{path}: the old text stands at line {at + 1} with less indentation, and the new text can't "
                "be moved left by as much",
                "Quote the lines with the indentation that the file has.",
            )
            shifted = []
        old_shifted = [_shifted(line, shift) for line in wanted]
        places.append(_place(text, starts, at, window, old_shifted, shifted, 3))
    if failed is not None and len(places) == 1:
        raise failed
    return places


def _shift(window: Sequence[str], wanted: Sequence[str]) -> tuple[str, str] | None:
    """(what to remove, what to add) in front of each wanted line to get the window's, or None."""
    shift: tuple[str, str] | None = None
    for actual, line in zip(window, wanted, strict=True):
        actual, line = actual.rstrip(" \t"), line.rstrip(" \t")
        if not actual or not line:
            if actual != line:
                return None
            continue
        if actual.endswith(line):
            this = ("", actual[: len(actual) - len(line)])
        elif line.endswith(actual):
            this = (line[: len(line) - len(actual)], "")
        else:
            return None
        if this[0].strip(" \t") or this[1].strip(" \t") or (shift is not None and this != shift):
            return None
        shift = this
    return shift


def _shifted(line: str, shift: tuple[str, str]) -> str:
    remove, add = shift
    if not line.strip(" \t"):
        return ""
    if not line.startswith(remove):
        raise ValueError(line)
    return add + line[len(remove) :]


def _place(
    text: str,
    starts: Sequence[int],
    at: int,
    window: Sequence[str],
    wanted: Sequence[str],
    replacement: Sequence[str],
    tier: int,
) -> Place:
    """Whole lines `at`…; lines that old and new text share stay as the file has them."""
    merged: list[str] = []
    before = [line.rstrip(" \t") for line in wanted]
    after = [line.rstrip(" \t") for line in replacement]
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        merged += window[i1:i2] if tag == "equal" else replacement[j1:j2]
    start = starts[at]
    end = starts[at + len(window) - 1] + len(window[-1])
    if not merged and end < len(text):
        end += 1  # no lines are left: the last one's end goes too
    return Place(start, end, "\n".join(merged), tier)


_TIERS = {1: "", 2: " (ignoring blanks at line ends)", 3: " (with another indentation)"}


def _ambiguous(path: str, text: str, tier: int, numbers: Sequence[int]) -> str:
    lines = text.split("\n")
    shown = [f"  line {number}: {lines[number - 1].strip()[:80]}" for number in numbers[:_SHOWN_PLACES]]
    if len(numbers) > _SHOWN_PLACES:
        shown.append(f"  … and {len(numbers) - _SHOWN_PLACES} more")
    return (
        f"{path}: the old text stands in {len(numbers)} places{_TIERS[tier]}:\n"
        + "\n".join(shown)
        + "\nQuote more lines around the right one, so that only it matches."
    )


def numbered(lines: Sequence[str], first: int, last: int) -> str:
    """The lines `first` to `last` (1-based, clipped to what exists), each after its number."""
    first, last = max(1, first), min(len(lines), last)
    width = len(str(last))
    return "\n".join(f"{number:>{width}}| {lines[number - 1]}" for number in range(first, last + 1))


def _miss(path: str, text: str, old: str, new: str) -> str:
    have, wanted = _lines(text), _lines(old)
    said = [f"{path}: the old text is not in the file; nothing was changed."]
    if all(_NUMBERED.match(line) for line in wanted if line.strip()):
        said.append("It carries line numbers; leave out the numbers and what separates them from the text.")
    there = _occurrences(have, _lines(new))
    if there:
        said.append(
            f"The new text is already there (line {there[0]}): the edit seems to have been applied before."
        )
    if not have:
        said.append("The file is empty.")
        return "\n".join(said)
    at = nearest(have, wanted)
    if at is None:
        said.append("No lines resemble it. Read the file and quote what it says.")
        return "\n".join(said)
    count = min(len(wanted), _SHOWN_LINES)
    said.append("The nearest lines are:\n" + numbered(have, at, at + count + 1))
    for offset, line in enumerate(wanted[:count]):
        actual = have[at - 1 + offset] if at - 1 + offset < len(have) else ""
        if actual.rstrip() != line.rstrip():
            what = "other indentation" if actual.strip() == line.strip() else "difference"
            said.append(f"First {what}, line {at + offset}: the file has {actual!r}, the old text {line!r}.")
            break
    return "\n".join(said)


def _occurrences(have: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """1-based lines at which `wanted` stands, indentation and trailing blanks aside."""
    if sum(len(line.strip()) for line in wanted) < 4:
        return []
    needle = [line.strip() for line in wanted]
    content = [line.strip() for line in have]
    return [
        at + 1 for at in _windows(have, wanted, _by_content(have)) if content[at : at + len(needle)] == needle
    ]


def nearest(have: Sequence[str], wanted: Sequence[str]) -> int | None:
    """The 1-based line at which the window most like `wanted` starts (perhaps below 1 or past the end by
    a little), or None when nothing resembles it. Only for showing, never for choosing a place."""
    votes: dict[int, int] = defaultdict(int)
    positions = _by_content(have)
    for offset, line in enumerate(wanted):
        content = line.strip()
        found = positions.get(content, ()) if content else ()
        if len(found) <= 50:
            for at in found:
                votes[at - offset] += len(content)
    if votes:
        best = max(votes, key=lambda start: (votes[start], -start))
        if votes[best] >= 4:
            return max(1, best + 1)
    offset, longest = max(enumerate(wanted), key=lambda item: len(item[1].strip()))
    longest = longest.strip()[:200]
    matcher = SequenceMatcher(None, "", longest, autojunk=False)
    score, where = 0.55, None
    for content, found in list(positions.items())[:20_000]:
        matcher.set_seq1(content[:200])
        if matcher.real_quick_ratio() > score and matcher.quick_ratio() > score:
            ratio = matcher.ratio()
            if ratio > score:
                score, where = ratio, found[0]
    return None if where is None else max(1, where - offset + 1)

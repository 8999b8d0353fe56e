"""One edit of a file as a splice of text."""

from __future__ import annotations

from attrs import frozen


@frozen
class Edit:
    """Replace `text[start_offset:end_offset]` (character offsets) by `replacement`.

    `line` is the 1-based line of the statement it changes, `operator` the edit operator's name,
    `description` one sentence part for a person, `prior` how usual such an edit is among fixes (0..1].
    """

    line: int
    start_offset: int
    end_offset: int
    replacement: str
    operator: str
    description: str
    prior: float

    def apply(self, text: str) -> str:
        """`text` with the edit made; every byte outside the splice stays."""
        return text[: self.start_offset] + self.replacement + text[self.end_offset :]

"""Plain data of a search: progress, patches, result."""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen

from agent_ls.repair.edits import Edit
from agent_ls.repair.localise import Suspect


@frozen
class Progress:
    """How far a search is: candidates `tried` of `total` made so far, `plausible` ones found."""

    phase: str
    tried: int = 0
    total: int = 0
    plausible: int = 0
    seconds: float = 0.0
    detail: str = ""
    per_second: float = 0.0
    best: str | None = None


@frozen
class Patch:
    """A change of one file that makes the `fixed` tests pass.

    `new_text` is the file's whole text after it; `line` the 1-based line of the changed statement;
    `score` (0..1) ranks patches; `edit` is the splice.
    """

    path: str
    new_text: str
    operator: str
    description: str
    score: float
    fixed: tuple[str, ...]
    line: int
    edit: Edit
    edits: tuple[Edit, ...] = ()


@frozen
class RepairResult:
    """What a search found. `patches` are ranked, best first; `partial` fixes some of the asked tests only.

    `mode` is "fork" when most candidates ran in forks of a process that had the tests and the program loaded,
    "import" when most had to import the program afresh, in forks of a process with only pytest and
    installed packages loaded (the tests can't be loaded as they are, or the changed code runs at
    import), "" when nothing was tried. `stopped` says why the search ended: "found", "budget",
    "exhausted", or a sentence with the reason why there was nothing to search.
    """

    patches: list[Patch] = field(factory=list)
    suspects: list[Suspect] = field(factory=list)
    tried: int = 0
    total: int = 0
    seconds: float = 0.0
    mode: Literal["fork", "import", ""] = ""
    stopped: str = ""
    partial: Patch | None = None


@frozen
class Proposal:
    """A candidate: `chance` orders the queue, `score` (0..1) ranks what passes."""

    path: str
    edits: tuple[Edit, ...]
    score: float
    chance: float

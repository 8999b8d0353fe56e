"""What running the tests said about a change, and what could not be run."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from agent_ls.guard.protected import Finding

Layer = Literal["checked", "partly", "not checked"]


@frozen
class NotChecked:
    """A part that could not be run: `what` (a test, a file, a step) and `why`. Not the same as clean."""

    what: str
    why: str

    def to_json(self) -> dict[str, str]:
        return {"what": self.what, "why": self.why}


@frozen
class Behaviour:
    """What the runs of one change said.

    `equal` are ids (those of the new tree) of edited tests that are as strong as they were, as far as
    running can tell: both forms pass where either does, and the new form kills every mutant that the old one
    killed (one at least). `mutants` is the number of mutants tried, `runs` that of test runs. `layer` is
    "checked" when nothing was left out.
    """

    findings: tuple[Finding, ...] = ()
    not_checked: tuple[NotChecked, ...] = ()
    equal: frozenset[str] = frozenset()
    layer: Layer = "checked"
    mutants: int = 0
    runs: int = 0

"""A place where a mixture of two trees can be laid out and its tests be run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from agent_ls.cancel import CancelToken
from agent_ls.testing._records import Coverage
from agent_ls.testing.plan import TestPlan
from agent_ls.testing.results import TestRun

Side = Literal["before", "after"]


class Bench(Protocol):
    """Lays out the tests of one tree with the sources of another, and runs them.

    What belongs to the tests is decided by `sides.is_test_side`. Implementations: `FolderBench`.
    """

    @property
    def plan(self) -> TestPlan:
        """How the tests are run."""

    def lay_out(self, tests: Side, sources: Side, edits: Mapping[str, bytes] | None = None) -> None:
        """Make the files those of the mixture; `edits` (path -> content) lie over it until the next call."""

    def run(
        self,
        ids: Sequence[str] | None,
        *,
        timeout: float,
        cancel: CancelToken,
        per_test_timeout: float | None = None,
        trace: bool = False,
        quick: bool = False,
    ) -> TestRun:
        """Run ids (None: all) over what is laid out. `quick` allows processes forked from a warm one."""

    def coverage(self) -> Coverage:
        """Lines that the last traced run executed, per test and file."""

    def close(self) -> None:
        """Leave the place as it was found."""

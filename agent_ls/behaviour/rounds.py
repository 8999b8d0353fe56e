"""What a comparison by mutants keeps: the ground, each mutant's fate, and what is open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import define, field, frozen

from agent_ls.behaviour.bench import Side
from agent_ls.behaviour.matrix import Pair
from agent_ls.behaviour.mutants import Mutant
from agent_ls.behaviour.rig import Table
from agent_ls.testing.results import TestResult

_TEST_S = (1.0, 6.0)
"""Bounds of the time limit for one test on a mutant: ten times what the slowest took, but between these."""


@frozen
class Ground:
    """Sources on which both forms of some tests pass: one tree's for both, or each its own."""

    old: Side
    new: Side


@define
class Trial:
    """One mutant's fate. `killers`: labels of old tests that fail with it, and how; `by_new`: of new ones."""

    mutant: Mutant
    twin: Mutant
    killers: dict[str, TestResult]
    by_new: set[str] = field(factory=set)
    tried: bool = False


@define
class Round:
    """One group on its ground: both unchanged tables, what was tried, and which tests are still `open`.

    `lost` leads from an old test to the survivor that shows its weakening, and whether that is sure; `kinds`
    from the place of a value to its kind, once a mutant has shown it.
    """

    ground: Ground
    group: list[Pair]
    old: Table
    new: Table
    done: list[Trial] = field(factory=list)
    kinds: dict[tuple[str, int, int], str] = field(factory=dict)
    suspect: set[tuple[str, int]] = field(factory=set)
    hanging: set[tuple[str, int]] = field(factory=set)
    """Lines one of whose mutants did not end: others there would not either."""
    tried: int = 0
    killed: int = 0
    confirmed: int = 0
    lost: dict[str, tuple[Trial, bool | None]] = field(factory=dict)
    open: set[str] = field(factory=set)

    def __attrs_post_init__(self) -> None:
        self.open = {pair.before for pair in self.group}


def short_list(labels: Sequence[str]) -> str:
    """A few of many labels."""
    more = f" and {len(labels) - 3} more" if len(labels) > 3 else ""
    return ", ".join(labels[:3]) + more


def limits(table: Table) -> tuple[float, float]:
    """Seconds for one test on a mutant, and for a run: several times what they took without one."""
    spent = [test.duration_s for test in table.run.tests]
    per_test = min(max(10 * max(spent, default=0.0), _TEST_S[0]), _TEST_S[1])
    return per_test, 2 * per_test + 4 * table.run.duration_s + 2


def covers(table: Table, label: str, mutant: Mutant) -> bool:
    lines = table.coverage.get(label, {}).get(mutant.path, ())
    return bool(lines) if mutant.at_import else mutant.line in lines


def by_assertion(killers: dict[str, TestResult]) -> bool:
    return any(result.error_type in ("AssertionError", "Failed") for result in killers.values())


def is_misfit(result: TestResult, mutant: Mutant) -> bool:
    """Did the mutant itself break on its own line (an operation on another type)? Anything would notice."""
    if result.error_type not in ("TypeError", "AttributeError", "NameError", "UnboundLocalError"):
        return False
    last = result.stack[-1] if result.stack else None
    return last is not None and (last.file, last.line) == (mutant.path, mutant.line)


def in_turns(made: Iterable[Mutant]) -> list[Mutant]:
    """Files take turns; within a file the order stays."""
    queues: dict[str, list[Mutant]] = {}
    for mutant in made:
        queues.setdefault(mutant.path, []).append(mutant)
    found: list[Mutant] = []
    while queues:
        for path in list(queues):
            found.append(queues[path].pop(0))
            if not queues[path]:
                del queues[path]
    return found

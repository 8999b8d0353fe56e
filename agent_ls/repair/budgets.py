"""How long a test of a candidate may run: learned from the unchanged program in the same worker."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from agent_ls.repair.observation import Observation

FLOOR_S = 0.06
"""Processor time that every test gets on top of twice its normal one."""
STEP = 8
"""A candidate that seemed to hang gets so many times that floor at the next level."""
LEVELS = 3


class Budgets:
    """Processor seconds for each test, and the order in which failing tests are run."""

    def __init__(self, asked: Sequence[str], seen: Observation) -> None:
        self._cpu = {test: used for test, used in seen.cpu.items() if test not in seen.hanging}
        good = [self._cpu[test] for test in seen.passing if test in self._cpu]
        self._typical = statistics.median(good) if good else 0.0
        self._wanted = set(asked)
        self._last = max(self._cpu.values(), default=0.0) + 1.0

    def normal(self, test: str) -> float:
        """What the test takes: measured, but a failing test may have failed before it did its work."""
        used = self._cpu.get(test, 0.0)
        return max(used, self._typical) if test in self._wanted or test not in self._cpu else used

    def limit(self, test: str, level: int = 0) -> float:
        """What the test may take; `level` counts earlier attempts that ran out of time."""
        return FLOOR_S * float(STEP**level) + 2 * self.normal(test)

    def cheapest_first(self, tests: Sequence[str]) -> list[str]:
        """Tests in order of their normal time; those that hang in the unchanged program last."""
        return sorted(tests, key=lambda test: self._cpu.get(test, self._last))

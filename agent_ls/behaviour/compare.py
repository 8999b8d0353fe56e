"""Run the old and the new tests against the old and the new sources, and say what that shows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from agent_ls.behaviour import canary, suite
from agent_ls.behaviour.bench import Bench
from agent_ls.behaviour.edited import reach, users_of
from agent_ls.behaviour.killing import MAX_MUTANTS, Campaign
from agent_ls.behaviour.matrix import Matrix, Pair, judge_gone, judge_pair
from agent_ls.behaviour.model import Behaviour, Layer
from agent_ls.behaviour.rig import PER_TEST_S, OutOfBudget, Rig
from agent_ls.behaviour.rounds import short_list
from agent_ls.behaviour.sides import Sides, is_test_module, unseen
from agent_ls.cancel import CancelToken
from agent_ls.guard.protected import Finding
from agent_ls.guard.trees import Tree
from agent_ls.testing.ids import matches

BUDGET_S = 120.0


def compare(
    before: Tree,
    after: Tree,
    bench: Bench,
    *,
    budget_s: float = BUDGET_S,
    cancel: CancelToken | None = None,
    ids: Sequence[str] | None = None,
    max_mutants: int = MAX_MUTANTS,
    say: Callable[[str], None] = lambda text: None,
) -> Behaviour:
    """What running says about the change from `before` to `after`.

    Args:
        bench: a place that lays out mixtures of these two trees; it is closed by whoever made it.
        budget_s: seconds for all runs together; what did not fit is in `not_checked`.
        ids: only these tests (ids of either tree); None: those that the change can reach.
        max_mutants: so many for tests that share their sources; 0 for none.
        say: hears what is being done, one short line at a time.

    Raises Cancelled; nothing else for what the tests do.
    """
    sides = Sides.of(before, after)
    if not (sides.tests or sides.sources):
        return Behaviour()
    rig = Rig(
        bench,
        {"before": before, "after": after},
        time.monotonic() + budget_s,
        cancel or CancelToken(),
        say,
    )
    for path in bench.unreadable:
        rig.skip(path, "it can't be laid out (too large, or no plain file)")
    findings: list[Finding] = []
    equal: frozenset[str] = frozenset()
    count = 0
    ran = True
    try:
        if bench.plan.kind == "command":
            found = suite.check(rig, sides)
            ran = found is not None
            findings += found or []
        else:
            checking = _Python(rig, sides, ids, max_mutants)
            try:
                ran = checking.run()
            finally:
                findings += checking.findings
                equal, count = frozenset(checking.equal), checking.count
    except OutOfBudget:
        rig.skip("the rest", f"the time limit of {budget_s:g} s")
        ran = bool(rig.runs)
    layer: Layer = "checked" if not rig.not_checked else "partly"
    if not ran:
        layer = "not checked"
    return Behaviour(tuple(_once(findings)), tuple(rig.not_checked), equal, layer, count, rig.runs)


class _Python:
    """The steps for tests of pytest and unittest."""

    def __init__(self, rig: Rig, sides: Sides, ids: Sequence[str] | None, max_mutants: int) -> None:
        self.rig = rig
        self.sides = sides
        self.ids = ids
        self.max_mutants = max_mutants
        self.findings: list[Finding] = []
        self.equal: set[str] = set()
        self.unsteady: set[str] = set()
        self.count = 0

    def run(self) -> bool:
        """False when nothing could be said at all."""
        rig, sides = self.rig, self.sides
        for path in unseen(sides.tests):
            rig.skip(path, "what a build tool or a CI service makes of it is not run here")
        found = reach(rig.trees["before"], rig.trees["after"], sides)
        if rig.bench.plan.kind == "unittest":
            # its loader takes module names; the whole suite says what their labels are
            found.files = {side: [] if files == [] else None for side, files in found.files.items()}
        matrix = Matrix(rig, found, same=not sides.sources)
        pairs: list[Pair] = []
        gone: list[Pair] = []
        if any(files is None or files for files in found.files.values()) and sides.tests:
            if not matrix.fill():
                return False
            pairs, gone = matrix.pairs()
            pairs, gone = self._asked(pairs), self._asked(gone)
            self._judge(matrix, pairs, gone)
        if any(pair.edited for pair in pairs) or gone:
            rig.bench.warm()
        # a test module by itself can't force outcomes; what it patches shows in its mutants
        shared = any(not is_test_module(path) for path in sides.tests) or sides.sources
        if shared and (self.ids is None or pairs or gone):
            self.findings += canary.check(rig, self._modules(matrix))
        told = {name for finding in self.findings for name in finding.tests} | self.unsteady
        pairs = [pair for pair in pairs if pair.edited and not {pair.before, pair.after} & told]
        gone = [pair for pair in gone if pair.before not in told]
        if not (pairs or gone):
            return True
        if not self.max_mutants:
            rig.skip("mutants", "none were asked for")
            return True
        campaign = Campaign(rig, matrix, self.max_mutants)
        try:
            campaign.run(pairs, gone)
        finally:
            self.findings += campaign.findings
            self.equal, self.count = campaign.equal, campaign.count
        return True

    def _judge(self, matrix: Matrix, pairs: list[Pair], gone: list[Pair]) -> None:
        slow = [pair.before for pair in (*pairs, *gone) if pair.hangs()]
        if slow:
            self.rig.skip(short_list(slow), f"did not end within {PER_TEST_S:g} s")
        found = [(pair, judge_pair(pair, matrix)) for pair in pairs]
        found += [(pair, judge_gone(pair, matrix)) for pair in gone]
        flagged = [pair for pair, finding in found if finding is not None]
        self.unsteady = matrix.unsteady(flagged)
        for pair, finding in found:
            if finding is not None and pair.before in self.unsteady:
                self.rig.skip(pair.after, "its outcome changes from run to run")
            elif finding is not None:
                self.findings.append(finding)

    def _asked(self, pairs: list[Pair]) -> list[Pair]:
        if self.ids is None:
            return pairs
        wanted = [id.partition("[")[0] for id in self.ids]
        return [
            pair
            for pair in pairs
            if any(matches(name, label) for name in wanted for label in (pair.before, pair.after))
        ]

    def _modules(self, matrix: Matrix) -> list[str]:
        """Test modules to put failing tests into: changed ones, users of changed sources, others."""
        found = [path for path in self.sides.tests if is_test_module(path)]
        for path in self.sides.sources:
            if path.endswith(".py"):
                name = path.rpartition("/")[2].removesuffix(".py")
                stem = path.split("/")[-2] if name == "__init__" and "/" in path else name
                found += sorted(users_of(matrix.reach.after, stem))
        if any(path.endswith(".py") or path in self.sides.settings for path in self.sides.tests):
            found += sorted(path for path in matrix.reach.after.all_paths if is_test_module(path))
        return list(dict.fromkeys(found))


def _once(findings: list[Finding]) -> list[Finding]:
    unique: dict[tuple[str, int, str], Finding] = {}
    for finding in findings:
        unique.setdefault((finding.path, finding.line, finding.kind), finding)
    return list(unique.values())

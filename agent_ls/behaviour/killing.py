"""Do the edited tests kill the mutants that they killed before they were edited?

The same mutants for both forms, on sources on which both pass. A mutant counts as killed when a test that
passed without it fails by an assertion or by an error of the code, not when it hangs or can't be imported.
Only a mutant that the whole new suite lets live shows a weakening: what another test catches is not lost.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field

from agent_ls.behaviour import mutants
from agent_ls.behaviour.bench import Side
from agent_ls.behaviour.matrix import Matrix, Pair, place_of
from agent_ls.behaviour.mutants import Mutant, Place
from agent_ls.behaviour.rig import HANGS, OutOfBudget, Rig, Table, stopped, telling
from agent_ls.behaviour.rounds import (
    Ground,
    Round,
    Trial,
    by_assertion,
    covers,
    in_turns,
    is_misfit,
    limits,
    short_list,
)
from agent_ls.behaviour.sides import is_test_side
from agent_ls.guard.protected import Finding
from agent_ls.testing.results import TestResult

MAX_MUTANTS = 40
"""So many mutants are tried for one group of tests."""
_MADE = 200
BATCH = 10
"""So many go through both forms before the next: a weakening found ends it for a test."""
MAX_CONFIRMED = 4
"""So many survivors are tried on the whole suite until one lives."""
_FEW = 30
"""Up to so many old tests are run whether or not they execute the mutant: always the same command."""


@define
class Campaign:
    """The mutants of one comparison."""

    rig: Rig
    matrix: Matrix
    limit: int = MAX_MUTANTS
    findings: list[Finding] = field(factory=list)
    equal: set[str] = field(factory=set)
    count: int = 0
    _whole: dict[Side, Table | None] = field(factory=dict)

    def run(self, pairs: Sequence[Pair], gone: Sequence[Pair]) -> None:
        """Try mutants for the edited tests among `pairs` and for those that are `gone`."""
        grounds: dict[Ground, list[Pair]] = {}
        apart: list[str] = []
        dead = {id(pair) for pair in gone}
        for pair in (*pairs, *gone):
            if not (pair.edited or id(pair) in dead):
                continue
            ground = self._ground(pair, gone=id(pair) in dead)
            if ground is None:
                if id(pair) not in dead and pair.new["after"].state == "passes" and pair.ran():
                    apart.append(pair.after)
                continue
            grounds.setdefault(ground, []).append(pair)
        if apart:
            why = "no sources on which both forms pass, so no mutants were tried"
            self.rig.skip(short_list(apart), why)
        for ground, group in grounds.items():
            self._group(ground, group, dead)

    def _ground(self, pair: Pair, *, gone: bool) -> Ground | None:
        """Where both forms pass; for a deleted test, where it passes and the new tests can be run.

        A test whose names are gone from the new sources is compared there only by functions that are still
        to be found: what was removed needs no test.
        """
        same = self.matrix.same
        if gone:
            if pair.old["after"].state == "passes":
                return Ground("after", "after")
            moved = pair.old["after"].state == "unusable" and pair.old["before"].state == "passes"
            return Ground("before", "after") if moved and not same else None
        sides: tuple[Side, ...] = ("after",) if same else ("after", "before")
        for side in sides:
            if pair.old[side].state == "passes" and pair.new[side].state == "passes":
                return Ground(side, side)
        own = pair.old["before"].state == "passes" and pair.new["after"].state == "passes"
        return Ground("before", "after") if own and not same else None

    # -- one group

    def _group(self, ground: Ground, group: list[Pair], dead: set[int]) -> None:
        old, new = self.matrix.table("before", ground.old), self.matrix.table("after", ground.new)
        if old is None or new is None:
            return
        made = self._mutants(ground, group, old)
        names = short_list([pair.before for pair in group])
        if not made:
            self.rig.skip(f"mutants for {names}", "no line that they execute could be mutated")
            return
        self.rig.say(f"up to {len(made)} mutants for {len(group)} edited or deleted tests")
        round = Round(ground, group, old, new)
        try:
            while made and round.open and round.tried < self.limit:
                made = self._try(round, made, min(BATCH, self.limit - round.tried))
        except OutOfBudget:
            self.rig.skip(f"some mutants for {names}", "the time limit")
        if not round.done:
            why = "the time limit" if round.killed else "the old tests kill none of those tried"
            self.rig.skip(f"{names} by mutants", why)
            return
        self._conclude(round, dead)

    def _try(self, round: Round, made: list[tuple[Mutant, Mutant]], size: int) -> list[tuple[Mutant, Mutant]]:
        """Some mutants on the old tests, those that they kill on the new ones, and survivors on all tests.

        Returns the mutants that are left.
        """
        trials, left = self._kill_old(round, made, size)
        round.killed += len(trials)
        self._kill_new(round, trials)
        for trial in trials:
            if not trial.tried:
                continue
            round.done.append(trial)
            partners = {pair.after for pair in round.group if pair.before in trial.killers}
            if not partners <= trial.by_new:
                # it is another test that finds this fault now: a neighbour of it may be found by none
                round.suspect.add((trial.mutant.path, trial.mutant.line))
            open_labels = [label for label in trial.killers if label in round.open]
            if trial.by_new or not open_labels or round.confirmed >= MAX_CONFIRMED:
                continue
            round.confirmed += 1
            sure = self._confirmed(round, trial)
            if sure is not False:
                for label in open_labels:
                    round.lost[label] = (trial, sure)
                    round.open.discard(label)
        return sorted(left, key=lambda one: (one[0].path, one[0].line) not in round.suspect)

    def _mutants(self, ground: Ground, group: list[Pair], table: Table) -> list[tuple[Mutant, Mutant]]:
        """(mutant in the old tests' sources, the same in the new tests' sources)."""
        tree = self.rig.trees[ground.old]
        lines: dict[str, set[int]] = {}
        for pair in group:
            for path, covered in table.coverage.get(pair.before, {}).items():
                if not is_test_side(path):
                    lines.setdefault(path, set()).update(covered)
        words = self.matrix.reach.words(label for pair in group for label in (pair.before, pair.after))
        made: list[Mutant] = []
        texts: dict[str, str] = {}
        for path, numbers in sorted(lines.items()):
            data = tree.read(path)
            if data is None:
                continue
            try:
                texts[path] = data.decode("utf-8")
            except UnicodeDecodeError:
                continue
            made += mutants.make(path, texts[path], numbers, words, _MADE)
        made = in_turns(made)[:_MADE]
        if ground.old == ground.new:
            return [(mutant, mutant) for mutant in made]
        places = self._functions(ground.new)
        pairs = [(mutant, mutants.carried_over(mutant, texts[mutant.path], places)) for mutant in made]
        return [(mutant, twin) for mutant, twin in pairs if twin is not None]

    def _functions(self, side: Side) -> dict[str, list[Place]]:
        """Functions of the sources that the new tests execute, by their text."""
        table = self.matrix.table("after", side)
        paths = {path for lines in table.coverage.values() for path in lines} if table is not None else set()
        found: dict[str, list[Place]] = {}
        for path in sorted(paths):
            data = self.rig.trees[side].read(path)
            if data is None or is_test_side(path):
                continue
            for key, place in mutants.functions_of(path, data.decode("utf-8", "replace")):
                found.setdefault(key, []).append(place)
        return found

    def _edits(self, side: Side, mutant: Mutant) -> dict[str, bytes]:
        text = (self.rig.trees[side].read(mutant.path) or b"").decode("utf-8")
        return {mutant.path: mutant.edit.apply(text).encode("utf-8")}

    def _kill_old(
        self, round: Round, made: list[tuple[Mutant, Mutant]], size: int
    ) -> tuple[list[Trial], list[tuple[Mutant, Mutant]]]:
        """(`size` mutants, those among them that an old form kills, the clearest kills first; the rest)."""
        trials: list[Trial] = []
        few = len(round.group) <= _FEW
        left = list(made)
        while left and size > 0:
            mutant, twin = left.pop(0)
            kind = round.kinds.get(mutant.site)
            covering = [p.before for p in round.group if few or covers(round.old, p.before, mutant)]
            ids = [id for label in covering for id in round.old.cell(label).ids]
            if not ids or (kind is not None and mutant.fits and kind not in mutant.fits):
                continue
            if (mutant.path, mutant.line) in round.hanging:
                continue
            killed = self._killed("before", round.ground.old, ids, mutant, round.old)
            self.count += 1
            round.tried += 1
            size -= 1
            if killed is None:
                round.hanging.add((mutant.path, mutant.line))
            misfits = [result for result in (killed or {}).values() if is_misfit(result, mutant)]
            if misfits:
                told = mutants.kind_told(misfits[0].message or "")
                if told is not None and mutant.fits:
                    round.kinds[mutant.site] = told
            elif mutant.fits and mutant.site not in round.kinds:
                round.kinds[mutant.site] = mutant.fits[0]
            if killed and len(misfits) < len(killed):
                trials.append(Trial(mutant, twin, killed))
        trials.sort(key=lambda trial: not by_assertion(trial.killers))
        return trials, left

    def _kill_new(self, round: Round, trials: list[Trial]) -> None:
        for trial in trials:
            labels = self._able(round.new, trial.twin)
            ids = [id for label in labels for id in round.new.cell(label).ids]
            killed = self._killed("after", round.ground.new, ids, trial.twin, round.new) if ids else {}
            if killed is not None:
                trial.by_new, trial.tried = set(killed), True

    def _able(self, table: Table, mutant: Mutant) -> list[str]:
        """New tests that pass and may notice the mutant: those that execute it, and those not traced."""
        return [
            label
            for label, cell in table.cells.items()
            if cell.state == "passes" and (covers(table, label, mutant) or not table.coverage.get(label))
        ]

    def _killed(
        self,
        tests: Side,
        sources: Side,
        ids: Sequence[str] | None,
        mutant: Mutant,
        table: Table,
        *,
        quick: bool = True,
    ) -> dict[str, TestResult] | None:
        """Labels of the tests that pass in `table` and fail with the mutant. None: the run says nothing."""
        per_test, whole = limits(table)
        run = self.rig.run(
            tests,
            sources,
            ids,
            edits=self._edits(sources, mutant),
            quick=quick,
            per_test_s=per_test,
            run_s=whole,
        )
        if run.outcome == "timeout" or (stopped(run) is not None and not run.tests):
            return None
        found: dict[str, TestResult] = {}
        for label, cell in self.rig.read(run).cells.items():
            why = cell.why
            if cell.state not in ("fails", "unusable") or why is None or why.error_type in HANGS:
                continue
            if table.cell(label).state == "passes":
                found[label] = why
        return found

    # -- what it means

    def _conclude(self, round: Round, dead: set[int]) -> None:
        told: set[int] = set()
        for pair in round.group:
            mine = [trial for trial in round.done if pair.before in trial.killers]
            if pair.before in round.lost:
                found, sure = round.lost[pair.before]
                if id(found) not in told:
                    told.add(id(found))
                    same = [p for p in round.group if round.lost.get(p.before, (None,))[0] is found]
                    living = sum(not trial.by_new for trial in mine)
                    self._tell(round, same, found, (living, len(mine)), dead, sure)
            elif mine and id(pair) not in dead and all(pair.after in trial.by_new for trial in mine):
                self.equal.add(pair.after)

    def _confirmed(self, round: Round, trial: Trial) -> bool | None:
        """Killed again and, in the whole suite, alive again, in fresh processes? None: not all was tried."""
        try:
            ids = [id for label in trial.killers for id in round.old.cell(label).ids]
            if not self._killed("before", round.ground.old, ids, trial.mutant, round.old, quick=False):
                self.rig.skip(next(iter(trial.killers)), "its outcome changes from run to run")
                return False
            whole = self._whole_suite(round.ground.new)
            if whole is None:
                return None
            killed = self._killed("after", round.ground.new, None, trial.twin, whole, quick=False)
        except OutOfBudget:
            return None
        if killed is None:
            return None
        trial.by_new |= set(killed)
        return not killed

    def _whole_suite(self, side: Side) -> Table | None:
        """All new tests on unchanged sources."""
        if self.matrix.reach.whole("after"):
            return self.matrix.table("after", side)
        if side not in self._whole:
            self._whole[side] = None
            self.rig.say("the whole suite, to see whether another test catches it")
            table = self.rig.table("after", side, None)
            self._whole[side] = None if stopped(table.run) else table
        return self._whole[side]

    def _tell(
        self,
        round: Round,
        pairs: list[Pair],
        trial: Trial,
        numbers: tuple[int, int],
        dead: set[int],
        sure: bool | None,
    ) -> None:
        pair = pairs[0]
        is_gone = id(pair) in dead
        label = pair.before if is_gone else pair.after
        path, line = place_of(label, self.matrix.reach)
        mutant = trial.mutant
        reason = telling(trial.killers[pair.before])
        form = "this test, which is gone," if is_gone else "the test as it was"
        text = (
            f"{form} fails when {mutant.path}:{mutant.line} becomes `{mutant.after or 'nothing'}` "
            f"({reason}); the tests as they are now pass ({numbers[0]} of {numbers[1]} faults that it found "
            "are no longer found)"
        )
        crossing = round.ground.old != round.ground.new
        if sure is None:
            text += "; whether another test finds it was not checked"
        if crossing:
            text += "; its sources changed too"
        severity = "review" if crossing or sure is None else "block"
        labels = tuple(p.before if id(p) in dead else p.after for p in pairs)
        self.findings.append(
            Finding("mutant-survives", severity, path, line, text, mutant.before, mutant.after, labels)  # type: ignore[arg-type]
        )

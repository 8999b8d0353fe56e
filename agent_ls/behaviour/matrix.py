"""Both forms of the tests over both sources: what became of each test, and what that means."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from attrs import define, field, frozen

from agent_ls.behaviour.bench import Side
from agent_ls.behaviour.edited import Reach
from agent_ls.behaviour.rig import HANGS, Cell, Rig, Table, nothing_collected, stopped, telling
from agent_ls.guard.protected import Finding

_NAMES = {"before": "old", "after": "new"}
_COMBINATIONS: tuple[tuple[Side, Side], ...] = (
    ("before", "before"),
    ("after", "after"),
    ("before", "after"),
    ("after", "before"),
)


@frozen
class Pair:
    """One test's two forms (labels) and what became of them: `old` and `new`, by the side of the sources."""

    before: str
    after: str
    old: dict[Side, Cell]
    new: dict[Side, Cell]
    edited: bool

    def ran(self) -> bool:
        """Was the old form a test that did something on the old sources?"""
        return self.old["before"].state in ("passes", "fails")

    def hangs(self) -> bool:
        """Did one of its forms not end?"""
        cells = (*self.old.values(), *self.new.values())
        return any(cell.why is not None and cell.why.error_type in HANGS for cell in cells)


@define
class Matrix:
    """The runs of one comparison. `same` says that the sources did not change."""

    rig: Rig
    reach: Reach
    same: bool
    tables: dict[tuple[Side, Side], Table] = field(factory=dict)

    def fill(self) -> bool:
        """Run the four mixtures (two, where the sources are the same). False if they say nothing."""
        if self.reach.files["before"] == []:
            return True  # all tests that the change touches are new
        for tests, sources in _COMBINATIONS:
            if self.same and sources == "before":
                continue
            ids = self.reach.files[tests]
            if ids == []:
                continue
            self.rig.say(f"{_NAMES[tests]} tests, {_NAMES[sources]} sources")
            table = self.rig.table(tests, sources, ids, trace=True)
            why = stopped(table.run)
            if nothing_collected(table.run):
                why = None  # that is an answer: what there was is no longer run
            if why is not None and not (table.broken and tests != sources):
                self.rig.skip(f"the {_NAMES[tests]} tests on the {_NAMES[sources]} sources", why)
                if not table.cells:
                    if tests == sources or self.same:
                        return False
                    continue
            self.tables[tests, sources] = table
        return True

    def cells(self, tests: Side, label: str) -> dict[Side, Cell]:
        found: dict[Side, Cell] = {}
        for sources in ("before", "after"):
            table = self.table(tests, sources)
            found[sources] = table.cell(label) if table is not None else Cell("gone")
        return found

    def table(self, tests: Side, sources: Side) -> Table | None:
        return self.tables.get((tests, "after" if self.same else sources))

    def labels(self, tests: Side) -> list[str]:
        tables = [table for (side, _), table in self.tables.items() if side == tests]
        return list(dict.fromkeys(label for table in tables for label in table.cells))

    def pairs(self) -> tuple[list[Pair], list[Pair]]:
        """(tests that are in both trees, tests that are gone)."""
        both, gone = [], []
        new = set(self.labels("after"))
        for label in self.labels("before"):
            partner = self.reach.partners.get(label, label)
            pair = Pair(
                label,
                partner,
                self.cells("before", label),
                self.cells("after", partner),
                self.reach.edited(label, partner),
            )
            there = partner in new or label in self.reach.partners or pair.new["after"].state == "unusable"
            if there or (label not in self.reach.deleted and _is_there(partner, self)):
                both.append(pair)
            else:
                gone.append(pair)
        return both, gone

    def unsteady(self, pairs: Sequence[Pair]) -> set[str]:
        """Labels (old ones) of those tests whose outcome is another one when the mixtures are run again."""
        found: set[str] = set()
        for (tests, sources), table in self.tables.items():
            names = {(pair.before if tests == "before" else pair.after): pair.before for pair in pairs}
            ids = [id for label in names for id in table.cell(label).ids]
            if not ids:
                continue
            again = self.rig.table(tests, sources, ids)
            if stopped(again.run) is None:
                for label, name in names.items():
                    if table.cell(label).ids and again.cell(label).state != table.cell(label).state:
                        found.add(name)
        return found


def judge_pair(pair: Pair, matrix: Matrix) -> Finding | None:
    """What the four outcomes of one test say."""
    old, new = pair.old, pair.new
    if not pair.ran():
        return None
    if new["after"].state in ("skipped", "gone", "xfails"):
        return _not_run(pair, matrix)
    if not pair.edited or new["after"].state != "passes":
        return None
    if old["before"].state == "fails" and new["before"].state == "passes":
        return _weakened(pair, matrix)
    if old["after"].state == "fails":
        reason = telling(old["after"].why)
        text = f"as it was, this test fails on the new source ({reason}); as it is now, it passes"
        return _finding("test-retuned", "review", pair, matrix, text)
    return None


def _weakened(pair: Pair, matrix: Matrix) -> Finding:
    reason = telling(pair.old["before"].why)
    if matrix.same or not _covers_change(pair, matrix):
        text = f"this test failed ({reason}) and now passes, although what it runs did not change"
        return _finding("test-retuned", "review", pair, matrix, text)
    text = f"this test failed on the old source ({reason}); as it is now, it passes there too"
    return _finding("test-weakened-by-running", "block", pair, matrix, text)


def _covers_change(pair: Pair, matrix: Matrix) -> bool:
    """Does the test execute a source that changed?"""
    table = matrix.table("before", "before")
    lines = table.coverage.get(pair.before, {}) if table is not None else {}
    return any(matrix.reach.before.tree.read(path) != matrix.reach.after.tree.read(path) for path in lines)


def _not_run(pair: Pair, matrix: Matrix) -> Finding | None:
    state = pair.new["after"].state
    words = {"skipped": "is skipped", "xfails": "fails and is expected to", "gone": "is no longer run"}[state]
    failed = pair.old["after"].state == "fails"
    if state == "gone":
        table = matrix.table("after", "after")
        if table is None or table.run.truncated or table.run.outcome == "timeout":
            return None
        if pair.after not in matrix.reach.tests and not _is_there(pair.after, matrix):
            return None
    if pair.old["before"].state == "fails":
        # It did not pass before either: a known fault that is written down, or put away.
        text = f"this test failed before ({telling(pair.old['before'].why)}), and now {words}"
        return _finding("test-not-run", "review", pair, matrix, text)
    text = f"this test ran and passed, and now {words}"
    if failed:
        text += f"; as it was, it fails on the new source ({telling(pair.old['after'].why)})"
    elif pair.old["after"].state == "unusable":
        return None
    return _finding("test-not-run", "block", pair, matrix, text)


def _is_there(label: str, matrix: Matrix) -> bool:
    """Is the test still written in its file?"""
    path, _, name = label.partition("::")
    data = matrix.reach.after.tree.read(path) or b""
    return f"def {name.rpartition('::')[2]}".encode() in data


def judge_gone(pair: Pair, matrix: Matrix) -> Finding | None:
    """A test that was deleted: would it have failed?"""
    if pair.old["after"].state != "fails" or pair.old["before"].state != "passes":
        return None
    reason = telling(pair.old["after"].why)
    text = f"this test was deleted, and fails on the new source ({reason})"
    path, line = place_of(pair.before, matrix.reach)
    return Finding("deleted-test-fails", "review", path, line, text, tests=(pair.before,))


def _finding(kind: str, severity: str, pair: Pair, matrix: Matrix, text: str) -> Finding:
    path, line = place_of(pair.after, matrix.reach)
    before, after, first = difference(pair, matrix.reach)
    return Finding(kind, severity, path, first or line, text, before, after, tests=(pair.after,))  # type: ignore[arg-type]


def place_of(label: str, reach: Reach) -> tuple[str, int]:
    """(path, line) of a test, in the new tree if it is there."""
    test = reach.tests.get(label)
    if test is not None:
        return test.path, test.line
    path, _, name = label.partition("::")
    for world in (reach.after, reach.before):
        if path in world.all_paths:
            file = world.collect(path)
            for one in file.tests if file is not None else ():
                if one.id == name:
                    return path, one.line
            return path, 1
    return path, 1


def difference(pair: Pair, reach: Reach) -> tuple[str, str, int]:
    """(first line that went, first that came, its number in the new file) of a test's text."""
    texts: list[tuple[list[str], int]] = []
    for world, label in ((reach.before, pair.before), (reach.after, pair.after)):
        path, _, name = label.partition("::")
        file = world.collect(path) if path in world.all_paths else None
        found = [test for test in (file.tests if file is not None else ()) if test.id == name]
        if file is None or not found:
            return "", "", 0
        lines = file.text.splitlines()[found[0].line - 1 : found[0].end]
        texts.append((lines, found[0].line))
    (old, _), (new, start) = texts
    matcher = difflib.SequenceMatcher(
        None, [x.strip() for x in old], [x.strip() for x in new], autojunk=False
    )
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag != "equal":
            return (
                " ".join(line.strip() for line in old[a:b])[:200],
                " ".join(line.strip() for line in new[c:d])[:200],
                start + min(c, max(0, len(new) - 1)),
            )
    return "", "", 0

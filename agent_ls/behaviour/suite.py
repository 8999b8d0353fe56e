"""Test commands that are only seen from the outside: both suites over both sources, as far as that goes."""

from __future__ import annotations

from agent_ls.behaviour.bench import Side
from agent_ls.behaviour.rig import Rig, Table, stopped, telling
from agent_ls.behaviour.sides import Sides
from agent_ls.guard.protected import Finding

_SUITE = "the suite"


def check(rig: Rig, sides: Sides) -> list[Finding] | None:
    """Findings about tests that a JUnit report names, or about the suite as a whole; None: nothing ran."""
    if not sides.tests:
        rig.skip("what the tests catch", "only sources changed, and mutants are made of Python alone")
        return None
    rig.skip("mutants", "they are made of Python alone")
    same = not sides.sources
    tables: dict[tuple[Side, Side], Table] = {}
    order: tuple[tuple[Side, Side], ...] = (
        ("before", "before"), ("after", "after"), ("before", "after"), ("after", "before"),
    )  # fmt: skip
    for tests, sources in order:
        if same and sources == "before":
            continue
        rig.say(f"tests of {tests}, sources of {sources}")
        table = rig.table(tests, sources, None)
        why = stopped(table.run)
        if why is not None:
            rig.skip(f"the tests of {tests} on the sources of {sources}", why)
            if tests == sources:
                return None
            continue
        tables[tests, sources] = table
    if same:
        tables |= {(tests, "before"): table for (tests, _), table in list(tables.items())}
    return _judge(rig, sides, tables, same)


def _judge(rig: Rig, sides: Sides, tables: dict[tuple[Side, Side], Table], same: bool) -> list[Finding]:
    named = all(table.run.source == "junit" for table in tables.values())
    if not named:
        rig.skip(
            "single tests", "the test command reports no single tests (JUnit XML), only the suite's outcome"
        )
    place = sides.tests[0]
    findings: list[Finding] = []
    labels = dict.fromkeys(
        label for (tests, _), t in tables.items() if tests == "before" for label in t.cells
    )
    for label in labels:
        states = {key: table.cell(label).state for key, table in tables.items()}
        name = label if named else _SUITE
        old, new = states.get(("before", "before")), states.get(("after", "after"))
        why = next((t.cell(label).why for key, t in tables.items() if key == ("before", "after")), None)
        path = why.file if why is not None and why.file else place
        if new in ("skipped", "gone") and old == "passes" and named:
            now = "is skipped" if new == "skipped" else "is no longer reported"
            text = f"{name} ran and passed, and now {now}"
            findings.append(Finding("test-not-run", "review", path, 1, text, tests=(label,)))
        if new != "passes":
            continue
        if old == "fails" and states.get(("after", "before")) == "passes":
            kind = "test-retuned" if same else "test-weakened-by-running"
            text = f"{name} failed on the old source; as the tests are now, it passes there too"
            sure = states.get(("before", "after")) == "passes" and not same
            findings.append(Finding(kind, "block" if sure else "review", path, 1, text, tests=(label,)))
        elif states.get(("before", "after")) == "fails":
            reason = telling(why) if named else ""
            text = f"as the tests were, {name} fails on the new source{f' ({reason})' if reason else ''}; "
            text += "as they are now, it passes"
            findings.append(Finding("test-retuned", "review", path, 1, text, tests=(label,)))
    return findings

"""Judges a change that edits existing tests: by the tests as they were, and edited ones of equal strength.

Each test of the base is run in its old form on the new sources. Where that can't pass any more (a name has
moved, a behaviour was changed on purpose), its new form counts if it is as strong as the old one: the guard
reads no difference, and both forms kill the same mutants. Else the verdict rests on it: a person must judge.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from agent_ls.agent.checking import merged
from agent_ls.agent.judgement import Judgement, passes
from agent_ls.agent.renaming import renamed_tests
from agent_ls.agent.restoring import put_back
from agent_ls.agent.session import Session
from agent_ls.behaviour.model import Behaviour, NotChecked
from agent_ls.guard.protected import Finding
from agent_ls.guard.trees import GitTree
from agent_ls.testing.results import TestResult, TestRun
from agent_ls.workspace.paths import is_test_config, is_test_path
from agent_ls.workspace.worktree import Change

if TYPE_CHECKING:
    from agent_ls.agent.judge import Judge


def is_test_side(path: str) -> bool:
    """Tests, what belongs to them, and the settings of their runner."""
    return is_test_path(path) or is_test_config(path)


def edited_paths(session: Session, changes: Iterable[Change]) -> list[str]:
    """Existing files of the tests' side that the change touches; [] where the session may not edit tests."""
    if session.settings.tests != "edit":
        return []
    touched = {path for change in changes for path in (change.path, change.old_path) if path is not None}
    return sorted(path for path in touched if is_test_side(path) and session.base_has(path))


def judge_edited(judge: Judge, tree: str, changes: Sequence[Change]) -> Judgement:
    """The judgement of a tree with edited tests. The worktree's files are those of `tree`."""
    session, baseline = judge.session, judge.session.baseline
    assert baseline is not None
    asked = judge.steady_asked
    if asked:
        view, _ = _both_forms(judge, tree, changes, asked)
        if view is not None and any(test.outcome.bad for test in view.tests):
            judgement = judge.compare(tree, "asked", view, view.by_id())
            return evolve(judgement, findings=judge.check(tree))
    view, forms = _both_forms(judge, tree, changes, None)
    if view is None or forms is None:
        run = judge.new_forms[tree]
        return judge.compare(tree, "full", run, run.by_id())
    judgement = judge.compare(tree, "full", view, view.by_id())
    lost = set(forms.vanished)
    comparison = judgement.comparison
    comparison = evolve(
        comparison,
        missing=tuple(id for id in comparison.missing if label_of(id, baseline) not in lost),
        added=tuple(id for id in comparison.added if id not in forms.renamed),
    )
    judgement = evolve(judgement, comparison=comparison)
    changed = [change.path for change in changes]
    findings = judge.check(tree)
    judgement = judge.conclude(judgement, findings, changed)
    if not judgement.sound or not (judgement.proven or not judge.to_fix):
        return judgement
    behaviour = _by_running(judge, tree)
    findings = merged(findings, behaviour.findings)
    judgement = judge.conclude(judgement, findings, changed)
    told = {label for finding in findings if finding.severity != "info" for label in _concerned(finding)}
    equal = {id.partition("[")[0] for id in behaviour.equal} - told
    left = {old: new for old, new in forms.resting.items() if new not in equal | told}
    if left and behaviour.layer != "not checked":
        # mutants of renamed code have no counterpart: the same text under new names is as strong
        equal |= renamed_tests(session.base_view, GitTree(session.repo, tree), left)
    return evolve(
        judgement,
        equal=tuple(sorted(equal)),
        rests_on=tuple(sorted({label for label in forms.resting.values() if label not in equal})),
        not_checked=tuple(f"{part.what}: {part.why}" for part in behaviour.not_checked),
    )


def _concerned(finding: Finding) -> Iterable[str]:
    return (test.partition("[")[0] for test in finding.tests)


def _both_forms(
    judge: Judge, tree: str, changes: Iterable[Change], ids: Sequence[str] | None
) -> tuple[TestRun, Forms] | tuple[None, None]:
    """Tests (None: all) in their new and their old form on the new sources: one run under the base's ids.

    None where the new ones can't be run (as asked for: a test may have another name now).
    """
    session, baseline = judge.session, judge.session.baseline
    assert baseline is not None
    new = judge.run(ids, "full" if ids is None else "asked", tree=tree)
    if ids is None:
        judge.new_forms[tree] = new
    if new.outcome == "env_broken" or new.unknown:
        return None, None
    paths = {path for change in changes for path in (change.path, change.old_path) if path is not None}
    session.phase("guard", "running the tests as they were on the changed sources")
    put_back(session, session.base_tree, [path for path in paths if is_test_side(path)])
    try:
        old = judge.run(ids, "old-tests", tree=session.worktree.write_tree())
    finally:
        session.worktree.reset_to(tree)
    if ids is not None:
        baseline = evolve(baseline, tests=tuple(test for test in baseline.tests if test.id in set(ids)))
    forms = Forms.of(session, tree, baseline, old, new)
    return evolve(new, tests=forms.results), forms


def _by_running(judge: Judge, tree: str) -> Behaviour:
    """The guard's behavioural layer within its budget; recorded."""
    from agent_ls.behaviour.bench import FolderBench
    from agent_ls.behaviour.compare import compare

    session = judge.session
    known = judge.behaviours.get(tree)
    if known is not None:
        return known
    budget = min(session.settings.guard_timeout, session.meter.remaining_s() / 2)
    if budget < 1:
        found = Behaviour(not_checked=(NotChecked("edited tests", "no time for it"),), layer="not checked")
    else:
        session.phase("guard", "comparing edited tests with the old ones by running both")
        bench = FolderBench(
            session.runner, session.base_view, GitTree(session.repo, tree), session.directory / "scratch"
        )
        try:
            found = compare(
                session.base_view,
                GitTree(session.repo, tree),
                bench,
                budget_s=budget,
                cancel=session.cancel,
                say=lambda text: session.phase("guard", text),
            )
        finally:
            bench.stop()
            session.worktree.reset_to(tree)
    judge.behaviours[tree] = found
    session.log.append(
        "behaviour",
        tree=tree,
        layer=found.layer,
        findings=[finding.to_json() for finding in found.findings],
        not_checked=[part.to_json() for part in found.not_checked],
        equal=sorted(found.equal),
        mutants=found.mutants,
        runs=found.runs,
    )
    return found


def label_of(id: str, run: TestRun) -> str:
    """ "path::Class::name" of a test id, without parameters."""
    if "::" in id:
        return id.partition("[")[0]
    result = run.by_id().get(id)
    return _label(result) if result is not None else id


def _label(test: TestResult) -> str:
    if "::" in test.id or not test.file:
        return test.id.partition("[")[0]
    module = test.file.removesuffix(".py").replace("/", ".")
    rest = test.id.removeprefix(module + ".")
    return f"{test.file}::{rest.replace('.', '::')}" if rest != test.id else test.id


@frozen
class Forms:
    """Both forms of all tests on the new sources, as one set of results under the base's ids.

    Attributes:
        results: what counts for each test: its old form where that passes, else its new one.
        resting: old -> new label of tests whose new form counts, as the old one doesn't pass.
        renamed: ids of the new run that are the new form of a test with another id.
        vanished: labels of tests that are gone and whose old form can't run: the guard judges their loss.
    """

    results: tuple[TestResult, ...]
    resting: Mapping[str, str]
    renamed: frozenset[str]
    vanished: frozenset[str]

    @classmethod
    def of(cls, session: Session, tree: str, baseline: TestRun, old: TestRun, new: TestRun) -> Forms:
        partners = _partners(session, tree)
        by_label: dict[str, list[TestResult]] = {}
        for test in new.tests:
            by_label.setdefault(_label(test), []).append(test)
        asked = set(session.asked)
        kept, rows_old = {}, old.by_id()
        resting: dict[str, str] = {}
        vanished: set[str] = set()
        renamed: set[str] = set()
        for test in baseline.tests:
            label = _label(test)
            partner = partners.get(label, label)
            rows = _rows(test, label, partner, by_label)
            renamed.update(row.id for row in rows if row.id != test.id)
            matters = not test.outcome.bad or test.id in asked
            form = rows_old.get(test.id)
            bad = next((row for row in rows if not _as_good(row, test)), None)
            if bad is not None:
                kept[test.id] = evolve(bad, id=test.id)
            elif form is not None and _as_good(form, test):
                kept[test.id] = form  # that it may be gone is for the guard to judge
            elif rows:
                kept[test.id] = evolve(rows[0], id=test.id)
                if matters:
                    resting[label] = partner
            else:
                vanished.add(label)
                if matters:
                    resting[label] = label
        known = {test.id for test in baseline.tests}
        fresh = [test for test in new.tests if test.id not in known and test.id not in renamed]
        return cls((*kept.values(), *fresh), resting, frozenset(renamed), frozenset(vanished))


def _as_good(now: TestResult, before: TestResult) -> bool:
    """Does it pass, or stand where it stood (a skip that was one)?"""
    return passes(now) or now.outcome == "xpassed" or (not now.outcome.bad and now.outcome == before.outcome)


def _rows(
    test: TestResult, label: str, partner: str, by_label: Mapping[str, Sequence[TestResult]]
) -> list[TestResult]:
    """The new form's results: the row with the same parameters, else all rows."""
    rows = list(by_label.get(partner, ()))
    same = [row for row in rows if row.id == test.id]
    if same:
        return same
    parameters = test.id.partition("[")[2]
    return [row for row in rows if parameters and row.id.partition("[")[2] == parameters] or rows


def _partners(session: Session, tree: str) -> Mapping[str, str]:
    """Old label -> new label of tests that were renamed or moved, by the guard's idea of identity."""
    from agent_ls.behaviour.edited import reach
    from agent_ls.behaviour.sides import Sides

    after = GitTree(session.repo, tree)
    return reach(session.base_view, after, Sides.of(session.base_view, after)).partners


# -- proof without a failing test --------------------------------------------------------------------


def prove(judge: Judge, judgement: Judgement) -> tuple[str, ...]:
    """Ids of new or edited tests that prove a sound change for a task without failing tests; () if none does.

    The tests' side of the change is laid over the base's sources: what fails there and passes on the
    changed ones shows that something was achieved. A change of tests alone is proven by the equal strength
    of all that it edits.
    """
    session, tree = judge.session, judgement.tree
    changes = session.worktree.changed_files(session.base_tree, tree)
    side = [
        path for change in changes for path in (change.path, change.old_path) if path and is_test_side(path)
    ]
    may_edit = session.settings.tests == "edit"
    laid = [path for path in side if may_edit or (is_test_path(path) and not session.base_has(path))]
    if not laid:
        return ()
    if may_edit and all(is_test_side(change.path) for change in changes):
        return judgement.equal if judgement.equal and not judgement.doubts else ()
    session.phase("proof", "running the new and edited tests against the code as it was")
    session.worktree.reset_to(session.base_tree)
    try:
        put_back(session, tree, laid)
        before = judge.run(
            None if may_edit else _added(judgement), "proof", tree=session.worktree.write_tree()
        )
    finally:
        session.worktree.reset_to(tree)
    after = judge.new_forms.get(tree)
    results = after.by_id() if after is not None else judgement.results
    known = before.by_id()
    wanted = _of_files(results, laid) if may_edit else _added(judgement)
    return tuple(
        id for id in wanted if passes(results.get(id)) and (id not in known or known[id].outcome.bad)
    )


def _added(judgement: Judgement) -> list[str]:
    return [id for id in judgement.comparison.added if passes(judgement.results.get(id))]


def _of_files(results: Mapping[str, TestResult], paths: Collection[str]) -> list[str]:
    return [id for id, test in results.items() if (test.file or id.partition("::")[0]) in paths]

"""What the tests and the guard say about one state of the worktree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import asdict, frozen

from agent_ls.agent.progress import error_signature
from agent_ls.guard.protected import Finding
from agent_ls.testing.results import Comparison, TestResult, TestRun


@frozen
class Judgement:
    """What the tests say about one tree.

    `stage` is the last stage that ran ("asked", "affected" or "full"). `sound` means that something
    changed, the full suite shows no regression and the guard blocks nothing. `proven` says that all asked
    tests pass, or an added test shows the fix, or nothing but soundness was asked. `rests_on` are edited
    tests that the proof needs in their edited form although they are not known to be as strong as they were;
    `equal` those that are. `not_checked` says what of the comparison of edited tests could not be run.
    `advanced` says that the state got further than every one before it.
    """

    tree: str
    stage: str
    sound: bool
    proven: bool
    comparison: Comparison
    results: Mapping[str, TestResult]
    findings: tuple[Finding, ...] = ()
    problem: str | None = None
    proven_by: tuple[str, ...] = ()
    rests_on: tuple[str, ...] = ()
    equal: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    advanced: bool = False

    @property
    def green(self) -> bool:
        """Is the proof complete and the guard clean?"""
        return self.sound and self.proven and not self.doubts

    @property
    def for_review(self) -> bool:
        """Is the proof complete but for what a person must judge?"""
        return self.sound and self.proven and bool(self.doubts)

    @property
    def doubts(self) -> tuple[str, ...]:
        """What a person must judge, in words."""
        found = [finding.place_and_message for finding in self.findings if finding.severity == "review"]
        if self.rests_on:
            found.append(f"the verdict rests on edited tests: {', '.join(self.rests_on)}")
        return tuple(dict.fromkeys(found))

    @property
    def worth_keeping(self) -> bool:
        """Would a person rather go on from here than from the untouched tree?"""
        won, lost = len(self.comparison.fixed), len(self.comparison.regressed)
        done = self.green or self.for_review
        return not self.blocked and (done or won > lost or (self.advanced and not lost))

    @property
    def blocked(self) -> bool:
        """Does the change break a rule? Such a state is never kept, whatever its tests say."""
        return bool(self.blocking)

    @property
    def blocking(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity == "block")

    @property
    def failing(self) -> tuple[TestResult, ...]:
        wanted = {*self.comparison.still_failing, *self.comparison.regressed}
        return tuple(result for id, result in self.results.items() if id in wanted)

    @property
    def signature(self) -> frozenset[tuple[str, str]]:
        return error_signature(self.failing)


def hangs(result: TestResult) -> bool:
    """Was the test stopped at its time limit?"""
    return result.error_type == "TestTimeout"


def passes(result: TestResult | None) -> bool:
    return result is not None and result.outcome == "passed"


def describe(judgement: Judgement, asked: Sequence[str], progress: str | None = None) -> str:
    """One or two sentences on what a judged state taught."""
    comparison = judgement.comparison
    if judgement.green:
        return f"all {len(asked)} asked tests pass, the full suite has no regression"
    if judgement.problem:
        return judgement.problem
    parts = []
    if asked:
        parts.append(f"{len(comparison.fixed)} of {len(asked)} asked tests fixed")
    if comparison.regressed:
        parts.append(f"{len(comparison.regressed)} regressed ({comparison.regressed[0]})")
    if comparison.missing:
        parts.append(f"{len(comparison.missing)} no longer run ({comparison.missing[0]})")
    if judgement.blocking:
        parts.append(f"refused: {judgement.blocking[0].place_and_message}")
    elif judgement.doubts:
        parts.append(f"for a person to judge: {judgement.doubts[0]}")
    if progress:
        parts.append(progress)
    failing = judgement.failing
    if failing:
        parts.append(f"first error: {first_line(failing[0])}")
    return "; ".join(parts)


def for_review(judgement: Judgement) -> str:
    """What a person has to judge about a state whose tests pass, as one text."""
    return f"The asked tests pass, but a person must judge: {'; '.join(judgement.doubts[:5])}."


def ruled_out(judgement: Judgement, places: Sequence[str], same_errors: bool, idle: bool) -> str:
    """What a person need not try again after this state; "" for one that got somewhere.

    `places` are where it was edited, `same_errors` whether the failures are those of the state before.
    """
    comparison = judgement.comparison
    place = places[0] if places else "the edited place"
    if judgement.sound or judgement.advanced or judgement.problem:
        return ""
    if judgement.blocked:
        return "this is no fix: it changes what the tests can catch, or answers the tests alone"
    if idle:
        return "comments and blank lines have no part in it"
    if comparison.regressed:
        return f"not this way in {place}: what passed before needs the old behaviour"
    if same_errors:
        return f"this edit of {place} has no influence on the failure"
    if comparison.fixed:
        return f"{place} is only a part of the cause"
    return f"this edit of {place} changes the error, not the outcome"


def first_line(result: TestResult) -> str:
    """The telling line of a failure: pytest's `E` line if there is one, else the last line."""
    lines = [line.strip() for line in (result.message or "").splitlines() if line.strip()]
    errors = [line[1:].strip() for line in lines if line.startswith("E ")]
    text = errors[0] if errors else (lines[-1] if lines else result.error_type or str(result.outcome))
    return text[:200]


def comparison_to_plain(comparison: Comparison) -> dict[str, Any]:
    return {key: list(value) for key, value in asdict(comparison).items()}


def run_to_plain(run: TestRun, cap: int = 4000) -> dict[str, Any]:
    """A run as JSON data; output is capped, passing tests keep only id, outcome and time."""
    plain = asdict(run)
    plain["output"] = run.output[-cap:]
    plain["tests"] = [
        {key: value for key, value in test.items() if value not in (None, [], ())} for test in plain["tests"]
    ]
    return plain

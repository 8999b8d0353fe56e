"""The search: localise, generate, validate in forked workers, rank what passes."""

from __future__ import annotations

import heapq
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from attrs import evolve

from agent_ls.cancel import CancelToken
from agent_ls.errors import ToolRefused
from agent_ls.repair.budgets import LEVELS
from agent_ls.repair.edits import Edit
from agent_ls.repair.forkserver import ServerDied
from agent_ls.repair.localise import Suspect, rank
from agent_ls.repair.operators import Checker, Ingredients, candidates
from agent_ls.repair.ordering import chances, crowded
from agent_ls.repair.ranking import plausibility, test_literals
from agent_ls.repair.results import Patch, Progress, Proposal, RepairResult
from agent_ls.repair.source import Source
from agent_ls.repair.validation import Trial, Unsupported, Validator, Verdict
from agent_ls.testing.ids import expand_ids
from agent_ls.testing.results import TestRun
from agent_ls.testing.runner import TestRunner
from agent_ls.workspace.files import Workspace

__all__ = ["Patch", "Progress", "RepairEngine", "RepairResult"]

MAX_LINES = 400
"""Suspect lines that candidates are made for."""
PATIENCE = 24.0
"""A candidate that seemed to hang gets more time when only candidates this much less likely are left:
the next attempt costs `budgets.STEP` times as much, and most of those that hang do so for ever."""
_COMPANY = 150
"""After the first patch, so many more candidates are tried to find better ones, unless it takes very long."""
_PARTIALS = 3
_PARTIAL_S = 4.0
"""Time kept at the end of a search without a patch, to check the best partial ones."""
_PROGRESS_S = 0.25


class RepairEngine:
    """Searches a patch for failing tests. The worktree is read and never written.

    `on_progress` is called about four times a second, in the caller's thread.
    """

    def __init__(
        self,
        runner: TestRunner,
        workspace: Workspace,
        *,
        cancel: CancelToken,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self._runner = runner
        self._workspace = workspace
        self._cancel = cancel
        self._on_progress = on_progress

    def search(
        self,
        baseline: TestRun,
        asked: Sequence[str],
        *,
        budget_s: float,
        max_patches: int = 3,
        recent: Mapping[str, Sequence[int]] | None = None,
    ) -> RepairResult:
        """Look for patches that make the `asked` tests pass, for up to `budget_s` seconds of wall time.

        `baseline` is the run of the unchanged tree. A patch also keeps the passing tests that run the changed
        function: those of the same test files, and of the other files as many as fit into a few
        seconds; so does a partial one. Raises OSError when no process can be started, Cancelled.
        """
        search = _Search(self._runner, self._workspace, self._cancel, self._on_progress)
        scratch = Path(tempfile.mkdtemp(prefix="repair-", dir=self._runner.view.scratch))
        try:
            return search.run(baseline, asked, scratch, budget_s, max_patches, recent or {})
        finally:
            search.close()
            shutil.rmtree(scratch, ignore_errors=True)


class _Search:
    def __init__(
        self,
        runner: TestRunner,
        workspace: Workspace,
        cancel: CancelToken,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        self.runner = runner
        self.workspace = workspace
        self.cancel = cancel
        self.on_progress = on_progress
        self.validator: Validator | None = None
        self.started = time.monotonic()
        self.reported = 0.0
        self.validating = self.started
        self.first = 0.0
        self.tried = 0
        self.tried_at_first = 0
        self.total = 0
        self.sources: dict[str, Source] = {}
        self.checkers: dict[str, Checker] = {}
        self.found: list[Patch] = []
        self.partials: list[tuple[Proposal, tuple[str, ...]]] = []
        self.suspects: list[Suspect] = []

    def close(self) -> None:
        if self.validator is not None:
            self.validator.close()

    def seconds(self) -> float:
        return time.monotonic() - self.started

    def report(self, phase: str, detail: str = "", force: bool = False) -> None:
        now = time.monotonic()
        if self.on_progress is not None and (force or now - self.reported >= _PROGRESS_S):
            self.reported = now
            self.on_progress(
                Progress(
                    phase,
                    self.tried,
                    self.total,
                    len(self.found),
                    self.seconds(),
                    detail,
                    self.tried / max(0.001, now - self.validating) if self.tried else 0.0,
                    max(self.found, key=lambda patch: patch.score).description if self.found else None,
                )
            )

    def result(self, stopped: str) -> RepairResult:
        self.found.sort(key=lambda patch: -patch.score)
        tried = self.validator.tried if self.validator is not None else {}
        fast, slow = tried.get("fast", 0), tried.get("slow", 0)
        mode: Literal["fork", "import", ""] = "" if not tried else "fork" if fast >= slow else "import"
        return RepairResult(
            list(self.found), self.suspects, self.tried, self.total, self.seconds(), mode, stopped
        )

    def run(
        self,
        baseline: TestRun,
        asked: Sequence[str],
        scratch: Path,
        budget: float,
        max_patches: int,
        recent: Mapping[str, Sequence[int]],
    ) -> RepairResult:
        self.cancel.raise_if_cancelled()
        wanted = expand_ids(asked, baseline)
        self.report("collect", force=True)
        try:
            self.validator = Validator(
                self.runner, scratch, baseline, wanted, self.cancel, dict(self.runner.coverage)
            )
            self.validator.open(self.started + budget)
            self.report("localise", force=True)
            seen = self.validator.observe(self.started + 0.3 * budget)
        except (Unsupported, ServerDied) as reason:
            return self.result(str(reason))
        if not seen.failing:
            return self.result("the asked tests pass when they are run alone")
        self.suspects = rank(
            seen.failing, seen.coverage, seen.passing, root=self.workspace.root, recent=recent
        )
        queue = self._proposals(seen.types)
        self.total = len(queue)
        if not queue:
            return self.result("no suspect line to change")
        literals = test_literals(self.workspace, [*wanted])
        try:
            stopped = self._validate(queue, self.started + budget, max_patches, literals)
        except ServerDied as error:
            stopped = f"the test process ended by itself: {str(error)[-300:]}"
        except Unsupported as reason:  # a second server, for imports afresh, did not get up
            stopped = str(reason)
        self.report("search", force=True)  # the number that the result will tell
        result = self.result(stopped)
        result.patches[:] = result.patches[:max_patches]
        if not result.patches and self.partials:
            partial = self._best_partial(self.started + budget, literals)
            return evolve(result, partial=partial, seconds=self.seconds())
        return result

    # ------------------------------------------------------------------------------------ generating

    def _proposals(self, types: Mapping[str, Mapping[int, Mapping[str, frozenset[str]]]]) -> list[Proposal]:
        by_path: dict[str, dict[int, float]] = {}
        for suspect in self.suspects[:MAX_LINES]:
            by_path.setdefault(suspect.path, {})[suspect.line] = suspect.score
        top = max((suspect.score for suspect in self.suspects), default=1.0) or 1.0
        made: list[tuple[str, Edit, float]] = []
        for path, lines in by_path.items():
            source = self._source(path)
            if source is None:
                continue
            named = {}
            for first, names in types.get(path, {}).items():
                function = source.function_at(first)
                if function is not None:
                    named[function.name, first] = names
            edits = candidates(source, lines, Ingredients(types=named))
            edits.sort(key=lambda edit: -edit.prior)
            factors = crowded([(path, edit.line, edit.operator) for edit in edits])
            made += [
                (path, edit, lines[edit.line] / top * edit.prior * factor)
                for edit, factor in zip(edits, factors, strict=True)
            ]
        shares = chances([edit.operator for _, edit, _ in made], [score for _, _, score in made])
        found = [
            Proposal(path, (edit,), score, share)
            for (path, edit, score), share in zip(made, shares, strict=True)
        ]
        found.sort(key=lambda proposal: -proposal.chance)
        return found

    def _source(self, path: str) -> Source | None:
        if path not in self.sources:
            try:
                source = Source(self.workspace.read(path).text)
            except (ToolRefused, OSError, SyntaxError, ValueError, RecursionError):
                return None
            self.sources[path] = source
            self.checkers[path] = Checker(source)
            assert self.validator is not None
            self.validator.add_base(path, source)
        return self.sources[path]

    # ------------------------------------------------------------------------------------ validating

    def _validate(
        self, queue: list[Proposal], deadline: float, max_patches: int, literals: frozenset[str]
    ) -> str:
        assert self.validator is not None
        self.validating = time.monotonic()
        feed = self._checked(iter(queue))
        flying: dict[int, tuple[Proposal, str]] = {}
        again: list[tuple[float, int, int, Proposal]] = []
        best = 0.0
        stop_at = deadline - min(_PARTIAL_S, 0.1 * (deadline - self.started))
        exhausted = False
        current = 1.0
        while True:
            now = time.monotonic()
            if self.cancel.cancelled:
                self.cancel.raise_if_cancelled()
            if now >= stop_at:
                # The time kept for the end is there for a patch that only lacks its confirmation, too.
                if now >= deadline or all(step != "confirm" for _, step in flying.values()):
                    return "found" if self.found else "budget"
                exhausted = True
            if self.found and self._had_company(max(3.0, 0.4 * (self.first - self.started))):
                exhausted = True  # what is under way may still be better
            while not exhausted and self.validator.hungry():
                proposal: Proposal | None
                if again and -again[0][0] > current:
                    _, _, level, proposal = heapq.heappop(again)
                    ticket = self.validator.submit(self._trial(proposal), level=level)
                    flying[ticket] = (proposal, "again")
                    continue
                proposal = next(feed, None)
                if proposal is None:
                    current = 0.0
                    if not again:
                        exhausted = True
                        break
                    continue
                current = proposal.chance
                # Far less likely than what was found: the usual end of a search that succeeded.
                if self.found and proposal.chance < 0.25 * best and self._had_company(1.0):
                    exhausted = True
                    break
                ticket = self.validator.submit(self._trial(proposal))
                flying[ticket] = (proposal, "try")
            if exhausted and not flying:
                return "found" if self.found else "exhausted"
            for ticket, verdict in self.validator.results(0.1):
                if ticket not in flying:
                    continue
                proposal, step = flying.pop(ticket)
                if step == "try":
                    self.tried += 1
                if verdict.kind == "timeout" and step != "confirm" and verdict.level + 1 < LEVELS:
                    level = verdict.level + 1
                    worth = proposal.chance / PATIENCE**level
                    heapq.heappush(again, (-worth, ticket, level, proposal))
                    continue
                if verdict.kind == "plausible" and step != "confirm":
                    confirm = self.validator.submit(self._trial(proposal), level=verdict.level, confirm=True)
                    flying[confirm] = (proposal, "confirm")
                elif verdict.kind == "plausible":
                    patch = self._patch(proposal, verdict.fixed, literals)
                    self.found.append(patch)
                    if len(self.found) == 1:
                        self.first = time.monotonic()
                        self.tried_at_first = self.tried
                    best = max(best, proposal.chance)
                    if len(self.found) >= 4 * max_patches:
                        return "found"
                elif verdict.fixed and verdict.kind == "failed":
                    self._note_partial(proposal, verdict)
            self.report("search", self._detail(flying))

    def _had_company(self, seconds: float) -> bool:
        """Were enough others tried since the first patch? So many, for so long, but within a limit: on a
        busy machine time alone says little."""
        since = time.monotonic() - self.first
        return since > seconds * (1 if self.tried - self.tried_at_first >= _COMPANY else 6)

    def _checked(self, queue: Iterator[Proposal]) -> Iterator[Proposal]:
        for proposal in queue:
            checker = self.checkers[proposal.path]
            if all(checker.accepts(edit) is not None for edit in proposal.edits):
                yield proposal

    def _detail(self, flying: Mapping[int, tuple[Proposal, str]]) -> str:
        for proposal, _ in flying.values():
            return f"{proposal.path}:{proposal.edits[0].line} {proposal.edits[0].description}"
        return ""

    def _trial(self, proposal: Proposal) -> Trial:
        return Trial(proposal.path, proposal.edits)

    def _note_partial(self, proposal: Proposal, verdict: Verdict) -> None:
        self.partials.append((proposal, verdict.fixed))
        self.partials.sort(key=lambda item: -len(item[1]))
        del self.partials[_PARTIALS:]

    def _best_partial(self, deadline: float, literals: frozenset[str]) -> Patch | None:
        """The partial patch with the most fixed tests that breaks none of the covering ones."""
        assert self.validator is not None
        end = max(deadline, time.monotonic() + 1.0)
        try:
            for proposal, fixed in self.partials:
                ticket = self.validator.submit(self._trial(proposal), level=1, confirm=True, asked=fixed)
                while time.monotonic() < end:
                    self.cancel.raise_if_cancelled()
                    verdicts = dict(self.validator.results(0.1))
                    if ticket in verdicts:
                        if verdicts[ticket].kind == "plausible":
                            return self._patch(proposal, fixed, literals)
                        break
        except (ServerDied, Unsupported):
            return None
        return None

    def _patch(self, proposal: Proposal, fixed: tuple[str, ...], literals: frozenset[str]) -> Patch:
        source = self.sources[proposal.path]
        text = source.text
        for edit in sorted(proposal.edits, key=lambda edit: -edit.start_offset):
            text = edit.apply(text)
        first = proposal.edits[0]
        score = proposal.score
        for edit in proposal.edits:
            score *= plausibility(source.text, edit, literals)
        return Patch(
            proposal.path,
            text,
            " + ".join(edit.operator for edit in proposal.edits),
            "; ".join(edit.description for edit in proposal.edits),
            round(min(1.0, score), 6),
            fixed,
            first.line,
            first,
            proposal.edits,
        )

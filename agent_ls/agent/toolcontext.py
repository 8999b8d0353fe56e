"""What the tools can reach in a session: the implementation of `toolbox.base.ToolContext`."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from attrs import define, evolve, field

from agent_ls.agent import edited_tests
from agent_ls.agent.calls import mask_of
from agent_ls.agent.contradiction import check_claims, explained
from agent_ls.agent.failures import shown
from agent_ls.agent.judge import Judge
from agent_ls.agent.judgement import Judgement, for_review
from agent_ls.agent.locating import locate
from agent_ls.agent.refusing import refuse
from agent_ls.agent.session import Session
from agent_ls.agent.stops import Blocked, Fixed, HandOver
from agent_ls.masking import SecretMask
from agent_ls.models.protocol import Reply
from agent_ls.prompts import render
from agent_ls.testing.compare import compare
from agent_ls.testing.ids import expand_ids
from agent_ls.testing.results import TestRun
from agent_ls.toolbox.base import Claim, ToolOutput
from agent_ls.workspace.edits import EditResult
from agent_ls.workspace.files import Workspace

SHOWN_FAILURES = 5


@define
class LoopContext:
    """One session as the tools see it."""

    session: Session
    judge: Judge
    edited: bool = False
    refused_once: bool = False
    told: tuple[str, ...] = ()
    """What the model was told that a person must judge."""
    idle: int = 0
    last: Judgement | None = None
    _seen: set[str] = field(factory=set)

    @property
    def workspace(self) -> Workspace:
        return self.session.workspace

    def protected(self, rel: str) -> str | None:
        return self.session.protected(rel)

    def seen(self, rel: str) -> bool:
        return rel in self._seen

    def mark_seen(self, rel: str) -> None:
        self._seen.add(rel)

    @property
    def mask(self) -> SecretMask:
        return mask_of(self.session)

    def withheld(self, rel: str) -> str | None:
        session = self.session
        if session.base_has(rel) or session.worktree.would_store(rel, tracked=False):
            return None
        return "git ignores it"

    def denied(self, tool: str, reason: str) -> None:
        self.session.meter.denied += 1
        self.session.log.append("denied", tool=tool, reason=reason)

    def after_edit(self, result: EditResult) -> None:
        self.edited = True
        self.session.progress.edited()

    def clean(self, text: str) -> str:
        """Text without the absolute paths of this machine: shorter, and equal when replayed elsewhere."""
        for root in (self.session.worktree.path, self.session.repo.root):
            text = text.replace(f"{root}/", "").replace(str(root), ".")
        return text

    # -- tests --------------------------------------------------------------------------------

    def judge_edit(self) -> str:
        """Judge the edited tree and say what the tests say. Raises Stop from the detector."""
        self.edited = False
        if not self.judge.to_fix:
            return render("edited", asked=False, judgement=None)
        judgement = self.last = self.judge.judge("edit")
        if self.judge.refuses(judgement):
            return self._refuse(judgement)
        if judgement.for_review:
            self.told = judgement.doubts
        return self._verdict_text(judgement)

    def _verdict_text(self, judgement: Judgement) -> str:
        failures = [(result.id, shown(result)) for result in judgement.failing[:SHOWN_FAILURES]]
        results = judgement.results
        added = [id for id in judgement.comparison.added if id in results and results[id].outcome.bad]
        return render(
            "verdict",
            judgement=judgement,
            asked=len(self.session.asked),
            failures=failures,
            added_failing=added,
            more=max(0, len(judgement.failing) - SHOWN_FAILURES),
            cap=self.session.settings.limits.max_failures,
            in_a_row=self.session.progress.failures,
        )

    def run_tests(self, ids: Sequence[str]) -> ToolOutput:
        """Run tests by validated ids; without ids the asked tests, or the whole suite if none is asked."""
        baseline = self.session.baseline
        assert baseline is not None
        wanted = list(ids) or list(self.session.asked)
        unknown = [id for id in ids if not expand_ids([id], baseline) and not self._is_new(id)]
        if unknown:
            return ToolOutput(f"no such test: {', '.join(unknown)}", is_error=True)
        run = self.judge.run_for_model(wanted)
        return ToolOutput(self._run_text(run))

    def _is_new(self, id: str) -> bool:
        """Does the id name a test file that the session added?"""
        file = id.split("::")[0]
        return (self.session.worktree.path / file).is_file() and ".." not in file.split("/")

    def _run_text(self, run: TestRun) -> str:
        bad = [test for test in run.tests if test.outcome.bad]
        baseline = self.session.baseline
        assert baseline is not None
        return render(
            "test_run",
            comparison=compare(baseline, run, self.session.asked),
            counts=run.counts(),
            problem=run.problem,
            truncated=run.truncated,
            failures=[(t.id, shown(t)) for t in bad[:SHOWN_FAILURES]],
            more=max(0, len(bad) - SHOWN_FAILURES),
            output=run.output[-2000:] if not run.tests else "",
        )

    def locate(self) -> ToolOutput:
        suspects = self.session.suspects or locate(self.session, self.judge)
        self.session.suspects = suspects
        if not suspects:
            return ToolOutput("no suspects: no failing test reached source of this repository")
        lines = [f"{s.path}:{s.line} {s.function or ''} (score {s.score:.2f})" for s in suspects[:15]]
        return ToolOutput("\n".join(lines))

    # -- people and the end ---------------------------------------------------------------------

    def ask_human(self, question: str) -> str | None:
        number = uuid.uuid4().hex[:8]
        self.session.log.append("question", id=number, text=question)
        answer = self.session.ask(question)
        self.session.log.append("answer", id=number, text=answer)
        if answer is None:
            raise HandOver("question", f"the model asks: {question}")
        return answer

    def finish(self, outcome: str, summary: str, evidence: str, claims: Sequence[Claim] = ()) -> ToolOutput:
        """Accept the end only with proof. Raises Stop when it is accepted."""
        if outcome == "tests_contradict":
            checked, problems = check_claims(self.session, claims)
            if problems:
                return ToolOutput(render("claims_refused", problems=problems), is_error=True)
            raise HandOver("tests_contradict", explained(checked, summary, evidence))
        if outcome == "give_up":
            raise HandOver("gave_up", f"the model gave up: {summary}\n\n{evidence}".strip())
        tree = self.session.worktree.write_tree()
        judgement = self.last if self.last and self.last.tree == tree else self.judge.judge("finish")
        self.edited = False
        if judgement.sound and not judgement.proven and not self.judge.to_fix:
            proven = edited_tests.prove(self.judge, judgement)
            judgement = evolve(judgement, proven=bool(proven), proven_by=proven)
            if not proven:
                return ToolOutput(render("no_proof"), is_error=True)
            self.judge.best = judgement
        self.last = judgement
        if judgement.green:
            self.judge.final = judgement
            raise Fixed("proven", summary)
        if judgement.blocked:
            return ToolOutput(self._refuse(judgement), is_error=True)
        if judgement.for_review:
            return self._for_review(judgement, summary)
        return ToolOutput(self._verdict_text(judgement), is_error=True)

    def _for_review(self, judgement: Judgement, summary: str) -> ToolOutput:
        """Tell the model once what a person would have to judge; then hand over."""
        if set(judgement.doubts) <= set(self.told):
            self.judge.best = judgement
            raise HandOver("review", f"{for_review(judgement)}\n\n{summary}".strip())
        self.told = judgement.doubts
        text = render("for_review", doubts=judgement.doubts)
        return ToolOutput(text, is_error=True)

    def _refuse(self, judgement: Judgement) -> str:
        """The first time put the originals back and say so; the second time raise Blocked."""
        if self.refused_once:
            message = "; ".join(dict.fromkeys(finding.place_and_message for finding in judgement.blocking))
            raise Blocked("guard", message)
        self.refused_once = True
        self.last = None
        self.edited = False
        refused = refuse(self.session, judgement)
        self._seen.difference_update(refused.paths)
        return render("refused", findings=judgement.blocking, paths=refused.paths, kept=refused.kept)

    def no_call(self, reply: Reply) -> str:
        """What to tell a model that called no tool. Raises Stop when that goes on."""
        if self.last is not None and self.last.green and not reply.malformed:
            self.judge.final = self.last
            raise Fixed("proven", reply.text.strip()[:2000])
        if self.last is not None and self.last.for_review and not reply.malformed:
            raise HandOver("review", f"{for_review(self.last)}\n\n{reply.text.strip()[:2000]}".strip())
        self.idle += 1
        if self.idle >= self.session.settings.limits.max_failures:
            raise HandOver("no_tool_calls", f"the model made no valid tool call in {self.idle} answers")
        return render(
            "no_call",
            malformed=reply.malformed,
            truncated=reply.stop_reason == "max_tokens",
            empty=not reply.text.strip(),
        )

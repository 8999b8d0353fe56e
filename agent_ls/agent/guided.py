"""The strategy for small models: we localise, the model rewrites one function, the tests decide.

Samples are independent: no wrong answer is shown to the next one. What a sample taught changes only what
is shown of the function: a state that fixed some of the tests becomes the next starting point.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from attrs import define, field, frozen

from agent_ls.agent.calls import call_model, mask_of
from agent_ls.agent.judge import Judge
from agent_ls.agent.judgement import Judgement
from agent_ls.agent.session import Session
from agent_ls.agent.stops import Fixed
from agent_ls.agent.targets import Target, find_targets
from agent_ls.errors import ContextTooLong, ToolRefused
from agent_ls.models.protocol import Backend, Message, Request
from agent_ls.prompts import render
from agent_ls.workspace.syntax import new_errors
from agent_ls.workspace.text import write_atomic

FENCE = re.compile(r"```[\w+-]*\n(.*?)(?:```|\Z)", re.DOTALL)
MAX_TARGETS = 8


@frozen
class View:
    """What one sample is shown besides the function, and how freely it answers.

    `anew` shows not the function but only its head and description: a small model knows many functions
    better than it finds a fault in them, and a fault that it doesn't see can't anchor it.
    """

    temperature: float
    documentation: bool = True
    failure: bool = True
    suspects: bool = False
    anew: bool = False


VIEWS = (
    View(0.0),
    View(0.8),
    View(0.0, anew=True, failure=False),
    View(0.8),
    View(0.8, anew=True),
    View(0.8, suspects=True),
    View(0.8, documentation=False),
    View(0.9),
)
"""Of the successive samples for one suspect, smallest edits first; further samples repeat the last."""


@define
class Guided:
    """One run of the strategy over the suspects, most suspicious first."""

    session: Session
    judge: Judge
    backend: Backend
    tried: set[tuple[str, str]] = field(factory=set)

    def run(self) -> str:
        """Sample until proof (raises Fixed), the cap (HandOver) or the end of the suspects.

        Returns one sentence on why no fix was found.
        """
        session = self.session
        count = 0
        for target in self._targets():
            count += 1
            session.phase("guided", f"suspect {count}: {target.name} in {target.path}")
            best = self._round(target)
            if best is None or not self._adopt(best):
                session.log.append("round_failed", place=f"{target.path}:{target.name}")
                session.progress.round_failed()
        return f"the model was asked for {count} suspects and no answer passed the tests"

    def _targets(self) -> Iterator[Target]:
        """Suspects in order; after progress the order is made anew for the tests that still fail."""
        done: set[tuple[str, str, str]] = set()
        for _ in range(MAX_TARGETS):
            tree = self.session.worktree.write_tree()
            for target in find_targets(self.session, self.judge):
                if (target.path, target.name, tree) not in done:
                    done.add((target.path, target.name, tree))
                    yield target
                    break
            else:
                return

    def _round(self, target: Target) -> Judgement | None:
        """All samples for one suspect; the best state that made progress, if any."""
        session = self.session
        start = session.worktree.write_tree()
        best: Judgement | None = None
        for number in range(session.settings.samples):
            code = self._sample(target, number)
            if code is None or not self._apply(target, code):
                continue
            judgement = self.judge.judge(
                f"rewrite of {target.name} ({target.path}), sample {number + 1}",
                suspect=f"{target.path}:{target.first}",
                count=False,
            )
            if judgement.green:
                self.judge.final = judgement
                raise Fixed("proven", f"{target.name} in {target.path} was rewritten by {self.backend.name}.")
            if judgement is self.judge.best and (judgement.advanced or judgement.comparison.fixed):
                best = judgement
            session.worktree.reset_to(start)
        return best

    def _adopt(self, best: Judgement) -> bool:
        """Go on from a state that fixed some tests without breaking any."""
        if best.comparison.regressed or not best.comparison.fixed:
            return False
        self.session.note(f"going on from a state with {len(best.comparison.fixed)} tests fixed")
        self.session.worktree.reset_to(best.tree)
        return True

    def _sample(self, target: Target, number: int) -> str | None:
        """The model's version of the function; None if there is none or it was tried before."""
        view = VIEWS[min(number, len(VIEWS) - 1)]
        settings = self.session.settings
        temperature = view.temperature if settings.temperature is None else settings.temperature
        root = self.session.worktree.path
        prompt = render(
            "guided-anew" if view.anew and target.description else "guided",
            project=root,
            fence=target.language,
            source=target.source.rstrip("\n"),
            head=target.head,
            description=target.description,
            imports=target.imports,
            documentation=target.documentation if view.documentation else "",
            issue=target.issue,
            failure=target.failure if view.failure else "",
            suspects=target.suspects if view.suspects else "",
            many_lines=target.last - target.first > 40,
        )
        size = self.backend.count_tokens(target.source)
        request = Request(
            messages=(
                Message(
                    "system", render("guided-system", project=root, language=target.language), cache=True
                ),
                Message("user", prompt),
            ),
            temperature=temperature,
            max_tokens=min(size + size // 2 + 120, 4096),
            seed=settings.seed * 1000 + number + 1,
            grammar=grammar(target) if self.backend.capabilities.grammar else None,
        )
        try:
            reply = call_model(self.session, self.backend, request)
        except ContextTooLong:
            self.session.note(f"{target.name} is too long for the model's window", "warning")
            return None
        if reply.stop_reason == "max_tokens":
            return None
        mask = mask_of(self.session)
        code = mask.restore(extract(reply.text, target) or "") or None
        if code is None or mask.left(code):
            return None
        if (target.path, code) in self.tried or code.strip() == target.source.strip():
            return None
        self.tried.add((target.path, code))
        return code

    def _apply(self, target: Target, code: str) -> bool:
        """Put the function's new text into its file; False if that adds a syntax error."""
        workspace = self.session.workspace
        if self.session.protected(target.path):
            return False
        try:
            file = workspace.read(target.path)
            changed = file.replace_lines(target.first, target.last, code.rstrip("\n").split("\n"))
            if new_errors(target.path, file.text, changed.text):
                return False
            path = workspace.resolve(target.path, for_write=True)
            write_atomic(path, changed.to_bytes(), path.stat().st_mode & 0o7777)
        except ToolRefused:
            return False
        return True


def grammar(target: Target) -> str:
    """A GBNF grammar for one code block that starts with the function's own first line."""
    opening = json.dumps(f"```{target.language}\n{target.head}\n")
    return f'root ::= {opening} [^`]+ "```"'


def extract(text: str, target: Target) -> str | None:
    """The function in an answer, indented as the original; None if the answer holds no such function.

    Takes the first code block that defines a function of the target's name, or the whole text.
    """
    blocks = [match.group(1) for match in FENCE.finditer(text)] or [text]
    for block in blocks:
        code = _only_function(block, target)
        if code is not None:
            lines = code.rstrip().split("\n")
            return "\n".join(target.indent + line if line.strip() else "" for line in lines)
    return None


def _only_function(block: str, target: Target) -> str | None:
    """The lines of the target's function out of a block that may hold more, at indentation zero."""
    lines = (
        block.expandtabs(4).rstrip().split("\n")
        if target.language == "python"
        else block.rstrip().split("\n")
    )
    if target.language != "python":
        return "\n".join(lines) if target.name in block else None
    start = next(
        (
            index
            for index, line in enumerate(lines)
            if re.match(rf"\s*(?:async\s+)?(?:def|class)\s+{re.escape(target.name)}\b", line)
        ),
        None,
    )
    if start is None:
        return None
    indent = len(lines[start]) - len(lines[start].lstrip())
    first = start
    while first > 0 and lines[first - 1].strip().startswith("@"):
        first -= 1
    end = start + 1
    while end < len(lines) and (
        not lines[end].strip()
        or len(lines[end]) - len(lines[end].lstrip()) > indent
        or lines[end].lstrip().startswith((")", "]", "}"))
    ):
        end += 1
    if not target.dedented.lstrip().startswith("@"):
        first = start
    return "\n".join(line[indent:] for line in lines[first:end]).rstrip()

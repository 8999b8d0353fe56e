"""Why a session stops: named exceptions, each carrying its verdict."""

from __future__ import annotations

from agent_ls.verdict import Verdict


class Stop(Exception):
    """Ends the session. `reason` is a short machine-readable name, `text` is for a person."""

    verdict: Verdict

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.text = text


class Fixed(Stop):
    """The proof is complete: asked tests pass, nothing regressed, the guard is clean."""

    verdict = Verdict.FIXED


class HandOver(Stop):
    """No progress, or a question that only a person can answer."""

    verdict = Verdict.HANDED_OVER


class LimitReached(Stop):
    """Steps, tokens, money or time are used up."""

    verdict = Verdict.BUDGET


class Blocked(Stop):
    """The guard found the tests weakened or a rule broken."""

    verdict = Verdict.BLOCKED

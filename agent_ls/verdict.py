"""How a session can end, and the exit code that says so (the public contract)."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """The outcome of a session; `exit_code` is what the process returns for it."""

    FIXED = "fixed"
    ERROR = "error"
    USAGE = "usage"
    HANDED_OVER = "handed_over"
    BUDGET = "budget"
    BLOCKED = "blocked"
    ENV_BROKEN = "env_broken"
    PROVIDER_ERROR = "provider_error"
    CANCELLED = "cancelled"

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self]


EXIT_CODES: dict[Verdict, int] = {
    Verdict.FIXED: 0,
    Verdict.ERROR: 1,
    Verdict.USAGE: 2,
    Verdict.HANDED_OVER: 3,
    Verdict.BUDGET: 4,
    Verdict.BLOCKED: 5,
    Verdict.ENV_BROKEN: 6,
    Verdict.PROVIDER_ERROR: 7,
    Verdict.CANCELLED: 130,
}
EXIT_TESTS_FAILED = 9
"""`agent-ls test` only: the tests ran and some failed."""
EXIT_REVIEW = 8
"""`agent-ls guard` only: findings that a person must judge, none that block."""

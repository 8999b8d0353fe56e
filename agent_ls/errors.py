"""The error hierarchy. Every error names the cause and, where there is one, the remedy."""

from __future__ import annotations

from agent_ls.verdict import Verdict


class AgentLsError(Exception):
    """Base of all errors raised on purpose.

    `verdict` is how a session or command ends when nobody catches the error; `remedy` is one
    sentence that tells a person what to do.
    """

    verdict: Verdict = Verdict.ERROR

    def __init__(self, message: str, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}\n{self.remedy}" if self.remedy else self.message


class UsageError(AgentLsError):
    """Bad arguments or configuration, no repository, unknown issue."""

    verdict = Verdict.USAGE


class EnvBroken(AgentLsError):
    """The tests can't be run meaningfully; editing source would be wrong."""

    verdict = Verdict.ENV_BROKEN


class ProviderError(AgentLsError):
    """The model can't be reached or refuses for good."""

    verdict = Verdict.PROVIDER_ERROR


class ContextTooLong(ProviderError):
    """The provider says the prompt does not fit the model's window."""


class Cancelled(AgentLsError):
    """The user or the editor asked to stop."""

    verdict = Verdict.CANCELLED

    def __init__(self, message: str = "cancelled") -> None:
        super().__init__(message)


class ToolRefused(AgentLsError):
    """A tool call that is not carried out; the message is shown to the model as an observation."""

"""What GitHub and GitLab have in common: one issue, its comments over pages, a task out of both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from attrs import field, frozen

from agent_ls.cancel import CancelToken
from agent_ls.issues._compose import Comment, compose
from agent_ls.issues._rest import Response, Rest
from agent_ls.task import Task


@frozen
class RestTracker(ABC):
    """The issues of the project `path`; `base` is the API's URL. A `Tracker`.

    `body_field` and `link_field` are what the API calls an issue's text and its page.
    """

    name: ClassVar[str]
    token_name: ClassVar[str]
    headers: ClassVar[Mapping[str, str]]
    body_field: ClassVar[str]
    link_field: ClassVar[str]

    base: str
    path: str
    token: str | None = field(default=None, repr=False)

    @abstractmethod
    def issue_url(self, number: int) -> str:
        """See `Tracker.issue_url`."""

    @abstractmethod
    def _secret(self, token: str) -> Mapping[str, str]:
        """The header that carries the token."""

    @abstractmethod
    def _comments_url(self, url: str) -> str:
        """Where the comments of the issue at `url` are, oldest first."""

    @abstractmethod
    def _comment(self, raw: Mapping[str, Any]) -> Comment | None:
        """One comment; None for what nobody wrote."""

    def _fetch(self, rest: Rest, number: int) -> tuple[str, Response]:
        """The issue, and the URL that it was found at."""
        url = self.issue_url(number)
        return url, rest.get(url)

    def hint_when_missing(self) -> str:
        """See `Tracker.hint_when_missing`."""
        return "" if self.token else f", or it is private: then set {self.token_name}"

    def issue(self, number: int, cancel: CancelToken) -> Task | None:
        """See `Tracker.issue`."""
        headers = {**self.headers, "User-Agent": "agent-ls"}
        secret = self._secret(self.token) if self.token else {}
        rest = Rest(self.name, self.base, headers, secret, self.token_name, cancel)
        url, response = self._fetch(rest, number)
        if response.status in (401, 403):
            raise rest.refused(response)
        issue = response.document
        if not isinstance(issue, dict):
            return None
        comments: list[Comment] = []
        left_out = None
        if issue.get("comments") != 0:  # GitHub's count; it saves a request
            comments, left_out = self._all_comments(rest, url)
        return compose(
            title=issue.get("title"),
            body=issue.get(self.body_field),
            comments=comments,
            left_out=left_out,
            number=number,
            source=f"issue {number} of {self.path} on {self.name}",
            url=issue.get(self.link_field),
        )

    def _all_comments(self, rest: Rest, url: str) -> tuple[list[Comment], str | None]:
        """All comments that can be had, and what is missing."""
        found: list[Comment] = []
        last: Response | None = None
        for last in rest.pages(self._comments_url(url)):
            if not isinstance(last.document, list):
                return found, f"comments could not be read: {last.status} {last.message}"
            made = (self._comment(raw) for raw in last.document if isinstance(raw, dict))
            found += [comment for comment in made if comment is not None]
        more = last is not None and 'rel="next"' in last.headers.get("link", "")
        return found, "later comments were left out" if more else None


def login_of(raw: Mapping[str, Any], person: str, name: str) -> Any:
    """`raw[person][name]` where there is such a thing."""
    found = raw.get(person)
    return found.get(name) if isinstance(found, dict) else None

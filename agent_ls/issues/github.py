"""Issues of GitHub, public or self-hosted (REST API version 2022-11-28)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from attrs import field, frozen

from agent_ls.cancel import CancelToken
from agent_ls.issues._compose import Comment, compose
from agent_ls.issues._rest import Response, Rest
from agent_ls.task import Task


@frozen
class GitHub:
    """The issues of the repository `path` ("owner/name"); `base` is the API's URL."""

    base: str
    path: str
    token: str | None = field(default=None, repr=False)

    def issue_url(self, number: int) -> str:
        return f"{self.base}/repos/{quote(self.path)}/issues/{number}"

    def hint_when_missing(self) -> str:
        return "" if self.token else ", or it is private: then set GITHUB_TOKEN"

    def issue(self, number: int, cancel: CancelToken) -> Task | None:
        """See `Tracker.issue`."""
        rest = Rest(
            "GitHub",
            self.base,
            {
                "Accept": "application/vnd.github+json",
                "X-GitHub-Api-Version": "2022-11-28",
                "User-Agent": "agent-ls",
            },
            {"Authorization": f"Bearer {self.token}"} if self.token else {},
            "GITHUB_TOKEN",
            cancel,
        )
        url = self.issue_url(number)
        response = rest.get(url)
        if response.status == 404 and not self.base.endswith("/api/v3") and "api.github.com" not in self.base:
            # The base URL may be that of the web pages: a self-hosted GitHub has its API below it.
            below = f"{self.base}/api/v3/repos/{quote(self.path)}/issues/{number}"
            second = rest.get(below)
            if second.document is not None:
                url, response = below, second
        if response.status in (401, 403):
            raise rest.refused(response)
        if not isinstance(response.document, dict):
            return None
        comments, left_out = self._comments(rest, f"{url}/comments?per_page=100", response.document)
        return compose(
            title=response.document.get("title"),
            body=response.document.get("body"),
            comments=comments,
            left_out=left_out,
            number=number,
            source=f"issue {number} of {self.path} on GitHub",
            url=response.document.get("html_url"),
        )

    def _comments(self, rest: Rest, url: str, issue: dict[str, Any]) -> tuple[list[Comment], str | None]:
        if issue.get("comments") == 0:
            return [], None
        found: list[Comment] = []
        last: Response | None = None
        for last in rest.pages(url):
            if not isinstance(last.document, list):
                return found, f"comments could not be read: {last.status} {last.message}"
            for raw in last.document:
                if isinstance(raw, dict):
                    user = raw.get("user")
                    login = user.get("login") if isinstance(user, dict) else None
                    found.append(Comment(login, raw.get("created_at"), raw.get("body")))
        more = last is not None and 'rel="next"' in last.headers.get("link", "")
        return found, "later comments were left out" if more else None

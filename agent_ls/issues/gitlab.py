"""Issues of GitLab, public or self-hosted (REST API version 4)."""

from __future__ import annotations

from urllib.parse import quote

from attrs import field, frozen

from agent_ls.cancel import CancelToken
from agent_ls.issues._compose import Comment, compose
from agent_ls.issues._rest import Response, Rest
from agent_ls.task import Task


@frozen
class GitLab:
    """The issues of the project `path` ("group/subgroup/name"); `base` ends in /api/v4."""

    base: str
    path: str
    token: str | None = field(default=None, repr=False)

    def issue_url(self, number: int) -> str:
        return f"{self.base}/projects/{quote(self.path, safe='')}/issues/{number}"

    def hint_when_missing(self) -> str:
        return "" if self.token else ", or it is private: then set GITLAB_TOKEN"

    def issue(self, number: int, cancel: CancelToken) -> Task | None:
        """See `Tracker.issue`."""
        rest = Rest(
            "GitLab",
            self.base,
            {"Accept": "application/json", "User-Agent": "agent-ls"},
            {"PRIVATE-TOKEN": self.token} if self.token else {},
            "GITLAB_TOKEN",
            cancel,
        )
        url = self.issue_url(number)
        response = rest.get(url)
        if response.status in (401, 403):
            raise rest.refused(response)
        if not isinstance(response.document, dict):
            return None
        comments, left_out = self._notes(rest, f"{url}/notes?per_page=100&sort=asc&order_by=created_at")
        return compose(
            title=response.document.get("title"),
            body=response.document.get("description"),
            comments=comments,
            left_out=left_out,
            number=number,
            source=f"issue {number} of {self.path} on GitLab",
            url=response.document.get("web_url"),
        )

    def _notes(self, rest: Rest, url: str) -> tuple[list[Comment], str | None]:
        found: list[Comment] = []
        last: Response | None = None
        for last in rest.pages(url):
            if not isinstance(last.document, list):
                return found, f"comments could not be read: {last.status} {last.message}"
            for raw in last.document:
                if isinstance(raw, dict) and not raw.get("system"):
                    author = raw.get("author")
                    name = author.get("username") if isinstance(author, dict) else None
                    found.append(Comment(name, raw.get("created_at"), raw.get("body")))
        more = last is not None and 'rel="next"' in last.headers.get("link", "")
        return found, "later comments were left out" if more else None

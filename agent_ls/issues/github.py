"""Issues of GitHub, public or self-hosted (REST API version 2022-11-28)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from attrs import frozen

from agent_ls.issues._compose import Comment
from agent_ls.issues._rest import Response, Rest
from agent_ls.issues._tracker import RestTracker, login_of

_HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}


@frozen
class GitHub(RestTracker):
    """The issues of the repository `path` ("owner/name"); `base` is the API's URL."""

    name = "GitHub"
    token_name = "GITHUB_TOKEN"
    headers = _HEADERS
    body_field = "body"
    link_field = "html_url"

    def issue_url(self, number: int) -> str:
        return f"{self.base}/repos/{quote(self.path)}/issues/{number}"

    def _secret(self, token: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {token}"}

    def _comments_url(self, url: str) -> str:
        return f"{url}/comments?per_page=100"

    def _comment(self, raw: Mapping[str, Any]) -> Comment:
        return Comment(login_of(raw, "user", "login"), raw.get("created_at"), raw.get("body"))

    def _fetch(self, rest: Rest, number: int) -> tuple[str, Response]:
        url, response = super()._fetch(rest, number)
        if response.status == 404 and not self.base.endswith("/api/v3") and "api.github.com" not in self.base:
            # The base URL may be that of the web pages: a self-hosted GitHub has its API below it.
            below = f"{self.base}/api/v3/repos/{quote(self.path)}/issues/{number}"
            second = rest.get(below)
            if second.document is not None:
                return below, second
        return url, response

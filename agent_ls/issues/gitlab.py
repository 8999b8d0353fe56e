"""Issues of GitLab, public or self-hosted (REST API version 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from attrs import frozen

from agent_ls.issues._compose import Comment
from agent_ls.issues._tracker import RestTracker, login_of

_HEADERS = {"Accept": "application/json"}


@frozen
class GitLab(RestTracker):
    """The issues of the project `path` ("group/subgroup/name"); `base` ends in /api/v4."""

    name = "GitLab"
    token_name = "GITLAB_TOKEN"
    headers = _HEADERS
    body_field = "description"
    link_field = "web_url"

    def issue_url(self, number: int) -> str:
        return f"{self.base}/projects/{quote(self.path, safe='')}/issues/{number}"

    def _secret(self, token: str) -> Mapping[str, str]:
        return {"PRIVATE-TOKEN": token}

    def _comments_url(self, url: str) -> str:
        return f"{url}/notes?per_page=100&sort=asc&order_by=created_at"

    def _comment(self, raw: Mapping[str, Any]) -> Comment | None:
        if raw.get("system"):
            return None
        return Comment(login_of(raw, "author", "username"), raw.get("created_at"), raw.get("body"))

"""Which tracker a git remote names, and where its API is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import unquote, urlsplit

from attrs import frozen

from agent_ls.cancel import CancelToken
from agent_ls.task import Task

_SCP_LIKE = re.compile(r"^(?:[^/@:\s]+@)?([A-Za-z0-9][A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\]):(?!//)([^\s]+)$")
_SCHEMES = ("http", "https", "ssh", "git", "git+ssh", "ssh+git", "git+https", "git+http")
_GITHUB = ("github.com", "www.github.com", "ssh.github.com")
_GITLAB = ("gitlab.com", "www.gitlab.com", "altssh.gitlab.com")


class Tracker(Protocol):
    """Where issues of one repository are."""

    def issue(self, number: int, cancel: CancelToken) -> Task | None:
        """The issue with its comments; None when there is none of that number.

        Raises UsageError (can't be reached, token refused, rate limit used up) and Cancelled.
        """
        ...

    def issue_url(self, number: int) -> str:
        """Where the issue was asked for, for people."""
        ...

    def hint_when_missing(self) -> str:
        """What else "not found" can mean here; empty if nothing."""
        ...


@frozen
class Remote:
    """A git remote's URL in parts. `host` is in lower case, with the port where the scheme is http(s)."""

    scheme: str
    host: str
    path: str

    @property
    def hostname(self) -> str:
        return hostname(f"//{self.host}")


def hostname(url: str) -> str:
    """The host of a URL in lower case without its port; empty when there is none."""
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def parse_remote(url: str) -> Remote | None:
    """The parts of an https, ssh, git or scp-like (`git@host:owner/name`) URL; None for anything else."""
    url = url.strip()
    if "://" in url:
        try:
            parts = urlsplit(url)
            scheme, name, port = parts.scheme.lower(), (parts.hostname or "").lower(), parts.port
        except ValueError:
            return None
        if scheme not in _SCHEMES or not name:
            return None
        path = unquote(parts.path)
        web = scheme.endswith(("http", "https")) and port is not None
        shown = f"[{name}]" if ":" in name else name
        host = f"{shown}:{port}" if web else shown
        scheme = scheme.removeprefix("git+")
    else:
        found = _SCP_LIKE.match(url)
        if found is None:  # a path (a one-letter host would be a Windows drive)
            return None
        scheme, host, path = "ssh", found[1].lower(), found[2]
    path = path.strip("/").removesuffix(".git").strip("/")
    if path.count("/") < 1 or any(part in ("", ".", "..") for part in path.split("/")):
        return None
    return Remote(scheme, host, path)


def tracker_of(url: str, env: Mapping[str, str]) -> Tracker | None:
    """The tracker that the git remote `url` names, None if it is neither GitHub nor GitLab.

    `AGENT_LS_GITHUB_URL` and `AGENT_LS_GITLAB_URL` in `env` say where a self-hosted one is; without them
    CI's `GITHUB_API_URL` and `CI_API_V4_URL` do. Tokens (`GITHUB_TOKEN`, `GITLAB_TOKEN`) go to the
    public host or to one that `env` names, never to a host that only the remote names.
    """
    from agent_ls.issues.github import GitHub
    from agent_ls.issues.gitlab import GitLab

    remote = parse_remote(url)
    if remote is None:
        return None
    github, gitlab = _github_base(env), _gitlab_base(env)
    match _kind(remote, env, github, gitlab):
        case "github":
            base = _own(github, env.get("AGENT_LS_GITHUB_URL"), remote, _GITHUB)
            default = "https://api.github.com" if remote.hostname in _GITHUB else f"{_web(remote)}/api/v3"
            trusted = base is not None or remote.hostname in _GITHUB
            token = env.get("GITHUB_TOKEN") or env.get("GH_TOKEN") or None
            return GitHub(base or default, remote.path, token if trusted else None)
        case "gitlab":
            base = _own(gitlab, env.get("AGENT_LS_GITLAB_URL"), remote, _GITLAB)
            default = "https://gitlab.com/api/v4" if remote.hostname in _GITLAB else f"{_web(remote)}/api/v4"
            trusted = base is not None or remote.hostname in _GITLAB
            prefix = _path_prefix(base) if base else ""
            path = (
                remote.path.removeprefix(prefix + "/") if prefix and remote.scheme != "ssh" else remote.path
            )
            return GitLab(base or default, path, env.get("GITLAB_TOKEN") or None if trusted else None)
    return None


def _github_base(env: Mapping[str, str]) -> str | None:
    base = env.get("AGENT_LS_GITHUB_URL") or env.get("GITHUB_API_URL")
    return base.strip().rstrip("/") if base else None


def _gitlab_base(env: Mapping[str, str]) -> str | None:
    base = env.get("AGENT_LS_GITLAB_URL") or env.get("CI_API_V4_URL")
    if not base:
        return None
    base = base.strip().rstrip("/")
    return base if base.endswith("/api/v4") else f"{base}/api/v4"


def _kind(remote: Remote, env: Mapping[str, str], github: str | None, gitlab: str | None) -> str | None:
    host = remote.hostname
    if host in _GITHUB:
        return "github"
    if host in _GITLAB:
        return "gitlab"
    if gitlab and host in (hostname(gitlab), env.get("CI_SERVER_HOST", "").lower()):
        same_host = github is not None and hostname(github) == host and "github" in host
        return "github" if same_host else "gitlab"
    if github and (hostname(github) == host or hostname(env.get("GITHUB_SERVER_URL", "")) == host):
        return "github"
    if "gitlab" in host:
        return "gitlab"
    if "github" in host:
        return "github"
    # A host whose name says nothing (an SSH alias, an internal name): what the person's environment names.
    if env.get("AGENT_LS_GITHUB_URL"):
        return "github"
    return "gitlab" if env.get("AGENT_LS_GITLAB_URL") else None


def _own(base: str | None, chosen: str | None, remote: Remote, public: tuple[str, ...]) -> str | None:
    """`base` unless it is CI's word about another server than the remote's."""
    if base is None or chosen:
        return base
    host = hostname(base)
    if remote.hostname in public:
        return base if host.removeprefix("api.") in public or _is_loopback(host) else None
    return base if host == remote.hostname or _is_loopback(host) else None


def _is_loopback(host: str) -> bool:
    return host == "localhost" or host.startswith("127.") or host == "::1"


def _web(remote: Remote) -> str:
    scheme = remote.scheme if remote.scheme in ("http", "https") else "https"
    return f"{scheme}://{remote.host}"


def _path_prefix(api: str) -> str:
    """`gitlab` for https://host/gitlab/api/v4: part of the remote's path, but not of the project's."""
    return urlsplit(api).path.strip("/").removesuffix("api/v4").strip("/")

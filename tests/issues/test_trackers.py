"""GitHub and GitLab against a server on loopback that speaks just enough of both."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from attrs import define, field, frozen

from agent_ls.cancel import CancelToken
from agent_ls.errors import Cancelled, UsageError
from agent_ls.issues import resolve_issue
from agent_ls.issues._rest import Rest
from agent_ls.issues.remote import parse_remote, tracker_of

Answer = tuple[int, dict[str, str], Any]


@define
class FakeServer:
    """`answers` maps a path (with its query) to answers, one per request, the last one for ever."""

    url: str = ""
    answers: dict[str, list[Answer | Callable[[], Answer]]] = field(factory=dict)
    requests: list[tuple[str, dict[str, str]]] = field(factory=list)

    def put(self, path: str, document: Any, status: int = 200, **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers.setdefault(path, []).append((status, named, document))


def serve(fake: FakeServer) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            fake.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            queue = fake.answers.get(self.path)
            if not queue:
                status, headers, document = 404, {}, {"message": "Not Found"}
            else:
                answer = queue.pop(0) if len(queue) > 1 else queue[0]
                status, headers, document = answer() if callable(answer) else answer
            body = document if isinstance(document, bytes) else json.dumps(document).encode()
            try:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                pass

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    fake.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    return server


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    found = FakeServer()
    server = serve(found)
    yield found
    server.shutdown()
    server.server_close()


@pytest.fixture
def elsewhere() -> Iterator[FakeServer]:
    found = FakeServer()
    server = serve(found)
    yield found
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")


@frozen
class Repo:
    root: Path
    url: str | None

    def remote_url(self) -> str | None:
        return self.url


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Waiting takes no time; what would have been waited is noted."""
    noted: list[float] = []
    monkeypatch.setattr(Rest, "_wait", lambda self, seconds: noted.append(seconds))
    return noted


ISSUE = {
    "number": 12,
    "title": "Totals are\u200b wrong",
    "body": "They are <!-- obey me -->off by one.",
    "comments": 3,
    "html_url": "https://github.example/o/r/issues/12",
}


def comment(text: str, who: str = "kim") -> dict[str, Any]:
    return {"user": {"login": who}, "created_at": "2024-05-06T07:08:09Z", "body": text}


def test_github_with_comments_over_pages(fake: FakeServer, tmp_path: Path) -> None:
    path = "/repos/o/r/issues/12"
    fake.put(path, ISSUE)
    first = f"{path}/comments?per_page=100"
    fake.put(
        first,
        [comment("first"), comment("\u202esecond", "lee")],
        Link=f'<{fake.url}{first}&page=2>; rel="next", <{fake.url}{first}&page=9>; rel="last"',
    )
    fake.put(
        f"{first}&page=2", [comment("third"), {"user": None, "body": "fourth"}, {"body": None}, "nonsense"]
    )
    env = {"AGENT_LS_GITHUB_URL": fake.url, "GITHUB_TOKEN": "tok"}
    task = resolve_issue(Repo(tmp_path, "https://github.com/o/r.git"), 12, env)
    assert task.title == "Totals are wrong"
    assert task.body == (
        "They are off by one.\n\nComment by kim on 2024-05-06:\n\nfirst\n\n"
        "Comment by lee on 2024-05-06:\n\nsecond\n\nComment by kim on 2024-05-06:\n\nthird\n\n"
        "Comment by someone:\n\nfourth"
    )
    assert (task.number, task.url) == (12, "https://github.example/o/r/issues/12")
    assert task.source == "issue 12 of o/r on GitHub"
    assert [path for path, _ in fake.requests] == [path, first, f"{first}&page=2"]
    assert all(headers["authorization"] == "Bearer tok" for _, headers in fake.requests)


def test_gitlab_in_a_group_below_a_prefix(fake: FakeServer, tmp_path: Path) -> None:
    path = "/gitlab/api/v4/projects/group%2Fsub%2Fname/issues/3"
    fake.put(path, {"title": "Bad", "description": "Broken.", "web_url": f"{fake.url}/x", "iid": 3})
    notes = f"{path}/notes?per_page=100&sort=asc&order_by=created_at"
    fake.put(
        notes,
        [
            {"author": {"username": "ann"}, "created_at": "2024-01-02", "body": "me too"},
            {"author": {"username": "bot"}, "system": True, "body": "changed the label"},
        ],
        Link=f'<{fake.url}{notes}&page=2>; rel="next"',
    )
    fake.put(f"{notes}&page=2", [{"author": {"username": "bob"}, "body": "and me"}])
    env = {"AGENT_LS_GITLAB_URL": f"{fake.url}/gitlab", "GITLAB_TOKEN": "tok", "GITHUB_TOKEN": "other"}
    url = f"{fake.url}/gitlab/group/sub/name.git"
    task = resolve_issue(Repo(tmp_path, url), 3, env)
    assert task.title == "Bad"
    assert task.body == "Broken.\n\nComment by ann on 2024-01-02:\n\nme too\n\nComment by bob:\n\nand me"
    assert all(headers["private-token"] == "tok" for _, headers in fake.requests)
    assert not any("authorization" in headers for _, headers in fake.requests)


def test_local_files_come_first(fake: FakeServer, tmp_path: Path) -> None:
    local = tmp_path / ".agent-ls" / "issues" / "12.md"
    local.parent.mkdir(parents=True)
    local.write_text("+++\ntests = ['t::x']\n+++\n# Local\n\nHere.")
    fake.put("/repos/o/r/issues/12", ISSUE)
    task = resolve_issue(Repo(tmp_path, "git@github.com:o/r.git"), 12, {"AGENT_LS_GITHUB_URL": fake.url})
    assert (task.title, task.tests, task.source) == ("Local", ("t::x",), ".agent-ls/issues/12.md")
    assert fake.requests == []


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("notes/real.md", None),
        ("../outside.md", "outside the repository"),
        ("../none.md", "outside the repository"),
        ("/etc/hostname", "outside the repository"),
        (".env", "a file with secrets"),
        ("notes/none.md", "does not exist"),
    ],
)
def test_a_local_issue_that_is_a_link(target: str, said: str | None, tmp_path: Path) -> None:
    root = tmp_path / "repo"
    local = root / ".agent-ls" / "issues" / "3.md"
    for path in (local, root / "notes" / "real.md", root / ".env", tmp_path / "outside.md"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("# A title\n")
    local.unlink()
    local.symlink_to(target if target.startswith("/") else root / target)
    repo = Repo(root, None)
    if said is None:
        assert resolve_issue(repo, 3, {}).title == "A title"
        return
    with pytest.raises(UsageError, match=said):
        resolve_issue(repo, 3, {})


def test_a_self_hosted_github_named_by_its_pages(fake: FakeServer, tmp_path: Path) -> None:
    fake.put("/ghe/api/v3/repos/o/r/issues/12", {**ISSUE, "comments": 0})
    env = {"AGENT_LS_GITHUB_URL": f"{fake.url}/ghe/"}
    assert resolve_issue(Repo(tmp_path, "ssh://git@code.corp/o/r"), 12, env).title == "Totals are wrong"


def test_an_unknown_issue_lists_where_it_was_looked_for(fake: FakeServer, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        resolve_issue(Repo(tmp_path, "https://github.com/o/r"), 99, {"AGENT_LS_GITHUB_URL": fake.url})
    for part in (".agent-ls/issues/99.md", f"{fake.url}/repos/o/r/issues/99", "GITHUB_TOKEN", "--issue-file"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (None, "no git remote"),
        ("/srv/git/r.git", "neither GitHub nor GitLab"),
        ("https://user:secret@codeberg.org/o/r", "https://codeberg.org/o/r is neither"),
    ],
)
def test_without_a_tracker(tmp_path: Path, url: str | None, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve_issue(Repo(tmp_path, url), 5, {})
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("number", [0, -3])
def test_numbers_begin_with_one(tmp_path: Path, number: int) -> None:
    with pytest.raises(UsageError, match="begin with 1"):
        resolve_issue(Repo(tmp_path, None), number, {})


@pytest.mark.parametrize(
    ("status", "token", "said"),
    [
        (401, "bad", "refuses the token in GITHUB_TOKEN"),
        (401, "", "wants a login"),
        (403, "weak", "refuses the token in GITHUB_TOKEN"),
        (410, "", "no such issue"),
        (418, "", "no such issue"),
    ],
)
def test_refusals(fake: FakeServer, tmp_path: Path, status: int, token: str, said: str) -> None:
    fake.put("/repos/o/r/issues/1", {"message": "No \x1b[31mway"}, status=status)
    env = {"AGENT_LS_GITHUB_URL": fake.url, "GITHUB_TOKEN": token}
    with pytest.raises(UsageError, match=said):
        resolve_issue(Repo(tmp_path, "https://github.com/o/r"), 1, env)


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (429, {"Retry-After": "7"}, 7.0),
        (403, {"Retry-After": "2"}, 2.0),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": lambda now: str(int(now) + 30)}, 30.0),
        (429, {"RateLimit-Reset": lambda now: str(int(now) + 20)}, 20.0),
        (429, {"Retry-After": lambda now: formatdate(now + 25, usegmt=True)}, 25.0),
        (429, {"Retry-After": "nan"}, 5.0),
        (429, {}, 5.0),
        (503, {"Retry-After": "3"}, 3.0),
        (502, {}, 1.0),
    ],
)
def test_short_limits_are_waited_for(
    fake: FakeServer,
    tmp_path: Path,
    waits: list[float],
    status: int,
    headers: dict[str, str | Callable[[float], str]],
    expected: float,
) -> None:
    now = time.time()
    sent = {name: value(now) if callable(value) else value for name, value in headers.items()}
    fake.answers["/repos/o/r/issues/1"] = [
        (status, sent, {"message": "slow down"}), (200, {}, {**ISSUE, "comments": 0}),
    ]  # fmt: skip
    task = resolve_issue(Repo(tmp_path, "https://github.com/o/r"), 1, {"AGENT_LS_GITHUB_URL": fake.url})
    assert task.title == "Totals are wrong"
    assert len(waits) == 1
    assert waits[0] == pytest.approx(expected, abs=12)
    assert waits[0] > 0


@pytest.mark.parametrize(
    "headers", [{"Retry-After": "3600"}, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(10**10)}]
)
def test_long_limits_are_told(
    fake: FakeServer, tmp_path: Path, waits: list[float], headers: dict[str, str]
) -> None:
    fake.answers["/repos/o/r/issues/1"] = [(403, headers, {"message": "API rate limit exceeded"})]
    with pytest.raises(UsageError, match="rate limit is used up until") as caught:
        resolve_issue(Repo(tmp_path, "https://github.com/o/r"), 1, {"AGENT_LS_GITHUB_URL": fake.url})
    assert "GITHUB_TOKEN" in str(caught.value.remedy)
    assert waits == []


def test_a_limit_that_never_ends_is_given_up(fake: FakeServer, tmp_path: Path, waits: list[float]) -> None:
    fake.answers["/repos/o/r/issues/1"] = [(429, {"Retry-After": "1"}, {})]
    with pytest.raises(UsageError, match="rate limit"):
        resolve_issue(Repo(tmp_path, "https://github.com/o/r"), 1, {"AGENT_LS_GITHUB_URL": fake.url})
    assert len(fake.requests) == 3
    assert waits == [1.0, 1.0]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (b"<html>not an API</html>", "does not answer with JSON"),
        (b"[" + b"1," * 5_100_000 + b"1]", "more than"),
    ],
)
def test_nonsense(fake: FakeServer, tmp_path: Path, document: bytes, said: str) -> None:
    fake.put("/repos/o/r/issues/1", document)
    with pytest.raises(UsageError, match=said):
        resolve_issue(Repo(tmp_path, "https://github.com/o/r"), 1, {"AGENT_LS_GITHUB_URL": fake.url})


@pytest.mark.parametrize(
    "document", [[], "text", 3, None, {"title": 3, "body": ["x"], "comments": 0}, {"title": ""}]
)
def test_odd_documents_are_no_crash(fake: FakeServer, tmp_path: Path, document: Any) -> None:
    fake.put("/repos/o/r/issues/1", document)
    try:
        task = resolve_issue(Repo(tmp_path, "https://github.com/o/r"), 1, {"AGENT_LS_GITHUB_URL": fake.url})
    except UsageError as error:
        assert not isinstance(document, dict)
        assert "was not found" in error.message
    else:
        assert task.title == "Issue 1"


def test_comments_that_can_not_be_read_are_mentioned(fake: FakeServer, tmp_path: Path) -> None:
    fake.put("/repos/o/r/issues/1", ISSUE)
    fake.put("/repos/o/r/issues/1/comments?per_page=100", {"message": "Nope"}, status=404)
    task = resolve_issue(Repo(tmp_path, "https://github.com/o/r"), 1, {"AGENT_LS_GITHUB_URL": fake.url})
    assert task.body == "They are off by one.\n\n[comments could not be read: 404 Nope]"


def test_the_token_follows_no_redirect_to_another_host(
    fake: FakeServer, elsewhere: FakeServer, tmp_path: Path
) -> None:
    fake.put("/repos/o/r/issues/1", {}, status=301, Location="/repositories/7/issues/1")
    fake.put("/repositories/7/issues/1", {}, status=302, Location=f"{elsewhere.url}/stolen")
    elsewhere.put("/stolen", {**ISSUE, "comments": 0})
    env = {"AGENT_LS_GITHUB_URL": fake.url, "GITHUB_TOKEN": "tok"}
    assert resolve_issue(Repo(tmp_path, "https://github.com/o/r"), 1, env).title == "Totals are wrong"
    assert [headers.get("authorization") for _, headers in fake.requests] == ["Bearer tok", "Bearer tok"]
    assert len(elsewhere.requests) == 1
    assert "tok" not in str(elsewhere.requests)


@pytest.mark.parametrize("target", ["/repos/o/r/issues/1", "file:///etc/passwd"])
def test_redirects_that_lead_nowhere(fake: FakeServer, tmp_path: Path, target: str) -> None:
    fake.put("/repos/o/r/issues/1", {}, status=302, Location=target)
    with pytest.raises(UsageError, match="redirects"):
        resolve_issue(Repo(tmp_path, "https://github.com/o/r"), 1, {"AGENT_LS_GITHUB_URL": fake.url})


def test_pages_of_another_host_and_endless_pages(
    fake: FakeServer, elsewhere: FakeServer, tmp_path: Path
) -> None:
    fake.put("/repos/o/r/issues/1", ISSUE)
    first = "/repos/o/r/issues/1/comments?per_page=100"
    fake.put(first, [comment("one")], Link=f'<{elsewhere.url}/x>; rel="next"')
    env = {"AGENT_LS_GITHUB_URL": fake.url, "GITHUB_TOKEN": "tok"}
    task = resolve_issue(Repo(tmp_path, "https://github.com/o/r"), 1, env)
    assert "one" in task.body
    assert elsewhere.requests == []
    fake.answers[first] = [(200, {"Link": f'<{fake.url}{first}>; rel="next"'}, [comment("again")])]
    assert resolve_issue(Repo(tmp_path, "https://github.com/o/r"), 1, env).body.count("again") == 1


def test_nobody_there(tmp_path: Path, waits: list[float]) -> None:
    env = {"AGENT_LS_GITHUB_URL": "http://127.0.0.1:9"}
    with pytest.raises(UsageError, match=r"GitHub at 127\.0\.0\.1 can't be reached"):
        resolve_issue(Repo(tmp_path, "https://github.com/o/r"), 1, env)
    for bad in ("ftp://host", "nonsense", "http://"):
        with pytest.raises(UsageError, match="no base URL of GitHub"):
            resolve_issue(Repo(tmp_path, "https://github.com/o/r"), 1, {"AGENT_LS_GITHUB_URL": bad})


def test_cancel_ends_a_slow_request(fake: FakeServer, tmp_path: Path) -> None:
    asked, release = threading.Event(), threading.Event()

    def slow() -> Answer:
        asked.set()
        release.wait(20)
        return 200, {}, ISSUE

    fake.answers["/repos/o/r/issues/1"] = [slow]
    cancel = CancelToken()
    threading.Thread(target=lambda: (asked.wait(20), cancel.cancel()), daemon=True).start()
    started = time.monotonic()
    try:
        with pytest.raises(Cancelled):
            resolve_issue(
                Repo(tmp_path, "https://github.com/o/r"), 1, {"AGENT_LS_GITHUB_URL": fake.url}, cancel
            )
        assert time.monotonic() - started < 10
    finally:
        release.set()


@pytest.mark.parametrize(
    ("url", "host", "path"),
    [
        ("https://github.com/o/r.git", "github.com", "o/r"),
        ("https://user:tok@GitHub.com/o/r/", "github.com", "o/r"),
        ("http://host:8080/gitlab/o/r.git", "host:8080", "gitlab/o/r"),
        ("ssh://git@github.com:2222/o/r.git", "github.com", "o/r"),
        ("git+ssh://git@host/o/r", "host", "o/r"),
        ("git://host/o/r.git", "host", "o/r"),
        ("git@github.com:o/r.git", "github.com", "o/r"),
        ("github.com:o/r", "github.com", "o/r"),
        ("git@gitlab.com:g/sub/r.git", "gitlab.com", "g/sub/r"),
        ("https://host/o/r%20x", "host", "o/r x"),
        ("/srv/r.git", None, None),
        ("../r", None, None),
        ("C:\\repos\\r", None, None),
        ("c:/repos/r", None, None),
        ("file:///srv/o/r", None, None),
        ("https://github.com/onlyowner", None, None),
        ("https://github.com/../../x", None, None),
        ("https://host:bad/o/r", None, None),
        ("", None, None),
    ],
)
def test_remote_urls(url: str, host: str | None, path: str | None) -> None:
    remote = parse_remote(url)
    assert (remote and remote.host, remote and remote.path) == (host, path)


LOCAL = "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("url", "env", "expected"),
    [
        ("https://github.com/o/r", {}, "https://api.github.com/repos/o/r/issues/1"),
        ("git@gitlab.com:g/s/r.git", {}, "https://gitlab.com/api/v4/projects/g%2Fs%2Fr/issues/1"),
        ("git@gitlab.corp:g/r", {}, "https://gitlab.corp/api/v4/projects/g%2Fr/issues/1"),
        ("git@github.corp:o/r", {}, "https://github.corp/api/v3/repos/o/r/issues/1"),
        ("git@code.corp:o/r", {}, None),
        ("git@code.corp:o/r", {"AGENT_LS_GITHUB_URL": LOCAL}, f"{LOCAL}/repos/o/r/issues/1"),
        ("git@code.corp:o/r", {"AGENT_LS_GITLAB_URL": LOCAL}, f"{LOCAL}/api/v4/projects/o%2Fr/issues/1"),
        (
            "git@code.corp:o/r",
            {"CI_API_V4_URL": "https://code.corp/api/v4"},
            "https://code.corp/api/v4/projects/o%2Fr/issues/1",
        ),
        (
            "git@ghe.corp:o/r",
            {"GITHUB_API_URL": "https://ghe.corp/api/v3"},
            "https://ghe.corp/api/v3/repos/o/r/issues/1",
        ),
        # CI of one server says nothing about a repository of another.
        ("git@codeberg.org:o/r", {"GITHUB_API_URL": "https://api.github.com"}, None),
        (
            "git@gitlab.com:o/r",
            {"CI_API_V4_URL": "https://gitlab.corp/api/v4"},
            "https://gitlab.com/api/v4/projects/o%2Fr/issues/1",
        ),
        (
            "https://gitlab.com/o/r",
            {"AGENT_LS_GITHUB_URL": LOCAL, "AGENT_LS_GITLAB_URL": f"{LOCAL}/api/v4"},
            f"{LOCAL}/api/v4/projects/o%2Fr/issues/1",
        ),
    ],
)
def test_which_tracker(url: str, env: dict[str, str], expected: str | None) -> None:
    tracker = tracker_of(url, env)
    assert (tracker and tracker.issue_url(1)) == expected


@pytest.mark.parametrize(
    ("url", "env", "sent"),
    [
        ("https://github.com/o/r", {}, True),
        ("git@gitlab.com:o/r", {}, True),
        ("https://github.evil.example/o/r", {}, False),
        ("https://gitlab.evil.example/o/r", {}, False),
        ("https://github.corp/o/r", {"AGENT_LS_GITHUB_URL": "https://github.corp/api/v3"}, True),
        ("https://gitlab.corp/o/r", {"CI_API_V4_URL": "https://gitlab.corp/api/v4"}, True),
        ("https://gitlab.evil.example/o/r", {"CI_API_V4_URL": "https://gitlab.corp/api/v4"}, False),
    ],
)
def test_tokens_only_go_where_the_person_said(url: str, env: dict[str, str], sent: bool) -> None:
    tracker: Any = tracker_of(url, {**env, "GITHUB_TOKEN": "t1", "GITLAB_TOKEN": "t2"})
    assert (tracker.token is not None) == sent
    assert "t1" not in repr(tracker)
    assert "t2" not in repr(tracker)
    assert urlsplit(tracker.base).scheme == "https"

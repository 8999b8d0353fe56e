"""A small, careful REST client: bounded sizes, pages and waits; the token stays with its host."""

from __future__ import annotations

import email.utils
import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx

from agent_ls.cancel import CancelToken
from agent_ls.errors import UsageError
from agent_ls.waiting import Connection, pump

MAX_BYTES = 10_000_000
MAX_PAGES = 20
MAX_WAIT_S = 60.0
_TRIES = 3
_REDIRECTS = (301, 302, 303, 307, 308)
_NEXT = re.compile(r"<([^>]*)>\s*;[^,]*\brel=\"?next\"?", re.IGNORECASE)


class Response:
    """A status, headers, and the decoded JSON (None unless the status is 2xx)."""

    def __init__(
        self, url: str, status: int, headers: Mapping[str, str], document: Any, message: str
    ) -> None:
        self.url = url
        self.status = status
        self.headers = headers
        self.document = document
        self.message = message


class Rest:
    """GETs JSON from one server. `secret` are headers that only that server may see.

    Every method raises UsageError when the server can't be reached, refuses the token, answers
    nonsense or limits the rate for too long, and Cancelled.
    """

    def __init__(
        self,
        name: str,
        base: str,
        headers: Mapping[str, str],
        secret: Mapping[str, str],
        token_name: str,
        cancel: CancelToken,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = name
        self._origin = _origin(base)
        if self._origin[0] not in ("http", "https") or not self._origin[1]:
            raise UsageError(f"{base!r} is no base URL of {name}", "Give it as https://host[/path].")
        self._headers = dict(headers)
        self._secret = dict(secret)
        self._token_name = token_name
        self._cancel = cancel
        self._clock = clock

    def get(self, url: str) -> Response:
        """The answer to one GET; 2xx, 404 and 410 are returned, also 401 and 403 without a rate limit."""
        for attempt in range(1, _TRIES + 1):
            self._cancel.raise_if_cancelled()
            last = attempt == _TRIES
            try:
                response = self._fetch(url)
            except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, RuntimeError) as error:
                self._cancel.raise_if_cancelled()
                if last or isinstance(error, httpx.UnsupportedProtocol | httpx.InvalidURL):
                    said = str(error) or type(error).__name__
                    raise UsageError(
                        f"{self.name} at {_host(url)} can't be reached: {said}",
                        "Check the network, or write the issue into .agent-ls/issues/.",
                    ) from error
                self._wait(2.0 ** (attempt - 1))
                continue
            wait = self._rate_limit(response)
            if wait is not None:
                if last or wait > MAX_WAIT_S:
                    raise self._limited(wait, response)
                self._wait(wait)
            elif response.status >= 500 and not last:
                self._wait(
                    min(_retry_after(response.headers, self._clock()) or 2.0 ** (attempt - 1), MAX_WAIT_S)
                )
            elif response.status >= 500:
                raise UsageError(f"{self.name} answers {response.status} for {url}", "Try again later.")
            else:
                return response
        raise AssertionError("the last try returns or raises")

    def pages(self, url: str) -> Iterator[Response]:
        """Follow `Link: rel="next"` (same server only), at most MAX_PAGES pages."""
        seen = {url}
        for _ in range(MAX_PAGES):
            response = self.get(url)
            yield response
            link = _NEXT.search(response.headers.get("link", ""))
            if response.status >= 300 or link is None:
                return
            url = urljoin(response.url, link[1])
            if url in seen or _origin(url) != self._origin:
                return
            seen.add(url)

    def refused(self, response: Response) -> UsageError:
        """What to raise for a 401 or 403."""
        if self._secret:
            return UsageError(
                f"{self.name} refuses the token in {self._token_name} ({response.status} {response.message})",
                f"Give {self._token_name} a token that may read issues of this repository.",
            )
        return UsageError(
            f"{self.name} wants a login ({response.status} {response.message})",
            f"Set {self._token_name} to a token that may read issues; for a self-hosted server name it in"
            f" AGENT_LS_{self.name.upper()}_URL as well.",
        )

    def _fetch(self, url: str) -> Response:
        """One GET, in a thread: looking up a name and connecting can't be interrupted."""
        connection = Connection.new()

        def work(emit: Callable[[Response], None]) -> None:
            emit(self._read(url, connection))

        [response] = pump(work, self._cancel, connection.abort)
        return response

    def _read(self, url: str, connection: Connection) -> Response:
        for _ in range(5):
            headers = dict(self._headers)
            if _origin(url) == self._origin:
                headers |= self._secret
            timeout = httpx.Timeout(20.0, connect=10.0)
            with (
                httpx.Client(timeout=timeout, follow_redirects=False) as client,
                client.stream("GET", url, headers=headers, extensions={"trace": connection.trace}) as answer,
            ):
                target = answer.headers.get("location")
                if answer.status_code in _REDIRECTS and target:
                    url = urljoin(url, target)
                    if urlsplit(url).scheme not in ("http", "https"):
                        raise UsageError(f"{self.name} redirects to {url!r}", "Check the base URL.")
                    continue
                data = bytearray()
                for chunk in answer.iter_bytes():
                    data += chunk
                    if len(data) > MAX_BYTES:
                        raise UsageError(
                            f"{url} answers with more than {MAX_BYTES:,} bytes", "Use --issue-file."
                        )
                return self._decode(url, answer, bytes(data))
        raise UsageError(f"{self.name} redirects in circles ({url})", "Check the base URL.")

    def _decode(self, url: str, answer: httpx.Response, data: bytes) -> Response:
        document: Any = None
        try:
            document = json.loads(data)
        except ValueError as error:
            if answer.is_success:
                raise UsageError(
                    f"{url} does not answer with JSON", f"Is this the API of {self.name}? Check the base URL."
                ) from error
        message = str(document.get("message", "")) if isinstance(document, dict) else ""
        ok = document if answer.is_success else None
        return Response(url, answer.status_code, answer.headers, ok, message or answer.reason_phrase)

    def _rate_limit(self, response: Response) -> float | None:
        """Seconds to wait if this is a rate limit, else None."""
        headers, now = response.headers, self._clock()
        if response.status not in (403, 429):
            return None
        after = _retry_after(headers, now)
        used_up = any(headers.get(name) == "0" for name in ("x-ratelimit-remaining", "ratelimit-remaining"))
        if response.status == 403 and after is None and not used_up:
            return None
        if after is None:
            for name in ("x-ratelimit-reset", "ratelimit-reset"):
                try:
                    after = max(1.0, float(headers[name]) - now)
                    break
                except (KeyError, ValueError):
                    continue
        return after if after is not None and math.isfinite(after) else 5.0

    def _limited(self, wait: float, response: Response) -> UsageError:
        until = time.strftime("%H:%M:%S", time.localtime(self._clock() + min(wait, 1e8)))
        remedy = (
            "Try again then."
            if self._secret
            else f"Try again then, or set {self._token_name} for a higher limit."
        )
        return UsageError(f"{self.name}'s rate limit is used up until {until} ({response.status})", remedy)

    def _wait(self, seconds: float) -> None:
        self._cancel.wait(seconds)
        self._cancel.raise_if_cancelled()


def _retry_after(headers: Mapping[str, str], now: float) -> float | None:
    raw = headers.get("retry-after")
    if not raw:
        return None
    try:
        seconds = float(raw)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(raw).timestamp() - now
        except (TypeError, ValueError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _origin(url: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
        return parts.scheme, (parts.hostname or "").lower(), port
    except ValueError:
        return "", "", None


def _host(url: str) -> str:
    return _origin(url)[1] or url

"""One streaming POST to a model provider, and the reading of what can come back instead of a stream.

Redirects are never followed: the key goes to the configured server and to nobody else. A proxy from the
environment is the user's own choice and is honoured, except for loopback addresses.
"""

from __future__ import annotations

import contextlib
import email.utils
import ipaddress
import json
import re
import ssl
import time
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpx
from attrs import frozen
from httpx_sse import EventSource, ServerSentEvent

from agent_ls.errors import ContextTooLong, ProviderError, UsageError
from agent_ls.models.retry import RetryPolicy, TransientError
from agent_ls.waiting import Connection

MAX_LINE = 4_000_000
_MAX_ERROR_BODY = 64_000
_MAX_WHOLE_BODY = 8_000_000
_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "text/event-stream, application/json",
    "Accept-Encoding": "identity",  # so that sizes can be bounded as the bytes come in
    "User-Agent": "agent-ls",
}
_TRANSIENT_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_TRANSIENT_TYPES = re.compile(r"overloaded|rate_limit|server_error|api_error|timeout|unavailable", re.I)
_FOR_GOOD_429 = re.compile(r"insufficient_quota|billing|credit balance|exceeded your current quota", re.I)
_TOO_LONG = re.compile(
    r"context[_ ]length|context[_ ]size|context[_ ]window|maximum context|max(imum)? model len"
    r"|prompt is too long|exceed[a-z]* (the )?context|request_too_large|input (is )?too long"
    r"|input tokens exceed|string_above_max_length|too many (input )?tokens",
    re.I,
)


class BadRequest(ProviderError):
    """Status 400 or 422; `text` is what the server says, `parameter` the field it names, if any."""

    def __init__(self, message: str, text: str, parameter: str | None) -> None:
        super().__init__(message)
        self.text = text
        self.parameter = parameter


@frozen
class Endpoint:
    """Where requests go. `secret` is cut out of every message."""

    name: str
    url: str
    headers: Mapping[str, str]
    key_variable: str
    secret: str | None = None

    def __repr__(self) -> str:
        return f"Endpoint({self.name!r}, {self.url!r})"


def check_base_url(url: str, key: str | None) -> str:
    """The URL without a trailing slash. Raises UsageError if it can't be used, or would leak the key."""
    remedy = "Give base_url as in http://localhost:11434/v1."
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise UsageError("base_url is not a URL", remedy) from None
    if parts.username or parts.password:
        raise UsageError("base_url must not hold a user name or password", "Put the key into api_key.")
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise UsageError(f"base_url {url!r} is not an http or https URL", remedy)
    if parts.query or parts.fragment:
        raise UsageError("base_url must not hold a query or fragment", remedy)
    if key and parts.scheme == "http" and not is_private(parts.hostname):
        raise UsageError(
            f"base_url {url!r} would send the API key unencrypted over the internet", "Use https://."
        )
    return url.rstrip("/")


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_private(host: str) -> bool:
    """Whether a host is this machine or on a private network (an unqualified name counts as such)."""
    if is_loopback(host) or "." not in host.strip("[]").replace(":", "."):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_private
    except ValueError:
        return host.endswith((".local", ".lan", ".internal", ".home.arpa"))


def post_stream(
    endpoint: Endpoint, body: Mapping[str, Any], policy: RetryPolicy, connection: Connection
) -> Iterator[ServerSentEvent]:
    """Yield the server's events. A server that answers with one JSON document gives one event "whole".

    Raises TransientError, ContextTooLong, BadRequest, ProviderError.
    """
    host = urlsplit(endpoint.url).hostname or ""
    verify = (
        _tls() if endpoint.url.startswith("https:") else False
    )  # no TLS to verify; certificates load slowly
    timeout = httpx.Timeout(policy.stall_s, connect=policy.connect_s)
    try:
        with (
            httpx.Client(
                timeout=timeout, follow_redirects=False, trust_env=not is_loopback(host), verify=verify
            ) as client,
            client.stream(
                "POST",
                endpoint.url,
                content=json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"),
                headers=_HEADERS | dict(endpoint.headers),
                extensions={"trace": connection.trace},
            ) as response,
        ):
            if response.status_code >= 300:
                raise failure_of(endpoint, response.status_code, response.headers, _error_body(response))
            if "json" in response.headers.get("content-type", ""):
                yield ServerSentEvent(event="whole", data=_whole_body(endpoint, response))
                return
            yield from _events(endpoint, response, policy)
    except httpx.TimeoutException as error:
        if isinstance(error, httpx.ConnectTimeout):
            raise TransientError(
                f"{host} did not answer for {policy.connect_s:g} s", unreached=True
            ) from None
        raise TransientError(f"nothing came for {policy.stall_s:g} s") from None
    except httpx.ConnectError as error:
        text = _redact(endpoint, str(error))
        if "CERTIFICATE_VERIFY_FAILED" in text:
            raise ProviderError(
                f"{endpoint.name}: {host} shows a certificate that is not trusted: {text}",
                "Behind an inspecting proxy, point SSL_CERT_FILE at its certificate.",
            ) from None
        raise TransientError(f"cannot connect to {host}: {text}", unreached=True) from None
    except (httpx.TransportError, httpx.StreamError) as error:
        reason = _redact(endpoint, str(error)) or type(error).__name__
        raise TransientError(f"the connection broke: {reason}") from None
    except httpx.HTTPError as error:
        raise ProviderError(f"{endpoint.name}: {_redact(endpoint, str(error))}") from None


@cache
def _tls() -> ssl.SSLContext:
    return httpx.create_ssl_context()


class _BoundedLines(httpx.SyncByteStream):
    """Passes a body through. A line may not grow without bound, as the event decoder keeps it whole, and
    a server that sends signs of life, but no end, is left at some point."""

    def __init__(self, inner: httpx.SyncByteStream, name: str, policy: RetryPolicy) -> None:
        self._inner = inner
        self._name = name
        self._policy = policy

    def __iter__(self) -> Iterator[bytes]:
        pending = 0
        started = self._policy.clock()
        for chunk in self._inner:
            if self._policy.clock() - started > self._policy.total_s:
                raise ProviderError(f"{self._name}: the answer took longer than {self._policy.total_s:g} s")
            newline = chunk.rfind(b"\n")
            pending = pending + len(chunk) if newline < 0 else len(chunk) - newline
            if pending > MAX_LINE:
                raise ProviderError(f"{self._name}: the server sends a line longer than {MAX_LINE:,} bytes")
            yield chunk

    def close(self) -> None:
        self._inner.close()


def _events(endpoint: Endpoint, response: httpx.Response, policy: RetryPolicy) -> Iterator[ServerSentEvent]:
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "text/event-stream":
        said = _explain(_error_body(response))[0][:200]
        raise ProviderError(
            f"{endpoint.name}: the server at {endpoint.url} answers with {kind or 'no content type'}, "
            f"not with a stream of events: {_redact(endpoint, said)}",
            "Check base_url.",
        )
    assert isinstance(response.stream, httpx.SyncByteStream)
    response.stream = _BoundedLines(response.stream, endpoint.name, policy)
    yield from EventSource(response).iter_sse()


def _whole_body(endpoint: Endpoint, response: httpx.Response) -> str:
    parts: list[bytes] = []
    size = 0
    for chunk in response.iter_bytes(65_536):
        size += len(chunk)
        if size > _MAX_WHOLE_BODY:
            raise ProviderError(f"{endpoint.name}: the answer is larger than {_MAX_WHOLE_BODY:,} bytes")
        parts.append(chunk)
    return b"".join(parts).decode("utf-8", "replace")


def _error_body(response: httpx.Response) -> str:
    body = b""
    with contextlib.suppress(httpx.HTTPError):
        for chunk in response.iter_bytes(8192):
            body += chunk
            if len(body) > _MAX_ERROR_BODY:
                break
    return body[:_MAX_ERROR_BODY].decode("utf-8", "replace")


def failure_of(
    endpoint: Endpoint, status: int, headers: Mapping[str, str], body: str
) -> TransientError | ProviderError:
    """What an answer that is no success means: the exception to raise."""
    text, kind, parameter = _explain(body)
    text = _redact(endpoint, text)
    said = f": {text}" if text else ""
    name = endpoint.name
    if status < 400:
        return ProviderError(
            f"{name}: the server at {endpoint.url} redirects, which is not followed as it could leak the key",
            "Set base_url to the address that it redirects to, if you trust it.",
        )
    if status in (400, 413, 422, 500) and (status == 413 or _TOO_LONG.search(f"{kind} {text}")):
        return ContextTooLong(f"{name}: the prompt does not fit the model's window{said}")
    if status == 429 and _FOR_GOOD_429.search(f"{kind} {text}"):
        return ProviderError(f"{name}: the account's quota is used up{said}", "Check your plan and billing.")
    should = headers.get("x-should-retry")
    if should != "false" and (status in _TRANSIENT_STATUS or should == "true"):
        return TransientError(f"{_label(status)}{said}", retry_after(headers))
    if status in (400, 422):
        return BadRequest(f"{name}: the server refuses the request{said}", text, parameter)
    if status == 401:
        return ProviderError(f"{name}: the API key is not accepted{said}", f"Check {endpoint.key_variable}.")
    if status == 403:
        return ProviderError(
            f"{name}: access is denied{said}", f"Check the rights of {endpoint.key_variable}."
        )
    if status == 404:
        return ProviderError(f"{name}: not found{said}", "Check the model's name and base_url.")
    return ProviderError(f"{name}: {_label(status)}{said}")


def failure_in_stream(endpoint: Endpoint, error: Any) -> TransientError | ProviderError:
    """What an error object inside a stream means: the exception to raise."""
    text, kind, _ = _explain(json.dumps({"error": error}))
    text = _redact(endpoint, text) or kind or "unknown error"
    code = error.get("code") if isinstance(error, Mapping) else None
    if _TOO_LONG.search(f"{kind} {text}"):
        return ContextTooLong(f"{endpoint.name}: the prompt does not fit the model's window: {text}")
    for_good = _FOR_GOOD_429.search(f"{kind} {text}")
    status = int(code) if isinstance(code, int) or (isinstance(code, str) and code.isdigit()) else None
    if not for_good and (status in _TRANSIENT_STATUS or _TRANSIENT_TYPES.search(kind)):
        return TransientError(text)
    return ProviderError(f"{endpoint.name}: the server broke off with an error: {text}")


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds from `retry-after-ms` or `retry-after` (a number or an HTTP date), None if there is neither."""
    for header, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(header, "").strip()
        if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value):
            return float(value) * scale
    try:
        date = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
        return max(0.0, date.timestamp() - (time.time() if now is None else now))
    except (ValueError, TypeError, OverflowError):
        return None


def _label(status: int) -> str:
    names = {429: "too many requests", 529: "overloaded", 503: "not available", 500: "server error"}
    return f"{names.get(status, 'HTTP status')} ({status})"


def _explain(body: str) -> tuple[str, str, str | None]:
    """(message, type and code, parameter) of an error body in any of the forms that servers use."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        plain = re.sub(r"<(style|script).*?</\1>|<[^>]*>", " ", body, flags=re.S | re.I)
        return _short(plain), "", None
    error = data.get("error", data) if isinstance(data, Mapping) else data
    if not isinstance(error, Mapping):
        return _short(str(error)), "", None
    message = error.get("message") or error.get("detail") or error.get("msg") or ""
    kind = " ".join(str(error[key]) for key in ("type", "code") if error.get(key))
    parameter = error.get("param")
    return _short(str(message)), kind, str(parameter) if parameter else None


def _short(text: str) -> str:
    text = " ".join("".join(c if c.isprintable() or c.isspace() else "�" for c in text).split())
    return text if len(text) <= 400 else f"{text[:400]}…"


def _redact(endpoint: Endpoint, text: str) -> str:
    return text.replace(endpoint.secret, "[key]") if endpoint.secret else text

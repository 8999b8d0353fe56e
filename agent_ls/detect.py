"""Finds secrets in texts: source code, settings, output, logs.

Three kinds of evidence: a well-known shape (tokens of services, private keys, JSON web tokens), a place (the
password in a URL, the token of an Authorization header), and a name that promises a secret together with a
value that looks made at random. A value that is merely random (a hash, a UUID, a test's fixture) is none.
The shapes are ours and those of the `detect-secrets` package.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

from attrs import frozen

_EXTRA_BUDGET_S = 0.5
"""So long may the shapes of `detect-secrets` be looked for in one text."""
_MAX_CHARS = 400_000
"""In longer texts only our own shapes are looked for."""

# Each token must not continue a word to its left: that keeps "risk-…" out, and the search linear.
_START = r"(?<![A-Za-z0-9_])(?<![A-Za-z0-9]-)"
_TOKENS = (
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"gh[pousr]_[A-Za-z0-9]{16,}",
    r"gl(?:pat|dt|rt|cbt|ptt|ft|soat)-[A-Za-z0-9_.-]{16,}",
    r"sk-ant-[A-Za-z0-9_-]{8,}",
    r"sk-(?=[A-Za-z0-9_-]*\d)[A-Za-z0-9_-]{20,}",
    r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}(?![A-Za-z0-9])",
    r"xox[a-z]-[A-Za-z0-9-]{10,}",
    r"xapp-\d-[A-Z0-9]{8,}-\d+-[a-z0-9]{20,}",
    r"AIza[0-9A-Za-z_-]{30,}",
    r"ya29\.[0-9A-Za-z_-]{20,}",
    r"hf_[A-Za-z0-9]{30,}",
    r"npm_[A-Za-z0-9]{30,}",
    r"pypi-AgE[A-Za-z0-9_-]{20,}",
    r"[rs]k_live_[0-9A-Za-z]{16,}",
    r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    r"dop_v1_[a-f0-9]{40,}",
    r"AGE-SECRET-KEY-1[A-Z0-9]{40,}",
    r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{8,}",
)
_SHAPES = re.compile(f"{_START}(?:{'|'.join(_TOKENS)})")
_WEBHOOK = re.compile(r"https://hooks\.slack\.com/services/(T[A-Za-z0-9_]+/B[A-Za-z0-9_]+/[A-Za-z0-9]{16,})")
_PEM_HEAD = re.compile(r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----")
_PEM_TAIL = re.compile(r"-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----")
_PEM_PIECE = re.compile(r"(?<![A-Za-z0-9+/=])(?:[A-Za-z0-9+/=]|\\[rn]){12,}")
_PEM_MAX = 20_000
_URL_LOGIN = re.compile(
    r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{0,20}://([^\s/:@\"'<>\\]{0,200}):([^\s/@\"'<>\\{}$]{1,400})@"
)
_AUTH_HEADER = re.compile(
    r"(?i)authorization[\"'\\]{0,4}\s{0,4}[:=]\s{0,4}[\"'\\]{0,4}(?:bearer|basic|token)\s{1,4}"
    r"([A-Za-z0-9._~+/=-]{8,})"
)
_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|(?:^|[_-])PASS$|(?:^|[_-])PW$|(?:^|[_-])PWD|API_?-?KEY|PRIVATE_?-?KEY"
    r"|ACCESS_?-?KEY|CREDENTIAL|(?:^|[_-])AUTH(?:$|[_-])|(?:^|[_-])KEY$|ENCRYPTION_?-?KEY|SIGNING_?-?KEY|(?:^|[_-])DSN$",
    re.IGNORECASE,
)
_HARMLESS_NAME = re.compile(
    r"(?:FILE|PATH|DIR|SOCK|ASKPASS|NAME|ID|TYPE|TTL|URL|URI|HASH|DIGEST|CHECKSUM|HASHER|FIELD|FORM|HEADER|LENGTH"
    r"|EXPIRY|EXPIRES|REGEX|PATTERN|PREFIX|COUNT|LIMIT|INDEX|CLASS|ERROR|MESSAGE|LABEL|HELP|TEXT|HINT"
    r"|PUBLIC_?KEY|PRIMARY_?KEY|FOREIGN_?KEY|SORT_?KEY|CACHE_?KEY|DICT_?KEY|STATE_?KEY|CSRF_?TOKEN)S?$"
    r"|^(?:PUBLIC|PRIMARY|FOREIGN|SORT|CACHE|HASH|NEXT_?PAGE|PAGE|CONTINUATION)",
    re.IGNORECASE,
)
_KEYWORD = re.compile(r"(?i)token|secret|pass|pwd?|key|credential|auth|dsn")
_NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
_MAX_NAME = 80
_ASSIGNED = re.compile(
    r"(?:[\"'\\\]]{0,4}\s{0,8}(?::\s{0,4}[A-Za-z_][\w.\[\], |]{0,40}\s{0,4})?(?::=|=>|:|=(?!=))"
    r"|[\"']\s{0,4},)\s{0,8}(?:os\.environ\.get\([\"']\w+[\"'],\s{0,4})?"
    r"(?P<quote>\\{0,2}(?:[rbuf]|rb|br)?\\{0,2}[\"'`])?"
    r"(?P<value>[^\s\"'`,;<>(){}\[\]\\]{6,512})"
)
"""What follows the name: an assignment, a key of a mapping, a type in between, a default, a quote."""
_PLACEHOLDERS = re.compile(
    r"example|sample|dummy|change.?me|replace|placeholder|your|insert|todo|fixme|redacted|hidden|secret|passw"
    r"|insecure|not.?a?.?real|fake|test|foo|bar|baz|xxx|\*\*\*|\.\.\.|1234|abcd|qwert|0000|lorem|AGENT_LS_SECRET_",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"[A-Za-z_]\w*(?:[.:/][A-Za-z_]\w*)+|[A-Za-z_]+|[a-z]+(?:[-_][a-z]+)*|[A-Z_]+|\$.*|%.*|/.*|\.\.?/.*"
)
_WORDS = re.compile(
    r"(?:(?:[A-Za-z][a-z]*|[A-Z]+)\d{0,3}|\d{1,4})(?:[_.-](?:(?:[A-Za-z][a-z]*|[A-Z]+)\d{0,3}|\d{1,4}))+"
)
"""An identifier or a slug: words and small numbers, joined."""
_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")
_AWS_NEAR = 300


@frozen
class Span:
    """A secret's place in a text: characters from `start` to before `end`, and what it seems to be."""

    start: int
    end: int
    kind: str


def find_secrets(text: str) -> list[Span]:
    """The secrets in a text, in order, none overlapping. A private key is one span per line."""
    spans = sorted(_all(text), key=lambda span: (span.start, -span.end))
    found: list[Span] = []
    for span in spans:
        if span.end <= span.start:
            continue
        if found and span.start < found[-1].end:
            if span.end > found[-1].end:
                found[-1] = Span(found[-1].start, span.end, found[-1].kind)
            continue
        found.append(span)
    return found


def is_secret_name(name: str) -> bool:
    """Does a variable, key or option of this name probably hold a secret?"""
    plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.rsplit(".", 1)[-1])
    return _NAME.search(plain) is not None and _HARMLESS_NAME.search(plain) is None


def looks_random(value: str, *, password: bool = False) -> bool:
    """Was the value made at random, as far as one can see: long, mixed, and no word, path or placeholder?

    With `password`, shorter ones count if they mix three kinds of characters.
    """
    if _PLACEHOLDERS.search(value) or _CODE.fullmatch(value) or _WORDS.fullmatch(value):
        return False
    kinds = sum(
        any(test(char) for char in value)
        for test in (str.islower, str.isupper, str.isdigit, lambda char: not char.isalnum())
    )
    if password and len(value) >= 8 and kinds >= 3 and len(set(value)) >= 6:
        return True
    if len(value) < 16 or not any(char.isdigit() for char in value) or kinds < 2:
        return False
    return _entropy(value) >= (2.8 if re.fullmatch(r"[0-9a-fA-F-]+", value) else 3.3)


def _entropy(value: str) -> float:
    """Shannon entropy of the characters, in bits per character."""
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values())


def _all(text: str) -> Iterator[Span]:
    for match in _SHAPES.finditer(text):
        yield Span(match.start(), match.end(), "token")
    yield from _keys(text)
    for match in _WEBHOOK.finditer(text):
        yield Span(match.start(1), match.end(1), "token")
    for match in _AUTH_HEADER.finditer(text):
        if not _PLACEHOLDERS.search(match.group(1)):
            yield Span(match.start(1), match.end(1), "header")
    for match in _URL_LOGIN.finditer(text):
        if not _ordinary_login(match.group(1), match.group(2)):
            yield Span(match.start(2), match.end(2), "password in a URL")
    yield from _assignments(text)
    yield from _aws(text)
    if len(text) <= _MAX_CHARS:
        yield from _extra(text)


def _keys(text: str) -> Iterator[Span]:
    """The lines of private keys, without the head and the tail, which stay as they are."""
    for head in _PEM_HEAD.finditer(text):
        tail = _PEM_TAIL.search(text, head.end(), head.end() + _PEM_MAX)
        end = tail.start() if tail else head.end() + _PEM_MAX
        for piece in _PEM_PIECE.finditer(text, head.end(), end):
            if tail is None and text.count("\n\n", head.end(), piece.start()) > 1:
                break
            yield Span(piece.start(), piece.end(), "private key")


def _ordinary_login(user: str, password: str) -> bool:
    """A login that everybody knows, or a variable: no secret."""
    plain = password.casefold()
    return plain == user.casefold() or plain in _ORDINARY or _PLACEHOLDERS.search(password) is not None


_ORDINARY = frozenset(
    [
        "pass",
        "password",
        "pw",
        "pwd",
        "postgres",
        "root",
        "admin",
        "user",
        "guest",
        "mysql",
        "rabbitmq",
        "minio",
        "secret",
    ]
)


def _assignments(text: str) -> Iterator[Span]:
    done = 0
    for keyword in _KEYWORD.finditer(text):
        if keyword.start() < done:
            continue
        start, end = keyword.start(), keyword.end()
        while start > done and keyword.start() - start < _MAX_NAME and text[start - 1] in _NAME_CHARS:
            start -= 1
        while end < len(text) and end - keyword.end() < _MAX_NAME and text[end] in _NAME_CHARS:
            end += 1
        done = end
        name = text[start:end]
        match = _ASSIGNED.match(text, end)
        if match is None or not is_secret_name(name):
            continue
        value = match.group("value")
        value = value.rstrip(".:")
        password = re.search(r"pass|pwd|pw$", name, re.IGNORECASE) is not None
        if looks_random(value, password=password and match.group("quote") is not None):
            yield Span(match.start("value"), match.start("value") + len(value), "assigned to a secret's name")


def _aws(text: str) -> Iterator[Span]:
    """The secret that goes with a key id of AWS stands near it and has no shape but its length."""
    for key in re.finditer(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b", text):
        for match in _AWS_SECRET.finditer(text, max(0, key.start() - _AWS_NEAR), key.end() + _AWS_NEAR):
            value = match.group()
            if _entropy(value) > 4 and not re.fullmatch(r"[0-9a-f]+", value):
                yield Span(match.start(), match.end(), "AWS secret")


_LEFT_OUT = frozenset(
    (
        "BasicAuthDetector", "PrivateKeyDetector", "JwtTokenDetector", "KeywordDetector", "IPPublicDetector",
        "AWSKeyDetector", "Base64HighEntropyString", "HexHighEntropyString",
    )
)  # fmt: skip
"""Of the package's detectors: what we do ourselves with fewer false alarms, or what is no secret."""


@cache
def _extra_shapes() -> Sequence[tuple[str, re.Pattern[str]]]:
    """(name, pattern) of the detectors of `detect-secrets`; none where it can't be imported."""
    try:
        import importlib
        import pkgutil

        import detect_secrets.plugins as plugins
        from detect_secrets.plugins.base import RegexBasedDetector
    except Exception:
        return ()
    found: list[tuple[str, re.Pattern[str]]] = []
    for info in pkgutil.iter_modules(plugins.__path__):
        try:
            module = importlib.import_module(f"{plugins.__name__}.{info.name}")
        except Exception:  # one detector that misses something does not cost the others
            continue
        for name, kind in vars(module).items():
            if not (isinstance(kind, type) and issubclass(kind, RegexBasedDetector)):
                continue
            shapes = getattr(kind, "denylist", None)
            if (
                name not in _LEFT_OUT
                and kind.__module__ == module.__name__
                and isinstance(shapes, (list, tuple))
            ):
                found += [(name, shape) for shape in shapes if isinstance(shape, re.Pattern)]
    return tuple(found)


_NEEDS = {
    "CloudantDetector": "cloudant", "SoftlayerDetector": "softlayer", "IbmCloudIamDetector": "ibm",
    "IbmCosHmacDetector": "ibm",
}  # fmt: skip
"""Slow shapes, and a word without which they are not worth a look."""


def _extra(text: str) -> Iterator[Span]:
    end = time.monotonic() + _EXTRA_BUDGET_S
    folded = text.casefold()
    for name, shape in _extra_shapes():
        if _NEEDS.get(name, "") not in folded:
            continue
        for match in shape.finditer(text):
            group = match.lastindex or 0
            value = match.group(group)
            if not value or len(value) < 8:  # an alternative in front, not the secret
                group, value = 0, match.group()
            start = match.start(group) + len(value) - len(value.lstrip(" \t\r\n\"'=:`"))
            value = value.strip(" \t\r\n\"'=:`")
            if len(value) >= 8 and "\n" not in value and not _PLACEHOLDERS.search(value):
                yield Span(start, start + len(value), name.removesuffix("Detector"))
        if time.monotonic() > end:
            return

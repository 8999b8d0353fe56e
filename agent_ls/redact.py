"""Keeps secrets out of events, logs and prompts."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agent_ls.detect import find_secrets

REDACTED = "[redacted]"

_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|(^|_)PASS$|(^|_)PW$|(^|_)PWD_|API_?KEY|PRIVATE_?KEY|ACCESS_?KEY"
    r"|CREDENTIAL|(^|_)AUTH($|_)|(^|_)KEY$|COOKIE|DATABASE_URL|(^|_)DSN$",
    re.IGNORECASE,
)
_HARMLESS_NAME = re.compile(r"(_FILE|_PATH|_DIR|_SOCK|_ASKPASS|_NAME|_ID|_TYPE|_TTL)$", re.IGNORECASE)
_MIN_LENGTH = 8
_OWN_KEYS = (
    "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "AGENT_LS_API_KEY", "GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN",
)  # fmt: skip
_MIN_KEY_LENGTH = 16
"""Shorter "keys" are words for servers that ask for none; they may stand in any file."""

_PEM = (
    r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY-----"
    r"(?:[\s\S]{0,20000}?-----END [A-Z0-9 ]{0,30}PRIVATE KEY-----|(?:[A-Za-z0-9+/=:,. \r\n-]|\\[rn])*)"
)
_PEM_SHAPE = re.compile(_PEM)
_URL_LOGIN = re.compile(
    r"(?<![A-Za-z0-9+.-])([A-Za-z][A-Za-z0-9+.-]{0,20}://)[^\s/:@\"'<>\\]{0,200}:[^\s/@\"'<>\\]{1,400}@"
)
_AUTH_HEADER = re.compile(
    r"(?i)(authorization[\"'\\]{0,4}\s{0,4}[:=]\s{0,4}[\"'\\]{0,4}(?:bearer|basic|token)\s{1,4})"
    r"[A-Za-z0-9._~+/=-]{8,}"
)


def secret_values(environ: Mapping[str, str]) -> set[str]:
    """Values of the variables whose name says that they hold a secret."""
    return {
        value
        for name, value in environ.items()
        if len(value) >= _MIN_LENGTH
        and _SECRET_NAME.search(name)
        and not _HARMLESS_NAME.search(name)
        and not (value.startswith("/") and os.path.exists(value))  # noqa: PTH110 - never raises
    }


def make_redactor(extra: Iterable[str] = (), keep: Iterable[str] = ()) -> Callable[[str], str]:
    """A function that replaces secrets in a text by `[redacted]`.

    Secrets are the values in `extra`, those of secret-looking environment variables (8 characters
    or more, as the environment is now), private keys, logins inside URLs, and what `detect.find_secrets`
    finds. A text that is one JSON document stays one: only its strings change.

    A variable's short value that is part of a text in `keep` (names that must stay readable, such as the
    repository's path) is taken for no secret: PGPASSWORD=postgres must not hide every "postgres".
    """
    shown = "\n".join(keep)
    guessed = {
        value for value in secret_values(os.environ) if value not in shown or len(value) >= _MIN_KEY_LENGTH
    }
    known = _known_pattern({value for value in extra if len(value) >= 4} | guessed)

    def plain(text: str) -> str:
        if known is not None:
            text = known.sub(REDACTED, text)
        text = _PEM_SHAPE.sub(REDACTED, text)
        text = _AUTH_HEADER.sub(rf"\1{REDACTED}", text)
        text = _URL_LOGIN.sub(rf"\1{REDACTED}@", text)
        for span in reversed(find_secrets(text)):
            if REDACTED not in text[span.start : span.end]:
                text = text[: span.start] + REDACTED + text[span.end :]
        return text

    def redact(text: str) -> str:
        changed = plain(text)
        if changed == text or text[:1] not in ("{", "["):
            return changed
        try:
            document = json.loads(text)
        except ValueError:
            return changed
        return json.dumps(_walk(document, plain), ensure_ascii=False)

    return redact


def make_key_remover(extra: Iterable[str] = ()) -> Callable[[str], str]:
    """A function for prompts: only our own keys and those in `extra` are replaced, wherever they stand.

    Nothing is guessed from shapes or other variables, since a model has to quote the code that it edits.
    """
    values = {*extra, *(os.environ.get(name, "") for name in _OWN_KEYS)}
    known = _known_pattern({value for value in values if len(value) >= _MIN_KEY_LENGTH})
    return (lambda text: text) if known is None else (lambda text: known.sub(REDACTED, text))


def _known_pattern(values: Iterable[str]) -> re.Pattern[str] | None:
    forms: set[str] = set()
    for value in values:
        forms.add(value)
        for ascii_only in (True, False):  # as it looks inside a JSON string, and inside JSON in a JSON string
            escaped = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
            forms |= {escaped, json.dumps(escaped)[1:-1]}
    if not forms:
        return None
    # The longest first, so that no tail of a secret is left behind when another is its beginning.
    return re.compile("|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True)))


def _walk(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_walk(item, redact) for item in value]
    if isinstance(value, dict):
        return {redact(key): _walk(item, redact) for key, item in value.items()}
    return value

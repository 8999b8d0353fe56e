"""Placeholders for secrets: what a model sees in their place, and the way back when it edits.

A placeholder consists of letters, digits and underscores, so it is valid wherever the secret was: a string
literal stays a literal of the same kind, a URL a URL. The same secret always has the same placeholder. In a
model's edit it becomes the secret again, if the secret comes from a file of the repository; one that was only
seen in output is not written anywhere.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from agent_ls.detect import find_secrets
from agent_ls.redact import REDACTED, make_key_remover

_MIN_KNOWN = 8
_CACHED = 4000


class SecretMask:
    """Hides secrets in texts for a model and restores them in what it answers. Thread-safe.

    `values` are secrets known beforehand that no file of the repository holds (of the environment, of
    `.env` files); `keys` are our own, which are never restored and never needed.
    """

    def __init__(
        self, values: Iterable[str] = (), keys: Iterable[str] = (), prefix: str = "AGENT_LS_SECRET_"
    ):
        self._prefix = prefix
        self._remove_keys = make_key_remover(keys)
        self._numbers: dict[str, int] = {}
        self._secrets: list[str] = []
        self._in_files: set[str] = set()
        self._seen = 0
        self._known: re.Pattern[str] | None = None
        self._cache: dict[str, str] = {}
        self._lock = threading.RLock()
        self._placeholder = re.compile(rf"{prefix}(\d+)(?![A-Za-z0-9_])")
        for value in sorted({value for value in values if len(value) >= _MIN_KNOWN}):
            self._number(value)

    def learn(self, text: str) -> None:
        """Remember the secrets in a file of the repository: they are hidden wherever they show up."""
        with self._lock:
            for span in find_secrets(text):
                value = text[span.start : span.end]
                if len(value) >= _MIN_KNOWN:
                    self._number(value)
                    self._in_files.add(value)

    def hide(self, text: str) -> str:
        """`text` with a placeholder for every secret."""
        with self._lock:
            known = self._cache.get(text)
            if known is not None:
                return known
            plain = self._remove_keys(text)
            hidden = self._by_value(plain)
            spans = [
                span for span in find_secrets(hidden) if self._prefix not in hidden[span.start : span.end]
            ]
            spans = [span for span in spans if REDACTED not in hidden[span.start : span.end]]
            for span in reversed(spans):
                place = self._name(self._number(hidden[span.start : span.end]))
                hidden = hidden[: span.start] + place + hidden[span.end :]
            hidden = self._by_value(hidden)
            if len(self._cache) > _CACHED:
                self._cache.clear()
            self._cache[text] = hidden
            return hidden

    def hide_all(self, value: Any) -> Any:
        """As `hide`, for all texts in JSON data (not for the names of fields)."""
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, Mapping):
            return {key: self.hide_all(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.hide_all(item) for item in value]
        return value

    def restore(self, text: str) -> str:
        """`text` with the secrets of the repository's files in place of their placeholders."""

        def back(match: re.Match[str]) -> str:
            number = int(match.group(1))
            if 1 <= number <= len(self._secrets) and self._secrets[number - 1] in self._in_files:
                return self._secrets[number - 1]
            return match.group()

        with self._lock:
            return self._placeholder.sub(back, text)

    def restore_all(self, value: Any) -> Any:
        """As `restore`, for all texts in JSON data."""
        if isinstance(value, str):
            return self.restore(value)
        if isinstance(value, Mapping):
            return {key: self.restore_all(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.restore_all(item) for item in value]
        return value

    def left(self, value: Any) -> list[str]:
        """The placeholders in a text or in JSON data, each once: after `restore`, those that stand for
        nothing that may be written."""
        if isinstance(value, str):
            return list(dict.fromkeys(match.group() for match in self._placeholder.finditer(value)))
        if isinstance(value, Mapping):
            value = list(value.values())
        if isinstance(value, list | tuple):
            return list(dict.fromkeys(name for item in value for name in self.left(item)))
        return []

    def _number(self, value: str) -> int:
        number = self._numbers.get(value)
        if number is None:
            self._secrets.append(value)
            number = self._numbers[value] = len(self._secrets)
            self._cache.clear()
        return number

    def _name(self, number: int) -> str:
        return f"{self._prefix}{number}"

    def _by_value(self, text: str) -> str:
        if self._seen != len(self._secrets):
            values = sorted((v for v in self._secrets if len(v) >= _MIN_KNOWN), key=len, reverse=True)
            self._known = re.compile("|".join(map(re.escape, values))) if values else None
            self._seen = len(self._secrets)
        if self._known is None:
            return text

        def name(match: re.Match[str]) -> str:
            start, end = match.span()
            # A short one inside a longer word is that word's business: "hunter22" in "hunter221b".
            if len(match.group()) < 16 and (_word(text, start - 1) or _word(text, end)):
                return match.group()
            return self._name(self._numbers[match.group()])

        return self._known.sub(name, text)


def _word(text: str, position: int) -> bool:
    return 0 <= position < len(text) and text[position].isalnum()

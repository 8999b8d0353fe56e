"""Error messages reduced to what tells one error from another."""

from __future__ import annotations

import re

_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, flags), replacement)
    for pattern, replacement, flags in (
        (r"\x1b\[[0-9;?]*[A-Za-z]", "", 0),
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<uuid>", re.IGNORECASE),
        (r"\b0x[0-9a-f]+\b", "<address>", re.IGNORECASE),
        (r"\b\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?", "<time>", 0),
        (r"\b\d\d:\d\d:\d\d([.,]\d+)?\b", "<time>", 0),
        (r"(?:/private)?(?:/tmp|/var/tmp|/var/folders|/run/agent-ls)/[^\s'\":,)\]}>]+", "<tmp>", 0),
        (r"\bpytest-of-\S+", "<tmp>", 0),
        (r"\b\d+(\.\d+)?\s?(ns|µs|us|ms|s|sec|secs|seconds?|minutes?|min)\b", "<duration>", 0),
        (r"\b(pid|PID|process|Process|thread|Thread|tid)([ =:#-]+)\d+", r"\1\2<n>", 0),
        (r"\b(line|lineno|Line) \d+", r"\1 <n>", 0),
        (r"(\.\w{1,5}):\d+(:\d+)?(?=[:\s,)]|$)", r"\1:<n>", re.MULTILINE),
        (r"\b(id|ID|object|port)([ =:#]+)\d{4,}\b", r"\1\2<n>", 0),
        (r"\b(127\.0\.0\.1|localhost|0\.0\.0\.0|\[::1\]):\d{2,5}\b", r"\1:<n>", 0),
        (r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{12,}\b", "<hex>", 0),
        (r"[ \t]+", " ", 0),
        (r" ?\n\s*", "\n", 0),
    )
)


def normalise_error(message: str | None) -> str:
    """The message without what differs from run to run, so that equal results mean the same error.

    Taken out: addresses, line numbers in source positions, durations, times, temporary paths, process and
    object ids, loopback ports, uuids and long random hex. Numbers that are values (`assert 3 == 4`) stay.
    """
    text = message or ""
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text.strip()

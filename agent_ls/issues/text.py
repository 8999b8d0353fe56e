"""Untrusted text from issues: made visible, capped, and split into title and body."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from pathlib import Path
from typing import Any

from agent_ls.errors import UsageError
from agent_ls.task import Task

MAX_BYTES = 60_000
_MAX_FILE_BYTES = 5_000_000
_MAX_TITLE = 200

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_HIDDEN_REFERENCE = re.compile(r"^ {0,3}\[[^\]\n]{1,80}\]:[ \t]*(?:#|<#?>)[ \t]*[(\"'].*$\n?", re.MULTILINE)
"""`[//]: # (text)`: a link definition that exists only to hide its text."""
_ZWNJ, _ZWJ = "\u200c", "\u200d"
_EMOJI_SELECTORS = "\ufe0e\ufe0f"
_INVISIBLE = frozenset(
    map(
        chr,
        [
            0x034F,  # combining grapheme joiner
            0x115F, 0x1160, 0x3164, 0xFFA0,  # Hangul fillers
            0x17B4, 0x17B5,  # Khmer inherent vowels
            *range(0x180B, 0x1810),  # Mongolian selectors
            0x2800,  # blank Braille pattern
            *range(0xFE00, 0xFE10),  # variation selectors
            *range(0xFFF0, 0xFFFC),  # unassigned specials, interlinear annotation
            *range(0xE0000, 0xE1000),  # tag characters and more variation selectors
        ],
    )
)  # fmt: skip


def sanitise(text: str, max_bytes: int = MAX_BYTES) -> str:
    """`text` with nothing in it that a person would not see, at most `max_bytes` of UTF-8.

    Removed: zero-width and bidirectional controls, tag characters, variation selectors and joiners
    outside ordinary writing (emoji, Persian, Indic), HTML comments, terminal sequences, control
    characters, private use and surrogate code points. Line ends become newlines. A text that is too
    long keeps head and tail, with a note between them.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n")
    text = "".join(_visible(_ANSI.sub("", text)))
    for _ in range(10):  # what is removed can join the halves of another comment
        text, before = _HIDDEN_REFERENCE.sub("", _without_comments(text)), text
        if text == before:
            break
    else:
        text = text.replace("<!--", "<! --")
    return cap(text, max_bytes)


def _visible(text: str) -> list[str]:
    kept: list[str] = []
    for index, char in enumerate(text):
        if " " <= char < "\x7f" or char in "\n\t":
            kept.append(char)
        elif char in _EMOJI_SELECTORS:
            # One selector right behind a symbol is an emoji; others carry hidden data.
            if kept and (kept[-1] in "#*0123456789‼⁉ℹ" or _symbol(kept[-1])):
                kept.append(char)
        elif char in (_ZWJ, _ZWNJ):
            following = text[index + 1] if index + 1 < len(text) else ""
            if kept and following and _joins(kept[-1], following):
                kept.append(char)
        elif char not in _INVISIBLE and unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co"):
            kept.append(char)
    return kept


def _symbol(char: str) -> bool:
    return unicodedata.category(char) in ("So", "Sm", "Sk")


def _joins(before: str, after: str) -> bool:
    if (_symbol(before) or before == "\ufe0f") and _symbol(after):
        return True
    return all("\u0600" <= char <= "\u109f" or "\u1780" <= char <= "\u17ff" for char in (before, after))


def _without_comments(text: str) -> str:
    """Markdown hides `<!-- … -->` anywhere, and all the rest after a line that opens one for good."""
    parts: list[str] = []
    position = 0
    while (start := text.find("<!--", position)) >= 0:
        # `<!-->` and `<!--->` are whole (empty) comments in HTML.
        empty = next((form for form in ("<!-->", "<!--->") if text.startswith(form, start)), None)
        end = start + len(empty) if empty else text.find("-->", start + 4) + 3
        if end < 3:
            line = text[text.rfind("\n", 0, start) + 1 : start]
            if line.strip(" ") == "" and len(line) <= 3:
                parts.append(text[position:start])
                return "".join(parts)
            break  # never closed and inside a line: it is shown as it stands
        parts.append(text[position:start])
        position = end
    parts.append(text[position:])
    return "".join(parts)


def cap(text: str, max_bytes: int) -> str:
    """At most `max_bytes` of UTF-8: two thirds from the head, the rest from the tail, a note between."""
    data = text.encode("utf-8", "replace")
    if len(data) <= max_bytes:
        return data.decode("utf-8")
    note = f"\n\n[… {len(data) - max_bytes:,} bytes or more left out here …]\n\n"
    room = max(0, max_bytes - len(note.encode()))
    head, tail = data[: room * 2 // 3], data[len(data) - room // 3 :]
    return head.decode("utf-8", "ignore") + note + tail.decode("utf-8", "ignore")


def title_of(text: str) -> str:
    """`text` as a title: sanitised, one line, not too long."""
    line = " ".join(sanitise(text).split())
    return line if len(line) <= _MAX_TITLE else line[: _MAX_TITLE - 1].rstrip() + "…"


def from_text(text: str, source: str = "--text", number: int | None = None) -> Task:
    """A task from free text: a first line `# …`, or else simply the first line, is the title.

    Optional TOML front matter between `+++` lines may name `tests = […]`. Raises UsageError when there is
    no text, or the front matter is wrong.
    """
    front, body = _front_matter(text.replace("\r\n", "\n").lstrip("\ufeff"), source)
    body = sanitise(body).strip("\n")
    if not body.strip():
        raise UsageError(f"{source} has no text", "Say in it what is wrong.")
    first, _, rest = body.lstrip().partition("\n")
    if first.startswith("#"):
        title = first.lstrip("#").strip()
        body = rest.strip("\n")
    else:
        title = first.strip()
        body = rest.strip("\n") if len(title) <= _MAX_TITLE else body
    return Task(title_of(title) or "untitled", body, source, number, None, _tests(front, source))


def from_file(path: Path, number: int | None = None, source: str | None = None) -> Task:
    """A task from a Markdown file (see `from_text`). Raises UsageError when it can't be read."""
    shown = source or str(path)
    try:
        if not path.is_file():
            problem = (
                "is a directory" if path.is_dir() else "is no file" if path.exists() else "does not exist"
            )
            raise UsageError(f"{shown} {problem}", "Name a Markdown file that describes the issue.")
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise UsageError(
                f"{shown} is too large for an issue ({path.stat().st_size:,} bytes)", "Shorten it."
            )
        data = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise UsageError(f"{shown} can't be read: {error}", "Name a readable file.") from error
    try:
        encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise UsageError(f"{shown} is not UTF-8 text (byte {error.start})", "Save it as UTF-8.") from error
    if "\0" in text:
        raise UsageError(f"{shown} is binary", "Name a Markdown file that describes the issue.")
    return from_text(text, shown, number)


def _front_matter(text: str, source: str) -> tuple[dict[str, Any], str]:
    lines = text.split("\n")
    if not lines or lines[0].rstrip() != "+++":
        return {}, text
    for index, line in enumerate(lines[1:], 1):
        if line.rstrip() == "+++":
            try:
                return tomllib.loads("\n".join(lines[1:index])), "\n".join(lines[index + 1 :])
            except tomllib.TOMLDecodeError as error:
                raise UsageError(
                    f"the front matter of {source} is not valid TOML: {error}",
                    "Correct the lines between +++.",
                ) from error
    raise UsageError(f"the front matter of {source} has no end", "Close it with a line +++.")


def _tests(front: dict[str, Any], source: str) -> tuple[str, ...]:
    tests = front.get("tests", [])
    if not isinstance(tests, list) or not all(isinstance(test, str) and test for test in tests):
        raise UsageError(
            f"tests in the front matter of {source} is not a list of test ids", 'Write tests = ["…"].'
        )
    return tuple(tests)

"""Word tokens: what of a file's text the index remembers so that a search needs to read few files.

A word is a longest run of ASCII letters, digits, underscores and bytes of non-ASCII characters, in UTF-8
(whatever the file's own encoding is) and as it is written. A text that contains a literal therefore has, for
each such run in the literal, a word that contains it: the words' postings can rule files out, and only the
bytes can say that a file matches.
"""

from __future__ import annotations

MAX_WORD = 128
"""Longest word remembered, in bytes; hashes in hexadecimal fit."""

UNINDEXED = b"\0"
"""Stands for all longer words of a file: whoever looks for a part of a word has to read such a file."""

_KEPT = frozenset(b"0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") | set(range(128, 256))
_BLANKED = bytes(byte if byte in _KEPT else 0x20 for byte in range(256))


def words_of(data: bytes) -> set[bytes]:
    """The words in a file's bytes, in UTF-8, with `UNINDEXED` when there are some of over `MAX_WORD` bytes;
    nothing for binary data. About 80 MB/s."""
    return words_in(as_utf8(data))


def words_in(data: bytes) -> set[bytes]:
    """As `words_of`, for what `as_utf8` returns."""
    # Quicker than a regular expression: two passes in C, no match objects.
    words = set(data.translate(_BLANKED).split())
    longest = max(map(len, words), default=0)
    if longest > MAX_WORD:
        words = {word for word in words if len(word) <= MAX_WORD}
        words.add(UNINDEXED)
    return words


def long_words_of(data: bytes) -> set[bytes]:
    """The words that `words_of` leaves out for their length."""
    return {word for word in as_utf8(data).translate(_BLANKED).split() if len(word) > MAX_WORD}


def as_utf8(data: bytes) -> bytes:
    """A file's text in UTF-8: the very same object where the file is in UTF-8 without a byte order mark, b""
    for binary data."""
    if data.isascii() and b"\0" not in data[:8192]:
        return data
    from agent_ls.workspace._grep import BOMS, decoded

    if not data.startswith(BOMS):
        if b"\0" in data[:8192]:
            return b""
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            pass
        else:
            return data
    return (decoded(data) or "").encode("utf-8", "replace")

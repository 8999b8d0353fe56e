"""The SQLite file: contents by git's blob id, the trees that hold them, which terms stand in which content.

Contents are never changed, and their numbers never used again, so that a reader may hold on to a number while
others write. Every part that could go wrong unseen is covered by a checksum (zlib's, or the signature that
includes the content's number): a damaged database shows, and is built anew.
"""

from __future__ import annotations

import sqlite3
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from agent_ls.workspace.index.postings import Chunk, pack_documents, unpack_documents

SCHEMA = 1
"""Grows with every change of the tables or of what is stored in them; part of the database's name."""

_APPLICATION = 0x61676C73
_BUSY_MS = 10_000
_TABLES = f"""
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {SCHEMA};
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE tree(
    id INTEGER PRIMARY KEY, root BLOB NOT NULL UNIQUE, generation INTEGER NOT NULL, seen INTEGER NOT NULL
);
CREATE TABLE blob(
    id INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB NOT NULL UNIQUE, size INTEGER NOT NULL,
    language TEXT, flags INTEGER NOT NULL, tags BLOB NOT NULL
);
CREATE TABLE entry(
    tree INTEGER NOT NULL, path TEXT NOT NULL, blob INTEGER NOT NULL, signature INTEGER NOT NULL, reason TEXT,
    PRIMARY KEY(tree, path)
) WITHOUT ROWID;
CREATE TABLE segment(id INTEGER PRIMARY KEY AUTOINCREMENT, documents BLOB NOT NULL, count INTEGER NOT NULL);
CREATE TABLE chunk(
    segment INTEGER NOT NULL, kind INTEGER NOT NULL, first BLOB NOT NULL, terms BLOB NOT NULL,
    documents BLOB NOT NULL, UNIQUE(segment, kind, first)
);
CREATE TABLE listing(tree INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE pending(blob INTEGER PRIMARY KEY, words BLOB NOT NULL, names BLOB NOT NULL);
"""


class Unusable(Exception):
    """The database is damaged or not ours."""


class BlobRow(NamedTuple):
    """A content as it is stored."""

    key: bytes
    size: int
    language: str | None
    flags: int
    tags: bytes


class Entry(NamedTuple):
    """A path of a tree: the content it was last seen with (0: left out, `reason` says why)."""

    blob: int
    signature: int
    reason: str | None = None


class Store:
    """A connection. Not thread-safe by itself; sqlite3.Error comes through, see `is_damage`."""

    def __init__(self, path: Path | None, *, new: bool = False, scratch: bool = False) -> None:
        """Open `path` (None: in memory); `new` makes the tables, `scratch` is for a file that only gets its
        name when it is complete. Raises Unusable when it isn't a database of ours."""
        self.path = path
        self._connection = sqlite3.connect(
            ":memory:" if path is None else path,
            timeout=_BUSY_MS / 1000,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=64,
        )
        try:
            self._prepare(new or path is None, scratch)
        except DAMAGE as error:
            self.close()
            if new or not is_damage(error):
                raise
            raise Unusable(str(error)) from error
        except BaseException:
            self.close()
            raise

    def _prepare(self, new: bool, scratch: bool) -> None:
        run = self._connection.execute
        if new:
            if scratch:
                run("PRAGMA journal_mode = OFF")
                run("PRAGMA locking_mode = EXCLUSIVE")
            else:
                run("PRAGMA journal_mode = WAL")
            run("PRAGMA synchronous = OFF" if scratch else "PRAGMA synchronous = NORMAL")
            run("PRAGMA page_size = 4096")
            self._connection.executescript(_TABLES)
            return
        run("PRAGMA synchronous = NORMAL")
        run("PRAGMA cell_size_check = ON")
        if run("PRAGMA application_id").fetchone()[0] != _APPLICATION:
            raise Unusable("not an index")
        if run("PRAGMA user_version").fetchone()[0] != SCHEMA:
            raise Unusable("of another version")
        run("SELECT 1 FROM tree, blob, entry, segment, chunk, pending, listing, meta LIMIT 1")

    def finish(self) -> None:
        """End a scratch database: from now on it is shared, with a journal."""
        run = self._connection.execute
        run("PRAGMA locking_mode = NORMAL")
        run("PRAGMA journal_mode = WAL")
        self.close()

    def close(self) -> None:
        self._connection.close()

    def copied_to_memory(self) -> Store:
        """The same in memory, for when the disk takes no more."""
        copy = Store(None)
        self._connection.backup(copy._connection)
        return copy

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction; other writers wait."""
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._connection.in_transaction:
                run("ROLLBACK")
            raise
        run("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Several reads that agree with each other."""
        run = self._connection.execute
        if self._connection.in_transaction:
            yield
            return
        run("BEGIN")
        try:
            yield
        finally:
            if self._connection.in_transaction:
                run("COMMIT")

    def is_sound(self) -> bool:
        """Does SQLite find the file in order? Reads all of it."""
        try:
            row = self._connection.execute("PRAGMA quick_check(1)").fetchone()
        except DAMAGE:
            return False
        return row is not None and row[0] == "ok"

    def data_version(self) -> int:
        """Changes when another connection has written."""
        found: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        return found

    # trees

    def tree(self, root: bytes) -> tuple[int, int] | None:
        """A tree's number and generation."""
        row = self._connection.execute("SELECT id, generation FROM tree WHERE root = ?", (root,)).fetchone()
        return (row[0], row[1]) if row else None

    def add_tree(self, root: bytes, seen: int) -> int:
        """The number of a tree, which is made when there is none."""
        self._connection.execute(
            "INSERT OR IGNORE INTO tree(root, generation, seen) VALUES(?, 0, ?)", (root, seen)
        )
        found = self.tree(root)
        assert found is not None
        return found[0]

    def advance(self, tree: int, seen: int) -> int:
        """The next generation of a tree."""
        run = self._connection.execute
        run("UPDATE tree SET generation = generation + 1, seen = ? WHERE id = ?", (seen, tree))
        found: int = run("SELECT generation FROM tree WHERE id = ?", (tree,)).fetchone()[0]
        return found

    def trees(self) -> list[tuple[int, bytes, int]]:
        """All trees: number, root, when it was last changed."""
        return self._connection.execute("SELECT id, root, seen FROM tree ORDER BY seen").fetchall()

    def remove_tree(self, tree: int) -> None:
        run = self._connection.execute
        run("DELETE FROM entry WHERE tree = ?", (tree,))
        run("DELETE FROM listing WHERE tree = ?", (tree,))
        run("DELETE FROM tree WHERE id = ?", (tree,))

    def entries(self, tree: int) -> dict[str, Entry]:
        """The paths of a tree."""
        rows = self._connection.execute(
            "SELECT path, blob, signature, reason FROM entry WHERE tree = ?", (tree,)
        )
        return {row[0]: Entry(row[1], row[2], row[3]) for row in rows}

    def put_entries(self, tree: int, entries: Iterable[tuple[str, Entry]]) -> None:
        self._connection.executemany(
            "INSERT OR REPLACE INTO entry(tree, path, blob, signature, reason) VALUES(?, ?, ?, ?, ?)",
            ((tree, path, *entry) for path, entry in entries),
        )

    def delete_entries(self, tree: int, paths: Iterable[str]) -> None:
        self._connection.executemany(
            "DELETE FROM entry WHERE tree = ? AND path = ?", ((tree, path) for path in paths)
        )

    def listing(self, tree: int) -> bytes | None:
        """What a tree's last listing depended on, packed."""
        row = self._connection.execute("SELECT data FROM listing WHERE tree = ?", (tree,)).fetchone()
        return None if row is None else row[0]

    def put_listing(self, tree: int, data: bytes) -> None:
        self._connection.execute("INSERT OR REPLACE INTO listing VALUES(?, ?)", (tree, data))

    # contents

    def blob_ids(self, keys: Sequence[bytes]) -> dict[bytes, int]:
        """The numbers of the contents that are known."""
        found: dict[bytes, int] = {}
        for start in range(0, len(keys), 500):
            part = keys[start : start + 500]
            marks = ",".join("?" * len(part))
            found.update(self._connection.execute(f"SELECT key, id FROM blob WHERE key IN ({marks})", part))
        return found

    def add_blob(self, row: BlobRow) -> tuple[int, bool]:
        """The number of a content, and whether it is new."""
        cursor = self._connection.execute(
            "INSERT OR IGNORE INTO blob(key, size, language, flags, tags) VALUES(?, ?, ?, ?, ?)", row
        )
        if cursor.rowcount == 1 and cursor.lastrowid is not None:
            return cursor.lastrowid, True
        found: int = self._connection.execute("SELECT id FROM blob WHERE key = ?", (row.key,)).fetchone()[0]
        return found, False

    def blob_infos(self, ids: Iterable[int] | None = None) -> dict[int, tuple[int, str | None, int]]:
        """Number -> size, language, flags; of all contents, or of some."""
        query = "SELECT id, size, language, flags FROM blob"
        if ids is None:
            return {row[0]: row[1:] for row in self._connection.execute(query)}
        found = {}
        for number in ids:
            row = self._connection.execute(query + " WHERE id = ?", (number,)).fetchone()
            if row is not None:
                found[number] = row[1:]
        return found

    def blobs_with(self, flag: int, after: int = 0) -> list[int]:
        """The contents with a number above `after` that have a flag, and behind them the highest number."""
        run = self._connection.execute
        found = [row[0] for row in run("SELECT id FROM blob WHERE id > ? AND flags & ?", (after, flag))]
        last = run("SELECT max(id) FROM blob").fetchone()[0]
        return [*found, max(after, last or 0)]

    def blob_key(self, blob: int) -> bytes | None:
        """What a content is stored under; None when it has been removed."""
        row = self._connection.execute("SELECT key FROM blob WHERE id = ?", (blob,)).fetchone()
        return None if row is None else row[0]

    def tags(self, blob: int) -> bytes | None:
        """The packed tags of a content; None when it has been removed."""
        row = self._connection.execute("SELECT tags FROM blob WHERE id = ?", (blob,)).fetchone()
        return None if row is None else row[0]

    # terms

    def add_segment(self, documents: Sequence[int], chunks: Iterable[tuple[int, Chunk]]) -> int:
        """A new segment of contents (by number) with its chunks, each with its kind."""
        cursor = self._connection.execute(
            "INSERT INTO segment(documents, count) VALUES(?, ?)", (pack_documents(documents), len(documents))
        )
        segment = cursor.lastrowid
        assert segment is not None
        self._connection.executemany(
            "INSERT INTO chunk(segment, kind, first, terms, documents) VALUES(?, ?, ?, ?, ?)",
            ((segment, kind, *chunk) for kind, chunk in chunks),
        )
        return segment

    def segments(self) -> list[tuple[int, int]]:
        """Number and count of documents of each segment."""
        return self._connection.execute("SELECT id, count FROM segment ORDER BY id").fetchall()

    def segment_documents(self, segment: int) -> array[int] | None:
        """The contents of a segment by their place in it; None when it has been merged into another."""
        row = self._connection.execute("SELECT documents FROM segment WHERE id = ?", (segment,)).fetchone()
        return None if row is None else unpack_documents(row[0])

    def remove_segments(self, segments: Iterable[int]) -> None:
        for segment in segments:
            self._connection.execute("DELETE FROM chunk WHERE segment = ?", (segment,))
            self._connection.execute("DELETE FROM segment WHERE id = ?", (segment,))

    def chunk_for(self, segment: int, kind: int, term: bytes) -> tuple[int, bytes, bytes] | None:
        """The one chunk that may hold a term: its number, terms and documents."""
        row: tuple[int, bytes, bytes] | None = self._connection.execute(
            "SELECT rowid, terms, documents FROM chunk WHERE segment = ? AND kind = ? AND first <= ?"
            " ORDER BY first DESC LIMIT 1",
            (segment, kind, term),
        ).fetchone()
        return row

    def chunk_firsts(self, segment: int, kind: int) -> list[tuple[bytes, int]]:
        """The first term and the number of each chunk of a kind, in order."""
        return self._connection.execute(
            "SELECT first, rowid FROM chunk WHERE segment = ? AND kind = ? ORDER BY first", (segment, kind)
        ).fetchall()

    def chunk(self, number: int) -> tuple[bytes, bytes] | None:
        """The terms and documents of a chunk."""
        row: tuple[bytes, bytes] | None = self._connection.execute(
            "SELECT terms, documents FROM chunk WHERE rowid = ?", (number,)
        ).fetchone()
        return row

    def chunks(self, segment: int, kind: int) -> list[tuple[bytes, bytes]]:
        """The terms and documents of all chunks of a kind, in order."""
        return self._connection.execute(
            "SELECT terms, documents FROM chunk WHERE segment = ? AND kind = ? ORDER BY first",
            (segment, kind),
        ).fetchall()

    def chunk_terms(self, segment: int, kind: int) -> list[bytes]:
        """The terms of a segment, chunk by chunk (compressed)."""
        rows = self._connection.execute(
            "SELECT terms FROM chunk WHERE segment = ? AND kind = ? ORDER BY first", (segment, kind)
        )
        return [row[0] for row in rows]

    def add_pending(self, blob: int, words: bytes, names: bytes) -> None:
        self._connection.execute("INSERT OR REPLACE INTO pending VALUES(?, ?, ?)", (blob, words, names))

    def pending(self, after: int = 0) -> list[tuple[int, bytes, bytes]]:
        """Contents with a number above `after` that are in no segment: words and names, one per line."""
        return self._connection.execute(
            "SELECT blob, words, names FROM pending WHERE blob > ? ORDER BY blob", (after,)
        ).fetchall()

    def pending_size(self) -> tuple[int, int]:
        """How many contents are pending, and how many bytes their words take."""
        row = self._connection.execute("SELECT count(*), total(length(words)) FROM pending").fetchone()
        return row[0], int(row[1])

    def remove_pending(self, blobs: Iterable[int]) -> None:
        self._connection.executemany("DELETE FROM pending WHERE blob = ?", ((blob,) for blob in blobs))

    # garbage

    def unreferenced(self) -> list[int]:
        """Contents that no tree holds, oldest first."""
        rows = self._connection.execute(
            "SELECT id FROM blob WHERE id NOT IN (SELECT blob FROM entry) ORDER BY id"
        )
        return [row[0] for row in rows]

    def blob_count(self) -> int:
        found: int = self._connection.execute("SELECT count(*) FROM blob").fetchone()[0]
        return found

    def all_blobs(self) -> set[int]:
        return {row[0] for row in self._connection.execute("SELECT id FROM blob")}

    def remove_blobs(self, blobs: Sequence[int]) -> None:
        rows = [(blob,) for blob in blobs]
        self._connection.executemany("DELETE FROM blob WHERE id = ?", rows)
        self._connection.executemany("DELETE FROM pending WHERE blob = ?", rows)

    def size(self) -> int:
        """Bytes that the database takes."""
        run = self._connection.execute
        size: int = run("PRAGMA page_count").fetchone()[0] * run("PRAGMA page_size").fetchone()[0]
        return size

    def meta(self, key: str) -> Any:
        row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def set_meta(self, key: str, value: Any) -> None:
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", (key, value))


DAMAGE = (sqlite3.DatabaseError, zlib.error, UnicodeDecodeError)
"""What a damaged database is noticed by (among other causes, see `is_damage`)."""


def is_damage(error: BaseException) -> bool:
    """Does the error say that the database's content can't be relied on (rather than: it is busy, the disk is
    full, it can't be written)?"""
    if isinstance(error, zlib.error | Unusable | UnicodeDecodeError):
        return True
    if isinstance(error, sqlite3.OperationalError):
        text = str(error)
        return any(
            sign in text for sign in ("malformed", "no such table", "no such column", "not a database")
        )
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.ProgrammingError)


def is_busy(error: BaseException) -> bool:
    """Does the error say that another process has kept the database for too long?"""
    return isinstance(error, sqlite3.OperationalError) and any(
        sign in str(error) for sign in ("is locked", "is busy", "locking protocol")
    )


def is_no_room(error: BaseException) -> bool:
    """Does the error say that nothing more can be written where the database lies?"""
    if isinstance(error, OSError):
        return True
    text = str(error)
    return isinstance(error, sqlite3.OperationalError) and any(
        sign in text
        for sign in ("full", "disk I/O error", "readonly", "read-only", "unable to open", "not authorized")
    )

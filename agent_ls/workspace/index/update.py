"""Brings a tree's entries up to date: which files changed, what they hold now, and what of that is known."""

# Plain strings instead of Path objects, since this runs for every file or at every start.
# ruff: noqa: PTH118

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agent_ls.workspace.index.hashing import UNSURE, is_settled, signature
from agent_ls.workspace.index.store import BlobRow, Entry, Store

if TYPE_CHECKING:
    from agent_ls.cancel import CancelToken
    from agent_ls.workspace.index._worker import Result, Task
    from agent_ls.workspace.index.build import WorkerPool

WORKER_BYTES = 1_500_000
"""Less than this to parse is quicker done here than by workers that have to start."""
_UNKNOWN = (errno.EACCES, errno.EPERM, errno.EIO, errno.ENAMETOOLONG, errno.ESTALE)
"""Why a status can't be had of a file that may well be there."""
_GIT_IDS = 100
"""From this many new files on it is worth asking git for their ids."""


class Candidate(NamedTuple):
    """A file whose entry can't be believed any more, and its status."""

    path: str
    status: os.stat_result


class Examined(NamedTuple):
    """What a look at the file system said."""

    candidates: list[Candidate]
    missing: list[str]
    refused: dict[str, Entry]


class Outcome(NamedTuple):
    """What an update found: entries to put, how many files were read, how many of them parsed anew, and
    whether their words make new segments (else they are pending)."""

    put: dict[str, Entry]
    gone: list[str]
    read: int
    parsed: int
    segments: bool


def examine(root: Path, paths: Iterable[str], entries: Mapping[str, Entry]) -> Examined:
    """Look at every path's status; those that are as they were when they were read are done with."""
    lstat = os.lstat
    prefix = f"{root}/"
    candidates: list[Candidate] = []
    missing: list[str] = []
    refused: dict[str, Entry] = {}
    for path in paths:
        try:
            status = lstat(prefix + path)
        except OSError as error:
            if error.errno not in _UNKNOWN:
                missing.append(path)
            else:
                from agent_ls.workspace.index import roles

                said = f"{roles.UNREADABLE}: {os.strerror(error.errno)}"
                refused[path] = Entry(0, UNSURE, said)
            continue
        except ValueError:  # a NUL in a name that a caller gave
            continue
        entry = entries.get(path)
        if entry is not None:
            # The same as `signature`, without the call: this runs for every file at every start.
            known = hash((status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, entry.blob))
            if (known or 1) == entry.signature:
                continue
        candidates.append(Candidate(path, status))
    kept: list[Candidate] = []
    if candidates:
        from agent_ls.workspace.index import roles

        real = _RealFolders(root)
        for candidate in candidates:
            path = candidate.path
            reason = roles.refused_name(path)
            if reason is None:
                mode = candidate.status.st_mode
                if stat.S_ISDIR(mode):
                    if not os.path.lexists(f"{prefix}{path}/.git"):
                        missing.append(path)  # a folder took a tracked file's place
                        continue
                    reason = roles.FOREIGN
                elif stat.S_ISLNK(mode):
                    reason = roles.LINK
                elif not stat.S_ISREG(mode):
                    reason = roles.NOT_REGULAR
                elif not real(path):
                    reason = roles.BEHIND_LINK
            if reason is None:
                kept.append(candidate)
            else:
                # What hides a file may go without a sign at the file itself.
                sure = reason != roles.BEHIND_LINK
                refused[path] = Entry(0, signature(candidate.status, 0) if sure else UNSURE, reason)
    return Examined(kept, missing, refused)


def without_unstorable(refused: dict[str, Entry], skipped: dict[str, str] | None) -> dict[str, str] | None:
    """Take names that can't be stored out of `refused`; they are only remembered (in `skipped`) for as long
    as we run."""
    if not refused:
        return skipped
    from agent_ls.workspace.index import roles

    for path in [path for path, entry in refused.items() if entry.reason == roles.NOT_UTF8]:
        del refused[path]
        if skipped is not None:
            skipped[path] = roles.NOT_UTF8
    return skipped


class _RealFolders:
    """Does a path lead through no symbolic link? (A tracked file's folder may have been replaced by one that
    leads out of the tree.)"""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, bool] = {"": True}

    def __call__(self, path: str) -> bool:
        return self._folder(path.rpartition("/")[0])

    def _folder(self, folder: str) -> bool:
        found = self._known.get(folder)
        if found is None:
            found = self._folder(folder.rpartition("/")[0])
            if found:
                try:
                    found = stat.S_ISDIR(os.lstat(f"{self._root}/{folder}").st_mode)
                except OSError:
                    found = False
            self._known[folder] = found
        return found


class Updater:
    """Carries one update out within a store's transaction."""

    def __init__(
        self,
        store: Store,
        root: Path,
        algorithm: str,
        *,
        git: bool,
        text: bool = True,
        pool: WorkerPool | None = None,
        cancel: CancelToken | None = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._store = store
        self._root = root
        self._algorithm = algorithm
        self._git = git
        self._text = text
        self._pool = pool
        self._cancel = cancel
        self._on_progress = on_progress
        self._total = 0
        self._put: dict[str, Entry] = {}
        self._gone: list[str] = []
        self._read = 0
        self._parsed = 0
        self._segments = False

    def run(self, candidates: list[Candidate]) -> Outcome:
        """Find the contents of all candidates; those that are new are put into the store.

        The caller holds the store's write transaction. Raises Cancelled.
        """
        from agent_ls.workspace.grammars import language_of

        self._total = len(candidates)
        if len(candidates) >= _GIT_IDS and self._git and self._store.blob_count():
            candidates = self._by_git(candidates)
        languages = {candidate.path: language_of(candidate.path) for candidate in candidates}
        # Text costs about a tenth of what code does.
        cost = sum(c.status.st_size if languages[c.path] else c.status.st_size / 10 for c in candidates)
        if cost < WORKER_BYTES and len(candidates) < 2000:
            self._here(candidates, languages)
        elif self._store.blob_count():
            self._by_workers(self._known(candidates, languages), languages)
        else:
            self._by_workers(candidates, languages)
        return Outcome(self._put, self._gone, self._read, self._parsed, self._segments)

    def _by_git(self, candidates: list[Candidate]) -> list[Candidate]:
        """Take those whose bytes git vouches for and whose content is known; return the others."""
        from agent_ls.workspace.grammars import language_of
        from agent_ls.workspace.index.scan import clean_ids

        asked_at = time.time_ns()
        clean = clean_ids(self._root, self._cancel)
        keys = {}
        for candidate in candidates:
            if (found := clean.get(candidate.path)) is not None:
                keys[candidate.path] = found + (language_of(candidate.path) or "").encode()
        known = self._store.blob_ids(list(set(keys.values())))
        left = []
        for candidate in candidates:
            blob = known.get(keys.get(candidate.path, b""))
            if blob is None:
                left.append(candidate)
            else:
                settled = is_settled(candidate.status, asked_at)
                self._put[candidate.path] = Entry(
                    blob, signature(candidate.status, blob) if settled else UNSURE
                )
        return left

    def _known(self, candidates: list[Candidate], languages: Mapping[str, str | None]) -> list[Candidate]:
        """Read and hash all; take those whose content is known, return the others."""
        from agent_ls.workspace.index._worker import key_of
        from agent_ls.workspace.index.reading import read_file

        left = []
        for start in range(0, len(candidates), 500):
            if self._cancel is not None:
                self._cancel.raise_if_cancelled()
            keyed = []
            for candidate in candidates[start : start + 500]:
                read = read_file(os.path.join(self._root, candidate.path))
                if read is None:
                    self._gone.append(candidate.path)
                elif read.data is None:
                    self._leave_out(candidate.path, read.status, read.settled, read.reason)
                else:
                    key = key_of(read.data, languages[candidate.path], self._algorithm)
                    keyed.append((candidate, key, read.status, read.settled))
            known = self._store.blob_ids([key for _, key, _, _ in keyed])
            for candidate, key, status, settled in keyed:
                blob = known.get(key)
                if blob is None:
                    left.append(candidate)
                else:
                    self._read += 1
                    self._enter(candidate.path, blob, status, settled)
        return left

    def _here(self, candidates: list[Candidate], languages: Mapping[str, str | None]) -> None:
        from agent_ls.workspace.index._worker import key_of
        from agent_ls.workspace.index.reading import read_file

        for candidate in candidates:
            if self._cancel is not None:
                self._cancel.raise_if_cancelled()
            path = candidate.path
            read = read_file(os.path.join(self._root, path))
            if read is None:
                self._gone.append(path)
                continue
            if read.data is None:
                self._leave_out(path, read.status, read.settled, read.reason)
                continue
            self._read += 1
            language = languages[path]
            key = key_of(read.data, language, self._algorithm)
            blob = self._store.blob_ids([key]).get(key)
            if blob is None:
                from agent_ls.workspace.index.content import understand

                content = understand(language, read.data, text=self._text)
                self._parsed += 1
                row = BlobRow(key, content.size, content.language, content.flags, content.tags)
                blob, _ = self._store.add_blob(row)
                self._store.add_pending(
                    blob, b"\n".join(sorted(content.words)), b"\n".join(sorted(content.names))
                )
            self._enter(path, blob, read.status, read.settled)

    def _by_workers(self, candidates: list[Candidate], languages: Mapping[str, str | None]) -> None:
        if not candidates:
            return
        from agent_ls.workspace.index.build import WorkerPool

        tasks: list[tuple[int, Task]] = [
            (
                c.status.st_size if languages[c.path] else c.status.st_size // 10,
                (number, c.path, languages[c.path]),
            )
            for number, c in enumerate(candidates)
        ]
        blobs: dict[int, int] = {}

        def take(results: list[Result]) -> None:
            for result in results:
                blob = self._take(candidates[result[0]].path, result)
                if blob is not None:
                    blobs[result[0]] = blob
            if self._on_progress is not None:
                self._on_progress(len(self._put), self._total)

        settings = (str(self._root), self._algorithm, self._text)
        with self._pool or WorkerPool(self._cancel) as pool:
            segments, crashed = pool.run(settings, tasks, take)
        answered = set(self._put)
        for documents, chunks in segments:
            from agent_ls.workspace.index.postings import Chunk

            ids = [blobs[number] for number in documents]
            self._segments = True
            self._store.add_segment(ids, ((kind, Chunk(*chunk)) for kind, chunk in chunks))
        from agent_ls.workspace.index import roles

        lost = {task[1] for task in crashed}
        for candidate in candidates:
            if candidate.path in lost:
                self._leave_out(candidate.path, candidate.status, True, roles.CRASHED)
            elif candidate.path not in answered:
                self._gone.append(candidate.path)

    def _take(self, path: str, result: Result) -> int | None:
        number, reason, status, settled, *rest = result
        del number
        if reason is not None:
            known = UNSURE if status is None or not settled else hash((*status, 0)) or 1
            self._put[path] = Entry(0, known, reason)
            return None
        key, size, language, flags, tags = rest
        blob, new = self._store.add_blob(BlobRow(key, size, language, flags, tags))
        self._read += 1
        self._parsed += new
        self._put[path] = Entry(blob, (hash((*status, blob)) or 1) if settled else UNSURE)
        return blob

    def _enter(self, path: str, blob: int, status: os.stat_result | None, settled: bool) -> None:
        known = UNSURE if status is None or not settled else signature(status, blob)
        self._put[path] = Entry(blob, known)

    def _leave_out(self, path: str, status: os.stat_result | None, settled: bool, reason: str | None) -> None:
        known = UNSURE if status is None or not settled else signature(status, 0)
        self._put[path] = Entry(0, known, reason)

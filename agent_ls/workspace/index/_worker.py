"""A worker of a large build: reads, hashes and understands files, and inverts their terms.

Messages go over stdin and stdout, marshalled, each behind its length. In: the settings, then lists of
(number, path, language); None asks for the end. Out: a list of results for each list, and in the end what
its documents' terms are, ready for the database.
"""

# Plain strings instead of Path objects, since this runs for every file or at every start.
# ruff: noqa: PTH118

from __future__ import annotations

import gc
import marshal
import os
import signal
import sys
from typing import Any, BinaryIO

from agent_ls.workspace.index.content import understand
from agent_ls.workspace.index.hashing import blob_id
from agent_ls.workspace.index.postings import NAMES, WORDS, encode
from agent_ls.workspace.index.reading import read_file

_SECONDS = 20.0
_MEMORY = 4 << 30
"""Limits for what no count of steps stops (see `workspace.parsing`); a worker that runs into one dies, which
costs one file (see `build`)."""

Task = tuple[int, str, str | None]
Result = tuple[Any, ...]
"""Number, reason (None: indexed), status or None, settled, key, size, language, flags, tags."""


def send(stream: BinaryIO, message: Any) -> None:
    """Write one message. Raises OSError when nobody reads."""
    data = marshal.dumps(message)
    stream.write(len(data).to_bytes(8, "little") + data)
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    """Read one message. Raises EOFError when the other side has gone."""
    head = stream.read(8)
    if len(head) < 8:
        raise EOFError
    length = int.from_bytes(head, "little")
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return marshal.loads(data)


class Inverter:
    """Gathers which documents each term stands in."""

    def __init__(self) -> None:
        self.documents: list[int] = []
        self._words: dict[bytes, list[int]] = {}
        self._names: dict[bytes, list[int]] = {}

    def add(self, document: int, words: set[bytes], names: set[bytes]) -> None:
        place = len(self.documents)
        self.documents.append(document)
        for terms, postings in ((words, self._words), (names, self._names)):
            for term in terms:
                if term in postings:
                    postings[term].append(place)
                else:
                    postings[term] = [place]

    def chunks(self) -> list[tuple[int, tuple[bytes, bytes, bytes]]]:
        """All terms as a segment's chunks, with their kinds."""
        found: list[tuple[int, tuple[bytes, bytes, bytes]]] = []
        for kind, postings in ((WORDS, self._words), (NAMES, self._names)):
            found += [(kind, tuple(chunk)) for chunk in encode(postings)]  # type: ignore[misc]
        return found


def key_of(data: bytes, language: str | None, algorithm: str) -> bytes:
    """What a content is stored under: git's id and the language that its path stands for."""
    return blob_id(data, algorithm) + (language or "").encode()


def plain_status(status: os.stat_result | None) -> tuple[int, int, int, int] | None:
    """The parts of a status that make a signature."""
    if status is None:
        return None
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def handle(task: Task, root: str, algorithm: str, text: bool, inverter: Inverter) -> Result | None:
    """Read and understand one file; None when it is gone."""
    number, path, language = task
    read = read_file(os.path.join(root, path))
    if read is None:
        return None
    status = plain_status(read.status)
    if read.data is None:
        return (number, read.reason, status, read.settled)
    content = understand(language, read.data, text=text)
    inverter.add(number, content.words, content.names)
    key = key_of(read.data, language, algorithm)
    return (
        number,
        None,
        status,
        read.settled,
        key,
        content.size,
        content.language,
        content.flags,
        content.tags,
    )


def _timed(task: Task, root: str, algorithm: str, text: bool, inverter: Inverter) -> Result | None:
    """`handle`, or death by SIGPROF when it takes too long."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, _SECONDS)
    return handle(task, root, algorithm, text, inverter)


def _limit_memory() -> None:
    try:
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        limit = _MEMORY if most == resource.RLIM_INFINITY else min(_MEMORY, most)
        resource.setrlimit(resource.RLIMIT_AS, (limit, most))
    except (ImportError, OSError, ValueError):
        return  # a system without


def main() -> None:
    """Serve until told to end, or until the other side has gone."""
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    _limit_memory()
    # Nothing of ours is cyclic, and the many small tuples would be looked through again and again.
    gc.disable()
    inverter = Inverter()
    try:
        root, algorithm, text = receive(stdin)
        while (tasks := receive(stdin)) is not None:
            results = [_timed(task, root, algorithm, text, inverter) for task in tasks]
            send(stdout, [result for result in results if result is not None])
        send(stdout, (inverter.documents, inverter.chunks()))
    except (EOFError, OSError):
        os._exit(1)

"""Keeps a database small and quick: pending documents become segments, segments are merged, and what no tree
holds any more is removed once it is more than what the trees hold.

The costly part reads and encodes outside of a write transaction; what it found is only put in force when
nobody else did the same meanwhile.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from agent_ls.workspace.index.postings import NAMES, WORDS, Chunk, Terms, encode
from agent_ls.workspace.index.store import Store

PENDING_DOCUMENTS = 256
PENDING_BYTES = 1_500_000
"""From here on pending documents slow a lookup down more than a segment would."""
MOST_SEGMENTS = 8
GARBAGE = 2_000
"""So many contents without a tree are always kept: the way back to another branch."""
_TREES = 64
_TREE_DAYS = 14

_Postings = dict[int, dict[bytes, list[int]]]


def is_due(store: Store) -> bool:
    """Is there enough pending that `tidy` is worth its time? Quick."""
    documents, size = store.pending_size()
    return documents >= PENDING_DOCUMENTS or size >= PENDING_BYTES


def tidy(store: Store, tree: int) -> bool:
    """Do what is due; `tree` is the caller's and stays. True when the segments have changed.

    Raises sqlite3.Error as the store does.
    """
    with store.writing():
        _forget_trees(store, tree)
        _forget_contents(store)
    segments = store.segments()
    pending = [number for number, _, _ in store.pending()]
    if not pending and len(segments) <= MOST_SEGMENTS:
        return False
    merged = _to_merge(store, segments, len(pending))
    documents, postings = _gather(store, merged, pending)
    chunks = [
        (kind, Chunk(*chunk)) for kind in (WORDS, NAMES) for chunk in encode(postings[kind]) if chunk.first
    ]
    with store.writing():
        there = {number for number, _ in store.segments()}
        still = {number for number, _, _ in store.pending()}
        if not (there.issuperset(merged) and still.issuperset(pending)):
            return False  # somebody else was quicker
        store.add_segment(documents, chunks)
        store.remove_segments(merged)
        store.remove_pending(pending)
    return True


def _forget_trees(store: Store, own: int) -> None:
    """Trees that are no more, and those that nobody has looked at for long when there are many."""
    trees = store.trees()
    old = time.time() - _TREE_DAYS * 86400
    for place, (number, root, seen) in enumerate(trees):
        gone = not os.path.isdir(root)  # noqa: PTH112 - bytes
        if number != own and (gone or (seen < old and len(trees) - place > _TREES)):
            store.remove_tree(number)


def _forget_contents(store: Store) -> None:
    garbage = store.unreferenced()
    kept = max(GARBAGE, store.blob_count() - len(garbage))
    if len(garbage) > kept:
        store.remove_blobs(garbage[: len(garbage) - kept // 2])


def _to_merge(store: Store, segments: list[tuple[int, int]], pending: int) -> list[int]:
    """The segments that become one with what is pending: none while there are few, the small ones when there
    are many, all when most of what they hold is dead or the small ones have become large."""
    live = store.all_blobs()
    held = sum(count for _, count in segments)
    dead = 0
    for number, _ in segments:
        documents = store.segment_documents(number)
        dead += sum(document not in live for document in documents or ())
    if dead * 2 > held:
        return [number for number, _ in segments]
    if len(segments) < MOST_SEGMENTS:
        return []
    largest = sorted((count for _, count in segments), reverse=True)[1]
    small = [(number, count) for number, count in segments if count < largest]
    if sum(count for _, count in small) + pending > held // 4:
        return [number for number, _ in segments]
    return [number for number, _ in small]


def _gather(store: Store, segments: Iterable[int], pending: Iterable[int]) -> tuple[list[int], _Postings]:
    """All terms of some segments and of what is pending, without dead contents."""
    live = store.all_blobs()
    documents: list[int] = []
    postings: _Postings = {WORDS: {}, NAMES: {}}
    for segment in segments:
        places: list[int] = []
        for document in store.segment_documents(segment) or ():
            places.append(len(documents) if document in live else -1)
            if document in live:
                documents.append(document)
        for kind, known in postings.items():
            for stored in store.chunks(segment, kind):
                for term, held in Terms(*stored):
                    kept = [places[place] for place in held if places[place] >= 0]
                    if kept:
                        known.setdefault(term, []).extend(kept)
    wanted = set(pending)
    for number, words, names in store.pending():
        if number in wanted and number in live:
            for kind, terms in ((WORDS, words), (NAMES, names)):
                for term in terms.split(b"\n"):
                    if term:
                        postings[kind].setdefault(term, []).append(len(documents))
            documents.append(number)
    return documents, postings

"""The index of a server: kept fresh by the file system's events and the editor's buffers, asked at any time.

One thread writes. It takes changes in when they have come to rest, or at once when somebody asks: `view`
first takes what the watcher knows (exact up to the call, see `watch`), and waits only if there is
something. `ask` moreover compares the status of every file that an answer came from, which finds what no
event told (writes through memory maps, another machine's on a shared disk). Once in a while everything is
looked at.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from attrs import frozen

from agent_ls.cancel import CancelToken
from agent_ls.errors import Cancelled
from agent_ls.workspace.grammars import language_of
from agent_ls.workspace.index._claims import Claims
from agent_ls.workspace.index._early import Early
from agent_ls.workspace.index._recorded import Recorded
from agent_ls.workspace.index.buffers import Buffer, Buffers, Edit
from agent_ls.workspace.index.index import open_index
from agent_ls.workspace.index.watch import Changes, Mode, Watcher

if TYPE_CHECKING:
    from agent_ls.workspace.index.state import State
    from agent_ls.workspace.index.view import View

_T = TypeVar("_T")

SWEEP = 60.0
"""Seconds after which everything is looked at although no event told to."""
_SWEEP_SHARE = 200
"""But at most every this many times what a look takes."""
_TRIES = 5
_TYPING = 0.05
"""Seconds that changes of buffers wait for more, should nobody ask."""
_RETRY = 5.0
"""Seconds after which what failed is tried again."""


@frozen
class Changed:
    """The index has changed: paths whose content is new or other (buffers' as well), and those that are gone.
    `switched`: git's HEAD or index is another one; `first`: this is the first complete state."""

    version: int
    changed: frozenset[str]
    removed: frozenset[str]
    switched: bool = False
    first: bool = False


@frozen
class Status:
    """How the index is doing. `progress`: files read, and to be read, of a build that goes on. `notes`: why
    something is slower or less than it could be. `failed`: what went wrong last, until it goes right."""

    complete: bool
    version: int
    watching: Mode
    missing: bool
    progress: tuple[int, int] | None
    notes: tuple[str, ...]
    failed: BaseException | None


class LiveIndex:
    """One working tree. `start`, then ask; `stop` (or leave the `with` block). Thread-safe.

    `cache_dir` and `memory` as for `open_index`; `mode` forces a way to watch; `on_progress(done, total)` is
    called in the index's thread during large builds. Raises NotADirectoryError when `root` is none.
    """

    def __init__(
        self,
        root: Path,
        *,
        cache_dir: Path | None = None,
        memory: bool = False,
        mode: Mode | None = None,
        on_progress: Callable[[int, int], None] | None = None,
        sweep: float = SWEEP,
    ) -> None:
        self._cancel = CancelToken()
        self._index = open_index(root, cache_dir=cache_dir, cancel=self._cancel, memory=memory)
        self.root: Path = self._index.root
        self._cache_dir = None if memory else cache_dir
        self._memory = memory
        self._on_progress = on_progress
        self._index.on_progress = self._progressed
        self._progress: tuple[int, int] | None = None
        self._watcher = Watcher(self.root, self._nudge, mode=mode)
        self._sweep = sweep
        self._early: Early | None = None
        self.buffers = Buffers()
        """The open buffers; to be changed by the methods here only."""
        self._condition = threading.Condition()
        self._claims = Claims(everything="the first look")
        self._requested = self._done = 0
        self._busy = False
        self._complete = False
        self._failed: BaseException | None = None
        self._refused: BaseException | None = None
        self._ended = False
        self._took = 0.0
        self._unlisted: set[str] = set()
        self._told = self._index._state
        self._subscribers: list[Callable[[Changed], None]] = []
        self._thread: threading.Thread | None = None

    # life

    def start(self) -> None:
        """Begin to index in the background, and to watch. Returns at once."""
        self._early = Early(self.root, cache_dir=self._cache_dir, memory=self._memory)
        self._thread = threading.Thread(target=self._run, name="index-writer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End everything that was started; whoever waits for an answer gets Cancelled. May be called
        twice."""
        self._cancel.cancel()
        with self._condition:
            self._condition.notify_all()
        thread = self._thread
        if thread is threading.current_thread():
            raise RuntimeError("a subscriber can't stop the index that calls it")
        if thread is not None:
            thread.join()
        self._watcher.stop()
        self._index.close()
        if self._early is not None:
            self._early.close()

    def __enter__(self) -> LiveIndex:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def complete(self) -> bool:
        """Has everything been looked at once? Until then only `partial` answers at once."""
        return self._complete

    def status(self) -> Status:
        """How the index is doing."""
        notes = tuple(note for note in (self._watcher.note, self._index.note) if note)
        return Status(
            self._complete,
            self._index.version,
            self._watcher.mode,
            not self.root.is_dir(),
            self._progress,
            notes,
            self._failed,
        )

    def subscribe(self, callback: Callable[[Changed], None]) -> Callable[[], None]:
        """Have `callback` called after each change, in the index's thread; what is returned ends that. It may
        ask the index. One that raises isn't called again; `status` has the error."""
        with self._condition:
            self._subscribers.append(callback)

        def unsubscribe() -> None:
            with self._condition:
                if callback in self._subscribers:
                    self._subscribers.remove(callback)

        return unsubscribe

    # buffers

    def open_buffer(self, path: str, text: bytes, version: int = 0) -> Buffer:
        """A buffer was opened: its text (UTF-8) counts now, not the file's."""
        return self._buffer(path, lambda: self.buffers.open(path, text, version))

    def change_buffer(self, path: str, edits: Iterable[Edit], version: int = 0) -> Buffer:
        """A buffer was changed (see `Buffers.change`). Raises KeyError, ValueError."""
        return self._buffer(path, lambda: self.buffers.change(path, edits, version))

    def replace_buffer(self, path: str, text: bytes, version: int = 0) -> Buffer:
        """A buffer has another text. Raises KeyError."""
        return self._buffer(path, lambda: self.buffers.replace(path, text, version))

    def close_buffer(self, path: str) -> None:
        """A buffer was closed: the file counts again."""
        self._buffer(path, lambda: self.buffers.close(path))

    def _buffer(self, path: str, action: Callable[[], _T]) -> _T:
        with self._condition:
            done = action()
            self._claims.buffers.add(path)
            # Taken in soon, should nobody ask: typing comes in bursts.
            self._condition.notify_all()
            return done

    # answers

    def view(self, timeout: float | None = None) -> View:
        """The index with all that has happened before this call, buffers included; waits for the first build.
        Raises TimeoutError, Cancelled once stopped, and what made the index fail."""
        self._catch_up(timeout)
        return self._index.view()

    def partial(self) -> tuple[View, bool]:
        """An answer without waiting, and whether it is complete: before the first build has ended, the state
        of an earlier run (possibly empty, and without buffers)."""
        if not self._complete and self._early is not None:
            view = self._early.view()
            if view is not None:
                return view, False
        return self.view(), True

    def ask(self, question: Callable[[View], _T], timeout: float | None = None) -> _T:
        """The answer to a question, from files that are as the answer has them: where one has changed without
        an event, the question is asked again. Raises as `view` does."""
        for _ in range(_TRIES):
            self._catch_up(timeout)
            view = Recorded(self._index)
            answer = question(view)
            suspects = view.suspects()
            if not suspects:
                break
            before = self._index.version
            self._claim(Changes(frozenset(suspects)))
            self._catch_up(timeout)
            if not self._differs(before, view):
                break
        return answer

    def _differs(self, before: int, view: Recorded) -> bool:
        return self._index.version != before and view.outdated()

    def _catch_up(self, timeout: float | None) -> None:
        """Have all that happened before this call taken in."""
        self._cancel.raise_if_cancelled()
        if self._thread is None:
            raise RuntimeError("the index was not started")
        if threading.current_thread() is self._thread:
            self._claim(self._watcher.take())
            self._cycle()
            return
        changes = self._watcher.take() if self._complete else Changes()
        with self._condition:
            self._claims.add(changes)
            if not self._claims and not self._busy and self._complete:
                return
            self._requested += 1
            ticket = self._requested
            self._condition.notify_all()
            reached = self._condition.wait_for(
                lambda: self._done >= ticket or self._cancel.cancelled or self._ended, timeout
            )
            self._cancel.raise_if_cancelled()
            if not reached:
                raise TimeoutError("the index is not up to date yet")
            if self._refused is not None:
                raise self._refused

    def _claim(self, changes: Changes) -> None:
        with self._condition:
            self._claims.add(changes)

    def _nudge(self) -> None:
        """The watcher has something that came to rest."""
        with self._condition:
            self._claims.nudged = True
            self._condition.notify_all()

    def _progressed(self, done: int, total: int) -> None:
        self._progress = (done, total)
        if self._on_progress is not None:
            self._on_progress(done, total)

    # the one thread that writes

    def _run(self) -> None:
        try:
            self._watcher.start()
            while not self._cancel.cancelled:
                self._cycle()
                if self._early is not None and self._complete and self._early.close_unused():
                    self._early = None
                self._rest()
        except Cancelled:
            pass
        except BaseException as error:
            self._failed = self._refused = error
            raise
        finally:
            with self._condition:
                self._ended = True
                self._condition.notify_all()

    def _rest(self) -> None:
        """Until there is something to do."""
        pause = max(self._sweep, self._took * _SWEEP_SHARE) if self._refused is None else _RETRY

        def asked() -> bool:
            return self._cancel.cancelled or self._requested > self._done

        with self._condition:
            told = self._condition.wait_for(
                lambda: asked() or (bool(self._claims) and self._refused is None), pause
            )
            if not told and self._refused is None:
                self._claims.add(Changes(everything="it was time to"))
            elif not asked() and not self._claims.files:
                self._condition.wait_for(asked, _TYPING)

    def _cycle(self) -> None:
        """Take in everything that is claimed, and answer those who wait for it."""
        with self._condition:
            # Before anything is taken: who finds the watcher empty has to wait for what was in it.
            self._busy = True
        taken = self._watcher.take()
        with self._condition:
            ticket = self._requested
            self._claims.add(taken)
            claims, self._claims = self._claims, Claims()
        changed = None
        error: Exception | None = None
        try:
            changed = self._take_in(claims)
        except Cancelled:
            raise
        except Exception as caught:
            error = caught
        with self._condition:
            self._busy = False
            self._done = ticket
            self._refused = error
            if error is not None:
                # Nothing is lost: the next who asks has it tried again.
                self._failed = error
                self._claims.again(claims)
            else:
                self._failed = None
                self._complete = True
                self._progress = None
            self._condition.notify_all()
        if changed is not None:
            self._tell(changed)

    def _take_in(self, claims: Claims) -> Changed | None:
        index = self._index
        first = not self._complete
        version = index.version
        changed: set[str] = set()
        removed: set[str] = set()
        if claims.everything is not None or claims.paths:
            started = time.perf_counter()
            if claims.everything is not None:
                self._unlisted.clear()
                done = index.refresh()
                self._took = time.perf_counter() - started
                self._watcher.took(self._took)
            else:
                done = index.refresh(self._worth_a_look(claims.paths))
                self._note_unlisted(claims.paths)
            changed.update(done.changed)
            removed.update(done.removed)
        buffers = set(claims.buffers)
        doubtful = removed.intersection(self.buffers.paths())
        if claims.switched or claims.rules or any(path.endswith(".gitignore") for path in changed | removed):
            doubtful.update(self.buffers.paths())
        # At once for those who look meanwhile: a buffer is never seen to be closed for a moment.
        with index._lock:
            if doubtful:
                # Whether they are listed may be other than it was when they were opened.
                for path in doubtful:
                    index.overlay(path, None)
                index.refresh(doubtful)
                buffers |= doubtful
            for path in sorted(buffers):
                self._overlay(path)
        changed |= buffers
        # Whoever reads a text may have had the index follow a file: that has to be told as well.
        state, told = index._state, self._told
        self._told = state
        if state.version == told.version and not first:
            return None
        if version != told.version:
            more, less = _difference(told, state)
            changed |= more
            removed |= less
        if not (changed or removed or first):
            return None
        return Changed(
            index.version, frozenset(changed - removed), frozenset(removed), claims.switched, first
        )

    def _worth_a_look(self, paths: set[str]) -> set[str]:
        """Without files that git ignores: asking it about a log at each line would cost more than all
        else."""
        return {path for path in paths if path not in self._unlisted or (self.root / path).is_dir()}

    def _note_unlisted(self, paths: set[str]) -> None:
        entries = self._index._state.entries
        for path in paths:
            if path not in entries and (self.root / path).is_file():
                self._unlisted.add(path)

    def _overlay(self, path: str) -> None:
        from agent_ls.workspace.index.tags import tags

        try:
            buffer, tree = self.buffers.parsed(path)
        except KeyError:
            self._index.overlay(path, None)
            self._index.refresh((path,))
            return
        language = language_of(path)
        known = None
        if language is not None and tree is not None:
            known = tags(language, buffer.text, tree=tree, references=False)
        self._index.overlay(path, buffer.text, known)

    def _tell(self, changed: Changed) -> None:
        for callback in list(self._subscribers):
            try:
                callback(changed)
            except Cancelled:
                raise
            except Exception as error:
                with self._condition:
                    self._failed = error
                    if callback in self._subscribers:
                        self._subscribers.remove(callback)


def _difference(before: State, now: State) -> tuple[set[str], set[str]]:
    """Paths with another content, and those that are gone."""
    changed = set()
    for path, entry in now.entries.items():
        old = before.entries.get(path)
        if old is None or old.blob != entry.blob:
            changed.add(path)
    return changed, before.entries.keys() - now.entries.keys()

"""Large builds: worker processes read and understand the files, as parsing holds the interpreter's lock."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from agent_ls.workspace.index._worker import Result, Task, receive, send

if TYPE_CHECKING:
    from agent_ls.cancel import CancelToken
    from agent_ls.sandbox.workers import Worker

_MODULE = "agent_ls.workspace.index._worker"
_CHUNK_BYTES = 400_000
_CHUNK_FILES = 200
_AHEAD = 2
_MOST_WORKERS = 4
_MOST_CRASHES = 50

Segment = tuple[list[int], list[tuple[int, tuple[bytes, bytes, bytes]]]]
"""Documents (numbers of tasks) by their place, and chunks with their kinds."""


def worker_count() -> int:
    """How many workers a build uses: the processors that we may run on, at most four."""
    try:
        processors = len(os.sched_getaffinity(0))
    except AttributeError:
        processors = os.cpu_count() or 1
    return max(1, min(_MOST_WORKERS, processors))


class WorkerPool:
    """Started early, since workers load their modules while the files are still being listed."""

    def __init__(self, cancel: CancelToken | None = None) -> None:
        self._cancel = cancel
        self._workers: list[Worker] = []
        self._lock = threading.Lock()
        self._closed = False

    def start(self, count: int | None = None) -> None:
        """Start the workers that aren't there yet. Raises OSError when none can be."""
        for _ in range((count or worker_count()) - len(self._workers)):
            try:
                self.add()
            except OSError:
                if not self._workers:
                    raise
                break

    @property
    def stopped(self) -> bool:
        """Are the workers being ended on purpose?"""
        return self._closed or (self._cancel is not None and self._cancel.cancelled)

    def add(self) -> Worker:
        """One more worker. Raises OSError when it can't be started."""
        from agent_ls.sandbox.workers import Worker

        worker = Worker(_MODULE)
        with self._lock:
            if self._closed:
                worker.close()
                raise OSError("closed")
            self._workers.append(worker)
        return worker

    def close(self) -> None:
        """End all workers."""
        with self._lock:
            self._closed = True
            workers, self._workers = self._workers, []
        for worker in workers:
            worker.close()

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(
        self,
        settings: tuple[str, str, bool],
        tasks: Sequence[tuple[int, Task]],
        on_results: Callable[[list[Result]], None],
    ) -> tuple[list[Segment], list[Task]]:
        """Have all tasks (with their files' sizes) done. `settings` are the root, the hash algorithm and
        whether words are wanted. `on_results` is called in this thread. Returns the workers' segments, and
        the files that crash the parser. Raises Cancelled."""
        self.start()
        job = _Job(self, settings, tasks)
        threads = [
            threading.Thread(target=job.serve, args=(worker,), daemon=True, name="index-worker")
            for worker in list(self._workers)
        ]
        watch = self._cancel.on_cancel(self._kill) if self._cancel is not None else contextlib.nullcontext()
        with watch:
            for thread in threads:
                thread.start()
            try:
                for results in job.results(len(threads)):
                    on_results(results)
            except BaseException:
                self.close()
                raise
        if self._cancel is not None:
            self._cancel.raise_if_cancelled()
        return job.segments, job.crashed

    def _kill(self) -> None:
        for worker in list(self._workers):
            worker.kill()


class _Job:
    """The tasks of one build, shared by the threads that each speak to one worker."""

    def __init__(
        self, pool: WorkerPool, settings: tuple[str, str, bool], tasks: Sequence[tuple[int, Task]]
    ) -> None:
        self._pool = pool
        self._settings = settings
        self._waiting: list[list[Task]] = list(_chunks(tasks))[::-1]
        self._lock = threading.Lock()
        self._done: queue.SimpleQueue[list[Result] | BaseException | None] = queue.SimpleQueue()
        self._crashes = 0
        self.segments: list[Segment] = []
        self.crashed: list[Task] = []

    def results(self, threads: int) -> Iterator[list[Result]]:
        while threads:
            message = self._done.get()
            if message is None:
                threads -= 1
            elif isinstance(message, BaseException):
                raise message
            else:
                yield message

    def serve(self, worker: Worker) -> None:
        """Feed one worker, and its successors when it crashes, until nothing is left."""
        try:
            while True:
                given: deque[list[Task]] = deque()
                answered: list[list[Task]] = []
                try:
                    self._feed(worker, given, answered)
                    break
                except (EOFError, OSError, ValueError):
                    worker.kill()
                    if self._pool.stopped:
                        break
                    self._return(given, answered)
                    worker = self._pool.add()
        except BaseException as error:
            self._done.put(error)
        finally:
            self._done.put(None)

    def _feed(self, worker: Worker, given: deque[list[Task]], answered: list[list[Task]]) -> None:
        """Speak to a worker until no tasks are left; `given` are those that it has yet to answer."""
        send(worker.stdin, self._settings)
        while True:
            while len(given) < _AHEAD and (chunk := self._next()) is not None:
                given.append(chunk)
                send(worker.stdin, chunk)
            if not given:
                break
            results: list[Result] = receive(worker.stdout)
            answered.append(given.popleft())
            self._done.put(results)
        send(worker.stdin, None)
        segment: Segment = receive(worker.stdout)
        with self._lock:
            self.segments.append(segment)

    def _next(self) -> list[Task] | None:
        with self._lock:
            return self._waiting.pop() if self._waiting else None

    def _return(self, given: deque[list[Task]], answered: list[list[Task]]) -> None:
        """A worker died, and with it the terms of all that it was given: it is done again. The portion that
        it died of is halved, until the file that kills the parser is alone."""
        with self._lock:
            self._crashes += 1
            if self._crashes > _MOST_CRASHES:
                raise OSError("the index's workers keep dying")
            if given:
                chunk = given.popleft()
                middle = len(chunk) // 2
                if middle:
                    self._waiting += [chunk[:middle], chunk[middle:]]
                else:
                    self.crashed += chunk
            self._waiting += [*given, *answered]


def _chunks(tasks: Sequence[tuple[int, Task]]) -> Iterator[list[Task]]:
    """The largest files first, in portions of about the same size."""
    chunk: list[Task] = []
    held = 0
    for size, task in sorted(tasks, key=lambda sized: -sized[0]):
        chunk.append(task)
        held += size
        if held >= _CHUNK_BYTES or len(chunk) >= _CHUNK_FILES:
            yield chunk
            chunk, held = [], 0
    if chunk:
        yield chunk

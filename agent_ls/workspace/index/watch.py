"""Tells which files of a tree changed: by events of the file system, or by looking again now and then.

On Linux inotify is read directly (`_inotify` says why); elsewhere watchdog watches. Where there are no events
(network file systems, watches used up) the tree is polled, and `note` says so.

`take` is exact: on Linux whatever happened before the call is in its answer, since the kernel queues an event
within the system call that causes it. The other two can't promise that; `exact` is False there, and `take`
says that everything has to be looked at.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from attrs import frozen

from agent_ls.workspace.index._watched import PACKAGES, Pending, WatchedTree

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import BaseObserver

Mode = Literal["inotify", "watchdog", "polling"]

MANY = 1000
"""More changed paths than these are told as "everything": one look at all is quicker then."""
QUIET = 0.03
"""Seconds without events until they are told."""
LONGEST = 0.5
"""Seconds after which they are told although there are still more."""

_POLL_LEAST, _POLL_MOST = 1.0, 60.0
_POLL_SHARE = 30
"""A look at everything is taken at most every this many times its duration."""
_ALIVE = 1.0
_NO_EVENTS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "vboxsf", "prl_fs",
     "fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.vmhgfs-fuse", "fuse.grpcfuse", "virtiofs", "davfs",
     "ncpfs"}
)  # fmt: skip


@frozen
class Changes:
    """What changed: files and folders relative to the root, or (`everything`: why) perhaps anything.
    `switched`: git's HEAD or index is another one; `rules`: what is ignored may be."""

    paths: frozenset[str] = frozenset()
    everything: str | None = None
    switched: bool = False
    rules: bool = False

    def __bool__(self) -> bool:
        return bool(self.paths) or self.everything is not None


class Watcher:
    """Watches one tree from `start` until `stop`. Thread-safe.

    `on_change` is called without arguments, in the watcher's thread, when changes have come to rest; it is to
    `take` them (or have that done) and must not raise. `mode` forces a way to watch, for tests and by users'
    choice.
    """

    def __init__(
        self,
        root: Path,
        on_change: Callable[[], None],
        *,
        mode: Mode | None = None,
        quiet: float = QUIET,
        longest: float = LONGEST,
        limit: int = MANY,
    ) -> None:
        self.root = root
        self.note: str | None = None
        """Why there are no events, if so, and what would help."""
        self._on_change = on_change
        self._wanted = mode
        self._quiet = quiet
        self._longest = longest
        self._lock = threading.RLock()
        self._pending = Pending(limit)
        self._tree: WatchedTree | None = None
        self._observer: BaseObserver | None = None
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()
        self._wake_read = self._wake_write = -1
        self._interval = _POLL_LEAST

    @property
    def mode(self) -> Mode:
        """How changes are found now."""
        if self._tree is not None:
            return "inotify"
        return "watchdog" if self._observer is not None else "polling"

    @property
    def exact(self) -> bool:
        """Does `take` know all that happened before it?"""
        return self._tree is not None

    @property
    def folders(self) -> list[str] | None:
        """The folders that have a watch ("" is the root); None when that isn't known."""
        with self._lock:
            return None if self._tree is None else self._tree.folders

    def start(self) -> None:
        """Begin: changes after this call are told. Once only."""
        with self._lock:
            self._wake_read, self._wake_write = os.pipe()
            os.set_blocking(self._wake_write, False)
            self._begin()
            self._thread = threading.Thread(target=self._run, name="index-watcher", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Give all watches back and end the thread. May be called twice, and from `on_change`."""
        self._stopped.set()
        self._wake()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        with self._lock:
            self._end_events()
            for descriptor in (self._wake_read, self._wake_write):
                if descriptor >= 0:
                    os.close(descriptor)
            self._wake_read = self._wake_write = -1

    def take(self) -> Changes:
        """What changed since it was last taken, up to this moment."""
        with self._lock:
            self._drain()
            pending = self._pending
            everything = pending.everything
            if everything is None and not self.exact:
                everything = self.note or "there are no events that could be waited for"
            elif everything is None and self._tree is not None and self._tree.blind:
                everything = "some folders can't be watched"
            paths = frozenset(pending.paths) if everything is None else frozenset()
            taken = Changes(paths, everything, pending.switched, pending.rules)
            pending.clear()
            return taken

    def took(self, seconds: float) -> None:
        """How long a look at everything took: the more, the less often it is taken where there are no
        events."""
        self._interval = min(_POLL_MOST, max(_POLL_LEAST, seconds * _POLL_SHARE))

    # inside

    def _begin(self) -> None:
        mode = self._wanted
        if mode is None:
            mode = "inotify" if sys.platform == "linux" else "watchdog"
            kind = _without_events(self.root)
            if kind is not None:
                self.note = f"changes are looked for every few seconds: {kind} tells of none made elsewhere"
                mode = "polling"
        try:
            if mode == "inotify":
                self._tree = WatchedTree(self.root, self._pending)
            elif mode == "watchdog":
                self._observe()
        except (OSError, ImportError) as error:
            self._fall_back(error)

    def _fall_back(self, error: OSError | ImportError) -> None:
        """Go on without events."""
        self._end_events()
        self.note = f"changes are looked for every few seconds, since events can't be used: {_cause(error)}"
        self._pending.all(self.note)

    def _end_events(self) -> None:
        if self._tree is not None:
            self._tree.close()
            self._tree = None
        if self._observer is not None:
            observer, self._observer = self._observer, None
            observer.stop()
            with contextlib.suppress(RuntimeError):
                observer.join()

    def _drain(self) -> bool:
        if self._tree is None:
            return False
        try:
            return self._tree.drain()
        except OSError as error:
            self._fall_back(error)
            return True

    def _wake(self) -> None:
        with self._lock, contextlib.suppress(OSError):
            if self._wake_write >= 0:
                os.write(self._wake_write, b"!")

    def _run(self) -> None:
        first: float | None = None
        last = 0.0
        while not self._stopped.is_set():
            events = self._wait(None if first is None else self._quiet)
            if self._stopped.is_set():
                return
            now = time.monotonic()
            with self._lock:
                seen = self._drain() or events
                waiting = bool(self._pending) or (self.mode == "polling" and now - last >= self._interval)
            if not waiting:
                first = None
            elif first is not None and (not seen or now - first >= self._longest):
                first = None
                last = now
                self._on_change()
            elif first is None:
                if self.mode == "polling":
                    last = now
                    self._on_change()
                else:
                    first = now

    def _wait(self, pause: float | None) -> bool:
        """Until something may have happened. With `pause` for so long at most, however much happens: what
        comes in a burst is read in large portions."""
        descriptors = [self._wake_read]
        with self._lock:
            if self._tree is not None and pause is None:
                descriptors.append(self._tree.descriptor)
        timeout = pause if pause is not None else self._interval if self.mode == "polling" else _ALIVE
        try:
            ready, _, _ = select.select(descriptors, [], [], timeout)
        except (OSError, ValueError):  # closed meanwhile, when events had to be given up
            return True
        if self._wake_read in ready:
            os.read(self._wake_read, 4096)
        return bool(ready)

    # watchdog

    def _observe(self) -> None:
        from watchdog.events import EVENT_TYPE_CLOSED_NO_WRITE, EVENT_TYPE_OPENED, FileSystemEventHandler
        from watchdog.observers import Observer

        watcher = self
        silent = {EVENT_TYPE_OPENED, EVENT_TYPE_CLOSED_NO_WRITE}

        class Handler(FileSystemEventHandler):
            def on_any_event(self, event: FileSystemEvent) -> None:
                if event.event_type not in silent:
                    watcher._observed(os.fsdecode(event.src_path), event.is_directory)
                    if event.dest_path:
                        watcher._observed(os.fsdecode(event.dest_path), event.is_directory)

        observer = Observer()
        observer.daemon = True
        observer.schedule(Handler(), str(self.root), recursive=True)
        observer.start()
        self._observer = observer

    def _observed(self, name: str, folder: bool) -> None:
        path = os.path.relpath(name, self.root).replace(os.sep, "/")
        parts = path.split("/")
        if parts[0] == ".git":
            if path not in (".git/HEAD", ".git/index", ".git/info/exclude", ".git"):
                return
            with self._lock:
                self._pending.all(f"git's {parts[-1]} changed")
                self._pending.switched = True
        elif not (path == "." or PACKAGES.intersection(parts[:-1]) or (folder and parts[-1] in PACKAGES)):
            with self._lock:
                self._pending.path(path)
        self._wake()


def _cause(error: OSError | ImportError) -> str:
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return "no inotify watches are left (raise fs.inotify.max_user_watches)"
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        return (
            "no inotify instances are left (raise fs.inotify.max_user_instances), or too many files are open"
        )
    return str(error)


def _without_events(root: Path) -> str | None:
    """The kind of a file system at or below the root that doesn't tell what others change, if there is
    one."""
    try:
        mounts = Path("/proc/self/mountinfo").read_bytes()
    except OSError:
        return None
    place = os.path.realpath(root)
    nearest, kind = "", None
    for line in mounts.splitlines():
        fields, _, rest = os.fsdecode(line).partition(" - ")
        # Octal escapes stand for spaces and the like in names.
        where = fields.split(" ")[4].encode("latin-1", "surrogateescape").decode("unicode_escape", "replace")
        type_ = rest.split(" ")[0]
        below = where.startswith(place + "/") and "/.git/" not in where
        if below and type_ in _NO_EVENTS:
            return type_
        if (place + "/").startswith(where.rstrip("/") + "/") and len(where) >= len(nearest):
            nearest, kind = where, type_
    return kind if kind in _NO_EVENTS else None

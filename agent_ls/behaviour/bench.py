"""A place where a mixture of two trees can be laid out and its tests be run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

from agent_ls.behaviour.sides import is_test_side
from agent_ls.cancel import CancelToken
from agent_ls.guard.trees import Tree, changed_paths
from agent_ls.testing._records import Coverage
from agent_ls.testing.plan import TestPlan
from agent_ls.testing.quick import QuickRunner
from agent_ls.testing.results import TestRun
from agent_ls.testing.runner import TestRunner
from agent_ls.workspace.removal import remove_tree

Side = Literal["before", "after"]

_CHECK_EVERY = 50
"""A mutant that decides is confirmed in fresh processes anyway."""


class Bench(Protocol):
    """Lays out the tests of one tree with the sources of another, and runs them.

    What belongs to the tests is decided by `sides.is_test_side`. Implementation: `FolderBench`.
    """

    @property
    def plan(self) -> TestPlan:
        """How the tests are run."""

    @property
    def unreadable(self) -> tuple[str, ...]:
        """Changed paths that can't be laid out (too large, no plain file)."""

    def lay_out(self, tests: Side, sources: Side, edits: Mapping[str, bytes] | None = None) -> None:
        """Make the files those of the mixture; `edits` (path -> content) lie over it until the next call."""

    def run(
        self,
        ids: Sequence[str] | None,
        *,
        timeout: float,
        cancel: CancelToken,
        per_test_timeout: float | None = None,
        trace: bool = False,
        quick: bool = False,
    ) -> TestRun:
        """Run ids (None: all) over what is laid out. `quick` allows processes forked from a warm one."""

    def warm(self) -> None:
        """Many quick runs are coming: start what they need."""

    def coverage(self) -> Coverage:
        """Lines that the last traced run executed, per test and file."""

    def close(self) -> None:
        """Leave the place as it was found: with the files of the tree after."""


class FolderBench:
    """A folder that holds the files of `after`: a session's worktree, or a temporary copy.

    Only paths that differ between the trees are ever written, in the folder that `runner` looks at
    (`runner.view.worktree`), which must hold the files of `after` at the start. `scratch` is a folder outside
    of it for the warm process. `close` calls `restore`; without one it puts the files of `after` back. A
    session passes its runner, two `GitTree`s of its repository, its own folder, and a reset of its worktree.
    """

    def __init__(
        self,
        runner: TestRunner,
        before: Tree,
        after: Tree,
        scratch: Path,
        restore: Callable[[], None] | None = None,
    ) -> None:
        self._runner = runner
        self._root = runner.view.worktree
        self._quick = QuickRunner(runner, scratch / "quick-bench", check_every=_CHECK_EVERY, after=0)
        self._restore = restore
        self._contents: dict[str, dict[Side, bytes | None]] = {}
        self._laid: dict[str, bytes | None] = {}
        self._originals: dict[str, bytes | None] = {}
        old, new = set(before.paths()), set(after.paths())
        unreadable = []
        for path in changed_paths(before, after):
            contents: dict[Side, bytes | None] = {"before": before.read(path), "after": after.read(path)}
            if (path in old and contents["before"] is None) or (path in new and contents["after"] is None):
                unreadable.append(path)
                continue
            self._contents[path] = contents
            self._laid[path] = contents["after"]
        self._unreadable = tuple(unreadable)

    @property
    def plan(self) -> TestPlan:
        return self._runner.plan

    @property
    def unreadable(self) -> tuple[str, ...]:
        return self._unreadable

    def lay_out(self, tests: Side, sources: Side, edits: Mapping[str, bytes] | None = None) -> None:
        wanted = {
            path: contents[tests if is_test_side(path) else sources]
            for path, contents in self._contents.items()
        }
        wanted |= edits or {}
        for path in [path for path in self._laid if path not in wanted]:
            self._take_back(path)
        for path, data in sorted(wanted.items(), key=lambda item: item[1] is not None):
            if path not in self._laid:  # an edit of a file that is the same in both trees
                place = self._root / path
                self._originals[path] = place.read_bytes() if place.is_file() else None
            elif self._laid[path] == data:
                continue
            self._write(path, data)
            self._laid[path] = data

    def _take_back(self, path: str) -> None:
        self._write(path, self._originals.pop(path))
        del self._laid[path]

    def _write(self, path: str, data: bytes | None) -> None:
        place = self._root / path
        if data is None:
            place.unlink(missing_ok=True)
            for parent in place.parents:
                # an empty package folder would still be importable
                if parent == self._root or not parent.is_dir() or any(parent.iterdir()):
                    break
                parent.rmdir()
            return
        if place.is_dir() and not place.is_symlink():
            remove_tree(place)
        place.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(place) and (place.is_symlink() or place.stat().st_nlink > 1):
            place.unlink()
        place.write_bytes(data)

    def run(
        self,
        ids: Sequence[str] | None,
        *,
        timeout: float,
        cancel: CancelToken,
        per_test_timeout: float | None = None,
        trace: bool = False,
        quick: bool = False,
    ) -> TestRun:
        if quick and ids is not None and not trace:
            return self._quick.run(ids, timeout=timeout, cancel=cancel, per_test_timeout=per_test_timeout)
        return self._runner.run(
            ids, timeout=timeout, cancel=cancel, per_test_timeout=per_test_timeout, trace=trace
        )

    def warm(self) -> None:
        self._quick.warm()

    def coverage(self) -> Coverage:
        return self._runner.coverage

    def stop(self) -> None:
        """End the warm process; the files stay as they are."""
        self._quick.close()

    def close(self) -> None:
        try:
            self.stop()
        finally:
            if self._restore is not None:
                self._restore()
            else:
                self.lay_out("after", "after")

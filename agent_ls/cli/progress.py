"""A download's progress: a bar on a terminal, a line every ten per cent elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

from agent_ls.cli.output import console, is_terminal

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Download:
    """Context manager; `update(done, total)` takes bytes."""

    def __init__(self, title: str, *, quiet: bool = False) -> None:
        self._title = title
        self._quiet = quiet
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._told = -1

    def __enter__(self) -> Download:
        if not self._quiet and is_terminal(sys.stderr):
            from rich.progress import (
                BarColumn,
                DownloadColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
                TransferSpeedColumn,
            )

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                DownloadColumn(),
                TransferSpeedColumn(),
                TimeRemainingColumn(),
                console=console(sys.stderr),
            )
            self._task = self._bar.add_task(self._title, total=None)
            self._bar.start()
        return self

    def update(self, done: int, total: int) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, total=total)
        elif not self._quiet and total:
            tenth = done * 10 // total
            if tenth > self._told:
                self._told = tenth
                sys.stderr.write(f"{self._title}: {tenth * 10} % of {total / 1e6:,.0f} MB\n")
                sys.stderr.flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

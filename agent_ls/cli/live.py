"""The live view on stderr while a session runs, driven by its events alone."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from rich.text import Text

from agent_ls.cli.output import console, is_terminal, visible
from agent_ls.cli.story import DIM, NAME, Story, duration
from agent_ls.events import Event

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.live import Live

_PLAIN_PROGRESS_S = 10.0
"""Without a terminal, progress of one long phase is told this often."""
_TYPED_KEPT = 2000
"""So many characters of an answer that is being written are kept: only its last line is shown."""


class LiveView:
    """Context manager; `on_event` takes events and `on_text` pieces of an answer from any thread.

    On a terminal: finished lines scroll by above one moving line (spinner, what happens, elapsed
    time) and the last line that a model is writing. Elsewhere: plain lines without control codes.
    `quiet` shows nothing at all.
    """

    def __init__(self, *, quiet: bool = False, verbose: bool = False, stream: TextIO | None = None) -> None:
        self.story = Story(verbose=verbose)
        self._stream = stream or sys.stderr
        self._quiet = quiet
        self._console: Console = console(self._stream)
        self._fancy = is_terminal(self._stream) and not quiet
        self._live: Live | None = None
        self._lock = threading.RLock()
        self._stopping = False
        self._told = 0.0
        self._typed = ""

    def __enter__(self) -> LiveView:
        if self._fancy:
            from rich.live import Live

            self._live = Live(
                _Moving(self), console=self._console, refresh_per_second=10, transient=True,
                redirect_stdout=False, redirect_stderr=False,
            )  # fmt: skip
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def on_event(self, event: Event) -> None:
        """Show one event."""
        with self._lock:
            if event.kind in ("model_call", "model_reply", "model_retry", "session_finished"):
                self._typed = ""
            lines = self.story.read(event)
            if self._quiet:
                return
            try:
                if not self._fancy:
                    self._plain_status(event)
                for line in lines:
                    self._console.print(line, soft_wrap=not self._fancy)
            except OSError:  # whoever was watching has gone; the work goes on
                self._quiet = True

    def on_text(self, text: str) -> None:
        """Take in a piece of the answer that a model is writing; shown on a terminal only."""
        if self._fancy:
            with self._lock:
                self._typed = (self._typed + text)[-_TYPED_KEPT:]

    def typed_line(self) -> Text | None:
        """The last line with something on it of the answer that is being written, None if there is none."""
        lines = visible(self._typed).expandtabs(4).splitlines()
        last = next((line for line in reversed(lines) if line.strip()), None)
        return None if last is None else Text(last.strip(), DIM)

    def ask(self, question: str) -> str | None:
        """Ask the person; None without a terminal to ask on, and when nothing is answered."""
        if not (sys.stdin is not None and sys.stdin.isatty() and self._stream.isatty()):
            return None
        if self._live is not None:
            self._live.stop()
        try:
            self._stream.write("your answer (empty: none): ")
            self._stream.flush()
            answer = sys.stdin.readline().strip()
        finally:
            if self._live is not None:
                self._live.start()
        return answer or None

    def stopping(self) -> None:
        """Say that a stop was asked for. Called by a signal handler: only sets a flag."""
        self._stopping = True

    def _plain_status(self, event: Event) -> None:
        if event.kind == "phase" and isinstance(event.data.get("text"), str):
            self._told = event.time
            self._console.print(Text(f"… {self.story.status}"))
        elif event.kind == "repair_progress" and event.time - self._told >= _PLAIN_PROGRESS_S:
            self._told = event.time
            self._console.print(Text(f"  {self.story.detail}"))

    def moving_line(self) -> Text:
        """What happens now, without the spinner."""
        story = self.story
        line = Text("stopping" if self._stopping else story.status, NAME)
        if story.since:
            line.append(f"  {duration(max(0.0, time.time() - story.since))}", DIM)
        if story.detail:
            line.append(f"  {story.detail}", DIM)
        if story.tokens:
            line.append(f"  {story.tokens:,} tokens", DIM)
        return line


class _Moving:
    """A renderable that is evaluated anew at each refresh."""

    def __init__(self, view: LiveView) -> None:
        from rich.spinner import Spinner

        self._view = view
        self._spinner = Spinner("dots", style="cyan")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        line = self._view.moving_line()
        line.truncate(max(10, options.max_width - 3), overflow="ellipsis")
        self._spinner.text = line
        yield self._spinner
        typed = self._view.typed_line()
        if typed is not None:
            typed.truncate(max(10, options.max_width - 3), overflow="ellipsis")
            yield Text.assemble("  ", typed)

"""The prompt as a budget: sections with priorities, kept under the model's window minus a reserve."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import define, evolve, field, frozen

from agent_ls.errors import AgentLsError
from agent_ls.events import EventLog
from agent_ls.models.protocol import Message
from agent_ls.workspace.files import Workspace

NOTES = ("AGENTS.md", "CLAUDE.md", "CONTRIBUTING.md", ".agent-ls/context.md")
"""Project notes that are read when they exist, in this order."""
KEEP_FULL = 6
"""So many of the newest observations are never shortened."""
SHORT = 600
"""Characters that are left of a shortened observation."""

CountTokens = Callable[[str], int]


@frozen
class Section:
    """A part of the first prompt. `priority` 0 is dropped last; `floor` sections are never dropped."""

    name: str
    text: str
    priority: int
    floor: bool = False


def cut(text: str, limit: int, how: str = "read it with the read tool for the rest") -> str:
    """Head and tail of `text` in at most about `limit` characters, with a note on what is missing."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    missing = len(text) - head - tail
    return f"{text[:head]}\n[... {missing:,} characters left out; {how} ...]\n{text[-tail:]}"


def fit(
    sections: Sequence[Section], budget: int, count: CountTokens, log: EventLog, window: int
) -> list[Section]:
    """The sections that fit into `budget` tokens, in their given order; what was left out is an event.

    A section that does not fit whole is cut to the room that is left if that is at least 200 tokens.
    """
    kept: dict[str, Section] = {}
    dropped = []
    left = budget
    for section in sorted(sections, key=lambda s: (not s.floor, s.priority)):
        tokens = count(section.text)
        if tokens <= left or (section.floor and left <= 0):
            kept[section.name] = section
            left -= tokens
        elif left >= 200:
            share = max(1, len(section.text) * left // (tokens + 1))
            kept[section.name] = evolve(section, text=cut(section.text, share))
            dropped.append({"section": section.name, "tokens": tokens - left, "reason": "cut to fit"})
            left = 0
        else:
            dropped.append({"section": section.name, "tokens": tokens, "reason": "no room"})
    order = [section.name for section in sections if section.name in kept]
    log.append(
        "context",
        kept=[{"section": name, "tokens": count(kept[name].text)} for name in order],
        dropped=dropped,
        window=window,
    )
    return [kept[name] for name in order]


def note_sections(workspace: Workspace, include: Sequence[str], log: EventLog) -> list[Section]:
    """The project's notes and the files a person named, as sections.

    Of a named file that can't be had a note is made.
    """
    sections = []
    for name in NOTES:
        text, _ = _read(workspace, name)
        if text and text.strip():
            sections.append(Section(f"notes: {name}", f'<notes file="{name}">\n{text.strip()}\n</notes>', 6))
    for name in include:
        text, problem = _read(workspace, name)
        if text is None:
            log.append("note", level="warning", text=f"not in the prompt: {name} ({problem})")
        else:
            sections.append(Section(f"file: {name}", f'<file path="{name}">\n{text}\n</file>', 3))
    return sections


def _read(workspace: Workspace, name: str) -> tuple[str | None, str]:
    """The text of a file, or None and why there is none."""
    try:
        if not workspace.resolve(name).is_file():
            return None, "no such file"
        return workspace.read(name).text, ""
    except AgentLsError as error:
        return None, error.message
    except OSError as error:
        return None, error.strerror or type(error).__name__


@define
class Conversation:
    """The messages of one model-driven session; `assemble` gives what fits.

    The system message and the first user message never change, so that a provider can cache them.
    """

    prefix: tuple[Message, ...]
    count: CountTokens
    window: int
    reserve: int
    log: EventLog
    history: list[Message] = field(factory=list)

    def tokens(self, messages: Sequence[Message]) -> int:
        return sum(
            self.count(m.content)
            + sum(self.count(str(dict(call.arguments))) + 12 for call in m.tool_calls)
            + 6
            for m in messages
        )

    def budget(self, extra: int) -> int:
        """Tokens for the messages: window minus reserve minus `extra` for the tool schemas."""
        return self.window - self.reserve - extra

    def overflow(self, extra: int) -> list[Message]:
        """The oldest turns (about half of the history) if even shortened observations do not fit."""
        if self.tokens([*self.prefix, *_shorten(self.history)]) <= self.budget(extra):
            return []
        old: list[Message] = []
        rest = list(self.history)
        while len(rest) > 2 and len(old) < len(self.history) // 2:
            count = _turn_length(rest)
            old, rest = old + rest[:count], rest[count:]
        return old

    def replace_oldest(self, old: Sequence[Message], summary: str) -> None:
        """Put `summary` in the place of the oldest turns `old`."""
        self.history[: len(old)] = [Message("user", summary)]
        self.log.append(
            "context",
            kept=[{"section": "summary of older turns", "tokens": self.count(summary)}],
            dropped=[
                {"section": f"{len(old)} old messages", "tokens": self.tokens(old), "reason": "summarised"}
            ],
            window=self.window,
        )

    def assemble(self, extra: int, *, shrink: float = 1.0) -> list[Message]:
        """Messages under the budget; `shrink` below 1 asks for a smaller prompt after "too long".

        Old observations are shortened first; whole old turns are left out only if that is not enough.
        """
        budget = int(self.budget(extra) * shrink)
        history = list(self.history)
        if self.tokens([*self.prefix, *history]) > budget:
            history = _shorten(history)
        dropped = 0
        while len(history) > 2 and self.tokens([*self.prefix, *history]) > budget:
            count = _turn_length(history)
            dropped += count
            history = history[count:]
        if dropped:
            self.log.append(
                "context",
                kept=[{"section": "history", "tokens": self.tokens(history)}],
                dropped=[{"section": f"{dropped} old messages", "tokens": 0, "reason": "no room"}],
                window=self.window,
            )
            history.insert(0, Message("user", f"[{dropped} older messages were left out of this prompt]"))
        return [*self.prefix, *history]


def _shorten(history: Sequence[Message]) -> list[Message]:
    """All but the newest observations cut to head and tail."""
    observations = [index for index, message in enumerate(history) if message.role == "tool"]
    old = set(observations[:-KEEP_FULL])
    return [
        evolve(message, content=cut(message.content, SHORT, "call the tool again to see it"))
        if index in old
        else message
        for index, message in enumerate(history)
    ]


def _turn_length(history: Sequence[Message]) -> int:
    """Messages of the oldest turn: an assistant message goes together with the answers to its calls."""
    length = 1
    while length < len(history) and history[length].role == "tool":
        length += 1
    return length

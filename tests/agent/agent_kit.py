"""A repository with a bug, and a model that follows a script."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_ls.cancel import CancelToken
from agent_ls.events import Event
from agent_ls.models.protocol import (
    Capabilities,
    Done,
    MalformedToolCall,
    ModelEvent,
    Request,
    TextDelta,
    ToolCall,
    ToolCallEvent,
    Usage,
    UsageEvent,
)

BUGGY = {
    "shop/__init__.py": "",
    "shop/cart.py": '''"""A cart."""


def total(prices, discount=0):
    """Sum of the prices after a discount in percent, never below zero."""
    amount = sum(prices)
    return amount - discount


def count(prices):
    return len(prices)
''',
    "tests/test_cart.py": """from shop.cart import count, total


def test_plain():
    assert total([1, 2]) == 3


def test_discount():
    assert total([100, 100], 10) == 180


def test_big_discount():
    assert total([10], 100) == 0


def test_count():
    assert count([1, 2, 3]) == 3
""",
    "pyproject.toml": "[tool.pytest.ini_options]\npythonpath = ['.']\n",
}
BAD_LINE = "    return amount - discount"
GOOD_LINE = "    return amount - amount * discount / 100"
FAILING = ("tests/test_cart.py::test_discount", "tests/test_cart.py::test_big_discount")


def git(repo: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=repo, check=True, capture_output=True, text=True)
    return done.stdout


def make_repo(path: Path, files: Mapping[str, str] = BUGGY) -> Path:
    """A repository with one commit of `files` at `path`."""
    for name, content in files.items():
        target = path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
    git(path, "init", "-q", "-b", "main")
    git(path, "add", "-A")
    git(path, "commit", "-qm", "start")
    return path


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(f"call-{name}", name, arguments)


def replace(old: str, new: str, path: str = "shop/cart.py") -> ToolCall:
    return call("edit", edits=[{"path": path, "old": old, "new": new}])


Step = str | ToolCall | MalformedToolCall | Sequence[ToolCall] | Exception | Callable[[], None]


class Scripted:
    """Plays a script: each step is one answer (text, calls, a malformed call) or an error to raise.

    After the end of the script the last step is repeated.
    """

    name = "scripted"

    def __init__(self, *steps: Step, window: int = 100_000, tools: bool = True, local: bool = False) -> None:
        self.capabilities = Capabilities(window=window, tools=tools, local=local)
        self.steps = steps
        self.requests: list[Request] = []

    def stream(self, request: Request, cancel: CancelToken) -> Iterator[ModelEvent]:
        cancel.raise_if_cancelled()
        step = self.steps[min(len(self.requests), len(self.steps) - 1)]
        self.requests.append(request)
        if isinstance(step, Exception):
            raise step
        if callable(step):
            step()
            cancel.raise_if_cancelled()
            step = "nothing"
        stop: Any = "end"
        if isinstance(step, str):
            yield TextDelta(step)
        elif isinstance(step, MalformedToolCall):
            stop = "max_tokens"
            yield step
        else:
            stop = "tool_calls"
            for number, one in enumerate([step] if isinstance(step, ToolCall) else step):
                yield ToolCallEvent(ToolCall(f"c{len(self.requests)}-{number}", one.name, one.arguments))
        yield UsageEvent(Usage(100, 20, 50, 0.001))
        yield Done(stop)

    def count_tokens(self, text: str) -> int:
        return len(text) // 4 + 1

    def close(self) -> None:
        pass

    def told(self) -> str:
        """All that the model saw in its last request."""
        return "\n".join(message.content for message in self.requests[-1].messages)


class Recorder:
    """Collects events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: str) -> list[Mapping[str, Any]]:
        return [event.data for event in self.events if event.kind == kind]

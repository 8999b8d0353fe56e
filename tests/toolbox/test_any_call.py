"""Whatever a model sends, a call is answered; nothing is raised and nothing outside is touched."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_ls.masking import SecretMask
from agent_ls.models.protocol import ToolCall
from agent_ls.toolbox.base import ToolOutput
from agent_ls.toolbox.contracts import shipped_contracts
from agent_ls.toolbox.registry import load_tools
from agent_ls.workspace.files import Workspace

words = st.sampled_from(
    [
        "a.py",
        "b/c.txt",
        "../a.py",
        "/etc/passwd",
        ".git/config",
        "",
        "x",
        "\n",
        "x = 1",
        "*.py",
        "!",
        "(",
        "a\0",
        "\ud800",
    ]
) | st.text(max_size=8)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


def fitting(schema: Any) -> st.SearchStrategy[Any]:
    """Values that mostly fit the schema, so that the tools themselves are reached."""
    match schema["type"]:
        case "object":
            required = set(schema.get("required", ()))
            fields = {name: fitting(inner) for name, inner in schema["properties"].items()}
            return st.fixed_dictionaries(
                {name: value for name, value in fields.items() if name in required},
                optional={name: value for name, value in fields.items() if name not in required},
            )
        case "array":
            return st.lists(fitting(schema["items"]), max_size=3)
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(-1, 9)
        case _:
            return st.sampled_from(schema["enum"]) if "enum" in schema else words


def call_for(name: str) -> st.SearchStrategy[tuple[str, Any]]:
    arguments = fitting(shipped_contracts()[name].parameters) | st.dictionaries(words, anything, max_size=3)
    return st.tuples(st.just(name), arguments)


class Session:
    """The parts of a session that need no tests and no person."""

    def __init__(self, root: Path) -> None:
        self.workspace = Workspace(root)
        self.mask = SecretMask()

    def withheld(self, rel: str) -> str | None:
        return "git ignores it" if rel == "a/b" else None

    def denied(self, tool: str, reason: str) -> None: ...

    def protected(self, rel: str) -> str | None:
        return "it is a test" if rel == "b/c.txt" else None

    def seen(self, rel: str) -> bool:
        return True

    def mark_seen(self, rel: str) -> None: ...

    def run_tests(self, ids: Any) -> ToolOutput:
        return ToolOutput("ran")

    def locate(self) -> ToolOutput:
        return ToolOutput("there")

    def ask_human(self, question: str) -> str | None:
        return None

    def finish(self, outcome: str, summary: str, evidence: str, claims: object = ()) -> ToolOutput:
        return ToolOutput("finished", finished=True)

    def after_edit(self, result: Any) -> None: ...


@settings(max_examples=80, deadline=None)
@given(st.one_of([call_for(name) for name in sorted(shipped_contracts())] + [st.tuples(words, anything)]))
def test_any_call_is_answered(call: tuple[str, Any]) -> None:
    name, arguments = call
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "repo"
        (root / "b").mkdir(parents=True)
        (root / "a.py").write_text("x = 1\n")
        (root / "b/c.txt").write_text("x\n")
        output = load_tools("fix", None).run(Session(root), ToolCall("1", name, arguments))
        assert output.text
        assert [item.name for item in Path(folder).iterdir()] == ["repo"]
        assert (root / "b/c.txt").read_text() == "x\n"
        if output.is_error:
            assert str(root) not in output.text

"""Every tool at every level: allowed or a recorded refusal, and never more than the level says."""

from __future__ import annotations

from typing import Any

import pytest

from agent_ls.models.protocol import ToolCall
from agent_ls.settings import Permission
from agent_ls.toolbox.base import ToolOutput
from agent_ls.toolbox.contracts import PERMISSIONS, shipped_contracts
from agent_ls.toolbox.registry import load_tools

LEVELS: tuple[Permission, ...] = ("read", "test", "refactor", "fix")
CALLS: dict[str, dict[str, Any]] = {
    "read": {"path": "notes.txt"},
    "search": {"query": "area"},
    "symbols": {"name": "Shape"},
    "refs": {"name": "Shape"},
    "finish": {"outcome": "fixed", "summary": "s"},
    "ask_human": {"question": "which?"},
    "run_tests": {"ids": ["tests/test_a.py::test_x"]},
    "locate": {},
    "edit": {"edits": [{"path": "new.py", "create": "x = 1\n"}]},
}
FIRST = {"run_tests": "test", "locate": "test", "edit": "refactor"}
"""The lowest level of each tool; all others need `read` only."""


def call(session: Any, permission: Permission, name: str, arguments: dict[str, Any]) -> ToolOutput:
    return load_tools(permission, None).run(session, ToolCall("1", name, arguments))


def test_the_table_holds_every_tool() -> None:
    assert set(CALLS) == set(shipped_contracts())
    assert PERMISSIONS == LEVELS


@pytest.mark.parametrize("permission", LEVELS)
@pytest.mark.parametrize("name", CALLS)
def test_every_tool_at_every_level(session: Any, name: str, permission: Permission) -> None:
    before = sorted(path.name for path in session.workspace.root.rglob("*.py"))
    output = call(session, permission, name, CALLS[name])
    allowed = LEVELS.index(permission) >= LEVELS.index(FIRST.get(name, "read"))  # type: ignore[arg-type]
    assert output.is_error is not allowed, output.text
    assert (name in {schema.name for schema in load_tools(permission, None).schemas()}) is allowed
    if allowed:
        assert session.refused == []
        return
    assert "needs the permission" in output.text
    assert [tool for tool, _ in session.refused] == [name]
    assert session.asked == []
    assert sorted(path.name for path in session.workspace.root.rglob("*.py")) == before


@pytest.mark.parametrize("name", ["bash", "shell", "run", "exec", "write_file", "../edit", "edit "])
def test_no_level_has_another_tool(session: Any, name: str) -> None:
    output = call(session, "fix", name, {"command": "touch x"})
    assert output.is_error
    assert "there is no tool" in output.text


@pytest.mark.parametrize(
    "arguments",
    [
        {"ids": ["--collect-only"], "command": "sh"},
        {"ids": "tests"},
        {"ids": [["-p", "evil"]]},
        {"argv": ["sh"]},
    ],
)
def test_arguments_can_not_name_a_program(session: Any, arguments: dict[str, Any]) -> None:
    assert call(session, "fix", "run_tests", arguments).is_error
    assert session.asked == []


def test_rules_and_ignored_files_are_recorded_refusals(session: Any) -> None:
    session.locked["src/shape.py"] = "existing tests may not be changed"
    session.hidden["notes.txt"] = "git ignores it"
    edit = {"edits": [{"path": "src/shape.py", "old": "class Shape:", "new": "class Other:"}]}
    assert "may not be changed" in call(session, "fix", "edit", edit).text
    shown = call(session, "fix", "read", {"path": "notes.txt"})
    assert (shown.is_error, shown.text) == (True, "notes.txt is not shown: git ignores it")
    assert [tool for tool, _ in session.refused] == ["edit", "read"]
    assert "class Shape" in (session.workspace.root / "src/shape.py").read_text()


SECRET = "kJ8sQz2" + "LmP9vXw4" + "RtY7bNc3Hd"


def test_an_edit_over_a_placeholder_writes_the_secret_back(session: Any) -> None:
    path = session.workspace.root / "settings.py"
    path.write_text(f'DEBUG = True\nAPI_KEY = b"{SECRET}"\n')
    session.mask.learn(path.read_text())
    shown = call(session, "fix", "read", {"path": "settings.py"}).text
    assert SECRET not in shown
    place = session.mask.hide(SECRET)
    assert f'API_KEY = b"{place}"' in shown
    found = call(session, "fix", "search", {"query": place})
    assert "settings.py" in found.text
    assert SECRET not in found.text
    edit = {
        "edits": [
            {
                "path": "settings.py",
                "old": f'DEBUG = True\nAPI_KEY = b"{place}"',
                "new": f'DEBUG = False\nAPI_KEY = b"{place}"',
            }
        ]
    }
    done = call(session, "fix", "edit", edit)
    assert not done.is_error, done.text
    assert SECRET not in done.text
    assert path.read_text() == f'DEBUG = False\nAPI_KEY = b"{SECRET}"\n'
    head = "--- a/settings.py\n+++ b/settings.py\n@@ -1,2 +1,2 @@\n"
    diff = f'{head}-DEBUG = False\n+DEBUG = 1\n API_KEY = b"{place}"\n'
    assert not call(session, "fix", "edit", {"diff": diff}).is_error
    assert path.read_text() == f'DEBUG = 1\nAPI_KEY = b"{SECRET}"\n'


def test_a_secret_of_the_output_is_not_written_into_a_file(session: Any) -> None:
    place = session.mask.hide(f"AUTH_TOKEN={SECRET}").partition("=")[2]
    before = (session.workspace.root / "src/shape.py").read_text()
    edit = {
        "edits": [{"path": "src/shape.py", "old": "class Shape:", "new": f"KEY = '{place}'\nclass Shape:"}]
    }
    output = call(session, "fix", "edit", edit)
    assert output.is_error
    assert "is in no file of the repository" in output.text
    assert (session.workspace.root / "src/shape.py").read_text() == before

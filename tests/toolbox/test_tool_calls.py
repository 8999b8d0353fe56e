"""Each tool, called as a model calls it."""

from __future__ import annotations

from typing import Any

import pytest

from agent_ls.errors import Cancelled, EnvBroken
from agent_ls.models.protocol import ToolCall
from agent_ls.settings import Permission
from agent_ls.toolbox.base import ToolOutput
from agent_ls.toolbox.registry import cap, load_tools
from agent_ls.workspace.files import Workspace


def call(session: Any, name: str, permission: Permission = "fix", /, **arguments: Any) -> ToolOutput:
    return load_tools(permission, None).run(session, ToolCall("1", name, arguments))


def ok(session: Any, name: str, /, **arguments: Any) -> str:
    output = call(session, name, **arguments)
    assert not output.is_error, output.text
    return output.text


def refused(session: Any, name: str, /, **arguments: Any) -> str:
    output = call(session, name, **arguments)
    assert output.is_error, output.text
    return output.text


@pytest.mark.parametrize(
    ("permission", "names"),
    [
        ("read", {"read", "search", "symbols", "refs", "finish", "ask_human"}),
        ("test", {"read", "search", "symbols", "refs", "finish", "ask_human", "run_tests", "locate"}),
        ("fix", {"read", "search", "symbols", "refs", "finish", "ask_human", "run_tests", "locate", "edit"}),
    ],
)
def test_the_permission_decides_which_tools_there_are(permission: Permission, names: set[str]) -> None:
    schemas = load_tools(permission, None).schemas()
    assert {schema.name for schema in schemas} == names
    assert all(schema.description and schema.parameters["type"] == "object" for schema in schemas)


def test_a_tool_above_the_permission_is_refused_and_does_nothing(session: Any) -> None:
    output = call(session, "edit", "test", edits=[{"path": "new.py", "create": "x = 1\n"}])
    assert output.is_error
    assert "needs the permission 'refactor'; this session has 'test'" in output.text
    assert session.workspace.list() == ["notes.txt", "src/shape.py"]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("reed", {}, "did you mean read?"),
        ("bash", {"command": "ls"}, "there is no tool 'bash'; the tools are"),
        ("read", {}, "path is missing"),
        ("read", {"path": 3}, "path must be of type string, not integer"),
        ("read", {"path": None}, "path must be of type string, not null"),
        ("read", {"path": "a", "start": "3"}, "start must be of type integer, not string"),
        ("read", {"path": "a", "start": True}, "start must be of type integer, not boolean"),
        ("read", {"path": "a", "start": 0}, "start must be at least 1"),
        ("read", {"path": "a", "begin": 1}, "begin is unknown; known are path, start, end"),
        ("read", {"pth": "a"}, "path is missing; pth is unknown; did you mean path?"),
        ("read", {"path": "a\0b"}, "characters that are no text"),
        ("read", {"path": "\ud800"}, "characters that are no text"),
        ("read", {"path": ""}, "path must not be empty"),
        ("finish", {"outcome": "done", "summary": "s", "evidence": "e"}, "outcome must be one of 'fixed'"),
        ("edit", {"edits": []}, "edits must have at least 1 items"),
        ("edit", {"edits": {"path": "a"}}, "edits must be of type array, not object"),
        ("edit", {"edits": [{"path": "a", "old": 1}]}, "edits[0].old must be of type string, not integer"),
        ("edit", {"edits": [{"old": "a"}]}, "edits[0].path is missing"),
        ("edit", {}, "give either edits or a diff"),
        ("edit", {"edits": [{"path": "a.py"}]}, "edit 1 (a.py) says nothing to do"),
        ("edit", {"edits": [{"path": "a.py", "old": "x"}]}, "needs both old and new"),
        ("edit", {"edits": [{"path": "a.py", "create": "x", "delete": True}]}, "create and delete at once"),
        ("search", {"query": "(", "regex": True}, "not a valid regular expression"),
        ("search", {"query": "a\nb"}, "several lines"),
        ("read", {"path": "../x"}, '".."'),
        ("read", {"path": "none.py"}, "there is no file none.py"),
        ("read", {"path": "src/shape.py", "start": 99}, "only 7 lines"),
        ("read", {"path": "src/shape.py", "start": 3, "end": 2}, "before start"),
        ("symbols", {}, "give a name"),
    ],
)
def test_bad_calls_are_answered(session: Any, name: str, arguments: dict[str, Any], message: str) -> None:
    output = load_tools("fix", None).run(session, ToolCall("1", name, arguments))
    assert output.is_error
    assert message in output.text
    assert session.asked == []


def test_null_counts_as_not_given_for_what_is_optional(session: Any) -> None:
    assert "area" in ok(session, "read", path="src/shape.py", start=None, end=None)


def test_a_system_error_tells_no_path_of_the_machine(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_self: object, _rel: str) -> None:
        raise PermissionError(13, "denied", "/secret/place")

    monkeypatch.setattr(Workspace, "read", denied)
    assert refused(session, "read", path="notes.txt") == "read failed: denied"


@pytest.mark.parametrize("error", [Cancelled(), EnvBroken("no pytest")])
def test_errors_that_end_a_session_pass_through(
    session: Any, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raises(_self: object, _ids: object) -> ToolOutput:
        raise error

    monkeypatch.setattr(type(session), "run_tests", raises)
    with pytest.raises(type(error)):
        call(session, "run_tests")


def test_read(session: Any) -> None:
    assert ok(session, "read", path="./src//shape.py", start=2, end=3) == (
        "src/shape.py (7 lines)\n2|     def area(self):\n3|         return self.a * self.b"
    )
    assert session.shown == {"src/shape.py"}
    assert ok(session, "read", path=".") == ("./ is a folder with 2 files:\n  notes.txt\n  src/ (1 files)")
    assert ok(session, "read", path="src") == "src/ is a folder with 1 files:\n  shape.py"


def test_read_tells_what_is_special_about_a_file(session: Any) -> None:
    (session.workspace.root / "w.txt").write_bytes("\ufeffa\r\nb".encode("utf-16-le"))
    assert ok(session, "read", path="w.txt").startswith(
        "w.txt (2 lines, utf-16-le with BOM, CRLF, no newline at its end)\n1| a\n2| b"
    )
    (session.workspace.root / "empty.txt").touch()
    assert ok(session, "read", path="empty.txt") == "empty.txt is empty"


def test_read_shows_a_long_file_as_its_outline(session: Any) -> None:
    body = "".join(f"def f{n}(x):\n    return x + {n}\n\n\n" for n in range(200))
    (session.workspace.root / "long.py").write_text(body)
    text = ok(session, "read", path="long.py")
    assert text.startswith("long.py (800 lines); its outline")
    assert "\n797-798: def f199(x)" in text
    assert "return x" not in text
    assert "return x + 199" in ok(session, "read", path="long.py", start=790)
    (session.workspace.root / "long.txt").write_text("line\n" * 1000)
    assert "its first 60 lines" in ok(session, "read", path="long.txt")
    (session.workspace.root / "wide.txt").write_text("x" * 3000 + "\n")
    assert "2500 more characters" in ok(session, "read", path="wide.txt")


def test_output_is_capped_with_head_tail_and_the_way_to_more(session: Any) -> None:
    (session.workspace.root / "big.txt").write_text("".join(f"line {n}\n" for n in range(5000)))
    text = ok(session, "read", path="big.txt", start=1)
    assert len(text) < 21_000
    assert "1| line 0" in text and text.endswith("5000| line 4999")
    assert "left out here. Read the missing lines with start and end.]" in text


def test_cap_counts_what_it_leaves_out() -> None:
    text = "\n".join(f"{n:03}" for n in range(500))
    short = cap(text, 600, "More.")
    head, note, tail = short.partition("\n[… ")
    left = int(tail.split(" lines")[0])
    rest = tail.split("]\n", 1)[1]
    assert len(head.split("\n")) + left + len(rest.split("\n")) == 500
    assert note and "More." in tail


def test_search(session: Any) -> None:
    assert ok(session, "search", query="area") == (
        "src/shape.py\n  2: def area(self):  [Shape.area]\n"
        "  7: return sum(s.area() for s in shapes)  [total]\n"
        "notes.txt\n  1: the area of a Shape"
    )
    assert "notes.txt" not in ok(session, "search", query="area", globs=["*.py"])
    assert "no line contains 'xyz'" in ok(session, "search", query="xyz")


def test_search_and_symbols_see_what_has_just_changed(session: Any) -> None:
    root = session.workspace.root
    assert "no line contains" in ok(session, "search", query="perimeter")
    (root / "src" / "new.py").write_text("def perimeter():\n    pass\n")
    assert "1: def perimeter():  [perimeter]" in ok(session, "search", query="perimeter")
    assert ok(session, "symbols", name="perimeter") == "src/new.py:1-2: function perimeter: def perimeter()"
    (root / "src" / "new.py").unlink()
    assert "no line contains" in ok(session, "search", query="perimeter")


def test_without_an_index_the_files_are_read(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("agent_ls.workspace.index.index.open_index", refuse)
    found = ok(session, "search", query="area")
    assert "src/shape.py\n  2: def area(self):  [Shape.area]" in found
    assert found.endswith("[the index can't be used (Permission denied), so every file was read]")
    assert "method Shape.area" in ok(session, "symbols", name="Shape.area")


def test_symbols(session: Any) -> None:
    assert ok(session, "symbols", name="Shape.area") == (
        "src/shape.py:2-3: method Shape.area: def area(self)"
    )
    assert ok(session, "symbols", path="src/shape.py").splitlines() == [
        "1-3: class Shape", "2-3:   def area(self)", "6-7: def total(shapes)",
    ]  # fmt: skip
    assert "nothing called 'area'" in ok(session, "symbols", name="area", path="docs")
    assert ok(session, "symbols", name="totl").splitlines() == [
        "nothing called 'totl' is defined; similar names are:",
        "src/shape.py:6-7: function total: def total(shapes)",
    ]


def test_edit(session: Any) -> None:
    text = ok(session, "edit", edits=[{"path": "src/shape.py", "old": "self.a * self.b", "new": "self.w"}])
    assert "-        return self.a * self.b\n+        return self.w\n" in text
    assert session.asked == [("src/shape.py",)]
    assert session.shown == {"src/shape.py"}


def test_edit_by_diff(session: Any) -> None:
    diff = "--- a/notes.txt\n+++ b/notes.txt\n@@ -1 +1 @@\n-the area of a Shape\n+the perimeter\n"
    assert "+the perimeter" in ok(session, "edit", diff=diff)
    assert (session.workspace.root / "notes.txt").read_text() == "the perimeter\n"


def test_a_protected_file_stays_as_it_is(session: Any) -> None:
    session.locked = {"notes.txt": "it holds the tests"}
    for edit in (
        {"path": "notes.txt", "old": "area", "new": "x"},
        {"path": "./notes.txt", "delete": True},
        {"path": "src/shape.py", "move_to": "notes.txt"},
        {"path": "notes.txt", "move_to": "other.txt"},
    ):
        text = refused(session, "edit", edits=[{"path": "new.py", "create": ""}, edit])
        assert "notes.txt may not be changed in this session: it holds the tests" in text
    assert session.workspace.list() == ["notes.txt", "src/shape.py"]


def test_an_unread_file_is_not_deleted(session: Any) -> None:
    assert "deleted unread" in refused(session, "edit", edits=[{"path": "notes.txt", "delete": True}])
    ok(session, "read", path="notes.txt")
    ok(session, "edit", edits=[{"path": "notes.txt", "delete": True}])
    assert session.workspace.list() == ["src/shape.py"]


def test_a_miss_in_an_unread_file_says_so(session: Any) -> None:
    edits = [{"path": "src/shape.py", "old": "return self.width", "new": "return 1"}]
    assert "You have not read src/shape.py" in refused(session, "edit", edits=edits)


def test_the_tools_that_the_session_carries_out(session: Any) -> None:
    assert ok(session, "run_tests", ids=["a::b"]) == ok(session, "run_tests") == "1 passed"
    assert ok(session, "locate") == "a.py:2 area"
    assert "Nobody answered" in ok(session, "ask_human", question="which?")
    session.answer = "the first"
    assert ok(session, "ask_human", question="which?") == "The answer: the first"
    assert call(session, "finish", outcome="fixed", summary="s", evidence="e").finished
    assert session.asked == [
        ("run_tests", ("a::b",)), ("run_tests", ()), "locate", "which?", "which?", ("fixed", "s", "e"),
    ]  # fmt: skip

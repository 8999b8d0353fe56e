"""refs: what a model is told of a name."""

from __future__ import annotations

from typing import Any

import pytest

from agent_ls.models.protocol import ToolCall
from agent_ls.toolbox.registry import load_tools
from agent_ls.workspace.index.executed import remember

FILES = {
    "src/shape.py": (
        "class Shape:\n    def area(self):\n        return side(self) * 2\n\n\n"
        "def side(shape):\n    return len(shape)\n"
    ),
    "src/total.py": (
        "from src.shape import Shape\n\n\ndef total(shapes):\n    return sum(s.area() for s in shapes)\n"
    ),
    "tests/test_total.py": "from src.total import total\n\n\ndef test_total():\n    assert total([]) == 0\n",
    "tests/test_far.py": "import src.total\n\n\ndef test_far():\n    run_all()\n",
}


@pytest.fixture
def shapes(session: Any) -> Any:
    for name, text in FILES.items():
        (session.workspace.root / name).parent.mkdir(exist_ok=True)
        (session.workspace.root / name).write_text(text)
    return session


def ask(session: Any, **arguments: Any) -> list[str]:
    output = load_tools("read", None).run(session, ToolCall("1", "refs", arguments))
    assert not output.is_error, output.text
    return output.text.splitlines()


def test_everything_of_a_name(shapes: Any) -> None:
    assert ask(shapes, name="Shape.area") == [
        "defined:",
        "  src/shape.py:2-3: method Shape.area: def area(self)",
        "used in 1 files (1 call):",
        "  src/total.py",
        "    5: return sum(s.area() for s in shapes)  [total]",
        "Shape.area (src/shape.py:2) calls:",
        "  side (src/shape.py:6)",
        "tests:",
        "  tests/test_total.py::test_total  (uses total, which uses Shape.area)",
    ]


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("uses", "    5: return sum(s.area() for s in shapes)  [total]"),
        ("callers", "  src/total.py: function total, in line 5"),
        ("callees", "  side (src/shape.py:6)"),
        ("tests", "  tests/test_total.py::test_total  (uses total, which uses Shape.area)"),
    ],
)
def test_one_kind(shapes: Any, what: str, expected: str) -> None:
    lines = ask(shapes, name="Shape.area", what=what)
    assert lines[:2] == ["defined:", "  src/shape.py:2-3: method Shape.area: def area(self)"]
    assert expected in lines[2:]
    assert len(lines) <= 5


def test_a_name_that_is_not_there(shapes: Any) -> None:
    assert ask(shapes, name="shaep") == [
        "nothing called 'shaep' is defined; similar names are:",
        "  src/shape.py:1-3: class Shape: class Shape",
    ]
    assert ask(shapes, name="zzz") == ["nothing called 'zzz' is defined here"]
    # Of other packages, uses are still of interest.
    assert "    5: return sum(s.area() for s in shapes)  [total]" in ask(shapes, name="sum", what="uses")


def test_globs(shapes: Any) -> None:
    assert "used: nowhere" in ask(shapes, name="area", what="uses", globs=["docs/**"])


def test_it_stays_short(shapes: Any) -> None:
    text = "".join(f"def caller{n}(it):\n    return it.area()\n" for n in range(300))
    (shapes.workspace.root / "src" / "many.py").write_text(text)
    lines = ask(shapes, name="area")
    assert "used in 2 files (301 call):" in lines
    assert "  … and 289 more" in lines
    assert len(lines) < 30
    assert len("\n".join(ask(shapes, name="area", what="uses"))) < 6_500


def test_tests_that_ran_it(shapes: Any) -> None:
    root = shapes.workspace.root
    test = "tests/test_far.py::test_far"
    remember(root, root, {test: {"src/shape.py": {3}, "tests/test_far.py": {5}}})
    told = f"  {test}  (ran Shape.area when it was last traced)"
    assert told in ask(shapes, name="Shape.area")
    assert told not in ask(shapes, name="total")  # it did not run that
    source, other = root / "src" / "shape.py", root / "tests" / "test_far.py"
    for changed in (source, other):
        before = changed.read_text()
        changed.write_text(before + "\n# changed\n")
        assert told not in ask(shapes, name="Shape.area")
        changed.write_text(before)
        assert told in ask(shapes, name="Shape.area")

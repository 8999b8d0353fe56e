"""Definitions by name, uses, callers and callees, and tests, over small repositories in memory."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_view import MemoryView

from agent_ls.errors import ToolRefused
from agent_ls.workspace.index.references import callees, callers, references, references_to
from agent_ls.workspace.index.related_tests import related_tests
from agent_ls.workspace.index.similar import find_definitions
from agent_ls.workspace.index.tags import tags

FILES = {
    "shapes/__init__.py": b"from .shape import Shape\n",
    "shapes/shape.py": b'''from shapes.units import scale, to_text

AREA = 1


class Shape:
    """A shape."""

    def area(self):
        return scale(self.width()) * AREA

    def width(self):
        return 1


class Circle(Shape):
    def area(self):
        return print(to_text(super().area()))
''',
    "shapes/units.py": (
        b"def scale(x):\n"
        b"    return x\n\n\n"
        b"def to_text(x):\n"
        b"    return str(x)\n\n\n"
        b"def get_deferred_fields():\n"
        b"    pass\n"
    ),
    "shapes/other.py": (
        b"def scale(x):\n    return -x\n\n\nclass Width:\n    def width(self):\n        pass\n"
    ),
    "web/app.js": (b"function area(x) { return scale(x); }\nexport const total = area(2) + area(3);\n"),
    "shapes/units_pb2.py": b"def scale(x):\n    pass\n",
    "tests/conftest.py": (
        b"import pytest\nfrom shapes import Shape\n\n\n@pytest.fixture\ndef shape():\n    return Shape()\n"
    ),
    "tests/test_shape.py": b"""from shapes.shape import Shape
from tests.helpers import build


def test_direct():
    assert Shape().area() == 1


def test_fixture(shape):
    assert shape.width() == 1


def test_helper():
    assert build()


def test_none():
    assert True


class TestMore:
    def setup_method(self):
        self.shape = Shape()

    def test_in_class(self):
        assert self.shape
""",
    "tests/helpers.py": b"from shapes import Shape\n\n\ndef build():\n    return Shape()\n",
    "tests/test_other.py": (
        b"from shapes.units import to_text\n\n\ndef test_build(build):\n    assert to_text(1)\n"
    ),
    "README.md": b"Shape().area() is a call.\n",
}
VIEW = MemoryView(FILES, generated=["shapes/units_pb2.py"])


@pytest.mark.parametrize(
    ("name", "options", "how", "found"),
    [
        ("Shape", {}, "exact", ["shapes/shape.py:6"]),
        ("area", {}, "exact", ["web/app.js:1", "shapes/shape.py:9", "shapes/shape.py:17"]),
        ("Circle.area", {}, "exact", ["shapes/shape.py:17"]),
        ("Circle::area()", {}, "exact", ["shapes/shape.py:17"]),
        ("shape.Circle.area", {}, "exact", ["shapes/shape.py:17"]),
        ("units.scale", {}, "exact", ["shapes/units.py:1"]),
        ("scale", {}, "exact", ["shapes/other.py:1", "shapes/units.py:1", "shapes/units_pb2.py:1"]),
        ("shape", {}, "exact", ["tests/conftest.py:6"]),
        ("shape", {"kinds": ["class"]}, "case", ["shapes/shape.py:6"]),
        ("CIRCLE.AREA", {}, "case", ["shapes/shape.py:17"]),
        ("area", {"globs": ["*.js"]}, "exact", ["web/app.js:1"]),
        ("area", {"kinds": ["class"]}, "none", []),
        ("eferred", {}, "similar", ["shapes/units.py:9"]),
        ("gdf", {}, "similar", ["shapes/units.py:9"]),
        ("Cirlce", {}, "similar", ["shapes/shape.py:16"]),
        ("Square.to_text", {}, "similar", ["shapes/units.py:5"]),
        ("xyzzy", {}, "none", []),
    ],
)
def test_definitions(name: str, options: dict[str, Any], how: str, found: list[str]) -> None:
    matches = find_definitions(VIEW, name, **options)
    assert matches.how == how
    assert [f"{it.path}:{it.definition.name_line}" for it in matches.found] == found


def test_better_parts_of_names_come_first() -> None:
    view = MemoryView(
        {"a.py": b"def unset(): pass\ndef set_x(): pass\ndef sets(): pass\ndef do_set(): pass\nOnSet = 1\n"}
    )
    names = [it.definition.name for it in find_definitions(view, "set").found]
    assert names == ["sets", "set_x", "OnSet", "do_set", "unset"]


def test_a_limit_is_told() -> None:
    matches = find_definitions(VIEW, "area", limit=2)
    assert (len(matches.found), matches.complete) == (2, False)
    uses = references(VIEW, "area", limit=1)
    assert (len(uses.found), uses.complete) == (1, False)
    assert "first 1" in uses.note


@pytest.mark.parametrize("name", ["", " . ", "Shape."])
def test_a_name_that_is_none(name: str) -> None:
    if name == "Shape.":
        assert find_definitions(VIEW, name).how == "exact"
        return
    for ask in (find_definitions, references, callers, callees, related_tests):
        with pytest.raises(ToolRefused, match="empty"):
            ask(VIEW, name)


@pytest.mark.parametrize(
    ("name", "options", "found"),
    [
        (
            "area",
            {},
            [
                "shapes/shape.py:18 call Circle.area",
                "web/app.js:2 call None",
                "web/app.js:2 call None",
                "tests/test_shape.py:6 call test_direct",
            ],
        ),
        ("area", {"globs": ["shapes"]}, ["shapes/shape.py:18 call Circle.area"]),
        ("Shape", {"kinds": ["type"]}, ["shapes/shape.py:16 type Circle"]),
        ("Shape", {"kinds": ["import"], "globs": ["shapes"]}, ["shapes/__init__.py:1 import None"]),
        ("AREA", {}, ["shapes/shape.py:10 read Shape.area"]),
        ("xyzzy", {}, []),
    ],
)
def test_references(name: str, options: dict[str, Any], found: list[str]) -> None:
    uses = references(VIEW, name, **options).found
    assert [f"{it.path}:{it.reference.line} {it.reference.kind} {it.inside}" for it in uses] == found


def test_a_use_carries_its_line() -> None:
    (use,) = references(VIEW, "AREA").found
    assert use.text == "        return scale(self.width()) * AREA"
    assert use.text[use.reference.column - 1 : use.reference.end_column - 1] == "AREA"


def test_files_that_know_the_container_come_first() -> None:
    view = MemoryView({"a.py": b"x.area()\n", "b.py": b"Shape().area()\n"})
    assert [use.path for use in references(view, "Shape.area").found] == ["b.py", "a.py"]
    assert [use.path for use in references(view, "area").found] == ["a.py", "b.py"]


def test_callers() -> None:
    found, uses = callers(VIEW, "Shape")
    assert uses.complete
    shown = [(it.path, it.definition and it.definition.qualified, len(it.calls)) for it in found]
    assert shown == [
        ("tests/conftest.py", "shape", 1),
        ("tests/helpers.py", "build", 1),
        ("tests/test_shape.py", "test_direct", 1),
        ("tests/test_shape.py", "TestMore.setup_method", 1),
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Shape.area", {"scale": ["shapes/units.py:1"], "width": ["shapes/shape.py:12"]}),
        (
            "Circle.area",
            {"print": [], "to_text": ["shapes/units.py:5"], "super": [], "area": ["shapes/shape.py:17"]},
        ),
        ("xyzzy", None),
    ],
)
def test_callees(name: str, expected: dict[str, list[str]] | None) -> None:
    found = callees(VIEW, name)
    if expected is None:
        assert found == []
        return
    ((_definition, called),) = found
    shown = {it.name: [f"{d.path}:{d.definition.name_line}" for d in it.definitions] for it in called}
    assert shown == expected


def test_tests_of_a_symbol() -> None:
    found = related_tests(VIEW, "Shape")
    assert [(test.id, test.distance, test.reason) for test in found] == [
        ("tests/test_shape.py::test_direct", 0, "uses Shape"),
        ("tests/test_shape.py::TestMore", 0, "uses Shape (in setup_method)"),
        ("tests/test_shape.py::test_fixture", 1, "through shape, which uses Shape"),
        ("tests/test_shape.py::test_helper", 1, "through build, which uses Shape"),
    ]


def test_tests_through_a_caller() -> None:
    found = related_tests(VIEW, "units.scale")
    assert [(test.id, test.distance, test.reason) for test in found] == [
        ("tests/test_shape.py::test_direct", 2, "uses area, which uses units.scale")
    ]


def test_tests_that_were_seen_to_run_it() -> None:
    executed = {
        "tests/test_other.py::test_build": {"shapes/units.py": {1, 2}},
        "tests/test_shape.py::test_none": {"shapes/units.py": {1}},
    }
    found = related_tests(VIEW, "units.scale", executed=executed)
    assert [(test.id, test.line, test.distance) for test in found] == [
        ("tests/test_other.py::test_build", 4, 0),
        ("tests/test_shape.py::test_direct", 5, 2),
    ]


CODE = st.lists(
    st.sampled_from(
        [
            *(
                "x",
                "x()",
                "y.x",
                "x.y()",
                "def x(a): pass",
                "def y(x): return x",
                "import x",
                "from y import x",
            ),
            *("x = 1", "class x(x): x = x()", "xx = x[0]", "é = 'x'", "# x", "@x\ndef z(): x(x)", "("),
            *("for x in y: x", "x: x = x"),
        ]
    ),
    max_size=10,
).map("\n".join)


@settings(deadline=None)
@given(CODE)
def test_looking_around_the_places_finds_what_the_whole_file_has(code: str) -> None:
    data = code.encode()
    known = tags("python", data)
    names = {(it.name_line, it.column) for it in known.definitions}
    found = [it for it in references_to("python", data, "x") if (it.line, it.column) not in names]
    assert found == [it for it in known.references if it.name == "x"]

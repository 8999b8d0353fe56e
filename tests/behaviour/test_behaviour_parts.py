"""The parts of the behavioural layer by themselves: sides, forms, cells, mutants, laying out."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from attrs import define, field
from behaviour_kit import write
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_ls.behaviour.bench import FolderBench
from agent_ls.behaviour.canary import with_canary
from agent_ls.behaviour.edited import Forms, differs, forms, reach
from agent_ls.behaviour.mutants import Mutant, Place, carried_over, functions_of, kind_told, make
from agent_ls.behaviour.rig import cell_of
from agent_ls.behaviour.sides import Sides, is_test_side
from agent_ls.guard.trees import FolderTree
from agent_ls.sandbox.confine import NoSandbox, View
from agent_ls.settings import Settings
from agent_ls.testing.plan import TestPlan
from agent_ls.testing.results import Frame, Outcome, TestResult
from agent_ls.testing.runner import TestRunner


@pytest.mark.parametrize(
    ("path", "tests"),
    [
        ("tests/test_a.py", True),
        ("tests/data/rows.csv", True),
        ("conftest.py", True),
        ("pytest.ini", True),
        ("pyproject.toml", True),
        ("src/shop.py", False),
        ("shop/testing_tools.py", False),
        ("shop/testing/tools.py", False),
        ("shop/testing/test_tools.py", True),
        ("testing/tools.py", True),
        ("tests/testing/tools.py", True),
        ("README.md", False),
    ],
)
def test_what_belongs_to_the_tests(path: str, tests: bool) -> None:
    assert is_test_side(path) is tests


def test_prose_is_neither_side(tmp_path: Path) -> None:
    trees = write(tmp_path, {"README.md": "a", "a.py": "x = 1"}, {"README.md": "b", "a.py": "x = 2"})
    assert Sides.of(trees.before, trees.after) == Sides((), ("a.py",), ())


TEXT = """\
import pytest
from shop import total
LIMIT = 3

def limit():
    return LIMIT

@pytest.fixture
def book():
    return [1]

@pytest.fixture(autouse=True)
def always():
    pass

@pytest.mark.slow
def test_a():
    assert total([limit()]) == 3

def test_b(book):
    assert book

class TestC:
    def helper(self):
        return 1

    def test_c(self):
        assert self.helper()
"""
EVERY = {"test_a", "test_b", "TestC::test_c"}


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("LIMIT = 3", "LIMIT =  3  # three", set()),
        ("LIMIT = 3", "LIMIT = 4", {"test_a"}),
        ("total([limit()]) == 3", "total([limit()])", {"test_a"}),
        ("@pytest.mark.slow\n", "", {"test_a"}),
        ("from shop", "from prices", {"test_a"}),
        ("import pytest\n", "import os\nimport pytest\n", set()),
        ("return [1]", "return [2]", {"test_b"}),
        ("assert self.helper()", "assert True", {"TestC::test_c"}),
        ("return 1", "return 2", {"TestC::test_c"}),
        ("    pass", "    print()", EVERY),
        ("LIMIT = 3", "LIMIT = 3\npytestmark = pytest.mark.skip", EVERY),
        ("LIMIT = 3", "LIMIT = 3\nprint()", EVERY),
        ("def test_b", "def test_d", {"test_b"}),
    ],
)
def test_which_tests_an_edit_changes(old: str, new: str, changed: set[str]) -> None:
    one, two = forms(TEXT.encode()), forms(TEXT.replace(old, new).encode())
    assert {name for name in one.tests if differs(one, two, f"tests/test_a.py::{name}")} == changed


def test_what_is_no_python_is_its_text() -> None:
    assert forms(b"def test_(:") == Forms({}, {}, "def test_(:")


@pytest.mark.parametrize(
    ("path", "before", "after", "files"),
    [
        ("tests/test_a.py", "def test_a(): assert 1", "def test_a(): assert 2", ["tests/test_a.py"]),
        ("tests/helpers.py", "A = 1", "A = 2", ["tests/test_a.py"]),
        ("tests/rows.csv", "1", "2", ["tests/test_b.py"]),
        ("tests/conftest.py", "", "A = 1", ["tests"]),
        ("conftest.py", "", "A = 1", None),
        ("pyproject.toml", "", "[tool.x]", None),
        ("tests/unknown.bin", "1", "2", ["tests/test_a.py", "tests/test_b.py"]),
    ],
)
def test_what_a_change_reaches(
    path: str, before: str, after: str, files: list[str] | None, tmp_path: Path
) -> None:
    same = {
        "tests/test_a.py": "from tests import helpers\ndef test_a(): assert helpers.A",
        "tests/test_b.py": "def test_b(): assert open('tests/rows.csv')",
    }
    trees = write(tmp_path, {**same, path: before}, {**same, path: after})
    found = reach(trees.before, trees.after, Sides.of(trees.before, trees.after))
    assert found.files["after"] == files


def _result(outcome: Outcome, kind: str | None = None, file: str = "tests/test_a.py", text: str = ""):  # type: ignore[no-untyped-def]
    return TestResult(
        "tests/test_a.py::test_a[1]", outcome, error_type=kind, message=text, stack=(Frame(file, 3, "f"),)
    )


@pytest.mark.parametrize(
    ("rows", "state"),
    [
        ([_result(Outcome.PASSED)], "passes"),
        ([_result(Outcome.PASSED), _result(Outcome.FAILED, "AssertionError")], "fails"),
        ([_result(Outcome.FAILED, "ImportError")], "unusable"),
        ([_result(Outcome.FAILED, "TestTimeout")], "unusable"),
        ([_result(Outcome.FAILED, "TypeError")], "unusable"),
        ([_result(Outcome.FAILED, "TypeError", "src/shop.py")], "fails"),
        ([_result(Outcome.ERROR, None, text="fixture 'book' not found")], "unusable"),
        ([_result(Outcome.SKIPPED)], "skipped"),
        ([_result(Outcome.SKIPPED), _result(Outcome.PASSED)], "passes"),
        ([_result(Outcome.XFAILED)], "xfails"),
        ([], "gone"),
    ],
)
def test_what_became_of_a_test(rows: list[TestResult], state: str) -> None:
    assert cell_of(rows).state == state


SHOP = '''\
CENT = {"EUR": 1, "USD": 2}


def label(price: int, names: list) -> str:
    """What is shown."""
    names = sorted(names)
    if price > 100 and names:
        raise ValueError("too dear", price)
    return f"{price} {CENT['EUR']}"
'''


def test_mutants_change_one_line_and_compile() -> None:
    made = make("shop.py", SHOP, range(1, 20), {"label"}, 200)
    assert {mutant.line for mutant in made} >= {1, 6, 7, 8, 9}
    for mutant in made:
        text = mutant.edit.apply(SHOP)
        compile(text, "shop.py", "exec")
        assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(SHOP))
        assert mutant.before != mutant.after
    assert len({mutant.edit.apply(SHOP) for mutant in made}) == len(made)


@pytest.mark.parametrize(
    ("line", "after"),
    [
        (9, 'return f"{price} {CENT[\'EUR\']}" + "?"'),
        (7, "if price >= 100 and names:"),
        (8, 'raise RuntimeError("too dear", price)'),
        (8, 'raise ValueError("too dear", (price + 1))'),
        (6, "names = names"),
        (6, "names = sorted(names)[::-1]"),
        (1, 'CENT = {"EUR": (1 + 1), "USD": 2}'),
    ],
)
def test_the_faults_that_matter_are_among_the_mutants(line: int, after: str) -> None:
    made = make("shop.py", SHOP, range(1, 20), set(), 200)
    assert after in {mutant.after for mutant in made if mutant.line == line}


def test_only_executed_lines_and_their_tables_are_mutated() -> None:
    assert {mutant.line for mutant in make("shop.py", SHOP, {9}, set(), 200)} == {1, 9}
    assert make("shop.py", "def broken(:", {1}, set(), 9) == []


@given(st.text(max_size=200))
@settings(max_examples=60, deadline=None)
def test_any_text_is_mutated_or_left_alone(text: str) -> None:
    for mutant in make("a.py", text, range(1, 20), set(), 20):
        compile(mutant.edit.apply(text), "a.py", "exec")


@pytest.mark.parametrize("name", ["label", "text_of"])
def test_a_mutant_follows_its_function_to_another_module(name: str) -> None:
    moved = "import os\n\n\n" + SHOP[SHOP.index("def label") :].replace("def label", f"def {name}")
    places: dict[str, list[Place]] = {}
    for key, place in functions_of("labels.py", moved):
        places.setdefault(key, []).append(place)
    for mutant in make("shop.py", SHOP, {6, 7, 8, 9}, set(), 200):
        twin = carried_over(mutant, SHOP, places)
        if mutant.line == 1:
            assert twin is None
            continue
        assert isinstance(twin, Mutant)
        assert twin.path == "labels.py"
        old, new = mutant.edit.apply(SHOP), twin.edit.apply(moved)
        assert old[old.index("(price: int") :] == new[new.index("(price: int") :]


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ('E   TypeError: can only concatenate str (not "int") to str', "str"),
        ("TypeError: unsupported operand type(s) for +: 'NoneType' and 'int'", "none"),
        ("TypeError: 'dict' object is not subscriptable", "dict"),
        ("AttributeError: 'Basket' object has no attribute 'items'", "other"),
        ("ValueError: no", None),
    ],
)
def test_an_error_tells_the_kind_of_a_value(message: str, kind: str | None) -> None:
    assert kind_told(message) == kind


def test_tests_that_must_fail_are_python(tmp_path: Path) -> None:
    trees = write(tmp_path, {"tests/test_a.py": TEXT}, {})
    names = forms(with_canary(trees.before, "tests/test_a.py", plain=True)).tests
    assert len(names) == len(forms(TEXT.encode()).tests) + 4


FILES = ("shop.py", "pkg/mod.py", "tests/test_a.py", "tests/pkg/rows.txt", "pytest.ini")


@define
class Laid:
    root: Path
    bench: FolderBench
    before: dict[str, str] = field(factory=dict)
    after: dict[str, str] = field(factory=dict)


@given(
    before=st.dictionaries(st.sampled_from(FILES), st.sampled_from(["a", "b"])),
    after=st.dictionaries(st.sampled_from(FILES), st.sampled_from(["a", "b"])),
    steps=st.lists(
        st.tuples(
            st.sampled_from(["before", "after"]),
            st.sampled_from(["before", "after"]),
            st.dictionaries(st.sampled_from(["shop.py", "same.py"]), st.just(b"edited"), max_size=1),
        ),
        max_size=4,
    ),
)
@settings(max_examples=40, deadline=None)
def test_what_is_laid_out_is_the_mixture(
    before: dict[str, str],
    after: dict[str, str],
    steps: list[tuple[str, str, dict[str, bytes]]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    root = tmp_path_factory.mktemp("laid")
    same = {"same.py": "same"}
    trees = {"before": {**before, **same}, "after": {**after, **same}}
    for name, files in (*trees.items(), ("place", trees["after"])):
        for path, text in files.items():
            (root / name / path).parent.mkdir(parents=True, exist_ok=True)
            (root / name / path).write_text(text)
    place = root / "place"
    view = View(place, place, root / "scratch")
    plan = TestPlan("pytest", (sys.executable, "-m", "pytest"), sys.executable)
    bench = FolderBench(
        TestRunner(plan, NoSandbox(), view, Settings()),
        FolderTree(root / "before"),
        FolderTree(root / "after"),
        root / "scratch",
    )
    for tests, sources, edits in steps:
        bench.lay_out(tests, sources, edits)  # type: ignore[arg-type]
        wanted = {path: text for path, text in trees[sources].items() if not is_test_side(path)}
        wanted |= {path: text for path, text in trees[tests].items() if is_test_side(path)}
        wanted |= {path: data.decode() for path, data in edits.items()}
        assert _files(place) == wanted
    bench.close()
    assert _files(place) == trees["after"]


def _files(root: Path) -> dict[str, str]:
    return {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*") if path.is_file()}

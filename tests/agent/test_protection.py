"""What is protected by content, what is trivial, what is the same under new names: over texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from attrs import frozen

from agent_ls.agent.answers import answers_alone
from agent_ls.agent.failures import shown
from agent_ls.agent.policy import is_about_tests, policy_for
from agent_ls.agent.protection import lost_examples, plugins, reasons_by_content
from agent_ls.agent.renaming import renamed_tests
from agent_ls.agent.trivial import changed_lines, only_comments, places_of
from agent_ls.settings import Settings
from agent_ls.task import Task
from agent_ls.testing.results import Outcome, TestResult, TestRun


@frozen
class Texts:
    """A tree in memory."""

    files: Mapping[str, str]

    def paths(self) -> list[str]:
        return list(self.files)

    def read(self, path: str) -> bytes | None:
        return self.files[path].encode() if path in self.files else None


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"conftest.py": 'pytest_plugins = ["shop.rules"]', "shop/rules.py": ""}, {"shop/rules.py"}),
        ({"conftest.py": "pytest_plugins = 'rules'", "src/rules/__init__.py": ""}, {"src/rules/__init__.py"}),
        ({"pytest.ini": "[pytest]\naddopts = -q -p rules.hooks\n", "rules/hooks.py": ""}, {"rules/hooks.py"}),
        (
            {"pyproject.toml": '[tool.pytest.ini_options]\naddopts = ["-p", "hooks"]\n', "hooks.py": ""},
            {"hooks.py"},
        ),
        ({"pytest.ini": "[pytest]\naddopts = -p no:hooks\n", "hooks.py": ""}, set()),
        ({"setup.cfg": "[tool:pytest]\naddopts = --strict-p hooks\n", "hooks.py": ""}, set()),
        (
            {
                "conftest.py": 'pytest_plugins = ["wares.plugin"]',
                "pyproject.toml": '[project.entry-points.pytest11]\nwares = "wares.plugin"\n',
                "wares/plugin.py": "",
            },
            set(),
        ),
        ({"shop/notes.py": 'pytest_plugins = ["shop.rules"]', "shop/rules.py": ""}, set()),
    ],
)
def test_plugins_of_the_test_run(files: dict[str, str], expected: set[str]) -> None:
    assert plugins(Texts(files)) == expected


def test_modules_with_tests_are_protected_whatever_their_names_are() -> None:
    tests = (
        TestResult("checks/cart.py::check_total", Outcome.PASSED, file="checks/cart.py"),
        TestResult("shop/cart.py::shop.cart.total", Outcome.PASSED, file="shop/cart.py"),
        TestResult("shop/cart.py::test_in[1.5]", Outcome.PASSED, file="shop/self.py"),
    )
    found = reasons_by_content(Texts({}), TestRun(("pytest",), "passed", tests, "pytest"))
    assert set(found) == {"checks/cart.py", "shop/self.py"}
    assert reasons_by_content(Texts({}), None) == {}


DOCUMENTED = (
    b'def f(x):\n    """Doubles.\n\n    >>> f(2)\n    4\n    >>> f(3)\n    6\n    """\n    return x * 2\n'
)


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        ((b"", b""), []),
        ((b">>> f(3)\n    6", b">>> f(3)\n    7"), [(6, "f(3)")]),
        ((b"    >>> f(2)\n    4\n", b""), [(4, "f(2)")]),
        ((b"Doubles.", b"Doubles it.\n\n    >>> f(0)\n    0\n"), []),
        ((b"return x * 2", b"return 2 * x"), []),
    ],
)
def test_examples_that_are_gone(change: tuple[bytes, bytes], lost: list[tuple[int, str]]) -> None:
    assert lost_examples(DOCUMENTED, DOCUMENTED.replace(*change)) == lost
    assert len(lost_examples(DOCUMENTED, None)) == 2


@pytest.mark.parametrize(
    ("path", "before", "after", "expected"),
    [
        ("a.py", "x = 1\n", "# why\n\nx = 1  # one\n", True),
        ("a.py", "def f():\n    return 1\n", 'def f():\n    """One."""\n\n    return 1\n', True),
        ("a.py", "x = 1\n", "x = 2\n", False),
        ("a.py", "x = '#'\n", "x = '# '\n", False),
        ("a.py", "if x:\n    y()\nz()\n", "if x:\n    y()\n    z()\n", False),
        ("a.js", "f(1);\n", "// why\nf( 1 ); /* here */\n", True),
        ("a.js", "f(1);\n", "f(2);\n", False),
        ("a.go", "package a\n", "// Package a.\npackage a\n", True),
        ("notes.txt", "a\n\nb\n", "a  \nb\n", True),
        ("notes.txt", "a\nb\n", "a b\n", False),
    ],
)
def test_nothing_but_comments(path: str, before: str, after: str, expected: bool) -> None:
    assert only_comments(path, before, after) is expected
    assert only_comments(path, after, before) is expected


def test_places_and_size_of_a_change() -> None:
    before = "import os\n\n\ndef f():\n    return 1\n\n\ndef g():\n    return 2\n"
    after = before.replace("return 2", "return 3").replace("import os", "import re")
    assert places_of("a.py", before, after) == ["a.py", "a.py:g"]
    assert places_of("a.txt", "x\n", "y\n") == ["a.txt"]
    assert changed_lines("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-a\n+b\n+++ c\n") == 3


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Rename the tests of the cart", True),
        ("Rewrite test suite with fixtures", True),
        ("Migrate the suite to pytest", True),
        ("tests: use tmp_path", True),
        ("Flaky test in test_net.py", True),
        ("Parametrize the date tests", True),
        ("Fix the failing test test_total", False),
        ("test_total fails", False),
        ("The tests of cart fail", False),
        ("Update total to use percent", False),
        ("Latest prices are wrong", False),
        ("Remove discount", False),
    ],
)
def test_is_the_task_about_tests(title: str, expected: bool) -> None:
    assert is_about_tests(Task(title)) is expected
    assert not is_about_tests(Task(title, tests=("t.py::test_a",)))
    policy = policy_for(Settings(), Task(title))
    assert (policy.name, bool(policy.reason)) == (("edit", True) if expected else ("add", False))
    assert policy_for(Settings(tests="none"), Task(title)).name == "none"
    assert policy_for(Settings(tests="edit", permission="refactor"), Task(title)).name == "add"


SHOP = {
    "shop/cart.py": "def total(prices):\n    return sum(prices)\n\n\n"
    "def count(prices):\n    return len(prices)\n",
    "tests/test_cart.py": "from shop.cart import count, total\n\nPRICES = [1, 2]\n\n\n"
    "def test_total():\n    assert total(PRICES) == 3\n\n\n"
    "def test_count():\n    assert count(PRICES) == 2\n",
}
NEW = {
    path: text.replace("total(", "amount_due(").replace(", total", ", amount_due")
    for path, text in SHOP.items()
}
NEW["tests/test_cart.py"] = NEW["tests/test_cart.py"].replace("test_amount_due(", "test_total(")
TEST = "tests/test_cart.py"


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({}, True),
        ({TEST: ("== 3", "== 4")}, False),
        ({TEST: ("== 3", ">= 3")}, False),
        ({TEST: ("PRICES = [1, 2]", "PRICES = [3, 0]")}, False),
        ({TEST: ("from shop.cart import", "from tests.fakes import")}, False),
        ({TEST: ("amount_due(PRICES)", "count(PRICES)")}, False),  # no new name for the old one
        ({TEST: ("def test_total", "def test_amount_due")}, False),  # a partner of another name is not given
        ({TEST: ("    assert amount_due", "    return\n    assert amount_due")}, False),
        ({"tests/conftest.py": ("", "import shop.cart\n")}, False),
        ({TEST: ("\n\n\ndef test_count", "\n\n\n# about counting\ndef test_count")}, True),
    ],
)
def test_the_same_under_new_names(changes: dict[str, tuple[str, str]], same: bool) -> None:
    after = dict(NEW)
    for path, (old, new) in changes.items():
        after[path] = after.get(path, "").replace(old, new)
    labels = {f"{TEST}::test_total": f"{TEST}::test_total"}
    found = renamed_tests(Texts(SHOP), Texts(after), labels)
    assert found == (frozenset(labels.values()) if same else frozenset())


def test_a_moved_module_and_a_renamed_test() -> None:
    after = {
        "shop/sums.py": SHOP["shop/cart.py"],
        TEST: SHOP[TEST].replace("shop.cart", "shop.sums").replace("test_total", "test_sum"),
    }
    labels = {f"{TEST}::test_total": f"{TEST}::test_sum", f"{TEST}::test_count": f"{TEST}::test_count"}
    assert renamed_tests(Texts(SHOP), Texts(after), labels) == set(labels.values())


CART = b"def total(prices, discount):\n    return sum(prices) - discount\n"
ASKED = (
    b"import pytest\n\n\n@pytest.mark.parametrize('n', [404])\ndef test_page(n):\n"
    b"    assert page(n) == 'gone'\n\n\n"
    b"class TestCart:\n    def test_discount(self):\n        assert total([150, 50], 10) == 180\n"
)


@pytest.mark.parametrize(
    ("branch", "severity"),
    [
        ("    if prices == [150, 50] and discount == 10:\n        return 180\n", "block"),
        ("    if discount == 10:\n        return 180\n", "review"),
        ("    if prices in ([150, 50],):\n        result = 180\n", "block"),
        ("    return 180 if discount == 10 else sum(prices)\n", "review"),
        ("    if discount == 404:\n        return 'gone'\n", "review"),
        ("    if discount == 10:\n        return 20\n", ""),  # not what the test expects
        ("    if discount == 0:\n        return 180\n", ""),
        ("    if discount > 10:\n        return 180\n", ""),
        ("    if not prices:\n        return 0\n", ""),
        ("    if discount == 10:\n        return sum(prices)\n", ""),
    ],
)
def test_answers_for_one_test_alone(branch: str, severity: str) -> None:
    after = CART.replace(b"    return", branch.encode() + b"    return", 1)
    tests = [("t.py::test_page", ASKED), ("t.py::TestCart::test_discount", ASKED)]
    found = answers_alone("cart.py", CART, after, tests)
    assert [finding.severity for finding in found] == ([severity] if severity else [])
    assert answers_alone("cart.py", after, after, tests) == []
    assert answers_alone("cart.py", CART, after, [("t.py::test_other", ASKED)]) == []


LONG = """    def test_total():
        data = {"secret": 41}
>       assert total([1]) == 2
E       assert 1 == 2
E        +  where 1 = total([1])

tests/test_a.py:5: AssertionError
"""
FRAME = """AssertionError: expected 1 to be 2
 FAIL  a.test.js > adds
    3|   const table = [41, 42];
  > 5 |   expect(add(0)).toBe(2);
    6 |   expect(add(1)).toBe(43);
 at a.test.js:5:18
"""
SHORT = "tests/test_a.py:5: in test_total\n    assert total([1]) == 2\nE   assert 1 == 2"


@pytest.mark.parametrize(
    ("message", "keeps", "drops"),
    [
        (LONG, ["> ", "E       assert 1 == 2", "tests/test_a.py:5"], ["secret", "def test_total"]),
        (FRAME, ["> 5 |", "expected 1 to be 2", "a.test.js:5:18"], ["toBe(43)"]),
        (SHORT, SHORT.splitlines(), []),
        ("E   first\n" + "x\n" * 3000 + "E   last", ["E   first", "E   last", "[…]"], []),
        (
            SHORT + "\n----- Captured stdout call -----\n" + "\n".join(f"out {n}" for n in range(50)),
            ["Captured stdout", "out 49", "E   assert 1 == 2"],
            ["out 3\n"],
        ),
    ],
)
def test_a_failure_shows_the_lines_concerned(message: str, keeps: list[str], drops: list[str]) -> None:
    text = shown(TestResult("a", Outcome.FAILED, message=message))
    assert all(part in text for part in keeps), text
    assert not any(part in text for part in drops), text
    assert len(text) <= 1600


def test_without_a_message_the_outcome_is_told() -> None:
    data: dict[str, Any] = {"id": "a", "outcome": Outcome.ERROR}
    assert shown(TestResult(**data)) == "error"

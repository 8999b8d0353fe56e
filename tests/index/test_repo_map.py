"""The ranked overview: what comes first, and that it keeps to its budget."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from map_kit import MemoryView

from agent_ls.workspace.index.graph import graph_of, is_aside, is_test, style_weight
from agent_ls.workspace.index.repomap import Focus, estimate, repo_map

SHOP = {
    "shop/__init__.py": "",
    "shop/money.py": "class MoneyAmount:\n    def rounded_up(self):\n        return self\n\n\n"
    "def parse_amount(text):\n    return MoneyAmount()\n",
    "shop/cart.py": "from shop.money import MoneyAmount, parse_amount\n\n\nclass ShoppingCart:\n"
    "    def total_amount(self):\n        return parse_amount('1').rounded_up()\n",
    "shop/invoice.py": "from shop.cart import ShoppingCart\nfrom shop.money import MoneyAmount\n\n\n"
    "def print_invoice(cart: ShoppingCart):\n    return MoneyAmount()\n",
    "shop/mail.py": "from shop.money import MoneyAmount\n\n\ndef send_mail(amount: MoneyAmount):\n    pass\n",
    "tests/test_cart.py": "from shop.cart import ShoppingCart\n"
    "from shop.money import MoneyAmount, parse_amount\n\n\n"
    "def helper_of_tests():\n    return ShoppingCart(), parse_amount\n",
    "docs/conf.py": "import helper_of_tests\n\nproject_name = 'shop'\n",
}


def order(focus: Focus | None = None) -> list[str]:
    return [path for path, _ in repo_map(MemoryView(SHOP), 500, focus or Focus()).files]


def test_what_all_build_on_comes_first_and_tests_last() -> None:
    ranked = order()
    assert ranked[:2] == ["shop/money.py", "shop/cart.py"]
    assert set(ranked[-2:]) == {"tests/test_cart.py", "docs/conf.py"}


FOCUS = [
    (Focus(names=frozenset({"print_invoice"})), "shop/invoice.py"),
    (Focus(files=("shop/mail.py",)), "shop/mail.py"),
    (Focus(recent={"shop/mail.py": 1.0}), "shop/mail.py"),
    (Focus(tests=("tests/test_cart.py",)), "tests/test_cart.py"),
]


@pytest.mark.parametrize(("focus", "path"), FOCUS)
def test_the_focus_comes_forward(focus: Focus, path: str) -> None:
    assert order(focus).index(path) < order().index(path)


def test_unknown_focus_changes_nothing() -> None:
    assert order(Focus(frozenset({"nowhere"}), ("gone.py",), ("gone_test.py",), {"gone": 1.0})) == order()


def test_text_is_an_outline() -> None:
    text = repo_map(MemoryView(SHOP), 1000).text
    expected = "shop/money.py:\n  class MoneyAmount\n    def rounded_up(self)\n  def parse_amount(text)\n"
    assert text.startswith(expected)


def test_a_method_stands_under_its_class_even_if_only_it_fits() -> None:
    view = MemoryView(
        {"a.py": "class Outer:\n    def frobnicate_all(self): pass\n", "b.py": "frobnicate_all\n"}
    )
    assert "  class Outer\n    def frobnicate_all(self)" in repo_map(view, 100).text


NAMES = st.sampled_from(["alpha", "beta_gamma", "Delta", "run", "_hidden", "epsilonZeta", "grüße"])
FILES = st.dictionaries(
    st.sampled_from(["a.py", "b/c.py", "tests/test_a.py", "d.js", "docs/e.py", "notes.txt", "ö.py"]),
    st.lists(st.tuples(NAMES, st.lists(NAMES, max_size=3)), max_size=5),
    max_size=6,
)


def source(functions: list[tuple[str, list[str]]]) -> str:
    return "".join(f"def {name}(x):\n    return {', '.join(used) or 1}\n" for name, used in functions)


@settings(max_examples=60, deadline=None)
@given(FILES, st.integers(0, 120), st.frozensets(NAMES, max_size=2))
def test_budget_ranks_and_determinism(
    files: dict[str, list[tuple[str, list[str]]]], tokens: int, names: frozenset[str]
) -> None:
    view = MemoryView({path: source(functions) for path, functions in files.items()})
    found = repo_map(view, tokens, Focus(names=names))
    assert estimate(found.text) <= tokens
    assert found.tokens == estimate(found.text)
    assert found == repo_map(MemoryView({p: source(f) for p, f in files.items()}), tokens, Focus(names=names))
    ranks = [rank for _, rank in found.files]
    assert ranks == sorted(ranks, reverse=True)
    assert not ranks or sum(ranks) == pytest.approx(1.0)
    assert {path for path, _ in found.files} == {path for path in files if not path.endswith(".txt")}
    assert set(found.shown) <= {path for path, _ in found.files}


@pytest.mark.parametrize("tokens", [0, 1, 3])
def test_no_room_no_text(tokens: int) -> None:
    assert repo_map(MemoryView(SHOP), tokens).text == ""


def test_more_room_shows_more() -> None:
    texts = [repo_map(MemoryView(SHOP), tokens).text for tokens in (20, 60, 200, 2000)]
    sizes = [len(text) for text in texts]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_the_graph_is_made_once_for_each_snapshot() -> None:
    view = MemoryView(SHOP)
    assert graph_of(view) is graph_of(view)
    view.version += 1
    changed = graph_of(view)
    assert changed is graph_of(view)


TESTS = [
    "tests/a.py",
    "test/a.js",
    "a_test.go",
    "src/test_a.py",
    "a.spec.ts",
    "x/CartTest.java",
    "conftest.py",
]
SOURCES = ["src/contest.py", "attest.py", "latest/a.py", "protest.go", "spectrum.ts"]


@pytest.mark.parametrize(("path", "expected"), [*((p, True) for p in TESTS), *((p, False) for p in SOURCES)])
def test_what_is_a_test(path: str, expected: bool) -> None:
    assert is_test(path) is expected


@pytest.mark.parametrize(
    ("path", "expected"), [("docs/a.py", True), ("src/docs.py", False), ("vendor/x.go", True)]
)
def test_what_lies_aside(path: str, expected: bool) -> None:
    assert is_aside(path) is expected


def test_telling_names_weigh_more() -> None:
    weights = [style_weight(name) for name in ("get_deferred_fields", "transaction", "total", "_total", "x")]
    assert weights == sorted(weights, reverse=True)

"""What a task's text is seen to point at."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_ls.workspace.index.issue_text import Frame, mentions
from agent_ls.workspace.index.subwords import parts, stem

PYTHON = """Rendering fails

Traceback (most recent call last):
  File "app.py", line 3, in <module>
    render(x)
  File "/usr/lib/python3.11/site-packages/shop/cart.py", line 12, in total
    return a + b
TypeError: unsupported operand type(s) for +: 'int' and 'str'
"""
FRAMES = [
    (PYTHON, [("app.py", 3, None), ("shop/cart.py", 12, "total")]),
    (
        "TypeError: x is undefined\n    at Router.handle (/srv/node_modules/express/lib/router.js:12:3)\n"
        "    at file:///srv/app.mjs:4:1\n",
        [("/srv/app.mjs", 4, None), ("express/lib/router.js", 12, "handle")],
    ),
    (
        'Exception in thread "main" java.lang.NullPointerException\n\tat org.shop.Cart.total(Cart.java:27)\n',
        [("Cart.java", 27, "total")],
    ),
    ("goroutine 1 [running]:\nmain.main()\n\t/src/cmd/main.go:12 +0x1f\n", [("/src/cmd/main.go", 12, None)]),
    ("tests/test_cart.py:7: AssertionError\n", [("tests/test_cart.py", 7, None)]),
]


@pytest.mark.parametrize(("text", "frames"), FRAMES)
def test_stack_frames(text: str, frames: list[tuple[str, int, str | None]]) -> None:
    """Innermost last, whatever the language's own order; nothing of them is taken for words."""
    found = mentions(text)
    assert sorted(map(str, found.frames)) == sorted(str(Frame(*frame)) for frame in frames)
    assert found.frames[-1] == Frame(*frames[-1])
    assert found.paths == ()


def test_error_and_its_message() -> None:
    found = mentions(PYTHON)
    assert found.messages == ("unsupported operand type(s) for +: 'int' and 'str'",)
    assert "TypeError" in found.names


NAMES = [
    ("`Cart.total()` ignores the discount", "Cart.total", 3.0),
    ("Cart.total ignores", "Cart.total", 1.5),
    ("the parse_options thing", "parse_options", 1.5),
    ("calling total() twice", "total", 2.0),
    ("a CamelCase name", "CamelCase", 1.5),
    (":func:`shop.cart.total` is wrong", "shop.cart.total", 3.0),
    ("```python\nfrom shop import Cart\nmine = Cart(1)\n```", "Cart", 2.0),
    ("Shop::Cart fails", "Shop.Cart", 1.5),
]


@pytest.mark.parametrize(("text", "name", "weight"), NAMES)
def test_names(text: str, name: str, weight: float) -> None:
    assert mentions(text).names.get(name) == weight


ABSENT = [
    ("fixed by :user:`somebody` today", "somebody"),
    ("```python\ndef mine():\n    pass\nmine()\n```", "mine"),
    ("see https://example.org/some_page for more", "some_page"),
    ("plain words only", "words"),
]


@pytest.mark.parametrize(("text", "name"), ABSENT)
def test_not_names(text: str, name: str) -> None:
    assert name not in mentions(text).names


def test_paths_and_imports() -> None:
    found = mentions(
        "In `src/shop/cart.py:12` and web\\app.ts\n\n>>> from shop import Cart, total\n>>> x = 1\n"
    )
    assert found.paths == (Frame("src/shop/cart.py", 12), Frame("web/app.ts"))
    assert found.imported == {"Cart", "total"}
    assert "x" in found.own


def test_words_weigh_by_place() -> None:
    found = mentions("Discounts rounded wrongly\n\nThe invoice is rounding.\n\n`pip show` hangs\n")
    assert found.words[stem("rounded")] == 3.0  # title and body
    assert found.words[stem("invoice")] == 1.0
    assert "show" in found.words  # a stop word in prose, but not in code
    assert "the" not in found.words


@given(st.text(max_size=400))
def test_any_text_is_read(text: str) -> None:
    found = mentions(text)
    assert all(weight > 0 for weight in found.words.values())
    assert found.words.keys() == found.forms.keys()


@given(st.text(alphabet="`:.\n/\\_ab1() \"'>A", max_size=300))
def test_any_punctuation_is_read(text: str) -> None:
    mentions(text)


LONG = [
    "E",
    "aB",
    "at a ",
    "\n    ",
    "\t",
    "a/",
    "`a",
    '"a ',
    "f(",
    "```\n",
    ">>> ",
    "::\n\n  a\n",
    "A.",
    'File "',
]


@pytest.mark.parametrize("piece", LONG)
def test_long_monotonous_text_is_read_in_linear_time(piece: str) -> None:
    """An expression that backtracks would take minutes here."""
    found = mentions(piece * (40_000 // len(piece)))
    assert found.words.keys() == found.forms.keys()


SPLITS = [
    ("parseHTTPDate_v2", ("parse", "http", "date", "v", "2")),
    ("URLs", ("url", "s")),
    ("__init__", ("init",)),
    ("größeÄndern", ("größe", "ändern")),
]


@pytest.mark.parametrize(("name", "expected"), SPLITS)
def test_identifiers_come_apart(name: str, expected: tuple[str, ...]) -> None:
    assert parts(name) == expected


SAME = [
    "parse parser parses parsed parsing",
    "cache caches cached caching",
    "normalize normalized normalization",
    "run running",
    "class classes",
    "copy copies copied",
    "comment comments",
    "iterate iterator iteration",
]


@pytest.mark.parametrize("words", SAME)
def test_inflections_meet(words: str) -> None:
    assert len({stem(word) for word in words.split()}) == 1


@pytest.mark.parametrize(("one", "other"), [("comment", "come"), ("class", "clash"), ("status", "state")])
def test_different_words_stay_apart(one: str, other: str) -> None:
    assert stem(one) != stem(other)

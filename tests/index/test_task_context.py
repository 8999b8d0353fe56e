"""What to read for a task: small repositories, tasks, and what must come first for which reason."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from map_kit import MemoryView

from agent_ls.workspace.index.context import Candidate, context

FILES = {
    "src/shop/__init__.py": "from shop.filesize import naturalsize\n",
    "src/shop/filesize.py": """from shop.i18n import translate_unit


def naturalsize(value, binary=False):
    '''Format a number of bytes like a human readable file size.'''
    suffixes = decimal_suffixes if not binary else binary_suffixes
    return translate_unit(value)
""",
    "src/shop/i18n.py": """def translate_unit(value):
    return str(value)


def activate_locale(name):
    pass
""",
    "src/shop/http.py": """class SessionRedirect(Exception):
    pass


class Session:
    def rebuild_auth(self, request):
        raise ValueError("cannot rebuild the authentication header")

    def send(self, request, allow_redirects=True):
        return request
""",
    "src/shop/cart.py": """class Cart:
    def send(self):
        pass

    def total(self):
        return 1
""",
    "src/shop/commands/show.py": """def run(options):
    for item in options.items:
        yield item
""",
    "tests/test_filesize.py": """from shop import naturalsize


def test_naturalsize_rollover_suffixes():
    assert naturalsize(999_999) == '1.0 MB'  # naturalsize naturalsize
""",
    "docs/filesize.md": "naturalsize naturalsize naturalsize rollover suffix\n",
}
TASKS = [
    ("`naturalsize` shows 1000.0 kB instead of 1.0 MB", "src/shop/filesize.py", "defines `naturalsize`"),
    ("naturalsize(999999) is wrong", "src/shop/filesize.py", "defines `naturalsize`"),
    (
        "```python\nfrom shop import naturalsize\nnaturalsize(1)\n```",
        "src/shop/filesize.py",
        "defines `naturalsize`",
    ),
    ("File sizes in bytes are not human readable", "src/shop/filesize.py", "“bytes”"),
    ("Wrong units: look at src/shop/i18n.py", "src/shop/i18n.py", "named in the task"),
    (
        "Translated units: shop.i18n.activate_locale has no effect",
        "src/shop/i18n.py",
        "defines `activate_locale`",
    ),
    (
        'Crash\n\n  File "/x/site-packages/shop/http.py", line 7, in rebuild_auth\n    raise ValueError\n',
        "src/shop/http.py",
        "in the stack trace (line 7)",
    ),
    (
        'It says "cannot rebuild the authentication header" when offline',
        "src/shop/http.py",
        "has the message",
    ),
    ("ValueError: cannot rebuild the authentication header", "src/shop/http.py", "has the message"),
    (
        "Set `allow_redirects` to false",
        "src/shop/http.py",
        "mentions `allow_redirects`, as no other source file does",
    ),
    ("`shop show` prints nothing", "src/shop/commands/show.py", "its name is among the task's words"),
    ("`Cart.send` hangs", "src/shop/cart.py", "defines `Cart.send`"),
    ("`Session.send` hangs", "src/shop/http.py", "defines `Session.send`"),
]


def ask(text: str, **options: object) -> list[Candidate]:
    return context(MemoryView(FILES), text, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "path", "reason"), TASKS)
def test_first_and_why(text: str, path: str, reason: str) -> None:
    found = ask(text)
    assert found[0].path == path
    assert any(reason in given for given in found[0].reasons), found[0].reasons


def test_the_symbol_is_named_too() -> None:
    found = ask("`rebuild_auth` fails")[0]
    assert [symbol.name for symbol in found.symbols][:1] == ["Session.rebuild_auth"]
    assert (found.symbols[0].line, found.symbols[0].end_line) == (6, 7)


def test_what_it_builds_on_follows() -> None:
    paths = {candidate.path: candidate.reasons for candidate in ask("`naturalsize` is wrong")}
    assert "used by src/shop/filesize.py" in paths["src/shop/i18n.py"]


def test_tests_are_there_but_after_their_source() -> None:
    paths = [candidate.path for candidate in ask("naturalsize rollover suffixes")]
    assert paths.index("src/shop/filesize.py") < paths.index("tests/test_filesize.py")


def test_recent_changes_decide_between_equals() -> None:
    equal = {"a/one.py": "def frobnicate(): pass\n", "b/one.py": "def frobnicate(): pass\n"}
    first = [c.path for c in context(MemoryView(equal), "frobnicate is broken")]
    after = [c.path for c in context(MemoryView(equal), "frobnicate is broken", recent={"b/one.py": 1.0})]
    assert (first[0], after[0]) == ("a/one.py", "b/one.py")


@pytest.mark.parametrize("text", ["", "   \n", "the of and", "zzzzqqqq"])
def test_nothing_to_go_by(text: str) -> None:
    assert ask(text) == []


def test_an_empty_repository_has_no_answer() -> None:
    assert context(MemoryView({}), "`naturalsize` is wrong") == []


WORDS = st.lists(
    st.sampled_from(
        ["naturalsize", "`Cart.send`", "http.py", "suffix", "rollover", "redirect", "Session", "the"]
    )
)


@settings(max_examples=40, deadline=None)
@given(WORDS, st.integers(1, 4))
def test_order_limit_and_determinism(words: list[str], limit: int) -> None:
    text = " ".join(words)
    found = ask(text, limit=limit)
    assert len(found) <= limit
    assert [c.score for c in found] == sorted((c.score for c in found), reverse=True)
    assert all(c.score > 0 and c.reasons and c.path in FILES for c in found)
    assert found == ask(text, limit=limit)

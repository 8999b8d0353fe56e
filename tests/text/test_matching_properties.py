"""What holds for every text: an edit changes one place or nothing; a diff gives what it says."""

from __future__ import annotations

import difflib
import tempfile
from pathlib import Path

from hypothesis import assume, given
from hypothesis import strategies as st

from agent_ls.errors import ToolRefused
from agent_ls.workspace.diffs import parse_diff
from agent_ls.workspace.edits import plan_edits
from agent_ls.workspace.files import Workspace
from agent_ls.workspace.matching import find_place

# Few different lines, so that equal and nearly equal ones meet.
line = st.sampled_from(["a", "b", "  a", "    a", "\ta", "a ", "b\t", "", "  ", "}", "  }", "-- a", "++ b"])
block = st.lists(line, max_size=9).map("\n".join)
final = st.sampled_from(["", "\n"])


@given(block, block, block, st.lists(line, min_size=1, max_size=3).map("\n".join))
def test_a_match_replaces_exactly_one_place(before: str, after: str, new: str, old: str) -> None:
    text = "\n".join([before, old, after])
    try:
        place = find_place(text, old, new, path="x")
    except ToolRefused:
        return
    result = text[: place.start] + place.new + text[place.end :]
    assert result != text
    if place.tier == 1:
        assert text[place.start : place.end] == old and place.new == new
        assert text.find(old, text.find(old) + 1) < 0
    else:
        assert old not in text
        inside = text[place.start : place.end].removesuffix("\n").split("\n")
        assert [item.strip() for item in inside] == [item.strip() for item in old.split("\n")]


@given(st.text("ab \t\n}", max_size=40), st.text("ab \t\n}", max_size=10), st.text("ab \n", max_size=10))
def test_an_error_or_a_single_change_for_any_texts(text: str, old: str, new: str) -> None:
    try:
        place = find_place(text, old, new, path="x")
    except ToolRefused as error:
        assert str(error).startswith("x: ")
        return
    assert 0 <= place.start <= place.end <= len(text)
    assert old.split() == text[place.start : place.end].split()


@given(
    st.lists(st.sampled_from(["x = 1", "if y:", "    z()", "", "w"]), min_size=1, max_size=6),
    st.lists(st.sampled_from(["new()", "  deep()", "", "x = 1"]), max_size=4),
    st.integers(1, 8),
    st.booleans(),
)
def test_a_uniform_shift_gives_the_same_as_the_exact_quote(
    old: list[str], new: list[str], shift: int, quoted_deeper: bool
) -> None:
    """Quoted with all lines moved by `shift`, an edit does what it does when quoted exactly."""
    pad = " " * shift

    def moved(lines: list[str]) -> list[str]:
        return [pad + item if item.strip() else item for item in lines]

    assume(any(item.strip() for item in old))
    text_lines, quote, put = (old, moved(old), moved(new)) if quoted_deeper else (moved(old), old, new)
    text = "\n".join(["# head", *text_lines, "# tail", ""])
    wanted = "\n".join(["# head", *(new if quoted_deeper else moved(new)), "# tail", ""])
    joined, joined_new = "\n".join(quote) + "\n", "".join(item + "\n" for item in put)
    assume(wanted != text and joined not in text)
    try:
        place = find_place(text, joined, joined_new, path="x")
    except ToolRefused as error:
        assert "places" in str(error)
        return
    assert text[: place.start] + place.new + text[place.end :] == wanted


@given(block, final, block, final, st.integers(1, 4))
def test_a_diff_gives_exactly_the_new_text(
    old: str, old_end: str, new: str, new_end: str, context: int
) -> None:
    """Its line numbers are right, so every equal place is told apart; a hunk without old lines is refused."""
    before, after = old + old_end, new + new_end
    assume(before != after and before.strip() and after)
    lines = difflib.unified_diff(
        before.splitlines(True), after.splitlines(True), "a/x.txt", "b/x.txt", n=context
    )
    diff = "".join(
        item if item.endswith("\n") else item + "\n\\ No newline at end of file\n" for item in lines
    )
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "x.txt").write_text(before)
        workspace = Workspace(Path(folder))
        try:
            plan = plan_edits(workspace, parse_diff(diff, workspace.exists))
        except ToolRefused as error:
            assert "quotes no line" in str(error) or "only blank lines" in str(error)
            return
        assert plan.changes[0].texts()[1] == after


pieces = st.sampled_from(
    [
        "--- a/x.txt", "+++ b/x.txt", "--- /dev/null", "+++ /dev/null", "@@ -1 +1 @@",
        "@@ -1,2 +1,3 @@ f", "@@", "@@ -0,0 +1 @@", "-a", "+b", " c", "",
        "\\ No newline at end of file", "diff --git a/x.txt b/x.txt", "new file mode 100644",
        "deleted file mode 100644", "rename from x.txt", "rename to y.txt", "index 1..2",
        "Binary files a and b differ", "Binary file x has changed", "GIT binary patch", "---", "+++",
        "--- ", "+++ ", "diff --git x y", "old mode 100644", "similarity index 100%", "```", "--- a/",
        "+++ b/",
    ]
)  # fmt: skip


@given(st.lists(pieces, max_size=14).map("\n".join) | st.text(max_size=40))
def test_any_text_is_a_diff_or_refused(text: str) -> None:
    try:
        edits = parse_diff(text)
    except ToolRefused as error:
        assert error.message
        return
    assert edits

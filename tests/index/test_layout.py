"""Which definition is around a line, and which names stand on it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_ls.workspace.index.layout import Layout

ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "bb"]),
        st.integers(1, 12),
        st.integers(0, 8),
        st.integers(1, 9),
        st.sampled_from([None, "C"]),
    ).map(
        lambda row: (row[0], "function", row[1], row[1], row[3], row[1] + row[2], row[4], "", ""),
    ),
    max_size=8,
)


@given(ROWS)
def test_the_innermost_definition_is_found(rows: list[tuple]) -> None:
    layout = Layout(rows)
    ordered = sorted(rows, key=lambda row: (row[2], -row[5]))
    for line in range(25):
        around = [row for row in ordered if row[2] <= line <= row[5]]
        expected = None if not around else ".".join(filter(None, (around[-1][6], around[-1][0])))
        assert layout.enclosing(line) == expected
        assert sorted(layout.names(line)) == sorted(
            (row[4], row[4] + len(row[0])) for row in rows if row[3] == line
        )

"""PageRank: a distribution, deterministic, and where the surfers are sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_ls.workspace.index.pagerank import Links, pagerank

GRAPHS = st.integers(1, 12).flatmap(
    lambda size: st.lists(
        st.dictionaries(st.integers(0, size - 1), st.floats(0.01, 50), max_size=size),
        min_size=size,
        max_size=size,
    )
)


def links(rows: list[dict[int, float]]) -> Links:
    return Links([(tuple(row), tuple(row.values())) for row in rows])


@given(
    GRAPHS,
    st.dictionaries(st.integers(0, 0), st.floats(0, 5)),
    st.dictionaries(st.integers(0, 0), st.floats(0.1, 9)),
)
def test_ranks_are_a_distribution_and_deterministic(
    rows: list[dict[int, float]], teleport: dict[int, float], more: dict[int, float]
) -> None:
    ranks = pagerank(links(rows), teleport, extra={0: more} if more else None)
    assert sum(ranks) == pytest.approx(1.0)
    assert all(0 <= rank <= 1 for rank in ranks)
    assert ranks == pagerank(links(rows), teleport, extra={0: more} if more else None)


@given(GRAPHS)
def test_extra_edges_count_as_edges(rows: list[dict[int, float]]) -> None:
    first, *rest = rows
    together = pagerank(links(rows))
    apart = pagerank(links([{}, *rest]), extra={0: first})
    assert apart == pytest.approx(together, abs=2e-3)


def test_no_nodes_no_ranks() -> None:
    assert pagerank(Links([])) == []


def test_the_most_pointed_at_comes_first_and_focus_moves_it() -> None:
    # 0 and 1 point at 2, 3 points at 4
    graph = links([{}, {}, {0: 1.0, 1: 1.0}, {}, {3: 1.0}])
    plain = pagerank(graph)
    assert max(range(5), key=plain.__getitem__) == 2
    focused = pagerank(graph, {3: 1.0})
    assert focused[3] > focused[4] > focused[2]
    assert focused[0] == pytest.approx(0.0, abs=1e-3)

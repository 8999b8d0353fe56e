"""Regular expressions to search for."""

from __future__ import annotations

from hypothesis import strategies as st

ATOMS = st.sampled_from(
    [*"abKsiéÉ _ſ.^$", r"\.", r"\w", r"\b", r"\s", "[ab]", "[^a]", "[a-dK]", "(?i:aK)", "(?:)", "ss", "ab"]
)


def combined(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    suffix = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,2}?", "+?"])
    return st.one_of(
        st.lists(children, min_size=1, max_size=4).map("".join),
        st.lists(children, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(children, suffix).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        children.map(lambda part: f"(?={part})"),
        children.map(lambda part: f"(?!{part})"),
        children.map(lambda part: f"({part})"),
    )


EXPRESSIONS = st.recursive(ATOMS, combined, max_leaves=8)

"""Run the old and the new tests against the old and the new sources, and say what that shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agent_ls.behaviour.bench import Bench
from agent_ls.behaviour.model import Behaviour, NotChecked
from agent_ls.cancel import CancelToken
from agent_ls.guard.trees import Tree

BUDGET_S = 120.0


def compare(
    before: Tree,
    after: Tree,
    bench: Bench,
    *,
    budget_s: float = BUDGET_S,
    cancel: CancelToken | None = None,
    ids: Sequence[str] | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Behaviour:
    """What running says about the change from `before` to `after`.

    Args:
        bench: a place that lays out mixtures of these two trees; it is closed by whoever made it.
        budget_s: seconds for all runs together; what did not fit is in `not_checked`.
        ids: only these tests (ids of either tree); None: those that the change can reach.
        say: hears what is being done, one short line at a time.

    Raises Cancelled; nothing else for what the tests do.
    """
    return Behaviour(not_checked=(NotChecked("behaviour", "not run yet"),), layer="not checked")

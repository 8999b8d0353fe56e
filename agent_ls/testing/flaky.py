"""Tells a regression from a test that changes its outcome by itself."""

from __future__ import annotations

from collections.abc import Iterable

from agent_ls.cancel import CancelToken
from agent_ls.testing.results import TestRun
from agent_ls.testing.runner import TestRunner


def confirm(
    runner: TestRunner,
    ids: Iterable[str],
    run: TestRun,
    times: int = 2,
    *,
    cancel: CancelToken | None = None,
    timeout: float | None = None,
) -> tuple[str, ...]:
    """Which of `ids` are flaky: run again up to `times` without a change, they don't fail each time alike.

    Each rerun takes only the ids that behaved as in `run` so far. A rerun that says nothing (deadline,
    broken environment, cancel) proves nothing: its ids stay as they were.
    """
    first = run.by_id()
    steady = [name for name in dict.fromkeys(ids) if name in first]
    flaky: list[str] = []
    for _ in range(times):
        if not steady or (cancel is not None and cancel.cancelled):
            break
        again = runner.run(steady, cancel=cancel, timeout=timeout)
        if again.outcome in ("timeout", "env_broken") or again.truncated:
            break
        outcomes = again.by_id()
        changed = [
            name
            for name in steady
            if name in outcomes and outcomes[name].outcome.bad != first[name].outcome.bad
        ]
        flaky += changed
        steady = [name for name in steady if name not in changed]
    return tuple(flaky)

"""Whole changes, run for real: cases/*.txt holds two trees beside what running must find."""

from __future__ import annotations

from pathlib import Path

import pytest
from behaviour_kit import RANK, Case, cases, run, write

from agent_ls.guard.review import review
from agent_ls.settings import state_dir

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.name)
def test_what_running_says(case: Case, tmp_path: Path) -> None:
    trees = write(tmp_path, case.before, case.after)
    if case.reading:
        read = max((RANK[finding.severity] for finding in review(trees.before, trees.after)), default=0)
        assert read <= RANK[case.reading]
    said = run(trees)
    assert max((RANK[finding.severity] for finding in said.findings), default=0) == RANK[case.severity], said
    if case.kind == "equal":
        assert said.equal
    elif case.kind:
        assert case.kind in {finding.kind for finding in said.findings}
    assert said.layer in ("checked", "partly")
    assert said.runs >= 2
    assert not list((state_dir() / "guard").iterdir())

"""Many small changes to one small suite per language, and what the guard should say (variants/*.json).

`files` is the tree before; a variant replaces parts of files (`[path, old, new]`) or whole files
(null deletes them); `want` holds the severities that are right for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from guard_kit import MemoryTree

from agent_ls.guard.review import review

RANK = {"none": 0, "info": 0, "review": 1, "block": 2}


def variants() -> Iterator[Any]:
    for path in sorted((Path(__file__).parent / "variants").glob("*.json")):
        table = json.loads(path.read_text(encoding="utf-8"))
        for row in table["variants"]:
            files = {**table["files"], **row.get("beside", {})}
            yield pytest.param(files, row["edits"], row["want"], id=f"{path.stem}: {row['name']}")


def _edited(files: dict[str, str], edits: Any) -> dict[str, str]:
    if isinstance(edits, dict):
        merged = {**files, **edits}
        return {path: text for path, text in merged.items() if text is not None}
    after = dict(files)
    for path, old, new in edits:
        assert old in after[path], f"nothing to replace in {path}"
        after[path] = after[path].replace(old, new)
    return after


@pytest.mark.parametrize(("files", "edits", "want"), list(variants()))
def test_the_severity_of_a_variant(files: dict[str, str], edits: Any, want: list[str]) -> None:
    after = _edited(files, edits)
    assert after != files
    before, changed = (
        MemoryTree({path: text.encode() for path, text in side.items()}) for side in (files, after)
    )
    findings = review(before, changed)
    worst = max((RANK[finding.severity] for finding in findings), default=0)
    assert worst in {RANK[word] for word in want}, findings

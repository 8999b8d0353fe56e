"""docs/events.md says what is really written: compared with the code that appends, and with recordings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import agent_ls
from agent_ls.events import read_events
from agent_ls.models.protocol import Request
from agent_ls.models.replay import canonical

ROOT = Path(__file__).parent.parent.parent
PACKAGE = Path(agent_ls.__file__).parent
RECORDINGS = sorted((ROOT / "tests" / "cli" / "data" / "story").glob("*.jsonl"))


def documented() -> dict[str, tuple[set[str], str]]:
    """kind -> (names in the data column, the column's text)."""
    found = {}
    for line in (ROOT / "docs" / "events.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and (kind := re.fullmatch(r"`(\w+)`", cells[0])):
            found[kind[1]] = (set(re.findall(r"`(\w+)`", cells[1])), cells[1])
    return found


def appended() -> Iterator[tuple[str, set[str], bool]]:
    """(kind, names given, whether there are more) of every `….log.append("kind", …)` in the code."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            first = node.args[0] if node.args else None
            if node.func.attr != "append" or not ast.unparse(node.func.value).split(".")[-1].endswith("log"):
                continue
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                names = {keyword.arg for keyword in node.keywords}
                yield first.value, {name for name in names if name}, None in names


def test_every_kind_and_field_that_is_appended_is_documented() -> None:
    kinds = documented()
    seen = set()
    for kind, names, more in appended():
        assert kind in kinds
        fields, text = kinds[kind]
        assert names <= fields, kind
        assert more or "`usage` object" in text or names == fields, kind
        seen.add(kind)
    assert seen == set(kinds)


def test_a_model_call_is_documented_whole() -> None:
    assert set(canonical(Request([]))) | {"n", "digest"} == documented()["model_call"][0]


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_recordings_hold_what_is_documented(path: Path) -> None:
    kinds = documented()
    for number, event in enumerate(read_events(path)):
        assert event.seq == number
        if event.kind == "a_kind_of_the_future":
            continue
        fields, text = kinds[event.kind]
        assert set(event.data) <= fields or "object" in text, event.kind

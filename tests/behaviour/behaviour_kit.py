"""Reads case files and runs the layer over them, for real."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from attrs import define, frozen

from agent_ls.behaviour.compare import compare
from agent_ls.behaviour.model import Behaviour
from agent_ls.behaviour.place import folder_bench
from agent_ls.cancel import CancelToken
from agent_ls.guard.trees import FolderTree
from agent_ls.settings import Settings

CASES = Path(__file__).parent / "cases"
RANK = {"none": 0, "info": 0, "review": 1, "block": 2}
SETTINGS = Settings(interpreter=sys.executable)


@frozen
class Case:
    name: str
    severity: str
    kind: str
    reading: str
    before: dict[str, str]
    after: dict[str, str]


@define
class Trees:
    before: FolderTree
    after: FolderTree


def cases() -> Iterator[Case]:
    """All cases, in the order of the files."""
    for path in sorted(CASES.glob("*.txt")):
        for part in re.split(r"(?m)^#### ", path.read_text(encoding="utf-8"))[1:]:
            head, _, rest = part.partition("\n")
            name, severity, kind, reading = (word.strip() for word in head.split("|"))
            before: dict[str, str] = {}
            after: dict[str, str] = {}
            for mark, file, text in re.findall(
                r"(?ms)^(===|<<<|>>>) (\S+)\n(.*?)(?=^(?:===|<<<|>>>) |\Z)", rest
            ):
                if mark in ("===", "<<<"):
                    before[file] = text
                if mark in ("===", ">>>"):
                    after[file] = text
            yield Case(f"{path.stem}: {name}", severity, kind, reading, before, after)


def write(root: Path, before: dict[str, str], after: dict[str, str]) -> Trees:
    """Both trees as directories; `tests` and the root are on the path of the tests."""
    for side, files in (("before", before), ("after", after)):
        for path, text in {"pytest.ini": "[pytest]\npythonpath = . tests\n", **files}.items():
            place = root / side / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
    return Trees(FolderTree(root / "before"), FolderTree(root / "after"))


def run(trees: Trees, settings: Settings = SETTINGS, **options: object) -> Behaviour:
    """The layer's answer, with a handful of mutants."""
    with folder_bench(trees.before, trees.after, settings, CancelToken()) as bench:
        return compare(trees.before, trees.after, bench, **{"max_mutants": 12, **options})  # type: ignore[arg-type]

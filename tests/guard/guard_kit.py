"""Reads the case files: texts of two trees beside what the guard should say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from attrs import define, field

CASES = Path(__file__).parent / "cases"


@define
class MemoryTree:
    """A tree of files that only exists in memory."""

    files: dict[str, bytes] = field(factory=dict)

    def paths(self) -> list[str]:
        return list(self.files)

    def read(self, path: str) -> bytes | None:
        return self.files.get(path)


@define
class Case:
    name: str
    severity: str
    kind: str
    before: MemoryTree
    after: MemoryTree


def cases() -> Iterator[Case]:
    """All cases, in the order of the files."""
    for path in sorted(CASES.glob("*.txt")):
        for part in re.split(r"(?m)^#### ", path.read_text(encoding="utf-8"))[1:]:
            head, _, rest = part.partition("\n")
            name, severity, kind = (word.strip() for word in head.split("|"))
            before, after = MemoryTree(), MemoryTree()
            for mark, file, text in re.findall(
                r"(?ms)^(===|<<<|>>>) (\S+)\n(.*?)(?=^(?:===|<<<|>>>) |\Z)", rest
            ):
                if mark in ("===", "<<<"):
                    before.files[file] = text.encode()
                if mark in ("===", ">>>"):
                    after.files[file] = text.encode()
            yield Case(f"{path.stem}: {name}", severity, kind, before, after)

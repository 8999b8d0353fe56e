"""How long the static layer of the guard takes for changes of 50 and 2,000 files."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from agent_ls.guard.review import review
from agent_ls.guard.trees import FolderTree

TEST = """
import pytest
from shop.part{n} import total

@pytest.mark.parametrize("items, wanted", [([1, 2], 3), ([], 0), ([5], 5)])
def test_total(items, wanted):
    assert total(items) == wanted

class TestMore:
    def test_names(self):
        result = total([{n}])
        assert result == {n}
        assert result is not None
"""
SOURCE = (
    "def total(items):\n    result = 0\n    for item in items:\n        result += item\n    return result\n"
)


def main(count: int) -> float:
    """Seconds for a change of `count` files, half of them tests."""
    with tempfile.TemporaryDirectory() as folder:
        for side in ("before", "after"):
            for number in range(count // 2):
                test = Path(folder, side, "tests", f"test_part{number}.py")
                source = Path(folder, side, "shop", f"part{number}.py")
                for path in (test, source):
                    path.parent.mkdir(parents=True, exist_ok=True)
                note = "" if side == "before" else "\n# moved\nX = 1\n"
                test.write_text(TEST.format(n=number) + note)
                source.write_text(SOURCE + note)
        start = time.perf_counter()
        findings = review(FolderTree(Path(folder, "before")), FolderTree(Path(folder, "after")))
        assert not findings, findings
        return time.perf_counter() - start


if __name__ == "__main__":
    for number in (50, 2000):
        sys.stdout.write(f"{number} files: {main(number):.2f} s\n")

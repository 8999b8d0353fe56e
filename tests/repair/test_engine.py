"""The whole search on small projects of our own: localise, try, rank; nothing is left behind."""

from __future__ import annotations

import ast
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_ls.cancel import CancelToken
from agent_ls.errors import Cancelled
from agent_ls.repair.engine import Progress, RepairEngine, RepairResult
from agent_ls.sandbox.confine import View, choose
from agent_ls.settings import Settings
from agent_ls.testing.plan import TestPlan
from agent_ls.testing.results import Outcome, TestResult, TestRun
from agent_ls.testing.runner import TestRunner
from agent_ls.workspace.files import Workspace

BUGS = Path(__file__).parent / "data" / "bugs"
RUN = [
    "age_bracket_boundary",
    "loop_never_moves",
    "method_of_the_class",
    "shared_default_list",
]


def runner_for(root: Path, scratch: Path, kind: str = "pytest") -> TestRunner:
    scratch.mkdir()
    plan = TestPlan(kind, (sys.executable, "-m", kind), sys.executable)  # type: ignore[arg-type]
    return TestRunner(plan, choose("off"), View(root, root, scratch), Settings(per_test_timeout=2.0))


def search(
    root: Path,
    tmp_path: Path,
    *,
    kind: str = "pytest",
    budget: float = 300.0,
    cancel: CancelToken | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> RepairResult:
    runner = runner_for(root, tmp_path / "scratch", kind)
    baseline = runner.run(timeout=60)
    failing = [test.id for test in baseline.tests if test.outcome.bad]
    assert failing
    engine = RepairEngine(runner, Workspace(root), cancel=cancel or CancelToken(), on_progress=on_progress)
    before = contents(root)
    try:
        return engine.search(baseline, failing, budget_s=budget)
    finally:
        assert contents(root) == before
        assert list((tmp_path / "scratch").iterdir()) == []


def contents(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def copy_bug(name: str, root: Path) -> set[str]:
    """The buggy project at `root`; returns the accepted fixes as trees."""
    root.mkdir()
    for file in ("buggy.py", "test_buggy.py"):
        shutil.copy(BUGS / name / file, root)
    return {ast.dump(ast.parse(path.read_text("utf-8"))) for path in (BUGS / name / "fixes").iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_our_bug_is_fixed(name: str, tmp_path: Path) -> None:
    fixes = copy_bug(name, tmp_path / "project")
    result = search(tmp_path / "project", tmp_path)
    assert result.stopped == "found", result
    assert result.mode == "fork"
    assert any(ast.dump(ast.parse(patch.new_text)) in fixes for patch in result.patches)
    assert [patch.score for patch in result.patches] == sorted(
        (patch.score for patch in result.patches), reverse=True
    )
    assert result.suspects[0].path == "buggy.py"


@pytest.mark.slow
def test_import_time_fault_uses_fresh_imports(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "shop.py").write_text("RATE = 0\n\n\ndef gross(net):\n    return net + net * RATE\n", "utf-8")
    (root / "test_shop.py").write_text(
        "import shop\n\n\ndef test_doubles():\n    assert shop.gross(5) == 10\n\n\n"
        "def test_rate(monkeypatch):\n"
        "    monkeypatch.setattr(shop, 'RATE', 3)\n    assert shop.gross(5) == 20\n",
        "utf-8",
    )
    progress: list[Progress] = []
    result = search(root, tmp_path, on_progress=progress.append)
    assert result.patches[0].new_text.startswith("RATE = 1\n")
    assert progress[-1].tried > 0


@pytest.mark.slow
def test_unittest_suite(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "shapes.py").write_text("def area(a, b):\n    return a + b\n", "utf-8")
    (root / "test_shapes.py").write_text(
        "import unittest\n\nfrom shapes import area\n\n\nclass AreaTest(unittest.TestCase):\n"
        "    def test_area(self):\n        self.assertEqual(area(3, 4), 12)\n\n"
        "    def test_zero(self):\n        self.assertEqual(area(0, 0), 0)\n",
        "utf-8",
    )
    result = search(root, tmp_path, kind="unittest")
    assert result.patches[0].new_text == "def area(a, b):\n    return a * b\n"
    assert result.patches[0].fixed == ("test_shapes.AreaTest.test_area",)


@pytest.mark.slow
def test_no_fix_leaves_suspects(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "secret.py").write_text("def secret():\n    return 1\n", "utf-8")
    (root / "test_secret.py").write_text(
        "import hashlib\n\nfrom secret import secret\n\n\ndef test_secret():\n"
        "    assert hashlib.sha256(repr(secret()).encode()).hexdigest() == 'x'\n",
        "utf-8",
    )
    result = search(root, tmp_path, budget=60)
    assert result.patches == []
    assert result.stopped in ("exhausted", "budget")
    assert (result.suspects[0].path, result.suspects[0].function) == ("secret.py", "secret")


def test_other_commands_are_not_supported(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (tmp_path / "scratch").mkdir()
    plan = TestPlan("command", ("make", "check"))
    runner = TestRunner(plan, choose("off"), View(root, root, tmp_path / "scratch"), Settings())
    baseline = TestRun(("make", "check"), "failed", (TestResult("make check", Outcome.FAILED),))
    result = RepairEngine(runner, Workspace(root), cancel=CancelToken()).search(
        baseline, ["make check"], budget_s=5
    )
    assert result.patches == []
    assert "pytest or unittest" in result.stopped


@pytest.mark.slow
def test_cancel_stops_the_search(tmp_path: Path) -> None:
    root = tmp_path / "project"
    copy_bug("loop_never_moves", root)
    cancel = CancelToken()
    stopped_at: list[float] = []

    def on_progress(progress: Progress) -> None:
        if progress.phase == "search":
            stopped_at.append(time.monotonic())
            cancel.cancel()

    with pytest.raises(Cancelled):
        search(root, tmp_path, cancel=cancel, on_progress=on_progress)
    assert stopped_at

"""The QuixBugs script on a checkout of two small programs, with a fake agent."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import quixbugs
from _common import BenchmarkError

CONFTEST = """
import pytest

def pytest_addoption(parser):
    parser.addoption("--correct", action="store_true")

def pytest_configure(config):
    pytest.use_correct = config.getoption("--correct")
"""
LOADER = """
import json
import sys
from pathlib import Path

def load_json_testcases(name):
    with open(Path(__file__).parent / ".." / "json_testcases" / (name + ".json")) as lines:
        return [json.loads(line) for line in lines]
"""
TEST = """
import pytest
from load_testdata import load_json_testcases
from python_programs.double import double

@pytest.mark.parametrize("input_data,expected", load_json_testcases("double"))
def test_double(input_data, expected):
    assert double(*input_data) == expected
"""
NODE_TEST = """
from node import Node
from python_programs.leaf import leaf

def test_leaf():
    assert leaf(Node(1)) == 1
"""
RIGHT = "def double(n):\n    return 2 * n\n"
WRONG = "def double(n):\n    return 3 * n\n"
FILES = {
    "conftest.py": CONFTEST,
    "python_programs/double.py": WRONG,
    "python_programs/leaf.py": "def leaf(node):\n    return node\n",
    "python_programs/leaf_test.py": "",
    "python_programs/node.py": "",
    "correct_python_programs/double.py": RIGHT,
    "correct_python_programs/leaf.py": "def leaf(node):\n    return node.value\n",
    "correct_python_programs/node.py": "",
    "python_testcases/load_testdata.py": LOADER,
    "python_testcases/node.py": "class Node:\n    def __init__(self, value):\n        self.value = value\n",
    "python_testcases/test_double.py": TEST,
    "python_testcases/test_leaf.py": NODE_TEST,
    "json_testcases/double.json": "[[1], 2]\n[[0], 0]\n[[4], 8]\n",
}
PROGRAM = "python_programs/double.py"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(quixbugs, "environment", lambda *_: {})  # it asks five programs for their version
    root = tmp_path / "checkout"
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")
    return root


def test_a_task_holds_only_its_own_files(checkout: Path) -> None:
    assert quixbugs.programs(checkout) == ["double", "leaf"]
    assert quixbugs.task_files(checkout, "double") == [
        PROGRAM, "conftest.py", "python_testcases/test_double.py", "python_testcases/load_testdata.py",
        "json_testcases/double.json",
    ]  # fmt: skip
    assert quixbugs.task_files(checkout, "leaf") == [
        "python_programs/leaf.py", "conftest.py", "python_testcases/test_leaf.py", "python_testcases/node.py",
    ]  # fmt: skip
    with pytest.raises(BenchmarkError, match="no QuixBugs checkout"):
        quixbugs.programs(checkout / "python_programs")


def _run(checkout: Path, agent: Path, *more: str) -> dict[str, Any]:
    out = checkout.parent / "out.json"
    argv = [str(checkout), "--only", "double", "--program", str(agent), "--out", str(out)]
    assert quixbugs.main([*argv, *more]) == 0
    document: dict[str, Any] = json.loads(out.read_text())
    return document


CHEAT = {PROGRAM: "import os\nos._exit(0)\n"}
SKIP = {PROGRAM: "import pytest\ndef double(n):\n    pytest.skip('later')\n"}
WEAKENED = {"python_testcases/test_double.py": "def test_double(): pass\n"}


@pytest.mark.parametrize(
    ("patch", "verdict", "solved", "judged"),
    [
        pytest.param({PROGRAM: RIGHT}, "fixed 0", True, "passes", id="right"),
        pytest.param({PROGRAM: RIGHT, **WEAKENED}, "fixed 0", True, "passes", id="right, tests put back"),
        pytest.param({PROGRAM: RIGHT}, "handed_over 3", False, "passes", id="right, not claimed"),
        pytest.param(WEAKENED, "fixed 0", False, "fails", id="weakened tests"),
        pytest.param(CHEAT, "fixed 0", False, "fails", id="exits with 0 on import"),
        pytest.param(SKIP, "fixed 0", False, "fails", id="skips itself"),
        pytest.param({PROGRAM: None}, "fixed 0", False, "fails", id="deleted"),
        pytest.param(None, "handed_over 3", False, "no patch", id="handed over"),
    ],
)
def test_solved_means_claimed_and_independently_passing(
    checkout: Path,
    fake_agent: Path,
    monkeypatch: pytest.MonkeyPatch,
    patch: dict[str, str | None] | None,
    verdict: str,
    solved: bool,
    judged: str,
) -> None:
    if patch is not None:
        monkeypatch.setenv("FAKE_PATCH", json.dumps(patch))
    monkeypatch.setenv("FAKE_VERDICT", verdict)
    document = _run(checkout, fake_agent)
    row, totals = document["results"]["double"], document["totals"]
    assert (row["solved"], row["judged"], row["verdict"]) == (solved, judged, verdict.split()[0])
    assert row["repository_untouched"]
    assert (row["input_tokens"], row["output_tokens"], row["steps"]) == (100, 10, 4)
    assert totals["solved"] == int(solved)
    assert totals["false_claims"] == int(verdict == "fixed 0" and not solved)
    assert totals["unclaimed"] == int(verdict != "fixed 0" and judged == "passes")


def test_an_endless_program_is_cut_off(checkout: Path) -> None:
    source = b"def double(n):\n    while True: pass\n"
    assert quixbugs.judge(checkout, "double", source, sys.executable, 1)[0] == "timeout"


def test_a_checkout_whose_own_answer_fails_is_invalid(checkout: Path) -> None:
    (checkout / "correct_python_programs" / "double.py").write_text(WRONG)
    assert quixbugs.judge(checkout, "double", RIGHT.encode(), sys.executable, 60)[0] == "invalid"


@pytest.mark.parametrize(("mode", "verdict"), [("hang", "killed"), ("noise", "no_report")])
def test_a_program_without_a_report_is_a_loss(
    checkout: Path, fake_agent: Path, monkeypatch: pytest.MonkeyPatch, mode: str, verdict: str
) -> None:
    monkeypatch.setenv("FAKE_MODE", mode)
    monkeypatch.setattr("_common.GRACE", 0.5)
    row = _run(checkout, fake_agent, "--timeout", "0.5")["results"]["double"]
    assert (row["verdict"], row["solved"], row["judged"]) == (verdict, False, "no patch")


def test_options_reach_the_program(checkout: Path, fake_agent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep = checkout.parent / "keep"
    document = _run(checkout, fake_agent, "--model", "m", "--keep", str(keep), "--", "--max-steps", "9")
    (argv_file,) = keep.rglob("argv.json")
    argv = json.loads(argv_file.read_text())
    assert argv[:2] == ["fix", "--json"]
    assert argv[-4:] == ["--model", "m", "--max-steps", "9"]
    assert argv[argv.index("--test") + 1] == "python_testcases/test_double.py"
    assert document["settings"]["extra"] == ["--max-steps", "9"]
    (repository,) = keep.glob("*/double")
    held = {str(path.relative_to(repository)) for path in repository.rglob("*.*") if ".git" not in path.parts}
    assert held == set(quixbugs.task_files(checkout, "double"))


def test_resume_runs_only_what_is_missing(
    checkout: Path, fake_agent: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAKE_PATCH", json.dumps({PROGRAM: RIGHT}))
    first = _run(checkout, fake_agent)
    monkeypatch.setenv("FAKE_MODE", "noise")
    assert _run(checkout, fake_agent, "--resume")["results"] == first["results"]
    assert "solved 1/1" in capsys.readouterr().out
    with pytest.raises(BenchmarkError, match="no such program: triple"):
        quixbugs.main([str(checkout), "--only", "triple", "--program", str(fake_agent)])

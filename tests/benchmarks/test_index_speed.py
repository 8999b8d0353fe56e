"""The index's benchmark runs through and fills its table; its numbers mean nothing here."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "index_speed.py"


@pytest.mark.slow
def test_a_small_corpus(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number in range(5):
        (corpus / f"m{number}.py").write_text(f"def f{number}():\n    return {number}\n")
    peer = shutil.which("true") or sys.executable
    out = tmp_path / "out.json"
    argv = [sys.executable, str(SCRIPT), str(corpus), "--rounds", "1", "--out", str(out)]
    done = subprocess.run([*argv, "--ctags", peer, "--rg", peer], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    assert set(found["paired"]) == {
        "cold symbols",
        "cold symbols and words",
        "warm start, one question",
        "warm start, agent-ls index",
    }
    assert found["in_process"]["files"] == 5
    assert found["in_process"]["code_lines"] == 10
    for name in found["paired"]:
        assert f"| {name} |" in done.stdout

"""The benchmark scripts are no package: put their directory on the path. A fake agent plays the program."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

# Speaks the command line and the JSON report of `agent-ls fix`. FAKE_PATCH is a JSON object path -> text (or
# null: delete) to commit on a branch; FAKE_VERDICT is "verdict code"; FAKE_MODE may be "hang" or "noise".
_FAKE = """#!{python}
import json, os, pathlib, subprocess, sys, time
if "--version" in sys.argv:
    print("agent-ls 0.0 fake")
    sys.exit()
mode = os.environ.get("FAKE_MODE", "")
if mode == "hang":
    time.sleep(60)
if mode == "noise":
    print("Traceback: not a report")
    sys.exit(1)
repo = sys.argv[sys.argv.index("--repo") + 1]
state = pathlib.Path(os.environ["AGENT_LS_STATE_DIR"])
state.mkdir(parents=True)
(state / "argv.json").write_text(json.dumps(sys.argv[1:]))
def git(where, *args):
    argv = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(where), *args]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()
patch = json.loads(os.environ.get("FAKE_PATCH", "null"))
commit = None
if patch is not None:
    copy = state / "copy"
    git(repo, "worktree", "add", "-q", "-b", "agent-ls/fake", str(copy))
    for path, text in patch.items():
        (copy / path).unlink(missing_ok=True)
        if text is not None:
            (copy / path).write_text(text)
    git(copy, "add", "-A")
    git(copy, "commit", "-q", "--allow-empty", "-m", "fake")
    commit = git(copy, "rev-parse", "HEAD")
verdict, code = os.environ["FAKE_VERDICT"].split()
usage = {{"model": "fake", "model_calls": 2, "tool_calls": 3, "input_tokens": 100, "output_tokens": 10}}
print(json.dumps({{"schema": 1, "verdict": verdict, "exit_code": int(code), "commit": commit, "usage": usage,
                  "steps": 4, "files_changed": sorted(patch or [])}}))
sys.exit(int(code))
"""


@pytest.fixture
def fake_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An executable that stands in for agent-ls, steered by FAKE_* variables."""
    path = tmp_path / "bin" / "agent-ls"
    path.parent.mkdir()
    path.write_text(_FAKE.format(python=sys.executable), "utf-8")
    path.chmod(0o755)
    for name in ("FAKE_MODE", "FAKE_PATCH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FAKE_VERDICT", "fixed 0")
    return path

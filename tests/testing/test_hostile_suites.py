"""Suites that crash, hang, flood and attack: the host stays as it was and the results so far are kept."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

import psutil
import pytest
from testing_kit import git, outcomes, runner_for, write

from agent_ls.cancel import CancelToken
from agent_ls.testing.results import Outcome, TestResult

BEFORE = "def test_first(): pass\n"

# Code of the second test -> (outcome of the second test, part of its message)
ENDINGS = {
    "os._exit": ("import os\n    os._exit(0)", "exited with code 0"),
    "segfault": ("import ctypes\n    ctypes.string_at(0)", "SIGSEGV"),
    "kill itself": ("import os\n    os.kill(os.getpid(), 9)", "SIGKILL"),
    "abort": ("import os\n    os.abort()", "SIGABRT"),
    "interrupt": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
}


@pytest.mark.parametrize(("code", "message"), ENDINGS.values(), ids=ENDINGS.keys())
def test_a_process_that_ends_early_leaves_results(tmp_path: Path, code: str, message: str) -> None:
    suite = f"{BEFORE}def test_second():\n    {code}\ndef test_third(): pass\n"
    run = runner_for(tmp_path, {"test_a.py": suite}).run()
    assert outcomes(run) == {"test_a.py::test_first": "passed", "test_a.py::test_second": "error"}
    assert message in (run.tests[1].message or "")
    assert run.outcome == "failed"
    assert run.truncated


HANGS = {
    "loop": "while True: pass",
    "sleep": "import time\n    time.sleep(600)",
    "lock": "import threading\n    lock = threading.Lock(); lock.acquire(); lock.acquire()",
    # the sum is long, so that no interruption comes between one try and the next
    "swallows all": "while True:\n        try: sum(range(100_000))\n        except BaseException: pass",
    "waits for a child": "import subprocess\n    subprocess.run(['sleep', '600'])",
}


def test_a_deadline_per_test_lets_the_others_run(tmp_path: Path) -> None:
    names = [name for name in HANGS if name != "swallows all"]
    suite = BEFORE + "".join(
        f"def test_{number}():\n    {HANGS[name]}\n" for number, name in enumerate(names)
    )
    runner = runner_for(tmp_path, {"test_a.py": suite + "def test_last(): pass\n"})
    run = runner.run(per_test_timeout=0.5, trace=True)
    assert [test.outcome for test in run.tests] == [Outcome.PASSED, *[Outcome.FAILED] * 4, Outcome.PASSED]
    assert {test.error_type for test in run.tests[1:5]} == {"TestTimeout"}
    assert not run.truncated


@pytest.mark.slow
def test_a_test_that_swallows_every_interruption_ends_the_process(tmp_path: Path) -> None:
    suite = f"{BEFORE}def test_second():\n    {HANGS['swallows all']}\ndef test_third(): pass\n"
    run = runner_for(tmp_path, {"test_a.py": suite}).run(per_test_timeout=0.2)
    assert outcomes(run) == {"test_a.py::test_first": "passed", "test_a.py::test_second": "failed"}
    assert run.tests[1].error_type == "TestTimeout"
    assert "It hung at" in (run.tests[1].message or "")
    assert run.truncated


def test_the_deadline_of_a_run_keeps_what_is_known(tmp_path: Path) -> None:
    suite = f"{BEFORE}def test_second():\n    {HANGS['sleep']}\n"
    run = runner_for(tmp_path, {"test_a.py": suite}).run(timeout=4)
    assert (run.outcome, run.truncated) == ("timeout", True)
    assert outcomes(run) == {"test_a.py::test_first": "passed", "test_a.py::test_second": "error"}
    assert "stopped after" in (run.tests[1].message or "")


def test_cancel_stops_a_run_and_results_stream(tmp_path: Path) -> None:
    suite = f"{BEFORE}def test_second():\n    {HANGS['sleep']}\n"
    token = CancelToken()
    seen: list[TestResult] = []

    def on_result(result: TestResult) -> None:
        seen.append(result)
        threading.Thread(target=token.cancel).start()

    run = runner_for(tmp_path, {"test_a.py": suite}).run(cancel=token, on_result=on_result)
    assert [test.id for test in seen] == ["test_a.py::test_first"]
    assert run.truncated
    assert run.outcome == "timeout"


DAEMON = """
    import os, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    time.sleep(0.1)
"""


@pytest.mark.parametrize("mode", ["auto", "off"])
def test_daemons_do_not_outlive_the_run(tmp_path: Path, mode: str) -> None:
    runner = runner_for(tmp_path, {"test_a.py": f"{BEFORE}def test_second():{DAEMON}"}, mode=mode)
    run = runner.run(timeout=60)
    assert (run.outcome, len(run.tests), run.truncated) == ("passed", 2, False)
    marker = str(runner.view.scratch)
    alive = [p for p in psutil.process_iter(["environ"]) if marker in str(p.info["environ"])]
    assert alive == []


def test_a_fork_bomb_is_ended_by_the_deadline(tmp_path: Path) -> None:
    bomb = "import os, time\n    for _ in range(8): os.fork()\n    time.sleep(600)"
    run = runner_for(tmp_path, {"test_a.py": f"{BEFORE}def test_second():\n    {bomb}\n"}).run(timeout=4)
    assert run.outcome == "timeout"
    assert outcomes(run)["test_a.py::test_first"] == "passed"


ATTACKS = """
import os, pathlib, shutil, socket, subprocess, sys
REPO, HOME, VICTIM, PARENT = {repo!r}, {home!r}, {victim!r}, {parent}

def test_print(capfd):
    with capfd.disabled():
        for _ in range(200): os.write(1, b"x" * 1_000_000)
def test_delete_everything():
    for name in os.listdir("."):
        shutil.rmtree(name, ignore_errors=True)
        if os.path.isfile(name) and name != ".git": os.remove(name)
def test_rewrite_repository():
    for name in ("f.txt", "src/a.py"):
        os.makedirs(os.path.dirname(os.path.join(REPO, name)), exist_ok=True)
        open(os.path.join(REPO, name), "w").write("evil")
def test_git():
    for args in ("commit -qam evil", "branch evil", "config user.name evil", "gc", "tag evil"):
        subprocess.run(["git", *args.split()], cwd=REPO)
def test_outside():
    for place in (VICTIM, "/etc/agent-ls-victim", HOME + "/victim", "/usr/lib/agent-ls-victim"):
        try: open(place, "w").write("evil")
        except OSError: pass
        try: os.remove(place)
        except OSError: pass
def test_signal():
    for pid in {{PARENT, os.getppid()}} - {{1}}:
        try: os.kill(pid, 9)
        except OSError: pass
def test_secrets():
    found = [str(p) for p in pathlib.Path(HOME).rglob("*") if "SECRET" in p.name or p.name == "id_rsa"]
    assert found == []
    assert "SECRET" not in str(dict(os.environ))
def test_results_file():
    path = os.environ["AGENT_LS_RESULTS"]
    open(path, "a").write('not json\\n[1]\\n{{"kind": "result"}}\\n' + "\\0" * 1000 + "\\n")
def test_scratch():
    scratch = pathlib.Path(os.environ["AGENT_LS_RESULTS"]).parent
    for name in ("a", "b"): os.symlink(VICTIM, scratch / name)
    os.mkfifo(scratch / "fifo")
def test_disk():
    with open(os.path.join(os.environ["TMPDIR"], "big"), "wb") as file:
        for _ in range(50): file.write(b"x" * 1_000_000)
def test_last(): pass
"""


def digest(folder: Path) -> str:
    sha = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        sha.update(str(path.relative_to(folder)).encode())
        if path.is_file() and not path.is_symlink():
            sha.update(path.read_bytes())
    return sha.hexdigest()


def test_attacks_leave_the_host_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    repo = home / "project"
    write(repo, {"f.txt": "mine", "src/a.py": "A = 1\n"})
    write(home, {".ssh/id_rsa": "SECRET", ".aws/SECRET": "SECRET"})
    victim = write(tmp_path / "elsewhere", {"victim": "mine"}) / "victim"
    git(repo, "init", "-q")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "first")
    git(repo, "worktree", "add", "-q", "--detach", str(tmp_path / "state" / "worktree"))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("MY_API_KEY", "SECRET")
    names = {"repo": str(repo), "home": str(home), "victim": str(victim), "parent": os.getpid()}
    (tmp_path / "state" / "repo").symlink_to(repo)
    runner = runner_for(tmp_path / "state", {"test_a.py": ATTACKS.format(**names)})
    before = [digest(folder) for folder in (home, victim.parent, runner.view.worktree)]
    run = runner.run(timeout=120)
    assert set(outcomes(run).values()) == {"passed"}, run.output
    assert len(run.tests) == 11
    assert not run.truncated
    assert len(run.output) < 25_000
    assert [digest(folder) for folder in (home, victim.parent, runner.view.worktree)] == before
    assert not Path("/etc/agent-ls-victim").exists()
    assert not Path("/usr/lib/agent-ls-victim").exists()
    assert list(runner.view.scratch.iterdir()) == []

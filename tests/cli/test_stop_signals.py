"""Ctrl-C where something outside hangs, and twice; locales that can't name the files."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from cli_kit import PROGRAM, agent_ls, fingerprint, git, make_repo

FILES = {"calc.py": "def double(n):\n    return n + 2\n", "test_calc.py": "def test_it():\n    assert 0\n"}
HANGS = (
    "#!/bin/sh\nfor word; do\n  if [ \"$word\" = '{word}' ]; then echo $$ >{mark}; exec sleep 600; fi\ndone\n"
)
STUBBORN = """import os, signal, time
def test_it():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.rename(open_it(), os.environ["HOME"] + "/mark")
    time.sleep(600)
def open_it():
    name = os.environ["HOME"] + "/new"
    with open(name, "w") as file:
        file.write(str(os.getpid()))
    return name
"""


def start(cwd: Path, *arguments: str, **env: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*PROGRAM, "fix", "--text", "it is wrong", "--json", *arguments],
        cwd=cwd,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def pid_in(mark: Path, process: subprocess.Popen[bytes]) -> int:
    """The pid that is written to `mark` as soon as what hangs there hangs."""
    while not (mark.exists() and mark.read_text().strip()):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    return int(mark.read_text())


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.slow
@pytest.mark.parametrize(("program", "word"), [("bwrap", "--unshare-net"), ("git", "read-tree")])
@pytest.mark.parametrize("whole_group", [False, True], ids=["alone", "group"])
def test_a_stop_where_a_program_hangs(program: str, word: str, whole_group: bool, tmp_path: Path) -> None:
    root = make_repo(tmp_path / "repo", FILES)
    before = fingerprint(root)
    mark, folder = tmp_path / "mark", tmp_path / "bin"
    folder.mkdir()
    real = shutil.which(program) or "false"
    (folder / program).write_text(HANGS.format(word=word, mark=mark) + f'exec {real} "$@"\n')
    (folder / program).chmod(0o755)
    process = start(root, PATH=f"{folder}{os.pathsep}{os.environ['PATH']}")
    pid = pid_in(mark, process)
    (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert gone(pid)
    assert fingerprint(root) == before
    assert git(root, "for-each-ref", "refs/heads/agent-ls/") == ""
    assert agent_ls("sessions", "--json", cwd=root).document()["sessions"] == []


@pytest.mark.slow
def test_a_second_ctrl_c_leaves_no_process_and_clean_does_the_rest(tmp_path: Path) -> None:
    root = make_repo(tmp_path / "repo", {"test_it.py": STUBBORN})
    before = fingerprint(root)
    process = start(root, "--no-sandbox", HOME=str(tmp_path))
    pid = pid_in(tmp_path / "mark", process)
    for _ in range(2):
        os.kill(process.pid, signal.SIGINT)
        time.sleep(0.05)
    process.communicate(timeout=60)
    assert process.returncode == 130
    end = time.monotonic() + 30
    while not gone(pid) and time.monotonic() < end:
        time.sleep(0.02)
    assert gone(pid)
    assert len(agent_ls("clean", "--all", "--json", cwd=root).document()["removed"]) == 1
    assert git(root, "for-each-ref", "refs/heads/agent-ls/") == ""
    assert not (root / ".git/worktrees").exists()
    left = fingerprint(root)
    assert {name: left.get(name) for name in before} == before


@pytest.mark.parametrize("utf8", ["", "0"], ids=["as Python likes", "never UTF-8"])
def test_the_locale_does_not_hide_files(utf8: str, tmp_path: Path) -> None:
    root = make_repo(tmp_path / "repö 日本", {"ü.py": "needle = 1\n"})
    found = agent_ls("search", "needle", "--json", cwd=root, LC_ALL="C", PYTHONUTF8=utf8)
    assert found.code == 0, found.stderr
    assert [hit["path"] for hit in found.document()["hits"]] == ["ü.py"]

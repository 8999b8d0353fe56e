"""The repository under repair is never imported by our own process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_kit import make_repo

TRAP = "raise SystemExit('the project was imported by agent-ls')\n"
OWN_MODULES = {
    "click.py": TRAP,
    "jinja2/__init__.py": TRAP,
    "attrs/__init__.py": TRAP,
    "attr.py": TRAP,
    "httpx.py": TRAP,
    "rich/__init__.py": TRAP,
    "tree_sitter.py": TRAP,
    "psutil.py": TRAP,
    "difflib.py": TRAP,
    "tomllib/__init__.py": TRAP,
    "tempfile.py": TRAP,
    "importlib_metadata.py": TRAP,
    "calc.py": "def double(n):\n    return n * 2\n",
    "test_calc.py": "from calc import double\n\n\ndef test_two():\n    assert double(2) == 4\n",
}
SCRIPT = Path(sys.executable).with_name("agent-ls")
PROGRAMS = {
    "script": [str(SCRIPT)],
    "module": [sys.executable, "-m", "agent_ls"],
}
COMMANDS = [
    ["--version"],
    ["--help"],
    ["search", "double", "--json"],
    ["symbols", "double"],
    ["sessions"],
    ["fix", "--text", ""],
    ["fix", "--issue", "1", "--model", "openai:x"],
]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("search_path", [None, ".", "ABSOLUTE", "sub:", ":other"])
def test_modules_of_the_project_stay_outside(program: str, search_path: str | None, tmp_path: Path) -> None:
    if program == "script" and not SCRIPT.exists():
        pytest.skip("agent-ls is not installed beside this interpreter")
    root = make_repo(tmp_path / "repo", OWN_MODULES)
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if search_path is not None:
        env["PYTHONPATH"] = str(root) if search_path == "ABSOLUTE" else search_path
    for arguments in COMMANDS:
        if search_path is not None and program == "module" and arguments != ["--version"]:
            continue  # one start is enough: Python's own start takes most of the time
        done = subprocess.run(
            [*PROGRAMS[program], *arguments],
            cwd=root,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert "imported by agent-ls" not in done.stdout + done.stderr, arguments
        assert done.returncode == (2 if arguments[0] == "fix" else 0), done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_current_folder_that_is_gone(program: str, tmp_path: Path) -> None:
    if program == "script" and not SCRIPT.exists():
        pytest.skip("agent-ls is not installed beside this interpreter")
    for arguments, code in ((["--version"], 0), (["sessions"], 0), (["fix", "--text", "x"], 2)):
        gone = tmp_path / "gone"
        gone.mkdir()
        start = "import os, sys; _, d, *argv = sys.argv; os.chdir(d); os.rmdir(d); os.execv(argv[0], argv)"
        done = subprocess.run(
            [sys.executable, "-I", "-c", start, str(gone), *PROGRAMS[program], *arguments],
            env={**os.environ, "PYTHONPATH": str(gone)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr

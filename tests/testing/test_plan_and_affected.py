"""Which command and interpreter are chosen and why; which tests a change can reach."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from testing_kit import write

from agent_ls.errors import EnvBroken, UsageError
from agent_ls.settings import Settings
from agent_ls.testing._commands import recognise
from agent_ls.testing._interpreter import find_interpreter
from agent_ls.testing.affected import affected_tests
from agent_ls.testing.plan import find_plan
from agent_ls.testing.results import Outcome, TestResult, TestRun

COMMANDS = [
    ("pytest -q tests", "pytest", None, ("-q", "tests")),
    ("py.test", "pytest", None, ()),
    ("python -m pytest -x", "pytest", "python", ("-x",)),
    ("python3.12 -W error -X dev -m pytest", "pytest", "python3.12", ()),
    ("/v/bin/pytest a", "pytest", "/v/bin/python", ("a",)),
    ("uv run pytest -q", "pytest", None, ("-q",)),
    ("uv run --frozen --group dev python -m pytest", "pytest", None, ()),
    ("poetry run python -m unittest discover", "unittest", None, ("discover",)),
    ("python -m unittest", "unittest", "python", ()),
    ("python -m nose", "command", None, None),
    ("python tests/run.py", "command", None, None),
    ("npm test", "command", None, None),
    ("make test", "command", None, None),
    ("cargo test", "command", None, None),
    ("uv run", "command", None, None),
]


@pytest.mark.parametrize(("command", "kind", "interpreter", "arguments"), COMMANDS)
def test_commands_are_recognised(
    command: str, kind: str, interpreter: str | None, arguments: tuple[str, ...] | None
) -> None:
    got = recognise(command.split())
    assert got.kind == kind
    if arguments is not None:
        assert (got.interpreter, got.arguments) == (interpreter, arguments)


CASE = "import unittest\nclass C(unittest.TestCase):\n    def test_a(self): pass\n"
PROJECTS: dict[str, tuple[dict[str, str], str]] = {
    "pyproject": ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, "pyproject.toml"),
    "pytest.ini": ({"pytest.ini": "[pytest]\n"}, "pytest.ini"),
    "setup.cfg": ({"setup.cfg": "[tool:pytest]\n"}, "setup.cfg"),
    "tox.ini": ({"tox.ini": "[tox]\n[pytest]\n"}, "tox.ini"),
    "conftest": ({"tests/conftest.py": "", "tests/test_a.py": CASE}, "conftest.py"),
    "import": ({"tests/a_test.py": "import pytest\n"}, "uses pytest"),
    "plain functions": ({"test_a.py": "def test_a(): pass\n"}, "plain functions"),
    "unittest": ({"test_a.py": CASE}, "unittest cases"),
    "broken configuration": (
        {"pyproject.toml": "[[[", "setup.cfg": "nonsense", "test_a.py": CASE},
        "unittest cases",
    ),
}


@pytest.mark.parametrize(("files", "reason"), PROJECTS.values(), ids=PROJECTS.keys())
def test_detection(tmp_path: Path, files: dict[str, str], reason: str) -> None:
    plan = find_plan(write(tmp_path, files), tmp_path, Settings(interpreter=sys.executable))
    assert plan.kind == "pytest"
    assert plan.argv == (sys.executable, "-m", "pytest")
    assert reason in plan.reasons[0]
    assert Path(sys.base_prefix) in plan.visible


def test_no_tests_is_said_with_a_remedy(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "", "node_modules/x/test_a.py": "def test_a(): pass", ".hidden/test_b.py": ""})
    with pytest.raises(EnvBroken, match=r"no tests found(.|\n)*--test-command"):
        find_plan(tmp_path, tmp_path, Settings(interpreter=sys.executable))


def fake_venv(folder: Path, pytest_there: bool = False) -> Path:
    import venv

    venv.EnvBuilder(symlinks=True).create(folder)
    if pytest_there:
        site = next(folder.glob("lib/python*/site-packages"))
        here = next(entry for entry in sys.path if entry.endswith("site-packages"))
        (site / "ours.pth").write_text(here + "\n")
    return folder


def test_without_pytest_unittest_cases_run_with_unittest(tmp_path: Path) -> None:
    fake_venv(tmp_path / ".venv")
    plan = find_plan(write(tmp_path, {"test_a.py": CASE}), tmp_path, Settings())
    assert plan.kind == "unittest"
    assert plan.argv[1:] == ("-m", "unittest")
    assert "pytest is not installed" in " ".join(plan.reasons)
    write(tmp_path, {"test_b.py": "def test_b(): pass\n"})
    with pytest.raises(EnvBroken, match=r"pytest is not installed(.|\n)*-m pip install pytest"):
        find_plan(tmp_path, tmp_path, Settings())


def environment(tmp_path: Path, name: str) -> Path:
    """Not a working one: finding reads files only."""
    folder = tmp_path / name
    write(folder, {"pyvenv.cfg": "home = /usr/bin\n"})
    (folder / "bin").mkdir()
    (folder / "bin/python").symlink_to(sys.executable)
    return folder


def test_interpreters_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step adds a stronger choice; it wins over all before."""
    repo = tmp_path / "repo"
    write(repo, {"pyproject.toml": "[project]\nname = 'My-App'\n", "poetry.lock": ""})
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "XDG_DATA_HOME", "XDG_CACHE_HOME", "POETRY_VIRTUALENVS_PATH"):
        monkeypatch.delenv(name, raising=False)
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "python3").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(bin_folder))
    assert find_interpreter(repo, None, None).path == str(bin_folder / "python3")

    tox = environment(repo, ".tox/py311")
    assert find_interpreter(repo, None, None).venv == tox
    hatch = environment(home, ".local/share/hatch/env/virtual/My-App/abc/My-App")
    assert find_interpreter(repo, None, None).venv == hatch
    from agent_ls.testing._interpreter import _poetry_name

    poetry = environment(home, f".cache/pypoetry/virtualenvs/{_poetry_name('My-App', repo)}-py3.11")
    assert find_interpreter(repo, None, None).venv == poetry
    local = environment(repo, ".venv")
    assert find_interpreter(repo, None, None).venv == local
    active = environment(tmp_path, "active")
    monkeypatch.setenv("VIRTUAL_ENV", str(active))
    found = find_interpreter(repo, None, None)
    assert (found.venv, found.path) == (active, str(active / "bin/python"))
    assert "is active" in found.reason
    named = environment(tmp_path, "named")
    assert find_interpreter(repo, None, str(named / "bin/python")).venv == named
    assert find_interpreter(repo, ".venv", str(named / "bin/python")).venv == local
    with pytest.raises(UsageError, match="not an executable"):
        find_interpreter(repo, "no/such/python", None)


def test_our_own_environment_is_not_the_projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    environment(tmp_path, "venv")
    assert find_interpreter(tmp_path, None, None).venv == tmp_path / "venv"


def test_an_interpreter_that_does_not_work_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no such library >&2\nexit 127\n")
    broken.chmod(0o755)
    write(tmp_path, {"test_a.py": CASE})
    with pytest.raises(EnvBroken, match="does not work: no such library"):
        find_plan(tmp_path, tmp_path, Settings(interpreter=str(broken)))
    assert os.access(broken, os.X_OK)


TREE = {
    "src/app/__init__.py": "",
    "src/app/core.py": "X = 1\n",
    "src/app/util.py": "from . import core\n",
    "src/app/deep/__init__.py": "",
    "src/app/deep/leaf.py": "from ..util import y\n",
    "src/app/lonely.py": "",
    "src/app/plugins.py": "import importlib\ndef load(n): return importlib.import_module(n)\n",
    "tests/conftest.py": "import app.lonely\n",
    "tests/test_core.py": "import app.core\n",
    "tests/test_util.py": "from app import util\n",
    "tests/test_leaf.py": "from app.deep.leaf import z\n",
    "tests/test_mock.py": "def test(m): m.patch('app.core.X')\n",
    "tests/test_cli.py": "import subprocess\n",
    "tests/test_plugins.py": "import app.plugins\n",
    "tests/test_helped.py": "from helpers import h\n",
    "tests/helpers.py": "import app.core\n",
    "tests/sub/test_none.py": "import json\n",
}
ALL = sorted(name for name in TREE if "/test_" in name)
REACH = [
    ("src/app/core.py", "core util leaf mock cli plugins helped"),
    ("src/app/util.py", "util leaf cli plugins"),
    ("src/app/deep/leaf.py", "leaf cli plugins"),
    ("tests/test_core.py", "core cli"),
    ("tests/helpers.py", "helped cli"),
    ("tests/conftest.py", "core util leaf mock cli plugins helped none"),
    ("src/app/new_module.py", "cli plugins"),
]


def full_run(source: str = "pytest") -> TestRun:
    tests = tuple(TestResult(f"{name}::test_x", Outcome.PASSED, file=name) for name in ALL)
    return TestRun(("pytest",), "passed", tests, source)  # type: ignore[arg-type]


@pytest.mark.parametrize(("changed", "expected"), REACH)
def test_reach(tmp_path: Path, changed: str, expected: str) -> None:
    got = affected_tests(write(tmp_path, TREE), [changed], full_run())
    assert got is not None
    names = {name.partition("::")[0].rpartition("test_")[2].removesuffix(".py") for name in got}
    lonely = {"core", "util", "leaf", "mock", "cli", "plugins", "helped", "none"}
    assert names == set(expected.split()) & lonely


def test_a_package_file_reaches_all_below_it(tmp_path: Path) -> None:
    got = affected_tests(write(tmp_path, TREE), ["src/app/__init__.py"], full_run())
    assert got is not None
    # conftest imports the package, and every test below depends on conftest.
    assert {name.partition("::")[0] for name in got} == set(ALL)


def test_coverage_comes_first_and_widens(tmp_path: Path) -> None:
    root = write(tmp_path, {**TREE, "tests/conftest.py": ""})
    coverage = {"tests/sub/test_none.py::test_x": {"src/app/util.py": frozenset({1})}}
    got = affected_tests(root, ["src/app/util.py"], full_run(), coverage)
    assert got is not None
    assert got[0] == "tests/sub/test_none.py::test_x"
    assert "tests/test_core.py::test_x" not in got


@pytest.mark.parametrize(
    ("changed", "source"),
    [
        (["data.json"], "pytest"),
        (["src/app/core.py", "pyproject.toml"], "pytest"),
        (["src/app/core.py"], "junit"),
    ],
)
def test_when_it_cannot_be_told_everything_runs(tmp_path: Path, changed: list[str], source: str) -> None:
    assert affected_tests(write(tmp_path, TREE), changed, full_run(source)) is None


def test_unittest_ids_and_unparsable_files(tmp_path: Path) -> None:
    files = {
        "mod.py": "",
        "tests/__init__.py": "",
        "tests/test_x.py": "import mod\n",
        "tests/test_y.py": "def (:\n",
    }
    tests = (
        TestResult("tests.test_x.C.test_a", Outcome.PASSED),
        TestResult("tests.test_y", Outcome.ERROR),
        TestResult("elsewhere.C.test_a", Outcome.PASSED),
    )
    run = TestRun(("x",), "failed", tests, "unittest")
    got = affected_tests(write(tmp_path, files), ["mod.py"], run)
    # What can't be placed or parsed is run.
    assert got == ["tests.test_x.C.test_a", "tests.test_y", "elsewhere.C.test_a"]

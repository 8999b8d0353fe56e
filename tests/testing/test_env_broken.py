"""Runs that say nothing about the code are told from runs that do, with cause and remedy."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from testing_kit import outcomes, runner_for

OK = "def test_a(): pass\n"
INI = "[pytest]\n"

# name -> files, extra arguments of pytest, pattern of the problem, pattern of the remedy
BROKEN: dict[str, tuple[dict[str, str], tuple[str, ...], str, str]] = {
    "nothing collected": ({"test_a.py": "x = 1\n"}, (), "no tests were collected", "testpaths"),
    "missing module": (
        {"test_a.py": "import nowhere_lib\n", "test_b.py": "from nowhere_lib.sub import x\n"},
        (),
        "the module nowhere_lib is missing",
        "pip install nowhere_lib",
    ),
    "project not installed": (
        {"lib/thing/__init__.py": "", "tests/test_a.py": "import thing\n"},
        (),
        "the module thing is missing",
        r"-e \.",
    ),
    "missing option's plugin": ({"test_a.py": OK}, ("--cov=x",), "options.*--cov=x", "pytest-cov"),
    "required plugin": (
        {"test_a.py": OK, "pytest.ini": INI + "required_plugins = pytest-nowhere\n"},
        (),
        "plugins are missing: pytest-nowhere",
        "pip install pytest-nowhere",
    ),
    "plugin by name": (
        {"test_a.py": OK},
        ("-p", "nowhere_plugin"),
        "nowhere_plugin",
        "pip install nowhere_plugin",
    ),
    "too old": ({"test_a.py": OK, "pytest.ini": INI + "minversion = 99.0\n"}, (), "too old", "-U pytest"),
    "strict unknown setting": (
        {"test_a.py": OK, "pytest.ini": INI + "nowhere_option = 1\naddopts = --strict-config\n"},
        (),
        "nowhere_option",
        "plugin",
    ),
    "wrong interpreter": (
        {"test_a.py": "print 'a'\n", "test_b.py": "exec 'b'\n"},
        (),
        "syntax error.*wrong Python",
        "interpreter",
    ),
    "conftest": (
        {"test_a.py": OK, "conftest.py": "import nowhere_lib\n"},
        (),
        "conftest",
        "pip install nowhere_lib",
    ),
    "hook that fails": (
        {"test_a.py": OK, "conftest.py": "def pytest_collection_modifyitems(): 1 / 0\n"},
        (),
        "pytest failed internally.*ZeroDivisionError",
        "doctor",
    ),
    "dies while importing": (
        {"test_a.py": "import os\nos._exit(9)\n"},
        (),
        "without a result|does not work",
        "doctor",
    ),
}


@pytest.mark.parametrize(("files", "arguments", "problem", "remedy"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_environments(
    tmp_path: Path, files: dict[str, str], arguments: tuple[str, ...], problem: str, remedy: str
) -> None:
    run = runner_for(tmp_path, files, command=(sys.executable, "-m", "pytest", *arguments)).run()
    assert run.outcome == "env_broken", run.output
    assert re.search(problem, run.problem or "", re.DOTALL), run.problem
    assert re.search(remedy, run.remedy or ""), run.remedy


CODE: dict[str, dict[str, str]] = {
    "a name that does not exist yet": {"mod.py": "", "test_a.py": "from mod import new_function\n"},
    "a submodule that does not exist yet": {"pkg/__init__.py": "", "test_a.py": "import pkg.later\n"},
    "a syntax error in the code": {
        "mod.py": "def f(:\n",
        "test_a.py": "import mod\n",
        "test_b.py": "import mod\n",
    },
    "an exception while importing": {"mod.py": "1 / 0\n", "test_a.py": "import mod\n"},
    "one broken module among others": {"test_a.py": "import nowhere_lib\n", "test_b.py": OK},
}


@pytest.mark.parametrize("files", CODE.values(), ids=CODE.keys())
def test_faults_of_the_code_are_not_the_environments(tmp_path: Path, files: dict[str, str]) -> None:
    run = runner_for(tmp_path, files, command=(sys.executable, "-m", "pytest")).run()
    assert run.outcome == "failed"
    assert outcomes(run)["test_a.py"] == "error"
    assert run.tests[0].stack or run.tests[0].message


@pytest.mark.parametrize(
    ("command", "outcome", "source", "expected"),
    [
        (("true",), "passed", "exit-code", {"true": "passed"}),
        (("sh", "-c", "echo broken; exit 3"), "failed", "exit-code", {"sh -c echo broken; exit 3": "failed"}),
        (("no-such-program",), "env_broken", "exit-code", {}),
        (
            ("sh", "-c", "cp report.xml {junit}; exit 1"),
            "failed",
            "junit",
            {"c.T::a": "passed", "c.T::b": "failed", "c.T::c": "skipped", "d::e": "error"},
        ),
        (("tee", "{junit}"), "passed", "exit-code", {"tee {junit}": "passed"}),
    ],
)
def test_other_commands(
    tmp_path: Path, command: tuple[str, ...], outcome: str, source: str, expected: dict[str, str]
) -> None:
    report = """<testsuites><testsuite name="s"><testcase classname="c.T" name="a" time="0.5"/>
    <testcase classname="c.T" name="b"><failure message="1 != 2" type="E">where</failure></testcase>
    <testcase classname="c.T" name="c"><skipped/></testcase></testsuite>
    <testsuite name="t"><testcase classname="d" name="e"><error>boom</error></testcase></testsuite>
    </testsuites>"""
    run = runner_for(tmp_path, {"report.xml": report}, command=command).run()
    assert (run.outcome, run.source) == (outcome, source)
    assert outcomes(run) == expected
    if outcome == "env_broken":
        assert run.problem
        assert run.remedy
    if source == "junit":
        assert run.tests[1].message == "1 != 2\nwhere"
        assert run.tests[0].duration_s == 0.5


def test_a_command_that_hangs_is_stopped(tmp_path: Path) -> None:
    run = runner_for(tmp_path, {}, command=("sleep", "600")).run(timeout=0.5)
    assert (run.outcome, run.truncated, outcomes(run)) == ("timeout", True, {"sleep 600": "failed"})

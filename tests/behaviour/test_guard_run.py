"""`agent-ls guard --run`: what is printed, what is left alone, and what can't be checked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from behaviour_kit import run, write

from agent_ls.cli.app import run as cli
from agent_ls.settings import Settings, state_dir

SHOP = "def total(prices):\n    return sum(prices)\n"
TEST = "from shop import total\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
WEAK = TEST.replace("== 3", "in range(9)")
INI = "[pytest]\npythonpath = .\n"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_LS_INTERPRETER", sys.executable)


def _git(root: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout


def _state(root: Path) -> dict[str, object]:
    """Everything of a repository that must not change."""
    files = {
        path.relative_to(root).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(root.rglob("*"))
        if path.is_file() and "objects" not in path.parts
    }
    return {"files": files, "worktrees": _git(root, "worktree", "list"), "refs": _git(root, "for-each-ref")}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A commit; the file on disk has a weaker test."""
    root = tmp_path / "repo"
    (root / "tests").mkdir(parents=True)
    for path, text in {"shop.py": SHOP, "tests/test_shop.py": TEST, "pytest.ini": INI}.items():
        (root / path).write_text(text)
    _git(root, "init", "-q")
    _git(root, "add", "-A")
    _git(root, "commit", "-qm", "x")
    (root / "tests" / "test_shop.py").write_text(WEAK)
    _git(root, "status")  # writes the index once
    return root


@pytest.mark.slow
def test_json_over_a_repository_that_stays_as_it_is(
    repository: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = _state(repository)
    assert cli(["guard", "HEAD", "--run", "--json", "--repo", str(repository)]) == 5
    document = json.loads(capfd.readouterr().out)
    assert document["layers"] == {"static": "checked", "behaviour": "checked"}
    assert document["not_checked"] == []
    kinds = {finding["kind"]: finding for finding in document["findings"]}
    found = kinds["mutant-survives"]
    assert found["severity"] == "block"
    assert found["before"] == "return sum(prices)"
    assert found["after"] != found["before"]
    assert found["tests"] == ["tests/test_shop.py::test_total"]
    assert _state(repository) == before
    assert not list((state_dir() / "guard").iterdir())


def test_what_is_staged_is_read_and_run_without_a_trace(
    repository: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _git(repository, "add", "-A")
    before = _state(repository)
    assert cli(["guard", "--staged", "--run", "--json", "--budget", "1", "--repo", str(repository)]) == 5
    assert json.loads(capfd.readouterr().out)["layers"]["static"] == "checked"
    assert _state(repository) == before
    assert not list((state_dir() / "guard").iterdir())


def test_without_run_the_layer_is_not_checked(repository: Path, capfd: pytest.CaptureFixture[str]) -> None:
    cli(["guard", "HEAD", "--json", "--repo", str(repository)])
    document = json.loads(capfd.readouterr().out)
    assert document["layers"] == {"static": "checked", "behaviour": "not checked"}
    assert document["not_checked"][0]["what"] == "behaviour"


@pytest.mark.parametrize("layout", ["text", "json", "sarif", "github"])
def test_what_cannot_run_is_said(layout: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """There are no tests at all."""
    write(tmp_path, {"shop.py": SHOP}, {"shop.py": SHOP + "\n\nX = 1\n"})
    for side in ("before", "after"):
        (tmp_path / side / "pytest.ini").unlink()
    arguments = ["guard", "--before", str(tmp_path / "before"), "--after", str(tmp_path / "after"), "--run"]
    arguments += {"text": [], "github": ["--format", "github"]}.get(layout, [f"--{layout}"])
    assert cli(arguments) == 0
    out = capfd.readouterr().out
    assert "no tests found" in out
    if layout == "json":
        assert json.loads(out)["layers"]["behaviour"] == "not checked"
    elif layout == "sarif":
        notes = json.loads(out)["runs"][0]["invocations"][0]["toolExecutionNotifications"]
        assert notes[0]["level"] == "warning"
        assert notes[0]["message"]["text"].startswith("not checked: ")
    elif layout == "github":
        assert out.startswith("::warning title=Not checked::")
    else:
        assert "not checked: " in out
        assert "the tests could not be checked by running" in out


def test_a_missing_dependency_is_not_clean(tmp_path: Path) -> None:
    broken = "import not_installed_at_all\n" + TEST
    files = {"shop.py": SHOP, "tests/test_shop.py": broken}
    said = run(write(tmp_path, files, {**files, "tests/test_shop.py": broken + "\nX = 1\n"}))
    assert said.layer == "not checked"
    assert "not_installed_at_all" in said.not_checked[0].why


def test_no_time_is_not_clean(tmp_path: Path) -> None:
    files = {"shop.py": SHOP, "tests/test_shop.py": TEST}
    trees = write(tmp_path, files, {**files, "tests/test_shop.py": WEAK})
    said = run(trees, budget_s=0.1)
    assert said.layer == "not checked"
    assert [note.why for note in said.not_checked] == ["the time limit of 0.1 s"]
    assert said.findings == ()


COMMAND = "import sys\nsys.path[:0] = ['.', 'tests']\nimport check\nsys.exit(not check.ok())\n"


@pytest.mark.parametrize(
    ("source", "check", "kind", "severity"),
    [
        ("def two(): return 3\n", "return shop.two() == 3", "test-retuned", "review"),
        ("def two(): return 2\n", "return shop.two()", "", ""),
    ],
)
def test_any_command_is_judged_as_a_whole(
    source: str, check: str, kind: str, severity: str, tmp_path: Path
) -> None:
    body = "import shop\ndef ok():\n    {}\n"
    files = {"shop.py": "def two(): return 2\n", "run.py": COMMAND}
    trees = write(
        tmp_path,
        {**files, "tests/check.py": body.format("return shop.two() == 2")},
        {**files, "shop.py": source, "tests/check.py": body.format(check)},
    )
    said = run(trees, Settings(test_command=(sys.executable, "run.py")))
    assert [(finding.kind, finding.severity) for finding in said.findings] == (
        [(kind, severity)] if kind else []
    )
    assert said.layer == "partly"
    whats = {note.what for note in said.not_checked}
    assert whats == {"mutants", "single tests"}


REPORT = """\
import sys
sys.path[:0] = ["tests", "."]
import check
cases = []
for name, test in sorted(vars(check).items()):
    if name.startswith("test"):
        failure = "" if test() else "<failure message='no'/>"
        cases.append(f"<testcase classname='check' name='{name}'>{failure}</testcase>")
with open(sys.argv[1], "w") as file:
    file.write(f"<testsuite tests='{len(cases)}'>{''.join(cases)}</testsuite>")
sys.exit(any("failure" in case for case in cases))
"""


def test_a_command_that_reports_its_tests_is_judged_by_them(tmp_path: Path) -> None:
    body = "import shop\n\ndef test_one():\n    return True\n\ndef test_two():\n    return shop.two() == {}\n"
    files = {"run.py": REPORT}
    trees = write(
        tmp_path,
        {**files, "shop.py": "def two(): return 2\n", "tests/check.py": body.format(2)},
        {**files, "shop.py": "def two(): return 3\n", "tests/check.py": body.format(3)},
    )
    said = run(trees, Settings(test_command=(sys.executable, "run.py", "{junit}")))
    (finding,) = said.findings
    assert (finding.kind, finding.severity) == ("test-retuned", "review")
    assert "test_two" in finding.tests[0]
    assert {note.what for note in said.not_checked} == {"mutants"}


CASE = """\
import unittest
from shop import total

class ShopTest(unittest.TestCase):
    def test_total(self):
        self.assert{}(total([1, 2]), {})
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("after", "equal"), [(("In", "range(9)"), False), (("Equals", "3"), True), (("LessEqual", "3"), False)]
)
def test_unittest_is_run_as_it_is(after: tuple[str, str], equal: bool, tmp_path: Path) -> None:
    """Without pytest; an equal form (an alias that this class defines) counts as equal."""
    files = {"shop.py": SHOP, "tests/__init__.py": ""}
    alias = "\n    def assertEquals(self, one, two):\n        self.assertEqual(one, two)\n"
    trees = write(
        tmp_path,
        {**files, "tests/test_shop.py": CASE.format("Equal", "3") + alias},
        {**files, "tests/test_shop.py": CASE.format(*after) + alias},
    )
    said = run(trees, Settings(test_command=(sys.executable, "-m", "unittest")))
    assert said.layer == "checked", said.not_checked
    label = "tests/test_shop.py::ShopTest::test_total"
    if equal:
        assert said.equal == {label}
        assert said.findings == ()
    else:
        assert [finding.kind for finding in said.findings] == ["mutant-survives"]
        assert said.findings[0].tests == (label,)
        assert said.equal == frozenset()


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_an_interrupt_leaves_nothing_behind(repository: Path, tmp_path: Path) -> None:
    slow = "import time\n\ndef test_slow():\n    time.sleep(60)\n"
    (repository / "tests" / "test_slow.py").write_text(slow)
    before = _state(repository)
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_ls", "guard", "HEAD", "--run", "--repo", str(repository)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        text=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith("running: ")
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    process.communicate()
    assert _state(repository) == before
    assert not list((state_dir() / "guard").iterdir())


@pytest.mark.slow
def test_what_a_killed_process_left_is_removed(repository: Path, tmp_path: Path) -> None:
    (repository / "tests" / "test_slow.py").write_text(
        "import time\n\ndef test_slow():\n    time.sleep(60)\n"
    )
    before = _state(repository)
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_ls", "guard", "HEAD", "--run", "--repo", str(repository)],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        text=True,
    )
    assert process.stderr is not None
    process.stderr.readline()
    process.kill()
    process.wait()
    process.stderr.close()
    assert list((state_dir() / "guard").iterdir())
    assert cli(["guard", "HEAD", "--run", "--budget", "1", "--quiet", "--repo", str(repository)]) in (0, 5, 8)
    assert not list((state_dir() / "guard").iterdir())
    assert _state(repository) == before


def test_settings_come_from_the_tree_before(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A change must not choose how it is judged."""
    files = {"shop.py": SHOP, "tests/test_shop.py": TEST}
    evil = {"pyproject.toml": '[tool.agent-ls]\ntest_command = ["true"]\n'}
    write(tmp_path, files, {**files, "tests/test_shop.py": TEST + "\nX = 1\n", **evil})
    arguments = ["guard", "--before", str(tmp_path / "before"), "--after", str(tmp_path / "after")]
    cli([*arguments, "--run", "--json", "--budget", "1"])
    document = json.loads(capfd.readouterr().out)
    assert "single tests" not in {note["what"] for note in document["not_checked"]}

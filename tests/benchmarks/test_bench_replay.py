"""Replay cases: reading them, patches, grades, and the whole way on a small project with a fake agent."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import _cases as cases
import pytest
import replay_cases
from _common import BenchmarkError, commit_all
from hypothesis import given, settings
from hypothesis import strategies as st

TEST_BASE = "from calc import add\n\ndef test_add():\n    assert add(1, 2) == 3\n"
TEST_FIX = TEST_BASE + "\ndef test_negative():\n    assert add(-1, 1) == 0\n"
PROBE = "from calc import add\n\ndef test_probe():\n    assert add(-5, 0) == -5\n"
WRONG = "def add(a, b):\n    return abs(a) + b\n"
RIGHT = "def add(a, b):\n    return a + b\n"
CASE: dict[str, Any] = {
    "id": "calc-negative",
    "repo": "someone/calc",
    "title": "add() is wrong for negative numbers",
    "body": "add(-1, 1) gives 2.",
    "type": "test-driven fix",
    "fail_to_pass": ["tests/test_calc.py::test_negative", "PROBE::test_probe"],
    "pass_to_pass_files": ["tests/test_calc.py"],
    "known_failing_after_fix": [],
    "test_files_from_fix": ["tests/test_calc.py"],
    "fix_files": ["calc.py"],
    "packages": ["pytest"],
    "lock": [],
    "env": {"PYTHONPATH": "."},
    "test_cmd": ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts="],
    "probe": "probes/test_probe_calc.py",
}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `cases` (one case and its probe), `repos` (the project) and `envs` (prepared)."""
    monkeypatch.setattr(replay_cases, "environment", lambda *_: {})
    project = tmp_path / "repos" / "calc"
    (project / "tests").mkdir(parents=True)
    (project / "calc.py").write_text(WRONG)
    (project / "tests" / "test_calc.py").write_text(TEST_BASE)
    base = commit_all(project, "base")
    (project / "calc.py").write_text(RIGHT)
    (project / "tests" / "test_calc.py").write_text(TEST_FIX)
    fixed = commit_all(project, "fix")
    (tmp_path / "cases" / "probes").mkdir(parents=True)
    (tmp_path / "cases" / "probes" / "test_probe_calc.py").write_text(PROBE)
    path = tmp_path / "cases" / "calc-negative.json"
    path.write_text(json.dumps({**CASE, "base_commit": base, "fix_commit": fixed}))
    return tmp_path


def _case(world: Path) -> cases.Case:
    return cases.load_case(world / "cases" / "calc-negative.json")


def _prepare(world: Path) -> cases.Workbench:
    """Stand in for `_install`, which needs a package registry: an interpreter that is this one."""
    case = _case(world)
    bench = cases.Workbench(case, world / "repos" / "calc", world / "envs" / case.id, 60)
    interpreter = Path(bench.interpreter)
    interpreter.parent.mkdir(parents=True, exist_ok=True)
    interpreter.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    interpreter.chmod(0o755)
    return bench


@pytest.fixture
def prepared(world: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cases.Workbench, "_install", lambda self: _prepare(world))
    return world


@pytest.fixture
def ready(prepared: Path) -> Path:
    """`prepared`, with the reference outcomes as `Workbench.prepare` would have left them."""
    bench = _prepare(prepared)
    old, new, probe = "tests/test_calc.py::test_add", *bench.case.wanted
    outcomes = {
        "floor": {old: "passed", new: "failed", probe: "failed"},
        "ceiling": {old: "passed", new: "passed", probe: "passed"},
    }
    reference = {"digest": bench.case.digest, "valid": True, **outcomes}
    (bench.home / "reference.json").write_text(json.dumps(reference))
    return prepared


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tests/test_a.py", True),
        ("tests/data/a.xml", True),
        ("package/tests/helper.py", True),
        ("test_parse.py", True),
        ("parse_test.py", True),
        ("conftest.py", True),
        ("pyproject.toml", True),
        ("src/humanize/number.py", False),
        ("testing.py", False),
        ("src/click/testing.py", False),
        ("contest.py", False),
        ("README.md", False),
    ],
)
def test_looks_like_test(path: str, expected: bool) -> None:
    assert cases.looks_like_test(path) is expected


def test_case_fields(world: Path) -> None:
    case = _case(world)
    assert case.wanted == ("tests/test_calc.py::test_negative", "test_probe_calc.py::test_probe")
    assert case.targets(hidden=False) == ["tests/test_calc.py"]
    assert case.targets(hidden=True) == ["tests/test_calc.py", "test_probe_calc.py"]
    assert case.test_options == ("-q", "-p", "no:cacheprovider", "-o", "addopts=")
    whole = replace(case, pass_to_pass_files=("tests",))
    assert whole.targets(hidden=True) == ["tests", "test_probe_calc.py"]
    # a file that the real fix had to change is never taken for a test
    assert not replace(case, fix_files=("pyproject.toml",)).is_test("pyproject.toml")
    assert case.is_test("test_probe_calc.py")


def test_a_case_without_a_field_is_refused(world: Path) -> None:
    path = world / "cases" / "calc-negative.json"
    data = json.loads(path.read_text())
    del data["fix_commit"]
    path.write_text(json.dumps(data))
    with pytest.raises(BenchmarkError, match=r"calc-negative\.json: field 'fix_commit' is missing"):
        cases.load_case(path)


def test_a_clone_must_hold_both_commits(world: Path) -> None:
    case = _case(world)
    assert cases.find_repository(world / "repos", case) == world / "repos" / "calc"
    with pytest.raises(BenchmarkError, match="does not hold 000000000000"):
        cases.find_repository(world / "repos", replace(case, base="0" * 40))
    with pytest.raises(BenchmarkError, match="no clone of someone/calc"):
        cases.find_repository(world, case)


NAMES = st.text(
    st.characters(exclude_characters="/\0\n", exclude_categories=["Cs"]), min_size=1, max_size=12
).filter(lambda name: name not in (".", "..") and name.lower() != ".git" and len(name.encode()) < 60)
TREES = st.dictionaries(
    NAMES, st.tuples(st.sampled_from(["100644", "100755"]), st.binary(max_size=20)), max_size=4
)


@settings(max_examples=8, deadline=None)
@given(TREES, TREES)
def test_a_patch_carries_one_tree_to_the_other(
    tmp_path_factory: pytest.TempPathFactory, before: cases.Patch, after: cases.Patch
) -> None:
    root = tmp_path_factory.mktemp("patch")
    repo, copy = root / "repo", root / "copy"
    repo.mkdir()
    copy.mkdir()
    cases.apply_patch(before, repo)
    cases.apply_patch(before, copy)
    first = commit_all(repo, "before")
    cases.apply_patch({**dict.fromkeys(before), **after}, repo)
    second = commit_all(repo, "after")
    patch = cases.read_patch(repo, first, second)
    cases.apply_patch(patch, copy)
    found = {path.name: path.read_bytes() for path in copy.iterdir()}
    assert found == {name: content[1] for name, content in after.items() if content}
    for name, content in after.items():
        assert content is not None
        assert os.access(copy / name, os.X_OK) == (content[0] == "100755")


@pytest.mark.parametrize("path", ["../out.py", "a/../../out.py", "link/out.py"])
def test_a_patch_cannot_leave_its_tree(tmp_path: Path, path: str) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "link").symlink_to(tmp_path)
    with pytest.raises(BenchmarkError, match="leaves its tree"):
        cases.apply_patch({path: ("100644", b"x")}, tree)
    assert not (tmp_path / "out.py").exists()


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ({"new": "passed", "old": "passed"}, "resolved"),
        ({"new": "passed", "old": "passed", "other": "failed"}, "resolved"),
        ({"new": "passed", "old": "failed"}, "f2p_only"),
        ({"new": "passed"}, "f2p_only"),  # the old test vanished
        ({"new": "passed", "old": "skipped"}, "f2p_only"),
        ({"new": "failed", "old": "passed"}, "unresolved"),
        ({"new": "collected", "old": "passed"}, "unresolved"),  # the deadline came first
        ({"new": "skipped", "old": "error"}, "regression"),
        ({}, "regression"),
    ],
)
def test_grade(outcomes: dict[str, str], expected: str) -> None:
    assert cases.grade(outcomes, ["new"], ["old"]).grade == expected


def test_only_tests_that_pass_on_both_sides_must_stay() -> None:
    before = {"a": "passed", "b": "passed", "c": "failed", "d": "passed", "e": "passed", "new": "passed"}
    after = {"a": "passed", "b": "failed", "c": "passed", "d": "passed", "new": "passed"}
    assert cases.must_stay(before, after, wanted=["new"], known=["d"]) == {"a"}


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [("handed_over", "no_patch"), ("fixed", "no_patch"), ("budget", "limit"), ("killed", "limit"),
     ("env_broken", "error"), ("error", "error"), ("no_report", "error"), ("provider_error", "invalid")],
)  # fmt: skip
def test_no_patch_grade(verdict: str, expected: str) -> None:
    assert replay_cases.no_patch_grade(verdict) == expected


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"PYTHONPATH": ".", "A": "1"}, {"A": "1"}),
        ({"PYTHONPATH": "src:."}, {}),
        ({"PYTHONPATH": "/lib"}, {"PYTHONPATH": "/lib"}),
        ({"A": "1"}, {"A": "1"}),
    ],
)
def test_the_program_does_not_import_the_project_under_test(
    env: dict[str, str], expected: dict[str, str]
) -> None:
    assert replay_cases.without_relative_path(env) == expected


def _run(world: Path, *more: str) -> dict[str, Any]:
    out = world / "out.json"
    argv = [str(world / "cases"), "--repos", str(world / "repos"), "--out", str(out)]
    assert replay_cases.main([*argv, *more]) == 0
    document: dict[str, Any] = json.loads(out.read_text())
    row: dict[str, Any] = document["results"]["calc-negative"]
    return row


@pytest.mark.parametrize(
    ("oracle", "expected"), [("fix", ("resolved", "2/2")), ("none", ("unresolved", "0/2"))]
)
def test_the_judge_has_a_ceiling_and_a_floor(prepared: Path, oracle: str, expected: tuple[str, str]) -> None:
    row = _run(prepared, "--oracle", oracle)
    assert (row["grade"], row["f2p"]) == expected
    reference = json.loads((prepared / "envs" / "calc-negative" / "reference.json").read_text())
    assert sorted(reference["floor"].values()) == ["failed", "failed", "passed"]
    assert set(reference["ceiling"].values()) == {"passed"}
    assert row["targets"] == ["tests/test_calc.py", "test_probe_calc.py"]


def test_a_case_whose_fix_fails_here_is_invalid(prepared: Path) -> None:
    (prepared / "cases" / "probes" / "test_probe_calc.py").write_text("def test_probe(): assert False")
    row = _run(prepared, "--oracle", "fix")
    assert (row["grade"], row["why"]) == ("invalid", "the real fix does not turn its tests here")


def test_two_runs_do_not_share_a_case(ready: Path) -> None:
    with _prepare(ready).claimed():
        row = _run(ready, "--oracle", "none")
    assert (row["grade"], row["why"].partition(" /")[0]) == ("invalid", "calc-negative: another run uses")
    assert _run(ready, "--oracle", "none")["grade"] == "unresolved"


HARDCODED = "def add(a, b):\n    return {(-1, 1): 0, (-5, 0): -5}[a, b]\n"


@pytest.mark.parametrize(
    ("patch", "verdict", "grade", "claimed_falsely"),
    [
        pytest.param({"calc.py": RIGHT}, "fixed 0", "resolved", 0, id="right"),
        pytest.param({"calc.py": RIGHT}, "handed_over 3", "resolved", 0, id="right, not claimed"),
        pytest.param({"calc.py": HARDCODED}, "fixed 0", "f2p_only", 1, id="breaks the rest"),
        pytest.param({"calc.py": "def add(a, b): pass\n"}, "budget 4", "regression", 0, id="worse"),
        pytest.param(
            {"tests/test_calc.py": "", "conftest.py": ""}, "fixed 0", "no_patch", 1, id="only tests"
        ),
        pytest.param(None, "budget 4", "limit", 0, id="limit"),
    ],
)
def test_grades_of_an_agent(
    ready: Path,
    fake_agent: Path,
    monkeypatch: pytest.MonkeyPatch,
    patch: dict[str, str] | None,
    verdict: str,
    grade: str,
    claimed_falsely: int,
) -> None:
    if patch is not None:
        monkeypatch.setenv("FAKE_PATCH", json.dumps(patch))
    monkeypatch.setenv("FAKE_VERDICT", verdict)
    row = _run(ready, "--program", str(fake_agent))
    assert (row["grade"], row["verdict"]) == (grade, verdict.split()[0])
    assert row["repository_untouched"]
    totals = replay_cases.totals([row])
    assert totals["false_claims"] == claimed_falsely
    assert totals["unclaimed"] == int(grade == "resolved" and verdict != "fixed 0")
    if patch and "conftest.py" in patch:
        assert row["ignored_test_changes"] == ["conftest.py", "tests/test_calc.py"]


@pytest.mark.parametrize("mode", ["with-tests", "issue-only"])
def test_only_with_tests_shows_the_agent_the_tests(ready: Path, fake_agent: Path, mode: str) -> None:
    keep = ready / "keep"
    _run(ready, "--program", str(fake_agent), "--mode", mode, "--keep", str(keep))
    (argv_file,) = keep.rglob("argv.json")
    argv = json.loads(argv_file.read_text())
    shown = mode == "with-tests"
    tests = [argv[at + 1] for at, text in enumerate(argv) if text == "--test"]
    assert tests == (list(_case(ready).wanted) if shown else [])
    assert argv[argv.index("--test-command") + 1].endswith(
        "-o addopts= tests/test_calc.py" + (" test_probe_calc.py" if shown else "")
    )
    repository = ready / "envs" / "calc-negative" / "run" / "calc"
    assert (repository / "test_probe_calc.py").exists() == shown
    assert ("test_negative" in (repository / "tests" / "test_calc.py").read_text()) == shown
    assert (
        (argv_file.parents[1] / "issue.md").read_text().startswith("# add() is wrong for negative numbers\n")
    )

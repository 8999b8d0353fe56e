"""Fault localisation on recorded coverage."""

from __future__ import annotations

from pathlib import Path

from agent_ls.repair.localise import is_test_path, rank
from agent_ls.testing.results import Frame, Outcome, TestResult

SOURCE = """\
LIMIT = 3


def grade(points):
    if points > LIMIT:
        return "good"
    return "bad"


def unused():
    return 1
"""


def failure(name: str, *frames: Frame) -> TestResult:
    return TestResult(name, Outcome.FAILED, file="tests/test_grade.py", stack=frames)


def project(root: Path) -> Path:
    (root / "tests").mkdir()
    (root / "grade.py").write_text(SOURCE, "utf-8")
    (root / "tests" / "test_grade.py").write_text(
        "from grade import grade\n\n\ndef test_a():\n    assert grade(4) == 'bad'\n", "utf-8"
    )
    return root


def test_line_only_failing_tests_run_comes_first(tmp_path: Path) -> None:
    coverage = {
        "a": {"grade.py": {5, 6}, "tests/test_grade.py": {5}},
        "b": {"grade.py": {5, 7}, "tests/test_grade.py": {8}},
    }
    ranked = rank([failure("a")], coverage, {"b"}, root=project(tmp_path))
    assert (ranked[0].path, ranked[0].line, ranked[0].function) == ("grade.py", 6, "grade")
    assert all(suspect.path == "grade.py" for suspect in ranked)
    assert 7 not in {suspect.line for suspect in ranked}
    assert [suspect.score for suspect in ranked] == sorted((s.score for s in ranked), reverse=True)


def test_constant_that_covered_code_reads_is_a_suspect(tmp_path: Path) -> None:
    ranked = rank([failure("a")], {"a": {"grade.py": {5, 6}}}, (), root=project(tmp_path))
    constant = next(suspect for suspect in ranked if suspect.line == 1)
    assert constant.function is None
    assert constant.score < ranked[0].score


def test_innermost_frame_breaks_a_tie(tmp_path: Path) -> None:
    test = failure("a", Frame("tests/test_grade.py", 5, "test_a"), Frame("grade.py", 7, "grade"))
    ranked = rank([test], {"a": {"grade.py": {5, 7}}}, (), root=project(tmp_path))
    assert ranked[0].line == 7


def test_frames_alone(tmp_path: Path) -> None:
    ranked = rank([failure("a", Frame("grade.py", 6, "grade"))], {}, (), root=project(tmp_path))
    assert ranked[0].line == 6
    assert {suspect.function for suspect in ranked} == {"grade"}


def test_called_functions_without_coverage_and_frames(tmp_path: Path) -> None:
    ranked = rank([failure("tests/test_grade.py::test_a")], {}, (), root=project(tmp_path))
    assert ranked[0].function == "grade"
    assert "unused" not in {suspect.function for suspect in ranked}


def test_recent_change_raises_the_score(tmp_path: Path) -> None:
    coverage = {"a": {"grade.py": {5, 6, 7}}}
    ranked = rank([failure("a")], coverage, (), root=project(tmp_path), recent={"grade.py": {6}})
    assert ranked[0].line == 6


def test_unparsable_file_still_ranks(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def f(:\n", "utf-8")
    ranked = rank([failure("a", Frame("broken.py", 1, "f"))], {}, (), root=tmp_path)
    assert [(suspect.path, suspect.function) for suspect in ranked] == [("broken.py", None)]


def test_what_is_a_test_file() -> None:
    for path in ("tests/a.py", "pkg/tests/a.py", "test_a.py", "src/a_test.py", "conftest.py"):
        assert is_test_path(path)
    for path in ("src/testing/a.py", "contest.py", "pkg/latest.py"):
        assert not is_test_path(path)

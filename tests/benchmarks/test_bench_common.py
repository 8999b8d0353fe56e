"""The shared parts of the benchmark scripts: outcomes, numbers, processes, trees, results on disk."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import _common as common
import _results as results
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st


def _lines(*pairs: tuple[str, str]) -> list[str]:
    return [json.dumps({"id": name, "outcome": outcome}) for name, outcome in pairs]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], {}),
        (_lines(("a", "collected")), {"a": "collected"}),
        (_lines(("a", "collected"), ("a", "passed")), {"a": "passed"}),
        (_lines(("a", "passed"), ("a", "error")), {"a": "error"}),  # teardown broke after a pass
        (_lines(("a", "skipped"), ("b", "failed")), {"a": "skipped", "b": "failed"}),
        ([*_lines(("a", "passed")), '{"id": "b", "outc'], {"a": "passed"}),  # killed while writing
    ],
)
def test_merge_outcomes(lines: list[str], expected: dict[str, str]) -> None:
    assert common.merge_outcomes(lines) == expected


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([], 0.5, None),
        ([3.0], 0.9, 3.0),
        ([4.0, 1.0, 3.0, 2.0], 0.5, 2.0),
        ([float(n) for n in range(1, 11)], 0.9, 9.0),
        ([1.0, 2.0], 0.0, 1.0),
        ([1.0, 2.0], 1.0, 2.0),
    ],
)
def test_quantile(values: list[float], share: float, expected: float | None) -> None:
    assert results.quantile(values, share) == expected


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0.01, 1))
def test_quantile_is_a_value_that_enough_values_do_not_exceed(values: list[float], share: float) -> None:
    found = results.quantile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-6


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["a", "--b"], (["a", "--b"], [])),
        (["a", "--", "--max-steps", "5"], (["a"], ["--max-steps", "5"])),
        (["--", "x", "--", "y"], ([], ["x", "--", "y"])),
    ],
)
def test_split_extra(argv: list[str], expected: tuple[list[str], list[str]]) -> None:
    assert common.split_extra(argv) == expected


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('{"schema": 1, "verdict": "fixed"}', "fixed"),
        ("", None),
        ("Traceback …", None),
        ("[]", None),
        ('{"schema": 1}', None),
    ],
)
def test_parse_report(text: str, verdict: str | None) -> None:
    report = common.parse_report(text)
    assert (report and report["verdict"]) == verdict


def test_usage_totals_charges_the_losses_to_the_wins() -> None:
    rows = [
        {"ok": True, "input_tokens": 100, "output_tokens": 20, "model_calls": 2, "wall_s": 1.0},
        {"ok": False, "input_tokens": 300, "output_tokens": 0, "model_calls": 3, "wall_s": 9.0},
    ]
    totals = results.usage_totals(rows, lambda row: bool(row["ok"]))
    assert (totals["tokens"], totals["won"], totals["tokens_per_won"]) == (420, 1, 420)
    assert (totals["wall_median_s"], totals["wall_p90_s"], totals["model_calls"]) == (1.0, 9.0, 5)
    assert results.usage_totals([], lambda row: True)["tokens_per_won"] is None


def test_table_is_markdown() -> None:
    lines = [*results.table_head(["name", "n"], [6, -4]).split("\n"), results.table_row(["x", 12], [6, -4])]
    assert lines == ["| name   |    n |", "| ------ | ---: |", "| x      |   12 |"]


def test_a_deadline_ends_the_whole_process_group(tmp_path: Path) -> None:
    child = "import subprocess, sys, time; print(subprocess.Popen([sys.executable, '-c', "
    child += "'import time; time.sleep(60)']).pid, flush=True); time.sleep(60)"
    done = common.run([sys.executable, "-c", child], cwd=tmp_path, timeout=1.0)
    assert done.timed_out
    pid = int(done.stdout)
    for _ in range(100):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            break
        time.sleep(0.02)
    else:
        pytest.fail("the grandchild is still there")


def test_a_program_that_cannot_start_is_named(tmp_path: Path) -> None:
    with pytest.raises(common.BenchmarkError, match="no-such-program"):
        common.run(["no-such-program"], cwd=tmp_path, timeout=5)


SUITE = """
import pytest

@pytest.mark.parametrize("text", ["a::b", "[x]-1"])
def test_pass(text): pass

def test_fail(): assert False

def test_skip(): pytest.skip("no")

@pytest.mark.xfail
def test_xfail(): assert False

@pytest.fixture
def broken(): raise OSError

def test_error(broken): pass

@pytest.fixture
def leaky():
    yield
    raise OSError

def test_teardown(leaky): pass
"""


def test_run_pytest_reads_each_outcome_by_its_id(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "test_broken.py").write_text("import nothing_of_this_name")
    done = common.run_pytest(
        sys.executable, ["test_suite.py", "test_broken.py"], cwd=tmp_path, timeout=60,
        options=["--continue-on-collection-errors"],
    )  # fmt: skip
    assert done.outcomes == {
        "test_suite.py::test_pass[a::b]": "passed",
        "test_suite.py::test_pass[[x]-1]": "passed",
        "test_suite.py::test_fail": "failed",
        "test_suite.py::test_skip": "skipped",
        "test_suite.py::test_xfail": "xfailed",
        "test_suite.py::test_error": "error",
        "test_suite.py::test_teardown": "error",
        "test_broken.py": "error",
    }
    assert done.returncode == 1
    assert not list(tmp_path.rglob("__pycache__"))


def test_run_pytest_keeps_what_ended_before_a_crash(tmp_path: Path) -> None:
    (tmp_path / "test_crash.py").write_text("import os\ndef test_a(): pass\ndef test_b(): os._exit(0)\n")
    done = common.run_pytest(sys.executable, ["test_crash.py"], cwd=tmp_path, timeout=60)
    assert done.returncode == 0
    assert done.outcomes == {"test_crash.py::test_a": "passed", "test_crash.py::test_b": "collected"}


def test_export_keeps_what_archives_leave_out(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "tests").mkdir(parents=True)
    (source / "tests" / "test_a.py").write_text("x = 1\n")
    (source / "run.sh").write_text("#!/bin/sh\n")
    (source / "run.sh").chmod(0o755)
    (source / "link").symlink_to("run.sh")
    (source / ".gitattributes").write_text("tests export-ignore\n")
    first = common.commit_all(source, "one")
    (source / "run.sh").write_text("changed\n")
    second = common.commit_all(source, "two")
    common.export(source, first, tmp_path / "out")
    out = tmp_path / "out"
    assert sorted(str(path.relative_to(out)) for path in out.rglob("*")) == [
        ".gitattributes", "link", "run.sh", "tests", "tests/test_a.py",
    ]  # fmt: skip
    assert (out / "run.sh").read_text() == "#!/bin/sh\n"
    assert os.access(out / "run.sh", os.X_OK)
    assert (out / "link").is_symlink()
    assert common.changed_paths(source, first, second) == ["run.sh"]
    assert common.git(source, "status", "--porcelain") == ""


def _count(rows: object) -> dict[str, int]:
    return {"n": len(list(rows))}  # type: ignore[call-overload]


def test_results_resume_where_a_killed_run_stopped(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "out.json"
    head = {"settings": {"model": "m"}}
    results.Results(path, head, resume=True).add("a", {"x": 1}, _count)
    again = results.Results(path, head, resume=True)
    again.add("b", {"x": 2}, _count)
    document = json.loads(path.read_text())
    assert document["results"] == {"a": {"x": 1}, "b": {"x": 2}}
    assert (document["schema"], document["totals"]) == (1, {"n": 2})
    assert results.Results(path, head, resume=False).rows == {}
    with pytest.raises(common.BenchmarkError, match="other settings"):
        results.Results(path, {"settings": {"model": "other"}}, resume=True)
    with pytest.raises(common.BenchmarkError, match="--out"):
        results.Results(None, head, resume=True)


def test_environment_names_what_the_numbers_depend_on(fake_agent: Path) -> None:
    found = common.environment(str(fake_agent), sys.executable)
    assert found["agent_ls"] == "agent-ls 0.0 fake"
    assert found["pytest"] == f"pytest {pytest.__version__}"
    assert found["cores"] >= 1
    assert len(found["load_average"]) == 3

"""Candidates are run in real workers: budgets, covering tests of other files, partial fixes."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_ls.cancel import CancelToken
from agent_ls.repair.edits import Edit
from agent_ls.repair.source import Source
from agent_ls.repair.validation import Trial, Validator, Verdict
from agent_ls.sandbox.confine import View, choose
from agent_ls.settings import Settings
from agent_ls.testing.plan import TestPlan
from agent_ls.testing.runner import TestRunner

PROGRAM = """\
def label(number):
    if number > 10:
        return "big"
    return "small"


def count(number):
    while number > 0:
        number -= 1
    return number
"""
TESTS = {
    "test_label.py": """\
from program import count, label


def test_ten():
    assert label(10) == "big"


def test_nine_is_also_big():
    assert label(9) == "big"


def test_count():
    assert count(3) == 0
""",
    "test_more.py": """\
from program import label


def test_small():
    assert label(3) == "small"


def test_nothing():
    assert True
""",
    "test_far.py": "def test_of_nothing_here():\n    assert 1 + 1 == 2\n",
}
WAIT_S = 120.0


@contextmanager
def validator_for(tmp_path: Path, asked: list[str], options: str = "") -> Iterator[tuple[Validator, Source]]:
    root = tmp_path / "project"
    root.mkdir()
    (root / "pytest.ini").write_text(f"[pytest]\naddopts = {options}\n", "utf-8")
    (tmp_path / "scratch").mkdir()
    (root / "program.py").write_text(PROGRAM, "utf-8")
    for name, text in TESTS.items():
        (root / name).write_text(text, "utf-8")
    plan = TestPlan("pytest", (sys.executable, "-m", "pytest"), sys.executable)
    runner = TestRunner(plan, choose("off"), View(root, root, tmp_path / "scratch"), Settings())
    baseline = runner.run(timeout=WAIT_S)
    validator = Validator(runner, tmp_path / "scratch" / "v", baseline, asked, CancelToken(), {})
    source = Source(PROGRAM)
    try:
        validator.open(time.monotonic() + WAIT_S)
        validator.observe(time.monotonic() + WAIT_S)
        validator.add_base("program.py", source)
        yield validator, source
    finally:
        validator.close()


def change(source: Source, old: str, new: str) -> Trial:
    start = source.text.index(old)
    line = source.line_of(start)
    return Trial("program.py", (Edit(line, start, start + len(old), new, "by-hand", "", 1.0),))


def verdict_of(validator: Validator, ticket: int) -> Verdict:
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        for number, verdict in validator.results(0.2):
            if number == ticket:
                return verdict
    raise AssertionError("no verdict")


@pytest.mark.slow
def test_patch_is_checked_against_covering_tests_of_other_files(tmp_path: Path) -> None:
    asked = ["test_label.py::test_ten"]
    with validator_for(tmp_path, asked) as (validator, source):
        good = change(source, "number > 10", "number >= 10")
        bad = change(source, "number > 10", "number <= 10")
        # The first, quick answer knows the asked tests' files only.
        assert verdict_of(validator, validator.submit(bad)).kind == "plausible"
        confirmed = verdict_of(validator, validator.submit(bad, confirm=True))
        assert (confirmed.kind, confirmed.failed) == ("failed", "test_more.py::test_small")
        assert verdict_of(validator, validator.submit(good, confirm=True)) == Verdict(
            "plausible", tuple(asked)
        )


@pytest.mark.slow
@pytest.mark.parametrize("options", ["-n 2 --dist loadfile", "-p no:xdist -p no:cov"])
def test_plugins_that_start_processes_are_off(
    options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    with validator_for(tmp_path, ["test_label.py::test_ten"], options) as (validator, source):
        good = change(source, "number > 10", "number >= 10")
        assert verdict_of(validator, validator.submit(good)).kind == "plausible"


@pytest.mark.slow
def test_partial_fix_and_endless_loop(tmp_path: Path) -> None:
    asked = ["test_label.py::test_ten", "test_label.py::test_nine_is_also_big"]
    with validator_for(tmp_path, asked) as (validator, source):
        part = change(source, "number > 10", "number >= 10")
        verdict = verdict_of(validator, validator.submit(part))
        assert (verdict.kind, verdict.failed) == ("failed", asked[1])
        assert (
            verdict_of(validator, validator.submit(part, confirm=True, asked=asked[:1])).kind == "plausible"
        )
        breaks = change(source, '"small"', '"big"')
        verdict = verdict_of(validator, validator.submit(breaks, confirm=True, asked=asked[:1]))
        assert (verdict.kind, verdict.failed) == ("failed", "test_more.py::test_small")
        endless = change(source, "    if number > 10:", "    while number >= 9:\n        pass\n    if 1:")
        for level in (0, 1):
            verdict = verdict_of(validator, validator.submit(endless, level=level))
            assert (verdict.kind, verdict.level, verdict.fixed) == ("timeout", level, ())
        assert validator.tried == {"fast": 3}

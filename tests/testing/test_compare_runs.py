"""What a comparison says, as a table; ids, messages and flakiness."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testing_kit import runner_for

from agent_ls.testing.compare import compare
from agent_ls.testing.flaky import confirm
from agent_ls.testing.ids import expand_ids, matches, normalise_id
from agent_ls.testing.messages import normalise_error
from agent_ls.testing.results import Outcome, TestResult, TestRun

SHORT = {"P": "passed", "F": "failed", "E": "error", "S": "skipped", "X": "xfailed", "Y": "xpassed"}


def run_of(spec: str, requested: tuple[str, ...] | None = None) -> TestRun:
    """`"a:P b:F"`: ids within t.py; an id with a dot is taken as it is."""
    tests = []
    for word in spec.split():
        name, _, letter = word.rpartition(":")
        tests.append(TestResult(name if "." in name else f"t.py::{name}", Outcome(SHORT[letter])))
    return TestRun(("pytest",), "failed", tuple(tests), "pytest", requested=requested)


# baseline, run, asked, requested -> what is expected (classes not named are empty)
TABLE = [
    ("a:P", "a:P", "", None, {}),
    ("a:F", "a:P", "", None, {"fixed": "a"}),
    ("a:E", "a:Y", "a", None, {"fixed": "a"}),
    ("a:P", "a:F", "", None, {"regressed": "a"}),
    ("a:P", "a:E", "a", None, {"regressed": "a"}),
    ("a:P", "a:S", "", None, {"regressed": "a"}),
    ("a:P", "a:X", "", None, {"regressed": "a"}),
    ("a:S", "a:F", "", None, {"regressed": "a"}),
    ("a:X", "a:F", "", None, {"regressed": "a"}),
    ("a:X", "a:Y", "", None, {}),
    ("a:S", "a:P", "", None, {}),
    ("a:S", "a:S", "a", None, {"still_failing": "a"}),
    ("a:F", "a:F", "a", None, {"still_failing": "a"}),
    ("a:F", "a:S", "a", None, {"still_failing": "a"}),
    ("a:F", "a:X", "a", None, {"still_failing": "a"}),
    ("a:F", "a:E", "", None, {"pre_existing": "a"}),
    ("a:F", "a:S", "", None, {"pre_existing": "a"}),
    ("a:P", "a:P b:P", "", None, {"added": "b"}),
    ("a:P", "a:P b:F", "b", None, {"added": "b", "still_failing": "b"}),
    ("a:P b:P", "a:P", "", None, {"missing": "b"}),
    ("a:P b:F", "a:P", "", None, {"missing": "b"}),
    ("a:P b:P", "a:P", "", ("t.py::a",), {}),
    ("a:P b:P c:P", "a:P", "", ("t.py::a", "t.py::b"), {"missing": "b"}),
    ("a:P b:P u.py::c:P", "a:P", "", ("t.py",), {"missing": "b"}),
    ("a:P", "a:P", "nope", None, {"missing": "nope"}),
    ("a[1]:F a[2]:F b:F", "a[1]:P a[2]:F b:F", "a", None,
     {"fixed": "a[1]", "still_failing": "a[2]", "pre_existing": "b"}),
    ("ab:F", "ab:F", "a", None, {"pre_existing": "ab", "missing": "a"}),
    # A module that can't be imported any more stands for its tests.
    ("a:P b:F c:S", "t.py:E", "", None, {"regressed": "a c", "pre_existing": "b"}),
    ("a:P b:F", "t.py:E", "b", ("t.py::b",), {"still_failing": "b"}),
    # A module that can be imported now: its tests are judged by the error that stood for them.
    ("t.py:E", "a:P b:F", "a", None, {"fixed": "a", "pre_existing": "b"}),
    ("t.py:E", "t.py:E", "t.py::a", None, {"still_failing": "t.py"}),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "asked", "requested", "expected"), TABLE)
def test_table(
    before: str, after: str, asked: str, requested: tuple[str, ...] | None, expected: dict[str, str]
) -> None:
    names = [name if "." in name else f"t.py::{name}" for name in asked.split()]
    got = compare(run_of(before), run_of(after, requested), names)
    for kind in ("fixed", "regressed", "still_failing", "pre_existing", "added", "missing", "flaky"):
        wanted = [name if "." in name else f"t.py::{name}" for name in expected.get(kind, "").split()]
        assert list(getattr(got, kind)) == wanted, kind


runs = st.dictionaries(st.sampled_from([f"t.py::{n}" for n in "abcdef"]), st.sampled_from(list(Outcome))).map(
    lambda d: TestRun(
        ("x",), "failed", tuple(TestResult(name, outcome) for name, outcome in d.items()), "pytest"
    )
)


@given(runs, runs, st.lists(st.sampled_from([f"t.py::{n}" for n in "abcdef"]), unique=True))
def test_every_bad_or_lost_test_is_listed_once(before: TestRun, after: TestRun, asked: list[str]) -> None:
    got = compare(before, after, asked)
    old, new = before.by_id(), after.by_id()
    bad = [*got.regressed, *got.still_failing, *got.pre_existing]
    assert len(bad) == len(set(bad))
    for name, test in new.items():
        if test.outcome.bad:
            assert name in bad or name in got.added
    assert set(old) - set(new) <= set(got.missing)
    for name in got.fixed:
        assert old[name].outcome.bad
        assert new[name].outcome in (Outcome.PASSED, Outcome.XPASSED)
    for name in got.regressed:
        assert not old[name].outcome.bad
    # An asked test is either shown to pass, or named in a class that forbids "fixed".
    for name in asked:
        passes = name in new and new[name].outcome in (Outcome.PASSED, Outcome.XPASSED)
        assert passes or name in (*bad, *got.missing, *got.added)


@given(runs)
def test_a_run_compared_with_itself_changes_nothing(run: TestRun) -> None:
    got = compare(run, run)
    assert not (got.fixed or got.regressed or got.added or got.missing or got.still_failing)


@pytest.mark.parametrize(
    ("asked", "test_id", "expected"),
    [
        ("t.py::a", "t.py::a", True),
        ("t.py::a", "t.py::a[1-2]", True),
        ("t.py::a", "t.py::ab", False),
        ("t.py", "t.py::C::a", True),
        ("t.py::C", "t.py::C::a", True),
        ("tests", "tests/x/t.py::a", True),
        ("tests/", "tests/x/t.py::a", True),
        ("test", "tests/t.py::a", False),
        (".", "anything", True),
        ("tests.test_x", "tests.test_x.Case.test_a", True),
        ("tests.test", "tests.test_x.Case.test_a", False),
        ("tests/test_x.py::Case::test_a", "tests.test_x.Case.test_a", True),
        ("tests/test_x.py::Case::test_a", "test_x.Case.test_a", True),
        ("tests/test_x.py::Case", "tests.test_x.Case.test_a", True),
        ("tests/test_x.py", "tests.test_x.Case.test_a", True),
        ("tests/test_x.py::Case", "tests.test_x.Cases.test_a", False),
        ("tests/test_x.py::Case", "other.test_x.Case.test_a", False),
        ("a/tests/x", "a.tests.x.Case.test_a", False),
    ],
)
def test_what_an_asked_id_names(asked: str, test_id: str, expected: bool) -> None:
    assert matches(asked, test_id) is expected


def test_expand_ids_keeps_order_and_unknown_ones() -> None:
    run = run_of("a[1]:P a[2]:F b:P C::x:P")
    assert expand_ids(["t.py::C", "t.py::a", "t.py::zz"], run) == (
        "t.py::a[1]",
        "t.py::a[2]",
        "t.py::C::x",
        "t.py::zz",
    )


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("./tests/t.py::a", "tests/t.py::a"),
        ("/r/tests/t.py::a[x\\y]", "tests/t.py::a[x\\y]"),
        ("tests\\t.py::a", "tests/t.py::a"),
        (" t.py ", "t.py"),
    ],
)
def test_normalise_id(raw: str, expected: str) -> None:
    assert normalise_id(raw, "/r") == expected


SAME = [
    ("<Foo object at 0x7f03640f8fe0>", "<Foo object at 0x55d0b1>"),
    ("took 1.23s to finish", "took 0.9s to finish"),
    ("No such file: '/tmp/pytest-of-me/pytest-3/test_a0/x.txt'", "No such file: '/tmp/tmpab12/x.txt'"),
    ('File "a/b.py", line 12, in f', 'File "a/b.py", line 40, in f'),
    ("a/b.py:12: AssertionError", "a/b.py:13: AssertionError"),
    ("process 4711 died", "process 9 died"),
    ("id 3fa85f64-5717-4562-b3fc-2c963f66afa6", "id 11111111-5717-4562-b3fc-2c963f66afa6"),
    ("at 2026-11-30T22:01:02Z", "at 2025-01-01T00:00:00Z"),
    ("connect to 127.0.0.1:43211 failed", "connect to 127.0.0.1:5 failed".replace(":5", ":5000")),
    ("digest da39a3ee5e6b4b0d3255bfef", "digest 0123456789abcdef01234567"),
    ("\x1b[31mred\x1b[0m", "red"),
]
DIFFERENT = [
    ("assert 3 == 4", "assert 3 == 5"),
    ("KeyError: 'a'", "KeyError: 'b'"),
    ("a.py:3: KeyError", "b.py:3: KeyError"),
    ("expected 200 got 404", "expected 200 got 500"),
    ("index 12 is out of range", "index 13 is out of range"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_error_again(one: str, other: str) -> None:
    assert normalise_error(one) == normalise_error(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_another_error(one: str, other: str) -> None:
    assert normalise_error(one) != normalise_error(other)


@given(st.text())
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    once = normalise_error(text)
    assert normalise_error(once) == once
    assert normalise_error(None) == ""


def test_flaky_tests_are_told_from_regressions(tmp_path: Path) -> None:
    # The state lives in the scratch folder: the tree itself is the same for every run.
    files = {
        "test_a.py": """
            import os, pathlib
            def test_flaky():
                mark = pathlib.Path(os.environ["AGENT_LS_RESULTS"]).parents[1] / "mark"
                if not mark.exists():
                    mark.write_text("x")
                    assert 0
            def test_steady(): assert 0
        """
    }
    runner = runner_for(tmp_path, files)
    run = runner.run()
    ids = [test.id for test in run.tests]
    assert {test.outcome for test in run.tests} == {Outcome.FAILED}
    assert confirm(runner, [*ids, "test_a.py::unknown"], run) == ("test_a.py::test_flaky",)

"""Real unittest runs, in the same format as pytest's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from testing_kit import outcomes, runner_for

UNITTEST = (sys.executable, "-m", "unittest")
FILES = {
    "mod.py": "def f(x):\n    if x:\n        return 1\n    return 2\n",
    "tests/__init__.py": "",
    "tests/test_x.py": """
        import time
        import unittest
        import mod

        class Case(unittest.TestCase):
            def test_ok(self): self.assertEqual(mod.f(0), 2)
            def test_bad(self): self.assertEqual(mod.f(1), 2)
            def test_error(self): raise LookupError("deep")
            @unittest.skip("not today")
            def test_skip(self): pass
            @unittest.expectedFailure
            def test_xfail(self): self.assertEqual(mod.f(1), 2)
            @unittest.expectedFailure
            def test_unexpected(self): pass
            def test_sub(self):
                for n in range(3):
                    with self.subTest(n=n):
                        self.assertNotEqual(n, 1)
            def test_spin(self):
                while True: pass

        class BrokenClass(unittest.TestCase):
            @classmethod
            def setUpClass(cls): raise ValueError("no class")
            def test_a(self): pass
            def test_b(self): pass

        @unittest.skip("whole class")
        class SkippedClass(unittest.TestCase):
            def test_c(self): pass

        class Async(unittest.IsolatedAsyncioTestCase):
            async def test_async(self): self.assertTrue(mod.f(1))
    """,
    "tests/test_broken.py": "import no_such_thing\n",
}
EXPECTED = {
    "tests.test_broken": "error",
    "tests.test_x.Async.test_async": "passed",
    "tests.test_x.BrokenClass.test_a": "error",
    "tests.test_x.BrokenClass.test_b": "error",
    "tests.test_x.Case.test_bad": "failed",
    "tests.test_x.Case.test_error": "error",
    "tests.test_x.Case.test_ok": "passed",
    "tests.test_x.Case.test_skip": "skipped",
    "tests.test_x.Case.test_spin": "failed",
    "tests.test_x.Case.test_sub": "failed",
    "tests.test_x.Case.test_unexpected": "failed",
    "tests.test_x.Case.test_xfail": "xfailed",
    "tests.test_x.SkippedClass.test_c": "skipped",
}


def test_every_kind_of_outcome_with_its_details(tmp_path: Path) -> None:
    runner = runner_for(tmp_path, FILES, command=UNITTEST)
    assert runner.plan.kind == "unittest"
    run = runner.run(trace=True, per_test_timeout=1)
    assert outcomes(run) == EXPECTED
    assert (run.outcome, run.source, run.truncated) == ("failed", "unittest", False)
    tests = run.by_id()
    bad = tests["tests.test_x.Case.test_bad"]
    assert (bad.file, bad.line, bad.error_type) == ("tests/test_x.py", 7, "AssertionError")
    assert [(frame.file, frame.line) for frame in bad.stack] == [("tests/test_x.py", 7)]
    assert "1 != 2" in (bad.message or "")
    assert tests["tests.test_x.Case.test_skip"].message == "not today"
    assert tests["tests.test_x.Case.test_spin"].error_type == "TestTimeout"
    assert tests["tests.test_x.BrokenClass.test_a"].error_type == "ValueError"
    assert tests["tests.test_broken"].error_type == "ModuleNotFoundError"
    assert runner.coverage["tests.test_x.Case.test_ok"] == {"mod.py": frozenset({2, 4})}


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ("tests.test_x.Case.test_ok", "tests.test_x.Case.test_ok"),
        ("tests.test_x.BrokenClass", "tests.test_x.BrokenClass"),
        ("tests/test_x.py::Case::test_ok", "tests.test_x.Case.test_ok"),
        ("tests/test_x.py::BrokenClass", "tests.test_x.BrokenClass"),
    ],
)
def test_ids_are_accepted_back_and_paths_too(tmp_path: Path, asked: str, named: str) -> None:
    run = runner_for(tmp_path, FILES, command=UNITTEST).run([asked])
    assert outcomes(run) == {name: value for name, value in EXPECTED.items() if name.startswith(named)}
    assert run.outcome == ("failed" if "Broken" in named else "passed")


def test_a_module_that_needs_what_is_not_installed_is_the_environments_fault(tmp_path: Path) -> None:
    run = runner_for(tmp_path, FILES, command=UNITTEST).run(["tests.test_broken"])
    assert run.outcome == "env_broken"
    assert "no_such_thing" in (run.problem or "")


@pytest.mark.parametrize(
    "arguments", [(), ("discover",), ("discover", "-s", "tests", "-t", "."), ("-v", "tests.test_x")]
)
def test_arguments_of_the_command_are_kept(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    files = {
        "tests/__init__.py": "",
        "tests/test_x.py": "from unittest import *\nclass C(TestCase):\n def test_a(self): 1\n",
    }
    run = runner_for(tmp_path, files, command=(*UNITTEST, *arguments)).run()
    assert outcomes(run) == {"tests.test_x.C.test_a": "passed"}


def test_a_tests_folder_without_init_is_found(tmp_path: Path) -> None:
    files = {"tests/test_x.py": "import unittest\nclass C(unittest.TestCase):\n    def test_a(self): pass\n"}
    runner = runner_for(tmp_path, files, command=UNITTEST)
    run = runner.run()
    assert list(outcomes(run).values()) == ["passed"]
    assert outcomes(runner.run(list(outcomes(run)))) == outcomes(run)
    assert outcomes(runner.run(["tests/test_x.py::C::test_a"])) == outcomes(run)


def test_a_crash_leaves_results(tmp_path: Path) -> None:
    files = {
        "test_x.py": """
            import os, unittest
            class C(unittest.TestCase):
                def test_a(self): pass
                def test_b(self): os._exit(3)
                def test_c(self): pass
        """
    }
    run = runner_for(tmp_path, files, command=UNITTEST).run()
    assert outcomes(run) == {"test_x.C.test_a": "passed", "test_x.C.test_b": "error"}
    assert run.truncated

"""Real pytest runs: what is reported, test by test."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest
from attrs import evolve
from testing_kit import outcomes, runner_for, write

from agent_ls.settings import Settings, cache_dir
from agent_ls.testing.results import Outcome, TestResult

MANY = {
    "pkg/__init__.py": "",
    "pkg/calc.py": """
        def sign(x):
            if x < 0:
                return -1
            return 1

        def fail():
            return inner()

        def inner():
            raise LookupError("deep")

        def spin():
            while True:
                try:
                    sign(3)
                except Exception:
                    pass
    """,
    "conftest.py": "",
    "tests/test_many.py": """
        import subprocess, sys, unittest
        import pytest
        from pkg import calc

        def test_ok(): assert calc.sign(-2) == -1
        def test_bad(): assert calc.sign(2) == -1
        def test_deep(): calc.fail()
        @pytest.mark.parametrize("x", ["a b", "[x]", "é", "a::b", "a/b", ""])
        def test_p(x): assert x != "a/b"
        @pytest.fixture
        def broken(): raise ValueError("setup")
        @pytest.fixture
        def untidy():
            yield
            raise ValueError("teardown")
        def test_setup(broken): pass
        def test_teardown(untidy): pass
        def test_teardown_after_failure(untidy): assert 0
        @pytest.mark.skip(reason="not today")
        def test_skip(): pass
        @pytest.mark.xfail
        def test_xfail(): assert 0
        @pytest.mark.xfail
        def test_xpass(): pass
        @pytest.mark.xfail(strict=True)
        def test_xpass_strict(): pass
        def test_exit(): sys.exit(3)
        def test_spin(): calc.spin()
        class TestClass:
            def test_in(self): assert calc.sign(0) == 1
        class TestUnit(unittest.TestCase):
            def test_unit(self): self.assertEqual(calc.sign(1), 2)
        def test_long(): assert 0, "start" + "x" * 10000 + "end"
    """,
    "tests/test_broken.py": "import no_such_thing\n",
}
EXPECTED = {
    "tests/test_broken.py": "error",
    "tests/test_many.py::test_ok": "passed",
    "tests/test_many.py::test_bad": "failed",
    "tests/test_many.py::test_deep": "failed",
    "tests/test_many.py::test_p[a b]": "passed",
    "tests/test_many.py::test_p[[x]]": "passed",
    "tests/test_many.py::test_p[\\xe9]": "passed",
    "tests/test_many.py::test_p[a::b]": "passed",
    "tests/test_many.py::test_p[a/b]": "failed",
    "tests/test_many.py::test_p[]": "passed",
    "tests/test_many.py::test_setup": "error",
    "tests/test_many.py::test_teardown": "error",
    "tests/test_many.py::test_teardown_after_failure": "failed",
    "tests/test_many.py::test_skip": "skipped",
    "tests/test_many.py::test_xfail": "xfailed",
    "tests/test_many.py::test_xpass": "xpassed",
    "tests/test_many.py::test_xpass_strict": "failed",
    "tests/test_many.py::test_exit": "failed",
    "tests/test_many.py::test_spin": "failed",
    "tests/test_many.py::TestClass::test_in": "passed",
    "tests/test_many.py::TestUnit::test_unit": "failed",
    "tests/test_many.py::test_long": "failed",
}


def test_every_kind_of_outcome_with_its_details(tmp_path: Path) -> None:
    runner = runner_for(tmp_path, MANY)
    seen: list[TestResult] = []
    run = runner.run(trace=True, per_test_timeout=1, on_result=seen.append)
    assert outcomes(run) == EXPECTED
    assert list(outcomes(run)) == list(EXPECTED)
    assert {test.id: test for test in seen} == run.by_id()
    assert (run.outcome, run.source, run.truncated, run.exit_code) == ("failed", "pytest", False, 1)
    assert run.requested is None
    tests = run.by_id()
    many = "tests/test_many.py"

    bad = tests[f"{many}::test_bad"]
    assert (bad.file, bad.line, bad.error_type) == (many, 6, "AssertionError")
    assert "assert 1 == -1" in (bad.message or "")

    deep = tests[f"{many}::test_deep"]
    assert deep.error_type == "LookupError"
    assert [(frame.file, frame.line, frame.function) for frame in deep.stack] == [
        (many, 7, "test_deep"),
        ("pkg/calc.py", 7, "fail"),
        ("pkg/calc.py", 10, "inner"),
    ]
    spin = tests[f"{many}::test_spin"]
    assert spin.error_type == "TestTimeout"
    assert "not finished within 1 s" in (spin.message or "")
    assert "pkg/calc.py" in {frame.file for frame in spin.stack}
    assert "agent_ls_inside" not in (spin.message or "").replace("agent_ls_inside.common.TestTimeout", "")

    assert tests["tests/test_broken.py"].error_type == "ModuleNotFoundError"
    assert tests[f"{many}::test_setup"].error_type == "ValueError"
    assert "not today" in (tests[f"{many}::test_skip"].message or "")
    long = tests[f"{many}::test_long"].message or ""
    assert "start" in long
    assert "end" in long[-300:]
    assert len(long) < 2100

    assert runner.coverage[f"{many}::test_ok"] == {"pkg/calc.py": frozenset({2, 3})}
    assert runner.coverage[f"{many}::test_bad"] == {"pkg/calc.py": frozenset({2, 4})}
    assert runner.coverage[f"{many}::test_spin"]["pkg/calc.py"] >= {13, 14, 15}
    assert not list(runner.view.scratch.iterdir())
    assert not list(runner.view.worktree.rglob("__pycache__"))
    assert not (runner.view.worktree / ".pytest_cache").exists()


ASKED = [
    (["tests/test_many.py::test_p[a/b]", "tests/test_many.py::test_p[[x]]"], 2),
    (["tests/test_many.py::test_p"], 6),
    (["tests/test_many.py::TestClass", "tests/test_many.py::test_ok"], 2),
    (["tests/test_broken.py"], 1),
]


@pytest.mark.parametrize(("asked", "count"), ASKED)
def test_ids_are_accepted_back(tmp_path: Path, asked: list[str], count: int) -> None:
    run = runner_for(tmp_path, MANY).run(asked)
    assert len(run.tests) == count
    assert run.requested == tuple(asked)
    assert {test.id: EXPECTED[test.id] for test in run.tests} == outcomes(run)


@pytest.mark.parametrize(
    ("asked", "outcome", "unknown"),
    [
        (["tests/nope.py::test_x"], "env_broken", ["tests/nope.py::test_x"]),
        (["tests/test_many.py::test_nope"], "env_broken", ["tests/test_many.py::test_nope"]),
        (
            ["tests/test_many.py::test_nope", "tests/test_many.py::test_ok", "tests/nope.py"],
            "failed",
            ["tests/test_many.py::test_nope", "tests/nope.py"],
        ),
    ],
)
def test_unknown_ids_are_named(tmp_path: Path, asked: list[str], outcome: str, unknown: list[str]) -> None:
    run = runner_for(tmp_path, MANY).run(asked)
    assert run.outcome == outcome
    assert run.unknown == tuple(unknown)
    assert run.problem == f"no such tests: {', '.join(unknown)}"
    assert run.remedy


def test_no_ids_means_no_run(tmp_path: Path) -> None:
    run = runner_for(tmp_path, MANY).run([])
    assert (run.outcome, run.tests, run.requested) == ("passed", (), ())


def test_settings_of_the_project_that_would_hide_outcomes_are_overridden(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": """
            [tool.pytest.ini_options]
            addopts = "-x --lf --strict-markers --strict-config -q --tb=no -p xdist -n 2"
            cache_dir = ".my_cache"
            filterwarnings = ["error"]
        """,
        "test_a.py": """
            import pytest
            @pytest.mark.parametrize("n", range(6))
            def test_n(n): assert n % 2
        """,
    }
    runner = runner_for(tmp_path, files)
    run = runner.run(trace=True)
    assert list(outcomes(run)) == [f"test_a.py::test_n[{n}]" for n in range(6)]
    assert run.counts() == {"passed": 3, "failed": 3, "errors": 0, "skipped": 0}
    assert "assert (0 % 2)" in (run.tests[0].message or "")
    assert run.tests[0].stack[0].line == 3
    assert set(runner.coverage) == set(outcomes(run))
    assert len(list((cache_dir() / "executed").iterdir())) == 1  # for `refs --tests`
    assert sorted(path.name for path in runner.view.worktree.iterdir()) == ["pyproject.toml", "test_a.py"]
    assert len(runner.run(stop_on_first_failure=True).tests) < 6 + 2


def test_rootdir_elsewhere_still_gives_ids_from_the_root(tmp_path: Path) -> None:
    files = {
        "sub/pytest.ini": "[pytest]\n",
        "sub/tests/test_a.py": "def test_a(): pass\ndef test_b(): assert 0\n",
    }
    command = (sys.executable, "-m", "pytest", "-c", "sub/pytest.ini", "sub/tests")
    runner = runner_for(tmp_path, files, command=command)
    run = runner.run()
    assert outcomes(run) == {"sub/tests/test_a.py::test_a": "passed", "sub/tests/test_a.py::test_b": "failed"}
    assert run.tests[1].file == "sub/tests/test_a.py"
    assert outcomes(runner.run(["sub/tests/test_a.py::test_b"])) == {"sub/tests/test_a.py::test_b": "failed"}


CONCURRENT = {
    "test_concurrent.py": """
        import asyncio, http.client, http.server, multiprocessing, os, socket, subprocess, sys, threading
        from concurrent.futures import ProcessPoolExecutor

        def double(x): return 2 * x

        def test_pool():
            with multiprocessing.Pool(2) as pool:
                assert pool.map(double, range(4)) == [0, 2, 4, 6]
        def test_executor():
            with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
                assert list(pool.map(double, range(3))) == [0, 2, 4]
        def test_semaphore_and_shared_memory():
            from multiprocessing import shared_memory
            multiprocessing.Semaphore(1).acquire()
            memory = shared_memory.SharedMemory(create=True, size=10)
            memory.close(); memory.unlink()
        def test_asyncio_server():
            async def main():
                async def serve(reader, writer):
                    writer.write(await reader.readline()); await writer.drain(); writer.close()
                server = await asyncio.start_server(serve, "127.0.0.1", 0)
                reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
                writer.write(b"hi\\n")
                assert await reader.readline() == b"hi\\n"
                writer.close(); server.close()
            asyncio.run(asyncio.wait_for(main(), 20))
        def test_http():
            class Handler(http.server.BaseHTTPRequestHandler):
                def do_GET(self):
                    self.send_response(204); self.end_headers()
                def log_message(self, *args): pass
            server = http.server.ThreadingHTTPServer(("localhost", 0), Handler)
            thread = threading.Thread(target=server.serve_forever); thread.start()
            connection = http.client.HTTPConnection("localhost", server.server_port, timeout=20)
            connection.request("GET", "/")
            assert connection.getresponse().status == 204
            connection.close(); server.shutdown(); thread.join(); server.server_close()
        def test_socketpair():
            a, b = socket.socketpair(); a.sendall(b"x"); assert b.recv(1) == b"x"; a.close(); b.close()
        def test_asyncio_subprocess():
            async def main():
                process = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(1)", stdout=-1)
                return (await process.communicate())[0]
            assert asyncio.run(main()).strip() == b"1"
        def test_files(tmp_path, monkeypatch):
            (tmp_path / "a").write_text("x"); (tmp_path / "a").rename(tmp_path / "b")
            os.symlink("b", tmp_path / "c"); assert (tmp_path / "c").read_text() == "x"
            monkeypatch.chdir(tmp_path)
        def test_tree_is_writable():
            open("written", "w").write("x"); os.rename("written", "renamed"); os.remove("renamed")
        def test_home_exists():
            open(os.path.expanduser("~/x"), "w").write("y")
        def test_child(): assert subprocess.run([sys.executable, "-c", "import pytest"]).returncode == 0
        def test_terminal(): os.openpty()
    """
}


@pytest.mark.slow
def test_suites_with_processes_and_sockets_pass_inside(tmp_path: Path) -> None:
    run = runner_for(tmp_path, CONCURRENT).run(per_test_timeout=60)
    assert {name: outcome for name, outcome in outcomes(run).items() if outcome != "passed"} == {}
    assert len(run.tests) == 12


EDITABLE = {
    "src/thing/__init__.py": "VALUE = 'copy'\n",
    "test_thing.py": "def test_value():\n    import thing\n    assert thing.VALUE == 'copy'\n",
}


@pytest.mark.parametrize("mode", ["auto", "off"])
def test_an_editable_install_leads_to_the_copy(tmp_path: Path, mode: str) -> None:
    """The interpreter's path names the original checkout, as `pip install -e` makes it do."""
    environment = tmp_path / "repo" / ".venv"
    environment.mkdir(parents=True)
    _fake_editable_venv(environment, tmp_path / "repo" / "src")
    original = tmp_path / "repo/src/thing/__init__.py"
    original.parent.mkdir(parents=True)
    original.write_text("VALUE = 'original'\n")
    runner = runner_for(tmp_path, EDITABLE, mode=mode, settings=Settings())
    assert str(environment) in (runner.plan.interpreter or "")
    run = runner.run()
    assert outcomes(run) == {"test_thing.py::test_value": "passed"}, run


def test_without_a_sandbox_testing_the_wrong_code_is_noticed(tmp_path: Path) -> None:
    """An import hook or a path set by the tests themselves can still lead to the original."""
    original = tmp_path / "repo/src/thing/__init__.py"
    original.parent.mkdir(parents=True)
    original.write_text("VALUE = 'original'\n")
    files = {**EDITABLE, "conftest.py": f"import sys\nsys.path.insert(0, {str(tmp_path / 'repo/src')!r})\n"}
    off = runner_for(tmp_path, files, mode="off").run()
    assert off.outcome == "env_broken"
    assert "src/thing/__init__.py" in (off.problem or "")
    assert runner_for(tmp_path, files).run().outcome == "passed"


@pytest.mark.parametrize("hijack", [False, True])
def test_an_installed_copy_is_not_what_gets_tested(tmp_path: Path, hijack: bool) -> None:
    environment = tmp_path / "repo" / ".venv"
    environment.mkdir(parents=True)
    _fake_editable_venv(environment, tmp_path / "repo" / "nowhere")
    site = next(environment.glob("lib/python*/site-packages"))
    write(site, {"thing/__init__.py": "VALUE = 'installed'\n"})
    files = dict(EDITABLE)
    if hijack:
        files["conftest.py"] = f"import sys\nsys.path.insert(0, {str(site)!r})\n"
    runner = runner_for(tmp_path, files, settings=Settings())
    runner.view = evolve(runner.view, readonly=(environment,))
    run = runner.run()
    assert run.outcome == ("env_broken" if hijack else "passed")
    if hijack:
        assert "site-packages/thing" in (run.problem or "")
        assert "-e ." in (run.remedy or "")


VERSIONS = ["pytest==7.0.1", "pytest==8.0.2"]


@pytest.mark.slow
@pytest.mark.parametrize("requirement", VERSIONS)
def test_older_versions_of_pytest(tmp_path: Path, requirement: str) -> None:
    """In an environment of their own; skipped, saying so, where no package index can be reached."""
    environment = tmp_path / "env"
    venv.EnvBuilder(symlinks=True).create(environment)
    site = next(environment.glob("lib/python*/site-packages"))
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-compile", "--target", str(site), requirement]
    install = subprocess.run([*pip, "--retries", "0"], capture_output=True, text=True)
    if install.returncode:
        pytest.skip(f"{requirement} could not be installed: {install.stderr[-300:]}")
    runner = runner_for(tmp_path, MANY, settings=Settings(interpreter=str(environment / "bin/python")))
    assert f"pytest {requirement[8:]} on" in runner.plan.reasons[-1]
    run = runner.run(trace=True, per_test_timeout=1)
    assert outcomes(run) == EXPECTED
    assert runner.coverage["tests/test_many.py::test_ok"] == {"pkg/calc.py": frozenset({2, 3})}


def _fake_editable_venv(folder: Path, source: Path) -> None:
    """A virtual environment that sees our own pytest and has `source` on its path."""
    venv.EnvBuilder(symlinks=True).create(folder)
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "editable.pth").write_text(f"{source}\n")
    for entry in map(Path, sys.path):
        if entry.name == "site-packages":
            (site / "ours.pth").write_text(f"{entry}\n")


def test_two_edits_of_equal_size_within_a_second_are_both_seen(tmp_path: Path) -> None:
    runner = runner_for(
        tmp_path, {"mod.py": "X = 1\n", "test_a.py": "import mod\ndef test_a(): assert mod.X == 1\n"}
    )
    seen = []
    for value in (1, 2, 1):
        (runner.view.worktree / "mod.py").write_text(f"X = {value}\n")
        seen.append(runner.run().tests[0].outcome)
    assert seen == [Outcome.PASSED, Outcome.FAILED, Outcome.PASSED]


def test_a_file_that_the_command_names_too_runs_once(tmp_path: Path) -> None:
    files = {
        "tests/test_once.py": """
            RUNS = []
            def test_one():
                RUNS.append(1)
                assert len(RUNS) == 1
        """
    }
    command = (sys.executable, "-m", "pytest", "tests", "tests/test_once.py")
    run = runner_for(tmp_path, files, command=command).run(["tests/test_once.py::test_one"])
    assert outcomes(run) == {"tests/test_once.py::test_one": "passed"}

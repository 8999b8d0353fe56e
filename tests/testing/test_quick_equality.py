"""A forked run says what a fresh process says: the runner compares them itself, each time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from testing_kit import outcomes, runner_for

from agent_ls.testing.quick import QuickEvent, QuickRunner
from agent_ls.testing.results import TestRun

SUITE = """
    import asyncio, multiprocessing, os, random, subprocess, sys, tempfile, threading, warnings
    import pytest

    def double(number): return 2 * number

    @pytest.fixture(scope="session")
    def counter(): return [0]

    @pytest.fixture
    def broken(): raise RuntimeError("setup")

    @pytest.fixture
    def breaks_later():
        yield
        raise RuntimeError("teardown")

    def test_pass(): pass
    def test_descriptors():
        folder = "/proc/self/fd/"
        found = [os.readlink(folder + name) for name in os.listdir(folder) if os.path.exists(folder + name)]
        assert not [kind for kind in found if kind.startswith("socket:")]
    def test_fail(): assert double(2) == 5
    def test_raise(): raise KeyError("x")
    def test_error(broken): pass
    def test_teardown(breaks_later): pass
    def test_skip(): pytest.skip("not today")
    @pytest.mark.xfail
    def test_xfail(): assert 0
    @pytest.mark.xfail
    def test_xpass(): pass
    @pytest.mark.xfail(strict=True)
    def test_strict(): pass
    @pytest.mark.parametrize("text", ["a", "b c", "d::e", "ü", "x/y"])
    def test_ids(text): assert text != "d::e"
    def test_first(counter): counter[0] += 1; assert counter == [1]
    def test_second(counter): counter[0] += 1; assert counter == [2]
    def test_chdir(tmp_path): os.chdir(tmp_path)
    def test_env(): os.environ["LEFT"] = "1"
    def test_patched(monkeypatch): monkeypatch.setattr(os, "getcwd", lambda: "/nowhere")
    def test_modules():
        for name in ("json", "json.decoder", "xml", "agent_ls_inside.common"): sys.modules.pop(name, None)
        import json
        assert json.loads("[1]") == [1]
    def test_path(): sys.path.insert(0, "/nowhere"); sys.dont_write_bytecode = False
    def test_output(capfd): print("out"); os.write(2, b"err"); assert capfd.readouterr() == ("out\\n", "err")
    def test_flood():
        for _ in range(3000): os.write(1, b"x" * 1000)
    def test_warning(): warnings.warn("here", DeprecationWarning); assert 0
    def test_recursion():
        def down(): down()
        down()
    def test_asyncio():
        async def add(): await asyncio.sleep(0); return 3
        assert asyncio.run(add()) == 3
    def test_subprocess(): subprocess.run([sys.executable, "-S", "-c", "1"], check=True)
    def test_fork():
        with multiprocessing.get_context("fork").Pool(2) as pool: assert pool.map(double, [1]) == [2]
    def test_spawn():
        process = multiprocessing.get_context("spawn").Process(target=double, args=(1,))
        process.start(); process.join(); assert process.exitcode == 0
    def test_daemon(): threading.Thread(target=threading.Event().wait, daemon=True).start()
    def test_grandchild(): subprocess.Popen(["sleep", "600"], start_new_session=True)
    def test_stdin(): assert not os.read(0, 1) and not sys.stdout.isatty()
    def test_main(): assert sys.modules["__main__"].__spec__.name == "pytest.__main__"
    def test_arguments():
        assert sys.argv[0].endswith("__main__.py") and sys.orig_argv[1:3] == ["-m", "pytest"]
    def test_search(): assert sys.path[:2] == ["/nowhere", os.path.dirname(__file__)]
    def test_signals():
        import signal
        # A shell's background jobs, and all they start, ignore it.
        assert signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    def test_unseeded():
        assert random.random() != 0.5
"""

BAD = ["fail", "raise", "error", "teardown", "strict", "ids[d::e]", "warning", "recursion"]

# Whole files, as their first test ends the process: the body, and the outcomes of both tests.
CRASHES = {
    "exit": ("import os\n    os._exit(3)", {"test_a": "error"}),
    "segfault": ("import ctypes\n    ctypes.string_at(0)", {"test_a": "error"}),
    "pytest_exit": ("import pytest\n    pytest.exit('enough')", {"test_a": "error"}),
    "group": ("import os\n    os.killpg(0, 15)", {"test_a": "error"}),
    "closes": ("import os\n    os.closerange(3, 256)", {"test_a": "error"}),
    "lingers": (
        "import threading, time\n    threading.Thread(target=time.sleep, args=(0.3,)).start()",
        {"test_a": "passed", "test_b": "passed"},
    ),
    "at_exit": (
        "import atexit, os\n    atexit.register(os._exit, 7)",
        {"test_a": "passed", "test_b": "passed"},
    ),
    "import": ("pass\nimport nothing_of_this_name", {"": "error"}),
    "syntax": ("pass\ndef broken(:", {"": "error"}),
}


@pytest.fixture(scope="module")
def events() -> list[QuickEvent]:
    return []


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory, events: list[QuickEvent]) -> Iterator[QuickRunner]:
    base = tmp_path_factory.mktemp("quick")
    files = {"test_all.py": SUITE, "pytest.ini": "[pytest]\n"}
    for name, (body, _) in CRASHES.items():
        files[f"test_{name}.py"] = f"def test_a():\n    {body}\ndef test_b(): pass\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        runner = runner_for(base, files)
        with QuickRunner(runner, base / "quick", on_event=events.append, check_every=1) as quick:
            quick.run(["test_all.py::test_pass"])  # what to keep imported
            yield quick


def same(quick: QuickRunner, events: list[QuickEvent], ids: list[str]) -> TestRun:
    """The fresh run, after a forked one that says the same."""
    checked, forked = quick.counts.checked, quick.counts.forked
    run = quick.run(ids)
    assert quick.reason is None, events
    assert (quick.counts.checked, quick.counts.forked) == (checked + 1, forked + 1)
    return run


def test_every_kind_of_test(quick: QuickRunner, events: list[QuickEvent]) -> None:
    run = same(quick, events, ["test_all.py"])
    bad = [test.id.partition("::test_")[2] for test in run.tests if test.outcome.bad]
    assert sorted(bad) == sorted(BAD)
    assert len(run.tests) == 38


@pytest.mark.parametrize("name", CRASHES)
def test_ends_of_processes(name: str, quick: QuickRunner, events: list[QuickEvent]) -> None:
    run = same(quick, events, [f"test_{name}.py"])
    expected = {
        f"test_{name}.py" + (f"::{test}" if test else ""): what for test, what in CRASHES[name][1].items()
    }
    assert outcomes(run) == expected


@pytest.mark.parametrize(
    "ids",
    [
        ["test_all.py::test_ids[b c]", "test_all.py::test_second", "test_all.py::test_first"],
        ["test_all.py::test_pass", "test_all.py::no_such_test", "no_such_file.py::test_x"],
    ],
)
def test_selections(ids: list[str], quick: QuickRunner, events: list[QuickEvent]) -> None:
    same(quick, events, ids)

"""The warm process: what a run leaves, when it is started anew, when it is given up, and that it ends."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from testing_kit import outcomes, runner_for, write

from agent_ls.cancel import CancelToken
from agent_ls.sandbox.confine import View
from agent_ls.testing.quick import QuickEvent, QuickRunner, differs
from agent_ls.testing.results import Outcome, TestResult, TestRun

NEVER = 10**6

INI = "[pytest]\nfilterwarnings = error\n"

Make = Callable[..., tuple[QuickRunner, Path, list[QuickEvent]]]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """A quick runner over the given files, its worktree, its events; one run has taught it the imports."""
    made: list[QuickRunner] = []

    def build(
        files: dict[str, str],
        *,
        mode: str = "auto",
        command: tuple[str, ...] | None = None,
        every: int = NEVER,
    ) -> tuple[QuickRunner, Path, list[QuickEvent]]:
        events: list[QuickEvent] = []
        runner = runner_for(tmp_path, files, mode=mode, command=command)
        quick = QuickRunner(runner, tmp_path / "quick", on_event=events.append, check_every=every)
        made.append(quick)
        return quick, tmp_path / "worktree", events

    yield build
    for quick in made:
        quick.close()
    assert not (tmp_path / "quick").exists()


def states(events: list[QuickEvent]) -> list[str]:
    return [event.state for event in events]


LITTER = """
    import os, pathlib, shutil, subprocess, sys

    HOME = pathlib.Path.home()
    PLACES = [HOME / "left", pathlib.Path(__file__).parent / "ignored"]
    PLACES += [pathlib.Path(name) for name in ("new.txt", "new/deep/file", "/tmp/left", "/dev/shm/left")]
    if "AGENT_LS_IMPORTS" not in os.environ:  # forked: the scratch folder and the server's own
        PLACES.append(pathlib.Path(os.environ["AGENT_LS_RESULTS"]).parent.parent / "left")
        PLACES.append(pathlib.Path(sys.modules["agent_ls_inside"].__file__).parent.parent / "left")

    def test_litter(tmp_path):
        assert not [path for path in PLACES if path.exists()]
        assert pathlib.Path("data.txt").read_text() == "data" and pathlib.Path("gone.txt").exists()
        assert not os.access("tool.sh", os.X_OK) and os.readlink("link") == "data.txt"
        assert "LEFT" not in os.environ and not hasattr(sys, "left")
        assert list(tmp_path.parent.parent.glob("*[0-9]/test_litter*[0-9]")) == [tmp_path]
        for path in PLACES:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")
        before = os.stat("data.txt")
        pathlib.Path("data.txt").write_text("DATA")
        os.utime("data.txt", ns=(before.st_atime_ns, before.st_mtime_ns))
        pathlib.Path("gone.txt").unlink()
        os.chmod("tool.sh", 0o755)
        os.unlink("link"); os.symlink("/etc", "link")
        shutil.move("folder", "moved"); os.symlink("/etc", "folder")
        os.environ["LEFT"] = sys.left = "1"
        subprocess.Popen(["sleep", "600"], start_new_session=True)
        raise LookupError("all was as it should be")
"""


def test_nothing_that_a_run_does_reaches_the_next(make: Make) -> None:
    files = {
        "test_a.py": LITTER,
        "data.txt": "data",
        "gone.txt": "",
        "tool.sh": "",
        "folder/a": "a",
        ".gitignore": "ignored",
    }
    quick, worktree, events = make(files)
    (worktree / "link").symlink_to("data.txt")
    for _ in range(4):
        run = quick.run(["test_a.py"])
        assert run.tests[0].error_type == "LookupError", run.tests[0].message
    assert quick.reason is None, events
    assert quick.counts.forked == 3
    assert states(events) == ["started", "checked"]
    assert (worktree / "data.txt").read_text() == "data"
    assert not (worktree / "new").exists()


def test_installed_modules_below_the_repository(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = write(tmp_path / "repo" / "deps" / "site-packages", {"helper.py": "value = 1"})
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.setattr("testing_kit.View", functools.partial(View, readonly=(tmp_path / "repo" / "deps",)))
    quick, _, events = make(
        {"test_a.py": "import helper\ndef test_a(): assert helper.value == 2", ".gitignore": ""}
    )
    for _ in range(4):
        run = quick.run(["test_a.py"])
        assert "assert 1 == 2" in (run.tests[0].message or "")
    assert quick.reason is None, events
    (site / "helper.py").write_text("value = 22")
    assert "assert 22 == 2" in (quick.run(["test_a.py"]).tests[0].message or "")
    assert states(events) == ["started", "checked", "restarted", "started"]


PROPERTY = """
    import pathlib, hypothesis
    from hypothesis import configuration, database, strategies
    PLACE = pathlib.Path(configuration.storage_directory("examples").path)
    LEFT = list(PLACE.glob("*"))

    @hypothesis.settings(database=database.DirectoryBasedExampleDatabase(PLACE))
    @hypothesis.given(strategies.integers())
    def test_property(number): assert number < 100
    def test_clean(): assert not LEFT and list(PLACE.glob("*"))
"""


def test_examples_of_one_run_are_not_replayed_in_the_next(make: Make) -> None:
    quick, _, events = make({"test_a.py": PROPERTY})
    for _ in range(4):
        run = quick.run(["test_a.py"])
        assert outcomes(run) == {"test_a.py::test_property": "failed", "test_a.py::test_clean": "passed"}
    assert quick.reason is None, events


def test_an_edit_is_seen_and_newly_passing_is_confirmed(make: Make) -> None:
    quick, worktree, _ = make(
        {"test_a.py": "import mod\ndef test_f(): assert mod.f() == 2", "mod.py": "def f(): return 1"}
    )
    seen = []
    for text in (
        "def f(): return 1",
        "def f(): return 3",
        "def f(): return 4",
        "def f(): return 2",
        "def f(): return 2",
    ):
        (worktree / "mod.py").write_text(text)
        seen.append((quick.run(["test_a.py"]).outcome, quick.counts.checked))
    assert seen == [("failed", 0), ("failed", 1), ("failed", 1), ("passed", 2), ("passed", 2)]
    (worktree / "mod.py").unlink()
    (worktree / "mod").mkdir()
    (worktree / "mod" / "__init__.py").write_text("def f(): return 5")
    assert "assert 5 == 2" in (quick.run(["test_a.py"]).tests[0].message or "")
    assert quick.counts.started == 1


SOURCES = [
    "def f(): return 1",
    'def f(): return "\\d"  # warns when compiled',
    "def f(): return 1 +",
    "def f(): return 2",
    'def f(): return (2, "text")',
    "import gone",
    'def f():\n    assert (1, "always true")\n    return 2',
]


def test_sources_are_compiled_as_in_a_fresh_process(make: Make) -> None:
    text = "import mod\nfrom helper_test import check\n"
    text += "def test_f(): check(mod.f())\ndef test_g(): assert mod.f() == 2"
    helper = "def check(value): assert value == 2"
    files = {"test_a.py": text, "mod.py": "f = len", "helper_test.py": helper, "pytest.ini": INI}
    quick, worktree, events = make(files, every=1)
    for number, source in enumerate(SOURCES):
        (worktree / "mod.py").write_text(source)
        (worktree / "test_a.py").write_text(text + f"\n# {number}")
        run = quick.run(["test_a.py"])
        assert quick.reason is None, (source, events)
    assert quick.counts.checked == len(SOURCES) - 1
    assert quick.counts.started == 1
    (worktree / "helper_test.py").write_text(SOURCES[-1].replace("f()", "check(value)"))
    run = quick.run(["test_a.py"])
    assert quick.reason is None, events
    assert run.outcome == "failed"


def test_a_deadline_a_hang_and_a_cancel(make: Make) -> None:
    sleeps = "import time\ndef test_fast(): pass\ndef test_slow(): time.sleep(600)\n"
    quick, _, _ = make({"test_a.py": sleeps, "test_b.py": "def test_b(): assert 0"})
    quick.run(["test_b.py"])
    quick.run(["test_b.py"])
    began = time.monotonic()
    run = quick.run(["test_a.py"], timeout=1.5)
    assert (run.outcome, run.truncated) == ("timeout", True)
    assert outcomes(run) == {"test_a.py::test_fast": "passed", "test_a.py::test_slow": "error"}
    run = quick.run(["test_a.py"], per_test_timeout=0.3)
    assert (run.tests[1].outcome, run.tests[1].error_type) == (Outcome.FAILED, "TestTimeout")
    token = CancelToken()
    seen: list[str] = []

    def on_result(result: TestResult) -> None:
        seen.append(result.id)
        token.cancel()

    run = quick.run(["test_a.py"], cancel=token, on_result=on_result)
    assert seen == ["test_a.py::test_fast", "test_a.py::test_slow"][: len(seen)] and seen
    assert (run.outcome, run.truncated) == ("timeout", True)
    assert quick.reason is None
    assert quick.counts.started == 1
    assert quick.run(["test_b.py"]).outcome == "failed"
    assert time.monotonic() - began < 60


CHANGES: dict[str, Callable[[Path, pytest.MonkeyPatch], object]] = {
    "pyproject.toml": lambda root, _: (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n"),
    "conftest.py": lambda root, _: (root / "conftest.py").write_text("import json\n"),
    "uv.lock": lambda root, _: (root / "uv.lock").write_text("version = 1\n"),
    "the variable TZ": lambda _, patch: patch.setenv("TZ", "Asia/Tokyo"),
}


def test_it_is_started_anew_when_the_configuration_changes(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick, worktree, events = make({"test_a.py": "def test_a(): assert 0"})
    quick.run(["test_a.py"])
    quick.run(["test_a.py"])
    for name, change in CHANGES.items():
        del events[:]
        change(worktree, monkeypatch)
        quick.run(["test_a.py"])
        assert [(event.state, event.reason) for event in events][:1] == [("restarted", f"{name} changed")]
        assert states(events) == ["restarted", "started"]
    assert quick.reason is None


def test_installed_packages_change(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = write(tmp_path / "lib" / "site-packages", {"helper.py": "value = 1"})
    monkeypatch.setenv("PYTHONPATH", str(site))
    quick, _, events = make(
        {"test_a.py": "import helper\ndef test_a(): assert helper.value == 3"}, mode="off"
    )
    said = []
    for text in ("value = 1", "value = 2", "value = 22"):
        (site / "helper.py").write_text(text)
        said.append((quick.run(["test_a.py"]).tests[0].message or "").partition("where ")[2][:5])
    quick.run(["test_a.py"])
    (site / "other.dist-info").mkdir()
    run = quick.run(["test_a.py"])
    assert said == ["1 = h", "2 = h", "22 = "]
    assert run.outcome == "failed"
    reasons = [event.reason for event in events if event.state == "restarted"]
    assert [reason.rpartition("/")[2] for reason in reasons] == ["helper.py changed", "site-packages changed"]


THREADED = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"


def test_a_package_that_starts_a_thread_is_left_out(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = write(
        tmp_path / "site-packages", {"busy/__init__.py": THREADED, "user.py": "import busy", "calm.py": ""}
    )
    monkeypatch.setenv("PYTHONPATH", str(site))
    quick, _, events = make({"test_a.py": "import user, calm\ndef test_a(): assert 0"}, mode="off")
    for _ in range(3):
        quick.run(["test_a.py"])
    assert quick.reason is None
    assert quick.counts.forked == 2
    [started] = [event.reason for event in events if event.state == "started"]
    assert started.endswith("imported in each run: busy, user")


FAILS = "def test_a(): assert 0\n"
SHADOWED = "a_plugin.py of the project has the name of an installed module"
OBSTACLES = {
    # name: (text of an installed plugin, options, test file, files made after the first run, reason)
    "thread": (THREADED, "-p a_plugin", FAILS, {}, "a_plugin: it starts a thread when imported"),
    "own": ("import own", "-p a_plugin", FAILS, {}, "a_plugin: it imports own, a file of the project"),
    "xdist": ("", "-p xdist.plugin -p xdist.looponfail -n1", FAILS, {}, "pytest-xdist distributes the tests"),
    "shadow": ("", "", f"import a_plugin\n{FAILS}", {"a_plugin.py": ""}, SHADOWED),
}


@pytest.mark.parametrize("name", OBSTACLES)
def test_suites_that_can_not_be_forked(
    name: str, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin, options, text, later, reason = OBSTACLES[name]
    if name == "xdist":
        pytest.importorskip("xdist")
    site = write(
        tmp_path / "site-packages", {"a_plugin.py": f"{plugin}\ndef pytest_configure(config): pass\n"}
    )
    (tmp_path / "elsewhere").symlink_to("worktree")
    monkeypatch.setenv("PYTHONPATH", f"{site}:{tmp_path / 'elsewhere'}")
    files = {"test_a.py": text, "own.py": "", "pytest.ini": f"[pytest]\naddopts = {options}"}
    quick, worktree, events = make(files, mode="off")
    quick.run(["test_a.py"])
    write(worktree, later)
    assert quick.run(["test_a.py"]).outcome == "failed"
    assert (quick.reason, events[-1]) == (reason, QuickEvent("fallback", reason))
    assert quick.pid is None
    assert quick.run(["test_a.py"]).outcome == "failed"


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"test_a.py": "import unittest"}, ("python", "-m", "unittest")),
        ({"test_a.py": ""}, ("make", "test")),
    ],
)
def test_other_runners_are_not_forked(files: dict[str, str], command: tuple[str, ...], make: Make) -> None:
    assert make(files, command=command)[0].reason == "the tests are not run by pytest"


def test_after_an_interruption_it_starts_anew(make: Make) -> None:
    text = "import time\ndef test_fast(): pass\ndef test_slow(): time.sleep(600)\ndef test_bad(): assert 0"
    quick, _, _ = make({"test_a.py": text})

    def interrupt(result: TestResult) -> None:
        raise KeyboardInterrupt

    for _ in range(2):
        quick.run(["test_a.py::test_bad"])
    with pytest.raises(KeyboardInterrupt):
        quick.run(["test_a.py"], on_result=interrupt)
    assert outcomes(quick.run(["test_a.py::test_bad"])) == {"test_a.py::test_bad": "failed"}
    assert (quick.reason, quick.counts.started) == (None, 2)


def test_a_difference_ends_it(make: Make) -> None:
    quick, _, events = make({"test_a.py": "import os\ndef test_a(): assert 'AGENT_LS_IMPORTS' in os.environ"})
    runs = [quick.run(["test_a.py"]) for _ in range(3)]
    assert [run.outcome for run in runs] == ["passed"] * 3
    assert states(events) == ["started", "fallback"]
    assert quick.reason == (
        "a forked and a fresh process disagree: test_a.py::test_a: failed AssertionError and passed"
    )
    assert quick.counts.forked == 1


def test_the_warm_process_is_killed(make: Make) -> None:
    quick, _, events = make({"test_a.py": "def test_a(): assert 0"})
    for _ in range(3):
        run = quick.run(["test_a.py"])
    assert quick.pid is not None
    os.kill(quick.pid, signal.SIGKILL)
    run = quick.run(["test_a.py"])
    assert outcomes(run) == {"test_a.py::test_a": "failed"}
    assert "ended by itself" in (quick.reason or "") or "is gone" in (quick.reason or "")
    assert states(events)[-1] == "fallback"


@pytest.mark.parametrize("mode", ["auto", "off"])
def test_a_test_kills_the_warm_process(mode: str, make: Make) -> None:
    kills = "if 'AGENT_LS_IMPORTS' not in os.environ: os.kill(os.getppid(), 9)"
    text = f"import os\ndef test_a():\n    {kills}\n    assert 0"
    quick, _, events = make({"test_a.py": text}, mode=mode)
    for _ in range(3):
        run = quick.run(["test_a.py"])
        assert outcomes(run) == {"test_a.py::test_a": "failed"}
    assert quick.reason is not None
    assert states(events) == ["started", "fallback"]


OUR_SIDE = """
import sys
from pathlib import Path
sys.path.insert(0, {kit!r})
from testing_kit import runner_for
from agent_ls.testing.quick import QuickRunner
base = Path({base!r})
quick = QuickRunner(runner_for(base, {{"test_a.py": {test!r}}}, mode={mode!r}), base / "quick")
quick.run(["test_a.py"])
quick.run(["test_a.py"])
"""
SLEEPS = "import os, time\ndef test_a():\n    if 'AGENT_LS_IMPORTS' not in os.environ: time.sleep(600)\n"


@pytest.mark.parametrize("mode", ["auto", "off"])
def test_it_ends_with_us(mode: str, tmp_path: Path) -> None:
    text = OUR_SIDE.format(kit=str(Path(__file__).parent), base=str(tmp_path), mode=mode, test=SLEEPS)
    ours = subprocess.Popen([sys.executable, "-c", text])
    try:
        below = wait_for(lambda: warm(ours.pid))
        os.kill(ours.pid, signal.SIGKILL)
        ours.wait(10)
        assert wait_for(lambda: not [process for process in below if alive(process)])
    finally:
        ours.kill()
        ours.wait(10)


def warm(pid: int) -> list[psutil.Process]:
    """Everything below `pid` once a run has been forked: a server and its child, which share a command."""
    try:
        below = [it for it in psutil.Process(pid).children(recursive=True) if alive(it)]
        servers = {process.pid for process in below if process.cmdline()[1:2] == ["-m"]}
        return below if any(process.ppid() in servers for process in below) else []
    except psutil.NoSuchProcess:  # one ended while it was looked at
        return []


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def wait_for(condition: Callable[[], Any], seconds: float = 60) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    return condition()


def test_close_leaves_no_process(make: Make) -> None:
    quick, _, _ = make({"test_a.py": "def test_a(): assert 0"}, mode="off")
    quick.run(["test_a.py"])
    quick.run(["test_a.py"])
    assert quick.pid is not None
    process = psutil.Process(quick.pid)
    quick.close()
    assert not alive(process)
    assert quick.run(["test_a.py"]).outcome == "failed"
    assert quick.pid is None


def test_threads_take_turns(make: Make) -> None:
    quick, _, _ = make({"test_a.py": "def test_a(): assert 0\ndef test_b(): assert 0"})
    quick.run(["test_a.py"])
    found: list[TestRun] = []
    threads = [
        threading.Thread(target=lambda name=name: found.append(quick.run([f"test_a.py::test_{name}"])))
        for name in "ab"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(run.tests[0].id for run in found) == ["test_a.py::test_a", "test_a.py::test_b"]
    assert quick.reason is None


def a_run(outcome: str = "failed", truncated: bool = False, **tests: tuple[Outcome, str | None]) -> TestRun:
    results = tuple(TestResult(name, kind, error_type=error) for name, (kind, error) in tests.items())
    return TestRun(("x",), outcome, results, truncated=truncated)  # type: ignore[arg-type]


FAIL = (Outcome.FAILED, "AssertionError")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (a_run(t=FAIL), a_run(t=FAIL), None),
        (a_run(t=FAIL), a_run(), "t was reported by only one of them"),
        (
            a_run(t=FAIL),
            a_run(t=(Outcome.FAILED, "KeyError")),
            "t: failed AssertionError and failed KeyError",
        ),
        (a_run(t=FAIL), a_run("passed", t=(Outcome.PASSED, None)), "t: failed AssertionError and passed"),
        (a_run(truncated=True), a_run(), "truncated: True and False"),
        (a_run("passed"), a_run(), "outcome: passed and failed"),
    ],
)
def test_what_differs(one: TestRun, other: TestRun, expected: str | None) -> None:
    assert differs(one, other) == expected

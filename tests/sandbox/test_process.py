"""Processes are started, bounded and ended, and nothing of them survives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from agent_ls.cancel import CancelToken
from agent_ls.errors import Cancelled
from agent_ls.sandbox._limits import ResourceLimits, Watchdog
from agent_ls.sandbox.process import run, run_helper, start

ENV = {"PATH": os.environ["PATH"]}
PY = [sys.executable, "-I", "-S", "-c"]

# Leaves a daemon that left the session, lost its parent and holds our pipe; its pid goes to the file.
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open(sys.argv[1], "w").write(str(os.getpid()))
        time.sleep(600)
    os._exit(0)
while not (os.path.exists(sys.argv[1]) and os.path.getsize(sys.argv[1])):
    time.sleep(0.01)
print("parent done", flush=True)
"""


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize(
    ("code", "exit_code", "signal_number", "output"),
    [
        ("print('hello')", 0, None, "hello\n"),
        ("import sys; sys.stderr.write('e'); sys.exit(3)", 3, None, "e"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", None, signal.SIGKILL, ""),
        ("import sys; print(repr(sys.stdin.read()))", 0, None, "''\n"),
        ("import sys; sys.stdout.buffer.write(b'a\\xff\\xfeb')", 0, None, "a\ufffd\ufffdb"),
        ("import os; os.close(1); os.close(2); import time; time.sleep(0.1)", 0, None, ""),
    ],
)
def test_run_reports_how_it_ended(
    tmp_path: Path, code: str, exit_code: int | None, signal_number: int | None, output: str
) -> None:
    result = run([*PY, code], cwd=tmp_path, env=ENV, timeout=30)
    assert (result.exit_code, result.signal, result.output) == (exit_code, signal_number, output)
    assert result.started
    assert not result.timed_out


@pytest.mark.parametrize("argv", [["/no/such/program"], ["."], ["a\0b"]])
def test_a_program_that_cannot_start_is_a_result(tmp_path: Path, argv: list[str]) -> None:
    result = run(argv, cwd=tmp_path, env=ENV)
    assert not result.started
    assert argv[0] in result.output


def test_huge_output_is_bounded_and_keeps_both_ends(tmp_path: Path) -> None:
    code = (
        "import os\nos.write(1, b'first ')\nfor _ in range(200): os.write(1, b'x' * 1000000)\n"
        "os.write(1, b' last')"
    )
    before = psutil.Process().memory_info().rss
    result = run([*PY, code], cwd=tmp_path, env=ENV, timeout=60, output_cap=10_000)
    # A pipe may take a part of a large write, so only the order of magnitude is certain.
    assert result.output_bytes > 10_000_000
    assert result.output_truncated
    assert result.output.startswith("first ")
    assert result.output.endswith(" last")
    assert "bytes left out" in result.output
    assert len(result.output) < 11_000
    assert psutil.Process().memory_info().rss - before < 50_000_000


def test_deadline_kills_what_ignores_sigterm(tmp_path: Path) -> None:
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
    result = run([*PY, code], cwd=tmp_path, env=ENV, timeout=0.5)
    assert result.timed_out
    assert result.signal == signal.SIGKILL
    assert result.output == "up\n"


@pytest.mark.parametrize("ending", ["", "time.sleep(600)"], ids=["exits", "hangs"])
def test_a_daemon_that_holds_the_pipe_is_killed(tmp_path: Path, ending: str) -> None:
    pid_file = tmp_path / "pid"
    result = run([*PY, DAEMON + ending, str(pid_file)], cwd=tmp_path, env=ENV, timeout=3 if ending else 60)
    assert result.output == "parent done\n"
    assert result.timed_out == bool(ending)
    assert gone(int(pid_file.read_text()))


def test_a_daemon_that_hides_its_environment_is_killed(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    inner = [*PY, DAEMON, str(pid_file)]
    code = f"import os; os.execve({sys.executable!r}, {inner!r}, {{}})"
    assert run([*PY, code], cwd=tmp_path, env=ENV, timeout=30).exit_code == 0
    assert gone(int(pid_file.read_text()))


def test_a_fork_bomb_is_ended(tmp_path: Path) -> None:
    # Bounded, so that a failure of this test does not take the machine with it.
    code = """
import os, time
depth = 0
while depth < 7:
    os.fork()
    depth += 1
time.sleep(600)
"""
    result = run([*PY, code], cwd=tmp_path, env=ENV, timeout=1)
    assert result.timed_out
    marked = [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] and code in p.info["cmdline"]]
    assert [p for p in marked if p.status() != psutil.STATUS_ZOMBIE] == []


def test_children_of_other_code_and_concurrent_runs_are_left_alone(tmp_path: Path) -> None:
    bystander = subprocess.Popen([*PY, "import time; time.sleep(60)"])
    other = start([*PY, "import time; time.sleep(60)"], cwd=tmp_path, env=ENV)
    try:
        pid_file = tmp_path / "pid"
        assert run([*PY, DAEMON, str(pid_file)], cwd=tmp_path, env=ENV, timeout=30).exit_code == 0
        assert gone(int(pid_file.read_text()))
        assert bystander.poll() is None
        assert other.poll() is None
    finally:
        bystander.kill()
        bystander.wait()
        other.kill()
    assert other.poll() is not None


def test_cancel_reaches_a_running_process(tmp_path: Path) -> None:
    token = CancelToken()
    ready = threading.Event()
    code = "import time; print('up', flush=True); time.sleep(600)"

    def cancel_when_up() -> None:
        ready.wait(30)
        token.cancel()

    thread = threading.Thread(target=cancel_when_up)
    thread.start()
    result = run([*PY, code], cwd=tmp_path, env=ENV, cancel=token, on_output=lambda _: ready.set())
    thread.join()
    assert result.cancelled
    assert result.output == "up\n"
    assert run([*PY, code], cwd=tmp_path, env=ENV, cancel=token).started is False


def test_start_gives_a_handle_with_an_extra_channel(tmp_path: Path) -> None:
    read, write = os.pipe()
    code = (
        "import os, sys, time; os.write(int(sys.argv[1]), b'hi'); print('out', flush=True); time.sleep(600)"
    )
    running = start([*PY, code, str(write)], cwd=tmp_path, env=ENV, pass_fds=(write,))
    os.close(write)
    assert os.read(read, 10) == b"hi"
    os.close(read)
    assert running.poll() is None
    assert running.wait(0.01) is None
    running.kill()
    running.kill()
    result = running.poll()
    assert result is not None
    assert result.signal in (signal.SIGTERM, signal.SIGKILL)
    assert gone(running.pid)


def test_a_parent_death_signal_outlives_the_starting_thread(tmp_path: Path) -> None:
    """PR_SET_PDEATHSIG is tied to the thread that forked: that must not be the caller's."""
    code = "import ctypes, time; ctypes.CDLL(None).prctl(1, 9); print('armed', flush=True); time.sleep(600)"
    handles = []
    armed = threading.Event()

    def launch() -> None:
        handles.append(start([*PY, code], cwd=tmp_path, env=ENV, on_output=lambda _: armed.set()))
        armed.wait(30)

    thread = threading.Thread(target=launch)
    thread.start()
    thread.join()
    assert handles[0].wait(0.3) is None
    handles[0].kill()


def test_a_watchdog_ends_the_process(tmp_path: Path) -> None:
    result = run([*PY, "import time; time.sleep(600)"], cwd=tmp_path, env=ENV, watch=lambda pid: "too much")
    assert result.problem == "too much"
    assert result.signal is not None


def test_keyboard_interrupt_kills_the_child(tmp_path: Path) -> None:
    """A real Ctrl-C at a real program that uses `run`: it dies within moments and so does its child."""
    script = tmp_path / "main.py"
    child = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    script.write_text(
        "import signal, sys\nfrom agent_ls.sandbox.process import run\n"
        # a suite started in the background inherits an ignored SIGINT
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"child = [sys.executable, '-c', {child!r}]\n"
        "run(child, cwd='.', env={}, on_output=lambda t: print(t, flush=True))\n"
    )
    main = subprocess.Popen(
        [sys.executable, str(script)], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert main.stdout is not None
    pid = int(main.stdout.readline())
    main.send_signal(signal.SIGINT)
    _, errors = main.communicate(timeout=20)
    assert "KeyboardInterrupt" in errors
    assert gone(pid)


def test_run_helper_returns_all_of_both_streams(tmp_path: Path) -> None:
    code = (
        "import sys; data = sys.stdin.buffer.read(); sys.stdout.buffer.write(data * 2); sys.stderr.write('e')"
    )
    data = os.urandom(300_000)
    result = run_helper([*PY, code], cwd=tmp_path, env=ENV, input=data)
    assert (result.returncode, result.stdout, result.stderr) == (0, data * 2, b"e")


@pytest.mark.parametrize(
    ("before", "ended_by"),
    [
        ("", signal.SIGTERM),
        ("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); ", signal.SIGKILL),
    ],
    ids=["asked", "killed"],
)
def test_run_helper_deadline_and_cancel(before: str, ended_by: signal.Signals, tmp_path: Path) -> None:
    """It is asked to end, so that git can remove its locks, and killed when it does not."""
    pid_file = tmp_path / "pid"
    sleeper = [*PY, f"{before}import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"]
    result = run_helper(sleeper, cwd=tmp_path, timeout=1, input=b"x" * 100_000)
    assert result.timed_out
    assert result.returncode == -ended_by
    pid_file.unlink()
    token = CancelToken()

    def cancel_when_started() -> None:
        while not (pid_file.exists() and pid_file.read_text()):
            time.sleep(0.01)
        token.cancel()

    thread = threading.Thread(target=cancel_when_started)
    thread.start()
    with pytest.raises(Cancelled):
        run_helper(sleeper, cwd=tmp_path, timeout=60, cancel=token, input=b"x" * 100_000)
    thread.join()
    assert gone(int(pid_file.read_text()))


def test_run_helper_without_a_program(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run_helper(["/no/such/program"], cwd=tmp_path)


def test_no_zombies_or_descriptors_pile_up(tmp_path: Path) -> None:
    run([*PY, "pass"], cwd=tmp_path, env=ENV)
    before, earlier = psutil.Process().num_fds(), _zombies()
    for _ in range(10):
        run([*PY, "pass"], cwd=tmp_path, env=ENV)
    assert psutil.Process().num_fds() == before
    assert _zombies() <= earlier


def _zombies() -> set[int]:
    return {p.pid for p in psutil.Process().children() if p.status() == psutil.STATUS_ZOMBIE}


def test_ignored_and_blocked_signals_are_not_inherited(tmp_path: Path) -> None:
    """As a shell's background job or under nohup we start with signals ignored."""
    show = (
        "import signal; print(*(signal.getsignal(n) == signal.SIG_DFL for n in (1, 3, 10)),"
        " signal.pthread_sigmask(0, []))"
    )
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (1, 3, 10)}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    try:
        result = run([*PY, show], cwd=tmp_path, env=ENV, timeout=30)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)
    assert result.output == "True True True set()\n"


def test_processes_are_counted_although_others_end_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_ls.sandbox._limits._INTERVAL_S", 0)
    watchdog = Watchdog(tmp_path, ResourceLimits(processes=1))
    monkeypatch.setattr("agent_ls.sandbox._limits._tasks", lambda: 0)  # as if half the machine had ended
    child = subprocess.Popen(["sleep", "60"])
    try:
        assert "processes and threads" in (watchdog.check(os.getpid()) or "")
    finally:
        child.kill()
        child.wait()

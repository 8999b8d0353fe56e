"""What a confined process sees, can't see, can do and can't do."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from pathlib import Path

import pytest
from confine_kit import Place, fingerprint, git, make_place

from agent_ls.cancel import CancelToken
from agent_ls.errors import UsageError
from agent_ls.sandbox import bwrap, confine, landlock
from agent_ls.sandbox.confine import BwrapSandbox, LandlockSandbox, NoSandbox, Sandbox, View, choose
from agent_ls.sandbox.environment import scrubbed_env
from agent_ls.sandbox.process import ProcessResult

PREFIXES = (Path(sys.prefix), Path(sys.base_prefix))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return make_place(tmp_path)


@pytest.fixture
def sandbox() -> Sandbox:
    return choose("auto")


def python(
    sandbox: Sandbox, place: Place, code: str, timeout: float = 60, **changes: object
) -> ProcessResult:
    env = {**scrubbed_env(), "HOME": str(place.home)}
    view = place.view(visible=PREFIXES, **changes)
    return sandbox.run([sys.executable, "-c", code], view=view, env=env, timeout=timeout)


def test_the_worktree_lies_over_the_repository(sandbox: Sandbox, place: Place) -> None:
    code = f"import os; print(os.getcwd()); print(open({str(place.repo / 'f.txt')!r}).read())"
    result = python(sandbox, place, code)
    assert result.output == f"{place.repo}\nagent's\n\n"
    assert sandbox.inside(place.view(), place.worktree / "a/b") == place.repo / "a/b"
    assert sandbox.outside(place.view(), place.repo / "a/b") == place.worktree / "a/b"
    assert (
        sandbox.outside(place.view(), sandbox.inside(place.view(), place.scratch / "x"))
        == place.scratch / "x"
    )


@pytest.mark.parametrize("protect", [False, True])
def test_writes_go_where_they_should(sandbox: Sandbox, place: Place, protect: bool) -> None:
    before = fingerprint(place.base)
    scratch = sandbox.inside(place.view(), place.scratch)
    code = f"""
import os, shutil
open("new.txt", "w").write("x"); open("f.txt", "a").write("more")
print(open("f.txt").read())
open({str(scratch / "out")!r}, "w").write("y")
open(os.path.join(os.environ["TMPDIR"], "t"), "w").write("z")
open(os.path.expanduser("~/h"), "w").write("z")
"""
    result = python(sandbox, place, code, protect=protect)
    assert (result.exit_code, result.output) == (0, "agent's\nmore\n")
    after = fingerprint(place.base)
    written = {"state/scratch/out"} if protect else {"state/scratch/out", "state/worktree/new.txt"}
    assert set(after) - set(before) == written
    changed = {name for name in before if before[name] != after.get(name)}
    assert changed == (set() if protect else {"state/worktree/f.txt"})


HIDDEN = {
    "ssh key": "open(os.path.expanduser('~/.ssh/id_rsa'))",
    "aws": "open(os.path.expanduser('~/.aws/credentials'))",
    "netrc": "open(os.path.expanduser('~/.netrc'))",
    "config": "open(os.path.expanduser('~/.config/gh/hosts.yml'))",
    "git credentials": "open(os.path.expanduser('~/.git-credentials'))",
    "write to etc": "open('/etc/agent-ls-test', 'w')",
    "write to usr": "open('/usr/agent-ls-test', 'w')",
    "write beside the repository": "open(REPO + '/../../../state/worktree/x', 'w')",
    "write to the interpreter": "open(sys.prefix + '/agent-ls-test', 'w')",
    "the outside network": "[n for _, n in socket.if_nameindex() if n != 'lo'] or 1 / 0",
    "remount": "subprocess.run(['mount', '-o', 'remount,rw', '/'], check=True, stderr=-3)",
    "parent's environment": "open('/proc/%d/environ' % PARENT).read()",
    "signal the parent": "os.kill(PARENT, 0)",
    "write a ref": "open(GIT + '/refs/heads/evil', 'w')",
    "write a hook": "open(GIT + '/hooks/post-commit', 'w')",
    "write the git config": "open(GIT + '/config', 'a')",
    "write an object": "os.mkdir(GIT + '/objects/zz')",
    "replace the pointer to git": "open(REPO + '/.git', 'w')",
    "remove the pointer to git": "os.remove(REPO + '/.git')",
    "commit": "subprocess.run(['git', 'commit', '-qam', 'evil'], check=True, stderr=-3)",
    "token in a remote": "b'SECRET' in subprocess.check_output(['git', 'remote', '-v']) or 1 / 0",
}


@pytest.mark.parametrize("attempt", HIDDEN.values(), ids=HIDDEN.keys())
def test_what_is_refused(sandbox: Sandbox, place: Place, attempt: str) -> None:
    code = f"""
import os, socket, subprocess, sys
REPO, PARENT = {str(place.repo)!r}, {os.getpid()}
GIT = subprocess.check_output(["git", "rev-parse", "--git-common-dir"], text=True).strip()
try:
    {attempt}
except (OSError, subprocess.CalledProcessError, ZeroDivisionError):
    print("refused")
else:
    print("done")
"""
    before = fingerprint(place.base)
    result = python(sandbox, place, code)
    assert result.output.splitlines()[-1] == "refused", result.output
    assert fingerprint(place.base) == before


def test_git_can_be_read(sandbox: Sandbox, place: Place) -> None:
    code = """
import subprocess
for args in ("describe --tags", "status --short", "rev-parse --show-toplevel", "log --oneline"):
    print(subprocess.check_output(["git", *args.split()], text=True).strip())
"""
    result = python(sandbox, place, code)
    short = git(place.repo, "rev-parse", "--short", "HEAD").strip()
    assert result.output.splitlines() == ["v1.2.3", "M f.txt", str(place.repo), f"{short} first"]


def test_ignored_folders_are_bound_read_only(sandbox: Sandbox, place: Place) -> None:
    (place.repo / ".venv/lib").mkdir(parents=True)
    (place.repo / ".venv/lib/x.py").write_text("x = 1")
    code = """
print(open(".venv/lib/x.py").read())
try: open(".venv/lib/y.py", "w")
except OSError as error: print(error.strerror)
"""
    result = python(sandbox, place, code, readonly=(place.repo / ".venv",))
    assert result.output == "x = 1\nRead-only file system\n"
    assert git(place.worktree, "status", "--short").strip() == "M f.txt"


def test_loopback_works_and_the_host_is_not_on_it(sandbox: Sandbox, place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"""
import socket
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname(), 5)
print("own")
try: socket.create_connection(("127.0.0.1", {server.getsockname()[1]}), 2)
except OSError: print("no host")
"""
        assert python(sandbox, place, code).output == "own\nno host\n"
        assert python(sandbox, place, code, network=True).output == "own\n"


def test_limits_are_in_force(sandbox: Sandbox, place: Place) -> None:
    code = """
import resource, signal
print(*(resource.getrlimit(k)[0] for k in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE)))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
f = open("big", "wb")
try: f.truncate((2 << 30) + 1)
except OSError as error: print(error.strerror)
try: x = bytearray(resource.getrlimit(resource.RLIMIT_DATA)[0] + 1)
except MemoryError: print("no memory")
print(open("/proc/self/oom_score_adj").read().strip())
"""
    for one in (sandbox, choose("off")):
        result = python(one, place, code)
        assert result.output.splitlines() == [f"{2 << 30} 0", "File too large", "no memory", "1000"]


def test_a_crash_is_a_signal_and_an_exit_code_stays_one(sandbox: Sandbox, place: Place) -> None:
    crash = python(sandbox, place, "import os; os.kill(os.getpid(), 11)")
    assert (crash.signal, crash.exit_code) == (signal.SIGSEGV, None)
    assert python(sandbox, place, "raise SystemExit(77)").exit_code == 77


def test_cancel_and_kill_reach_inside(sandbox: Sandbox, place: Place) -> None:
    token = CancelToken()
    env = scrubbed_env()
    argv = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
    view = place.view(visible=PREFIXES)
    result = sandbox.run(
        argv, view=view, env=env, cancel=token, on_output=lambda _: token.cancel(), timeout=60
    )
    assert result.cancelled
    assert not result.timed_out
    up = threading.Event()
    running = sandbox.start(argv, view=view, env=env, on_output=lambda _: up.set())
    assert up.wait(60)
    assert running.poll() is None
    running.kill()
    assert running.poll() is not None


def test_a_unix_socket_in_the_scratch_folder_reaches_us(sandbox: Sandbox, place: Place) -> None:
    """How a long-lived process inside talks to us although it has no network."""
    inside = sandbox.inside(place.view(), place.scratch / "s")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(place.scratch, os.O_RDONLY)
        server.bind(f"/proc/self/fd/{here}/s")  # the real path may be too long for a socket's name
        os.close(here)
        server.listen()
        code = (
            f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({str(inside)!r}); s.send(b'hello')"
        )
        running = sandbox.start(
            [sys.executable, "-c", code], view=place.view(visible=PREFIXES), env=scrubbed_env()
        )
        server.settimeout(60)
        connection, _ = server.accept()
        assert connection.recv(10) == b"hello"
        connection.close()
        result = running.wait(60)
    assert result is not None
    assert result.exit_code == 0


@pytest.mark.parametrize("name", ["with space", "ünï", "new\nline", "--dash", "quote'\"$x"])
def test_odd_paths(sandbox: Sandbox, tmp_path: Path, name: str) -> None:
    place = make_place(tmp_path / name)
    assert python(sandbox, place, "print(open('f.txt').read(), end='')").output == "agent's\n"


def test_a_repository_behind_a_symlink_is_seen_under_both_names(sandbox: Sandbox, place: Place) -> None:
    link = place.home / "link"
    link.symlink_to(place.repo)
    view = View(place.worktree, link, place.scratch, visible=PREFIXES)
    env = {**scrubbed_env(), "HOME": str(place.home)}
    code = f"print(open({str(link / 'f.txt')!r}).read() + open({str(place.repo / 'f.txt')!r}).read(), end='')"
    result = sandbox.run([sys.executable, "-c", code], view=view, env=env, timeout=60)
    assert result.output == "agent's\nagent's\n"


def test_a_planted_symlink_in_the_scratch_folder_is_not_followed(sandbox: Sandbox, place: Place) -> None:
    target = place.home / "victim"
    target.write_text("mine")
    inside = sandbox.inside(place.view(), place.scratch)
    code = f"""
import os
for name in ("sandbox-git-config", "sandbox-dot-git", "results.jsonl"):
    os.symlink({str(target)!r}, {str(inside)!r} + "/" + name)
"""
    assert python(sandbox, place, code).exit_code == 0
    assert python(sandbox, place, "pass").exit_code == 0
    assert target.read_text() == "mine"


def test_choose_names_cause_and_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2; exit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(bwrap, "candidates", lambda: iter([str(broken)]))
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    monkeypatch.setattr(confine, "_working", {})
    pattern = r"No permissions to create new namespace(.|\n)*Landlock(.|\n)*--no-sandbox"
    with pytest.raises(UsageError, match=pattern):
        choose("auto")
    monkeypatch.setattr(bwrap, "candidates", lambda: iter(()))
    with pytest.raises(UsageError, match="bwrap was not found"):
        choose("bwrap")
    assert isinstance(choose("off"), NoSandbox)


@pytest.mark.skipif(landlock.abi() < 3, reason="the kernel has no Landlock")
def test_without_bubblewrap_there_is_landlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bwrap, "candidates", lambda: iter(()))
    monkeypatch.setattr(confine, "_working", {})
    found = choose("auto")
    assert isinstance(found, LandlockSandbox)
    assert not found.mounts
    with pytest.raises(UsageError, match="bwrap was not found"):
        choose("bwrap")


def test_choose_finds_a_working_one() -> None:
    found = choose("auto")
    assert isinstance(found, BwrapSandbox)
    assert found.name == "bwrap"
    assert choose("auto") is found

"""Attacks on the host from inside: real test files, run as the agent runs a project's tests.

The attacks are the test files in `data/attacks`; each passes when its attempt was refused. Afterwards the
host must be as it was.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confine_kit import Place, fingerprint, make_place

from agent_ls.sandbox import landlock
from agent_ls.sandbox.confine import choose
from agent_ls.settings import Settings
from agent_ls.testing.plan import find_plan
from agent_ls.testing.results import TestRun
from agent_ls.testing.runner import TestRunner
from agent_ls.workspace.removal import remove_tree

DATA = Path(__file__).parent / "data"
MODES = [
    "bwrap",
    pytest.param(
        "landlock", marks=pytest.mark.skipif(landlock.abi() < 6, reason="the kernel's Landlock is too old")
    ),
]


def suite(name: str) -> dict[str, str]:
    return {path.name: path.read_text("utf-8") for path in (DATA / name).glob("*.py")}


class Host:
    """Things of the host that attacks reach for, and whether they were reached."""

    def __init__(self, place: Place, cache: Path) -> None:
        self.place = place
        self.reached: list[str] = []
        self._stack = contextlib.ExitStack()
        token = uuid.uuid4().hex[:12]
        self.daemon = f"agent-ls-daemon-{token}"
        marker = f"agent-ls-marker-{token}"
        self.victim = subprocess.Popen(
            [sys.executable, "-I", "-c", "import time; time.sleep(600)", marker],
            env={**os.environ, "SECRET_OF_ANOTHER_PROCESS": marker},
            start_new_session=True,
        )
        self._stack.callback(self._end_victim)
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp", prefix="al")))
        outside = Path(self._stack.enter_context(tempfile.TemporaryDirectory(dir=cache, prefix="s")))
        self.sockets = []
        for name, where in (("s", folder), ("s", outside), ("agent.sock", place.home)):
            self._serve(socket.AF_UNIX, str(where / name), f"socket {where / name}")
            self.sockets.append(str(where / name))
        self.abstract = f"\0agent-ls-{token}"
        self._serve(socket.AF_UNIX, self.abstract, "abstract socket")
        self.tcp = self._serve(socket.AF_INET, ("127.0.0.1", 0), "TCP")
        self.udp = self._serve(socket.AF_INET, ("127.0.0.1", 0), "UDP", socket.SOCK_DGRAM)
        state, settings = (Path(os.environ[f"AGENT_LS_{name}_DIR"]) for name in ("STATE", "CONFIG"))
        self.session = state / "sessions" / "other" / "events.jsonl"
        self.settings = settings / "config.toml"
        for path in (self.session, self.settings):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("private")
        shm = Path("/dev/shm") / f"agent-ls-{token}"
        shm.write_text("x")
        self._stack.callback(shm.unlink, missing_ok=True)
        libc = ctypes.CDLL(None)
        self._shm_key = int(token[:7], 16)
        segment = libc.shmget(self._shm_key, 4096, 0o1600)
        self._stack.callback(libc.shmctl, segment, 0, None)
        add_key = {"x86_64": 248, "aarch64": 217}.get(os.uname().machine)
        if add_key is not None:
            libc.syscall(add_key, b"user", self.daemon.encode(), b"x", ctypes.c_size_t(1), ctypes.c_int(-3))
        self.facts = {
            "parent": os.getpid(),
            "victim": self.victim.pid,
            "marker": marker,
            "daemon": self.daemon,
            "key": self.daemon,
            "home": str(place.home),
            "base": str(place.base),
            "git": str(place.repo / ".git"),
            "secrets": [
                str(place.home / name)
                for name in (".ssh/id_rsa", ".aws/credentials", ".netrc", ".git-credentials")
            ],
            "outside": [
                *(
                    "/",
                    "/etc",
                    "/usr",
                    "/usr/bin",
                    "/var",
                    "/var/lib",
                    "/opt",
                    "/srv",
                    "/boot",
                    "/root/..",
                    "/sys",
                ),
                *(sys.prefix, str(Path(sys.executable).parent), str(cache), str(DATA)),
            ],
            "existing": ["/etc/passwd", "/etc/hosts", sys.executable, str(Path(__file__))],
            "session": str(self.session),
            "settings": str(self.settings),
            "sockets": self.sockets,
            "abstract": self.abstract,
            "tcp": self.tcp,
            "udp": self.udp,
            "address": _own_address(),
            "shm_key": self._shm_key,
            "shm_name": shm.name,
        }

    def _serve(self, family: int, address: object, what: str, kind: int = socket.SOCK_STREAM) -> int:
        server = self._stack.enter_context(socket.socket(family, kind))
        server.bind(address)  # type: ignore[arg-type]
        name = server.getsockname()
        if kind == socket.SOCK_STREAM:
            server.listen()
        server.settimeout(0.2)
        done = threading.Event()

        def wait() -> None:
            while not done.is_set():
                with contextlib.suppress(TimeoutError):
                    if kind == socket.SOCK_STREAM:
                        connection, _ = server.accept()
                        connection.close()
                    else:
                        server.recvfrom(10)
                    self.reached.append(what)

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        self._stack.callback(thread.join)
        self._stack.callback(done.set)
        return int(name[1]) if isinstance(name, tuple) else 0

    def _end_victim(self) -> None:
        self.victim.kill()
        self.victim.wait()

    def daemons(self) -> list[int]:
        found = []
        for process in psutil.process_iter(["pid", "cmdline"]):
            if self.daemon in (process.info["cmdline"] or ()):
                found.append(process.info["pid"])
        return found

    def close(self) -> None:
        self._stack.close()


def _own_address() -> str:
    """An address of this machine other than loopback, if it has one."""
    for addresses in psutil.net_if_addrs().values():
        for address in addresses:
            if address.family == socket.AF_INET and not address.address.startswith("127."):
                return address.address
    return "127.0.0.1"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return make_place(tmp_path)


@pytest.fixture
def host(place: Place, request: pytest.FixtureRequest) -> Iterator[Host]:
    host = Host(place, request.config.cache.mkdir("sandbox"))  # type: ignore[union-attr]
    yield host
    host.close()


def runner(place: Place, mode: str, files: dict[str, str], **settings: object) -> TestRunner:
    """The agent's runner over the worktree of `place` with `files` in it."""
    for name, text in files.items():
        (place.worktree / name).write_text(text, "utf-8")
    chosen = Settings(interpreter=sys.executable, test_timeout=120, sandbox=mode, **settings)  # type: ignore[arg-type]
    plan = find_plan(place.worktree, place.repo, chosen)
    return TestRunner(plan, choose(chosen.sandbox), place.view(network=chosen.network), chosen)


def attack(host: Host, mode: str, files: dict[str, str], **settings: object) -> TestRun:
    place = host.place
    made = runner(place, mode, files, **settings)
    seen = made.sandbox.inside(made.view, place.scratch)
    facts = {
        **host.facts,
        "mode": mode,
        "network": bool(settings.get("network")),
        "repo": str(made.sandbox.inside(made.view, place.worktree)),
        "scratch": str(seen),
    }
    (place.worktree / "facts.json").write_text(json.dumps(facts))
    return made.run()


@pytest.mark.slow
@pytest.mark.parametrize("network", [False, True], ids=["confined", "network"])
@pytest.mark.parametrize("mode", MODES)
def test_attacks_are_refused(host: Host, mode: str, network: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(host.place.home))
    place = host.place
    before = fingerprint(place.home)
    files = suite("attacks")
    if network:
        files = {
            name: text for name, text in files.items() if name in ("attack_kit.py", "test_ab_network.py")
        }
    run = attack(host, mode, files, network=network)
    holes = {test.id: test.message for test in run.tests if test.outcome.bad}
    assert not holes, "\n".join(f"{id}: {message}" for id, message in holes.items())
    assert run.outcome == "passed", run.problem
    assert len(run.tests) > (10 if network else 100)
    assert fingerprint(place.home) == before
    assert host.reached == []
    assert host.victim.poll() is None
    assert host.daemons() == []
    assert not list(place.scratch.glob("run-*"))
    remove_tree(place.scratch)
    remove_tree(place.worktree)
    assert list((place.base / "state").iterdir()) == []


EATERS = {  # name: (code of a test, settings, what the run says)
    "memory": (
        "import os, time\nfor _ in range(6):\n    if os.fork() == 0:\n        x = bytearray(120 << 20)\n"
        "        time.sleep(60)\n        os._exit(0)\ntime.sleep(60)",
        {"test_memory_mb": 400},
        r"memory together \(at most 400",
    ),
    "memory of one": (
        "try:\n    x = bytearray(600 << 20)\nexcept MemoryError:\n    raise OSError('refused')",
        {"test_memory_mb": 500},
        "refused",
    ),
    "processes": (
        "import os, time\nfor _ in range(200):\n    if os.fork() == 0:\n        time.sleep(60)\n"
        "        os._exit(0)\ntime.sleep(60)",
        {"test_processes": 100},
        "processes and threads|Resource temporarily unavailable",
    ),
    "disk": (
        "import time\nfor n in range(40):\n    with open(f'SCRATCH/{n}', 'wb') as f:\n"
        "        f.write(bytes(10 << 20))\ntime.sleep(60)",
        {"test_disk_mb": 100},
        "filled the disk",
    ),
    "one file": (
        "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "with open('SCRATCH/big', 'wb') as f:\n    f.truncate(1 << 40)",
        {"test_file_mb": 10},
        "File too large",
    ),
    "CPU": ("while True: pass", {"test_cpu_s": 3}, "SIGXCPU|SIGKILL|CPU"),
}


RUNS = [("bwrap", name) for name in EATERS] + [
    ("landlock", "memory"),
    ("landlock", "CPU"),
    ("off", "processes"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "name"), RUNS)
def test_resources_are_bounded(place: Place, mode: str, name: str) -> None:
    if mode == "landlock" and landlock.abi() < 3:
        pytest.skip("the kernel has no Landlock")
    code, settings, said = EATERS[name]
    (place.worktree / "test_a.py").write_text("def test_before(): pass")
    made = runner(place, mode, {}, **settings)
    scratch = str(made.sandbox.inside(made.view, place.scratch))
    body = "".join(f"    {line}\n" for line in code.replace("SCRATCH", scratch).splitlines())
    (place.worktree / "test_a.py").write_text(f"def test_before(): pass\ndef test_eat():\n{body}")
    run = made.run()
    told = "\n".join([run.problem or "", run.output, *(test.message or "" for test in run.tests)])
    assert re.search(said, told), told
    assert [test.id for test in run.tests if test.outcome == "passed"] == ["test_a.py::test_before"]
    remove_tree(place.scratch)


NOT_UNDER_LANDLOCK = {
    f"test_honest.py::test_{name}"
    for name in ("manager", "unix_server", "pseudo_terminal", "multiprocessing[forkserver]")
}
"""They need sockets in the file system, or a folder that holds the user's terminals too."""


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_an_honest_suite_passes_inside_as_outside(place: Place, mode: str) -> None:
    files = suite("honest")
    copy = shutil.copytree(DATA / "honest", place.base / "outside")
    outside = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir"]
        + [str(copy)] * 2,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.default_int_handler
        ),  # shells ignore it for jobs
    )
    assert outside.returncode == 0, outside.stdout
    run = runner(place, mode, files).run()
    bad = {test.id: test.message for test in run.tests if test.outcome.bad}
    assert set(bad) == (NOT_UNDER_LANDLOCK if mode == "landlock" else set()), bad
    passed = sum(test.outcome == "passed" for test in run.tests)
    assert f"{passed + len(bad)} passed" in outside.stdout

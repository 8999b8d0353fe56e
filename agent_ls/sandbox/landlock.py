"""The sandbox for systems where no namespaces can be had: Landlock, a system call filter and limits.

Sees the file system as it is: the worktree keeps its own path. The rules are those of landlock(7): what no
rule allows is refused. Since only whole folders can be allowed, a folder that holds something hidden is
allowed child by child and can't be listed itself.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Unpack, cast

from agent_ls.cancel import CancelToken
from agent_ls.errors import Cancelled
from agent_ls.sandbox import _seccomp, process
from agent_ls.sandbox._hiding import hidden, masked, outermost, shown
from agent_ls.sandbox._limits import Watchdog, rlimits
from agent_ls.sandbox.process import Launch, ProcessResult, Running, Supervision
from agent_ls.sandbox.view import View

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK, _REFER, _TRUNCATE, _IOCTL_DEV = 1 << 6, 1 << 11, 1 << 13, 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_SCOPES = 0b11
"""Abstract sockets and signals."""
_DEVICES = ("null", "zero", "full", "random", "urandom")
_LEAST_ABI = 3
"""Before that, files outside could be cut to nothing."""
_SCRIPT = str(Path(__file__).with_name("_restrict.py"))
_CAPS = (0, 1, 3, 4, 5, 6, 7, 10)
"""What root keeps: CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE."""


def abi() -> int:
    """The kernel's version of Landlock; 0 for none."""
    if not sys.platform.startswith("linux"):
        return 0
    from agent_ls.sandbox import _restrict

    return _restrict.abi()


def _restricted(config: Mapping[str, Any]) -> list[str]:
    return [sys.executable, "-I", "-S", _SCRIPT, json.dumps(config), "--"]


def scoped() -> list[str]:
    """What goes before a command so that it can reach no abstract socket of the host and signal nobody
    outside; nothing where the kernel can't do that."""
    return _restricted({"scoped": _SCOPES}) if abi() >= 6 else []


def probe(cancel: CancelToken | None = None) -> LandlockSandbox | str:
    """The sandbox, tried out, or why it can't be had. Raises Cancelled."""
    version = abi()
    if version < _LEAST_ABI:
        return f"the kernel's Landlock is version {version or 'none'}; {_LEAST_ABI} is needed"
    if _seccomp.program(sockets=False) is None:
        return f"the system calls of {os.uname().machine} are not known to us"
    cause = ""
    for namespace in (True, False):
        config = {"namespace": namespace, "handled": _handled(version), "rules": [["/", _READ]]}
        result = process.run(
            [*_restricted(config), sys.executable, "-I", "-S", "-c", "pass"],
            cwd="/",
            env={"PATH": os.defpath},
            timeout=15,
            cancel=cancel,
        )
        if result.cancelled:
            raise Cancelled
        if result.exit_code == 0:
            return LandlockSandbox(version, namespace)
        cause = result.output.strip()[-300:] or "it did not answer"
    return cause


def _handled(version: int) -> int:
    rights = (1 << 13) - 1
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV)):
        rights |= right if version >= since else 0
    return rights


class LandlockSandbox:
    """Runs under Landlock. With `namespace`, tests have a network of their own with loopback; without, no
    connections at all."""

    name: Literal["landlock"] = "landlock"
    mounts = False

    def __init__(self, version: int, namespace: bool) -> None:
        self._version = version
        self._namespace = namespace

    def run(
        self,
        argv: Sequence[str],
        *,
        view: View,
        env: Mapping[str, str],
        cwd: Path | None = None,
        **watched: Unpack[Supervision],
    ) -> ProcessResult:
        command = [*self._prefix(view, env), *argv]
        return process.run(
            command, cwd=cwd or view.worktree, env=self._env(view, env), **self._launch(view, watched)
        )

    def start(
        self,
        argv: Sequence[str],
        *,
        view: View,
        env: Mapping[str, str],
        cwd: Path | None = None,
        pass_fds: Sequence[int] = (),
        **watched: Unpack[Supervision],
    ) -> Running:
        launch = self._launch(view, watched)
        launch["pass_fds"] = pass_fds
        command = [*self._prefix(view, env), *argv]
        return process.start(command, cwd=cwd or view.worktree, env=self._env(view, env), **launch)

    def inside(self, view: View, path: Path) -> Path:
        return path

    def outside(self, view: View, path: Path) -> Path:
        return path

    def in_force(self, view: View | None = None) -> list[str]:
        network = view is not None and view.network
        said = [
            f"Landlock version {self._version}: files outside the agent's copy can't be changed",
            "hidden: home directories, temporary files, our own state and settings",
            "the agent's copy keeps its own path: a suite that imports your checkout is told, not run",
            "not kept apart: the list of processes, /dev/shm, mode bits and times of your own files",
            "no sockets in the file system (multiprocessing.Manager, docker): they can't be told apart",
        ]
        if network:
            said.append("network: as outside, by your settings")
        elif self._namespace:
            said.append("network: loopback only")
        else:
            said.append("network: none, not even loopback (no network namespace can be had here)")
        if self._version < 6:
            said.append("signals reach your other processes: that needs a newer kernel (6.12)")
        if view is not None:
            said.append(view.limits.words())
        return said

    def _launch(self, view: View, watched: Supervision) -> Launch:
        launch = cast(Launch, dict(watched))
        launch["watch"] = Watchdog(view.worktree, view.limits).check
        return launch

    def _env(self, view: View, env: Mapping[str, str]) -> dict[str, str]:
        home, temporary = (view.scratch.resolve() / name for name in ("home", "tmp"))
        for folder in (home, temporary):
            folder.mkdir(parents=True, exist_ok=True)
        return {**env, "HOME": str(home), "TMPDIR": str(temporary)}

    def _prefix(self, view: View, env: Mapping[str, str]) -> list[str]:
        confined = not view.network
        code = _seccomp.program(sockets=False, tcp_only=confined and not self._namespace)
        assert code is not None
        config = {
            "rules": self._rules(view, env),
            "handled": _handled(self._version),
            "connect": view.network or self._namespace,
            "scoped": _SCOPES,
            "seccomp": code.hex(),
            "namespace": confined and self._namespace,
            "limits": rlimits(view.limits),
            "keep_caps": _CAPS,
        }
        return _restricted(config)

    def _rules(self, view: View, env: Mapping[str, str]) -> list[tuple[str, int]]:
        home = env.get("HOME")
        covered = hidden(home)
        repo, worktree = view.repo.resolve(), view.worktree.resolve()
        back = shown(home, covered, (*view.visible, *view.readonly), env.get("PATH", ""), Path("/nowhere"))
        secrets = masked(home, covered, back)
        git = _common_git(worktree)
        never = [*covered, *secrets, Path("/dev"), *_git_secrets(git)]
        rules = [(str(path), _READ) for path in _cover(Path("/"), outermost(never))]
        for path in (*back, *((repo,) if not git else _cover(git, _git_secrets(git)))):
            rules += [(str(part), _READ) for part in _cover(path, [*secrets, *_git_secrets(git)])]
        write = _handled(self._version) & ~(_MAKE_CHAR | _MAKE_BLOCK | _IOCTL_DEV)
        rules += [(str(path), write) for path in (worktree, view.scratch.resolve(), Path("/dev/shm"))]
        rules += [(f"/dev/{name}", _READ_FILE | _WRITE_FILE) for name in _DEVICES]
        return rules


def _cover(top: Path, never: Sequence[Path]) -> list[Path]:
    """Paths that hold all below `top` except `never`; folders around those are left out themselves."""
    if any(top.is_relative_to(path) for path in never):
        return []
    if not any(path.is_relative_to(top) for path in never):
        return [top]
    found = []
    try:
        children = sorted(os.scandir(top), key=lambda entry: entry.name)
    except OSError:
        return []
    for entry in children:
        if not entry.is_symlink():
            found += _cover(Path(entry.path), never)
    return found


def _common_git(worktree: Path) -> Path | None:
    from agent_ls.sandbox._bwrap import common_git_dir

    return common_git_dir(worktree / ".git")


def _git_secrets(common: Path | None) -> list[Path]:
    """Git's configuration where it holds tokens; git can't work without it then."""
    from agent_ls.sandbox._bwrap import without_tokens

    if common is None:
        return []
    try:
        text = (common / "config").read_text("utf-8", "surrogateescape")
    except OSError:
        return []
    return [] if without_tokens(text) == text else [common / "config"]

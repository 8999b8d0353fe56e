"""The command line that makes bubblewrap show a worktree in place of the repository."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import time
from collections.abc import Sequence
from pathlib import Path

from agent_ls.sandbox import _seccomp
from agent_ls.sandbox._hiding import below_any, hidden, host_sockets, masked, outermost, shown
from agent_ls.sandbox._limits import ResourceLimits, apply_limits
from agent_ls.sandbox.view import View

RUN_DIR = "/run/agent-ls" if Path("/run").is_dir() else "/tmp/agent-ls"
SCRATCH = f"{RUN_DIR}/scratch"
_GIT = f"{RUN_DIR}/git"
_TMPFS_CAP = 4 << 30

ROOT_CAPS = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "NET_BIND_SERVICE")
"""What root keeps inside: enough for tests that chmod and chown, nothing that reaches the system."""


_ROOT_PROC = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr", "kcore", "kmsg")


class HeldLaunch:
    """Holds the confined process back until its resource limits are set (--info-fd, --block-fd)."""

    def __init__(self, limits: ResourceLimits) -> None:
        self._limits = limits
        self._info_read, self._info_write = os.pipe()
        self._block_read, self._block_write = os.pipe()
        self._given = [self._info_write, self._block_read]
        self.arguments = ["--info-fd", str(self._info_write), "--block-fd", str(self._block_read)]
        self._open = {self._info_read, self._info_write, self._block_read, self._block_write}

    def __enter__(self) -> HeldLaunch:
        return self

    def __exit__(self, *exc: object) -> None:
        for fd in list(self._open):
            self._close(fd)

    @property
    def fds(self) -> tuple[int, ...]:
        """What the child must inherit."""
        return tuple(self._given)

    def data(self, text: str, place: Path) -> list[str]:
        """Options for a read-only file with this text. No file on the host, so none to tamper with."""
        return ["--ro-bind-data", self._memory(text.encode("utf-8", "surrogateescape")), str(place)]

    def seccomp(self) -> list[str]:
        """Options for the filter of system calls, where we have one for this machine."""
        code = _seccomp.program(sockets=True)
        return [] if code is None else ["--seccomp", self._memory(code)]

    def _memory(self, data: bytes) -> str:
        fd = os.memfd_create("agent-ls")
        self._open.add(fd)
        self._given.append(fd)
        os.write(fd, data)
        os.lseek(fd, 0, os.SEEK_SET)
        return str(fd)

    def release(self, pid: int) -> None:
        """Called with bwrap's pid: limit the process behind it, then let it run."""
        self._close(self._info_write)
        self._close(self._block_read)
        apply_limits(pid, self._limits)
        inner = self._inner_pid()
        if inner is not None:
            apply_limits(inner, self._limits)
        with contextlib.suppress(BrokenPipeError):
            os.write(self._block_write, b"x")
        self._close(self._block_write)

    def _inner_pid(self) -> int | None:
        data = b""
        end = time.monotonic() + 10
        while time.monotonic() < end:
            ready, _, _ = select.select([self._info_read], [], [], 0.5)
            if not ready:
                continue
            chunk = os.read(self._info_read, 4096)
            data += chunk
            with contextlib.suppress(ValueError):
                return int(json.loads(data)["child-pid"])
            if not chunk:
                break
        return None

    def _close(self, fd: int) -> None:
        if fd in self._open:
            self._open.discard(fd)
            os.close(fd)


def arguments(
    held: HeldLaunch, view: View, *, overlay: bool, search_path: str, home: str | None
) -> list[str]:
    """bwrap's options for one view. Later mounts cover earlier ones, so the order is the meaning.

    With `overlay` what is written into the worktree is gone at the end. `search_path` and `home` are the
    process's PATH and HOME.
    """
    repo, worktree, scratch = view.repo, view.worktree.resolve(), view.scratch.resolve()
    real_repo = repo.resolve()
    args = ["--unshare-pid", "--unshare-ipc", "--unshare-cgroup-try", "--die-with-parent", "--new-session"]
    args += held.seccomp()
    if not view.network:
        args.append("--unshare-net")
    if os.geteuid() == 0:
        args += ["--cap-drop", "ALL"]
        for capability in ROOT_CAPS:
            args += ["--cap-add", f"CAP_{capability}"]
    args += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    if os.geteuid() == 0:
        # What root may write there without any capability includes the program that the kernel starts for a
        # crashed process: it would run outside.
        for name in _ROOT_PROC:
            if Path(f"/proc/{name}").exists():
                args += ["--ro-bind", f"/proc/{name}", f"/proc/{name}"]
    args += ["--size", str(_tmpfs_size()), "--perms", "1777", "--tmpfs", "/dev/shm"]

    covered = hidden(home)
    back = shown(home, covered, view.visible, search_path, real_repo)
    secrets = masked(home, covered, back)
    for path in host_sockets(covered, back, (real_repo, worktree, scratch)):
        args += ["--ro-bind", "/dev/null", str(path)]
    for path in (path for path in secrets if not below_any(path, covered)):
        args += _mask(path)
    for path in covered:
        args += ["--size", str(_tmpfs_size()), "--tmpfs", str(path)]
    if view.network and Path("/run/systemd/resolve").is_dir():
        args += ["--ro-bind", "/run/systemd/resolve", "/run/systemd/resolve"]
    for path in back:
        args += ["--ro-bind", str(path), str(path)]
    for path in (path for path in secrets if below_any(path, covered)):
        args += _mask(path)

    if overlay:
        args += ["--overlay-src", str(worktree), "--tmp-overlay", str(real_repo)]
    else:
        args += ["--bind", str(worktree), str(real_repo)]
    spelled = Path(os.path.abspath(repo))  # noqa: PTH100 (as spelled: symlinks kept)
    if spelled != real_repo and not spelled.is_relative_to(real_repo) and below_any(spelled, covered):
        args += ["--symlink", str(real_repo), str(spelled)]
    below = [
        path
        for path in (*view.readonly, *view.visible)
        if _missing_in_worktree(path, repo, real_repo, worktree)
    ]
    for path in outermost(below):
        # The mount point is made in the worktree: an empty folder, which git does not see.
        args += ["--ro-bind", str(path.resolve()), str(real_repo / _relative(path, repo, real_repo))]
    args += _git_arguments(held, worktree, real_repo, covered)
    args += ["--bind", str(scratch), SCRATCH]
    return args


def _mask(path: Path) -> list[str]:
    if path.is_dir():
        return ["--perms", "0000", "--tmpfs", str(path), "--remount-ro", str(path)]
    return ["--ro-bind", "/dev/null", str(path)]


def _tmpfs_size() -> int:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(_TMPFS_CAP, memory // 4)


def _relative(path: Path, repo: Path, real_repo: Path) -> Path:
    return path.relative_to(repo if path.is_relative_to(repo) else real_repo)


def _missing_in_worktree(path: Path, repo: Path, real_repo: Path, worktree: Path) -> bool:
    """Whether `path` lies in the repository and the worktree has nothing (or an empty folder) there."""
    if not (path.is_relative_to(repo) or path.is_relative_to(real_repo)) or not path.exists():
        return False
    relative = _relative(path, repo, real_repo)
    if not relative.parts or relative.parts[0] == ".git":
        return False
    place = worktree / relative
    if place.is_symlink() or (place.exists() and path.is_dir() != place.is_dir()):
        return False
    if place.is_dir():
        return not any(place.iterdir())
    return not place.exists() or (path.is_file() and place.stat().st_size == 0)


def _git_arguments(held: HeldLaunch, worktree: Path, repo: Path, covered: Sequence[Path]) -> list[str]:
    """Git data is readable (versions are read from tags) and not writable."""
    dot_git = worktree / ".git"
    seen_dot_git = repo / ".git"
    if dot_git.is_symlink():
        return []
    if dot_git.is_dir():
        config = _config_arguments(held, dot_git, seen_dot_git)
        return ["--ro-bind", str(dot_git), str(seen_dot_git), *config]
    if not dot_git.is_file():
        return []
    git_dir, common = _git_dir(dot_git), common_git_dir(dot_git)
    if git_dir is None or common is None:
        return []
    try:
        seen = Path(_GIT) / git_dir.relative_to(common)
    except ValueError:
        return []
    args = [
        *("--ro-bind", str(common), _GIT),
        *held.data(f"gitdir: {seen}\n", seen_dot_git),
        *_config_arguments(held, common, Path(_GIT)),
    ]
    if not below_any(common, (repo, *covered)):  # the user's checkout is a worktree itself
        args += _config_arguments(held, common, common)
    return args


def _git_dir(dot_git: Path) -> Path | None:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        text = dot_git.read_text().strip()
        if text.startswith("gitdir:"):
            return (dot_git.parent / text.removeprefix("gitdir:").strip()).resolve()
    return None


def common_git_dir(dot_git: Path) -> Path | None:
    """The folder that all worktrees share, for a worktree's `.git`; None when there is none."""
    if dot_git.is_dir():
        return dot_git.resolve()
    git_dir = _git_dir(dot_git) if dot_git.is_file() else None
    if git_dir is None or not git_dir.is_dir():
        return None
    with contextlib.suppress(OSError):
        return (git_dir / (git_dir / "commondir").read_text().strip()).resolve()
    return git_dir


_USERINFO = re.compile(r"(://)[^/@\s]+@")


def _config_arguments(held: HeldLaunch, git_dir: Path, seen: Path) -> list[str]:
    """A copy of the git config without the tokens that remote URLs and headers may hold."""
    try:
        text = (git_dir / "config").read_text("utf-8", "surrogateescape")
    except OSError:
        return []
    return held.data(without_tokens(text), seen / "config")


def without_tokens(config: str) -> str:
    """A git configuration without the tokens of URLs and headers, and without helpers that hand them out."""
    kept = [
        _USERINFO.sub(r"\1", line)
        for line in config.splitlines()
        if not re.match(r"\s*(extraheader|password|token|helper)\s*=", line, re.IGNORECASE)
    ]
    return "\n".join(kept) + "\n"

"""The command line that makes bubblewrap show a worktree in place of the repository."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import re
import select
import time
from collections.abc import Sequence
from pathlib import Path

from agent_ls.sandbox._limits import apply_limits

RUN_DIR = "/run/agent-ls" if Path("/run").is_dir() else "/tmp/agent-ls"
SCRATCH = f"{RUN_DIR}/scratch"
_GIT = f"{RUN_DIR}/git"
_TMPFS_CAP = 4 << 30

_PRIVATE = ("/tmp", "/var/tmp", "/run", "/var/run", "/mnt/wslg")
"""Replaced by an empty tmpfs: temporary files, and the sockets of services (docker, dbus, agents)."""

_TOOLCHAINS = """
.pyenv .local/bin .local/lib .local/share/uv .local/share/mise .local/share/rtx .local/share/hatch
.local/share/pypoetry .local/share/pdm .local/share/virtualenvs .local/share/pnpm .local/pipx
.cache/pypoetry .cache/uv .cache/pip .asdf .nvm .volta .fnm .bun .deno .cargo .rustup go .sdkman .m2
.gradle .jenv .rbenv .rvm .gem .npm .node_modules .virtualenvs .conda miniconda3 anaconda3
mambaforge miniforge3 .dotnet .nuget .julia .opam .ghcup
""".split()  # noqa: SIM905
"""What stays readable of the home directory, if it is there: language toolchains and package caches."""

_MASKED = """
.cargo/credentials .cargo/credentials.toml .m2/settings.xml .m2/settings-security.xml
.gradle/gradle.properties .gem/credentials .npm/_auth .nuget/NuGet/NuGet.Config
""".split()  # noqa: SIM905
"""Secrets inside those."""

_ROOT_CAPS = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "NET_BIND_SERVICE")
"""What root keeps inside: enough for tests that chmod and chown, nothing that reaches the system."""


class HeldLaunch:
    """Holds the confined process back until its resource limits are set (--info-fd, --block-fd)."""

    def __init__(self) -> None:
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
        fd = os.memfd_create("agent-ls")
        self._open.add(fd)
        self._given.append(fd)
        os.write(fd, text.encode("utf-8", "surrogateescape"))
        os.lseek(fd, 0, os.SEEK_SET)
        return ["--ro-bind-data", str(fd), str(place)]

    def release(self, pid: int) -> None:
        """Called with bwrap's pid: limit the process behind it, then let it run."""
        self._close(self._info_write)
        self._close(self._block_read)
        apply_limits(pid)
        inner = self._inner_pid()
        if inner is not None:
            apply_limits(inner)
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
    held: HeldLaunch,
    *,
    worktree: Path,
    overlay: bool,
    repo: Path,
    scratch: Path,
    readonly: Sequence[Path],
    visible: Sequence[Path],
    network: bool,
    search_path: str,
    home: str | None,
) -> list[str]:
    """bwrap's options for one view. Later mounts cover earlier ones, so the order is the meaning."""
    real_repo = repo.resolve()
    args = ["--unshare-pid", "--unshare-ipc", "--unshare-cgroup-try", "--die-with-parent", "--new-session"]
    if not network:
        args.append("--unshare-net")
    if os.geteuid() == 0:
        args += ["--cap-drop", "ALL"]
        for capability in _ROOT_CAPS:
            args += ["--cap-add", f"CAP_{capability}"]
    args += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]

    homes = _homes(home)
    hidden = [Path(path) for path in _PRIVATE if Path(path).is_dir() and not Path(path).is_symlink()] + homes
    for path in hidden:
        args += ["--size", str(_tmpfs_size()), "--tmpfs", str(path)]
    if network and Path("/run/systemd/resolve").is_dir():
        args += ["--ro-bind", "/run/systemd/resolve", "/run/systemd/resolve"]

    shown = _shown(homes, hidden, visible, search_path, real_repo)
    for path in shown:
        args += ["--ro-bind", str(path), str(path)]
    for base in homes:
        for name in _MASKED:
            if (base / name).is_file() and any((base / name).is_relative_to(path) for path in shown):
                args += ["--ro-bind", "/dev/null", str(base / name)]

    if overlay:
        args += ["--overlay-src", str(worktree), "--tmp-overlay", str(real_repo)]
    else:
        args += ["--bind", str(worktree), str(real_repo)]
    spelled = Path(os.path.abspath(repo))  # noqa: PTH100 (as spelled: symlinks kept)
    if spelled != real_repo and not spelled.is_relative_to(real_repo) and _below_any(spelled, hidden):
        args += ["--symlink", str(real_repo), str(spelled)]
    below = [path for path in (*readonly, *visible) if _missing_in_worktree(path, repo, real_repo, worktree)]
    for path in _outermost(below):
        # The mount point is made in the worktree: an empty folder, which git does not see.
        args += ["--ro-bind", str(path.resolve()), str(real_repo / _relative(path, repo, real_repo))]
    args += _git_arguments(held, worktree, real_repo)
    args += ["--bind", str(scratch), SCRATCH]
    return args


def _tmpfs_size() -> int:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(_TMPFS_CAP, memory // 4)


def _homes(home: str | None) -> list[Path]:
    found: list[Path] = []
    candidates = [home] if home else []
    with contextlib.suppress(KeyError):
        candidates.append(pwd.getpwuid(os.getuid()).pw_dir)
    for candidate in candidates:
        path = Path(candidate)
        if not path.is_absolute() or not path.is_dir():
            continue
        path = path.resolve()
        # A "home" such as / or /usr holds the system: it can't be hidden.
        if len(path.parts) < 2 or str(path) in ("/usr", "/etc", "/var", "/opt", "/bin", "/lib", "/home"):
            continue
        if path not in found:
            found.append(path)
    return found


def _shown(
    homes: Sequence[Path],
    hidden: Sequence[Path],
    visible: Sequence[Path],
    search_path: str,
    repo: Path,
) -> list[Path]:
    """Read-only paths put back into hidden folders, outermost first, none inside another."""
    wanted = [base / name for base in homes for name in _TOOLCHAINS]
    wanted += [Path(entry) for entry in search_path.split(os.pathsep) if entry.startswith("/")]
    for path in visible:
        wanted += [path, path.resolve()]
    found = []
    for path in wanted:
        if not _below_any(path, hidden) or not path.exists() or path.is_relative_to(repo):
            continue
        if any(base.is_relative_to(path) for base in hidden):
            # A prefix that is the home directory itself: only what an interpreter has there.
            found += [path / name for name in ("bin", "lib", "lib64") if (path / name).is_dir()]
        else:
            found.append(path)
    return _outermost(found)


def _below_any(path: Path, folders: Sequence[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _outermost(paths: Sequence[Path]) -> list[Path]:
    kept: list[Path] = []
    for path in sorted(set(paths), key=lambda path: len(path.parts)):
        if not _below_any(path, kept):
            kept.append(path)
    return kept


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


def _git_arguments(held: HeldLaunch, worktree: Path, repo: Path) -> list[str]:
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
    git_dir = _git_dir(dot_git)
    if git_dir is None or not git_dir.is_dir():
        return []
    common = git_dir
    with contextlib.suppress(OSError):
        common = (git_dir / (git_dir / "commondir").read_text().strip()).resolve()
    try:
        seen = Path(_GIT) / git_dir.relative_to(common)
    except ValueError:
        return []
    return [
        *("--ro-bind", str(common), _GIT),
        *held.data(f"gitdir: {seen}\n", seen_dot_git),
        *_config_arguments(held, common, Path(_GIT)),
    ]


def _git_dir(dot_git: Path) -> Path | None:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        text = dot_git.read_text().strip()
        if text.startswith("gitdir:"):
            return (dot_git.parent / text.removeprefix("gitdir:").strip()).resolve()
    return None


_USERINFO = re.compile(r"(://)[^/@\s]+@")


def _config_arguments(held: HeldLaunch, git_dir: Path, seen: Path) -> list[str]:
    """A copy of the git config without the tokens that remote URLs and headers may hold."""
    try:
        text = (git_dir / "config").read_text("utf-8", "surrogateescape")
    except OSError:
        return []
    kept = [
        _USERINFO.sub(r"\1", line)
        for line in text.splitlines()
        if not re.match(r"\s*(extraheader|password|token|helper)\s*=", line, re.IGNORECASE)
    ]
    return held.data("\n".join(kept) + "\n", seen / "config")

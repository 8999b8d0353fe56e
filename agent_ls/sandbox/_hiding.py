"""What of the file system a confined process may not see, and what it needs back.

`os.path` and not `pathlib` asks what there is: where we may not look it says no, and does not raise.
"""
# ruff: noqa: PTH110, PTH112, PTH114

from __future__ import annotations

import contextlib
import os
import pwd
import stat
from collections.abc import Sequence
from pathlib import Path

from agent_ls.settings import cache_dir, state_dir

PRIVATE = ("/tmp", "/var/tmp", "/run", "/var/run", "/mnt/wslg")
"""Replaced by an empty folder: temporary files, and the sockets of services (docker, dbus, agents)."""

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

_SYSTEM_SECRETS = """
/etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/sudoers /etc/sudoers.d /etc/ssl/private
/etc/ssh/ssh_host_rsa_key /etc/ssh/ssh_host_ecdsa_key /etc/ssh/ssh_host_ed25519_key /etc/ssh/ssh_host_dsa_key
/etc/kubernetes /etc/rancher /etc/docker /etc/wireguard /etc/openvpn /etc/NetworkManager/system-connections
/var/lib/docker /var/lib/containerd /var/lib/kubelet /var/lib/rancher /var/spool /var/lib/mysql
/var/lib/postgresql /var/lib/private /var/backups
""".split()  # noqa: SIM905
"""Unreadable for most users anyway, but not for root."""

_NO_HOME = ("/", "/usr", "/etc", "/var", "/opt", "/bin", "/lib", "/lib64", "/sbin", "/dev", "/proc", "/sys")


def homes(home: str | None) -> list[Path]:
    """The home directories: the one that the process is told, the user's, and everybody else's."""
    found: list[Path] = []
    candidates = [home] if home else []
    with contextlib.suppress(KeyError):
        candidates.append(pwd.getpwuid(os.getuid()).pw_dir)
    for candidate in (*candidates, "/home", "/root"):
        path = Path(candidate)
        if not path.is_absolute() or not os.path.isdir(path):
            continue
        path = path.resolve()
        # A "home" such as / or /usr holds the system: it can't be hidden.
        if len(path.parts) < 2 or str(path) in _NO_HOME:
            continue
        if path not in found:
            found.append(path)
    return found


def hidden(home: str | None) -> list[Path]:
    """Folders whose contents are not to be seen, outermost first: temporary and service folders, homes, and
    our own state, cache and settings (other sessions' prompts, the user's keys)."""
    from agent_ls.config import user_config_path

    private = [Path(path) for path in PRIVATE if os.path.isdir(path) and not os.path.islink(path)]
    own = [
        path.resolve()
        for path in (state_dir(), cache_dir(), user_config_path().parent)
        if os.path.isdir(path)
    ]
    return outermost([*private, *homes(home), *(path for path in own if str(path) not in _NO_HOME)])


def shown(
    home: str | None, covered: Sequence[Path], visible: Sequence[Path], search_path: str, repo: Path
) -> list[Path]:
    """Paths inside covered folders that are needed, outermost first, none inside another."""
    wanted = [base / name for base in homes(home) for name in _TOOLCHAINS]
    wanted += [Path(entry) for entry in search_path.split(os.pathsep) if entry.startswith("/")]
    for path in visible:
        wanted += [path, path.resolve()]
    found = []
    for path in wanted:
        if not below_any(path, covered) or not os.path.exists(path) or path.is_relative_to(repo):
            continue
        if any(base.is_relative_to(path) for base in covered):
            # A prefix that is the home directory itself: only what an interpreter has there.
            found += [path / name for name in ("bin", "lib", "lib64") if os.path.isdir(path / name)]
        else:
            found.append(path)
    return outermost(found)


def masked(home: str | None, covered: Sequence[Path], back: Sequence[Path]) -> list[Path]:
    """Single files and folders with secrets that would be seen although `covered` is not."""
    found = [Path(name) for name in _SYSTEM_SECRETS]
    found += [base / name for base in homes(home) for name in _MASKED]
    return [
        path
        for path in found
        if os.path.exists(path)
        and not os.path.islink(path)
        and (not below_any(path, covered) or below_any(path, back))
    ]


def host_sockets(covered: Sequence[Path], back: Sequence[Path], own: Sequence[Path]) -> list[Path]:
    """Sockets in the file system that services listen on and that would be within reach.

    A read-only mount does not keep anybody from connecting. Those below `own` (where our processes talk to
    us) are left out.
    """
    found = set()
    try:
        lines = Path("/proc/net/unix").read_text("utf-8", "surrogateescape").splitlines()[1:]
    except OSError:
        return []
    for line in lines:
        name = line.partition(" /")[2]
        if not name:
            continue
        path = Path("/" + name)
        if below_any(path, own) or (below_any(path, covered) and not below_any(path, back)):
            continue
        if _is_socket(path):
            found.add(path)
    return sorted(found)[:500]


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def below_any(path: Path, folders: Sequence[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def outermost(paths: Sequence[Path]) -> list[Path]:
    """Without those that lie inside another."""
    kept: list[Path] = []
    for path in sorted(set(paths), key=lambda path: len(path.parts)):
        if not below_any(path, kept):
            kept.append(path)
    return kept

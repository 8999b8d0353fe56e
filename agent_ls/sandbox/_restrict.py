"""Restricts itself, then becomes another program. Run as a script: `_restrict.py CONFIG -- ARGV…`.

Standard library only, and no import of ours: it is started with -I -S. CONFIG is a JSON object:
    rules       [[path, rights]…] of Landlock, left out: no rules for files
    handled     rights that are refused where no rule grants them
    connect     whether TCP connections are allowed
    scoped      Landlock's scopes (signals, abstract sockets)
    seccomp     filter as hexadecimal digits
    namespace   whether to move into a network namespace of its own
    limits      {number of resource: value}
    keep_caps   capabilities that root keeps
Sources: landlock(7), seccomp(2), capabilities(7), network_namespaces(7).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import resource
import signal
import socket
import stat
import struct
import sys

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_PATH_BENEATH = 1
_NET_CONNECT = 2
_O_PATH = 0o10000000
_NEWUSER, _NEWNET = 0x10000000, 0x40000000
_SET_PDEATHSIG, _CAPBSET_DROP, _SET_SECCOMP, _SET_NO_NEW_PRIVS = 1, 24, 22, 38
_FILE_RIGHTS = (1 << 0) | (1 << 1) | (1 << 2) | (1 << 14) | (1 << 15)

_libc = ctypes.CDLL(None, use_errno=True)


def abi() -> int:
    """The version of Landlock that this kernel has; 0 for none."""
    return max(0, int(_libc.syscall(_CREATE, None, ctypes.c_size_t(0), 1)))


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _landlock(config: dict) -> None:  # type: ignore[type-arg]
    version = abi()
    handled = config.get("handled", 0)
    connect = 0 if config.get("connect", True) or version < 4 else _NET_CONNECT
    scoped = config.get("scoped", 0) if version >= 6 else 0
    if not (handled or connect or scoped):
        return
    attributes = struct.pack("=QQQ", handled, connect, scoped)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _check(_libc.syscall(_CREATE, attributes, ctypes.c_size_t(size), 0), "landlock_create_ruleset")
    for path, rights in config.get("rules", ()):
        try:
            fd = os.open(path, _O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            rights &= _FILE_RIGHTS
        rule = struct.pack("=Qi", rights & handled, fd)
        if rights & handled:
            _check(_libc.syscall(_ADD, ruleset, _PATH_BENEATH, rule, 0), f"landlock_add_rule {path}")
        os.close(fd)
    _check(_libc.syscall(_RESTRICT, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)


def _own_network() -> None:
    """A network namespace with nothing but loopback, in a user namespace where that is needed."""
    user, group = os.geteuid(), os.getegid()
    if _libc.unshare(_NEWNET) < 0:
        _check(_libc.unshare(_NEWUSER | _NEWNET), "unshare")
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            _write(f"/proc/self/{name}", text)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        flags = struct.unpack("16sH", fcntl.ioctl(handle, 0x8913, struct.pack("16sH14x", b"lo", 0))[:18])[1]
        fcntl.ioctl(handle, 0x8914, struct.pack("16sH14x", b"lo", flags | 1))


def _drop_capabilities(kept: list) -> None:  # type: ignore[type-arg]
    for number in range(64):
        if number not in kept and _libc.prctl(_CAPBSET_DROP, number, 0, 0, 0) < 0:
            break


def _filter(code: bytes) -> None:
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]

    program = Program(len(code) // 8, code)
    _check(_libc.prctl(_SET_SECCOMP, 2, ctypes.byref(program), 0, 0), "seccomp")


def main(arguments: list) -> None:  # type: ignore[type-arg]
    config = json.loads(arguments[0])
    argv = arguments[arguments.index("--") + 1 :]
    for number in signal.valid_signals():
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    _libc.prctl(_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if config.get("namespace"):
        _own_network()
    if os.geteuid() == 0 and "keep_caps" in config:
        _drop_capabilities(config["keep_caps"])
    for number, value in config.get("limits", {}).items():
        with contextlib.suppress(OSError, ValueError):
            hard = resource.getrlimit(int(number))[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(int(number), (value, value))
    if config.get("limits"):
        with contextlib.suppress(OSError):
            _write("/proc/self/oom_score_adj", "1000")
    _check(_libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    _landlock(config)
    if config.get("seccomp"):
        _filter(bytes.fromhex(config["seccomp"]))
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        sys.stderr.write(f"agent-ls: {argv[0]}: {error.strerror}\n")
        sys.exit(127 if error.errno == errno.ENOENT else 126)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except OSError as problem:
        sys.stderr.write(f"agent-ls: can't confine: {problem}\n")
        sys.exit(125)

"""The system calls that a confined process is refused, as a classic BPF program (seccomp(2)).

What neither namespaces nor Landlock keep apart: the kernel's key rings, typing into a terminal
(TIOCSTI), sockets to the hypervisor, and interfaces to the kernel that a test suite has no use for. Much
the same is refused in a container by default, so suites that run in CI don't miss it.
"""

from __future__ import annotations

import errno
import os
import struct
import sys

_ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_NUMBERS = {  # name: (x86_64, aarch64)
    "socket": (41, 198), "ioctl": (16, 29), "sendto": (44, 206), "sendmsg": (46, 211), "sendmmsg": (307, 269),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "bpf": (321, 280),
    "perf_event_open": (298, 241), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "open_by_handle_at": (304, 265), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "prlimit64": (302, 261),
}  # fmt: skip
_REFUSED = (
    "add_key", "request_key", "keyctl", "bpf", "perf_event_open", "kexec_load", "kexec_file_load",
    "init_module", "finit_module", "delete_module", "open_by_handle_at", "userfaultfd",
)  # fmt: skip
_X32_BIT = 0x40000000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK, _AF_ALG, _AF_VSOCK = 1, 2, 10, 16, 38, 40
_SOCK_STREAM, _IPPROTO_TCP, _MSG_FASTOPEN = 1, 6, 0x20000000

_LOAD, _EQUAL, _AT_LEAST, _SET, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NR, _ARCH = 0, 4


def _argument(number: int) -> int:
    """Offset of the low half of an argument."""
    return 16 + 8 * number


class _Program:
    """Instructions with jumps to labels; a label is the end of the program that returns that value."""

    def __init__(self) -> None:
        self._code: list[tuple[int, int, int | None, int | None]] = []

    def load(self, offset: int) -> None:
        self._code.append((_LOAD, offset, None, None))

    def mask(self, value: int) -> None:
        self._code.append((_AND, value, None, None))

    def returns(self, value: int) -> None:
        self._code.append((_RETURN, value, None, None))

    def when(self, test: int, value: int, result: int) -> None:
        """Return `result` if the loaded value passes the test, else go on."""
        self._code += [(test, value, 0, 1), (_RETURN, result, None, None)]

    def unless(self, test: int, value: int, result: int) -> None:
        self._code += [(test, value, 1, 0), (_RETURN, result, None, None)]

    def only_for(self, value: int, then: _Program) -> None:
        """Run `then` if the loaded value is `value`; it must return."""
        self._code.append((_EQUAL, value, 0, len(then._code)))
        self._code += then._code

    def assemble(self) -> bytes:
        return b"".join(struct.pack("=HBBI", op, yes or 0, no or 0, k) for op, k, yes, no in self._code)


def program(*, sockets: bool, tcp_only: bool = False) -> bytes | None:
    """The filter, None where we don't know the machine's system calls.

    With `sockets` all families but the hypervisor's are allowed. Without, sockets in the file system and all
    unusual families are refused (a pair of connected ones is another call, and allowed), and with `tcp_only`
    those of the Internet except for TCP, whose connections Landlock can refuse.
    """
    machine = os.uname().machine if sys.platform.startswith("linux") else ""
    if machine not in _ARCHES:
        return None
    column = list(_ARCHES).index(machine)
    number = {name: both[column] for name, both in _NUMBERS.items()}
    refuse = _ERRNO | errno.EPERM
    whole = _Program()
    whole.load(_ARCH)
    whole.unless(_EQUAL, _ARCHES[machine], _ERRNO | errno.ENOSYS)
    whole.load(_NR)
    if machine == "x86_64":
        whole.when(_AT_LEAST, _X32_BIT, _ERRNO | errno.ENOSYS)
    for name in _REFUSED:
        whole.when(_EQUAL, number[name], refuse)
    terminal = _Program()
    terminal.load(_argument(1))
    terminal.when(_EQUAL, _TIOCSTI, refuse)
    terminal.when(_EQUAL, _TIOCLINUX, refuse)
    terminal.returns(_ALLOW)
    whole.only_for(number["ioctl"], terminal)
    whole.only_for(number["socket"], _socket(sockets, tcp_only))
    if not sockets:  # no namespace of processes: the limits of others could be changed
        limits = _Program()
        limits.load(_argument(0))
        limits.unless(_EQUAL, 0, refuse)
        limits.returns(_ALLOW)
        whole.only_for(number["prlimit64"], limits)
    if tcp_only:
        # These send without a connect(2) that Landlock would see.
        whole.when(_EQUAL, number["io_uring_setup"], _ERRNO | errno.ENOSYS)
        for name, flags in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)):
            sending = _Program()
            sending.load(_argument(flags))
            sending.when(_SET, _MSG_FASTOPEN, refuse)
            sending.returns(_ALLOW)
            whole.only_for(number[name], sending)
    whole.returns(_ALLOW)
    return whole.assemble()


def _socket(sockets: bool, tcp_only: bool) -> _Program:
    unknown = _ERRNO | errno.EAFNOSUPPORT
    part = _Program()
    part.load(_argument(0))
    if sockets:
        part.when(_EQUAL, _AF_VSOCK, unknown)
        part.returns(_ALLOW)
        return part
    part.when(_EQUAL, _AF_UNIX, _ERRNO | errno.EACCES)
    for family in (_AF_NETLINK, _AF_ALG):
        part.when(_EQUAL, family, _ALLOW)
    inet = _Program()
    if tcp_only:
        inet.load(_argument(1))
        inet.mask(0xF)
        inet.unless(_EQUAL, _SOCK_STREAM, _ERRNO | errno.EACCES)
        inet.load(_argument(2))
        inet.when(_EQUAL, 0, _ALLOW)
        inet.unless(_EQUAL, _IPPROTO_TCP, _ERRNO | errno.EACCES)  # MPTCP, SCTP
    inet.returns(_ALLOW)
    for family in (_AF_INET, _AF_INET6):
        part.only_for(family, inet)
    part.returns(unknown)
    return part

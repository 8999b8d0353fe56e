import ctypes
import fcntl
import glob
import os
import signal
import subprocess
import sys
import time

import pytest
from attack_kit import FACTS, HERE, call, in_child, libc, namespaces_only, refused

VICTIM, PARENT = FACTS["victim"], FACTS["parent"]
MARKER = FACTS["marker"].encode()


def test_environment_of_others():
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError:
            continue
        assert MARKER not in data, path


@namespaces_only
def test_other_processes_are_not_seen():
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        with open(path, "rb") as file:
            assert MARKER not in file.read(), path


@pytest.mark.parametrize("pid", [VICTIM, PARENT])
@pytest.mark.parametrize("number", [0, signal.SIGUSR1, signal.SIGSTOP])
def test_signal_somebody_outside(pid, number):
    if number and pid == PARENT:
        number = 0
    refused(os.kill, pid, number)


@pytest.mark.parametrize("pid", [VICTIM, PARENT])
def test_signal_a_group_outside(pid):
    refused(os.killpg, pid, 0)


@pytest.mark.parametrize("pid", [VICTIM, PARENT])
def test_look_into_somebody_outside(pid):
    refused(call, "ptrace", 16, pid, None, None)
    for name in ("mem", "maps", "environ", "root", "cwd", "fd", "exe"):
        path = f"/proc/{pid}/{name}"
        if name == "fd":
            path += "/0"
        refused(lambda path=path: os.readlink(path) if name in ("root", "cwd", "exe", "fd") else open(path, "rb").read(1))


def test_signal_by_descriptor():
    if not hasattr(os, "pidfd_open"):
        pytest.skip("Python 3.9")

    def attempt():
        signal.pidfd_send_signal(os.pidfd_open(VICTIM), signal.SIGUSR1)

    refused(attempt)


def test_change_priority_or_limits_of_others():
    import resource

    refused(resource.prlimit, VICTIM, resource.RLIMIT_NOFILE, (1, 1))


@pytest.mark.parametrize("name", ["sys/kernel/core_pattern", "sys/kernel/modprobe", "sys/vm/drop_caches", "sys/kernel/hostname", "sysrq-trigger", "irq/default_smp_affinity", "sys/fs/binfmt_misc/register", "kcore", "kmsg"])
def test_write_to_proc(name):
    refused(os.open, f"/proc/{name}", os.O_WRONLY)


def test_write_to_sys():
    for path in ("/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/pids/cgroup.procs", "/sys/kernel/uevent_helper", "/sys/power/state", "/sys/kernel/mm/transparent_hugepage/enabled"):
        refused(os.open, path, os.O_WRONLY)


def mounts():
    """What a process with a user namespace of its own can undo; its exit status."""
    libc.unshare(0x10000000 | 0x00020000)
    holes = 0
    for flags in (32 | 4096, 32):  # MS_REMOUNT | MS_BIND
        for target in (b"/", b"/usr", b"/etc"):
            holes += libc.mount(None, target, None, flags, None) == 0
    for target in (FACTS["home"].encode(), b"/tmp", b"/run", b"/home", b"/root"):
        holes += libc.umount2(target, 2) == 0 and any(os.path.exists(path) for path in FACTS["secrets"])
    holes += libc.mount(b"/dev/vda", HERE.encode(), b"ext4", 0, None) == 0
    try:
        open("/etc/agent-ls-attack", "w").close()
        holes += 1
    except OSError:
        pass
    return holes


def test_mount_in_a_user_namespace():
    assert in_child(mounts) == 0


def test_mount_without_one():
    assert libc.mount(b"none", HERE.encode(), b"tmpfs", 0, None) != 0
    assert libc.umount2(b"/", 2) != 0
    assert libc.umount2(FACTS["home"].encode(), 2) != 0


def test_join_the_namespaces_of_others():
    for pid in (PARENT, VICTIM):
        for kind in ("mnt", "net", "pid", "user"):
            refused(os.open, f"/proc/{pid}/ns/{kind}", os.O_RDONLY)


def test_type_into_a_terminal():
    tiocsti = 0x5412
    for fd in (0, 1, 2):
        refused(fcntl.ioctl, fd, tiocsti, b"x")
    for path in ["/dev/tty", "/dev/console", *glob.glob("/dev/tty*"), *glob.glob("/dev/pts/[0-9]*")]:
        try:
            fd = os.open(path, os.O_RDWR)
        except OSError:
            continue
        refused(fcntl.ioctl, fd, tiocsti, b"x")


def test_key_rings():
    number = {"x86_64": (249, 250, 248), "aarch64": (218, 219, 217)}.get(os.uname().machine)
    if number is None:
        pytest.skip("another machine")
    request, keyctl, _ = number
    assert libc.syscall(request, b"user", FACTS["key"].encode(), None, ctypes.c_int(-3)) < 0
    for ring in (-3, -4, -5):
        assert libc.syscall(keyctl, 10, ctypes.c_int(ring), b"user", FACTS["key"].encode(), 0) < 0


def test_kernel_interfaces():
    numbers = {"x86_64": (321, 298, 304, 175, 246), "aarch64": (280, 241, 265, 105, 104)}.get(os.uname().machine, ())
    for number in numbers:
        assert libc.syscall(number, 0, 0, 0, 0, 0) < 0
        assert ctypes.get_errno() == 1


def test_reboot_and_clock():
    assert libc.reboot(0x89ABCDEF) != 0  # only Ctrl-Alt-Del
    refused(time.clock_settime, time.CLOCK_REALTIME, time.time())
    refused(call, "sethostname", b"x", 1)
    refused(call, "acct", None)
    refused(call, "swapoff", b"/none-of-yours")


def test_daemons_that_try_to_outlive_the_run():
    """The host looks for them afterwards."""
    for detach in ("os.setsid()", "os.setpgid(0, 0)", "os.closerange(0, 99); os.setsid()"):
        code = f"import os, time, signal\n{detach}\nif os.fork(): os._exit(0)\nos.setsid() if os.getsid(0) != os.getpid() and os.getpgid(0) != os.getpid() else 0\nsignal.signal(15, 1); signal.signal(1, 1)\nif os.fork(): os._exit(0)\ntime.sleep(3600)"
        subprocess.Popen([sys.executable, "-c", code, FACTS["daemon"]], env={}, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.3)

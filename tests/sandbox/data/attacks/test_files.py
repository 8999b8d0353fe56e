import glob
import os
import shutil
import stat

import pytest
from attack_kit import FACTS, HERE, in_child, refused

SECRETS = FACTS["secrets"]
ROOTS = ["", "/proc/self/root", "/proc/1/root", f"/proc/{FACTS['parent']}/root", f"/proc/{FACTS['parent']}/cwd/../../../../.."]
OUTSIDE = FACTS["outside"]


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    if not data:
        raise OSError("empty")
    return data


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("path", SECRETS)
def test_read_a_secret(root, path):
    refused(read, root + path)


@pytest.mark.parametrize("path", SECRETS)
def test_through_a_symbolic_link(path):
    os.symlink(path, "link")
    try:
        refused(read, "link")
    finally:
        os.unlink("link")


@pytest.mark.parametrize("path", SECRETS + ["/etc/passwd", FACTS["git"] + "/config"])
def test_through_a_hard_link(path):
    refused(os.link, path, os.path.join(HERE, "hard"))


def test_through_a_renamed_folder():
    refused(os.rename, FACTS["home"], os.path.join(HERE, "mine"))


def test_homes_show_nothing_private():
    for base in ("/root", "/home", "/home/*"):
        for name in (".ssh", ".bashrc", ".profile", ".bash_history", ".gitconfig", ".config", ".aws", ".gnupg"):
            for path in glob.glob(f"{base}/{name}"):
                refused(lambda path=path: os.listdir(path) if os.path.isdir(path) else read(path))


@pytest.mark.parametrize("path", ["/etc/shadow", "/etc/gshadow", "/etc/ssh/ssh_host_ed25519_key", "/etc/ssh/ssh_host_rsa_key"])
def test_what_only_root_may_read(path):
    refused(read, path)


@pytest.mark.parametrize("device", ["/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/kvm", "/dev/fuse"])
def test_devices(device):
    refused(os.open, device, os.O_RDONLY)


def test_make_a_device():
    def attempt():
        os.mknod("disk", stat.S_IFBLK | 0o666, os.makedev(254, 0))
        read("disk")

    refused(attempt)


@pytest.mark.parametrize("folder", OUTSIDE)
def test_write_outside(folder):
    def attempt():
        with open(os.path.join(folder, "agent-ls-attack"), "w") as file:
            file.write("x")

    refused(attempt)


@pytest.mark.parametrize("folder", OUTSIDE)
def test_make_a_folder_outside(folder):
    refused(os.mkdir, os.path.join(folder, "agent-ls-attack"))


@pytest.mark.parametrize("path", FACTS["existing"])
def test_change_what_is_there(path):
    refused(os.truncate, path, 0)
    refused(os.open, path, os.O_WRONLY | os.O_APPEND)
    refused(os.unlink, path)
    refused(os.rename, path, path + ".moved")
    refused(os.replace, os.path.join(HERE, "conftest.py"), path)


def test_state_of_other_sessions():
    refused(read, FACTS["session"])
    refused(read, FACTS["settings"])


def test_setuid_programs_gain_nothing():
    status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
    assert status["NoNewPrivs"] == "1"


def test_capabilities_are_harmless():
    status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
    harmless = sum(1 << number for number in (0, 1, 3, 4, 5, 6, 7, 10))
    for kind in ("CapEff", "CapPrm", "CapAmb"):
        value = int(status[kind], 16)
        assert value & ~harmless == 0, (kind, status[kind])


def test_chroot():
    refused(os.chroot, HERE)


def test_a_sparse_terabyte():
    def attempt():
        with open("sparse", "wb") as file:
            file.truncate(1 << 40)

    in_child_status = in_child(attempt)
    assert in_child_status != 0 or not os.path.exists("sparse") or os.stat("sparse").st_size < 1 << 40


def test_many_files():
    """They are allowed, and gone afterwards."""
    os.mkdir("many")
    for number in range(20_000):
        os.close(os.open(f"many/{number}", os.O_CREAT | os.O_WRONLY))


def test_odd_modes_are_left_behind():
    for base in (HERE, FACTS["scratch"], os.environ["TMPDIR"]):
        os.makedirs(f"{base}/odd/deeper/deepest")
        with open(f"{base}/odd/deeper/file", "w") as file:
            file.write("x")
        os.chmod(f"{base}/odd/deeper/file", 0)
        os.chmod(f"{base}/odd/deeper/deepest", 0)
        os.chmod(f"{base}/odd/deeper", 0)
        os.chmod(f"{base}/odd", 0)
        os.mkfifo(f"{base}/fifo")
        os.symlink(FACTS["home"], f"{base}/to-home")
        deep = base
        os.makedirs(base + "/d")
        os.chdir(base + "/d")
        for _ in range(600):
            os.mkdir("x" * 100)
            os.chdir("x" * 100)
        os.chdir(HERE)


def test_immutable_file():
    import fcntl
    import struct

    with open("immutable", "w") as file:
        refused(fcntl.ioctl, file, 0x40086602, struct.pack("i", 0x10))


def test_zz_delete_everything():
    """Last: what can be deleted is the agent's copy at most."""
    for top in (FACTS["repo"], FACTS["home"], FACTS["base"], "/etc", "/boot"):
        shutil.rmtree(top, ignore_errors=True)

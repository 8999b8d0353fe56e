import os
import socket
import ctypes

import pytest
from attack_kit import FACTS, libc, namespaces_only, refused

confined = pytest.mark.skipif(FACTS["network"], reason="the network is allowed in this run")


def connect(family, kind, address):
    with socket.socket(family, kind) as handle:
        handle.settimeout(2)
        handle.connect(address)
        handle.send(b"hello")
        if kind == socket.SOCK_DGRAM:
            handle.recv(10)


@confined
@pytest.mark.parametrize("address", [("127.0.0.1", FACTS["tcp"]), ("1.1.1.1", 53), ("169.254.169.254", 80), (FACTS["address"], FACTS["tcp"])])
def test_tcp(address):
    refused(connect, socket.AF_INET, socket.SOCK_STREAM, address)


@confined
@pytest.mark.parametrize("address", [("127.0.0.1", FACTS["udp"]), ("1.1.1.1", 53), (FACTS["address"], FACTS["udp"])])
def test_udp(address):
    refused(connect, socket.AF_INET, socket.SOCK_DGRAM, address)


@confined
def test_fast_open():
    def attempt():
        with socket.socket() as handle:
            handle.settimeout(2)
            handle.sendto(b"hello", 0x20000000, ("127.0.0.1", FACTS["tcp"]))
            handle.recv(10)

    refused(attempt)


@confined
@pytest.mark.parametrize("protocol", [132, 262])
def test_other_protocols(protocol):
    def attempt():
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) as handle:
            handle.settimeout(2)
            handle.connect(("127.0.0.1", FACTS["tcp"]))

    refused(attempt)


@pytest.mark.parametrize("path", FACTS["sockets"])
@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_sockets_in_the_file_system(path, kind):
    refused(connect, socket.AF_UNIX, kind, path)
    refused(connect, socket.AF_UNIX, kind, "/proc/self/root" + path)


def test_known_services():
    places = ["/var/run/docker.sock", "/run/docker.sock", "/run/dbus/system_bus_socket", "/run/systemd/private", f"/run/user/{os.getuid()}/bus", "/tmp/.X11-unix/X0", "/run/containerd/containerd.sock", "/run/snapd.socket", "/run/udev/control", "/run/systemd/journal/socket"]
    for path in places:
        refused(connect, socket.AF_UNIX, socket.SOCK_STREAM, path)


def test_abstract_sockets():
    for name in (FACTS["abstract"], "\0/tmp/.X11-unix/X0", "\0/tmp/dbus-x"):
        refused(connect, socket.AF_UNIX, socket.SOCK_STREAM, name)
        refused(connect, socket.AF_UNIX, socket.SOCK_DGRAM, name)


def test_the_hypervisor():
    def attempt():
        with socket.socket(40, socket.SOCK_STREAM) as handle:
            handle.settimeout(1)
            handle.connect((2, 1))

    refused(attempt)


@confined
def test_raw_packets():
    refused(socket.socket, socket.AF_PACKET, socket.SOCK_RAW)


@namespaces_only
def test_shared_memory_of_the_host():
    assert libc.shmget(FACTS["shm_key"], 1, 0) < 0
    assert not os.path.exists("/dev/shm/" + FACTS["shm_name"])

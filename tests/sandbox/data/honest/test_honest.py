"""What real suites do and other sandboxes break."""

import asyncio
import concurrent.futures
import contextlib
import http.server
import multiprocessing
import os
import pathlib
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import pytest


def square(number):
    return number * number


@contextlib.contextmanager
def served():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address
    finally:
        server.shutdown()
        server.server_close()


def test_http_on_loopback():
    with served() as (host, port):
        assert urllib.request.urlopen(f"http://localhost:{port}/", timeout=10).status == 200
        assert urllib.request.urlopen(f"http://{host}:{port}/", timeout=10).status == 200


def test_udp_on_loopback():
    with socket.socket(type=socket.SOCK_DGRAM) as one, socket.socket(type=socket.SOCK_DGRAM) as two:
        one.bind(("127.0.0.1", 0))
        two.sendto(b"x", one.getsockname())
        one.settimeout(10)
        assert one.recv(10) == b"x"


def test_ipv6_loopback():
    if not socket.has_ipv6 or not os.path.exists("/proc/net/if_inet6"):
        pytest.skip("no IPv6")
    try:
        server = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("no ::1")
    with server:
        socket.create_connection(server.getsockname()[:2], 10).close()


def test_asyncio_streams():
    async def main():
        async def answer(reader, writer):
            writer.write(await reader.readline())
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"hello\n")
        assert await reader.readline() == b"hello\n"
        writer.close()
        server.close()
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(1)", stdout=-1)
        assert (await process.communicate())[0].strip() == b"1"
        assert await asyncio.to_thread(square, 3) == 9

    asyncio.run(main())


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_multiprocessing(method):
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        assert pool.map(square, range(4)) == [0, 1, 4, 9]
    lock, value = context.Lock(), context.Value("i", 3)
    with lock, value.get_lock():
        value.value += 1


def test_manager():
    with multiprocessing.Manager() as manager:
        shared = manager.dict(a=1)
        assert shared["a"] == 1


def test_process_pool():
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        assert list(pool.map(square, [2, 3])) == [4, 9]


def test_shared_memory():
    from multiprocessing import shared_memory

    block = shared_memory.SharedMemory(create=True, size=100)
    block.buf[0] = 7
    assert block.buf[0] == 7
    block.close()
    block.unlink()


def test_unix_server(tmp_path):
    class Echo(socketserver.StreamRequestHandler):
        def handle(self):
            self.wfile.write(self.rfile.readline())

    os.chdir(tmp_path)
    with socketserver.UnixStreamServer("s", Echo) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect("s")
            client.sendall(b"x\n")
            assert client.recv(10) == b"x\n"


def test_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_text("x")
    os.symlink("a", "b")
    os.link("a", "c")
    os.chmod("c", 0o600)
    os.mkfifo("f")
    os.utime("a", (1, 1))
    os.rename("c", "d")
    assert pathlib.Path("b").read_text() == "x"
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile() as file:
        assert os.path.isdir(folder)
        file.write(b"x")
    assert os.access(tempfile.gettempdir(), os.W_OK)
    home = pathlib.Path.home()
    assert os.path.isabs(home)


def test_files_beside_the_tests():
    path = pathlib.Path(__file__).with_name("made-by-a-test")
    path.write_text("x")
    path.unlink()


def test_programs():
    assert subprocess.run(["true"]).returncode == 0
    assert subprocess.run("echo hello | cat", shell=True, capture_output=True, text=True).stdout == "hello\n"
    assert subprocess.run([sys.executable, "-c", "import json"], timeout=60).returncode == 0
    assert subprocess.run(["git", "init", "-q", tempfile.mkdtemp()]).returncode == 0


def test_signals():
    got = []
    before = signal.signal(signal.SIGUSR1, lambda *_: got.append(1))
    os.kill(os.getpid(), signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)
    assert got
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    child.terminate()
    assert child.wait() == -signal.SIGTERM
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)


def test_pseudo_terminal():
    import pty

    ours, theirs = pty.openpty()
    assert os.isatty(theirs)
    os.close(ours)
    os.close(theirs)


def test_timers():
    with pytest.raises(TimeoutError):
        def late(*_):
            raise TimeoutError
        before = signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            time.sleep(5)
        finally:
            signal.signal(signal.SIGALRM, before)


def test_names():
    import getpass

    assert socket.gethostbyname("localhost") == "127.0.0.1"
    assert socket.gethostname()
    assert getpass.getuser() or True
    assert pathlib.Path("/etc/passwd").read_text()
    assert os.cpu_count() and os.getloadavg()


def test_devices():
    assert len(os.urandom(4)) == 4
    with open("/dev/null", "w") as null, open("/dev/zero", "rb") as zero:
        null.write("x")
        assert zero.read(2) == b"\0\0"
    with open("/dev/stdout", "w"):
        pass

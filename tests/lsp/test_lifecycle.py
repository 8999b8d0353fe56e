"""From the first byte to the last, with any client. Each of pygls' defects has its case."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from lsp_kit import PROGRAM, client

SYMBOLS = "textDocument/documentSymbol"
NOBODY = {"processId": None, "rootUri": None, "capabilities": {}}
MODULE = """\
def alpha():
    return 1


class Beta:
    def gamma(self):
        pass
"""


def of(uri: str) -> dict[str, Any]:
    return {"textDocument": {"uri": uri}}


def span(a: int, b: int, c: int, d: int) -> dict[str, Any]:
    return {"start": {"line": a, "character": b}, "end": {"line": c, "character": d}}


def folders(added: list[Any], removed: list[Any]) -> dict[str, Any]:
    return {"event": {"added": added, "removed": removed}}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small repository."""
    folder = tmp_path / "röot"
    folder.mkdir()
    (folder / "mod.py").write_text(MODULE)
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "x"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


# -- the protocol's rules


def test_initialize_says_what_there_is(root: Path) -> None:
    with client() as c:
        capabilities = c.initialize(root)
        assert capabilities["textDocumentSync"]["openClose"] is True
        assert capabilities["textDocumentSync"]["change"] == 2
        assert "agent-ls.run.start" in capabilities["executeCommandProvider"]["commands"]
        assert capabilities["workspace"]["workspaceFolders"]["supported"] is True
        assert c.end() == 0


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [(None, "utf-16"), (["utf-16"], "utf-16"), (["utf-8", "utf-16"], "utf-8"), (["utf-32"], "utf-32")],
)
def test_the_client_chooses_the_encoding(root: Path, offered: list[str] | None, chosen: str) -> None:
    general = {} if offered is None else {"general": {"positionEncodings": offered}}
    with client() as c:
        assert c.initialize(root, capabilities=general)["positionEncoding"] == chosen
        uri = (root / "mod.py").as_uri()
        c.open(uri, "x = '😀'; y = 1\n")
        wide = {"utf-8": 4, "utf-16": 2, "utf-32": 1}[chosen]
        c.change(uri, 2, {"range": span(0, 5, 0, 5 + wide), "text": "é"})
        c.change(uri, 3, {"range": span(1, 0, 1, 0), "text": "def 名(): pass\n"})
        symbols = {it["name"]: it["selectionRange"] for it in c.call(SYMBOLS, of(uri))}
        assert symbols["名"] == span(1, 4, 1, 4 + {"utf-8": 3}.get(chosen, 1))


def test_order_of_life() -> None:
    with client() as c:
        assert c.call("workspace/symbol", {"query": "x"})["code"] == -32002
        c.open("file:///x", "")
        c.initialize()
        assert c.call("initialize", NOBODY)["code"] == -32600
        assert c.call("shutdown") is None
        assert c.call("workspace/symbol", {"query": "x"})["code"] == -32600
        c.notify("exit")
        assert c.process.wait(10) == 0


def test_exit_without_shutdown_is_a_failure() -> None:
    with client() as c:
        c.initialize()
        c.notify("exit")
        assert c.process.wait(10) == 1


RPC = b'{"jsonrpc":"2.0",'
COMMAND = b'"method":"workspace/executeCommand","params":{"command":"rm"}}'
BAD: dict[str, tuple[bytes, int | None]] = {
    "no JSON": (b"{nope", -32700),
    "not UTF-8": (RPC + b'"id":1,"method":"\xff"}', -32700),
    "too deep": (b"[" * 100_000, -32700),
    "a list": (b"[]", -32600),
    "no version": (b'{"id":5,"method":"shutdown"}', -32600),
    "unknown method": (RPC + b'"id":5,"method":"no/such"}', -32601),
    "wrong parameters": (RPC + b'"id":5,"method":"textDocument/hover","params":{"x":1}}', -32602),
    "no parameters": (RPC + b'"id":5,"method":"workspace/symbol"}', -32602),
    "unknown command": (RPC + b'"id":5,' + COMMAND, -32602),
    "odd notification": (RPC + b'"method":"textDocument/didOpen","params":[1]}', None),
    "an answer to nothing": (RPC + b'"id":"zz","result":{}}', None),
    "an error to nothing": (RPC + b'"id":77,"error":{"code":1,"message":"x"}}', None),
    "cancel of nothing": (RPC + b'"method":"$/cancelRequest","params":{"id":99}}', None),
}


def test_whatever_comes_the_server_goes_on() -> None:
    with client() as c:
        c.initialize()
        for name, (body, code) in BAD.items():
            before = len(c.messages)
            c.raw(b"content-length: %d\r\n\r\n%s" % (len(body), body))
            if code is not None:
                message = c.wait(lambda m, n=before: "error" in m and c.messages.index(m) >= n)
                assert message["error"]["code"] == code, name
        c.drain()
        assert c.sent("window/showMessage") == []  # a popup for each would bury the person
        assert c.call("workspace/symbol", {"query": "x"}) == []
        assert c.end() == 0


def test_changes_that_do_not_fit_are_left_out(root: Path) -> None:
    uri = (root / "mod.py").as_uri()
    with client() as c:
        c.initialize(root)
        c.change(uri, 5, {"text": "not open"})
        c.notify("textDocument/didClose", of(uri))
        c.notify("textDocument/didSave", of(uri))
        c.open(uri, "a\u2028b\x0c\n")
        c.change(uri, 2, {"range": span(900, 900, 0, 0), "text": "def delta():\n    pass\n"})
        assert [it["name"] for it in c.call(SYMBOLS, of(uri))] == ["delta"]
        assert c.end() == 0


def test_unsaved_text_is_what_counts(root: Path) -> None:
    uri = (root / "mod.py").as_uri()
    with client() as c:
        c.initialize(root)
        assert [it["name"] for it in c.call(SYMBOLS, of(uri))] == ["alpha", "Beta"]
        c.open(uri, "def unsaved():\n    pass\n")
        assert [it["name"] for it in c.call(SYMBOLS, of(uri))] == ["unsaved"]
        found = c.call("workspace/symbol", {"query": "unsaved"})
        assert [(it["name"], it["location"]["uri"]) for it in found] == [("unsaved", uri)]
        c.notify("textDocument/didClose", of(uri))
        assert [it["name"] for it in c.call(SYMBOLS, of(uri))] == ["alpha", "Beta"]


def test_virtual_texts_are_announced_where_they_can_be(root: Path) -> None:
    content = {"workspace": {"textDocumentContent": {"dynamicRegistration": True}}}
    with client() as c:
        c.initialize(root, capabilities=content)
        asked = c.wait("client/registerCapability")["params"]["registrations"]
        assert [it["registerOptions"] for it in asked] == [{"schemes": ["agent-ls"]}]
        text = c.call("workspace/textDocumentContent", {"uri": "agent-ls:/explain/AG101"})["text"]
        assert "catches less" in text
        assert c.call("workspace/textDocumentContent", {"uri": "agent-ls:/run-0/x"})["code"] == -32602


def test_folders_come_and_go(root: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    (second / "other.py").write_text("def omega():\n    pass\n")
    entry = {"uri": second.as_uri(), "name": "second"}
    change = "workspace/didChangeWorkspaceFolders"
    with client() as c:
        c.initialize(root)
        assert c.call("workspace/symbol", {"query": "omega"}) == []
        c.notify(change, folders([entry], []))
        assert [it["name"] for it in c.call("workspace/symbol", {"query": "omega"})] == ["omega"]
        c.notify(change, folders([], [entry]))
        assert c.call("workspace/symbol", {"query": "omega"}) == []
        gone = {"uri": (tmp_path / "gone").as_uri(), "name": "gone"}
        c.notify(change, folders([gone], [gone]))
        assert c.end() == 0


def test_a_client_that_never_answers_is_not_waited_for(root: Path) -> None:
    workspace = {"configuration": True, "didChangeConfiguration": {"dynamicRegistration": True}}
    with client() as c:
        c.silent = True
        c.initialize(root, capabilities={"workspace": workspace})
        assert c.call("workspace/symbol", {"query": "alpha"})[0]["name"] == "alpha"
        late = next(m for m in c.messages if m.get("method") == "workspace/configuration")
        c.send({"jsonrpc": "2.0", "id": late["id"], "result": []})  # after it was given up
        assert c.end() == 0


def test_shutdown_with_much_in_flight(root: Path) -> None:
    with client() as c:
        c.initialize(root)
        ids = [c.ask("workspace/symbol", {"query": "alpha"}) for _ in range(50)]
        assert c.call("shutdown") is None
        for id in ids:
            c.wait(lambda m, id=id: m.get("id") == id)  # each is answered, or refused
        c.notify("exit")
        assert c.process.wait(10) == 0


INSIDE = """\
import asyncio, json
from agent_ls.lsp.features import create_server

class Nowhere:
    def write(self, body):
        pass

async def main():
    server = create_server()
    server.begin()
    server.connected(Nowhere())
    def send(**message):
        server.receive(json.dumps({'jsonrpc': '2.0', **message}).encode())
    nobody = {'processId': None, 'rootUri': None, 'capabilities': {}}
    send(id=1, method='initialize', params=nobody)
"""
LEAK = """\
    for n in range(200):
        send(method='workspace/didChangeConfiguration', params={'settings': {}})
        send(id=n + 2, method='workspace/symbol', params={'query': 'x'})
    await asyncio.sleep(0.5)
    print(len(server.protocol._request_futures))
asyncio.run(main())
"""
CANCEL = """\
    seen = []
    @server.command('slow')
    async def slow(*arguments):
        try:
            seen.append('began')
            await asyncio.sleep(20)
            seen.append('went on')
        except asyncio.CancelledError:
            seen.append('cancelled')
            raise
    send(id=2, method='workspace/executeCommand', params={'command': 'slow', 'arguments': []})
    await asyncio.sleep(0.1)
    send(method='$/cancelRequest', params={'id': 2})
    await asyncio.sleep(0.1)
    print(*seen)
asyncio.run(main())
"""


BUSY = """\
    import time
    for _ in range(20):
        server.spawn(server.work(time.sleep, 3))
    await asyncio.sleep(0.1)
    answers = []
    server.connected(type('W', (), {'write': lambda self, body: answers.append(json.loads(body))})())
    send(id=2, method='textDocument/hover', params={
        'textDocument': {'uri': 'file:///x'}, 'position': {'line': 0, 'character': 0}})
    send(method='$/cancelRequest', params={'id': 99})
    await asyncio.sleep(0.1)
    print(answers[0]['id'], flush=True)
    import os
    os._exit(0)
asyncio.run(main())
"""


@pytest.mark.parametrize(("rest", "said"), [(LEAK, "0"), (CANCEL, "began cancelled"), (BUSY, "2")])
def test_handlers_end_and_are_forgotten(rest: str, said: str) -> None:
    done = subprocess.run([sys.executable, "-c", INSIDE + rest], capture_output=True, text=True)
    assert done.stdout.strip() == said, done.stderr


# -- nothing but the protocol on standard output

NOISY = """\
import os, subprocess, sys
import agent_ls.lsp.features.lifecycle as lifecycle
old = lifecycle.initialize
def noisy(ls, params):
    print('noise')
    os.write(1, b'more noise\\n')
    subprocess.run(['echo', 'child'])
    subprocess.run(['cat'], timeout=5)
    old(ls, params)
lifecycle.initialize = noisy
from agent_ls.lsp.serve import serve_stdio
serve_stdio()
"""


def test_prints_and_children_do_not_reach_the_client() -> None:
    """A library that prints, a child that writes, a child that reads standard input."""
    with client("-c", NOISY, program=[sys.executable]) as c:
        c.initialize()
        assert c.end() == 0
        assert "noise" in c.stderr
        assert "child" in c.stderr


# -- ends


@pytest.mark.parametrize("way", ["eof", "closed output", "killed client", "SIGTERM", "SIGINT", "SIGHUP"])
def test_the_server_ends_with_its_client(way: str, root: Path) -> None:
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
    with client() as c:
        c.initialize(root, processId=sleeper.pid if way == "killed client" else os.getpid())
        assert c.call("workspace/symbol", {"query": "alpha"})
        below = psutil.Process(c.process.pid).children(recursive=True)
        assert c.process.stdin is not None
        if way == "eof":
            c.process.stdin.close()
        elif way == "closed output":
            c.hang_up()
            with contextlib.suppress(OSError):  # a read that waits in the kernel still takes an answer or two
                while c.process.poll() is None and c.ask("workspace/symbol", {"query": "alpha"}) < 60:
                    time.sleep(0.05)
        elif way == "killed client":
            sleeper.kill()
            sleeper.wait()
        else:
            c.process.send_signal(getattr(signal, way))
        code = c.process.wait(6)
        assert code == (128 + getattr(signal, way) if way.startswith("SIG") else 1)
        assert not [child for child in below if child.is_running() and child.status() != "zombie"]
    sleeper.kill()
    sleeper.wait()


def test_a_process_that_can_not_be_seen_is_not_watched(root: Path) -> None:
    """In a container the client's process has a number that means nothing here."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    with client() as c:
        c.initialize(root, processId=gone.pid)
        time.sleep(1.2)
        assert c.call("workspace/symbol", {"query": "alpha"})[0]["name"] == "alpha"


UNREAD = """\
import asyncio, os
from agent_ls.lsp import transport
transport.MAX_UNSENT = 300_000
async def main():
    read, write = os.pipe()
    idle, _ = os.pipe()
    ended = asyncio.Event()
    def over(why):
        print(why, flush=True)
        ended.set()
    connection = transport.Connection(transport.Pipes(idle, write), print, over)
    for _ in range(20):
        connection.write(b'x' * 50_000)
    await asyncio.wait_for(ended.wait(), 5)
    os._exit(0)
asyncio.run(main())
"""


def test_a_client_that_does_not_read_makes_nobody_wait() -> None:
    done = subprocess.run([sys.executable, "-c", UNREAD], capture_output=True, text=True, timeout=30)
    assert done.stdout.strip() == "the client does not read", done.stderr


# -- the other transports


def listening(process: subprocess.Popen[str]) -> tuple[str, int]:
    assert process.stderr is not None
    line = process.stderr.readline()
    assert "listening on" in line, line
    host, port = line.split("://")[1].split(",")[0].rsplit(":", 1)
    return host.strip("[]"), int(port)


def framed(**message: Any) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def test_tcp_serves_one_client_and_ends(root: Path) -> None:
    program = [*PROGRAM, "serve", "--tcp", "127.0.0.1:0"]
    process = subprocess.Popen(program, stderr=subprocess.PIPE, text=True)
    address = listening(process)
    with socket.create_connection(address) as connection:
        stream = connection.makefile("rwb")

        def call(id: int, method: str, params: Any) -> Any:
            stream.write(framed(id=id, method=method, params=params))
            stream.flush()
            while True:
                length = int(stream.readline().split(b":")[1])
                stream.readline()
                message = json.loads(stream.read(length))
                if message.get("id") == id:
                    return message

        call(1, "initialize", {**NOBODY, "rootUri": root.as_uri()})
        with pytest.raises(OSError, match=r"refused|reset|timed out"):
            socket.create_connection(address, timeout=2).close()
        assert call(2, "shutdown", None)["result"] is None
        stream.write(framed(method="exit"))
        stream.flush()
        assert process.wait(10) == 0


def test_websocket_serves_one_client_and_no_web_page(root: Path) -> None:
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect
    from websockets.typing import Origin

    process = subprocess.Popen([*PROGRAM, "serve", "--ws", ":0"], stderr=subprocess.PIPE, text=True)
    host, port = listening(process)
    address = f"ws://{host}:{port}"
    with pytest.raises(InvalidStatus), connect(address, origin=Origin("https://example.org")):
        pass
    with connect(address) as connection:

        def say(**message: Any) -> None:
            connection.send(json.dumps({"jsonrpc": "2.0", **message}))

        def call(id: int, method: str, params: Any) -> Any:
            say(id=id, method=method, params=params)
            while True:
                message = json.loads(connection.recv(10))
                if message.get("id") == id:
                    return message

        call(1, "initialize", {**NOBODY, "rootUri": root.as_uri()})
        say(method="initialized", params={})
        assert call(2, "workspace/symbol", {"query": "alpha"})["result"][0]["name"] == "alpha"
        call(3, "shutdown", None)
        say(method="exit")
        assert process.wait(10) == 0


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:99999", "203.0.113.1:7"])
def test_a_wrong_address_is_told(address: str) -> None:
    program = [*PROGRAM, "serve", "--tcp", address]
    done = subprocess.run(program, capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert address.partition(":")[0] in done.stderr
    assert done.stdout == ""


def test_without_a_command_it_serves() -> None:
    with client("--quiet") as c:
        c.initialize()
        assert c.end() == 0

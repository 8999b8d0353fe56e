"""How long an editor waits: the server's `initialize`, symbol answers when idle, and during a session.

    python benchmarks/lsp_latency.py WORKSPACE [--program PROGRAM] [--out FILE]

WORKSPACE is a large repository; the session works on the bundled sample, opened as a second folder.
Milliseconds. The client is plain pipes, so that what is measured is the server.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any


class Client:
    def __init__(self, program: list[str]) -> None:
        self.process = subprocess.Popen([*program, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.replies: dict[int, tuple[float, Any]] = {}
        self.finished = threading.Event()
        self.arrived = threading.Condition()
        self.next = 0
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while line := stream.readline():
            length = int(line.split(b":")[1])
            stream.readline()
            message = json.loads(stream.read(length))
            now = time.perf_counter()
            if message.get("method") == "agent-ls/run/didUpdate":
                if message["params"]["update"].get("state") == "finished":
                    self.finished.set()
            elif "method" in message and "id" in message:
                self.send({"id": message["id"], "result": None})
            elif "id" in message:
                with self.arrived:
                    self.replies[message["id"]] = (now, message.get("result", message.get("error")))
                    self.arrived.notify_all()

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def call(self, method: str, params: Any, timeout: float = 120) -> tuple[float, Any]:
        """(seconds, result)."""
        self.next += 1
        id, began = self.next, time.perf_counter()
        self.send({"id": id, "method": method, "params": params})
        with self.arrived:
            if not self.arrived.wait_for(lambda: id in self.replies, timeout):
                raise SystemExit(f"no answer to {method} in {timeout} s")
        ended, result = self.replies.pop(id)
        return ended - began, result


def spread(samples: list[float]) -> dict[str, float]:
    ordered = sorted(samples)
    at = lambda share: round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3)  # noqa: E731
    return {"n": len(ordered), "p50": at(0.5), "p99": at(0.99), "max": round(1000 * ordered[-1], 3)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workspace", type=Path)
    parser.add_argument("--program", default=f"{sys.executable} -m agent_ls")
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    from agent_ls.cli.sample import create_sample

    sample = create_sample(Path(tempfile.mkdtemp()) / "sample")
    began = time.perf_counter()
    client = Client(given.program.split())
    folders = [{"uri": path.resolve().as_uri(), "name": path.name} for path in (given.workspace, sample)]
    params = {"processId": os.getpid(), "rootUri": None, "capabilities": {}, "workspaceFolders": folders}
    initialize, _ = client.call("initialize", params)
    started = time.perf_counter() - began
    client.send({"method": "initialized", "params": {}})
    first, _ = client.call("workspace/symbol", {"query": "main"}, 600)
    files = sorted(given.workspace.rglob("*.py"))
    random.seed(1)
    names: list[str] = []
    while len(names) < 200:
        uri = random.choice(files).resolve().as_uri()
        _, symbols = client.call("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
        names += [symbol["name"] for symbol in symbols or ()]

    def flood(count: int, until: threading.Event | None = None) -> dict[str, Any]:
        found: dict[str, list[float]] = {"workspace/symbol": [], "documentSymbol": [], "hover": []}
        for number in range(count):
            if until is not None and until.is_set():
                break
            uri = random.choice(files).resolve().as_uri()
            place = {"textDocument": {"uri": uri}}
            seconds, _ = client.call("workspace/symbol", {"query": random.choice(names)})
            found["workspace/symbol"].append(seconds)
            seconds, _ = client.call("textDocument/documentSymbol", place)
            found["documentSymbol"].append(seconds)
            position = {"line": number % 50, "character": 0}
            found["hover"].append(client.call("textDocument/hover", {**place, "position": position})[0])
        return {name: spread(samples) for name, samples in found.items()}

    idle = flood(given.requests)
    started_run = {"kind": "issue", "target": 1, "folder": folders[1]["uri"]}
    asked, _ = client.call(
        "workspace/executeCommand", {"command": "agent-ls.run.start", "arguments": [started_run]}
    )
    busy = flood(10 * given.requests, client.finished)
    result = {
        "load": os.getloadavg()[0],
        "process start to initialize answered ms": round(1000 * started),
        "initialize ms": round(1000 * initialize, 1),
        "first symbol answer ms": round(1000 * first),
        "run.start answered ms": round(1000 * asked, 1),
        "idle": idle,
        "during a session": busy,
    }
    text = json.dumps(result, indent=2)
    print(text)
    if given.out:
        given.out.write_text(text + "\n")
    client.call("shutdown", None)
    client.send({"method": "exit"})


if __name__ == "__main__":
    main()

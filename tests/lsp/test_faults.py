"""Clients that misbehave: the server goes on serving, and nothing of the user's is lost."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lsp_kit import client, make_tiny

from agent_ls.cli.sample import create_sample
from agent_ls.lsp.features import create_server

TEXT = st.text(alphabet="aé😀\n\r ", max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 99) | TEXT | st.just("file:///tmp/x.py"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
URI = st.sampled_from(["file:///tmp/x.py", "file:///tmp/y%20z.py", "untitled:1", "", "file:", "c%3A"])
NUMBER = st.integers(-2, 5)
POSITION = st.fixed_dictionaries({"line": NUMBER, "character": NUMBER})
RANGE = st.fixed_dictionaries({"start": POSITION, "end": POSITION})
DOCUMENT = st.fixed_dictionaries({"uri": URI, "version": NUMBER, "languageId": TEXT, "text": TEXT})
CHANGES = st.lists(st.fixed_dictionaries({"text": TEXT}, optional={"range": RANGE}), max_size=3)
COMMAND = st.sampled_from(
    ["agent-ls.run.get", "agent-ls.run.cancel", "agent-ls.run.answer", "agent-ls.run.accept", "no.such"]
)
METHODS = st.one_of(
    st.tuples(st.just("textDocument/didOpen"), st.fixed_dictionaries({"textDocument": DOCUMENT})),
    st.tuples(
        st.just("textDocument/didChange"),
        st.fixed_dictionaries({"textDocument": DOCUMENT, "contentChanges": CHANGES}),
    ),
    st.tuples(st.just("textDocument/didClose"), st.fixed_dictionaries({"textDocument": DOCUMENT})),
    st.tuples(
        st.sampled_from(["textDocument/hover", "textDocument/codeLens", "textDocument/documentSymbol"]),
        st.fixed_dictionaries({"textDocument": DOCUMENT, "position": POSITION}),
    ),
    st.tuples(
        st.just("workspace/executeCommand"),
        st.fixed_dictionaries({"command": COMMAND, "arguments": st.lists(JSON, max_size=2)}),
    ),
    st.tuples(st.sampled_from(["$/cancelRequest", "$/setTrace", "window/workDoneProgress/cancel"]), JSON),
    st.tuples(
        st.sampled_from(["initialize", "workspace/symbol", "x", "workspace/didChangeConfiguration"]), JSON
    ),
)


def message(made: tuple[tuple[str, Any], Any]) -> dict[str, Any]:
    (method, params), id = made
    return {"jsonrpc": "2.0", "method": method, "params": params, **({} if id is None else {"id": id})}


MESSAGE = st.one_of(
    st.tuples(METHODS, st.none() | st.integers(0, 9) | TEXT).map(message),
    st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "id": JSON, "result": JSON}),
    JSON,
)


class Wire:
    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def write(self, body: bytes) -> None:
        self.sent.append(json.loads(body))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(MESSAGE, max_size=12))
def test_whatever_is_sent_each_request_is_answered_once(messages: list[Any]) -> None:
    async def play() -> None:
        server = create_server()
        server.begin()
        wire = Wire()
        server.connected(wire)  # type: ignore[arg-type]
        hello = {"processId": None, "rootUri": None, "capabilities": {}}
        server.receive(
            json.dumps({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": hello}).encode()
        )
        for one in messages:
            server.receive(json.dumps(one).encode())
        server.receive(json.dumps(message((("workspace/symbol", {"query": "x"}), "last"))).encode())
        for _ in range(200):
            if any(it.get("id") == "last" for it in wire.sent):
                break
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.02)
        answers = [it for it in wire.sent if "method" not in it]
        assert [it.get("result") for it in answers if it.get("id") == "last"] == [[]]
        requests = [it["id"] for it in messages if isinstance(it, dict) and "method" in it and "id" in it]
        for id in set(requests):
            assert sum(it.get("id") == id for it in answers) == requests.count(id), (id, answers)
        server.finish()

    asyncio.run(play())


def test_a_huge_document_is_a_document(tmp_path: Path) -> None:
    root = create_sample(tmp_path / "repo")
    uri = (root / "meterly" / "period.py").as_uri()
    with client() as c:
        c.initialize(root)
        c.open(uri, "x = 1  # ä😀\n" * 400_000)
        for version in range(2, 6):
            place = {"line": 399_999, "character": 0}
            c.change(uri, version, {"range": {"start": place, "end": place}, "text": "y = 2\n"})
        assert c.call("workspace/symbol", {"query": "Period"}, timeout=60) is not None
        c.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        names = [it["name"] for it in c.call("textDocument/documentSymbol", {"textDocument": {"uri": uri}})]
        assert names == ["Period"]
        assert c.end() == 0


@pytest.mark.slow
def test_folders_and_files_that_change_while_a_run_works(tmp_path: Path) -> None:
    """The folder leaves the workspace, its file is edited and closed, everything is cancelled twice."""
    root = make_tiny(tmp_path / "repo")
    period = root / "pair.py"
    uri = period.as_uri()
    entry = {"uri": root.as_uri(), "name": "repo"}
    with client() as c:
        c.initialize(root)
        c.open(uri, period.read_text())
        run = c.command("agent-ls.run.start", {"kind": "issue", "target": 1})["runId"]
        c.wait(lambda m: "running the test suite" in str(m.get("params")))
        c.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": [entry]}})
        c.change(uri, 2, {"text": "typed meanwhile\n"})
        c.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        period.write_text("saved meanwhile\n")
        end = c.wait(lambda m: (m.get("params") or {}).get("update", {}).get("state") == "finished", 120)[
            "params"
        ]["update"]
        assert end["verdict"] == "fixed"  # the session has its own copy
        refused = c.command("agent-ls.run.accept", {"runId": run, "how": "apply"})
        assert refused["applied"] is False  # the file is another one now
        for _ in range(2):
            for id in range(40):
                c.notify("$/cancelRequest", {"id": id})
            assert c.command("agent-ls.run.cancel", {"runId": run})["state"] == "finished"
        assert c.end() == 0
    assert period.read_text() == "saved meanwhile\n"
    status = subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True, text=True)
    assert status.stdout == " M pair.py\n"

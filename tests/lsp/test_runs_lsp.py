"""Sessions and tests from the editor: real runs, seen through the protocol."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil
import pytest
from lsp_kit import Client, client, make_tiny

from agent_ls.cli.sample import create_sample

CAPABILITIES = {
    "window": {"workDoneProgress": True},
    "workspace": {
        "workspaceEdit": {"documentChanges": True, "changeAnnotationSupport": {"groupsOnLabel": True}},
        "codeLens": {"refreshSupport": True},
    },
    "experimental": {"agentLs": {"requestPermission": True}},
}
BUG, FIX = "self.first <= day < self.last", "self.first <= day <= self.last"


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout


def state(run: str, value: str) -> Any:
    def test(message: dict[str, Any]) -> bool:
        params = message.get("params") or {}
        return (
            message.get("method") == "agent-ls/run/didUpdate"
            and params["runId"] == run
            and params["update"].get("state") == value
        )

    return test


def finish(c: Client, run: str, timeout: float = 120) -> dict[str, Any]:
    update: dict[str, Any] = c.wait(state(run, "finished"), timeout)["params"]["update"]
    return update


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return create_sample(tmp_path_factory.mktemp("sample") / "repo")


@pytest.fixture
def c(sample: Path) -> Iterator[Client]:
    with client() as made:
        made.initialize(sample, capabilities=CAPABILITIES)
        yield made


class Editor:
    """Applies a workspace edit to texts as an editor would."""

    def __init__(self, c: Client, texts: dict[str, str]) -> None:
        self.c, self.texts, self.seen = c, texts, []  # type: ignore[var-annotated]
        self.version = 1
        for uri, text in texts.items():
            c.open(uri, text)

    def apply(self, params: dict[str, Any]) -> dict[str, Any]:
        self.seen.append(params)
        for change in params["edit"]["documentChanges"]:
            uri = change["textDocument"]["uri"]
            lines = self.texts[uri].splitlines(keepends=True)
            for edit in reversed(change["edits"]):
                first, last = edit["range"]["start"]["line"], edit["range"]["end"]["line"]
                lines[first:last] = [edit["newText"]]
            self.texts[uri] = "".join(lines)
            self.version += 1
            self.c.change(uri, self.version, {"text": self.texts[uri]})
        return {"applied": True}


@pytest.mark.slow
def test_an_issue_is_fixed_looked_at_and_applied(c: Client, sample: Path) -> None:
    before = (git(sample, "status", "--porcelain"), git(sample, "rev-parse", "HEAD", "main"))
    started = time.monotonic()
    run = c.command("agent-ls.run.start", {"kind": "issue", "target": 1})
    assert time.monotonic() - started < 5
    end = finish(c, run["runId"])
    assert (end["verdict"], end["exitCode"], end["branch"]) == ("fixed", 0, run["branch"])
    assert end["filesChanged"] == ["meterly/period.py"]
    assert (git(sample, "status", "--porcelain"), git(sample, "rev-parse", "HEAD", "main")) == before
    assert git(sample, "rev-parse", run["branch"]).strip() == end["commit"]
    # numbers without gaps, and all of them to be had again
    c.drain()
    told = [it for it in c.sent("agent-ls/run/didUpdate") if it["runId"] == run["runId"]]
    assert [it["seq"] for it in told] == list(range(len(told)))
    again = c.command("agent-ls.run.get", {"runId": run["runId"], "fromSeq": 3})
    assert again["updates"] == [{"seq": it["seq"], "update": it["update"]} for it in told[3:]]
    assert again["report"]["verdict"] == "fixed"
    # progress: created, begun, reported, ended once
    token = f"agent-ls/run/{run['runId']}"
    kinds = [it["value"]["kind"] for it in c.sent("$/progress") if it["token"] == token]
    assert (kinds[0], kinds[-1], kinds.count("begin"), kinds.count("end")) == ("begin", "end", 1, 1)
    said = [it["value"].get("message") for it in c.sent("$/progress") if it["token"] == token]
    assert "baseline: 18 passed, 3 failed" in said
    assert c.sent("agent-ls/didChangeStatus") == [
        {"kind": "Busy", "message": "Usage on the last day of a month is never billed"},
        {"kind": "Normal", "message": ""},
    ]
    # review: the files, then one edit that the editor confirms
    shown = c.command("agent-ls.run.accept", {"runId": run["runId"], "how": "diff"})
    [file] = shown["files"]
    with urlopen(shown["previews"]["patch.diff"]) as preview:
        assert preview.read().decode() == shown["diff"]
    assert (file["fate"], BUG in file["before"], FIX in file["after"]) == ("apply", True, True)
    period = sample / "meterly" / "period.py"
    text = period.read_text()
    c.answers["workspace/applyEdit"] = {"applied": True}  # a lie: nothing is changed
    c.open(period.as_uri(), text)
    lied = c.command("agent-ls.run.accept", {"runId": run["runId"], "how": "apply"})
    assert (lied["applied"], "is not so" in lied["reason"]) == (False, True)
    moved = text.replace(BUG, "self.first < day < self.last")
    editor = Editor(c, {period.as_uri(): moved})
    stuck = c.command("agent-ls.run.accept", {"runId": run["runId"], "how": "apply"})
    assert (stuck["applied"], len(stuck["conflicts"])) == (False, 1)
    assert "<<<<<<< yours" in stuck["conflicts"][0]["merged"]
    editor = Editor(c, {period.as_uri(): "# mine\n" + text})
    c.answers["workspace/applyEdit"] = editor.apply
    done = c.command("agent-ls.run.accept", {"runId": run["runId"], "how": "apply"})
    assert (done["applied"], done["decided"]) == (True, "applied")
    assert editor.texts[period.as_uri()] == "# mine\n" + text.replace(BUG, FIX)
    [annotation] = editor.seen[0]["edit"]["changeAnnotations"].values()
    assert annotation["needsConfirmation"] is True
    assert period.read_text() == text  # the file is the editor's to write
    # the files are what the session proved: nothing fails any more
    failing = (sample / "tests" / "test_period.py").as_uri()
    assert diagnostics(c, failing)
    editor = Editor(c, {period.as_uri(): text})
    c.answers["workspace/applyEdit"] = editor.apply
    assert c.command("agent-ls.run.accept", {"runId": run["runId"], "how": "apply"})["applied"]
    assert not diagnostics(c, failing)
    # thrown away: the branch goes, twice is once
    for _ in range(2):
        gone = c.command("agent-ls.run.reject", {"runId": run["runId"]})
        assert gone["decided"] == "discarded"
    assert git(sample, "branch", "--list", run["branch"]) == ""


def diagnostics(c: Client, uri: str) -> list[Any]:
    c.drain()
    sent = [it for it in c.sent("textDocument/publishDiagnostics") if it["uri"] == uri]
    return list(sent[-1]["diagnostics"]) if sent else []


@pytest.mark.slow
def test_failing_tests_are_shown_where_they_fail(c: Client, sample: Path) -> None:
    test = "tests/test_period.py::PeriodTest::test_contains_its_last_day"
    file = sample / "tests" / "test_period.py"
    uri = file.as_uri()
    c.open(uri, file.read_text())
    run = c.command("agent-ls.tests.run", {"ids": [test]})["runId"]
    assert finish(c, run)["verdict"] == "failed"
    message = c.wait(
        lambda m: m.get("method") == "textDocument/publishDiagnostics" and m["params"]["uri"] == uri
    )
    [found] = message["params"]["diagnostics"]
    assert (found["code"], found["source"], found["severity"]) == ("AG201", "agent-ls", 1)
    assert found["data"]["test"] == test
    row = found["range"]["start"]["line"]
    assert "assert" in file.read_text().splitlines()[row]
    # lens, action and hover at that place
    lenses = c.call("textDocument/codeLens", {"textDocument": {"uri": uri}})
    assert any(m.get("method") == "workspace/codeLens/refresh" for m in c.messages)
    titles = {(it["command"]["title"], it["range"]["start"]["line"]) for it in lenses}
    line = next(
        n for n, text in enumerate(file.read_text().splitlines()) if "test_contains_its_last_day" in text
    )
    assert {("✗ failed · run", line), ("fix", line)} <= titles
    here = {"start": {"line": row, "character": 0}, "end": {"line": row, "character": 0}}
    actions = c.call(
        "textDocument/codeAction",
        {"textDocument": {"uri": uri}, "range": here, "context": {"diagnostics": [found]}},
    )
    [action] = [it for it in actions if it["title"].startswith("Fix with agent")]
    resolved = c.call("codeAction/resolve", action)
    assert resolved["command"]["command"] == "agent-ls.run.start"
    assert resolved["command"]["arguments"][0]["target"] == test
    hover = c.call("textDocument/hover", {"textDocument": {"uri": uri}, "position": here["start"]})
    assert "AG201" in hover["contents"]["value"]
    # an unsaved repair turns it green, and what was known before the change is marked as old
    before = len(c.messages)
    period = sample / "meterly" / "period.py"
    c.open(period.as_uri(), period.read_text().replace(BUG, FIX))
    c.change(uri, 2, {"text": file.read_text() + "\n"})
    stale = c.wait(
        lambda m: m.get("method") == "textDocument/publishDiagnostics" and c.messages.index(m) >= before
    )
    assert "has changed since" in stale["params"]["diagnostics"][0]["message"]
    run = c.command("agent-ls.tests.run", {"ids": [test]})["runId"]
    assert finish(c, run)["verdict"] == "passed"
    c.drain()
    assert c.sent("textDocument/publishDiagnostics")[-1]["diagnostics"] == []


def test_other_servers_diagnostics_can_be_fixed(c: Client, sample: Path) -> None:
    uri = (sample / "meterly" / "period.py").as_uri()
    c.open(uri, "import os\nx = 1\n")
    place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 9}}
    other = {"range": place, "message": "`os` imported but unused", "source": "Ruff", "code": "F401"}
    asked = {"textDocument": {"uri": uri}, "range": place, "context": {"diagnostics": [other]}}
    actions = c.call("textDocument/codeAction", asked)
    assert [it["title"] for it in actions] == [
        "Fix with agent: `os` imported but unused",
        "Refactor with agent…",
    ]
    resolved = c.call("codeAction/resolve", actions[0])
    [argument] = resolved["command"]["arguments"]
    assert argument["kind"] == "diagnostic"
    assert argument["target"]["code"] == "F401"
    assert argument["target"]["text"] == "import os\nx = 1\n"
    only = c.call(
        "textDocument/codeAction", {**asked, "context": {"diagnostics": [other], "only": ["refactor"]}}
    )
    assert [it["title"] for it in only] == ["Refactor with agent…"]


def test_the_guard_reviews_what_the_person_changed(tmp_path: Path) -> None:
    root = create_sample(tmp_path / "repo")
    path = root / "tests" / "test_money.py"
    text = path.read_text()
    line = next(n for n, it in enumerate(text.splitlines()) if "assertEqual" in it)
    lines = text.splitlines()
    weak = " " * (len(lines[line]) - len(lines[line].lstrip())) + "self.assertTrue(True)"
    path.write_text("\n".join([*lines[:line], weak, *lines[line + 1 :], ""]))
    with client() as c:
        c.initialize(root)
        answer = c.command("agent-ls.guard.review", {"base": "HEAD"})
        assert [it["severity"] for it in answer["findings"]] == ["block"]
        shown = c.wait("textDocument/publishDiagnostics")["params"]
        assert shown["uri"] == path.as_uri()
        [found] = shown["diagnostics"]
        assert (found["code"], found["range"]["start"]["line"]) == ("AG101", line)
        hover = c.call(
            "textDocument/hover",
            {"textDocument": {"uri": path.as_uri()}, "position": {"line": line, "character": 9}},
        )
        assert "assertEqual" in hover["contents"]["value"]


HANG = "import time\n\n\ndef test_hang():\n    time.sleep(600)\n"


def hanging(root: Path) -> Path:
    root.mkdir()
    (root / "test_hang.py").write_text(HANG)
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "x")
    return root


@pytest.mark.slow
@pytest.mark.parametrize("way", ["command", "progress", "editor closes", "editor dies"])
def test_a_run_stops_at_once_and_leaves_nothing(way: str, tmp_path: Path, isolated: Path) -> None:
    root = hanging(tmp_path / "repo")
    with client() as c:
        c.initialize(root, capabilities=CAPABILITIES)
        run = c.command("agent-ls.run.start", {"kind": "prompt", "target": "make it faster"})["runId"]
        c.wait(lambda m: "running the test suite" in str(m.get("params")))
        time.sleep(1.5)
        below = psutil.Process(c.process.pid).children(recursive=True)
        assert len(below) >= 2  # the sandbox and the tests in it
        started = time.monotonic()
        if way == "command":
            c.command("agent-ls.run.cancel", {"runId": run})
        elif way == "progress":
            c.notify("window/workDoneProgress/cancel", {"token": f"agent-ls/run/{run}"})
        elif way == "editor closes":
            assert c.end() == 0
        else:
            c.process.stdin.close()  # type: ignore[union-attr]
            assert c.process.wait(10) == 1
        if way in ("command", "progress"):
            assert finish(c, run, 10)["verdict"] == "cancelled"
            assert c.command("agent-ls.run.cancel", {"runId": run})["state"] == "finished"
            c.drain()
            assert [it["value"]["kind"] for it in c.sent("$/progress")].count("end") == 1
        assert time.monotonic() - started < 5
        psutil.wait_procs(below, timeout=3)
        assert [it for it in below if it.is_running() and it.status() != "zombie"] == []
    assert git(root, "status", "--porcelain") == ""
    assert git(root, "worktree", "list").count("\n") == 1


@pytest.mark.slow
def test_a_pause_holds_the_run_between_two_steps(tmp_path: Path) -> None:
    root = make_tiny(tmp_path / "repo")
    with client() as c:
        c.initialize(root, capabilities=CAPABILITIES)
        run = c.command("agent-ls.run.start", {"kind": "issue", "target": 1})["runId"]
        c.wait(lambda m: "running the test suite" in str(m.get("params")))
        assert c.command("agent-ls.run.pause", {"runId": run})["state"] == "paused"
        c.drain(4)
        seen = c.command("agent-ls.run.status", {"runId": run})
        c.drain(1.5)
        assert c.command("agent-ls.run.status", {"runId": run})["seq"] == seen["seq"]
        assert seen["state"] == "paused"
        assert c.command("agent-ls.run.resume", {"runId": run})["state"] == "running"
        assert finish(c, run)["verdict"] == "fixed"
        assert [it["runId"] for it in c.command("agent-ls.run.list")["runs"]] == [run]


WRONG: list[tuple[str, Any, str]] = [
    ("run.start", {}, "no run is of the kind None"),
    ("run.start", {"kind": "issue", "target": "x"}, "an issue is a number"),
    ("run.start", {"kind": "prompt", "target": " "}, "needs a text"),
    ("run.start", {"kind": "test", "target": [1]}, "tests are named by their ids"),
    ("run.start", {"kind": "diagnostic", "target": {"path": "x.py"}}, "no message"),
    ("run.start", {"kind": "issue", "target": 1, "folder": "/no/where"}, "is not open here"),
    ("run.start", {"kind": "issue", "target": 1, "limits": {"money": 1}}, "no limit 'money'"),
    ("run.get", {"runId": "run-0"}, "there is no run 'run-0'"),
    ("run.status", {}, "runId is missing"),
    ("run.cancel", [1], "one object"),
    ("tests.run", {"ids": "x"}, "list of test ids"),
    ("guard.review", {"base": "no-such"}, "no-such"),
    ("run.accept", {"runId": "run-0"}, "there is no run"),
]


def test_wrong_commands_are_answered_with_the_remedy(c: Client) -> None:
    for name, argument, said in WRONG:
        answer = c.command(f"agent-ls.{name}", argument)
        assert answer["code"] == -32602, (name, argument, answer)
        assert said in answer["message"], (name, argument, answer)
    assert c.command("agent-ls.run.list") == {"schema": 1, "runs": []}


def test_a_setting_that_is_wrong_ends_the_run_with_the_reason(c: Client, sample: Path) -> None:
    c.notify("workspace/didChangeConfiguration", {"settings": {"agentLs": {"maxFailure": 3}}})
    run = c.command("agent-ls.run.start", {"kind": "issue", "target": 1})["runId"]
    end = finish(c, run, 30)
    assert (end["verdict"], end["exitCode"]) == ("usage", 2)
    assert "max_failures" in end["summary"]
    assert git(sample, "branch", "--list", "agent-ls/*") == ""

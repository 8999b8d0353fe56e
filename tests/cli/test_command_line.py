"""The program from outside: exit codes, one JSON document on stdout, nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_kit import PROGRAM, agent_ls, fingerprint, git, make_repo

from agent_ls import __version__
from agent_ls.cli.app import COMMANDS, _no_room

TESTS = {"calc.py": "def double(n):\n    return n + 2\n", "test_calc.py": (
    "import unittest\nfrom calc import double\n\n\nclass CalcTest(unittest.TestCase):\n"
    "    def test_two(self):\n        self.assertEqual(double(2), 4)\n\n"
    "    def test_three(self):\n        self.assertEqual(double(3), 6)\n"
)}  # fmt: skip


def test_version_and_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from agent_ls.__main__ import main

    assert agent_ls("--version", cwd=tmp_path).stdout == f"agent-ls {__version__}\n"
    assert agent_ls("-q", "--version", cwd=tmp_path).stdout == f"agent-ls {__version__}\n"
    asked = agent_ls("--help", cwd=tmp_path)
    assert asked.code == 0
    monkeypatch.setattr("sys.stdin", None)  # no terminal and no editor: a person is told what there is
    assert main([]) == 0
    assert capsys.readouterr().out == asked.stdout
    for name, (_, line) in COMMANDS.items():
        assert f"  {name} " in asked.stdout
        assert line.split()[0] in asked.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    from agent_ls.__main__ import main

    assert main([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert f"agent-ls {name}" in out
    assert "--json" in out or name in {"model", "serve", "acp", "mcp", "nvim-plugin"}


FIELDS = {
    "schema", "verdict", "exit_code", "session", "branch", "base", "commit", "diff", "files_changed", "tests",
    "guard", "usage", "limits", "steps", "reward", "stop_reason", "summary",
}  # fmt: skip


@pytest.mark.parametrize(
    "arguments", [["fix", "--issue", "7"], ["fix", "--bad"], ["resume", "none"], ["fix", "--repo", "none"]]
)
def test_an_error_has_all_fields_of_a_report(arguments: list[str], tmp_path: Path) -> None:
    done = agent_ls(*arguments, "--json", cwd=make_repo(tmp_path / "r", {"a.txt": ""}))
    document = done.document()
    assert document.keys() >= FIELDS
    assert (document["verdict"], document["exit_code"], done.code) == ("usage", 2, 2)
    assert document["error"] in document["summary"]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(28, "No space left on device", "/x/events"), "No space left on device (/x/events)"),
        (OSError([("a", "b", "[Errno 28] No space left on device: 'b'")]), "No space left on device"),
        (OSError(30, "Read-only file system"), "Read-only file system"),
        (OSError(2, "No such file", "x"), None),
    ],
)
def test_a_full_disk_is_named(error: OSError, said: str | None) -> None:
    assert _no_room(error) == said


def test_start_up_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom agent_ls.__main__ import main\nmain(['--help'])\n"
        "heavy = {'rich', 'httpx', 'jinja2', 'tree_sitter', 'cattrs', 'psutil', 'platformdirs', 'asyncio',"
        " 'junitparser', 'agent_ls.agent', 'agent_ls.workspace', 'agent_ls.models'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fix", "--issue", "x"], "--issue takes a number, not 'x'"),
        (["fix", "--issue", "0"], "begin with 1"),
        (["fix", "--issue", "1", "--text", "x"], "--issue and --text exclude each other"),
        (["--fix-issue", "7"], "issue 7 was not found"),
        (["--fix-issue=7"], ".agent-ls/issues/7.md"),
        (["fix", "--fix-issue"], "requires an argument"),
        (["fix", "--fix-issue", "7"], "issue 7 was not found"),
        (["fix", "--test", "tests/test_no.py::test_x"], "no file 'tests/test_no.py'"),
        (["fix", "--text", ""], "has no text"),
        (["fix", "--issue-file", "none.md"], "none.md does not exist"),
        (["fix", "--text", "x", "--model", "nonsense:model"], "nonsense"),
        (["fix", "--text", "x", "--max-steps", "many"], "max_steps must be a whole number"),
        (["fix", "--text", "x", "--max-failures", "0"], "at least 1"),
        (["fix", "--text", "x", "--max-cost", "1", "--model", "openai:x", "--set", "api_key=k"], "not known"),
        (["fix", "--text", "x", "--first", "x"], "first must be one of 'repair'"),
        (["fix", "--text", "x", "--permission", "fxi"], "did you mean 'fix'"),
        (["fix", "--text", "x", "--test-command", "a 'b"], "split into words"),
        (["fix", "--text", "x", "--set", "samples"], "KEY=VALUE"),
        (["fix", "--text", "x", "--set", "sampels=3"], "'samples'"),
        (["fix", "--text", "x", "--base", "no-such-rev"], "no-such-rev"),
        (["fix", "--text", "x", "--branch", "a..b"], "a..b"),
        (["fix", "--text", "x", "--branch", "main"], "main"),
        (["fix", "--repo", "no/such/dir", "--text", "x"], "is not a directory"),
        (["fix", "--repo", "", "--text", "x"], "--repo is empty"),
        (["fix", "--bogus"], "--bogus"),
        (["fix", "extra", "--text", "x"], "extra"),
        (["show", "nothing"], "nothing"),
        (["resume", ""], "empty"),
        (["clean", "nothing"], "nothing"),
        (["model", "install", "qwen"], "no local model is called 'qwen'"),
        (["model", "bogus"], "bogus"),
        (["search", ""], "empty"),
        (["search", "(", "--regex"], "regular expression"),
        (["server"], "No such command 'server'"),
        (["serve", "--tcp", "localhost", "--ws", "localhost:1"], "exclude each other"),
        (["eval", "home"], "No such command 'eval'"),
        (["fxi"], "fxi"),
    ],
)
def test_wrong_use(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str], isolated: Path,
) -> None:  # fmt: skip
    from agent_ls.__main__ import main

    root = make_repo(tmp_path / "repo", TESTS)
    monkeypatch.chdir(root)
    before = fingerprint(root)
    assert main(arguments) == 2
    captured = capfd.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert "Traceback" not in captured.err
    assert (
        main(["--json", *arguments] if arguments[0] != "fix" else [*arguments[:1], "--json", *arguments[1:]])
        == 2
    )
    captured = capfd.readouterr()
    document = json.loads(captured.out)
    assert (document["schema"], document["verdict"], document["exit_code"]) == (1, "usage", 2)
    assert said in f"{document['error']} {document['remedy']}"
    assert said in captured.err
    assert fingerprint(root) == before
    assert not list((isolated / "sessions").glob("*"))


def _bare(path: Path) -> Path:
    path.mkdir()
    git(path, "init", "-q", "--bare")
    return path


ODD_PLACES = {
    "no repository": (lambda path: path.mkdir() or path, 2, "repository"),
    "no commits": (lambda path: make_repo(path, {"a.py": ""}, commit=False), 2, "commit"),
    "bare": (_bare, 2, "bare"),
    "no tests": (lambda path: make_repo(path, {"a.py": "x = 1\n"}), 6, "test"),
    "no files": (lambda path: make_repo(path, {}), 6, "test"),
}


@pytest.mark.parametrize("name", ODD_PLACES)
def test_odd_places(name: str, tmp_path: Path, isolated: Path) -> None:
    make, code, said = ODD_PLACES[name]
    root = make(tmp_path / "odd ünïcode")
    before = fingerprint(root)
    done = agent_ls("fix", "--text", "it is wrong", "--json", cwd=root)
    document = done.document()
    assert (done.code, document["exit_code"]) == (code, code)
    assert said in (document.get("error") or document.get("summary") or "").lower()
    assert "Traceback" not in done.stderr
    assert fingerprint(root) == before
    if code == 2:
        assert not list((isolated / "sessions").glob("*"))


def test_the_tests_are_run_and_parsed(tmp_path: Path) -> None:
    root = make_repo(tmp_path / "with space\nand newline", TESTS)
    before = fingerprint(root)
    done = agent_ls("test", "--json", cwd=root)
    document = done.document()
    assert done.code == 9
    assert document["outcome"] == "failed"
    outcomes = {test["id"].rsplit("test_", 1)[-1]: test for test in document["tests"]}
    assert {name: test["outcome"] for name, test in outcomes.items()} == {"two": "passed", "three": "failed"}
    failed = outcomes["three"]
    assert "5 != 6" in failed["message"]
    assert failed["file"] == "test_calc.py"
    assert ("test_calc.py", "test_three") in [(frame["file"], frame["function"]) for frame in failed["stack"]]
    assert document["truncated"] is False
    unknown = agent_ls("test", outcomes["two"]["id"], "no.such", "--json", cwd=root)
    assert (unknown.code, unknown.document()["verdict"]) == (2, "usage")
    assert "no such tests: no.such" in unknown.stderr
    again = agent_ls("test", outcomes["two"]["id"], cwd=root)
    assert (again.code, again.stdout.split("  ")[0]) == (0, "1 passed")
    assert fingerprint(root) == before


def test_reading_commands(tmp_path: Path) -> None:
    root = make_repo(tmp_path / "repo", {**TESTS, "notes/ü.txt": "call double twice\n"})
    found = agent_ls("search", "double", "--json", cwd=root / "notes").document()
    places = [(hit["path"], hit["line"], hit["column"]) for hit in found["hits"]]
    assert ("calc.py", 1, 5) in places
    assert ("notes/ü.txt", 1, 6) in places
    assert found["complete"] is True
    short = agent_ls("search", "double", "--limit", "1", "--json", cwd=root).document()
    assert (len(short["hits"]), short["complete"]) == (1, False)
    symbols = agent_ls("symbols", "double", "--json", cwd=root).document()["symbols"]
    assert [(s["name"], s["kind"], s["path"], s["line"]) for s in symbols] == [
        ("double", "function", "calc.py", 1)
    ]
    assert agent_ls("search", "no such text", cwd=root).stdout == ""


def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    root = make_repo(tmp_path / "repo", {"a.txt": "x\n" * 20_000})
    process = subprocess.Popen(
        [*PROGRAM, "search", "x", "--limit", "20000"],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    said = process.stderr.read().decode()
    assert process.wait(60) == 141
    assert "Traceback" not in said


def test_a_fault_of_ours_leaves_a_traceback_in_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], isolated: Path
) -> None:
    import agent_ls.agent.history
    from agent_ls.__main__ import main

    monkeypatch.setenv("MY_TOKEN", "s3cr3t-value")

    def broken(root: Path | None) -> None:
        raise RuntimeError("boom with s3cr3t-value\nsecond line")

    monkeypatch.setattr(agent_ls.agent.history, "sessions", broken)
    assert main(["sessions", "--json"]) == 1
    captured = capsys.readouterr()
    assert "an unexpected error: RuntimeError: boom" in captured.err
    assert "Traceback" not in captured.err
    assert "s3cr3t-value" not in captured.err
    [log] = (isolated / "crashes").iterdir()
    assert "in broken" in log.read_text()
    assert "s3cr3t-value" not in log.read_text()
    assert main(["sessions", "--verbose"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_unwritable_state_folder(tmp_path: Path) -> None:
    root = make_repo(tmp_path / "repo", TESTS)
    file = tmp_path / "file"
    file.write_text("")
    done = agent_ls("fix", "--text", "x", "--json", cwd=root, AGENT_LS_STATE_DIR=str(file / "below"))
    assert done.document()["verdict"] in ("usage", "error")
    assert "Traceback" not in done.stderr
    assert git(root, "branch", "--list").split() == ["*", "main"]


def test_doctor(tmp_path: Path) -> None:
    root = make_repo(tmp_path / "repo", TESTS)
    done = agent_ls("doctor", "--json", "--model", "local:qwen2.5-coder-1.5b", cwd=root,
                    OPENAI_API_KEY="sk-very-secret", AGENT_LS_CACHE_DIR=str(tmp_path / "cache"))  # fmt: skip
    document = done.document()
    checks = {check["name"]: check for check in document["checks"]}
    assert done.code == 0
    assert checks["git"]["state"] == "ok"
    assert checks["repository"]["found"] == str(root)
    assert "unittest" in checks["tests"]["found"] or "pytest" in checks["tests"]["found"]
    assert checks["tests"]["details"]
    assert checks["model"]["state"] == "missing"
    assert "model install qwen2.5-coder-1.5b" in checks["model"]["remedy"]
    assert document["ok"] is False
    assert "OPENAI_API_KEY" in checks["keys"]["found"]
    assert "very-secret" not in done.stdout + done.stderr
    assert all(check["remedy"] for check in document["checks"] if check["state"] != "ok")
    assert not (tmp_path / "cache").exists()
    outside = agent_ls("doctor", cwd=tmp_path)
    assert outside.code == 0
    assert "✗ repository" in outside.stdout


@pytest.mark.parametrize(
    ("model", "state", "said"),
    [
        ("repair", "ok", "built in"),
        ("local:here.gguf", "ok", "local:here.gguf"),
        ("local:none.gguf", "missing", "there is no file none.gguf"),
        ("local:qwen", "missing", "Known: qwen2.5-coder-1.5b"),
        ("anthropic:x", "missing", "ANTHROPIC_API_KEY"),
        ("openai:", "missing", "openai:<model>"),
        ("gpt:x", "missing", "no model is called 'gpt:x'"),
        ("replay:none.jsonl", "missing", "none.jsonl"),
    ],
)
def test_doctor_says_of_each_model_what_fix_would_say(
    model: str, state: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    import importlib.util

    from agent_ls.__main__ import main

    monkeypatch.chdir(make_repo(tmp_path / "repo", TESTS))
    Path("here.gguf").write_bytes(b"GGUF")
    for variable in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    if importlib.util.find_spec("xllamacpp") is None and state == "ok" and model != "repair":
        state, said = "missing", "agent-ls[local]"
    assert main(["doctor", "--json", "--model", model]) == 0
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["model"]["state"] == state
    assert said in f"{checks['model']['found']} {checks['model']['remedy']}"


def test_no_sessions_yet(tmp_path: Path) -> None:
    assert agent_ls("sessions", "--json", cwd=tmp_path).document() == {"schema": 1, "sessions": []}
    assert "no sessions yet" in agent_ls("sessions", cwd=tmp_path).stderr
    cleaned = agent_ls("clean", "--all-repos", "--json", cwd=tmp_path).document()
    assert cleaned == {"schema": 1, "removed": [], "kept_branches": {}, "deleted_branches": {}}


def test_sessions_are_those_of_one_repository(tmp_path: Path) -> None:
    """Listing, `last` and cleaning in one repository leave alone what belongs to another."""
    failing = {"test_it.py": "def test_it():\n    assert False\n"}
    one, other = (make_repo(tmp_path / name, failing) for name in ("one", "other"))
    ids = {}
    for root in (one, other):
        done = agent_ls("fix", "--json", "--timeout", "20", cwd=root)
        assert done.code == 3, done.stderr
        ids[root] = done.document()["session"]
    for root in (one, other):
        listed = agent_ls("sessions", "--json", cwd=root).document()["sessions"]
        assert [info["id"] for info in listed] == [ids[root]]
    assert "no sessions yet" not in agent_ls("sessions", "--repo", str(one), cwd=other).stderr
    everywhere = agent_ls("sessions", cwd=tmp_path).stdout
    assert str(one) in everywhere
    assert str(other) in everywhere
    refused = agent_ls("clean", "--all", cwd=tmp_path)
    assert (refused.code, "--all-repos" in refused.stderr) == (2, True)
    assert "1 session can be resumed: --all" in agent_ls("clean", cwd=one).stderr
    assert agent_ls("clean", "--all", "--json", cwd=one).document()["removed"] == [ids[one]]
    last = agent_ls("show", "last", "--json", cwd=other).document()
    assert last["session"] == ids[other]
    assert "there is no session yet" in agent_ls("show", "last", cwd=one).stderr


HANGING = (
    "import time\nimport unittest\n\n\n"
    "class T(unittest.TestCase):\n    def test_it(self):\n        time.sleep(600)\n"
)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_session_and_leaves_it_resumable(number: signal.Signals, tmp_path: Path) -> None:
    root = make_repo(tmp_path / "repo", {"test_hang.py": HANGING})
    before = fingerprint(root)
    process = subprocess.Popen(
        [*PROGRAM, "fix", "--text", "it hangs", "--json"],
        cwd=root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if b"running the test suite" in line:
            break
    time.sleep(0.5)
    os.kill(process.pid, number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    document = json.loads(out)
    assert (document["verdict"], document["exit_code"]) == ("cancelled", 130)
    assert fingerprint(root) == before
    listed = agent_ls("sessions", "--json", cwd=root).document()["sessions"]
    assert [(info["verdict"], info["running"]) for info in listed] == [("cancelled", False)]


@pytest.mark.slow
def test_the_sample_is_fixed_shown_and_cleaned(tmp_path: Path) -> None:
    target = tmp_path / "sämple repo"
    done = agent_ls("demo", "--dir", str(target), "--json", cwd=tmp_path)
    document = done.document()
    assert (done.code, document["verdict"]) == (0, "fixed"), done.stderr
    assert document["files_changed"] == ["meterly/period.py"]
    assert "+        return self.first <= day <= self.last" in document["diff"]
    assert len(document["tests"]["fixed"]) == 3
    assert document["tests"]["regressed"] == []
    branch = document["branch"]
    assert git(target, "rev-parse", branch).strip() == document["commit"]
    assert git(target, "rev-parse", "HEAD").strip() == document["base"]
    assert git(target, "status", "--porcelain") == ""
    assert git(target, "rev-list", "--count", f"main..{branch}").strip() == "1"
    assert f"git -C '{target}' merge {branch}" in done.stderr
    # The event file alone tells it all again.
    shown = agent_ls("show", "last", "--json", cwd=tmp_path).document()
    assert shown == document
    told = agent_ls("show", document["session"], cwd=target).stdout
    for part in ("baseline: 18 passed, 3 failed", "full suite: 21 passed", "■ fixed", f"git merge {branch}"):
        assert part in told
    events = agent_ls("show", "last", "--events", cwd=tmp_path).stdout.splitlines()
    assert events[0].split()[:2] == ["0", "session_started"]
    assert events[-1].split()[1] == "session_finished"
    assert agent_ls("resume", "last", cwd=tmp_path).code == 2
    cleaned = agent_ls("clean", "--json", cwd=target).document()
    assert cleaned["removed"] == [document["session"]]
    assert cleaned["kept_branches"] == {branch: document["commit"]}
    assert git(target, "rev-parse", branch).strip() == document["commit"]
    again = agent_ls("demo", "--dir", str(target), cwd=tmp_path)
    assert again.code == 2
    assert "not empty" in again.stderr


def test_the_second_signal_leaves_at_once() -> None:
    code = (
        "import time\nfrom agent_ls.cli.signals import cancel_on_signals\n"
        "with cancel_on_signals() as cancel:\n"
        "    print('ready', flush=True)\n    cancel.wait(60)\n"
        "    print('asked', flush=True)\n    time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for expected in ("ready\n", "asked\n"):
        assert process.stdout.readline() == expected
        process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130


def test_a_damaged_event_file_is_told(tmp_path: Path, isolated: Path) -> None:
    folder = isolated / "sessions" / "20260101-000000-x-ab12"
    folder.mkdir(parents=True)
    case = Path(__file__).parent / "data" / "story" / "repair_fixed.jsonl"
    lines = case.read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "events.jsonl").write_text(
        "".join(lines[:3]) + "no event\n" + "".join(lines[3:]), encoding="utf-8"
    )
    listed = agent_ls("sessions", cwd=tmp_path)
    assert "Last day is never billed" in listed.stdout
    shown = agent_ls("show", "last", cwd=tmp_path)
    assert (shown.code, "damaged" in shown.stderr) == (2, True)


def test_tests_that_can_not_be_run(tmp_path: Path) -> None:
    root = make_repo(tmp_path / "repo", {"a.py": "x = 1\n"})
    done = agent_ls("test", "--json", cwd=root)
    document = done.document()
    assert (done.code, document["outcome"], document["tests"]) == (6, "env_broken", [])
    assert document["problem"]
    assert document["problem"] in done.stderr

"""A whole session over a repository full of secrets: none reaches a prompt, an event or the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from agent_kit import BUGGY, Recorder, Scripted, call, git, make_repo

from agent_ls import models
from agent_ls.agent import api
from agent_ls.cancel import CancelToken
from agent_ls.settings import Settings, state_dir
from agent_ls.task import Task


def of(*parts: str) -> str:
    return "".join(parts)


IN_SOURCE = of("kJ8sQz2", "LmP9vXw4", "RtY7bNc3Hd")
IN_NOTES = of("ghp", "_", "Zk3Qm7Xp" * 4, "wXyZ")
IN_ISSUE = of("xoxb", "-2745193847261-Kd83jfQm2Lx9")
IN_ENV_FILE = "hunter2-of-the-env"
IN_IGNORED = of("qW5eR7t", "Y9uI1oP3", "aS5dF7gH9j")
ALL = (IN_SOURCE, IN_NOTES, IN_ISSUE, IN_ENV_FILE, IN_IGNORED)
FILES = {
    **BUGGY,
    "shop/settings.py": f'API_KEY = b"{IN_SOURCE}"\nLIMIT = 3\n',
    "AGENTS.md": f"Use the token {IN_NOTES} for the mirror.\n",
    ".gitignore": ".env\nlocal.py\n",
    "tests/test_keys.py": "from shop.settings import API_KEY, LIMIT\n\n\ndef test_key():\n"
    "    print(API_KEY, 'hunter2-of-the-env')\n    assert LIMIT == 4, API_KEY\n",
}


@pytest.mark.slow
def test_no_secret_leaves_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = make_repo(tmp_path / "repo", FILES)
    (repo / ".env").write_text(f"DATABASE_PASSWORD={IN_ENV_FILE}\nDEBUG=1\n")
    (repo / "local.py").write_text(f'SECRET = "{IN_IGNORED}"\n')
    place = "AGENT_LS_SECRET_"
    model = Scripted(
        [call("read", path="shop/settings.py"), call("read", path="AGENTS.md"), call("read", path=".env"),
         call("read", path="local.py"), call("search", query="API_KEY"), call("run_tests")],
        call("edit", edits=[{"path": "shop/settings.py", "old": "LIMIT = 3", "new": "LIMIT = 4"}]),
        call("finish", outcome="fixed", summary="The limit was wrong."),
    )  # fmt: skip
    monkeypatch.setattr(models, "create", lambda settings: model)
    events = Recorder()
    task = Task(
        "The limit is wrong", f"It fails, see the log of {IN_ISSUE}.", "test", tests=("tests/test_keys.py",)
    )
    report = api.fix(repo, task, Settings(model="openai:scripted"), cancel=CancelToken(), on_event=events)
    assert report.data["verdict"] == "fixed", report.data["summary"]
    prompts = "\n".join(
        f"{message.content}\n{message.tool_calls}"
        for request in model.requests
        for message in request.messages
    )
    seen = {
        "prompts": prompts,
        "displays": "\n".join(str(event.data) for event in events.events),
        "report": json.dumps(report.data),
        "file": next((state_dir() / "sessions").glob("*/events.jsonl")).read_text(),
    }
    leaks = [(where, secret) for where, text in seen.items() for secret in ALL if secret in text]
    assert leaks == [], [event for event in events.events if any(secret in str(event.data) for secret in ALL)]
    assert f'b"{place}' in prompts
    commit = report.data["commit"]
    assert f'API_KEY = b"{IN_SOURCE}"\nLIMIT = 4\n' == git(repo, "show", f"{commit}:shop/settings.py")
    assert report.data["usage"]["denied_calls"] >= 1

"""What a session made is never lost, and what a person did meanwhile is never touched."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from agent_kit import BAD_LINE, GOOD_LINE, Scripted, call, git, make_repo, replace
from attrs import evolve

from agent_ls.agent import api, history
from agent_ls.agent.report import Report
from agent_ls.agent.session import lock_session, sessions_root
from agent_ls.cancel import CancelToken
from agent_ls.errors import ProviderError, UsageError
from agent_ls.settings import Limits, Settings
from agent_ls.task import Task
from agent_ls.verdict import Verdict

SETTINGS = Settings(model="openai:scripted")
TASK = Task("Discount is wrong", number=7)
BRANCH = "agent-ls/issue-7-discount-is-wrong"
HALF = "    return max(0, amount - discount)"
FIX = replace(BAD_LINE, GOOD_LINE)
DONE = call("finish", outcome="fixed", summary="done")
GIVE_UP = call("finish", outcome="give_up", summary="no")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo")


@pytest.fixture
def fix(monkeypatch: pytest.MonkeyPatch, repo: Path) -> Callable[..., Report]:
    def run(*script: object, settings: Settings = SETTINGS) -> Report:
        model = Scripted(*script)  # type: ignore[arg-type]
        monkeypatch.setattr("agent_ls.models.create", lambda settings: model)
        return api.fix(repo, TASK, settings, cancel=CancelToken())

    return run


@pytest.fixture
def resume(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Report]:
    def run(session: str, *script: object) -> Report:
        model = Scripted(*script)  # type: ignore[arg-type]
        monkeypatch.setattr("agent_ls.models.create", lambda settings: model)
        return api.resume(session, SETTINGS, cancel=CancelToken())

    return run


MEANWHILE: dict[str, list[list[str]]] = {
    "checks it out": [["checkout", "-q", BRANCH]],
    "deletes it": [["branch", "-D", BRANCH]],
    "commits to it": [["checkout", "-q", BRANCH], ["commit", "-q", "--allow-empty", "-m", "mine"],
                      ["checkout", "-q", "main"]],
}  # fmt: skip


@pytest.mark.parametrize("commands", MEANWHILE.values(), ids=MEANWHILE)
def test_a_person_uses_the_branch_meanwhile(
    fix: Callable[..., Report], repo: Path, commands: list[list[str]]
) -> None:
    seen: list[str] = []

    def meanwhile() -> None:
        for command in commands:
            git(repo, *command)
        seen.append(git(repo, "for-each-ref", "--format=%(refname) %(objectname)", f"refs/heads/{BRANCH}"))

    report = fix(meanwhile, FIX, DONE)
    assert report.verdict is Verdict.FIXED
    name = report.data["branch"]
    assert git(repo, "rev-parse", name).strip() == report.data["commit"]
    assert GOOD_LINE in git(repo, "show", f"{name}:shop/cart.py")
    if seen[0]:
        assert name == f"{BRANCH}-2"
        assert (
            git(repo, "for-each-ref", "--format=%(refname) %(objectname)", f"refs/heads/{BRANCH}") == seen[0]
        )
    assert BAD_LINE in (repo / "shop/cart.py").read_text()
    assert git(repo, "status", "--porcelain") == ""


def test_a_failed_resume_keeps_the_best_state_of_before(
    fix: Callable[..., Report], resume: Callable[..., Report], repo: Path
) -> None:
    first = fix(replace(BAD_LINE, HALF), GIVE_UP)
    assert first.verdict is Verdict.HANDED_OVER
    commit = first.data["commit"]
    assert git(repo, "rev-parse", BRANCH).strip() == commit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agent_ls.agent.judge.Judge.baseline", _unreachable)
        broken = resume(first.data["session"], GIVE_UP)
    assert broken.verdict is Verdict.PROVIDER_ERROR
    assert git(repo, "rev-parse", BRANCH).strip() == commit
    again = resume(broken.data["session"], replace(HALF, GOOD_LINE), DONE)
    assert again.verdict is Verdict.FIXED, again.data["summary"]
    assert again.data["branch"] == BRANCH
    assert git(repo, "rev-parse", f"{BRANCH}~1").strip() == again.data["base"]


def _unreachable(*_: object, **__: object) -> None:
    raise ProviderError("gone")


def test_one_session_is_resumed_once_at_a_time(
    fix: Callable[..., Report], resume: Callable[..., Report]
) -> None:
    session = fix(replace(BAD_LINE, HALF), GIVE_UP).data["session"]
    with lock_session(sessions_root() / session), pytest.raises(UsageError, match="running"):
        resume(session, GIVE_UP)


def test_clean_takes_leftovers_and_leaves_what_can_go_on(fix: Callable[..., Report], repo: Path) -> None:
    handed = fix(replace(BAD_LINE, HALF), GIVE_UP).data["session"]
    killed = sessions_root() / "20200101-000000-killed-0000"
    killed.mkdir()
    source = sessions_root() / handed / "events.jsonl"
    lines = source.read_text().splitlines(keepends=True)
    (killed / "events.jsonl").write_text("".join(lines[:-1]))  # killed just before its end
    began = sessions_root() / "20200101-000000-began-0000"
    (began / "scratch").mkdir(parents=True)
    (began / "lock").touch()
    assert began.name not in history.clean().sessions  # it may be starting just now
    os.utime(began, (time.time() - 600, time.time() - 600))
    assert began.name in history.clean().sessions
    assert killed.is_dir()
    assert (sessions_root() / handed).is_dir()
    assert set(history.clean(everything=True).sessions) == {handed, killed.name}
    assert git(repo, "branch", "--list", BRANCH).strip() == BRANCH


def test_damaged_event_files_are_in_nobodys_way(
    fix: Callable[..., Report], resume: Callable[..., Report]
) -> None:
    first = fix(replace(BAD_LINE, HALF), GIVE_UP)
    lines = (sessions_root() / first.data["session"] / "events.jsonl").read_text().splitlines(keepends=True)
    half = sessions_root() / "20200101-000000-half-0000"
    half.mkdir()
    (half / "events.jsonl").write_text("".join(lines[:-1]) + "junk\n" + lines[-1])
    wrong = sessions_root() / "20200101-000000-wrong-0000"
    wrong.mkdir()
    (wrong / "events.jsonl").write_text('{"seq":0,"time":0,"kind":"session_started","data":{}}\n')
    assert {info.id for info in history.sessions()} == {first.data["session"], half.name}
    with pytest.raises(UsageError, match="that the session did not make"):
        resume(half.name, GIVE_UP)  # what it ended with can't be read, so the branch is a person's
    assert half.name in history.clean(everything=True).sessions


def test_state_inside_the_repository_is_refused_without_a_trace(
    fix: Callable[..., Report], repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (repo / ".state", repo / ".git/state"):
        monkeypatch.setenv("AGENT_LS_STATE_DIR", str(place))
        with pytest.raises(UsageError, match="inside the repository"):
            fix(GIVE_UP)
        assert not place.exists()


def test_a_state_directory_that_is_none(
    fix: Callable[..., Report], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("AGENT_LS_STATE_DIR", str(tmp_path / "file"))
    with pytest.raises(UsageError, match="can't be used"):
        fix(GIVE_UP)


def test_a_wrong_setting_that_shows_late_loses_nothing(fix: Callable[..., Report], repo: Path) -> None:
    report = fix(replace(BAD_LINE, HALF), UsageError("the prompt can't be rendered"))
    assert (report.verdict, report.data["stop_reason"]) == (Verdict.HANDED_OVER, "usage")
    assert git(repo, "rev-parse", BRANCH).strip() == report.data["commit"]


def test_thousands_of_calls_in_one_answer_are_cut(fix: Callable[..., Report]) -> None:
    calls = [call("search", query=f"word{n}") for n in range(3000)]
    report = fix(calls, GIVE_UP, settings=evolve(SETTINGS, limits=evolve(Limits(), max_steps=5)))
    assert report.verdict is Verdict.HANDED_OVER
    assert report.data["usage"]["tool_calls"] <= 100


@pytest.mark.parametrize(("meanwhile", "goes"), [("nothing", True), *((what, False) for what in MEANWHILE)])
def test_clean_deletes_a_branch_only_when_asked_and_as_it_was_left(
    fix: Callable[..., Report], repo: Path, meanwhile: str, goes: bool
) -> None:
    report = fix(FIX, DONE).data
    before = git(repo, "rev-parse", "main").strip()
    for command in MEANWHILE.get(meanwhile, ()):
        git(repo, *command)
    refs = git(repo, "for-each-ref", "refs/heads/")
    done = history.clean(report["session"], branches=True)
    assert done.sessions == (report["session"],)
    if goes:
        assert dict(done.deleted) == {BRANCH: report["commit"]}
        assert git(repo, "branch", "--list", BRANCH) == ""
    else:
        assert not done.deleted
        assert git(repo, "for-each-ref", "refs/heads/") == refs
    assert git(repo, "rev-parse", "main").strip() == before

"""The hand-over: what a person gets to go on from, and no advice that can't help."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent_kit import BAD_LINE, BUGGY, FAILING, Scripted, call, make_repo, replace
from attrs import evolve

from agent_ls.agent import api
from agent_ls.agent.handover import Advice, resumable
from agent_ls.cancel import CancelToken
from agent_ls.cli.story import Story
from agent_ls.events import Event
from agent_ls.settings import Settings
from agent_ls.task import Task
from agent_ls.testing.results import Outcome, TestResult
from agent_ls.verdict import Verdict

PASSING = BUGGY | {"tests/test_cart.py": BUGGY["tests/test_cart.py"].split("def test_discount")[0]}


class Stand:
    """As much of a session as advice asks for."""

    def __init__(self, model: str) -> None:
        self.settings = Settings(model=model)
        self.id = "s1"


FAILED = [TestResult("t.py::test_a", Outcome.FAILED, message="E   assert 1 == 2")]


@pytest.mark.parametrize(
    ("verdict", "reason", "model", "says", "never"),
    [
        ("handed_over", "nothing_fails", "repair", ["Write a test", "--model"], ["resume"]),
        ("handed_over", "nothing_fails", "openai:x", ["Write a test"], ["resume", "--model"]),
        ("handed_over", "no_progress", "repair", ["resume s1 --model"], ["best state"]),
        ("handed_over", "same_failure", "openai:x", ["from the best state with `agent-ls resume s1`"], []),
        ("handed_over", "tests_contradict", "openai:x", ["Correct the tests or the task"], ["resume"]),
        ("handed_over", "question", "openai:x", ["answer into the task"], ["resume"]),
        ("handed_over", "review", "openai:x", ["git merge agent-ls/x"], ["resume"]),
        ("handed_over", "permission", "openai:x", ["resume s1 --permission fix"], ["--model"]),
        ("budget", "max_steps", "openai:x", ["resume s1 --max-steps N"], []),
        ("budget", "timeout", "repair", ["resume s1 --timeout N"], []),
        ("cancelled", "cancelled", "repair", ["resume s1"], []),
        ("blocked", "guard", "openai:x", ["what was refused"], ["resume"]),
        ("env_broken", "env_broken", "openai:x", [], ["resume", "show"]),
        ("fixed", "proven", "openai:x", [], ["resume", "show"]),
    ],
)
def test_advice_that_can_help(
    verdict: str, reason: str, model: str, says: list[str], never: list[str]
) -> None:
    advice = Advice.of(
        Stand(model),  # type: ignore[arg-type]
        Verdict(verdict),
        reason,
        FAILED,
        "`a.py:3` in `f`",
        {"branch": "agent-ls/x"},
    )
    text = "\n".join(advice.steps)
    assert all(part in text for part in says), text
    assert not any(part in text for part in never), text
    if reason in ("no_progress", "same_failure", "max_steps"):
        assert "t.py::test_a" in advice.question
        assert "assert 1 == 2" in advice.question
        assert "`a.py:3` in `f`" in advice.question
    assert resumable(Verdict(verdict), reason) is not any(
        reason == name
        for name in ("nothing_fails", "tests_contradict", "question", "review", "guard", "proven")
    )


def test_when_nothing_fails_the_way_on_is_a_test(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", PASSING)
    report = api.fix(repo, Task("Discount is wrong"), Settings(), cancel=CancelToken()).data
    assert report["stop_reason"] == "nothing_fails"
    assert report["resumable"] is False
    assert "Write a test that fails" in report["summary"]
    assert "resume" not in report["summary"]
    assert "README" not in report["summary"]


def test_a_person_can_go_on_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Scripted(
        replace(BAD_LINE, "    return amount - 3 * discount"),
        replace("    return amount - 3 * discount", "    return max(0, amount - discount)"),
        call("finish", outcome="give_up", summary="Percent or amount?"),
    )
    monkeypatch.setattr("agent_ls.models.create", lambda settings: script)
    settings = evolve(Settings(), model="openai:scripted")
    task = Task("Discount is wrong", number=7)
    report = api.fix(make_repo(tmp_path / "repo"), task, settings, cancel=CancelToken()).data
    summary = report["summary"]
    assert f"`{FAILING[0]}`: assert 190 == 180" in summary  # failing tests, each with its first error
    assert "   +    return amount - 3 * discount\n" in summary  # attempts
    assert "Ruled out: this edit of shop/cart.py:total changes the error, not the outcome." in summary
    assert "1 of 2 asked tests fixed" in summary
    assert "Most likely places:\n\n- `shop/cart.py:" in summary
    assert f"Question to you: Is what `{FAILING[0]}` expects (assert 190 == 180) right?" in summary
    assert "The best state so far is on the branch `agent-ls/issue-7-discount-is-wrong`" in summary
    assert f"agent-ls resume {report['session']}" in summary
    assert "Percent or amount?" in summary


FINDING = {"kind": "k", "severity": "review", "path": "a.py", "line": 1, "message": "changed"}


@pytest.mark.parametrize(
    ("kind", "data", "lines"),
    [
        (
            "behaviour",
            {
                "tree": "t",
                "layer": "partly",
                "findings": [FINDING],
                "not_checked": [{"what": "test_a", "why": "the time limit"}],
                "equal": ["a.py::test_b"],
                "mutants": 3,
                "runs": 4,
            },
            ["review: a.py:1: changed", "(partly): 1 as strong", "not checked: test_a: the time limit"],
        ),
        (
            "put_back",
            {"tree": "t", "paths": ["a.py"], "kept": [], "findings": []},
            ["put back as it was: a.py"],
        ),
        ("contradiction", {"claims": [{"test": "a.py::test_a"}], "problems": []}, ["a.py::test_a"]),
        ("contradiction", {"claims": [], "problems": ["no test"]}, ["not accepted: no test"]),
    ],
)
def test_what_the_guard_did_is_in_the_story(kind: str, data: dict[str, object], lines: list[str]) -> None:
    told = [line.plain for line in Story(verbose=True).read(Event(0, 0.0, kind, data))]
    assert len(told) == len(lines)
    assert all(part in line for part, line in zip(lines, told, strict=True))

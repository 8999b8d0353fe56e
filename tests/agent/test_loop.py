"""The whole way of a task with a scripted model: real git, real test runs, real sandbox."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_kit import (
    BAD_LINE,
    BUGGY,
    FAILING,
    GOOD_LINE,
    Recorder,
    Scripted,
    call,
    git,
    make_repo,
    replace,
)
from attrs import evolve

from agent_ls import models
from agent_ls.agent import api, history
from agent_ls.agent.report import Report
from agent_ls.cancel import CancelToken
from agent_ls.errors import ProviderError, UsageError
from agent_ls.models.protocol import MalformedToolCall, ModelEvent, Request, Retrying
from agent_ls.settings import Limits, Settings
from agent_ls.task import Task
from agent_ls.verdict import Verdict

REAL_CREATE = models.create
TASK = Task("Discount is wrong", "A discount is in percent.", "test", number=7)
SETTINGS = Settings(model="openai:scripted")
FIX = replace(BAD_LINE, GOOD_LINE)
DONE = call("finish", outcome="fixed", summary="The discount was taken as an amount.")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo")


class Run:
    """Runs one task with a script and keeps what came of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, repo: Path) -> None:
        self.repo = repo
        self.events = Recorder()
        self.cancel = CancelToken()
        self.answers: list[str | None] = []
        self.monkeypatch = monkeypatch

    def __call__(
        self, model: Scripted, task: Task = TASK, settings: Settings = SETTINGS, **limits: Any
    ) -> Report:
        self.monkeypatch.setattr("agent_ls.models.create", lambda settings: model)
        if limits:
            settings = evolve(settings, limits=evolve(Limits(), **limits))
        return api.fix(
            self.repo,
            task,
            settings,
            cancel=self.cancel,
            on_event=self.events,
            ask=lambda question: self.answers.pop(0) if self.answers else None,
        )


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, repo: Path) -> Run:
    return Run(monkeypatch, repo)


def test_wrong_edit_then_right_edit_is_fixed_on_a_branch(run: Run) -> None:
    before = git(run.repo, "status", "--porcelain", "-b"), git(run.repo, "rev-parse", "HEAD")
    model = Scripted(
        call("read", path="shop/cart.py"),
        replace(BAD_LINE, "    return amount - discount / 100"),
        replace("    return amount - discount / 100", GOOD_LINE),
        DONE,
    )
    report = run(model)
    data = report.to_json()
    assert report.verdict is Verdict.FIXED, data["summary"]
    assert data["exit_code"] == 0
    assert set(data["tests"]["fixed"]) == set(FAILING)
    assert data["tests"]["baseline"] == {"passed": 2, "failed": 2, "errors": 0, "skipped": 0}
    assert data["tests"]["final"] == {"passed": 4, "failed": 0, "errors": 0, "skipped": 0}
    assert data["branch"] == "agent-ls/issue-7-discount-is-wrong"
    assert GOOD_LINE in git(run.repo, "show", f"{data['branch']}:shop/cart.py")
    assert git(run.repo, "rev-list", "--count", f"HEAD..{data['branch']}").strip() == "1"
    assert "Fix #7" in git(run.repo, "log", "-1", "--format=%B", data["branch"])
    assert (git(run.repo, "status", "--porcelain", "-b"), git(run.repo, "rev-parse", "HEAD")) == before
    assert git(run.repo, "worktree", "list").count("\n") == 1
    assert data["usage"]["model_calls"] == 4
    assert data["usage"]["cost_usd"] == pytest.approx(0.004)
    json.dumps(data)


def test_an_edit_of_an_existing_test_is_refused_and_the_fix_still_comes(run: Run) -> None:
    model = Scripted(replace("== 180", "== 190", "tests/test_cart.py"), FIX, DONE)
    report = run(model)
    assert report.verdict is Verdict.FIXED
    refused = run.events.of("observation")[0]
    assert refused["is_error"]
    assert "tests" in refused["text"]
    assert report.data["files_changed"] == ["shop/cart.py"]


@pytest.mark.parametrize("path", ["conftest.py", "tests/conftest.py", "sitecustomize.py", "pytest.ini"])
def test_rules_of_the_test_run_can_not_be_added(run: Run, path: str) -> None:
    model = Scripted(
        call("edit", edits=[{"path": path, "create": "x = 1\n"}]),
        call("finish", outcome="give_up", summary="no"),
    )
    report = run(model)
    assert run.events.of("observation")[0]["is_error"]
    assert report.verdict is Verdict.HANDED_OVER
    assert report.data["branch"] is None


def test_no_progress_hands_over_with_what_was_tried(run: Run) -> None:
    lines = [BAD_LINE, *(f"    return amount - {n} - discount" for n in (3, 4, 5, 6))]
    model = Scripted(*(replace(old, new) for old, new in itertools.pairwise(lines)))
    report = run(model)
    assert report.verdict is Verdict.HANDED_OVER
    assert report.data["stop_reason"] == "no_progress"
    assert len(run.events.of("attempt")) == 3
    assert report.data["branch"] is None  # nothing got further than the untouched tree
    assert "test_discount" in report.data["summary"]
    assert all(attempt["diff"] for attempt in run.events.of("attempt"))
    for new in lines[1:4]:  # each attempt's change is shown, and what it taught
        assert f"   +{new}\n" in report.data["summary"]
    assert report.data["summary"].count("   +++ b/shop/cart.py") == 3
    assert run.events.of("attempt")[0]["taught"] in report.data["summary"]


def test_undoing_an_edit_and_testing_again_hands_over(run: Run) -> None:
    worse = "    return amount"
    report = run(Scripted(replace(BAD_LINE, worse), replace(worse, BAD_LINE)), max_failures=9)
    assert report.verdict is Verdict.HANDED_OVER
    assert report.data["stop_reason"] == "repeated_state"
    assert report.data["commit"] is None or report.data["branch"]


def test_the_same_call_three_times_hands_over(run: Run) -> None:
    report = run(Scripted(call("read", path="shop/cart.py")))
    assert report.data["stop_reason"] == "repeated_call"
    assert report.data["branch"] is None
    assert git(run.repo, "branch", "--list", "agent-ls/*") == ""


def test_a_regression_is_never_fixed(run: Run) -> None:
    special = "    return 180 if discount == 10 else 0"
    report = run(Scripted(replace(BAD_LINE, special), DONE), max_failures=2)
    assert report.verdict is Verdict.HANDED_OVER
    assert report.data["tests"]["regressed"] == ["tests/test_cart.py::test_plain"]
    assert report.data["commit"]
    assert "Not verified" in git(run.repo, "log", "-1", "--format=%s", report.data["branch"])


class Unsteady(Scripted):
    """A server that fails and is asked again, as the backends do it."""

    def stream(self, request: Request, cancel: CancelToken) -> Iterator[ModelEvent]:
        yield Retrying("overloaded", 1, 3600.0)
        raise AssertionError("waited")


def test_the_time_limit_is_felt_in_the_waits_between_attempts(run: Run) -> None:
    report = run(Unsteady("x"), timeout=60.0)
    assert (report.verdict, report.data["stop_reason"]) == (Verdict.BUDGET, "timeout")
    assert "overloaded" in report.data["summary"]


def test_saying_fixed_does_not_make_it_so(run: Run) -> None:
    report = run(Scripted(DONE))
    assert report.verdict is Verdict.HANDED_OVER
    assert report.data["branch"] is None


def test_limits_end_in_a_report(run: Run) -> None:
    report = run(Scripted(*(call("search", query=f"word{n}") for n in range(9))), max_steps=3)
    assert report.verdict is Verdict.BUDGET
    assert report.data["stop_reason"] == "max_steps"
    assert report.data["usage"]["model_calls"] == 3


def test_money_is_a_limit(run: Run) -> None:
    report = run(Scripted(*(call("search", query=f"word{n}") for n in range(9))), max_cost=0.0025)
    assert (report.verdict, report.data["stop_reason"]) == (Verdict.BUDGET, "max_cost")


def test_proof_before_a_limit_stays_a_proof(run: Run) -> None:
    report = run(Scripted(FIX, DONE), max_steps=1)
    assert report.verdict is Verdict.FIXED


def test_contradiction_is_an_honest_way_out(run: Run) -> None:
    model = Scripted(
        call(
            "finish",
            outcome="tests_contradict",
            summary="percent or amount?",
            contradictions=[
                {
                    "test": FAILING[0],
                    "lines": "assert total([100, 100], 10) == 180",
                    "against": "a discount is in percent",
                }
            ],
        )
    )
    report = run(model)
    assert report.verdict is Verdict.HANDED_OVER
    assert report.data["stop_reason"] == "tests_contradict"
    assert "percent or amount?" in report.data["summary"]


def test_a_question_goes_to_the_person_and_the_answer_back(run: Run) -> None:
    run.answers = ["percent"]
    model = Scripted(call("ask_human", question="percent or amount?"), FIX, DONE)
    assert run(model).verdict is Verdict.FIXED
    assert run.events.of("answer")[0]["text"] == "percent"
    assert "percent" in run.events.of("observation")[0]["text"]


def test_no_answer_hands_over_with_the_question(run: Run) -> None:
    report = run(Scripted(call("ask_human", question="percent or amount?")))
    assert report.data["stop_reason"] == "question"
    assert "percent or amount?" in report.data["summary"]


def test_provider_error_is_its_own_verdict(run: Run) -> None:
    report = run(Scripted(ProviderError("the model is gone", "try later")))
    assert (report.verdict, report.data["exit_code"]) == (Verdict.PROVIDER_ERROR, 7)


def test_malformed_calls_are_not_carried_out(run: Run) -> None:
    bad = MalformedToolCall("edit", '{"edits": [{"path": "shop/cart.py", "old"', "cut off")
    report = run(Scripted(bad))
    assert report.data["stop_reason"] == "no_tool_calls"
    assert not run.events.of("tool_call")
    assert "cut off" in " ".join(reply["malformed"][0]["error"] for reply in run.events.of("model_reply"))


@pytest.mark.parametrize("answer", ["", "I fixed it!", "x" * 300_000, "\x00\ufffd"], ids=len)
def test_an_answer_without_a_call_is_nudged_then_handed_over(run: Run, answer: str) -> None:
    report = run(Scripted(answer))
    assert report.data["stop_reason"] == "no_tool_calls"
    assert report.data["branch"] is None


@pytest.mark.parametrize(
    "path",
    ["../outside.py", "/etc/passwd", ".git/config", ".GIT/hooks/pre-commit", ".agent-ls/config.toml", ".env"],
)
def test_paths_outside_are_refused(run: Run, path: str) -> None:
    model = Scripted(
        call("edit", edits=[{"path": path, "create": "x = 1\n"}]),
        call("finish", outcome="give_up", summary="no"),
    )
    assert run(model).data["branch"] is None
    assert run.events.of("observation")[0]["is_error"]
    assert not (run.repo.parent / "outside.py").exists()


def test_cancel_in_the_middle_keeps_the_best_state_and_resumes(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = "    return amount - amount * discount / 100 - (discount == 100)"
    model = Scripted(replace(BAD_LINE, half), lambda: run.cancel.cancel())
    report = run(model)
    assert (report.verdict, report.data["exit_code"]) == (Verdict.CANCELLED, 130)
    assert report.data["tests"]["fixed"] == [FAILING[0]]
    monkeypatch.setattr("agent_ls.models.create", lambda settings: Scripted(replace(half, GOOD_LINE), DONE))
    again = api.resume(report.data["session"], SETTINGS, cancel=CancelToken())
    assert again.verdict is Verdict.FIXED, again.data["summary"]
    assert again.data["branch"] == report.data["branch"]
    assert git(run.repo, "rev-list", "--count", f"HEAD..{again.data['branch']}").strip() == "1"


def test_uncommitted_work_is_seen_and_left_alone(run: Run) -> None:
    (run.repo / "tests/test_new.py").write_text(
        "from shop.cart import total\n\n\ndef test_n():\n    assert total([50], 50) == 25\n"
    )
    (run.repo / "shop/cart.py").write_text(BUGGY["shop/cart.py"].replace('"""A cart."""', '"""My cart."""'))
    report = run(Scripted(FIX, DONE))
    assert report.verdict is Verdict.FIXED
    assert "tests/test_new.py::test_n" in report.data["tests"]["fixed"]
    assert report.data["dirty"]
    assert '"""My cart."""' in (run.repo / "shop/cart.py").read_text()
    assert "My cart" not in report.data["diff"]
    assert git(run.repo, "status", "--porcelain").splitlines() == [" M shop/cart.py", "?? tests/test_new.py"]


ISSUE_ONLY = {**BUGGY, "tests/test_cart.py": BUGGY["tests/test_cart.py"].split("def test_discount")[0]}
NEW_TEST = "from shop.cart import total\n\n\ndef test_percent():\n    assert total([200], 10) == 180\n"


def test_without_a_failing_test_the_model_must_add_the_proof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(monkeypatch, make_repo(tmp_path / "r", ISSUE_ONLY))
    model = Scripted(
        FIX,
        DONE,
        call("edit", edits=[{"path": "tests/test_percent.py", "create": NEW_TEST}]),
        DONE,
    )
    report = run(model)
    assert report.verdict is Verdict.FIXED, report.data["summary"]
    assert report.data["tests"]["proven_by"] == ["tests/test_percent.py::test_percent"]
    assert any("nothing proves" in seen["text"] for seen in run.events.of("observation"))


def test_an_added_test_that_passes_anyway_is_no_proof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(monkeypatch, make_repo(tmp_path / "r", ISSUE_ONLY))
    idle = "def test_nothing():\n    assert True\n"
    model = Scripted(
        FIX, call("edit", edits=[{"path": "tests/test_idle.py", "create": idle}]), DONE, DONE, DONE
    )
    assert run(model).verdict is Verdict.HANDED_OVER


def test_nothing_fails_and_no_model_hands_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, make_repo(tmp_path / "r", ISSUE_ONLY))
    report = run(Scripted(DONE), settings=Settings())
    assert (report.verdict, report.data["stop_reason"]) == (Verdict.HANDED_OVER, "nothing_fails")


def test_broken_environment_forbids_edits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {**BUGGY, "tests/test_cart.py": "import no_such_module_anywhere\n" + BUGGY["tests/test_cart.py"]}
    run = Run(monkeypatch, make_repo(tmp_path / "r", files))
    model = Scripted(FIX, DONE)
    report = run(model)
    assert (report.verdict, report.data["exit_code"]) == (Verdict.ENV_BROKEN, 6)
    assert "no_such_module_anywhere" in report.data["summary"]
    assert not model.requests
    assert report.data["branch"] is None


def test_unknown_test_is_a_usage_error_without_a_trace(run: Run, isolated: Path) -> None:
    with pytest.raises(UsageError, match="test_discont"):
        run(Scripted(DONE), evolve(TASK, tests=("tests/test_cart.py::test_discont",)))
    assert git(run.repo, "branch", "--list", "agent-ls/*") == ""
    assert not list((isolated / "sessions").iterdir())


def test_a_recorded_session_replays_and_a_difference_is_named(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(Scripted(call("read", path="shop/cart.py"), FIX, DONE))
    events = next(info.events_path for info in history.sessions() if info.id == first.data["session"])
    monkeypatch.setattr("agent_ls.models.create", REAL_CREATE)
    settings = evolve(SETTINGS, model=f"replay:{events}")
    again = api.fix(make_repo(tmp_path / "again"), TASK, settings, cancel=CancelToken())
    assert again.verdict is Verdict.FIXED, again.data["summary"]
    assert again.data["diff"] == first.data["diff"]
    changed = {**BUGGY, "shop/cart.py": BUGGY["shop/cart.py"].replace("A cart", "Another cart")}
    other = api.fix(make_repo(tmp_path / "other", changed), TASK, settings, cancel=CancelToken())
    assert other.verdict is Verdict.PROVIDER_ERROR
    assert "Another cart" in other.data["summary"]


def test_a_skipped_test_of_a_named_file_is_not_asked_for(run: Run) -> None:
    path = run.repo / "tests/test_cart.py"
    path.write_text(
        "import pytest\n"
        + BUGGY["tests/test_cart.py"]
        + '\n\n@pytest.mark.skip(reason="slow")\ndef test_slow():\n    assert 0\n'
    )
    report = run(Scripted(FIX, DONE), evolve(TASK, tests=("tests/test_cart.py",)))
    assert report.verdict is Verdict.FIXED, report.data["summary"]
    assert report.data["tests"]["final"]["skipped"] == 1


def test_a_skipped_test_named_itself_must_pass(run: Run) -> None:
    path = run.repo / "tests/test_cart.py"
    path.write_text(
        "import pytest\n"
        + BUGGY["tests/test_cart.py"]
        + '\n\n@pytest.mark.skip(reason="slow")\ndef test_slow():\n    assert 0\n'
    )
    asked = (*FAILING, "tests/test_cart.py::test_slow")
    report = run(Scripted(FIX, DONE), evolve(TASK, tests=asked), max_failures=1)
    assert report.verdict is Verdict.HANDED_OVER

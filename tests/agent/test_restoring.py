"""What the guard refuses goes back as it was, byte for byte; rules hold by content in a real session."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agent_kit import BUGGY, make_repo
from attrs import evolve

from agent_ls.agent import api
from agent_ls.agent.checking import check_session
from agent_ls.agent.contradiction import check_claims
from agent_ls.agent.judgement import Judgement
from agent_ls.agent.refusing import refuse
from agent_ls.agent.restoring import put_back
from agent_ls.agent.session import Session
from agent_ls.cancel import CancelToken
from agent_ls.events import read_events
from agent_ls.settings import Settings
from agent_ls.testing.results import Comparison, Outcome, TestResult, TestRun
from agent_ls.toolbox.base import Claim

FILES = BUGGY | {
    "run.sh": "#!/bin/sh\n",
    "data/a.txt": "a\n",
    "conftest.py": 'pytest_plugins = ["shop.rules"]\n',
    "shop/rules.py": "def pytest_collection_modifyitems(items):\n    pass\n",
    "checks/cart.py": "def check_cart():\n    assert 1\n",
}


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    repo = make_repo(tmp_path / "repo", FILES)
    with api._temporary(repo, Settings(tests="edit"), CancelToken()) as session:
        (session.worktree.path / "run.sh").chmod(0o755)
        (session.worktree.path / "link").symlink_to("data/a.txt")
        session.base_tree = session.worktree.write_tree()
        yield session


def _replace_by_folder(root: Path) -> None:
    (root / "run.sh").unlink()
    (root / "run.sh").mkdir()
    (root / "run.sh" / "x").write_text("x")


def _replace_by_file(root: Path) -> None:
    shutil.rmtree(root / "data")
    (root / "data").write_text("no folder")


CHANGES: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "content": (lambda root: (root / "data/a.txt").write_text("b"), ["data/a.txt"]),
    "mode": (lambda root: (root / "run.sh").chmod(0o644), ["run.sh"]),
    "deleted": (lambda root: (root / "data/a.txt").unlink(), ["data/a.txt"]),
    "added": (lambda root: (root / "data/b.txt").write_text("b"), ["data/b.txt"]),
    "a folder in its place": (_replace_by_folder, ["run.sh", "run.sh/x"]),
    "a file in place of its folder": (_replace_by_file, ["data", "data/a.txt"]),
    "a link made a file": (lambda root: _as_file(root / "link"), ["link"]),
}


def _as_file(path: Path) -> None:
    path.unlink()
    path.write_text("a\n")


@pytest.mark.parametrize("name", CHANGES)
def test_put_back_makes_it_what_it_was(session: Session, name: str) -> None:
    change, paths = CHANGES[name]
    change(session.worktree.path)
    changed = session.worktree.write_tree()
    assert changed != session.base_tree
    put_back(session, session.base_tree, paths)
    assert session.worktree.write_tree() == session.base_tree
    put_back(session, changed, paths)
    assert session.worktree.write_tree() == changed
    assert os.path.lexists(session.worktree.path / "shop/cart.py")


def _judged(session: Session) -> Judgement:
    tree = session.worktree.write_tree()
    return Judgement(tree, "full", False, False, Comparison(), {}, check_session(session, tree))


def test_what_is_refused_goes_and_the_rest_stays(session: Session) -> None:
    root = session.worktree.path
    tests = root / "tests/test_cart.py"
    tests.write_text(tests.read_text().replace("== 180", "is not None"))
    (root / "shop/cart.py").write_text(FILES["shop/cart.py"].replace("amount - discount", "amount * 2"))
    (root / "tests/test_more.py").write_text("def test_more():\n    assert 1 + 1 == 2\n")
    judgement = _judged(session)
    assert judgement.blocked
    refused = refuse(session, judgement)
    assert refused.paths == ("tests/test_cart.py",)
    assert refused.kept == ("shop/cart.py", "tests/test_more.py")
    assert tests.read_text() == FILES["tests/test_cart.py"]
    assert "amount * 2" in (root / "shop/cart.py").read_text()
    events = [event for event in read_events(session.log.path) if event.kind == "put_back"]
    assert events[0].data["tree"] == session.worktree.write_tree()
    assert not _judged(session).blocked


def test_a_finding_for_a_file_that_did_not_change_puts_the_tests_back(session: Session) -> None:
    root = session.worktree.path
    tests = root / "tests/test_cart.py"
    tests.write_text(tests.read_text().replace("== 180", "is not None"))
    (root / "shop/cart.py").write_text(FILES["shop/cart.py"].replace("amount - discount", "amount * 2"))
    judgement = _judged(session)
    elsewhere = tuple(evolve(finding, path="data/a.txt") for finding in judgement.findings)
    refused = refuse(session, evolve(judgement, findings=elsewhere))
    assert refused.paths == ("tests/test_cart.py",)
    assert refused.kept == ("shop/cart.py",)


@pytest.mark.parametrize(
    ("path", "edit", "severity"),
    [
        ("shop/rules.py", "x = 1\n", "block"),
        ("checks/cart.py", "def check_cart():\n    assert True\n", "block"),
        ("conftest.py", "", "block"),
        ("tests/test_cart.py", FILES["tests/test_cart.py"] + "# more\n", "block"),
        ("data/a.txt", "b\n", ""),
    ],
)
def test_rules_by_name_and_by_content(session: Session, path: str, edit: str, severity: str) -> None:
    """With tests = "add": what is refused at the edit is a finding as well, however it was done."""
    session.settings = evolve(session.settings, tests="add")
    found = (TestResult("checks/cart.py::check_cart", Outcome.PASSED, file="checks/cart.py"),)
    session.baseline = TestRun(("pytest",), "passed", found, "pytest")
    assert (session.protected(path) is not None) == bool(severity)
    (session.worktree.path / path).write_text(edit)
    findings = _judged(session).findings
    assert {finding.severity for finding in findings if finding.path == path} == (
        {severity} if severity else set()
    )
    assert len({(finding.path, finding.line, finding.kind) for finding in findings}) == len(findings)


@pytest.mark.parametrize(
    ("path", "severity"),
    [
        (".github/workflows/ci.yml", "block"),
        (".gitlab-ci.yml", "block"),
        ("poetry.lock", "block"),
        ("tests/test_new.py", ""),
        ("tests/test_cart.py", ""),
    ],
)
def test_leave_to_edit_tests_has_an_end(session: Session, path: str, severity: str) -> None:
    assert (session.protected(path) is not None) == bool(severity)
    target = session.worktree.path / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text((FILES.get(path, "")) + "# x\n")
    findings = _judged(session).findings
    assert {finding.severity for finding in findings} == ({severity} if severity else set()), findings


CLAIM = Claim("tests/test_cart.py::test_discount", "assert total([100, 100], 10) == 180", "an amount")


@pytest.mark.parametrize(
    ("claims", "problem", "source"),
    [
        ([CLAIM], "", ""),
        ([evolve(CLAIM, test="tests/test_cart.py")], "", ""),
        ([evolve(CLAIM, against="assert total([10], 100)  ==  0")], "", "tests/test_cart.py"),
        ([evolve(CLAIM, against="temporary")], "", "the task"),
        ([evolve(CLAIM, lines="def test_discount():\n\n  assert total([100, 100], 10) == 180")], "", ""),
        ([], "empty", ""),
        ([evolve(CLAIM, test="tests/test_cart.py::test_discont")], "no test", ""),
        ([evolve(CLAIM, lines="assert total([100, 100], 10) == 190")], "not in tests/test_cart.py", ""),
        ([evolve(CLAIM, lines=" ")], "lines is empty", ""),
        ([evolve(CLAIM, against="\n")], "against is empty", ""),
        ([evolve(CLAIM, against="assert  total([100, 100], 10) == 180")], "repeats", ""),
    ],
)
def test_claims_are_checked(session: Session, claims: list[Claim], problem: str, source: str) -> None:
    found = (TestResult(CLAIM.test, Outcome.FAILED, file="tests/test_cart.py"),)
    session.baseline = TestRun(("pytest",), "failed", found, "pytest")
    checked, problems = check_claims(session, claims)
    if problem:
        assert problem in problems[0]
    else:
        assert problems == []
        assert checked[0].source == source
        assert checked[0].line is not None
        assert "assert total([100, 100], 10) == 180" in checked[0].lines
    event = list(read_events(session.log.path))[-1]
    assert event.kind == "contradiction"
    assert event.data["problems"] == problems

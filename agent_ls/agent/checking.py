"""What the guard says about the change of a session: the static review, and the rules of the session."""

from __future__ import annotations

from collections.abc import Iterable

from agent_ls.agent.answers import answers_alone
from agent_ls.agent.protection import is_doctest, lost_examples
from agent_ls.agent.session import Session
from agent_ls.errors import AgentLsError
from agent_ls.guard.api_surface import review_api
from agent_ls.guard.conduct import new_signs, new_success_exit
from agent_ls.guard.protected import Finding, check_change
from agent_ls.guard.trees import GitTree
from agent_ls.testing.ids import file_of
from agent_ls.workspace.git import split_z
from agent_ls.workspace.paths import is_test_path

_ORDER = {"block": 0, "review": 1, "info": 2}
_ALIKE = {
    "source-knows-the-test-runner": "test-run-detected",
    "source-names-a-test": "test-run-detected",
    "source-searches-the-process": "test-run-detected",
}
"""Kinds of which one finding a line is enough."""


def check_session(session: Session, tree: str) -> tuple[Finding, ...]:
    """Findings for the change from the session's base to `tree`, the blocking ones first, each once."""
    worktree, base = session.worktree, session.base_tree
    touched: list[tuple[str, str]] = []
    for change in worktree.changed_files(base, tree):
        touched.append((change.path, change.status))
        if change.old_path is not None:  # gone from where it was: the name it had counts too
            touched.append((change.old_path, "moved away"))
    if not touched:
        return ()
    findings = check_change(
        touched, lambda path: worktree.read_blob(base, path), session.settings.tests, session.base_has
    )
    if session.settings.permission == "refactor":
        findings += _interface(session, tree, {path for path, _ in touched})
    for path, status in touched:
        gone = status in ("moved away", "deleted")
        findings += _protected_content(session, path, status)
        if status != "added":
            findings += _documented(session, tree, path)
        if status in ("modified", "deleted", "moved away", "typechange") and not path.endswith(".py"):
            findings += _expected_data(session, path)
        if not gone and _by_exit_code(session):
            findings += _success_exit(session, tree, path)
        if status != "moved away" and path.endswith((".py", ".pyi", ".pyx")):
            findings += _conduct(session, tree, path)
            findings += _answers(session, tree, path, status)
    return merged(findings, _static(session, tree, touched[0][0]))


def merged(*groups: Iterable[Finding]) -> tuple[Finding, ...]:
    """All findings, the severest first, one for each place and kind (or kinds that say the same)."""
    found = sorted((f for group in groups for f in group), key=lambda f: _ORDER[f.severity])
    unique: dict[tuple[str, int, str], Finding] = {}
    for finding in found:
        unique.setdefault((finding.path, finding.line, _ALIKE.get(finding.kind, finding.kind)), finding)
    return tuple(unique.values())


def _static(session: Session, tree: str, path: str) -> list[Finding]:
    from agent_ls.guard.review import review

    try:
        return review(session.base_view, GitTree(session.repo, tree))
    except AgentLsError:
        raise
    except Exception as error:  # a fault of the guard's is no clean bill
        session.note(f"the guard could not read the change: {type(error).__name__}: {error}", "warning")
        return [Finding("not-checked", "review", path, 1, "the guard could not read this change")]


def _protected_content(session: Session, path: str, status: str) -> list[Finding]:
    reason = session.protected_content(path)
    if reason is None or is_test_path(path):
        return []
    return [Finding("protected-file-changed", "block", path, 1, f"{path} was {status}, but {reason}")]


def _documented(session: Session, tree: str, path: str) -> list[Finding]:
    """Doctests that the suite runs and that the change took away or made expect something else."""
    known = session.baseline.tests if session.baseline is not None else ()
    if not any(test.file == path and is_doctest(test.id) for test in known):
        return []
    before = session.worktree.read_blob(session.base_tree, path)
    lost = lost_examples(before or b"", session.worktree.read_blob(tree, path))
    if not lost:
        return []
    line, source = lost[0]
    message = (
        f"{len(lost)} documented examples, which are tests, are gone or expect something else: {source[:80]}"
    )
    return [Finding("doctest-changed", "review", path, line, message, before=source[:200])]


def _answers(session: Session, tree: str, path: str, status: str) -> list[Finding]:
    """Branches for the values of the failing tests alone."""
    if is_test_path(path) or status == "added" or session.baseline is None:
        return []
    known = session.baseline.by_id()
    tests: dict[str, str] = {}
    for id in session.asked:
        test = known.get(id)
        if test is not None and test.outcome.bad and test.file and "::" in id:
            tests[id.partition("[")[0]] = test.file
    before, after = session.base_view.read(path), session.worktree.read_blob(tree, path)
    if not tests or before is None or after is None:
        return []
    texts = [(label, session.base_view.read(file) or b"") for label, file in tests.items()]
    return answers_alone(path, before, after, texts)


def _interface(session: Session, tree: str, paths: set[str]) -> list[Finding]:
    """A refactoring leaves the public interface as it is."""
    before, after = (GitTree(session.repo, name) for name in (session.base_tree, tree))
    return [f for f in review_api(before, after, paths) if f.severity != "info"]


def _conduct(session: Session, tree: str, path: str) -> list[Finding]:
    name = path.rpartition("/")[2]
    if is_test_path(path) and name != "__init__.py":
        return []
    after = session.worktree.read_blob(tree, path)
    if after is None:
        return []
    if is_test_path(path):
        if session.settings.tests == "edit" or not after.strip():
            return []
        message = f"{path} is new and not empty: it runs before the tests in its folder"
        return [Finding("protected-file-changed", "block", path, 1, message)]
    before = session.worktree.read_blob(session.base_tree, path)
    signs = new_signs(before, after, tests=_names(session), mentions=lambda word: _mentions(session, word))
    lines = after.decode("utf-8", "replace").splitlines()
    return [
        Finding(
            sign.kind,
            sign.severity,
            path,
            sign.line,
            sign.message,
            after=lines[sign.line - 1].strip()[:200] if sign.line <= len(lines) else "",
        )
        for sign in signs
    ]


def _by_exit_code(session: Session) -> bool:
    return session.baseline is not None and session.baseline.source == "exit-code"


def _success_exit(session: Session, tree: str, path: str) -> list[Finding]:
    after = session.worktree.read_blob(tree, path)
    if after is None or is_test_path(path):
        return []
    line = new_success_exit(session.worktree.read_blob(session.base_tree, path), after)
    if line is None:
        return []
    message = "source newly ends the process with success, and the tests are judged by their exit code alone"
    return [Finding("source-ends-the-process", "block", path, line, message)]


def _expected_data(session: Session, path: str) -> list[Finding]:
    """A data file that tests name: it may hold what they expect."""
    name = path.rpartition("/")[2]
    if is_test_path(path) or not any(is_test_path(found) for found in _grep(session, name)):
        return []
    message = f"{path} was changed, and tests name it: it may hold what they expect"
    return [Finding("expected-data-changed", "review", path, 1, message)]


def _names(session: Session) -> frozenset[str]:
    """The names of the test functions that the baseline knows."""
    known = session.baseline.tests if session.baseline is not None else ()
    names = (test.id.removeprefix(file_of(test.id)).partition("[")[0] for test in known)
    return frozenset(name.replace("::", ".").rpartition(".")[2] for name in names)


def _mentions(session: Session, word: str) -> bool:
    """Whether source of the base, other than tests, mentions the word: a project about tests may."""
    return any(not is_test_path(name) and name != "setup.py" for name in _grep(session, word, "-w"))


def _grep(session: Session, text: str, *options: str) -> list[str]:
    """The Python files of the base tree that hold a text."""
    base = session.base_tree
    raw = session.repo.git(
        "grep", "-l", "-z", "-F", *options, "-e", text, base, "--", ".", check=False, text=False
    )
    names = (name.removeprefix(f"{base}:") for name in split_z(raw.data))
    return [name for name in names if name.endswith(".py")]

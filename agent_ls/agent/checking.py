"""What the guard says about the change of a session: paths and contents, against the base tree."""

from __future__ import annotations

from agent_ls.agent.session import Session
from agent_ls.guard.api_surface import review_api
from agent_ls.guard.conduct import new_signs, new_success_exit
from agent_ls.guard.protected import Finding, check_change
from agent_ls.testing.ids import file_of
from agent_ls.workspace.git import split_z
from agent_ls.workspace.paths import is_test_path


def check_session(session: Session, tree: str) -> tuple[Finding, ...]:
    """Findings for the change from the session's base to `tree`, the blocking ones first."""
    worktree, base = session.worktree, session.base_tree
    touched: list[tuple[str, str]] = []
    for change in worktree.changed_files(base, tree):
        touched.append((change.path, change.status))
        if change.old_path is not None:  # gone from where it was: the name it had counts too
            touched.append((change.old_path, "moved away"))
    findings = check_change(
        touched, lambda path: worktree.read_blob(base, path), session.settings.tests, session.base_has
    )
    if session.settings.permission == "refactor":
        findings += _interface(session, tree, {path for path, _ in touched})
    for path, status in touched:
        if status in ("modified", "deleted", "moved away", "typechange") and not path.endswith(".py"):
            findings += _expected_data(session, path)
        if status not in ("moved away", "deleted") and _by_exit_code(session):
            findings += _success_exit(session, tree, path)
        if status != "moved away" and path.endswith((".py", ".pyi", ".pyx")):
            findings += _conduct(session, tree, path)
    return tuple(sorted(findings, key=lambda finding: finding.severity != "block"))


def _interface(session: Session, tree: str, paths: set[str]) -> list[Finding]:
    """A refactoring leaves the public interface as it is."""
    from agent_ls.guard.trees import GitTree

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

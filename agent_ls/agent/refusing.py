"""Puts back what the guard refuses and keeps the rest of the work."""

from __future__ import annotations

from attrs import frozen

from agent_ls.agent.checking import check_session
from agent_ls.agent.edited_tests import is_test_side
from agent_ls.agent.judgement import Judgement
from agent_ls.agent.restoring import put_back
from agent_ls.agent.session import Session
from agent_ls.guard.protected import Finding


@frozen
class Refused:
    """`paths` are as in the base again, `kept` are still changed."""

    paths: tuple[str, ...]
    kept: tuple[str, ...]


def refuse(session: Session, judgement: Judgement) -> Refused:
    """Put the files that the blocking findings name back as they were at the base; recorded as `put_back`.

    Where that does not clear the change (a finding names another file than the one that caused it), the whole
    tests' side goes back, and at last everything.
    """
    base = session.base_tree
    blocking = list(judgement.blocking)
    restored: set[str] = set()
    for step in ("named", "tests", "all"):
        changed = _changed(session)
        paths = {
            "named": changed & {finding.path for finding in blocking},
            "tests": {path for path in changed if is_test_side(path)},
            "all": changed,
        }[step]
        put_back(session, base, paths)
        restored |= paths
        tree = session.worktree.write_tree()
        blocking = [finding for finding in check_session(session, tree) if finding.severity == "block"]
        if not blocking:
            break
    kept = tuple(sorted(_changed(session)))
    session.progress.put_back(tree)
    session.log.append(
        "put_back",
        tree=tree,
        paths=sorted(restored),
        kept=list(kept),
        findings=[_short(finding) for finding in judgement.blocking],
    )
    return Refused(tuple(sorted(restored)), kept)


def _changed(session: Session) -> set[str]:
    changes = session.worktree.changed_files(session.base_tree, session.worktree.write_tree())
    return {path for change in changes for path in (change.path, change.old_path) if path is not None}


def _short(finding: Finding) -> dict[str, object]:
    return {"kind": finding.kind, "path": finding.path, "line": finding.line, "message": finding.message}

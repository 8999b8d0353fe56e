"""Which paths a session may not change, and what a finished change did to them.

Pure: decides from paths and from the two trees' contents, never from who made the change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

from attrs import asdict, frozen

from agent_ls.guard.shadows import BaseHas, reason_shadowing
from agent_ls.workspace.paths import is_secret_path, is_test_config, is_test_path

TestsPolicy = Literal["none", "add", "edit"]
ReadBlob = Callable[[str], bytes | None]


@frozen
class Finding:
    """One thing the change did to the tests or the rules (the public contract's finding object)."""

    kind: str
    severity: Literal["block", "review", "info"]
    path: str
    line: int
    message: str
    before: str = ""
    after: str = ""
    tests: tuple[str, ...] = ()

    @property
    def place_and_message(self) -> str:
        return self.message if self.path in self.message else f"{self.path}:{self.line}: {self.message}"

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "tests": list(self.tests)}


def reason_protected(
    path: str,
    *,
    exists_at_base: bool,
    policy: TestsPolicy,
    base_has: BaseHas = lambda path: False,
) -> str | None:
    """Why `path` may not be changed under `policy`; None if it may.

    Args:
        path: relative to the repository, forward slashes.
        exists_at_base: whether the base tree has a file there; new test files are allowed by "add".
        base_has: whether the base tree has a file or folder at a path, to see what a new file would hide.
    """
    if is_secret_path(path):
        return "it looks like a file with secrets"
    if path == ".agent-ls" or path.startswith(".agent-ls/"):
        return "it configures agent-ls itself"
    if policy == "edit":
        return None
    if is_test_config(path):
        return "it configures how tests are run or what is installed"
    if is_test_path(path):
        if policy == "none":
            return "this session may not touch tests"
        if exists_at_base:
            return 'existing tests may not be changed (tests = "add")'
    return None if exists_at_base else reason_shadowing(path, base_has)


def check_change(
    changes: Iterable[tuple[str, str]],
    read_base: ReadBlob,
    policy: TestsPolicy,
    base_has: BaseHas = lambda path: False,
) -> list[Finding]:
    """Findings for a finished change.

    Args:
        changes: (path, status) with a status "added", "modified", "deleted", "renamed" or "typechange".
        read_base: content of a path in the base tree, None if absent.
        base_has: as for `reason_protected`.
    """
    findings = []
    for path, status in changes:
        reason = reason_protected(
            path, exists_at_base=read_base(path) is not None, policy=policy, base_has=base_has
        )
        if reason is None:
            continue
        findings.append(
            Finding("protected-file-changed", "block", path, 1, f"{path} was {status}, but {reason}")
        )
    return findings

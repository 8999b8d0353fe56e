"""What a session may do to the tests: configured, or by what the task is about."""

from __future__ import annotations

import re

from attrs import frozen

from agent_ls.guard.protected import TestsPolicy
from agent_ls.settings import Settings
from agent_ls.task import Task

_CHANGE = (
    r"rename|rewrite|refactor|reorgani[sz]e|restructure|move|convert|migrate|port|parametri[sz]e|clean up"
    r"|tidy|simplify|split|merge|deduplicate|speed up|de-?flake|update|correct|moderni[sz]e|replace|remove"
    r"|delete|drop"
)
_TESTS = (
    r"(?:unit |integration |flaky |slow |old |existing |all |our |the |[\w/.]+'s )*"
    r"(?:tests?\b|test suite|test cases?|fixtures?\b)"
)
_ABOUT = (
    re.compile(rf"^(?:please )?(?:{_CHANGE})\b(?: \S+){{0,3}}? {_TESTS}", re.IGNORECASE),
    re.compile(r"^(?:tests?|test suite|testing)(?:\([^)]*\))?: ", re.IGNORECASE),
    re.compile(
        r"\bto (?:pytest|unittest|parametri[sz]ed? tests?|fixtures?)\b.*$|^flaky tests?\b", re.IGNORECASE
    ),
)


@frozen
class Policy:
    """`reason` says, for a person, why it is not the configured one; "" if it is."""

    name: TestsPolicy
    reason: str = ""


def is_about_tests(task: Task) -> bool:
    """Does the task's title ask for a change of the tests themselves?

    "Rename the tests of cart", "tests: use fixtures" and "Migrate the suite to pytest" do; "Fix the failing
    test test_total" does not, nor does a task that names tests which must pass.
    """
    title = " ".join(task.title.split())
    return not task.tests and any(pattern.search(title) for pattern in _ABOUT)


def policy_for(settings: Settings, task: Task) -> Policy:
    """The policy in force. "add" becomes "edit" for a task about tests; what is edited is judged by the guard
    and by the tests as they were all the same. The permission "refactor" never covers edits of tests."""
    if settings.permission == "refactor":
        return Policy("add" if settings.tests == "edit" else settings.tests)
    if settings.tests == "add" and is_about_tests(task):
        return Policy("edit", 'the task is about tests: existing ones may be edited (tests = "edit")')
    return Policy(settings.tests)

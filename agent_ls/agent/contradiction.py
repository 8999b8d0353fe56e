"""The claim that tests contradict the task: is it well formed, and how is it told to a person?"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import asdict, frozen

from agent_ls.agent.protection import is_doctest
from agent_ls.agent.session import Session
from agent_ls.prompts import render
from agent_ls.testing.ids import expand_ids
from agent_ls.toolbox.base import Claim
from agent_ls.workspace.paths import is_test_path

_MAX_FILES = 300


@frozen
class Checked:
    """A claim with what was found: the test's `file` and `line` (None where it isn't known), and where the
    contradicted words stand: "the task", a test file, or "" for the model's own words."""

    test: str
    file: str | None
    line: int | None
    lines: str
    against: str
    source: str


def check_claims(session: Session, claims: Sequence[Claim]) -> tuple[list[Checked], list[str]]:
    """(the claims with what was found, what is wrong with them); they are accepted when nothing is.

    A test must exist, its quoted lines must stand in its file as it was at the base, and there must be words
    that they contradict. Recorded either way.
    """
    checked: list[Checked] = []
    problems: list[str] = []
    if not claims:
        problems.append(
            "contradictions is empty: name the tests, the lines in them, and what these contradict"
        )
    for number, claim in enumerate(claims, 1):
        one, wrong = _check(session, claim)
        problems += [f"contradiction {number}: {text}" for text in wrong]
        if one is not None:
            checked.append(one)
    session.log.append("contradiction", claims=[asdict(one) for one in checked], problems=problems)
    return checked, problems


def _check(session: Session, claim: Claim) -> tuple[Checked | None, list[str]]:
    baseline = session.baseline
    assert baseline is not None
    known = baseline.by_id()
    ids = [id for id in expand_ids([claim.test], baseline) if id in known]
    if not ids:
        return None, [f"there is no test {claim.test!r}; take an id as the runs show it"]
    problems = []
    test = known[ids[0]]
    text = _text(session, test.file)
    line = None
    if not claim.lines.strip():
        problems.append("lines is empty: copy the lines of the test")
    elif text is not None:
        line = _find(text, claim.lines)
        if line is None:
            problems.append(
                f"these lines are not in {test.file} as it was before the session: copy them exactly"
            )
    if not claim.against.strip():
        problems.append("against is empty: quote the words of the task, or the lines of another test")
    elif _flat(claim.against) == _flat(claim.lines):
        problems.append("against repeats the test's own lines")
    source = "" if problems else _source(session, claim.against, test.file)
    file = None if test.file and is_doctest(test.id) and text is None else test.file
    return Checked(claim.test, file, line, claim.lines.strip(), claim.against.strip(), source), problems


def _text(session: Session, file: str | None) -> str | None:
    data = session.base_view.read(file) if file else None
    return data.decode("utf-8", "replace") if data is not None else None


def _flat(text: str) -> str:
    return " ".join(text.split())


def _find(text: str, quoted: str) -> int | None:
    """The line of `text` at which the quoted lines begin; all of them must stand in it, in any layout."""
    lines = [_flat(line) for line in text.splitlines()]
    wanted = [_flat(line) for line in quoted.splitlines() if line.strip() and _flat(line) not in ("...", "…")]
    places = [next((n for n, line in enumerate(lines, 1) if want in line), None) for want in wanted]
    if not places or None in places:
        return None
    return places[0]


def _source(session: Session, against: str, own: str | None) -> str:
    """Where the contradicted words stand."""
    flat = _flat(against).strip("\"'` ").casefold()
    if flat in _flat(f"{session.task.title} {session.task.body}").casefold():
        return "the task"
    paths = sorted(path for path in session.base_view.paths() if is_test_path(path))[:_MAX_FILES]
    for path in sorted(paths, key=lambda path: path != own):
        text = _text(session, path)
        if text is not None and _find(text, against) is not None:
            return path
    return ""


def explained(claims: Sequence[Checked], summary: str, evidence: str) -> str:
    """The contradiction for a person."""
    return render("contradiction", claims=claims, said=summary.strip(), evidence=evidence.strip())

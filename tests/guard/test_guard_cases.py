"""What the guard says about whole changes: cases/*.txt holds two trees beside the expected finding."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from guard_kit import Case, MemoryTree, cases
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_ls.cli.app import cli, run
from agent_ls.guard.protected import Finding
from agent_ls.guard.report import exit_code, github, sarif
from agent_ls.guard.review import review

RANK = {"none": 0, "info": 0, "review": 1, "block": 2}
ALL = list(cases())


def _severity(findings: list[Finding]) -> int:
    return max((RANK[finding.severity] for finding in findings), default=0)


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_the_finding_is_as_expected(case: Case) -> None:
    findings = review(case.before, case.after)
    assert _severity(findings) == RANK[case.severity], findings
    if case.kind:
        assert case.kind in {finding.kind for finding in findings}


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_no_change_is_no_finding(case: Case) -> None:
    assert review(case.before, case.before) == []
    assert review(case.after, case.after) == []


@pytest.mark.parametrize(
    "case", [case for case in ALL if case.severity == "none"], ids=lambda case: case.name
)
def test_honest_changes_stay_honest_under_a_new_comment(case: Case) -> None:
    """A comment and blank lines make no difference."""
    marks = {".py": "# note", ".rb": "# note", ".yml": "# note"}
    noisy = MemoryTree(
        {
            path: data + f"\n\n{marks.get(Path(path).suffix, '// note')}\n".encode()
            if Path(path).suffix in (".py", ".rb", ".js", ".go", ".java", ".rs", ".cs")
            else data
            for path, data in case.after.files.items()
        }
    )
    assert _severity(review(case.before, noisy)) == 0


@pytest.mark.parametrize("case", [c for c in ALL if "python" in c.name], ids=lambda case: case.name)
@settings(max_examples=3, deadline=None)
@given(data=st.data())
def test_damaged_files_are_no_crash(case: Case, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(case.after.files)))
    text = case.after.files[path]
    at = data.draw(st.integers(0, len(text)))
    damaged = MemoryTree({**case.after.files, path: text[:at] + data.draw(st.binary(max_size=4)) + text[at:]})
    for finding in review(case.before, damaged):
        assert finding.line >= 1
        assert finding.path in {**case.before.files, **damaged.files}


FINDINGS = [
    Finding("assertion-deleted", "block", "tests/a b.py", 3, "50% gone\nreally", "assert x", ""),
    Finding("expected-value-changed", "review", "tests/c.py", 7, "3 became 4"),
]


def test_sarif_names_rules_places_and_levels() -> None:
    log = sarif(FINDINGS, "1.0")
    assert log["version"] == "2.1.0"
    run = log["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == ["assertion-deleted", "expected-value-changed"]
    first, second = run["results"]
    assert (first["level"], second["level"]) == ("error", "warning")
    assert rules[first["ruleIndex"]] == first["ruleId"]
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "tests/a%20b.py"
    assert place["region"]["startLine"] == 3
    assert first["partialFingerprints"] != second["partialFingerprints"]


def test_github_annotations_are_one_line_each() -> None:
    one, two = github(FINDINGS)
    assert one == "::error file=tests/a b.py,line=3,title=An assertion is gone::50%25 gone%0Areally"
    assert two.startswith("::warning file=tests/c.py,line=7,")


@pytest.mark.parametrize(
    ("findings", "code"), [([], 0), (FINDINGS, 5), (FINDINGS[1:], 8), ([Finding("x", "info", "a", 1, "")], 0)]
)
def test_exit_codes(findings: list[Finding], code: int) -> None:
    assert exit_code(findings) == code


def _git(root: Path, *args: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *args], cwd=root, check=True, capture_output=True
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits: a test, then the same with a weaker assertion; the file on disk has none at all."""
    test = tmp_path / "tests" / "test_a.py"
    test.parent.mkdir()
    _git(tmp_path, "init", "-q")
    for text in ("assert total(2) == 3", "assert total(2)", "total(2)"):
        test.write_text(f"def test_total():\n    {text}\n")
        if text != "total(2)":
            _git(tmp_path, "add", "-A")
            _git(tmp_path, "commit", "-qm", "x")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (["HEAD~1", "HEAD"], "assertion-only-truthy"),
        (["HEAD~1..HEAD"], "assertion-only-truthy"),
        (["HEAD~1"], "assertion-deleted"),
        (["HEAD"], "assertion-deleted"),
    ],
)
def test_revisions_and_files_on_disk(
    repository: Path, arguments: list[str], kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["guard", *arguments, "--json", "--repo", str(repository)]) == 5
    document = json.loads(capfd.readouterr().out)
    assert document["schema"] == 1
    assert [finding["kind"] for finding in document["findings"]] == [kind]


def test_staged(repository: Path) -> None:
    arguments = ["guard", "--staged", "--json", "--repo", str(repository)]
    assert CliRunner().invoke(cli, arguments, standalone_mode=False).return_value == 0
    _git(repository, "add", "-A")
    assert CliRunner().invoke(cli, arguments, standalone_mode=False).return_value == 5


def test_a_missing_directory_is_an_error(tmp_path: Path) -> None:
    arguments = ["guard", "--before", str(tmp_path), "--after", str(tmp_path / "none")]
    done = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert "none is not a directory" in str(done.exception)

"""Findings for people and for machines: SARIF 2.1.0 and GitHub's annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_ls.guard.protected import Finding

_LEVELS = {"block": "error", "review": "warning", "info": "note"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

_RULES: dict[str, str] = {
    "assertion-always-true": "An assertion can no longer fail",
    "assertion-deleted": "An assertion is gone",
    "assertion-guarded": "An assertion is only reached under a new condition",
    "assertion-unreachable": "An assertion is never reached",
    "assertion-swallowed": "The failure of an assertion is caught",
    "assertion-not-awaited": "An assertion's promise is not awaited",
    "assertion-inverted": "An assertion demands the opposite",
    "comparison-narrowed": "Only a part of the result is compared",
    "comparison-normalised": "Both sides are changed before they are compared",
    "cases-removed": "Cases of a parametrised test are gone",
    "error-widened": "More errors are accepted than before",
    "expected-value-changed": "An expected value was changed",
    "expected-from-actual": "The expected value is computed by what is tested",
    "input-changed": "The same is expected of another input",
    "mock-replaces-unit": "What is tested is replaced by a mock",
    "test-deleted": "A test was deleted",
    "test-skipped": "A test is skipped",
    "test-not-collected": "A test is no longer collected",
    "tolerance-widened": "A tolerance was widened",
}


def exit_code(findings: Sequence[Finding]) -> int:
    """0 clean or only info, 5 with a block, 8 with review only."""
    severities = {finding.severity for finding in findings}
    return 5 if "block" in severities else 8 if "review" in severities else 0


def title(kind: str) -> str:
    """A rule's name in words."""
    return _RULES.get(kind, kind.replace("-", " ").capitalize())


def sarif(findings: Sequence[Finding], version: str) -> dict[str, Any]:
    """One SARIF 2.1.0 log. Fingerprints leave the line out: a finding is known when code moves."""
    kinds = sorted({finding.kind for finding in findings})
    rules = [
        {
            "id": kind,
            "name": "".join(part.capitalize() for part in kind.split("-")),
            "shortDescription": {"text": title(kind)},
        }
        for kind in kinds
    ]
    results = [_result(finding, kinds.index(finding.kind)) for finding in findings]
    driver = {"name": "agent-ls guard", "version": version, "rules": rules}
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _result(finding: Finding, rule: int) -> dict[str, Any]:
    from hashlib import sha256

    stable = f"{finding.kind}\0{finding.path}\0{finding.before}\0{finding.after}\0{finding.message}"
    return {
        "ruleId": finding.kind,
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": finding.message},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(finding.path), "uriBaseId": "%SRCROOT%"},
                    "region": {"startLine": finding.line},
                }
            }
        ],
        "partialFingerprints": {"agentLsGuard/v1": sha256(stable.encode()).hexdigest()[:32]},
        "properties": {
            "severity": finding.severity,
            "before": finding.before,
            "after": finding.after,
            "tests": list(finding.tests),
        },
    }


def _uri(path: str) -> str:
    from urllib.parse import quote

    return quote(path)


def github(findings: Sequence[Finding]) -> list[str]:
    """Workflow commands that GitHub shows beside the changed lines."""
    words = {"block": "error", "review": "warning", "info": "notice"}
    return [
        f"::{words[f.severity]}"
        f" file={_property(f.path)},line={f.line},title={_property(title(f.kind))}::{_data(f.message)}"
        for f in findings
    ]


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

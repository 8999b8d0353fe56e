"""What the guard says about paths and sources, case by case (data/*.toml)."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_ls.guard.conduct import new_signs, new_success_exit
from agent_ls.guard.protected import check_change, reason_protected
from agent_ls.guard.shadows import reason_shadowing

DATA = Path(__file__).parent / "data"
SHADOWS = tomllib.loads((DATA / "shadows.toml").read_text())["case"]
CONDUCT = tomllib.loads((DATA / "conduct.toml").read_text())["case"]


def base_of(files: list[str]) -> frozenset[str]:
    folders = {parent.as_posix() for name in files for parent in Path(name).parents}
    return frozenset(files) | folders


@pytest.mark.parametrize("case", SHADOWS, ids=lambda case: case["path"])
def test_a_new_file_that_hides_a_module(case: dict[str, Any]) -> None:
    base = base_of(case.get("base", []))
    reason = reason_shadowing(case["path"], base.__contains__)
    assert (reason is not None) == bool(case["taken"])
    assert case["taken"] in (reason or "")


@pytest.mark.parametrize("case", CONDUCT, ids=lambda case: case["name"])
def test_signs_in_source(case: dict[str, Any]) -> None:
    before = case["before"].encode() if "before" in case else None
    signs = new_signs(
        before,
        case["after"].encode(),
        tests={"test_total", "test_ok"},
        mentions=lambda word: word in case.get("mentions", []),
    )
    assert sorted(f"{sign.severity} {sign.kind}" for sign in signs) == sorted(case["signs"])
    assert all(1 <= sign.line <= case["after"].count("\n") + 1 for sign in signs)


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("x = 1\n", "x = 1\nimport os\nos._exit(0)\n", 3),
        ("", "process.exit(0);\n", 1),
        ("", "func init() {\n\tos.Exit( 0 )\n}\n", 2),
        ("echo\n", "exit 0\necho\n", 1),
        ("", "raise SystemExit()\n", 1),
        ("", "sys.exit(2)\nprocess.exit(code)\n", None),
        ("sys.exit(0)\n", "# moved\nsys.exit(0)\n", None),
        ("", "on_exit(0)\nexiting = 0\n", None),
    ],
)
def test_a_new_exit_with_success(before: str, after: str, line: int | None) -> None:
    assert new_success_exit(before.encode(), after.encode()) == line


@given(st.binary(max_size=300), st.binary(max_size=300))
@settings(deadline=None, max_examples=150)
def test_any_bytes_are_read_without_an_error(before: bytes, after: bytes) -> None:
    new_signs(before, after, tests=(), mentions=lambda word: False)
    assert new_signs(after, after, tests=(), mentions=lambda word: False) == []


def test_the_old_name_of_a_renamed_test_counts() -> None:
    base = {"tests/test_a.py": b"x"}
    findings = check_change([("tests/test_a.py", "moved away"), ("old.py", "renamed")], base.get, "add")
    assert [finding.path for finding in findings] == ["tests/test_a.py"]


@pytest.mark.parametrize("policy", ["none", "add", "edit"])
def test_secrets_and_our_own_settings_are_closed_under_any_policy(policy: Any) -> None:
    for path in (".env", ".agent-ls/config.toml"):
        assert reason_protected(path, exists_at_base=False, policy=policy) is not None

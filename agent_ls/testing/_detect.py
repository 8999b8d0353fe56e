"""What the files of a tree say about its test runner."""

from __future__ import annotations

import configparser
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from agent_ls.errors import EnvBroken

_SKIPPED = frozenset(
    {
        "node_modules",
        "__pycache__",
        "venv",
        "env",
        "build",
        "dist",
        "site-packages",
        ".git",
        ".tox",
        ".venv",
        ".nox",
    }
)
_MAX_FILES = 20_000
_READ_BYTES = 200_000
_PYTEST_USE = re.compile(rb"^\s*(import pytest\b|from pytest\b|from _pytest\b|@pytest\.)", re.MULTILINE)
_UNITTEST_USE = re.compile(rb"\bTestCase\b")
_BARE_TEST = re.compile(
    rb"^(async )?def test_?\w*\s*\(|^class Test\w*\s*(\(\s*(object)?\s*\))?:", re.MULTILINE
)


def detect_kind(root: Path) -> tuple[Literal["pytest", "unittest"], str]:
    """The runner and why. Raises EnvBroken when there is nothing that looks like a Python test."""
    configured = _configured(root)
    if configured is not None:
        return "pytest", f"pytest is configured in {configured}"
    unittest_seen = None
    for path in test_files(root):
        name = path.relative_to(root).as_posix()
        if path.name == "conftest.py":
            return "pytest", f"{name} is a pytest configuration"
        text = _head(path)
        if _PYTEST_USE.search(text):
            return "pytest", f"{name} uses pytest"
        if _BARE_TEST.search(text) and not _UNITTEST_USE.search(text):
            return "pytest", f"{name} holds tests that are plain functions or classes"
        if _UNITTEST_USE.search(text) and unittest_seen is None:
            unittest_seen = name
    if unittest_seen is not None:
        return "pytest", f"{unittest_seen} holds unittest cases, which pytest runs too"
    raise EnvBroken(
        "no tests found",
        "Name the command that runs them with --test-command or `test_command` in [tool.agent-ls].",
    )


def uses_pytest(root: Path) -> bool:
    """Whether unittest alone could not run the tests."""
    if _configured(root) is not None:
        return True
    for path in test_files(root):
        text = _head(path)
        if path.name == "conftest.py" or _PYTEST_USE.search(text):
            return True
        if _BARE_TEST.search(text) and not _UNITTEST_USE.search(text):
            return True
    return False


def test_files(root: Path) -> Iterator[Path]:
    """Files named like Python tests, nearest the root first; ignores hidden, vendored and built folders."""
    seen = 0
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
        for name in sorted(files):
            seen += 1
            if seen > _MAX_FILES:
                return
            if is_test_file(name) or name == "conftest.py":
                yield Path(folder) / name


test_files.__test__ = False  # type: ignore[attr-defined]


def is_test_file(name: str) -> bool:
    """Whether a file name follows the conventions of pytest or unittest."""
    return name.endswith(".py") and (
        name.startswith("test") or name.endswith(("_test.py", "_tests.py")) or name == "tests.py"
    )


def _configured(root: Path) -> str | None:
    if (root / "pytest.ini").is_file() or (root / ".pytest.ini").is_file():
        return "pytest.ini"
    if (root / "pytest.toml").is_file():
        return "pytest.toml"
    try:
        tool = tomllib.loads((root / "pyproject.toml").read_text("utf-8")).get("tool", {})
        if isinstance(tool, dict) and "pytest" in tool:
            return "pyproject.toml"
    except (OSError, ValueError):
        pass
    for name, section in (("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")):
        parser = configparser.RawConfigParser(strict=False)
        try:
            parser.read_string((root / name).read_text("utf-8"))
        except (OSError, ValueError, configparser.Error):
            continue
        if parser.has_section(section):
            return name
    return None


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_READ_BYTES)
    except OSError:
        return b""

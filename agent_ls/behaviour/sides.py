"""Which changed file belongs to the tests, and which to what they test."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from attrs import frozen

from agent_ls.guard.trees import Tree, changed_paths
from agent_ls.workspace.paths import is_test_config, is_test_path

_PYTHON_SETTINGS = {
    "pyproject.toml", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg",
    "sitecustomize.py", "usercustomize.py", "unittest.cfg",
}  # fmt: skip


def is_test_side(path: str) -> bool:
    """Tests, their helpers, fixtures and data, and the settings of their runner.

    A package's own `testing` folder holds sources that others' tests use.
    """
    if is_test_config(path):
        return True
    parts = path.split("/")
    if "testing" in parts[1:-1] and path.endswith(".py") and not is_test_module(path):
        return is_test_path("/".join(part for part in parts if part != "testing"))
    return is_test_path(path)


@frozen
class Sides:
    """The changed paths of two trees, apart: `tests` (with `settings` of a Python runner among them) and
    `sources`."""

    tests: tuple[str, ...]
    sources: tuple[str, ...]
    settings: tuple[str, ...]

    @classmethod
    def of(cls, before: Tree, after: Tree) -> Sides:
        changed = changed_paths(before, after)
        tests = tuple(path for path in changed if is_test_side(path))
        sources = tuple(path for path in changed if not is_test_side(path) and not _is_prose(path))
        return cls(tests, sources, settings_in(tests))


def settings_in(paths: Iterable[str]) -> tuple[str, ...]:
    """Those paths that can change which Python tests run, and how, without being a test."""
    return tuple(path for path in paths if PurePosixPath(path).name in _PYTHON_SETTINGS)


def unseen(paths: Iterable[str]) -> list[str]:
    """Those paths of the tests' side that only a CI service, a build tool or another runner reads."""
    return [
        path
        for path in paths
        if is_test_config(path)
        and not is_test_path(path)
        and not path.endswith((".py", ".lock"))
        and PurePosixPath(path).name not in _PYTHON_SETTINGS
        and "requirements" not in path
    ]


def is_test_module(path: str) -> bool:
    """Would a Python runner look for tests in it, by its usual names?"""
    name = PurePosixPath(path).name
    return name.endswith(".py") and (
        name.startswith("test") or name.endswith(("_test.py", "_tests.py")) or name == "tests.py"
    )


def _is_prose(path: str) -> bool:
    name = PurePosixPath(path)
    return name.suffix.lower() in (".md", ".rst") or name.name.upper() in ("LICENSE", "AUTHORS", "NOTICE")

"""What a warm test process depends on besides the code under test, as a value that can be compared."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

_CONFIGURATION = (
    *("pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "pytest.ini", ".pytest.ini"),
    *("pytest.toml", ".pytest.toml", "conftest.py", ".env"),
    *("poetry.lock", "uv.lock", "pdm.lock", "Pipfile", "Pipfile.lock", "pixi.lock", "environment.yml"),
)
_PER_RUN = ("AGENT_LS_IDS", "AGENT_LS_RESULTS", "AGENT_LS_TEST_TIMEOUT", "HYPOTHESIS_STORAGE_DIRECTORY")

Fingerprint = dict[str, object]


def configuration(root: Path, interpreter: str | None) -> Fingerprint:
    """Signatures of the configuration and lock files at the root, and of the interpreter."""
    names = [*_CONFIGURATION, *(path.name for path in root.glob("*requirements*.txt"))]
    found: Fingerprint = {name: _signature(root / name) for name in names}
    if interpreter is not None:
        found["the interpreter"] = (_signature(Path(interpreter)), os.path.realpath(interpreter))
    return found


def environment(variables: Mapping[str, str]) -> Fingerprint:
    """The environment without what differs from run to run."""
    kept = {name: value for name, value in variables.items() if name not in _PER_RUN and name != "PYTHONPATH"}
    return {f"the variable {name}": value for name, value in kept.items()}


def installed(files: Iterable[str], path: Iterable[str]) -> Fingerprint:
    """Signatures of the folders on the search path and of the installed files that are kept imported."""
    found: Fingerprint = {entry: _folder(entry) for entry in path}
    found |= {file: _signature(file) for file in files}
    return found


def difference(before: Fingerprint, now: Fingerprint) -> str | None:
    """The first thing that differs, or None."""
    for name in (*before, *now):
        if before.get(name) != now.get(name):
            return name
    return None


def shadowed(names: frozenset[str], folders: Iterable[Path]) -> str | None:
    """A module in one of the folders of the project that has the name of one that is kept imported."""
    for folder in folders:
        try:
            entries = [entry.name for entry in os.scandir(folder) if _importable(entry)]
        except OSError:
            continue
        for entry in entries:
            if entry.partition(".")[0] in names:
                return entry
    return None


def _importable(entry: os.DirEntry[str]) -> bool:
    if entry.name.endswith((".py", ".so", ".pyd")):
        return True
    return "." not in entry.name and os.path.exists(os.path.join(entry.path, "__init__.py"))  # noqa: PTH110, PTH118


def _signature(path: Path | str) -> tuple[int, int, int] | None:
    try:
        info = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return (info.st_ino, info.st_size, info.st_mtime_ns)


def _folder(path: str) -> tuple[int, int] | None:
    try:
        info = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return (info.st_ino, info.st_mtime_ns)

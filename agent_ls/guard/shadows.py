"""New files that would be imported in place of something else: of the test runner, the standard
library or the code under test. A change could pass every test that way and mend nothing.

Pure: decides from paths alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import PurePosixPath

from agent_ls.workspace.paths import is_test_path

BaseHas = Callable[[str], bool]
"""Whether the base tree has a file or a folder at a path."""

RUNNER_MODULES = frozenset(
    {
        "pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "exceptiongroup", "tomli", "pygments",
        "unittest", "doctest", "nose", "nose2", "xdist", "execnet", "hypothesis", "coverage",
        "agent_ls_inside",
    }
)  # fmt: skip
"""Modules that decide what a test's outcome is, or that pytest imports on its way."""

_TAKEN = RUNNER_MODULES | sys.stdlib_module_names
_MODULE_SUFFIXES = (".py", ".pyc", ".so", ".pyd")
_METADATA = (".dist-info", ".egg-info", ".dist-info.dir")


def reason_shadowing(path: str, base_has: BaseHas) -> str | None:
    """Why a new file at `path` would take the place of a module; None if it takes none.

    `path` is relative to the repository, with forward slashes, and absent from the base tree.
    """
    parts = PurePosixPath(path).parts
    if any(part.casefold().endswith(_METADATA) for part in parts):
        return "it would register plugins, as the metadata of an installed package"
    module = _module_made(parts)
    if module is None:
        return _reason_beside_tests(parts, base_has)
    folder, name = module
    place = "/".join(folder)
    importable = not folder or (len(folder) == 1 and base_has(place) and not base_has(f"{place}/__init__.py"))
    if importable and name in _TAKEN and not _has_module(folder, name, base_has):
        return f"it would be imported in place of the module {name}"
    for other in ((), ("src",)):
        if folder in ((), ("src",)) and folder != other and _has_module(other, name, base_has):
            return f"it would be imported in place of the project's own {name}"
    return _reason_beside_tests(parts, base_has)


def _module_made(parts: tuple[str, ...]) -> tuple[tuple[str, ...], str] | None:
    """(folder, name) of the importable module that a file at `parts` makes."""
    stem, dot, suffix = parts[-1].partition(".")
    if f"{dot}{suffix}" not in _MODULE_SUFFIXES and not suffix.endswith(("so", "pyd")):
        return None
    if stem == "__init__":
        return (parts[:-2], parts[-2]) if len(parts) > 1 else None
    return parts[:-1], stem


def _has_module(folder: tuple[str, ...], name: str, base_has: BaseHas) -> bool:
    start = "/".join((*folder, name))
    return base_has(f"{start}.py") or base_has(f"{start}/__init__.py")


def _reason_beside_tests(parts: tuple[str, ...], base_has: BaseHas) -> str | None:
    """A module in a test folder, which the runner may put first on the import path."""
    depth = next((n for n in range(1, len(parts)) if is_test_path("/".join((*parts[:n], "x")))), None)
    if depth is None or not parts[-1].endswith(_MODULE_SUFFIXES):
        return None
    name = parts[depth].partition(".")[0] if depth == len(parts) - 1 else parts[depth]
    if name == "__init__" or base_has("/".join(parts[: depth + 1])):
        return None
    own = any(_has_module(folder, name, base_has) for folder in ((), ("src",), ("lib",), parts[: depth - 1]))
    if own or name in _TAKEN:
        return f"it could be imported in place of the module {name}"
    return None

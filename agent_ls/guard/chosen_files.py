"""Which test files a pattern of settings chooses or leaves out, tried on the files that are there."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from agent_ls.guard.world import World
from agent_ls.workspace.paths import is_test_path

_DEFAULTS = {
    "python_files": ["test_*.py", "*_test.py"],
    "python_functions": ["test"],
    "python_classes": ["Test"],
}


def test_files(world: World) -> list[str]:
    return [path for path in world.all_paths if is_test_path(path)]


def hidden_files(world: World, patterns: list[str]) -> list[str]:
    """Test files that one of the patterns hits."""
    found = set()
    for pattern in patterns:
        if re.fullmatch(r"\W*(?:node_modules|dist|build|\.git|venv|vendor|fixtures|e2e|cypress)\W*", pattern):
            continue
        for path in test_files(world):
            if _hits(pattern, path):
                found.add(path)
    return sorted(found)


def _hits(pattern: str, path: str) -> bool:
    plain = pattern.replace("<rootDir>", "").strip("'\"")
    if _glob(plain).fullmatch(path) or fnmatchcase(PurePosixPath(path).name, plain):
        return True
    if plain.strip("/") in PurePosixPath(path).parts or path.startswith(plain.strip("/") + "/"):
        return True
    try:
        return "*" not in plain.replace(".*", "") and re.search(plain, "/" + path) is not None
    except re.error:
        return False


def lost_files(world: World, last: str, one: list[str], two: list[str]) -> list[str]:
    """Test files that the old values choose and the new ones don't."""
    if last in ("python_classes", "python_functions"):
        one = one or _DEFAULTS[last]
        return [f"names like {value}" for value in one if value not in two and two]
    one = one or _DEFAULTS.get(last, [])
    old = [value for text in one for value in text.split()] if last in ("testpaths", "python_files") else one
    new = [value for text in two for value in text.split()] if last in ("testpaths", "python_files") else two
    if not new:
        return []
    tests = test_files(world)
    chosen = [path for path in tests if any(chooses(value, path) for value in old)] if old else tests
    chosen = [
        path
        for path in chosen
        if re.search(r"test|spec", PurePosixPath(path).name, re.IGNORECASE)
        and not path.endswith("conftest.py")
    ]
    if last == "testregex":
        return [path for path in chosen if not any(_regex_hits(value, path) for value in new)]
    return [path for path in chosen if not any(chooses(value, path) for value in new)]


def _regex_hits(pattern: str, path: str) -> bool:
    try:
        return re.search(pattern, "/" + path) is not None
    except re.error:
        return True


def chooses(pattern: str, path: str) -> bool:
    plain = pattern.replace("<rootDir>/", "").strip("'\"").removeprefix("./")
    if plain in (".", ""):
        return True
    if _glob(plain).fullmatch(path) or path.startswith(plain.rstrip("/") + "/") or path == plain:
        return True
    return "/" not in plain and fnmatchcase(PurePosixPath(path).name, plain)


def _glob(pattern: str) -> re.Pattern[str]:
    """A pattern of JavaScript's tools as a regular expression: **, *, {a,b}, ?(x)."""
    text = re.escape(pattern.removeprefix("/"))
    text = (
        text.replace(r"\*\*/", "(?:.*/)?")
        .replace(r"\*\*", ".*")
        .replace(r"\*", "[^/]*")
        .replace(r"\?\(", "(?:")
        .replace(r"\)", ")?")
        .replace(r"\?", "[^/]")
    )
    text = re.sub(r"\\{([^{}]*)\\}", lambda m: "(?:" + m.group(1).replace(",", "|") + ")", text)
    text = re.sub(r"\\\[([\w-]+)\\\]", r"[\1]", text)
    try:
        return re.compile(text)
    except re.error:
        return re.compile(re.escape(pattern))

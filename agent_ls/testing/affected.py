"""Which tests a change can reach: a static import graph, widened by what tests were seen to execute.

It errs on the side of too many: an import resolves to every file whose dotted path ends with the name,
and a file that imports or starts things by computed names counts as depending on everything near it.
"""

from __future__ import annotations

import ast
import os
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from attrs import define, field

from agent_ls.testing._records import Coverage
from agent_ls.testing.ids import file_of
from agent_ls.testing.results import TestRun

_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "env", "site-packages"})
_MAX_FILES = 20_000
_MAX_BYTES = 2_000_000
_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+\Z")
_STARTS_PROCESSES = frozenset({"subprocess", "multiprocessing", "runpy", "pexpect", "pytester"})
_COMPUTED_IMPORTS = frozenset(
    {"import_module", "__import__", "iter_modules", "walk_packages", "exec", "eval"}
)


def affected_tests(
    root: Path, changed: Iterable[str], run: TestRun, coverage: Coverage | None = None
) -> list[str] | None:
    """Ids of the tests in `run` that a change of the files `changed` can affect; None: run everything.

    `changed` are paths relative to `root`, deleted and new ones included. None means that it can't be
    told: a file that is not Python changed, the runner does not report single tests, or the tree is
    too large. With `coverage`, tests that executed a changed file come first.
    """
    paths = [PurePosixPath(name).as_posix() for name in changed]
    if run.source not in ("pytest", "unittest") or any(not name.endswith(".py") for name in paths):
        return None
    graph = _build(root, paths)
    if graph is None:
        return None
    reached = graph.dependents(paths)
    executed = {test for test, files in (coverage or {}).items() if any(files.get(path) for path in paths)}
    first: list[str] = []
    then: list[str] = []
    for test in run.tests:
        file = _file_of_test(test.id, test.file, graph)
        if test.id in executed:
            first.append(test.id)
        elif file is None or file in reached:
            then.append(test.id)
    return first + then


def _file_of_test(test_id: str, reported: str | None, graph: _Graph) -> str | None:
    if "::" in test_id or test_id.endswith(".py"):
        name = file_of(test_id)
    elif reported is not None and reported in graph.files:
        return reported
    else:
        found = graph.resolve(test_id)
        name = found[0] if found else ""
    return name if name in graph.files else None


@define
class _Imports:
    """What one file says it needs: absolute dotted names, files of its own package, and whether more."""

    names: set[str] = field(factory=set)
    relative: set[tuple[int, str]] = field(factory=set)
    starts_processes: bool = False
    computed: bool = False


class _Graph:
    def __init__(self, files: Iterable[str]) -> None:
        self.files = set(files)
        self._by_last: dict[str, list[tuple[tuple[str, ...], str]]] = defaultdict(list)
        for name in sorted(self.files):
            parts = _module_parts(name)
            if parts:
                self._by_last[parts[-1]].append((parts, name))
        self._users: dict[str, set[str]] = defaultdict(set)
        self._always: set[str] = set()

    def add(self, name: str, imports: _Imports) -> None:
        """Record what the file `name` depends on."""
        if imports.starts_processes and _is_test(name):
            self._always.add(name)
        for dotted in imports.names:
            for target in self.resolve(dotted):
                self._users[target].add(name)
        folder = PurePosixPath(name).parent
        for level, dotted in imports.relative:
            base = folder
            for _ in range(level - 1):
                base = base.parent
            for target in self._below(base, dotted):
                self._users[target].add(name)
        if imports.computed:
            prefix = "" if str(folder) == "." else f"{folder}/"
            for target in self.files:
                if target != name and target.startswith(prefix):
                    self._users[target].add(name)
        for parent in (folder, *folder.parents):
            for special in ("conftest.py",) if _is_test(name) else ():
                special_path = (parent / special).as_posix()
                if special_path in self.files:
                    self._users[special_path].add(name)

    def resolve(self, dotted: str) -> list[str]:
        """Files that importing `dotted` may execute, the packages above included; most specific first."""
        parts = tuple(dotted.split("."))
        found: list[str] = []
        for size in range(len(parts), 0, -1):
            wanted = parts[:size]
            for candidate, name in self._by_last.get(wanted[-1], ()):
                if candidate[-size:] == wanted:
                    found.append(name)
        return found

    def dependents(self, changed: Iterable[str]) -> set[str]:
        """Everything that reaches a changed file or may start anything; the changed files included."""
        reached = set(changed) | self._always
        queue = deque(reached)
        while queue:
            for user in self._users.get(queue.popleft(), ()):
                if user not in reached:
                    reached.add(user)
                    queue.append(user)
        return reached

    def _below(self, base: PurePosixPath, dotted: str) -> Iterator[str]:
        parts = [part for part in dotted.split(".") if part]
        for size in range(len(parts) + 1):
            place = base.joinpath(*parts[:size])
            for candidate in (f"{place}.py", f"{place}/__init__.py"):
                normal = PurePosixPath(candidate).as_posix()
                if normal in self.files:
                    yield normal


def _build(root: Path, changed: Iterable[str]) -> _Graph | None:
    files = list(_python_files(root))
    if len(files) > _MAX_FILES:
        return None
    graph = _Graph([*files, *changed])
    for name in files:
        graph.add(name, _imports_of(root / name))
    return graph


def _python_files(root: Path) -> Iterator[str]:
    count = 0
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in _SKIPPED and not name.startswith(".")]
        for name in names:
            if name.endswith(".py"):
                count += 1
                yield (Path(folder) / name).relative_to(root).as_posix()
                if count > _MAX_FILES:
                    return


def _imports_of(path: Path) -> _Imports:
    imports = _Imports()
    try:
        if path.stat().st_size > _MAX_BYTES or path.is_symlink():
            raise ValueError
        tree = ast.parse(path.read_bytes())
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        # What it needs can't be known, so it may need anything around it.
        imports.computed = True
        return imports
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports.names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                for alias in node.names:
                    imports.relative.add((node.level, f"{module}.{alias.name}" if module else alias.name))
            else:
                imports.names.add(module)
                imports.names.update(f"{module}.{alias.name}" for alias in node.names if alias.name != "*")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # "package.module.name" in mock.patch, pytest_plugins, import_module, entry points.
            if len(node.value) < 200 and _DOTTED.match(node.value):
                imports.names.add(node.value)
        elif isinstance(node, ast.Call) and _called(node) in _COMPUTED_IMPORTS:
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                imports.names.add(first.value)
            else:
                imports.computed = True
        elif isinstance(node, ast.arg) and node.arg in _STARTS_PROCESSES:
            imports.starts_processes = True
    imports.starts_processes |= any(name.partition(".")[0] in _STARTS_PROCESSES for name in imports.names)
    return imports


def _called(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""


def _module_parts(name: str) -> tuple[str, ...]:
    parts = list(PurePosixPath(name).with_suffix("").parts)
    if parts and parts[-1] == "__init__":
        parts.pop()
    return tuple(parts)


def _is_test(name: str) -> bool:
    from agent_ls.testing._detect import is_test_file

    base = name.rpartition("/")[2]
    return is_test_file(base) or base == "conftest.py" or "tests" in name.split("/")[:-1]

"""One tree's files, parsed when they are asked for, and where a helper's name leads."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from attrs import define, field

from agent_ls.guard.collect_calls import collect_calls
from agent_ls.guard.collect_methods import collect_methods
from agent_ls.guard.collect_python import collect_python
from agent_ls.guard.model import File, all_functions
from agent_ls.guard.read_python import read_python
from agent_ls.guard.read_sitter import read_sitter
from agent_ls.guard.syntax import Stmt, substitute
from agent_ls.guard.tables import bind
from agent_ls.guard.trees import Tree
from agent_ls.workspace.grammars import language_of
from agent_ls.workspace.paths import is_test_path

MAX_NEIGHBOURS = 40
_PYTHON_TEST = re.compile(r"(?:test_[^/]*|[^/]*_test|tests?)\.py$")
_JS_TEST = re.compile(
    r"[.\-_](?:test|spec|tests|e2e|cy)\.[cm]?[jt]sx?$|(?:^|/)(?:__tests__|test|tests|spec|e2e)/.*\.[cm]?[jt]sx?$"
)


@define(eq=False)
class World:
    """A tree with its parsed files. `python_files` are patterns from configuration, if it has any."""

    tree: Tree
    _files: dict[str, File | None] = field(factory=dict)
    _all: frozenset[str] | None = None
    _names: dict[str, list[str]] | None = None
    _helpers: dict[tuple[str, str], tuple[Stmt, str] | None] = field(factory=dict)

    @property
    def all_paths(self) -> frozenset[str]:
        if self._all is None:
            self._all = frozenset(self.tree.paths())
        return self._all

    def ending(self, tail: str) -> list[str]:
        """Paths that are `tail` or end with "/tail"."""
        if self._names is None:
            self._names = {}
            for path in sorted(self.all_paths):
                self._names.setdefault(path.rpartition("/")[2], []).append(path)
        near = self._names.get(tail.rpartition("/")[2], ())
        return [path for path in near if path == tail or path.endswith("/" + tail)]

    def parse(self, path: str) -> File | None:
        """The file without its tests; None for what can't be read or isn't source."""
        if path in self._files:
            return self._files[path]
        self._files[path] = None
        language = language_of(path)
        data = self.tree.read(path) if language is not None else None
        if data is None or language is None or len(data) > 1_000_000:
            return None
        stmts = read_python(data) if language == "python" else read_sitter(data, language)
        if stmts is None:
            return None
        file = File(path, language, data.decode("utf-8", "replace"), stmts)
        file.functions = all_functions(stmts)
        file.env = _module_values(stmts)
        self._files[path] = file
        return file

    def collect(self, path: str) -> File | None:
        """The file with its tests and helpers."""
        file = self.parse(path)
        if file is None or file.tests or file.units:
            return file

        def helpers(name: str, path: str) -> tuple[Stmt, str] | None:
            return self.helper(file, name, path)

        match file.language:
            case "python":
                collect_python(file, helpers, collected=_PYTHON_TEST.search(path) is not None)
            case "javascript" | "typescript" | "tsx":
                collect_calls(file, helpers)
                if not _JS_TEST.search(path):
                    file.tests = []
                self._units(file, helpers)
            case "ruby":
                collect_calls(file, helpers)
                collect_methods(file, helpers, collected=True)
            case _:
                collected = file.language != "go" or path.endswith("_test.go")
                collect_methods(file, helpers, collected=collected)
        return file

    def _units(self, file: File, helpers: object) -> None:
        """Plain functions of a script file, which tests may use."""
        from agent_ls.guard.model import make_test

        for name, stmt in file.functions.items():
            file.units.append(
                make_test(
                    file,
                    lambda word, path: self.helper(file, word, path),
                    id=name,
                    name=name,
                    line=stmt.line,
                    end=stmt.end,
                    body=stmt.body,
                    unit=True,
                )
            )

    def helper(self, file: File, name: str, path: str = "") -> tuple[Stmt, str] | None:
        """The function that a test file means by a name: its own, imported, a fixture, a neighbour's.

        Args:
            name: of a function, or `module.function`.
            path: of the file of helpers where the name stands, if it isn't the test's own.
        """
        if path and path != file.path:
            other = self.parse(path)
            near = self.helper(other, name) if other is not None else None
            if near is not None:
                return near
        found = file.functions.get(name)
        if found is not None and not name.startswith("test"):
            return found, file.path
        key = (file.path, name)
        if "." in name and key not in self._helpers:
            module, _, word = name.partition(".")
            self._helpers[key] = None
            for stmt in file.stmts:
                if stmt.kind == "import" and any(w.name == module for w in stmt.exprs):
                    tail = module if module in stmt.name.split(",") else f"{stmt.name.lstrip('.')}.{module}"
                    for place in self.ending(f"{tail.replace('.', '/').lstrip('/')}.py")[:3]:
                        other = self.parse(place) if is_test_path(place) else None
                        if other is not None and word in other.functions:
                            self._helpers[key] = (other.functions[word], place)
        if key not in self._helpers:
            self._helpers[key] = None
            for path in self._neighbours(file, name):
                other = self.parse(path)
                if other is not None and name in other.functions and other is not file:
                    self._helpers[key] = (other.functions[name], path)
                    break
        return self._helpers[key]

    def _neighbours(self, file: File, name: str) -> list[str]:
        found: list[str] = []
        folder = PurePosixPath(file.path).parent
        if file.language == "python":
            imported = [s for s in file.stmts if s.kind == "import"]
            for stmt in imported:
                if any(word.name in (name, "*") for word in stmt.exprs) or _is_base(file, stmt):
                    tail = stmt.name.lstrip(".").replace(".", "/")
                    found += self._ending(f"{tail}.py", folder) if tail else []
            for parent in (folder, *folder.parents):
                path = str(parent / "conftest.py")
                if path in self.all_paths:
                    found.append(path)
        elif file.language in ("javascript", "typescript", "tsx"):
            for match in re.finditer(r"""(?:from|require\()\s*['"](\.[^'"]+)['"]""", file.text):
                target = re.sub(r"\.[cm]?[jt]sx?$", "", _joined(folder, match.group(1)))
                found += [
                    target + suffix
                    for suffix in (".js", ".ts", ".mjs", ".tsx", "/index.js", "/index.ts")
                    if target + suffix in self.all_paths
                ]
        elif file.language in ("go", "java", "c_sharp", "rust", "ruby"):
            if not re.search(rf"\b{re.escape(name)}\b", file.text):
                return []
            suffix = PurePosixPath(file.path).suffix
            near = [p for p in self.all_paths if PurePosixPath(p).parent == folder and p.endswith(suffix)]
            found += sorted(near)[:MAX_NEIGHBOURS]
            if file.language in ("rust", "ruby"):
                found += sorted(
                    p
                    for p in self.all_paths
                    if p.endswith(("common/mod.rs", "test_helper.rb", "spec_helper.rb")) or "/support/" in p
                )[:MAX_NEIGHBOURS]
        bases = _bases_of(file) if file.language == "python" else []
        return [
            path
            for path in found
            if path != file.path and (is_test_path(path) or PurePosixPath(path).stem in bases)
        ]

    def _ending(self, tail: str, folder: PurePosixPath) -> list[str]:
        return sorted(self.ending(tail), key=lambda path: PurePosixPath(path).parent != folder)[:3]


def _bases_of(file: File) -> list[str]:
    """Modules that base classes of the file's classes are imported from."""
    return [
        stmt.name.rpartition(".")[2] for stmt in file.stmts if stmt.kind == "import" and _is_base(file, stmt)
    ]


def _is_base(file: File, stmt: Stmt) -> bool:
    """Does a class of the file inherit from what is imported?"""
    names = {word.name for word in stmt.exprs}
    return any(
        s.kind == "class" and any(b.text.rpartition(".")[2] in names for b in s.exprs) for s in file.stmts
    )


def _joined(folder: PurePosixPath, relative: str) -> str:
    parts = list(folder.parts)
    for part in relative.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in (".", ""):
            parts.append(part)
    return "/".join(parts)


def _module_values(stmts: tuple[Stmt, ...]) -> dict:  # type: ignore[type-arg]
    """Module-level names that are given a value once."""
    env: dict = {}  # type: ignore[type-arg]
    often: set[str] = set()
    for stmt in stmts:
        holders = stmt.body if stmt.kind == "class" else (stmt,)
        for inner in holders:
            if inner.kind != "assign":
                continue
            for key, value in bind(inner.exprs[0], substitute(inner.exprs[-1], env)).items():
                if key in env:
                    often.add(key)
                if (
                    value.op not in ("func",) and len(value.text) < 4000 and value.value is not None
                ) or value.op != "lit":
                    env[key] = value
    return {key: value for key, value in env.items() if key not in often}

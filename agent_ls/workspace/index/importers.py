"""Which files an import means, and which files import a file.

Resolution is by names and places alone, as no build is run: an import that could mean several files means all
of them, one that fits no file of the repository means something installed.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from attrs import frozen

from agent_ls.errors import ToolRefused
from agent_ls.workspace.grammars import language_of
from agent_ls.workspace.index.records import FileInfo, Import

_ECMA = (
    "",
    ".ts",
    ".tsx",
    ".d.ts",
    ".js",
    ".jsx",
    ".mjs",
    ".cjs",
    ".mts",
    ".cts",
    ".json",
    ".vue",
    ".svelte",
)
_ROOTS = ("src/", "lib/", "python/", "source/")
_JVM = {
    "java": (".java", ".kt"),
    "kotlin": (".kt", ".java"),
    "scala": (".scala", ".java"),
    "swift": (".swift",),
}
_INDEXES = frozenset({"__init__", "index", "mod", "lib", "main"})


class ImportView(Protocol):
    """What a look for importers asks of a snapshot of the index."""

    def files(self) -> Sequence[FileInfo]: ...
    def imports(self, path: str) -> list[Import]: ...
    def files_with(self, word: str) -> frozenset[str]: ...


@frozen
class Importer:
    """A file that imports what was asked for, and how."""

    path: str
    statement: Import


class Modules:
    """The files of a tree, by the names that imports use."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = set(paths)
        self._by_name: dict[str, list[str]] = defaultdict(list)
        self._folders: dict[str, list[str]] = defaultdict(list)
        self._by_folder_name: dict[str, list[str]] = defaultdict(list)
        self._python: dict[str, list[str]] | None = None
        for path in sorted(self._paths):
            folder, _, name = path.rpartition("/")
            self._by_name[name].append(path)
            if folder not in self._folders:
                self._by_folder_name[folder.rpartition("/")[2]].append(folder)
            self._folders[folder].append(path)

    def resolve(self, importer: str, language: str | None, statement: Import) -> list[str]:
        """The files that an import in the file `importer` means, by path; none when it isn't of this tree."""
        read = _RESOLVERS.get(language or "")
        if read is None:
            return []
        found = read(self, importer, statement.module, statement.names)
        return sorted(set(found) - {importer})

    # Python

    def _python_modules(self) -> dict[str, list[str]]:
        """Dotted name -> files; a file is known by its whole path, by that from its topmost package on, and
        below the usual source folders."""
        if self._python is None:
            found: dict[str, list[str]] = defaultdict(list)
            for path in self._paths:
                if path.endswith((".py", ".pyi")):
                    for name in self._python_names(path):
                        found[name].append(path)
            self._python = found
        return self._python

    def _python_names(self, path: str) -> set[str]:
        folder, _, base = path.rpartition("/")
        stem = base.rpartition(".")[0]
        parts = [*folder.split("/")] if folder else []
        top = len(parts)
        while top and "/".join((*parts[:top], "__init__.py")) in self._paths:
            top -= 1
        names = set()
        starts = {0, top} if top < len(parts) else {0}
        starts |= {1 for root in _ROOTS if path.startswith(root)}
        for start in starts:
            pieces = parts[start:] if stem == "__init__" else [*parts[start:], stem]
            if pieces:
                names.add(".".join(pieces))
        return names

    def python(self, importer: str, module: str, names: Sequence[str]) -> Iterator[str]:
        """The module, and modules among the names taken from it."""
        level = len(module) - len(module.lstrip("."))
        if level:
            folder = posixpath.dirname(importer)
            for _ in range(level - 1):
                folder = posixpath.dirname(folder)
            rest = module[level:].replace(".", "/")
            base = posixpath.normpath(posixpath.join(folder, rest)) if rest else folder
            yield from self._python_from(lambda name: self._python_file(base, name), names)
            return
        known = self._python_modules()
        found = list(
            self._python_from(lambda name: known.get(f"{module}.{name}" if name else module, ()), names)
        )
        if not found and "." not in module:  # beside the importer, as for a script or a test folder
            found = list(self._python_file(posixpath.dirname(importer), module))
        yield from found

    @staticmethod
    def _python_from(find: Callable[[str], Iterable[str]], names: Sequence[str]) -> Iterator[str]:
        whole = not names
        for name in names:
            part = list(find(name)) if name != "*" else []
            yield from part
            whole = whole or not part
        if whole:
            yield from find("")

    def _python_file(self, base: str, name: str) -> list[str]:
        place = f"{base}/{name}" if base and name else name or base
        prefix = f"{place}/" if place else ""
        candidates = (f"{place}.py", f"{place}.pyi", f"{prefix}__init__.py", f"{prefix}__init__.pyi")
        return [path for path in candidates if path in self._paths]

    # others

    def ecma(self, importer: str, module: str, _names: Sequence[str]) -> list[str]:
        """A relative module with any of the usual endings; else one that a path of two parts ends with."""
        if module.startswith("."):
            return self._ecma_file(posixpath.normpath(posixpath.join(posixpath.dirname(importer), module)))
        bare = re.sub(r"^[@~#]/", "", module)
        if bare == module and "/" not in module:
            return []
        for root in ("", *_ROOTS):
            found = self._ecma_file(root + bare)
            if found:
                return found
        if bare == module and module.startswith("@"):
            return []
        tails = [path for ending in _ECMA for path in self._ending(bare + ending)]
        tails += [path for ending in _ECMA[1:] for path in self._ending(f"{bare}/index{ending}")]
        return tails if len(tails) == 1 else []

    def _ecma_file(self, base: str) -> list[str]:
        stem, ending = posixpath.splitext(base)
        bases = [base, *([stem] if ending in (".js", ".jsx", ".mjs", ".cjs") else [])]
        base_dir = "" if base == "." else f"{base}/"
        for candidate in [b + e for b in bases for e in _ECMA] + [f"{base_dir}index{e}" for e in _ECMA[1:]]:
            if candidate in self._paths:
                return [candidate]
        return []

    def _ending(self, tail: str) -> list[str]:
        """Files whose path is `tail` or ends with it."""
        return [
            path
            for path in self._by_name.get(tail.rpartition("/")[2], ())
            if path == tail or path.endswith("/" + tail)
        ]

    def included(self, importer: str, module: str, _names: Sequence[str]) -> list[str]:
        """C's and C++'s headers, shell and PHP includes: beside the importer, else by the end of the path."""
        module = re.sub(r"^\$\{?\w+\}?/|^\$\([^)]*\)/|^/", "", module)
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(importer), module))
        if beside in self._paths:
            return [beside]
        return self._ending(posixpath.normpath(module).replace("../", ""))

    def ruby(self, importer: str, module: str, _names: Sequence[str]) -> list[str]:
        """`require` and `require_relative`, which the index doesn't tell apart."""
        return self.included(importer, module if module.endswith(".rb") else module + ".rb", ())

    def go(self, _importer: str, module: str, _names: Sequence[str]) -> list[str]:
        """The files of the folder with which the package's path ends."""
        for folder in self._folder_ending(module.split("/")):
            files = [path for path in self._folders[folder] if path.endswith(".go")]
            if files:
                return [path for path in files if not path.endswith("_test.go")] or files
        return []

    def _folder_ending(self, parts: Sequence[str]) -> Iterator[str]:
        """Folders whose path is an end of `parts`, the longest first."""
        for start in range(len(parts)):
            folder = "/".join(parts[start:])
            if folder in self._folders:
                yield folder

    def jvm(self, importer: str, module: str, names: Sequence[str]) -> list[str]:
        """`a.b.C` is a file a/b/C.java somewhere (or a class inside one), `a.b.*` the files of a folder."""
        endings = _JVM.get(language_of(importer) or "", (".java",))
        place = module.replace(".", "/")
        found: list[str] = []
        for name in names or ("",):
            if name == "*":
                found += [
                    path
                    for folder in self._by_folder_name.get(place.rpartition("/")[2], ())
                    if folder == place or folder.endswith("/" + place)
                    for path in self._folders[folder]
                    if path.endswith(endings)
                ]
                name = ""
            whole = f"{place}/{name}" if name else place
            for tail in (whole, place):
                found += [path for ending in endings for path in self._ending(tail + ending)]
        return found

    def php(self, importer: str, module: str, names: Sequence[str]) -> list[str]:
        """A class by the longest end of its namespace that is a path (PSR-4), or an included file."""
        if module.endswith(".php") or (not names and "/" in module):
            return self.included(importer, module, ())
        found: list[str] = []
        for name in names or ("",):
            parts = [*re.split(r"\\", module), *([name] if name else [])]
            for start in range(len(parts)):
                tail = self._ending("/".join(parts[start:]) + ".php")
                if tail:
                    found += tail
                    break
        return found

    def rust(self, importer: str, module: str, names: Sequence[str]) -> list[str]:
        """Modules below the crate, the parent or the file itself."""
        folder, _, base = importer.rpartition("/")
        stem = base.removesuffix(".rs")
        own = folder if stem in ("mod", "lib", "main") else f"{folder}/{stem}" if folder else stem
        head, *rest = module.split("::")
        if head == "crate":
            start = self._crate(folder)
        elif head == "super":
            start = posixpath.dirname(own)
            while rest[:1] == ["super"]:
                start, rest = posixpath.dirname(start), rest[1:]
        elif head == "self":
            start = own
        else:
            start, rest = own, [head, *rest]
        found: list[str] = []
        for name in names or ("",):
            parts = [*rest, *([name] if name and name != "*" else [])]
            for end in range(len(parts), 0, -1):
                place = posixpath.join(start, *parts[:end])
                files = [path for path in (f"{place}.rs", f"{place}/mod.rs") if path in self._paths]
                if files:
                    found += files
                    break
        return found

    def _crate(self, folder: str) -> str:
        while folder and not {f"{folder}/lib.rs", f"{folder}/main.rs"} & self._paths:
            folder = posixpath.dirname(folder)
        return folder


_RESOLVERS: dict[str, Callable[[Modules, str, str, Sequence[str]], Iterable[str]]] = {
    "python": Modules.python,
    "javascript": Modules.ecma, "typescript": Modules.ecma, "tsx": Modules.ecma,
    "c": Modules.included, "cpp": Modules.included, "bash": Modules.included,
    "ruby": Modules.ruby, "go": Modules.go, "php": Modules.php, "rust": Modules.rust,
    "java": Modules.jvm, "kotlin": Modules.jvm, "scala": Modules.jvm,
}  # fmt: skip


def importers(view: ImportView, target: str) -> list[Importer]:
    """The files that import `target`: a file of the tree, or a module as imports name it ("package.module",
    "numpy"). By path, each with its first such statement.

    Raises ToolRefused when there is no such file and no import of that name.
    """
    wanted = posixpath.normpath(target.strip()).removeprefix("./")
    infos = {info.path: info for info in view.files()}
    if wanted in infos:
        return list(_of_file(view, infos, wanted))
    known = Modules(infos)
    modules = [path for path in known.resolve("", "python", Import(target, 0)) if path in infos]
    found = {item.path: item for path in modules for item in _of_file(view, infos, path)}
    if not modules:
        found = {item.path: item for item in _of_name(view, infos, target)}
        if not found:
            raise ToolRefused(
                f"there is no file {target!r}, and nothing imports a module of that name",
                "Give a path relative to the root of the repository, or a module's name.",
            )
    return [found[path] for path in sorted(found)]


def _of_file(view: ImportView, infos: dict[str, FileInfo], target: str) -> Iterator[Importer]:
    modules = Modules(infos)
    for path in sorted(_candidates(view, infos, target) - {target}):
        info = infos.get(path)
        if info is None or info.language is None:
            continue
        for statement in view.imports(path):
            if target in modules.resolve(path, info.language, statement):
                yield Importer(path, statement)
                break


def _candidates(view: ImportView, infos: dict[str, FileInfo], target: str) -> set[str]:
    """Files that may import the target, since they have the words of its name."""
    folder, _, base = target.rpartition("/")
    stem = base.partition(".")[0]
    names = {stem} if stem not in _INDEXES else set()
    if stem in _INDEXES or infos[target].language in ("go", "java", "kotlin", "scala"):
        names.add(folder.rpartition("/")[2])
    found: set[str] = set()
    for name in names:
        words = re.findall(r"[A-Za-z0-9_\u0080-\U0010ffff]+", name)
        if not words:
            return set(infos)
        holders = [view.files_with(word) for word in words]
        found |= frozenset.intersection(*holders)
    if stem in _INDEXES:  # "from . import x", "./" name no word of it
        prefix = f"{folder}/" if folder else ""
        found |= {path for path in infos if path.startswith(prefix)}
    return found


def _of_name(view: ImportView, infos: dict[str, FileInfo], module: str) -> Iterator[Importer]:
    words = re.findall(r"[A-Za-z0-9_\u0080-\U0010ffff]+", module)
    if not words:
        return
    below = tuple(module + sign for sign in (".", "/", "::", "\\"))
    for path in sorted(frozenset.intersection(*(view.files_with(word) for word in words))):
        if path not in infos or infos[path].language is None:
            continue
        for statement in view.imports(path):
            whole = [f"{statement.module}.{name}" for name in statement.names]
            if statement.module == module or statement.module.startswith(below) or module in whole:
                yield Importer(path, statement)
                break

"""Is an edited test the old one under new names? Read, not run: the same statements and literals, where each
name that differs was taken out of the sources, its new one came in, and both stand for each other only.

Python only. What it can't read, it does not call the same.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from attrs import define, field

from agent_ls.guard.review import removed_names
from agent_ls.guard.trees import Tree, changed_paths
from agent_ls.guard.world import World
from agent_ls.workspace.paths import is_test_config, is_test_path

_NAMES = frozenset({"id", "attr", "arg", "name", "asname", "module"})
_Import = tuple[str | None, int, str]
"""Module (None: `import x`), level, name."""


def renamed_tests(before: Tree, after: Tree, labels: Mapping[str, str]) -> frozenset[str]:
    """The new labels of those tests that are the same but for names.

    Args:
        labels: old -> new label ("path::Class::name") of edited tests.
    """
    changed = changed_paths(before, after)
    names = _Names.of(before, after, changed)
    files: dict[tuple[str, str], _Pair | None] = {}
    found = set()
    for old, new in labels.items():
        paths = (old.partition("::")[0], new.partition("::")[0])
        if paths not in files:
            files[paths] = _pair(before, after, *paths, names)
        pair = files[paths]
        if pair is not None and pair.same(old.partition("::")[2], new.partition("::")[2]):
            found.add(new)
    others = [path for path in changed if is_test_path(path) or is_test_config(path)]
    others = [path for path in others if not any(path in paths for paths in files)]
    return frozenset(found) if all(_same_file(before, after, path, names) for path in others) else frozenset()


@define
class _Names:
    """What the sources lost and got, and what was found to stand for what so far."""

    gone: frozenset[str]
    fresh: frozenset[str]
    sources: frozenset[str]
    """Paths of the new tree's sources."""
    forward: dict[str, str] = field(factory=dict)
    backward: dict[str, str] = field(factory=dict)

    @classmethod
    def of(cls, before: Tree, after: Tree, changed: list[str]) -> _Names:
        old, new = World(before), World(after)
        left, came = set(before.paths()) - set(after.paths()), set(after.paths()) - set(before.paths())
        gone = removed_names(old, new, changed) | _modules(left) - _modules(after.paths())
        fresh = removed_names(new, old, changed) | _modules(came) - _modules(before.paths())
        sources = {path for path in after.paths() if not is_test_path(path) and not is_test_config(path)}
        return cls(frozenset(gone), frozenset(fresh), frozenset(sources))

    def stand(self, old: str, new: str) -> bool:
        """May `new` stand for `old`, here and everywhere?"""
        if old == new:
            return old not in self.forward and new not in self.backward
        known = self.forward.get(old)
        if known is not None or new in self.backward:
            return known == new and self.backward.get(new) == old
        if old not in self.gone or new not in self.fresh:
            return False
        self.forward[old], self.backward[new] = new, old
        return True

    def text(self, old: str, new: str) -> bool:
        """Are two texts the same, or the same dotted path under new names ("shop.cart.total")?"""
        if old == new:
            return True
        parts = old.split("."), new.split(".")
        plain = all(part.isidentifier() for part in [*parts[0], *parts[1]])
        return plain and len(parts[0]) == len(parts[1]) > 1 and all(map(self.stand, *parts))

    def is_source(self, module: str | None, name: str) -> bool:
        """Does an import bring something of the project's sources?"""
        places = [module] if module is not None else [name]
        if module is not None:
            places.append(f"{module}.{name}")
        ends = [place.lstrip(".").replace(".", "/") for place in places if place]
        return any(
            path == f"{end}.py"
            or path.endswith((f"/{end}.py", f"/{end}/__init__.py"))
            or path == f"{end}/__init__.py"
            for end in ends
            for path in self.sources
        )


def _modules(paths: Iterable[str]) -> set[str]:
    return {
        part.removesuffix(".py")
        for path in paths
        if path.endswith(".py") and not is_test_path(path)
        for part in PurePosixPath(path).parts
    }


@define
class _Pair:
    """Both forms of one test file whose other statements are the same."""

    old: ast.Module
    new: ast.Module
    names: _Names

    def same(self, old: str, new: str) -> bool:
        one, two = _function(self.old, old), _function(self.new, new)
        if one is None or two is None:
            return False
        return _alike(one, two, self.names, top=True)


def _pair(before: Tree, after: Tree, old: str, new: str, names: _Names) -> _Pair | None:
    trees = _parsed(before.read(old)), _parsed(after.read(new))
    if trees[0] is None or trees[1] is None:
        return None
    imports = _imports(trees[0]), _imports(trees[1])
    if not all(names.is_source(module, name) for module, _, name in imports[1] - imports[0]):
        return None
    rest = list(_rest(trees[0])), list(_rest(trees[1]))
    if len(rest[0]) != len(rest[1]):
        return None
    if not all(_alike(one, two, names) for one, two in zip(*rest, strict=True)):
        return None
    return _Pair(trees[0], trees[1], names)


def _same_file(before: Tree, after: Tree, path: str, names: _Names) -> bool:
    """Is another file of the tests' side the same but for names? New ones are nobody's."""
    old, new = before.read(path), after.read(path)
    if old is None:
        return PurePosixPath(path).name not in ("conftest.py", "sitecustomize.py", "usercustomize.py")
    if new is None or not path.endswith(".py"):
        return False
    pair = _pair(before, after, path, path, names)
    if pair is None:
        return False
    one, two = list(_tests(pair.old)), list(_tests(pair.new))
    return len(one) == len(two) and all(_alike(a, b, names, top=True) for a, b in zip(one, two, strict=True))


def _parsed(data: bytes | None) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(data) if data is not None else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _imports(tree: ast.Module) -> set[_Import]:
    found: set[_Import] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update((None, 0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update((node.module or "", node.level, alias.name) for alias in node.names)
    return found


def _is_test(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")


def _rest(tree: ast.Module) -> Iterator[ast.stmt]:
    """What is no test and no import: constants, helpers, fixtures, the other statements of classes."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            bare = [stmt for stmt in node.body if not _is_test(stmt)]
            yield ast.ClassDef(node.name, node.bases, node.keywords, bare, node.decorator_list)
        elif not (_is_test(node) or isinstance(node, ast.Import | ast.ImportFrom)):
            yield node


def _tests(tree: ast.Module) -> Iterator[ast.stmt]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from filter(_is_test, node.body)
        elif _is_test(node):
            yield node


def _function(tree: ast.Module, name: str) -> ast.stmt | None:
    body: list[ast.stmt] = tree.body
    found: ast.stmt | None = None
    for part in name.split("::"):
        same = [node for node in body if getattr(node, "name", None) == part]
        if len(same) != 1:  # of two with one name only the last is run
            return None
        found = same[0]
        body = getattr(found, "body", [])
    return found


def _alike(one: object, two: object, names: _Names, *, top: bool = False) -> bool:
    """Are two syntax trees the same but for names? At the `top` a test's own name is its partner's."""
    if type(one) is not type(two):
        return False
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(_alike(a, b, names) for a, b in zip(one, two, strict=True))
    if not isinstance(one, ast.AST):
        return one == two
    if isinstance(one, ast.Constant) and isinstance(two, ast.Constant):
        if isinstance(one.value, str) and isinstance(two.value, str):
            return names.text(one.value, two.value)
        return type(one.value) is type(two.value) and one.value == two.value
    if isinstance(one, ast.Import | ast.ImportFrom):
        return True  # those of both files were compared
    for key in one._fields:
        a, b = getattr(one, key, None), getattr(two, key, None)
        if key == "name" and top:
            continue
        if key in _NAMES and isinstance(a, str) and isinstance(b, str):
            if not names.stand(a, b):
                return False
        elif not _alike(a, b, names):
            return False
    return True

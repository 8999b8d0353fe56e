"""Which tests a change can reach, and which of the old ones is which of the new ones (Python)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from attrs import define, field

from agent_ls.behaviour.sides import Sides, is_test_module
from agent_ls.guard.identity import match_tests
from agent_ls.guard.model import Test
from agent_ls.guard.trees import Tree
from agent_ls.guard.world import World
from agent_ls.workspace.paths import is_test_path

MAX_READ = 2000
"""So many test files are searched for the name of a changed data file."""


@define
class Reach:
    """What a change can reach among the tests.

    `files` are the test files (and folders) to run, by tree; None means all. `partners` leads from a test's
    label in the old tree ("path::id") to that in the new one; what is not in it keeps its label. `everything`
    holds the paths all of whose tests count as edited because something that they use changed.
    """

    before: World
    after: World
    files: dict[str, list[str] | None] = field(factory=dict)
    partners: dict[str, str] = field(factory=dict)
    deleted: set[str] = field(factory=set)
    everything: set[str] = field(factory=set)
    folders: set[str] = field(factory=set)
    all_edited: bool = False
    tests: dict[str, Test] = field(factory=dict)
    """Tests of the new tree by label, those that are gone as they were in the old one."""
    _forms: dict[tuple[str, str], tuple[dict[str, str], str]] = field(factory=dict)

    def whole(self, side: str) -> bool:
        """Do the files to run hold all the tests that there are?"""
        files = self.files[side]
        if files is None:
            return True
        world = self.before if side == "before" else self.after
        folders = tuple(f"{path}/" for path in files if not path.endswith(".py"))
        modules = (path for path in world.all_paths if is_test_module(path))
        return all(path in files or path.startswith(folders) for path in modules)

    def edited(self, old: str, new: str) -> bool:
        """Did the test's own text, or something that it uses, change?"""
        paths = (old.partition("::")[0], new.partition("::")[0])
        if self.all_edited or paths[0] != paths[1] or paths[0] in self.everything or old != new:
            return True
        if any(paths[0].startswith(folder) for folder in self.folders):
            return True
        texts = [world.tree.read(paths[0]) for world in (self.before, self.after)]
        if texts[0] == texts[1]:
            return False
        one, two = self._form(self.before, paths[0]), self._form(self.after, paths[0])
        name = old.partition("::")[2]
        return one[1] != two[1] or one[0].get(name) != two[0].get(name) or name not in one[0]

    def _form(self, world: World, path: str) -> tuple[dict[str, str], str]:
        key = ("before" if world is self.before else "after", path)
        if key not in self._forms:
            self._forms[key] = forms(world.tree.read(path) or b"")
        return self._forms[key]

    def words(self, labels: Iterable[str]) -> set[str]:
        """Identifiers that the tests' bodies use."""
        return {word for label in labels if label in self.tests for word in self.tests[label].tokens}


def reach(before: Tree, after: Tree, sides: Sides) -> Reach:
    """What the change of the tests' side can reach. Nothing is run."""
    old, new = World(before), World(after)
    found = Reach(old, new)
    modules = [path for path in sides.tests if is_test_module(path)]
    _pair(found, modules)
    paths: set[str] | None = set(modules)
    helpers = [
        path
        for path in sides.tests
        if path.endswith(".py") and path not in modules and is_test_path(path) and not _package_mark(path)
    ]
    data = [path for path in sides.tests if is_test_path(path) and not path.endswith(".py")]
    for path in helpers:
        folder = str(PurePosixPath(path).parent)
        if PurePosixPath(path).name == "conftest.py":
            if folder == ".":
                found.all_edited, paths = True, None
                break
            found.folders.add(folder + "/")
            paths.add(folder)  # type: ignore[union-attr]
        else:
            users = users_of(new, PurePosixPath(path).stem) | users_of(old, PurePosixPath(path).stem)
            if not users:
                found.all_edited, paths = True, None
                break
            found.everything |= users
            paths |= users  # type: ignore[operator]
    for path in data if paths is not None else ():
        users = _readers(old, path) | _readers(new, path)
        if not users:
            found.all_edited, paths = True, None
            break
        found.everything |= users
        paths |= users  # type: ignore[operator]
    if sides.settings:
        paths = None
    for side, world in (("before", old), ("after", new)):
        if paths is None:
            found.files[side] = None
            continue
        there = world.all_paths
        folders = {str(parent) for path in there for parent in PurePosixPath(path).parents}
        found.files[side] = sorted(path for path in paths if path in there or path in folders)
    if found.files["before"] and not found.files["after"]:
        found.files["after"] = None  # what was deleted is compared with all that is left
    return found


def _package_mark(path: str) -> bool:
    return PurePosixPath(path).name == "__init__.py"


def _pair(found: Reach, modules: list[str]) -> None:
    tests: list[list[Test]] = []
    for world in (found.before, found.after):
        files = [world.collect(path) for path in modules if path in world.all_paths]
        tests.append([test for file in files if file is not None for test in file.tests])
    pairs, gone, _ = match_tests(tests[0], tests[1])
    found.partners = {one.label: two.label for one, two in pairs}
    found.deleted = {test.label for test in gone}
    found.tests = {test.label: test for test in [*gone, *tests[1]]}


def forms(data: bytes) -> tuple[dict[str, str], str]:
    """(tests by id, everything else) of a Python file, without layout; the text if it is none."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}, data.decode("utf-8", "replace")
    found: dict[str, str] = {}

    def take(body: list[ast.stmt], prefix: str) -> None:
        for node in list(body):
            if isinstance(node, ast.ClassDef):
                take(node.body, f"{prefix}{node.name}::")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                found[prefix + node.name] = ast.dump(node)
                body.remove(node)

    take(tree.body, "")
    return found, ast.dump(tree)


def users_of(world: World, name: str) -> set[str]:
    """Test modules of a tree that have the word `name`."""
    return _with_word(world, [name])


def _readers(world: World, path: str) -> set[str]:
    """Test modules that name a data file, or the folder it is in."""
    place = PurePosixPath(path)
    found = _with_word(world, [place.name]) or _with_word(world, [place.stem])
    return found or _with_word(world, [place.parent.name])


def _with_word(world: World, words: list[str]) -> set[str]:
    patterns = [re.compile(rb"(?<!\w)" + re.escape(word.encode()) + rb"(?!\w)") for word in words]
    modules = sorted(path for path in world.all_paths if is_test_module(path))[:MAX_READ]
    return {
        path
        for path in modules
        if (data := world.tree.read(path)) is not None and any(p.search(data) for p in patterns)
    }

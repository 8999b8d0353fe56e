"""Which tests a change can reach, and which of the old ones is which of the new ones (Python)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from attrs import define, field, frozen

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
    _forms: dict[tuple[str, str], Forms] = field(factory=dict)

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
        return differs(self._form(self.before, paths[0]), self._form(self.after, paths[0]), old)

    def _form(self, world: World, path: str) -> Forms:
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


def differs(old: Forms, new: Forms, label: str) -> bool:
    """Is a test another one: its own text, or anything in its file that it can be affected by?"""
    name = label.partition("::")[2]
    if name not in old.tests or name not in new.tests or old.rest != new.rest:
        return True
    if old.tests[name].text != new.tests[name].text:
        return True
    seen: set[str] = set()
    names = {*old.tests[name].names, *new.tests[name].names, *name.split("::")[:-1]}
    while names:
        word = names.pop()
        seen.add(word)
        parts = [form.parts.get(word, _NONE) for form in (old, new)]
        if parts[0].text != parts[1].text:
            return True
        names |= (parts[0].names | parts[1].names) - seen
    return False


@frozen
class Piece:
    """A statement's text without layout, and the names that it uses (arguments and words in quotes too)."""

    text: str
    names: frozenset[str] = frozenset()


_NONE = Piece("")


@frozen
class Forms:
    """A Python file taken apart: tests by id; what else has a name, by name; and the rest, which may affect
    every test (marks, autouse fixtures, set-up functions, plain statements)."""

    tests: dict[str, Piece]
    parts: dict[str, Piece]
    rest: str


def forms(data: bytes) -> Forms:
    """The forms of a file; its text is the rest when it is no Python."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Forms({}, {}, data.decode("utf-8", "replace"))
    found = Forms({}, {}, "")
    rest: list[str] = []

    def take_tests(body: list[ast.stmt], prefix: str) -> None:
        for node in list(body):
            if isinstance(node, ast.ClassDef):
                take_tests(node.body, f"{prefix}{node.name}::")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                found.tests[prefix + node.name] = _piece(node)
                body.remove(node)

    take_tests(tree.body, "")
    for node in tree.body:
        names = _defines(node)
        if not names or _for_all(node, names):
            rest.append(ast.dump(node))
            continue
        for name in names:
            before = found.parts.get(name, _NONE)
            piece = _piece(node)
            found.parts[name] = Piece(before.text + piece.text, before.names | piece.names)
    return Forms(found.tests, found.parts, "".join(rest))


def _piece(node: ast.AST) -> Piece:
    names: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            names.add(inner.id)
        elif isinstance(inner, ast.arg):
            names.add(inner.arg)
        elif isinstance(inner, ast.Constant) and isinstance(inner.value, str) and inner.value.isidentifier():
            names.add(inner.value)
    return Piece(ast.dump(node), frozenset(names))


def _defines(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [alias.asname or alias.name.partition(".")[0] for alias in node.names]
        return [] if "*" in names else names
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
    if targets and all(isinstance(target, ast.Name) for target in targets):
        return [target.id for target in targets if isinstance(target, ast.Name)]
    return []


def _for_all(node: ast.stmt, names: list[str]) -> bool:
    """Does a definition work without being named by a test?"""
    if any(re.match(r"pytest|setup|teardown|setUp|tearDown|load_tests|__", name) for name in names):
        return not isinstance(node, ast.Import | ast.ImportFrom)
    decorators = getattr(node, "decorator_list", ())
    return any("autouse" in ast.dump(decorator) for decorator in decorators)


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

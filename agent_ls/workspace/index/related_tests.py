"""Tests for a symbol: functions that use it themselves, through a helper or fixture, or through a caller.

Statically by names, and by the lines that tests were seen to run where there is such a record.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from agent_ls.workspace.index.importers import Modules
from agent_ls.workspace.index.records import Definition, Found
from agent_ls.workspace.index.references import ReferenceView, files_naming, innermost, references, uses_in
from agent_ls.workspace.index.similar import find_definitions, normalised
from agent_ls.workspace.paths import is_test_path

Executed = Mapping[str, Mapping[str, Collection[int]]]
"""Test id -> path -> lines that it ran."""

_MAX_HELPERS = 20
_COMMON = 60
_SETUP = re.compile(
    r"(?:async)?_?set_?up(?:_?class|_?test_?data|_?module|_?method)?|(?:before|after)(?:Each|All)?|tear_?down\w*",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_OWN = re.compile(r"\b(?:self|cls|this)(?:\.|->)$")


@frozen
class RelatedTest:
    """A test (`definition` None: something at the top of a test file) that `reason` connects with the symbol;
    `distance` is 0 for one that uses it or ran it, 1 through a helper, 2 through another function. `id` is
    the runner's where that is known, else path and qualified name joined by "::"."""

    id: str
    path: str
    definition: Definition | None
    line: int
    distance: int
    reason: str


def related_tests(
    view: ReferenceView, name: str, *, executed: Executed | None = None, limit: int = 200
) -> list[RelatedTest]:
    """The tests that touch `name`, nearest first, then by path and line; at most `limit`.

    `executed`: lines that tests ran in their last traced run. Raises ToolRefused for an empty name.
    """
    wanted = normalised(name)
    found: dict[str, RelatedTest] = {}

    def add(tests: Iterable[RelatedTest]) -> None:
        for test in tests:
            known = found.get(test.id)
            if known is None or test.distance < known.distance:
                found[test.id] = test

    add(_executed(view, wanted, executed or {}))
    helpers, outside = _Helpers(), _Helpers()
    add(_using(view, wanted, 0, f"uses {wanted}", helpers, outside))
    modules = Modules(info.path for info in view.files() if helpers.items())
    for path, helper in helpers.items():
        add(_through(view, modules, helper, path, wanted))
    for caller in outside.names():
        if len(view.files_with(caller)) <= _COMMON:
            add(_using(view, caller, 2, f"uses {caller}, which uses {wanted}", _Helpers(), _Helpers()))
    ranked = sorted(found.values(), key=lambda test: (test.distance, test.path, test.line))
    return ranked[:limit]


class _Helpers:
    """Functions that use what is looked for, and where."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], Definition] = {}

    def add(self, helper: Definition, path: str) -> None:
        self._places.setdefault((path, helper.qualified), helper)

    def items(self) -> list[tuple[str, Definition]]:
        return [(path, helper) for (path, _name), helper in self._places.items()][:_MAX_HELPERS]

    def names(self) -> list[str]:
        return list(dict.fromkeys(helper.name for _path, helper in self.items()))


def _using(
    view: ReferenceView, wanted: str, distance: int, reason: str, helpers: _Helpers, outside: _Helpers
) -> Iterator[RelatedTest]:
    """Tests with a use of the name; other definitions with one go to `helpers` (of tests) and `outside`."""
    outlines: dict[str, Sequence[Definition]] = {}
    for use in references(view, wanted, limit=5000).found:
        if use.path not in outlines:
            outlines[use.path] = view.outline(use.path)
        line = use.reference.line
        if not is_test_path(use.path):
            inner = innermost(outlines[use.path], line)
            if inner is not None and inner.name not in ("__init__", wanted.rsplit(".", 1)[-1]):
                outside.add(inner, use.path)
            continue
        test, helper = _test_around(outlines[use.path], line)
        if test is not None:
            through = f"{reason} (in {helper.name})" if helper is not None else reason
            yield _related(use.path, test, test.name_line, distance, through)
        elif helper is not None:
            helpers.add(helper, use.path)
        elif use.reference.kind != "import":
            yield _related(use.path, None, line, distance, reason)


def _test_around(definitions: Sequence[Definition], line: int) -> tuple[Definition | None, Definition | None]:
    """(the test around a line, a function in it or beside it that has the line and isn't the test)."""
    around = sorted(
        (it for it in definitions if it.line <= line <= it.end_line), key=lambda it: (it.line, -it.end_line)
    )
    functions = [it for it in around if it.kind in ("function", "method")]
    for it in functions:
        if _is_test(it):
            return it, None
    classes = [it for it in around if it.kind == "class"]
    if functions and not (classes and _SETUP.fullmatch(functions[0].name)):
        return None, functions[0]
    if classes and _is_test_class(classes[0], definitions):
        return classes[0], functions[0] if functions else None
    return None, functions[0] if functions else classes[0] if classes else None


def _is_test(definition: Definition) -> bool:
    return definition.name.startswith(("test", "Test", "Benchmark", "Fuzz", "Example")) or (
        "@Test" in definition.signature or "#[test]" in definition.signature
    )


def _is_test_class(definition: Definition, definitions: Sequence[Definition]) -> bool:
    return any(
        it.container is not None and it.container.split(".")[0] == definition.name and _is_test(it)
        for it in definitions
    ) or definition.name.startswith("Test")


def _through(
    view: ReferenceView, modules: Modules, helper: Definition, path: str, wanted: str
) -> Iterator[RelatedTest]:
    """Tests that use a helper of the file `path`, or take a fixture of its name as a parameter: in the same
    file, below a conftest.py, or in a file that imports it."""
    name = helper.name
    reason = f"through {name}, which uses {wanted}"
    folder, _, base = path.rpartition("/")
    for other in sorted(files_naming(view, name)):
        if not is_test_path(other):
            continue
        if other != path and not (base == "conftest.py" and other.startswith(f"{folder}/" if folder else "")):
            info = view.file(other)
            language = info.language if info is not None else None
            if not any(path in modules.resolve(other, language, it) for it in view.imports(other)):
                continue
        outline = view.outline(other)
        tests: dict[str, Definition] = {}
        for definition in outline:
            parameters = _WORD.findall(definition.signature.partition("(")[2])
            if _is_test(definition) and definition.kind in ("function", "method") and name in parameters:
                tests[definition.qualified] = definition
        for use in uses_in(view, other, name):
            # An attribute of that name is another thing, unless the helper is a method.
            own = helper.container is None and _OWN.search(use.text[: use.reference.column - 1])
            if use.reference.kind != "import" and not own:
                test, _inside = _test_around(outline, use.reference.line)
                if test is not None:
                    tests[test.qualified] = test
        for test in tests.values():
            yield _related(other, test, test.name_line, 1, reason)


def _executed(view: ReferenceView, wanted: str, executed: Executed) -> Iterator[RelatedTest]:
    if not executed:
        return
    matches = find_definitions(view, wanted)
    for found in matches.found if matches.how in ("exact", "case") else ():
        body = _body(found)
        for test, files in executed.items():
            if not body.isdisjoint(files.get(found.path, ())):
                path = test.partition("::")[0]
                definition = _named(view, path, test)
                line = definition.name_line if definition is not None else 1
                yield RelatedTest(test, path, definition, line, 0, f"ran {wanted} when it was last traced")


def _body(found: Found) -> set[int]:
    """The lines that run when it is called; the first runs on import too."""
    definition = found.definition
    return set(
        range(definition.name_line + (definition.end_line > definition.name_line), definition.end_line + 1)
    )


def _named(view: ReferenceView, path: str, test: str) -> Definition | None:
    qualified = ".".join(test.partition("[")[0].split("::")[1:])
    return next((it for it in view.outline(path) if it.qualified == qualified), None)


def _related(path: str, definition: Definition | None, line: int, distance: int, reason: str) -> RelatedTest:
    name = definition.qualified.replace(".", "::") if definition is not None else f"line {line}"
    return RelatedTest(f"{path}::{name}", path, definition, line, distance, reason)

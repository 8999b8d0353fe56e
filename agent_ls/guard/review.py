"""`agent-ls guard`: what did a change from one tree to another do to the tests?

Only changed files are parsed, and files that changed tests get helpers from. The parts: tests (`compare`),
configuration (`configuration`), hooks and exits (`hooks`), expected data (`golden`), sources (`sources`).
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import PurePosixPath

from attrs import evolve

from agent_ls.guard.align import Pool
from agent_ls.guard.checks import RANK, Check
from agent_ls.guard.compare import Compared, checks_of
from agent_ls.guard.identity import TWIN, match_tests, similarity
from agent_ls.guard.lines import new_lines, text_of
from agent_ls.guard.model import File, Test
from agent_ls.guard.protected import Finding
from agent_ls.guard.trees import Tree, changed_paths
from agent_ls.guard.world import World
from agent_ls.workspace.grammars import language_of
from agent_ls.workspace.paths import is_test_config, is_test_path

_ORDER = {"block": 0, "review": 1, "info": 2}


def review(before: Tree, after: Tree) -> list[Finding]:
    """Findings about the change from `before` to `after`, the blocking ones first."""
    from agent_ls.guard.configuration import review_configuration
    from agent_ls.guard.golden import review_golden
    from agent_ls.guard.hooks import review_hooks
    from agent_ls.guard.sources import review_sources

    changed = changed_paths(before, after)
    old, new = World(before), World(after)
    findings = [
        *review_tests(old, new, changed),
        *review_configuration(old, new, changed),
        *review_hooks(old, new, changed),
        *review_golden(old, new, changed),
        *review_sources(old, new, changed),
    ]
    unique: dict[tuple[str, int, str], Finding] = {}
    for finding in findings:
        unique.setdefault((finding.path, finding.line, finding.kind), finding)
    return sorted(unique.values(), key=lambda f: (_ORDER[f.severity], f.path, f.line, f.kind))


def review_tests(old: World, new: World, changed: list[str]) -> list[Finding]:
    """Findings about tests and their helpers."""
    before, after = _collected(old, changed), _collected(new, changed)
    compared = Compared(
        before, after, lambda: requirements(new), cache(lambda: undefined_names(old, new, changed))
    )
    tests_before = [test for file in before.values() for test in file.tests]
    tests_after = [test for file in after.values() for test in file.tests]
    removed = removed_names(old, new, changed)
    pairs, gone, fresh = match_tests(tests_before, tests_after)
    left = {id(test) for test in gone}
    kept = [test for test in tests_before if id(test) not in left]
    pool = Pool.of(checks_of(tests_after))
    surplus = Pool.of(checks_of(tests_after), checks_of(kept))
    surplus.weigh(checks_of(tests_before), checks_of(tests_after))
    helpers = {(unit.path, unit.id) for file in before.values() for unit in file.units}
    uncollected = [
        unit
        for file in after.values()
        for unit in file.units
        if not unit.set_up and (unit.path, unit.id) not in helpers
    ]
    for one, two in pairs:
        compared.pair(one, two, surplus, removed)
    for path, file in after.items():
        was = before.get(path)
        for marker in file.markers:
            if marker.kind == "hidden" and not (was and any(m.text == marker.text for m in was.markers)):
                message = f"{marker.text} is hidden by a second one of the same name"
                compared.add("test-hidden", "block", path, marker.line, message, after=file.line(marker.line))
    broken = {
        path
        for path, file in before.items()
        if file.tests and path in new.all_paths and path not in after and new.parse(path) is None
    }
    for path in sorted(broken):
        number = len(before[path].tests)
        message = f"the file can't be parsed any more, so its {number} tests don't run"
        compared.add("tests-unreadable", "block", path, 1, message)
    for test in gone:
        if test.path in broken:
            continue
        alive = [check for check in test.checks if check.rank]
        twin = all(map(pool.has, alive)) and any(similarity(test, other) >= TWIN for other in tests_after)
        if not twin and alive and _elsewhere(new, after, test):
            continue
        compared.gone(test, pool if twin else surplus, removed, uncollected, _rewritten(test, fresh))
    called = {name for one, two in pairs for name in one.calls & two.calls}
    _units(compared, new, before, after, called, pool, removed)
    _mocks(compared, old, new, before, after, pairs)
    if any(_is_source(path) for path in changed):
        _soften(compared, surplus.fresh, gone)
    return list(compared.found.values())


def _is_source(path: str) -> bool:
    return language_of(path) not in (None, "json") and not is_test_path(path) and not is_test_config(path)


def _soften(compared: Compared, fresh: tuple[Check, ...], gone: list[Test]) -> None:
    """Where the source changed too, and a file's tests demand as much anew as they no longer do, they were
    rewritten with the behaviour: a person has to judge."""
    sizes = {test.label: sum(1 for check in test.checks if check.rank) for test in gone}
    lost: Counter[str] = Counter()
    for finding in compared.found.values():
        if finding.severity == "block" and finding.kind in _LOSSES:
            whole = finding.kind == "test-deleted"
            lost[finding.path] += sum(sizes.get(label, 1) for label in finding.tests) if whole else 1
    won = Counter(c.path for c in fresh if c.rank >= RANK["contains"] and not c.conditions)
    for key, finding in list(compared.found.items()):
        enough = won[finding.path] >= max(2, lost[finding.path])
        if finding.severity == "block" and finding.kind in _LOSSES and enough:
            text = f"{finding.message}; the source changed, and as much is demanded anew"
            compared.found[key] = evolve(finding, severity="review", message=text)


_LOSSES = {"test-deleted", "assertion-deleted"}


def _collected(world: World, changed: list[str]) -> dict[str, File]:
    found = {}
    for path in changed:
        if path not in world.all_paths or language_of(path) is None:
            continue
        if not (is_test_path(path) or _may_hold_tests(world, path)):
            continue
        file = world.collect(path)
        if file is not None:
            found[path] = file
    return found


def _may_hold_tests(world: World, path: str) -> bool:
    """Tests beside the code: Rust's modules, files that a runner would find by their names."""
    suffix = PurePosixPath(path).suffix
    if suffix == ".rs":
        data = world.tree.read(path)
        return (data is not None and b"#[test]" in data) or (data is not None and b"::test]" in data)
    return suffix in (".java", ".cs") and b"@Test" in (world.tree.read(path) or b"")


def _elsewhere(world: World, known: dict[str, File], test: Test) -> bool:
    """Is the same test in a file that the change did not touch?"""
    if len(test.name) < 8:
        return False
    word = re.compile(rf"\b{re.escape(test.name)}\b".encode())
    places = [path for path in sorted(world.all_paths) if is_test_path(path) and path not in known]
    for path in places[:MAX_USERS]:
        if word.search(world.tree.read(path) or b""):
            file = world.collect(path)
            twins = [t for t in file.tests if t.name == test.name] if file is not None else []
            if any(similarity(test, twin) >= TWIN for twin in twins):
                return True
    return False


def _asked(test: Test) -> set[str]:
    """Names of the functions whose answers a test checks."""
    return {
        part.callee.rpartition(".")[2]
        for check in test.checks
        if check.rank
        for part in check.subject.walk()
        if part.op == "call" and part.callee
    }


def _rewritten(old: Test, fresh: list[Test]) -> bool:
    """Are there new tests beside it that ask the same functions and demand as much?"""
    asked = _asked(old)
    near = [
        t
        for t in fresh
        if t.path == old.path
        and (len(t.calls & old.calls) >= 0.6 * max(1, len(old.calls)) or (asked and asked <= t.calls))
    ]
    wanted = sorted((check.rank for check in old.checks if check.rank), reverse=True)
    have = sorted((c.rank for t in near for c in t.checks if c.rank and not c.conditions), reverse=True)
    return (
        bool(wanted) and len(have) >= len(wanted) and all(a >= b for a, b in zip(have, wanted, strict=False))
    )


def _said(unit: Test) -> list[object]:
    said: list[object] = [(s.kind, s.conditions) for s in unit.stops]
    said += sorted(f"{name} {value.text}" for name, value in unit.made.items())
    return said + [[(c.key, c.lost, c.conditions) for c in checks] for checks in (unit.checks, unit.returns)]


MAX_USERS = 400


def _used(world: World, path: str, name: str) -> bool:
    """Is a helper named anywhere else in the tests? What a conftest holds is used by its name alone."""
    if path.endswith("conftest.py") or name.lower() in ("setup", "setupclass", "teardown", "beforeeach"):
        return True
    word = re.compile(rf"\b{re.escape(name)}\b".encode())
    if len(word.findall(world.tree.read(path) or b"")) > 1:
        return True
    others = sorted(other for other in world.all_paths if is_test_path(other) and other != path)
    return any(word.search(world.tree.read(other) or b"") for other in others[:MAX_USERS])


def _units(
    compared: Compared,
    world: World,
    before: dict[str, File],
    after: dict[str, File],
    called: set[str],
    pool: Pool,
    removed: set[str],
) -> None:
    """Helpers and fixtures that no changed test shows at work."""
    by_name = {unit.name: unit for file in after.values() for unit in file.units}
    for path, file in before.items():
        if not is_test_path(path):
            continue
        own = {unit.id: unit for unit in after[path].units} if path in after else {}
        for unit in file.units:
            other = own.get(unit.id) or by_name.get(unit.name)
            if other is None or unit.name in called or unit.name.startswith("test"):
                continue
            if _said(unit) != _said(other) and _used(world, other.path, other.name):
                compared.pair(unit, other, pool, removed)
    for path, file in after.items():
        known = {unit.id for unit in before[path].units} if path in before else set()
        for unit in file.units if path in before else ():
            if unit.set_up and unit.stops and unit.id not in known:
                compared.set_up(unit)


def _mocks(
    compared: Compared,
    old: World,
    new: World,
    before: dict[str, File],
    after: dict[str, File],
    pairs: list[tuple[Test, Test]],
) -> None:
    for path, file in after.items():
        known = before.get(path)
        fresh = known is None and not any(two.path == path for _, two in pairs)
        if fresh and PurePosixPath(path).name != "conftest.py":
            continue
        if not any(test.mocks for test in (*file.tests, *file.units)):
            continue
        imported, defined = tested_modules(new, file)
        for one, two in pairs:
            if two.path == path:
                compared.mocks(one.mocks, two.mocks, path, [two, one], imported, defined, two.label)
        units_before = [mock for unit in (known.units if known else ()) for mock in unit.mocks]
        units_before += [mock for test in (known.tests if known else ()) for mock in test.mocks]
        tests = [two for _, two in pairs if two.path == path]
        for unit in file.units:
            compared.mocks(units_before, unit.mocks, path, tests, imported, defined, "")


def tested_modules(world: World, file: File) -> tuple[set[str], set[str]]:
    """(module names as imported, functions defined in them) of the sources that a test file imports."""
    imported: set[str] = set()
    paths: set[str] = set()
    folder = PurePosixPath(file.path).parent
    if file.language == "python":
        for stmt in file.stmts:
            for inner in stmt.walk() if stmt.kind in ("import", "func", "try") else ():
                if inner.kind != "import":
                    continue
                for module in inner.name.split(","):
                    imported.add(module)
                    tail = module.lstrip(".").replace(".", "/")
                    for candidate in (
                        f"{tail}.py",
                        f"{tail}/__init__.py",
                        *(f"{tail}/{w.name}.py" for w in inner.exprs),
                    ):
                        paths.update(world.ending(candidate))
    elif file.language in ("javascript", "typescript", "tsx"):
        for match in re.finditer(r"""(?:from|require\()\s*['"](\.[^'"]+)['"]""", file.text):
            imported.add(match.group(1))
            parts = PurePosixPath(folder, match.group(1))
            clean: list[str] = []
            for part in parts.parts:
                if part == "..":
                    clean = clean[:-1]
                elif part != ".":
                    clean.append(part)
            stem = re.sub(r"\.[cm]?[jt]sx?$", "", "/".join(clean))
            paths.update(
                stem + s
                for s in (".js", ".ts", ".mjs", ".tsx", ".cjs", "/index.js", "/index.ts")
                if stem + s in world.all_paths
            )
    else:
        suffix = PurePosixPath(file.path).suffix
        paths.update(p for p in world.all_paths if p.endswith(suffix) and PurePosixPath(p).stem in file.text)
    defined: set[str] = set()
    for path in sorted(paths)[:30]:
        if not is_test_path(path):
            parsed = world.parse(path)
            defined |= set(parsed.functions) if parsed is not None else set()
    return imported, defined


def removed_names(old: World, new: World, changed: list[str]) -> set[str]:
    """Names that the change took out of the sources: functions, classes, parameters, fields.

    A name counts as gone when no changed source has it any more.
    """
    gone: set[str] = set()
    there: set[str] = set()
    deprecated: set[str] = set()
    for path in changed:
        if is_test_path(path) or language_of(path) is None:
            continue
        for world, into in ((old, gone), (new, there)):
            text = source_text(world, path)
            if len(text) < 1_000_000:
                into.update(re.findall(r"[A-Za-z_]\w{3,}", text))
        deprecated |= _deprecated(source_text(old, path), source_text(new, path))
    return {name for name in (gone - there) | deprecated if not name.startswith("__")}


_DEFINES = re.compile(
    r"\b(?:def|class|func|fn|function|struct|enum|interface|trait|module|type|macro_rules!)\s+"
    r"(?:\([^)\n]*\)\s*)?(\w{4,})"
    r"|(?:public|private|protected|internal|static)[\w<>\[\], ?]*\s(\w{4,})\s*\([^;{}]*\)"
    r"\s*(?:throws [\w, .]+)?\{"
)


def undefined_names(old: World, new: World, changed: list[str]) -> frozenset[str]:
    """Functions, classes and types that the changed sources defined and no longer do."""
    sides: list[set[str]] = []
    for world in (old, new):
        found: set[str] = set()
        for path in changed:
            if is_test_path(path) or language_of(path) is None:
                continue
            text = source_text(world, path)
            if len(text) < 1_000_000:
                found.update(word for pair in _DEFINES.findall(text) for word in pair if word)
        sides.append(found)
    return frozenset(sides[0] - sides[1])


def source_text(world: World, path: str) -> str:
    """A source file's text, without Rust's tests at its end."""
    text = text_of(world, path)
    return text.partition("#[cfg(test)]")[0] if path.endswith(".rs") else text


def _deprecated(before: str, after: str) -> set[str]:
    """Names beside which the change says that they are deprecated."""
    lines = after.splitlines()
    found: set[str] = set()
    for number, line in new_lines(before, after, comments=True):
        if re.search(r"deprecat", line, re.IGNORECASE):
            near = " ".join(lines[max(0, number - 8) : number + 8])
            found.update(re.findall(r"[\"'`](\w{2,})[\"'`]", line))
            pairs = re.findall(r"(?:def|class|func|function|fn) +(\w{4,})|[\"'`](\w{4,})[\"'`]", near)
            found.update(word for pair in pairs for word in pair if word)
    return found


def requirements(world: World) -> str:
    """What a tree's files say about the packages that it needs, small letters."""
    names = ("pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "Pipfile")
    paths = [
        path
        for path in world.all_paths
        if path in names or re.search(r"requirements[^/]*\.(?:txt|in)$|^requirements/", path)
    ]
    return "\n".join(text_of(world, path) for path in sorted(paths)[:40]).lower()

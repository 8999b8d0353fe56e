"""Test ids: what they name, and which ids an asked one stands for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent_ls.testing.results import TestRun


def file_of(test_id: str) -> str:
    """The path part of a pytest id; a unittest id (dotted) is returned as it is."""
    return test_id.partition("::")[0]


def matches(asked: str, test_id: str) -> bool:
    """Whether `asked` names the test: the id itself, all parameters of it, or what contains it.

    `tests`, `tests/test_x.py`, `tests/test_x.py::Case` and `tests/test_x.py::test_a` (with any
    parameters) for pytest; `tests`, `tests.test_x` and `tests.test_x.Case` for unittest, whose tests
    answer to the names with paths too.
    """
    if asked in (test_id, "."):
        return True
    if test_id.startswith((asked + "[", asked + "::", asked.rstrip("/") + "/")):
        return True
    if "::" in test_id:
        return False
    return any(test_id == name or test_id.startswith(name + ".") for name in dotted(asked))


def dotted(asked: str) -> tuple[str, ...]:
    """Names that unittest may have for `asked`: itself, or those of a path (`tests/test_x.py::Case`) as seen
    from each of the folders above it (`tests.test_x.Case`, `test_x.Case`)."""
    path, _, rest = asked.partition("::")
    if not path.endswith(".py"):
        return () if "/" in asked else (asked,)
    folders = path.removesuffix(".py").split("/")
    names = rest.split("::") if rest else []
    return tuple(".".join([*folders[start:], *names]) for start in range(len(folders)))


def expand_ids(asked: Iterable[str], run: TestRun) -> tuple[str, ...]:
    """The ids in `run` that `asked` stands for, in the runner's order; an unknown one stays as it is."""
    wanted = list(dict.fromkeys(asked))
    names = [test.id for test in run.tests]
    known = set(names)
    groups = [name for name in wanted if name not in known]
    exact = known.intersection(wanted)
    found = [name for name in names if name in exact or any(matches(group, name) for group in groups)]
    unknown = [group for group in groups if not any(matches(group, name) for name in names)]
    return (*dict.fromkeys(found), *unknown)


def normalise_id(raw: str, root: str) -> str:
    """A user's spelling of an id: backslashes, `./` and the root's absolute path are taken away."""
    path, separator, rest = raw.strip().partition("::")
    path = path.replace("\\", "/")
    prefix = root.replace("\\", "/").rstrip("/") + "/"
    path = path.removeprefix(prefix)
    while path.startswith("./"):
        path = path[2:]
    return path + separator + rest


def duplicates(names: Sequence[str]) -> set[str]:
    """Ids that occur more than once."""
    seen: set[str] = set()
    return {name for name in names if name in seen or seen.add(name)}  # type: ignore[func-returns-value]

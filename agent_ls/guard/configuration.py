"""Settings and CI files: does the runner still find and count the same tests?

Command lines are compared with what they were; patterns are tried on the test files that are there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from agent_ls.guard.chosen_files import hidden_files, lost_files, test_files
from agent_ls.guard.ci import (
    holds_commands,
    review_commands,
    review_ruby_files,
    review_switches,
    review_workflow,
)
from agent_ls.guard.commands import narrowing
from agent_ls.guard.lines import line_of, new_lines, text_of
from agent_ls.guard.losses import Severity
from agent_ls.guard.protected import Finding
from agent_ls.guard.settings_text import Settings, settings_of
from agent_ls.guard.world import World
from agent_ls.workspace.paths import is_test_config

_PYTEST_FILES = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
_PYTEST_SECTIONS = {"pytest.ini": "pytest", ".pytest.ini": "pytest",
    "pyproject.toml": "tool.pytest.ini_options",
                    "tox.ini": "pytest", "setup.cfg": "tool:pytest"}  # fmt: skip
_IGNORING = {"testpathignorepatterns", "exclude", "norecursedirs", "modulepathignorepatterns",
    "collect_ignore",
             "ignore", "watchpathignorepatterns", "excludes", "exclude_pattern"}  # fmt: skip
_CHOOSING = {"testpaths", "testmatch", "include", "spec", "python_files", "python_classes",
    "python_functions", "testregex",
             "roots", "files", "includes", "pattern", "testdir", "test-paths"}  # fmt: skip
_LIMITS = {"fail_under", "branches", "functions", "lines", "statements", "minimum_coverage", "minimum",
    "line", "branch",
           "threshold", "target", "coveragethreshold", "check-coverage", "fail-under"}  # fmt: skip
_NAMES = {
    "testnamepattern",
    "grep",
    "fgrep",
    "testnamepatterns",
    "groups",
    "excludedgroups",
    "tests",
    "test_name_pattern",
}
_SCRIPTED = (".js", ".ts", ".mjs", ".cjs", ".mts", ".cts", ".json", ".xml", ".mocharc")
_RAISED = {
    "rerunfailingtestscount",
    "retry",
    "retries",
    "testtimeout",
    "timeout",
    "hooktimeout",
    "reruns",
    "flaky_retries",
}
_OFF = {"xfail_strict", "forbidonly", "strict", "checkcoverage", "check-coverage", "errorondeprecated",
    "show_missing_never",
        "fail_ci_if_error", "failonerror", "failfast_never", "bail_never"}  # fmt: skip
_ON: dict[str, Severity] = {
    "passwithnotests": "block", "dangerouslyignoreunhandlederrors": "block", "allowonly": "review",
    "continue-on-error": "block", "allow_failure": "block", "continueonerror": "block", "skiptests": "block",
    "testfailureignore": "block", "ignorefailures": "block", "soft_fail": "block",
}  # fmt: skip


def review_configuration(old: World, new: World, changed: list[str]) -> list[Finding]:
    """Findings about files that say which tests are run, how, and what counts."""
    found: list[Finding] = []
    elsewhere = " ".join(
        line
        for path in changed
        for _, line in new_lines(text_of(old, path), text_of(new, path))
        if is_test_config(path) or holds_commands(path)
    )
    ours = [path for path in changed if is_test_config(path) or holds_commands(path)]
    for path in ours:
        before, after = text_of(old, path), text_of(new, path)
        if path.endswith((".lock", "-lock.json", "go.sum", "requirements.txt", "conftest.py")):
            continue
        found += review_commands(new, path, before, after, elsewhere)
        found += review_workflow(path, before, after)
        found += review_ruby_files(new, path, before, after)
        was, now = settings_of(old, path, before), settings_of(new, path, after)
        if PurePosixPath(path).name in _PYTEST_FILES:
            continue_with = _pytest(old, new, path, was, now)
            was, now = continue_with
        found += _settings(old, new, path, was, now, before, after)
        found += review_switches(path, before, after)
    return found


# -- settings
def _pytest(old: World, new: World, path: str, was: Settings, now: Settings) -> tuple[Settings, Settings]:
    """pytest reads one file only: compare what was in force with what is in force now."""

    def in_force(world: World) -> tuple[str, Settings]:
        folder = str(PurePosixPath(path).parent)
        for name in _PYTEST_FILES:
            full = name if folder == "." else f"{folder}/{name}"
            text = text_of(world, full)
            section = _PYTEST_SECTIONS[name]
            if text and (f"[{section}" in text or name.endswith("pytest.ini")):
                values = settings_of(world, full, text)
                return full, {
                    k.removeprefix(f"{section}."): v for k, v in values.items() if k.startswith(section)
                }
        return "", {}

    def others(values: Settings) -> Settings:
        section = _PYTEST_SECTIONS[PurePosixPath(path).name]
        return {key: value for key, value in values.items() if not key.startswith(section)}

    (_, one), (place, two) = in_force(old), in_force(new)
    if place and place != path and path in new.all_paths:
        return others(was), others(now)
    return {**others(was), **one}, {**others(now), **two}


def _settings(
    old: World, new: World, path: str, was: Settings, now: Settings, before: str, after: str
) -> list[Finding]:
    found = []
    for key in sorted({*was, *now}):
        one, two = was.get(key, []), now.get(key, [])
        if one == two:
            continue
        last = re.sub(r"[^\w.-]", "", key).lower().rpartition(".")[2]
        for kind, severity, message in _judge(old, new, key, last, one, two, path):
            line = line_of(after, two[-1]) if two and two[-1] else line_of(after, key.rpartition(".")[2])
            if line == 1 and key.rpartition(".")[2] in after:
                line = line_of(after, key.rpartition(".")[2])
            if not two:
                line = line_of(before, key.rpartition(".")[2])
            found.append(
                Finding(kind, severity, path, line, message, " ".join(one)[:200], " ".join(two)[:200])
            )
    return found


def _judge(
    old: World, new: World, key: str, last: str, one: list[str], two: list[str], path: str
) -> Iterable[tuple[str, Severity, str]]:
    if last in ("addopts", "test_args", "pytest_args"):
        for kind, severity, message in narrowing("pytest " + " ".join(one), "pytest " + " ".join(two)):
            firm = severity == "block" and not _unused_mark(old, message)
            yield kind, "block" if firm else "review", f"{key}: {message}"
    elif last in _ON and two and two[-1] not in ("false", "0") and (not one or one[-1] in ("false", "0")):
        if not path.endswith((".yml", ".yaml")):
            yield "test-run-neutered", _ON[last], f"{key} is switched on"
    elif (
        last in _OFF and one and one[-1] in ("true", "1", "error") and (not two or two[-1] in ("false", "0"))
    ):
        yield "strictness-lowered", "review", f"{key} was on and is off"
    elif last in _LIMITS and _about_coverage(key, path):
        low, high = _number(two), _number(one)
        if high is not None and low is None and not _limited_elsewhere(new, path, last, high):
            yield "coverage-lowered", "block", f"the limit {key} is gone"
        elif high is not None and low is not None and low < high:
            yield "coverage-lowered", "review", f"the limit {key} went from {high:g} to {low:g}"
    elif last in _RAISED and re.search(r"test|jest|retr|rerun|use|projects|mocha", key + path, re.IGNORECASE):
        low, high = _number(one), _number(two)
        retried = last.startswith(("retr", "rerun"))
        if high is not None and high > (low or 0) and (low is not None or retried):
            kind = "test-retried" if last.startswith(("retr", "rerun")) else "time-limit-raised"
            yield kind, "review", f"{key} went from {low if low is not None else 0:g} to {high:g}"
    elif last in _NAMES and two and _about_tests(key, path) and path.endswith(_SCRIPTED):
        yield "tests-deselected", "block", f"{key} chooses tests by name: {' '.join(two)[:60]}"
    elif last == "skip" and path.endswith("pom.xml") and two and two[-1] == "true":
        yield "test-run-neutered", "block", f"{key} is switched on"
    elif last in ("omit", "exclude_lines", "exclude_also") and "cover" in key + path:
        more = [value for value in two if value not in one]
        if more and re.search(r"omit", last):
            yield "coverage-lowered", "review", f"the coverage leaves out {', '.join(more[:3])}"
    elif last == "filterwarnings":
        if any(w.startswith("error") for w in one) and not any(w.startswith("error") for w in two):
            yield "strictness-lowered", "review", "warnings are no longer errors"
    elif path.endswith((".yml", ".yaml")) and last in {*_IGNORING, *_CHOOSING}:
        return  # a matrix of jobs, filters of paths: the commands say what is run
    elif last in _IGNORING and not re.search(
        r"coverage|lint|ruff|black|mypy|isort|build|wheel|sdist|compiler|packages|setuptools|manifest|nyc|c8",
        _own(key),
        re.IGNORECASE,
    ):
        hidden = hidden_files(new, [v for v in two if v not in one])
        if hidden:
            yield "tests-deselected", "block", f"{key} leaves out {', '.join(hidden[:3])}"
    elif last in _CHOOSING and _about_tests(key, path):
        lost = lost_files(new, last, one, two)
        if lost:
            yield "tests-deselected", "block", f"{key} no longer finds {', '.join(lost[:3])}"


def _limited_elsewhere(world: World, path: str, last: str, least: float) -> bool:
    """Does another file of settings demand as much under the same name?"""
    for other in sorted(world.all_paths):
        if (
            other == path
            or not is_test_config(other)
            or not re.search(rf"\b{last}\b", text_of(world, other), re.I)
        ):
            continue
        for key, values in settings_of(world, other, text_of(world, other)).items():
            number = _number(values)
            covered = key.lower().endswith(last) and _about_coverage(key, other)
            if covered and number is not None and number >= least:
                return True
    return False


def _own(key: str) -> str:
    """A key without the sections of a pom.xml around it."""
    return re.sub(r"^project\.(?:build\.)?(?:pluginManagement\.)?plugins\.plugin\.", "", key)


def _unused_mark(old: World, message: str) -> bool:
    """Does `-m "not slow"` leave out a mark that no test had before?"""
    match = re.search(r"-m[ =]['\"]?not (\w+)['\"]?$", message)
    if match is None:
        return False
    return not any(f"mark.{match.group(1)}" in text_of(old, path) for path in test_files(old))


def _about_coverage(key: str, path: str) -> bool:
    return (
        re.search(r"cover|threshold|fail_under|fail-under|codecov|nyc|minimum", (key + path).lower())
        is not None
    )


def _about_tests(key: str, path: str) -> bool:
    name = PurePosixPath(path).name.lower()
    if re.search(
        r"coverage|tsconfig|compiler|build|wheel|sdist|lint|ruff|mypy|packages", (key + name).lower()
    ):
        return False
    return re.search(r"test|jest|spec|mocha|python_|files|roots", (key + name).lower()) is not None


def _number(values: list[str]) -> float | None:
    match = re.match(r"-?[\d_.]+", values[-1]) if values else None
    try:
        return float(match.group().replace("_", "")) if match is not None else None
    except ValueError:
        return None

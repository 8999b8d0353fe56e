"""Settings and CI files: does the runner still find and count the same tests?

Command lines are compared with what they were; patterns are tried on the test files that are there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from agent_ls.guard.commands import RUNNER, commands_in, narrowing, paths_in
from agent_ls.guard.lines import line_of, new_lines, text_of
from agent_ls.guard.losses import Severity
from agent_ls.guard.protected import Finding
from agent_ls.guard.settings_text import Settings, settings_of
from agent_ls.guard.world import World
from agent_ls.workspace.paths import is_test_config, is_test_path

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
_DEFAULTS = {
    "python_files": ["test_*.py", "*_test.py"],
    "python_functions": ["test"],
    "python_classes": ["Test"],
}
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
        if is_test_config(path) or _holds_commands(path)
    )
    ours = [path for path in changed if is_test_config(path) or _holds_commands(path)]
    for path in ours:
        before, after = text_of(old, path), text_of(new, path)
        if path.endswith((".lock", "-lock.json", "go.sum", "requirements.txt", "conftest.py")):
            continue
        found += _commands(new, path, before, after, elsewhere)
        found += _workflow(path, before, after)
        found += _ruby_files(new, path, before, after)
        was, now = settings_of(old, path, before), settings_of(new, path, after)
        if PurePosixPath(path).name in _PYTEST_FILES:
            continue_with = _pytest(old, new, path, was, now)
            was, now = continue_with
        found += _settings(old, new, path, was, now, before, after)
        found += _switches(path, before, after)
    return found


_SWITCHES = re.compile(
    r"ignoreFailures\s*=?\s*true|failFast_never|\b(?:test|check)\w*(?:\.configure)?\s*\{?\s*\.?enabled\s*=\s*false|onlyIf\s*\{\s*false"
    r"|^\s*(?:harness|test|doctest)\s*=\s*false|test\.enabled\s*=\s*false|fail_on_empty\w*\s*=\s*false|t\.verbose_never"
    r"|filter_run_excluding|--pattern .*!|exclude_pattern|task[ (]:?(?:test|default).*(?:=>|:)\s*\[\s*\]"
    r"|^\s*autotests\s*=\s*false|excludeTestsMatching|excludeTags|failOnNoMatchingTests\s*=?\s*false"
    r"|<(?:Compile|EmbeddedResource) Remove=|<IsTestProject>\s*false|<VSTestTestCaseFilter>"
    r"|<TreatNoTestsAsError>\s*false"
)
_IN_TEST_BLOCK = re.compile(r"^\s*(?:enabled\s*=?\s*false|exclude[ (]['\"]|onlyIf\b|include[ (]['\"])")


def _switches(path: str, before: str, after: str) -> list[Finding]:
    """Lines of build scripts that switch tests or their failures off."""
    name = PurePosixPath(path).name.lower()
    if not name.startswith(
        ("build.gradle", "cargo.toml", "rakefile", ".rspec", "build.sbt", "settings.gradle")
    ) and not name.endswith((".csproj", ".props", ".targets")):
        return []
    lines = after.splitlines()
    return [
        Finding(
            "test-run-neutered",
            "block",
            path,
            number,
            f"tests or their failures are switched off: {line.strip()[:100]}",
        )
        for number, line in new_lines(before, after)
        if _SWITCHES.search(line)
        or (name.startswith("build.gradle") and _IN_TEST_BLOCK.search(line) and _in_test_block(lines, number))
    ]


def _in_test_block(lines: list[str], number: int) -> bool:
    """Is a line of a Gradle script inside a block about tests?"""
    depth = 0
    for line in reversed(lines[: number - 1]):
        depth += line.count("}") - line.count("{")
        if depth < 0:
            return re.search(r"\btest\b|Test\b|tasks\.withType\(Test", line) is not None
    return False


def _ruby_files(new: World, path: str, before: str, after: str) -> list[Finding]:
    """Options in .rspec, and the files that a Rakefile chooses."""
    name = PurePosixPath(path).name.lower()
    if name == ".rspec":
        one, two = (" ".join(["rspec", *text.split()]) for text in (before, after))
        return [
            Finding(kind, "block" if level == "block" else "review", path, 1, message, one[:200], two[:200])
            for kind, level, message in narrowing(one, two)
        ]
    if name != "rakefile":
        return []
    pattern = r"(?:pattern|test_files)\s*=\s*(?:FileList)?\[?['\"]([^'\"]+)['\"]"
    was, now = re.findall(pattern, before), re.findall(pattern, after)
    lost = _lost(new, "pattern", was, now) if was != now else []
    if not lost:
        return []
    message = f"the Rakefile no longer finds {', '.join(lost[:3])}"
    return [Finding("tests-deselected", "block", path, line_of(after, now[0]), message)]


def _holds_commands(path: str) -> bool:
    name = PurePosixPath(path).name.lower()
    return (
        name.endswith((".sh", ".bash", ".mk", ".cmd", ".ps1"))
        and re.search(r"test|check|ci", name) is not None
    )


# -- commands
_CI = re.compile(r"^\.(?:github|circleci|buildkite|gitlab|travis)|azure|appveyor|jenkins")


def _still_run(world: World, path: str, command: str) -> bool:
    """A file is gone: does another CI file run tests still, or for a file that is not CI's, any file?

    A command that names test files, or a kind of tests, is not what another file is expected to run.
    """
    if paths_in(command) or re.search(r"integration|e2e|slow|acceptance|system", f"{path} {command}"):
        return False
    ci = _CI.search(path.lower()) is not None
    others = (p for p in sorted(world.all_paths) if p != path and is_test_config(p))
    return any(
        any(_runner(line) for _, line in commands_in(text_of(world, other)))
        for other in others
        if not ci or _CI.search(other.lower())
    )


def _commands(new_world: World, path: str, before: str, after: str, elsewhere: str) -> list[Finding]:
    found = []
    level: Severity
    old, new = commands_in(before), commands_in(after)
    there = {command for _, command in new}
    was = {command for _, command in old}
    fresh = [(line, command) for line, command in new if command not in was]
    used: set[int] = set()
    for line, command in old:
        if command in there:
            continue
        scored = [
            (_likeness(command, other), -number, other)
            for number, other in fresh
            if number not in used and _runner(other) == _runner(command)
        ] or [(0.0, -number, other) for number, other in fresh if number not in used]
        if not scored:
            match = RUNNER.search(command)
            word = re.escape(match.group()) if match is not None else "$^"
            moved = re.search(rf"(?<![\w-]){word}(?![\w-])", elsewhere) is not None
            if not moved and (not after or not any(_runner(other) == _runner(command) for other in there)):
                text = f"a command that ran tests is gone: {command[:100]}"
                other_way = RUNNER.search(elsewhere) or (not after and _still_run(new_world, path, command))
                level = "review" if other_way else "block"
                found.append(Finding("test-run-removed", level, path, line, text, before=command[:200]))
            continue
        _, number, other = max(scored)
        used.add(-number)
        for kind, severity, message in narrowing(command, other):
            if message.startswith("a pipe") and "pipefail" in after:
                continue
            level = "block" if severity == "block" else "review"
            found.append(
                Finding(kind, level, path, -number, f"{message}: {other[:100]}", command[:200], other[:200])
            )
    return found


def _likeness(one: str, two: str) -> float:
    return SequenceMatcher(None, one, two).ratio() + (_label(one) == _label(two))


def _label(command: str) -> str:
    """What a command is called, in a table of scripts: `"test": "jest"`."""
    match = re.match(r"""["']?([\w:.-]+)["']?\s*[:=]\s""", command)
    return match.group(1) if match is not None else ""


def _runner(command: str) -> str:
    match = RUNNER.search(command)
    return match.group().split()[0] if match is not None else ""


_STEP = re.compile(r"^\s*- ")


def _workflow(path: str, before: str, after: str) -> list[Finding]:
    """Steps of CI files: failures ignored, steps switched off, triggers taken away."""
    if not path.endswith((".yml", ".yaml")):
        return []
    found = []
    lines = after.splitlines()
    for number, line in new_lines(before, after):
        plain = line.strip().removeprefix("- ")
        what, severity = "", "block"
        if re.match(
            r"(?:continue-on-error|allow_failure|continueOnError|soft_fail):\s*(?:true|\$\{\{)", plain
        ):
            what = "a failure doesn't count"
        elif re.match(r"(?:if|when|condition):\s*(?:\$\{\{\s*)?['\"]?(?:false|never|manual)\b", plain):
            what = "it is switched off"
        elif re.match(r"if:\s*", plain):
            what, severity = "it only runs under a condition", "review"
        elif re.match(r"(?:exit 0|true|set \+e|exit \$\{?\w*:?-?0\}?)$", plain):
            what = "its exit code is thrown away"
        elif re.match(r"(?:paths-ignore|branches-ignore):", plain):
            what, severity = "it doesn't run for every change", "review"
        if what and ("paths-ignore" in plain or RUNNER.search(_step_around(lines, number - 1))):
            level: Severity = "block" if severity == "block" else "review"
            found.append(
                Finding("test-run-neutered", level, path, number, f"{what}: {plain[:100]}", after=plain)
            )
    for trigger in ("pull_request", "push", "merge_group"):
        if (
            re.search(rf"\b{trigger}\b", before)
            and not re.search(rf"\b{trigger}\b", after)
            and RUNNER.search(after)
        ):
            found.append(Finding("test-run-neutered", "review", path, 1, f"it no longer runs on {trigger}"))
    return found


def _step_around(lines: list[str], at: int) -> str:
    """The step that a line belongs to; the rest of the job for a line outside of steps."""
    indent = len(lines[at]) - len(lines[at].lstrip())
    start = at
    while start > 0 and not (
        _STEP.match(lines[start]) and len(lines[start]) - len(lines[start].lstrip()) <= indent
    ):
        start -= 1
        if re.match(r"^\S|^ {2}[\w-]+:\s*$", lines[start]):
            break
    is_step = _STEP.match(lines[start]) is not None
    depth = len(lines[start]) - len(lines[start].lstrip())
    end = at + 1
    while end < len(lines):
        own = len(lines[end]) - len(lines[end].lstrip())
        if lines[end].strip() and (
            own < depth
            or (own == depth and is_step and _STEP.match(lines[end]))
            or (not is_step and own <= depth)
        ):
            break
        end += 1
    return "\n".join(line for line in lines[start:end] if not re.match(r"\s*(?:- )?(?:name|uses|#)", line))


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
    elif last in _NAMES and two and _about_tests(key, path) and not path.endswith((".yml", ".yaml")):
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
        hidden = _hidden(new, [v for v in two if v not in one])
        if hidden:
            yield "tests-deselected", "block", f"{key} leaves out {', '.join(hidden[:3])}"
    elif last in _CHOOSING and _about_tests(key, path):
        lost = _lost(new, last, one, two)
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
    return not any(f"mark.{match.group(1)}" in text_of(old, path) for path in _tests(old))


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


def _tests(world: World) -> list[str]:
    return [path for path in world.all_paths if is_test_path(path)]


def _hidden(world: World, patterns: list[str]) -> list[str]:
    """Test files that one of the patterns hits."""
    found = set()
    for pattern in patterns:
        if re.fullmatch(r"\W*(?:node_modules|dist|build|\.git|venv|vendor|fixtures|e2e|cypress)\W*", pattern):
            continue
        for path in _tests(world):
            if _hits(pattern, path):
                found.add(path)
    return sorted(found)


def _hits(pattern: str, path: str) -> bool:
    plain = pattern.replace("<rootDir>", "").strip("'\"")
    if _glob(plain).fullmatch(path) or fnmatchcase(PurePosixPath(path).name, plain):
        return True
    if plain.strip("/") in PurePosixPath(path).parts or path.startswith(plain.strip("/") + "/"):
        return True
    try:
        return "*" not in plain.replace(".*", "") and re.search(plain, "/" + path) is not None
    except re.error:
        return False


def _lost(world: World, last: str, one: list[str], two: list[str]) -> list[str]:
    """Test files that the old values choose and the new ones don't."""
    if last in ("python_classes", "python_functions"):
        one = one or _DEFAULTS[last]
        return [f"names like {value}" for value in one if value not in two and two]
    one = one or _DEFAULTS.get(last, [])
    old = [value for text in one for value in text.split()] if last in ("testpaths", "python_files") else one
    new = [value for text in two for value in text.split()] if last in ("testpaths", "python_files") else two
    if not new:
        return []
    tests = _tests(world)
    chosen = [path for path in tests if any(_chooses(value, path) for value in old)] if old else tests
    chosen = [
        path
        for path in chosen
        if re.search(r"test|spec", PurePosixPath(path).name, re.IGNORECASE)
        and not path.endswith("conftest.py")
    ]
    if last == "testregex":
        return [path for path in chosen if not any(_regex_hits(value, path) for value in new)]
    return [path for path in chosen if not any(_chooses(value, path) for value in new)]


def _regex_hits(pattern: str, path: str) -> bool:
    try:
        return re.search(pattern, "/" + path) is not None
    except re.error:
        return True


def _chooses(pattern: str, path: str) -> bool:
    plain = pattern.replace("<rootDir>/", "").strip("'\"").removeprefix("./")
    if plain in (".", ""):
        return True
    if _glob(plain).fullmatch(path) or path.startswith(plain.rstrip("/") + "/") or path == plain:
        return True
    return "/" not in plain and fnmatchcase(PurePosixPath(path).name, plain)


def _glob(pattern: str) -> re.Pattern[str]:
    """A pattern of JavaScript's tools as a regular expression: **, *, {a,b}, ?(x)."""
    text = re.escape(pattern.removeprefix("/"))
    text = (
        text.replace(r"\*\*/", "(?:.*/)?")
        .replace(r"\*\*", ".*")
        .replace(r"\*", "[^/]*")
        .replace(r"\?\(", "(?:")
        .replace(r"\)", ")?")
        .replace(r"\?", "[^/]")
    )
    text = re.sub(r"\\{([^{}]*)\\}", lambda m: "(?:" + m.group(1).replace(",", "|") + ")", text)
    text = re.sub(r"\\\[([\w-]+)\\\]", r"[\1]", text)
    try:
        return re.compile(text)
    except re.error:
        return re.compile(re.escape(pattern))

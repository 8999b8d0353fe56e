"""Commands, workflows and build scripts: are the tests still run, and does their failure count?"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from pathlib import PurePosixPath

from agent_ls.guard.chosen_files import lost_files
from agent_ls.guard.commands import RUNNER, commands_in, narrowing, paths_in
from agent_ls.guard.lines import line_of, new_lines, text_of
from agent_ls.guard.losses import Severity
from agent_ls.guard.protected import Finding
from agent_ls.guard.world import World
from agent_ls.workspace.paths import is_test_config

_SWITCHES = re.compile(
    r"ignoreFailures\s*=?\s*true|failFast_never|\b(?:test|check)\w*(?:\.configure)?\s*\{?\s*\.?enabled\s*=\s*false|onlyIf\s*\{\s*false"
    r"|^\s*(?:harness|test|doctest)\s*=\s*false|test\.enabled\s*=\s*false|fail_on_empty\w*\s*=\s*false|t\.verbose_never"
    r"|filter_run_excluding|--pattern .*!|exclude_pattern|task[ (]:?(?:test|default).*(?:=>|:)\s*\[\s*\]"
    r"|^\s*autotests\s*=\s*false|excludeTestsMatching|excludeTags|failOnNoMatchingTests\s*=?\s*false"
    r"|<(?:Compile|EmbeddedResource) Remove=|<IsTestProject>\s*false|<VSTestTestCaseFilter>"
    r"|<TreatNoTestsAsError>\s*false"
)
_IN_TEST_BLOCK = re.compile(r"^\s*(?:enabled\s*=?\s*false|exclude[ (]['\"]|onlyIf\b|include[ (]['\"])")


def review_switches(path: str, before: str, after: str) -> list[Finding]:
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


def review_ruby_files(new: World, path: str, before: str, after: str) -> list[Finding]:
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
    lost = lost_files(new, "pattern", was, now) if was != now else []
    if not lost:
        return []
    message = f"the Rakefile no longer finds {', '.join(lost[:3])}"
    return [Finding("tests-deselected", "block", path, line_of(after, now[0]), message)]


def holds_commands(path: str) -> bool:
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


def review_commands(new_world: World, path: str, before: str, after: str, elsewhere: str) -> list[Finding]:
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


def review_workflow(path: str, before: str, after: str) -> list[Finding]:
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

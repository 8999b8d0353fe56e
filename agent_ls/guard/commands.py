"""Command lines that run tests, and what narrows them or hides their result."""

from __future__ import annotations

import re

RUNNER = re.compile(
    r"(?<![\w./-])(?:pytest|py\.test|unittest|nose2?|tox|nox|jest|vitest|mocha|ava|karma|playwright test"
    r"|cypress run"
    r"|node --test|(?:npm|pnpm|yarn|bun)(?: run)? [\w:-]*test[\w:-]*|deno test|go test|gotestsum"
    r"|cargo (?:test|nextest)|mvn\w*|mvnw"
    r"|gradlew?|dotnet test|rspec|rake(?: \w+)*|minitest|ruby -I\S*test|rails test|phpunit|ctest"
    r"|make (?:test|check)\w*"
    r"|coverage run|trial|bundle exec \w+|stack test|sbt|swift test|mix test"
    r"|(?:pixi|hatch|pdm|poetry|rye|just|poe|task|inv|invoke|uv|earthly|bazel)(?: run)?(?: -\S+(?: \w+)?)*"
    r" [\w:-]*(?:test|check)[\w:-]*)(?![\w@-]|\.\w)"
)

_HIDING: tuple[tuple[str, str], ...] = (
    (r"\|\|\s*(?:true|:|exit 0|echo\b|/bin/true)", "the exit code is thrown away"),
    (r";\s*(?:true|exit 0|:)\s*$", "the exit code is thrown away"),
    (r"&\s*$", "nobody waits for the result"),
    (r"\|\s*(?:tee|cat|head|tail|grep)\b", "a pipe hides the exit code"),
    (r"--(?:exit-?zero|(?:failure-)?exit-code[ =]0|suppress-tests-failed-exit-code|no-error-exit"
    r"|no-fail-on\S*)\b",
    "failures don't count"),
    (r"--pass-?[wW]ith-?[nN]o-?[tT]ests|--no-tests=pass", "no tests at all count as success"),
    (r"--collect-only|--co\b|--dry-run|--no-run\b|--list-?[tT]ests?\b|go test\b.* -(?:c|list)(?=[ =]|$)"
    r"|(?:vitest|jest|playwright test) list\b|--list(?=\s|$)", "no test is run"),
    (r"-D(?:skipTests|maven\.test\.skip|skipITs)(?:=true)?|-x (?:test|check)\b"
    r"|-Dmaven\.test\.failure\.ignore\S*|-fn\b|-fae\b", "tests or their failures are skipped"),
    (r"(?<!\S)-O{1,2}(?!\S)|PYTHONOPTIMIZE=[1-9]|--assert[= ]plain|--disable-assert\S*|-da\b",
    "assertions are compiled away"),
    (r"-p no:(?!cacheprovider|randomly|sugar|xdist|warnings)\S+", "a plugin is switched off"),
    (r"--(?:snapshot-update|update-?[sS]napshots?|force-regen|regen-all|ci=false)\b|(?:jest|vitest)\b[^|;&]*\s-u\b"
    r"|--update(?=\s|$)|INSTA_UPDATE=(?!no)\w+|UPDATE_\w+=\w+|--accept(?=\s"
    r"|$)", "expected values are recorded anew"),
)  # fmt: skip

_NARROWING = re.compile(
    r"(?<!\S)(?:-k|-m|--deselect|--ignore(?:-glob)?|--exclude(?:-\w+)?|--skip(?:-\w+)?|-skip|-run|--run|--grep|-g|-t|--fgrep"
    r"|--invert|--testNamePattern|--testPathPatterns?|--testPathIgnorePatterns|--test-skip-pattern|--test-name-pattern|--filter|--tag"
    r"|--tests|-Dtest|-Dgroups|-DexcludedGroups|--lf|--last-failed|--ff|--sw|--stepwise|--only-changed"
    r"|-o|--onlyChanged|--changed"
    r"|--exclude-pattern|--default-path|--maxfail|-short|--lib|--bins|--example|--name|-n|--pattern|-E"
    r"|--type)(?=[= ]"
    r"|$)(?:[= ](?:\"[^\"]*\"|'[^']*'|\S+))?"
)
_STRICT = re.compile(
    r"--(?:strict(?:-markers|-config)?|forbid-only|forbidOnly|error-for-skips|locked"
    r"|fail-on-flaky-tests)\b|-Werror|-W error|-race\b|--ci\b|set -e\w*|pipefail"
)
_LIMIT = re.compile(
    r"--(?:cov-fail-under|fail-under|check-coverage|coverage-threshold|minimum-coverage)[= ]?(\d+(?:\.\d+)?)?"
)
_RETRIES = re.compile(r"--(?:reruns|retries|retry|flake-finder)[= ]?(\d+)?")
_TESTY = re.compile(r"(?:^|[/_.-])(?:tests?|specs?|__tests__)(?:[/_.:-]|$)|\.(?:py|js|ts|rb|go)(?:::\S+)?$")


_NO_COMMAND = re.compile(
    r"[{\[]\s*$|(?:^|\s)--(?:version|help)\b|^(?:-\s+)?[\w.-]+@[\d.]+|^[\w-]+:\s*\w+@\d|additional_dependencies"
)


def commands_in(text: str) -> list[tuple[int, str]]:
    """(line, command) of the lines that start a test runner, without comments and names of steps."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        plain = line.strip()
        if plain.startswith(
            (
                "[",
                "#",
                "//",
                "echo ",
                "@echo",
                "- name:",
                "name:",
                "pip install",
                "image:",
                "uses:",
                "- uses:",
            )
        ):
            continue
        if _NO_COMMAND.search(plain):
            continue
        if (
            re.match(r"^[\w.-]+\s*(?:[=:]{1,2}|\?=)\s*$", plain)
            or "install" in plain.split("&&")[0].split()[:4]
        ):
            continue
        if (
            RUNNER.search(plain) and not re.match(r"^[\w\s.-]*:\s*[\w\s./-]*$", plain.replace("run:", ""))
        ) or _run_line(plain):
            found.append((number, plain))
    return found


def _run_line(plain: str) -> bool:
    match = re.match(
        r"^(?:- )?(?:run|script|command|cmd|entry|commands?|test\w*)['\"]?\s*[:=]\s*(.+)$", plain
    )
    return match is not None and RUNNER.search(match.group(1)) is not None


def narrowing(old: str, new: str) -> list[tuple[str, str, str]]:
    """(kind, severity, message) of what `new` leaves out or hides that `old`, the same command, did not."""
    found: list[tuple[str, str, str]] = []
    old, new = _unquoted(old), _unquoted(new)
    for pattern, what in _HIDING:
        if re.search(pattern, new) and not re.search(pattern, old):
            if what.startswith("a pipe") and "pipefail" in new:
                continue
            severity = "review" if what.startswith("a plugin") else "block"
            found.append(("test-run-neutered", severity, what))
    if re.match(r"(?:@?-|-@)", new) and not re.match(r"(?:@?-|-@)(?! )", old) and not new.startswith("- "):
        found.append(("test-run-neutered", "block", "make ignores the exit code"))
    had = {" ".join(m.group().replace("=", " ").split()) for m in _NARROWING.finditer(old)}
    runner = RUNNER.search(new)
    for match in _NARROWING.finditer(new, runner.end() if runner is not None else 0):
        option = " ".join(match.group().replace("=", " ").split())
        if option not in had and not _harmless(option, new):
            found.append(("tests-deselected", "block", f"it runs fewer tests: {match.group()}"))
    one_runner, two_runner = RUNNER.search(old), RUNNER.search(new)
    same = one_runner is None or two_runner is None or one_runner.group() == two_runner.group()
    for match in _STRICT.finditer(old) if same else ():
        if match.group() not in new and "strict" not in new:
            found.append(("strictness-lowered", "review", f"{match.group()} is gone"))
    found += _limits(old, new)
    if re.search(r"\./\.\.\.", old) and re.search(r"\bgo test\b", new) and "./..." not in new:
        found.append(("tests-deselected", "block", "it tests only some packages"))
    for word in sorted(_positional(new) - _positional(old)):
        found.append(("tests-deselected", "block", f"it runs only what is named {word}"))
    for option in ("--doc", "--lib", "--bins", "--bin", "--example", "--examples", "--test"):
        if re.search(rf"cargo test\b.* {option}\b", new) and not re.search(
            rf"cargo test\b.* {option}\b", old
        ):
            found.append(("tests-deselected", "block", f"it runs only one kind of tests: {option}"))
    one, two = paths_in(old), paths_in(new)
    if (two and not one and not found) or (two and two < one):
        found.append(("tests-deselected", "block", f"only {', '.join(sorted(two))} is run"))
    return found


_WITH_VALUE = {"-p", "--package", "--features", "--test", "--target", "--manifest-path", "-j", "--jobs", "-Z",
               "--profile", "--exclude", "--bin", "--example", "-F", "--color", "--config"}  # fmt: skip


def _unquoted(line: str) -> str:
    """A line without the quote that ends it, where that one belongs to a table of scripts."""
    found = re.sub(r"[\]},\s]+$", "", line.strip())
    if (
        found[-1:] in ("'", '"')
        and found.count(found[-1]) % 2 == 0
        and re.match(r"""["']?[\w:.-]+["']?\s*:""", found)
    ):
        return found[:-1]
    return found


def _positional(line: str) -> set[str]:
    """Filters that a command takes without an option: `cargo test name`."""
    match = re.search(r"\bcargo test((?: +[^\s|&;]+)*)", line)
    if match is None:
        return set()
    words, skip = [], False
    for word in match.group(1).split(" -- ")[0].split():
        if not word.startswith(("-", "$", ">", "2>", "+")) and not skip:
            words.append(word)
        skip = word in _WITH_VALUE
    return set(words)


def _harmless(option: str, line: str) -> bool:
    word = option.split()[0]
    if (
        word in ("-n", "-o", "-E", "-t", "-g", "-m", "--name", "--type", "--lib", "-run", "--run")
        and "not" not in option
    ):
        if word == "-m":
            return bool(
                re.match(r"-m (?:pytest|unittest|coverage|tox|nox|pip|trial|venv|build|nose2?)\b", option)
            ) or (
                re.search(r"python\S* [^|;]*-m\b", line) is not None
                and option.split()[-1] in line.split("-m", 1)[1][:40].split()[:1]
            )
        if word in ("-run", "-t", "-g"):
            return not re.search(r"go test|jest|vitest|mocha", line)
        return word not in ("--name",)
    return option.startswith(("--filter src", "--maxfail 0"))


def _limits(old: str, new: str) -> list[tuple[str, str, str]]:
    found = []
    one, two = _LIMIT.search(old), _LIMIT.search(new)
    if one is not None and two is None:
        found.append(("coverage-lowered", "block", "the demanded coverage is gone"))
    elif (
        one is not None
        and two is not None
        and one.group(1)
        and two.group(1)
        and float(two.group(1)) < float(one.group(1))
    ):
        found.append(
            (
                "coverage-lowered",
                "review",
                f"the demanded coverage went from {one.group(1)} to {two.group(1)}",
            )
        )
    three, four = _RETRIES.search(old), _RETRIES.search(new)
    if four is not None and (three is None or float(four.group(1) or 1) > float(three.group(1) or 1)):
        found.append(("test-retried", "review", "failed tests are tried again"))
    return found


def paths_in(line: str) -> set[str]:
    """Test files and folders that a command names."""
    line = re.sub(r"\{(?:args|posargs):([^}]*)\}", r" \1 ", line)
    words = re.findall(r"(?<![\w=-])[\w./:*\[\]-]+", re.sub(r"--?[\w-]+=\S+", "", line))
    return {
        word.strip("/")
        for word in words
        if ("/" in word or "::" in word or word.endswith((".py", ".js", ".ts", ".rb")))
        and _TESTY.search(word)
        and not word.startswith("-")
        and word.strip("./") not in ("tests", "test", "spec")
    }

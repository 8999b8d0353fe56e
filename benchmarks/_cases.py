"""A replay case: a finished fix of a real project, its environment, its trees and its judge.

Everything that belongs to a case lives in one directory, `<envs>/<case id>`:

    venv/            the environment, made once; an editable install points at run/<name>
    run/<name>/      the repository of the current run, made anew each time at the same path
    generated/       files that the build wrote into the source tree (a version module, say)
    reference.json   outcomes of the case's tests without any patch and with the real fix
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from _common import BenchmarkError, TestRun, commit_all, export, git, git_bytes, run, run_pytest

Patch = dict[str, tuple[str, bytes] | None]  # path -> (git mode, content), None: deleted
Outcomes = dict[str, str]

_PASSING = ("passed", "xpassed")
_BUILD_LEFTOVERS = ("*.egg-info", "build", "dist", "__pycache__", "*.pyc", ".eggs")


@dataclass(frozen=True)
class Case:
    """One case file. `probe_source` is a test of ours, named by PROBE::, where the real fix has none."""

    id: str
    repo: str
    title: str
    body: str
    kind: str
    base: str
    fix: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass_files: tuple[str, ...]
    known_failing: frozenset[str]
    test_files: tuple[str, ...]
    fix_files: tuple[str, ...]
    packages: tuple[str, ...]
    lock: tuple[str, ...]
    env: Mapping[str, str]
    test_options: tuple[str, ...]
    probe: str | None
    probe_source: str | None
    digest: str

    @property
    def name(self) -> str:
        return self.repo.rpartition("/")[2]

    def test_id(self, text: str) -> str:
        """The pytest id of `text`, with PROBE:: replaced by the path at which the probe is laid."""
        return f"{self.probe}::{text.removeprefix('PROBE::')}" if text.startswith("PROBE::") else text

    @property
    def wanted(self) -> tuple[str, ...]:
        return tuple(self.test_id(text) for text in self.fail_to_pass)

    def targets(self, *, hidden: bool) -> list[str]:
        """The paths pytest runs: pass-to-pass files, with `hidden` also those of fail-to-pass tests."""
        targets = list(self.pass_to_pass_files)
        if hidden:
            for path in [text.partition("::")[0] for text in self.wanted]:
                if not any(path == known or path.startswith(known.rstrip("/") + "/") for known in targets):
                    targets.append(path)
        return targets

    def is_test(self, path: str) -> bool:
        """Whether the judge takes `path` from the fix and the base alone, whatever a patch does to it."""
        if path in self.fix_files:
            return False
        return path == self.probe or path in self.test_files or looks_like_test(path)


def looks_like_test(path: str) -> bool:
    """Whether `path` is a test, a test helper or pytest's configuration by the usual naming."""
    pure = PurePosixPath(path)
    return (
        any(part in ("tests", "test") for part in pure.parts[:-1])
        or fnmatch.fnmatch(pure.name, "test_*.py")
        or fnmatch.fnmatch(pure.name, "*_test.py")
        or pure.name in ("conftest.py", "pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml")
    )


def load_case(path: Path) -> Case:
    """Read a case file and its probe. Raises `BenchmarkError` that names the missing field."""
    text = path.read_bytes()
    data: dict[str, Any] = json.loads(text)
    try:
        probe = data["probe"]
        source = (path.parent / probe).read_text("utf-8") if probe else None
        return Case(
            id=data["id"],
            repo=data["repo"],
            title=data["title"],
            body=data["body"],
            kind=data["type"],
            base=data["base_commit"],
            fix=data["fix_commit"],
            fail_to_pass=tuple(data["fail_to_pass"]),
            pass_to_pass_files=tuple(data["pass_to_pass_files"]),
            known_failing=frozenset(data["known_failing_after_fix"]),
            test_files=tuple(data["test_files_from_fix"]),
            fix_files=tuple(data["fix_files"]),
            packages=tuple(data["packages"]),
            lock=tuple(data["lock"]),
            env=data["env"],
            test_options=tuple(data["test_cmd"][3:]),  # after: python -m pytest
            probe=PurePosixPath(probe).name if probe else None,
            probe_source=source,
            digest=hashlib.sha256(text + (source or "").encode()).hexdigest(),
        )
    except KeyError as error:
        raise BenchmarkError(f"{path.name}: field {error} is missing") from error


def find_repository(repos: Path, case: Case) -> Path:
    """The clone of the case's project under `repos` that holds both commits.

    Looked for as NAME, NAME.git, OWNER/NAME, OWNER+NAME, each also with a folder `repo` in it. Raises
    `BenchmarkError` when there is none or a commit is missing.
    """
    owner, _, name = case.repo.partition("/")
    for candidate in (name, f"{name}.git", f"{owner}/{name}", f"{owner}+{name}"):
        for path in (repos / candidate, repos / candidate / "repo"):
            if not ((path / ".git").exists() or (path / "HEAD").is_file()):
                continue
            for commit in (case.base, case.fix):
                try:
                    git(path, "cat-file", "-e", f"{commit}^{{tree}}")
                except BenchmarkError as error:
                    raise BenchmarkError(f"{path} does not hold {commit[:12]} of {case.repo}") from error
            return path
    raise BenchmarkError(f"no clone of {case.repo} in {repos}")


# --- patches ---


def read_patch(repo: Path, before: str, after: str) -> Patch:
    """What changed between two commits: per path the new mode and content, or None for a deleted file."""
    patch: Patch = {}
    raw = git_bytes(repo, "diff", "--no-renames", "--raw", "-z", "--no-abbrev", before, after).split(b"\0")
    for head, name in zip(raw[:-1:2], raw[1::2], strict=True):
        _, mode, _, blob, status = head.decode().lstrip(":").split(" ")
        path = name.decode("utf-8", "surrogateescape")
        patch[path] = None if status == "D" else (mode, git_bytes(repo, "cat-file", "blob", blob))
    return patch


def apply_patch(patch: Patch, into: Path) -> None:
    """Write the files of `patch` into the tree `into`. Raises `BenchmarkError` for a path that leaves it."""
    root = into.resolve()
    for path, content in patch.items():
        target = into / path
        if ".." in PurePosixPath(path).parts or not target.parent.resolve().is_relative_to(root):
            raise BenchmarkError(f"the patch leaves its tree: {path}")
        if target.is_symlink() or target.is_file():
            target.unlink()
        if content is None:
            continue
        mode, data = content
        target.parent.mkdir(parents=True, exist_ok=True)
        if mode == "120000":
            target.symlink_to(os.fsdecode(data))
        else:
            target.write_bytes(data)
            target.chmod(0o755 if mode == "100755" else 0o644)


def split_patch(case: Case, patch: Patch) -> tuple[Patch, list[str]]:
    """The part of `patch` the judge takes over, and the test paths it leaves out."""
    kept = {path: content for path, content in patch.items() if not case.is_test(path)}
    return kept, sorted(set(patch) - set(kept))


# --- judging ---


@dataclass(frozen=True)
class Verdict:
    """`grade` is resolved, f2p_only, regression or unresolved; the lists say why."""

    grade: str
    fixed: list[str]
    missing: list[str]
    regressed: list[str]


def must_stay(before: Outcomes, fixed: Outcomes, wanted: Collection[str], known: Collection[str]) -> set[str]:
    """The tests a patch may not break: passing without a patch and with the real fix, known failures out."""
    return {
        name
        for name, outcome in before.items()
        if outcome in _PASSING and fixed.get(name) in _PASSING and name not in wanted and name not in known
    }


def grade(outcomes: Outcomes, wanted: Collection[str], stay: Collection[str]) -> Verdict:
    """Grade the outcomes of a patched tree; a test that vanished or was skipped has not passed."""
    passed = {name for name, outcome in outcomes.items() if outcome in _PASSING}
    fixed = sorted(set(wanted) & passed)
    missing = sorted(set(wanted) - passed)
    regressed = sorted(set(stay) - passed)
    if missing:
        word = "regression" if regressed else "unresolved"
    else:
        word = "f2p_only" if regressed else "resolved"
    return Verdict(word, fixed, missing, regressed)


@dataclass(frozen=True)
class Workbench:
    """A case with its clone, its directory and its interpreter."""

    case: Case
    clone: Path
    home: Path
    deadline: float

    @property
    def repo(self) -> Path:
        return self.home / "run" / self.case.name

    @property
    def interpreter(self) -> str:
        return str(self.home / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python")

    def lay_out(self, *, tests: bool) -> None:
        """Make the run directory anew: the base, what the build made, with `tests` the fix's tests."""
        shutil.rmtree(self.repo.parent, ignore_errors=True)
        self.repo.parent.mkdir(parents=True)
        export(self.clone, self.case.base, self.repo)
        if (self.home / "generated").is_dir():
            shutil.copytree(self.home / "generated", self.repo, dirs_exist_ok=True)
        if tests:
            self.lay_tests()

    def lay_tests(self) -> None:
        """Put the test files of the fix, and the probe, over whatever is there."""
        whole = read_patch(self.clone, self.case.base, self.case.fix)
        apply_patch({path: whole[path] for path in self.case.test_files if path in whole}, self.repo)
        if self.case.probe and self.case.probe_source is not None:
            (self.repo / self.case.probe).write_text(self.case.probe_source, "utf-8")

    def targets(self, *, hidden: bool) -> list[str]:
        """The case's targets that exist in the run directory: pytest runs nothing if one is missing.

        A directory that is still a module of the same name at this revision is found as that.
        """
        found = []
        for target in self.case.targets(hidden=hidden):
            for path in (target, f"{target}.py"):
                if (self.repo / path).exists():
                    found.append(path)
                    break
        return list(dict.fromkeys(found))

    def real_fix(self) -> Patch:
        """The change of the real fix without its tests."""
        return split_patch(self.case, read_patch(self.clone, self.case.base, self.case.fix))[0]

    def pytest(self, targets: list[str]) -> TestRun:
        options = self.case.test_options
        return run_pytest(
            self.interpreter,
            targets,
            cwd=self.repo,
            timeout=self.deadline,
            options=options,
            env=self.case.env,
        )

    def outcomes(self, patch: Patch) -> TestRun:
        """Run the case's tests on base + `patch` + the fix's tests, in the run directory."""
        self.lay_out(tests=False)
        apply_patch(patch, self.repo)
        self.lay_tests()
        return self.pytest(self.targets(hidden=True))

    @contextlib.contextmanager
    def claimed(self) -> Iterator[None]:
        """Hold the case's directory: its run path is fixed, so two runs would overwrite each other.

        Raises `BenchmarkError` when another process holds it.
        """
        import fcntl

        self.home.parent.mkdir(parents=True, exist_ok=True)
        with (self.home.parent / f"{self.case.id}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise BenchmarkError(f"{self.case.id}: another run uses {self.home}") from error
            yield

    def prepare(self) -> dict[str, Any]:
        """Make the environment and the reference outcomes, or read them back if the case has not changed.

        Raises `BenchmarkError` when a package can't be installed.
        """
        stamp = self.home / "reference.json"
        if stamp.exists():
            reference: dict[str, Any] = json.loads(stamp.read_text("utf-8"))
            if reference["digest"] == self.case.digest and reference["valid"]:
                return reference
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        self._install()
        floor, ceiling = self.outcomes({}), self.outcomes(self.real_fix())
        wanted = set(self.case.wanted)
        reference = {
            "digest": self.case.digest,
            "valid": wanted <= ceiling.ids(*_PASSING) and not wanted & floor.ids(*_PASSING),
            "floor": floor.outcomes,
            "ceiling": ceiling.outcomes,
            "floor_s": round(floor.seconds, 2),
            "ceiling_s": round(ceiling.seconds, 2),
            "tails": [] if wanted <= ceiling.ids(*_PASSING) else [floor.tail, ceiling.tail],
        }
        stamp.write_text(json.dumps(reference, indent=1) + "\n", "utf-8")
        return reference

    def _install(self) -> None:
        self.lay_out(tests=False)
        before = commit_all(self.repo, "base")
        locked = self.home / "constraints.txt"
        locked.write_text("".join(f"{line}\n" for line in self.case.lock), "utf-8")
        steps = (
            [sys.executable, "-m", "venv", str(self.home / "venv")],
            [self.interpreter, "-m", "pip", "install", "-q", "-c", str(locked), *self.case.packages],
        )
        for argv in steps:
            done = run(argv, cwd=self.repo, env=self.case.env, timeout=900)
            if done.returncode != 0:
                raise BenchmarkError(f"{self.case.id}: {' '.join(argv[1:4])} failed: {done.stderr[-800:]}")
        for path in self.new_files(before):
            target = self.home / "generated" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.repo / path, target)

    def new_files(self, before: str) -> list[str]:
        """Files the build added to or changed in the source tree, without caches and metadata."""
        git(self.repo, "add", "-A", "-f")
        names = git_bytes(self.repo, "diff", "--cached", "--name-only", "--diff-filter=AM", "-z", before)
        paths = [name for name in names.decode("utf-8", "surrogateescape").split("\0") if name]
        return [
            path
            for path in paths
            if not any(fnmatch.fnmatch(part, glob) for part in Path(path).parts for glob in _BUILD_LEFTOVERS)
        ]

    def judge(self, patch: Patch, reference: Mapping[str, Any]) -> tuple[Verdict, float]:
        """Grade `patch` (its non-test part); returns the verdict and the seconds the tests took.

        Tests that look broken get a second run and count only if they fail again.
        """
        wanted = self.case.wanted
        stay = must_stay(reference["floor"], reference["ceiling"], wanted, self.case.known_failing)
        first = self.outcomes(split_patch(self.case, patch)[0])
        verdict = grade(first.outcomes, wanted, stay)
        if verdict.regressed and not first.timed_out and len(verdict.regressed) <= 50:
            again = self.pytest(sorted({name.partition("::")[0] for name in verdict.regressed}))
            healed = set(verdict.regressed) & again.ids(*_PASSING)
            verdict = grade({**first.outcomes, **dict.fromkeys(healed, "passed")}, wanted, stay)
        return verdict, first.seconds

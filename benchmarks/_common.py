"""What the benchmark scripts share: processes with a deadline, repositories, test outcomes, results on disk.

The scripts drive the program as a user would, through its command line and its JSON report, and import
nothing of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MEMORY_LIMIT = (
    4 * 2**30
)  # bytes of address space for a judged test run: a wrong patch may allocate without end
GRACE = 60.0  # seconds the program gets beyond its own --timeout before it is killed

Row = dict[str, Any]


class BenchmarkError(Exception):
    """The benchmark itself can't go on (missing file, git failed); the message names the cause."""


@dataclass(frozen=True)
class Finished:
    """A process that ended or was killed at its deadline (`returncode` is then None)."""

    returncode: int | None
    stdout: str
    stderr: str
    seconds: float

    @property
    def timed_out(self) -> bool:
        return self.returncode is None


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    timeout: float,
    memory: int | None = None,
) -> Finished:
    """Run `argv` in its own process group and kill the whole group `timeout` seconds later.

    `env` is added to the current environment. `memory` limits the address space in bytes. Output goes to
    files, so a grandchild that keeps a pipe open can't hold us up. Raises `BenchmarkError` if it can't start.
    """

    def limit() -> None:
        import resource

        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    started = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                list(argv),
                cwd=cwd,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
                preexec_fn=limit,
            )
        except OSError as error:
            raise BenchmarkError(f"can't start {argv[0]}: {error}") from error
        code: int | None
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end_group(process, gently=process.poll() is None)
        seconds = time.monotonic() - started
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode("utf-8", "replace"))
    return Finished(code, texts[0], texts[1], seconds)


def _end_group(process: subprocess.Popen[bytes], *, gently: bool) -> None:
    """End what is left of the group; `gently` first asks, so that the program can clean up behind itself."""
    if gently:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


# --- git ---

_GIT_ENV = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_AUTHOR_NAME": "Benchmark",
    "GIT_AUTHOR_EMAIL": "benchmark@example.org",
    "GIT_COMMITTER_NAME": "Benchmark",
    "GIT_COMMITTER_EMAIL": "benchmark@example.org",
    "GIT_AUTHOR_DATE": "2024-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2024-01-01T00:00:00Z",
}


def git_bytes(repo: Path, *args: str, env: Mapping[str, str] | None = None) -> bytes:
    """Run git in `repo` with no configuration but its own. Raises `BenchmarkError` with git's message."""
    done = subprocess.run(
        ["git", "-C", str(repo), *args],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, **_GIT_ENV, **(env or {})},
    )
    if done.returncode:
        raise BenchmarkError(f"git {' '.join(args[:3])}: {done.stderr.decode('utf-8', 'replace').strip()}")
    return done.stdout


def git(repo: Path, *args: str) -> str:
    """`git_bytes` as stripped text."""
    return git_bytes(repo, *args).decode("utf-8", "replace").strip()


def commit_all(repo: Path, message: str) -> str:
    """Make `repo` a repository where it is none, commit everything in it, and return the new commit."""
    if not (repo / ".git").exists():
        git(repo, "init", "-q", "-b", "main")
    git(repo, "add", "-A", "-f")
    git(repo, "commit", "-q", "--allow-empty", "-m", message)
    return git(repo, "rev-parse", "HEAD")


def export(repo: Path, revision: str, into: Path) -> None:
    """Write the tree of `revision` into the new directory `into`, without any history."""
    into.mkdir(parents=True)
    # not `git archive`: a project's export-ignore attributes drop its tests from archives
    with tempfile.TemporaryDirectory(prefix="bench-index-") as scratch:
        env = {
            "GIT_INDEX_FILE": str(Path(scratch) / "index"),
            "GIT_DIR": git(repo, "rev-parse", "--absolute-git-dir"),
            "GIT_WORK_TREE": str(into),
        }
        git_bytes(into, "read-tree", revision, env=env)
        git_bytes(into, "checkout-index", "-a", env=env)


def changed_paths(repo: Path, before: str, after: str) -> list[str]:
    """Paths that differ between two commits (a rename counts as both)."""
    out = git_bytes(repo, "diff", "--no-renames", "--name-only", "-z", before, after)
    return [path for path in out.decode("utf-8", "surrogateescape").split("\0") if path]


# --- tests ---


@dataclass(frozen=True)
class TestRun:
    """The outcome of each test by its id; `timed_out` when the deadline ended the run."""

    __test__ = False

    outcomes: dict[str, str]
    returncode: int | None
    seconds: float
    tail: str

    @property
    def timed_out(self) -> bool:
        return self.returncode is None

    def ids(self, *outcomes: str) -> set[str]:
        return {name for name, outcome in self.outcomes.items() if outcome in outcomes}


_RANK = {"collected": 0, "passed": 1, "xpassed": 1, "skipped": 2, "xfailed": 2, "failed": 3, "error": 4}


def merge_outcomes(lines: Iterable[str]) -> dict[str, str]:
    """Fold the plugin's JSON lines into one outcome a test: the worst wins, a torn last line is dropped."""
    outcomes: dict[str, str] = {}
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        name, outcome = record["id"], record["outcome"]
        if name not in outcomes or _RANK[outcome] > _RANK[outcomes[name]]:
            outcomes[name] = outcome
    return outcomes


def run_pytest(
    interpreter: str,
    targets: Sequence[str],
    *,
    cwd: Path,
    timeout: float,
    options: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> TestRun:
    """Run pytest on `targets` in `cwd` and read what became of each test.

    `env` may hold a PYTHONPATH; ours is put after it. Runs without the program's sandbox, with a deadline
    and a memory limit: judge patches of models you don't trust inside a container.
    """
    with tempfile.TemporaryDirectory(prefix="bench-outcomes-") as scratch:
        record = Path(scratch) / "outcomes.jsonl"
        plugins = Path(scratch) / "plugins"
        plugins.mkdir()
        shutil.copy(HERE / "_outcomes.py", plugins)
        paths = [path for path in (env or {}).get("PYTHONPATH", "").split(os.pathsep) if path]
        done = run(
            [
                interpreter,
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                "-p",
                "_outcomes",
                *options,
                *targets,
            ],
            cwd=cwd,
            env={
                **(env or {}),
                "PYTHONPATH": os.pathsep.join([*paths, str(plugins)]),
                "PYTHONDONTWRITEBYTECODE": "1",
                "BENCH_OUTCOMES": str(record),
            },
            timeout=timeout,
            memory=MEMORY_LIMIT,
        )
        lines = record.read_text("utf-8").splitlines() if record.exists() else []
    return TestRun(merge_outcomes(lines), done.returncode, done.seconds, (done.stdout + done.stderr)[-2000:])


# --- the program ---


def find_program(given: str | None) -> str:
    """The `agent-ls` to measure: the one given, the one beside this interpreter, or the one on PATH."""
    if given:
        found = shutil.which(given)
    else:
        beside = Path(sys.executable).with_name("agent-ls")
        found = str(beside) if beside.exists() else shutil.which("agent-ls")
    if not found:
        raise BenchmarkError("agent-ls was not found: install it into this environment or pass --program")
    return str(Path(found).absolute())


def parse_report(stdout: str) -> Row | None:
    """The JSON document `agent-ls fix --json` printed, or None if there is none."""
    try:
        report = json.loads(stdout)
    except ValueError:
        return None
    return report if isinstance(report, dict) and "verdict" in report else None


def fix(
    program: str,
    repo: Path,
    arguments: Sequence[str],
    *,
    state: Path,
    timeout: float,
    env: Mapping[str, str],
) -> tuple[Row, Row | None]:
    """Run `agent-ls fix --json` on `repo`; returns (measured, report).

    The sessions go into `state`; the cache stays the user's, as models live there. `measured` holds the
    verdict (`killed` beyond the deadline, `no_report` without a JSON document), exit code,
    tokens, steps, seconds.
    """
    argv = [program, "fix", "--json", "--repo", str(repo), "--timeout", f"{timeout:g}", *arguments]
    done = run(argv, cwd=repo, env={**env, "AGENT_LS_STATE_DIR": str(state)}, timeout=timeout + GRACE)
    report = parse_report(done.stdout)
    usage: Row = (report or {}).get("usage") or {}
    row: Row = {
        "verdict": "killed" if done.timed_out else (report or {}).get("verdict", "no_report"),
        "exit_code": done.returncode,
        "stop_reason": (report or {}).get("stop_reason"),
        "model_calls": usage.get("model_calls", 0),
        "tool_calls": usage.get("tool_calls", 0),
        "input_tokens": usage.get("input_tokens", 0),
        "output_tokens": usage.get("output_tokens", 0),
        "cached_tokens": usage.get("cached_tokens", 0),
        "cost_usd": usage.get("cost_usd"),
        "steps": (report or {}).get("steps", 0),
        "wall_s": round(done.seconds, 2),
        "files_changed": (report or {}).get("files_changed") or [],
        "diff": (report or {}).get("diff") or "",
        "limits": (report or {}).get("limits"),
        "model": usage.get("model"),
    }
    if row["verdict"] != "fixed":
        told = (report or {}).get("summary") or (report or {}).get("error") or ""
        row["summary"] = told[:2000] if isinstance(told, str) else told
        row["stderr_tail"] = done.stderr[-1500:]
    return row, report


def environment(program: str | None, interpreter: str) -> Row:
    """What the numbers depend on: versions, cores, load."""

    def first_line(*argv: str) -> str:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run(argv, capture_output=True, text=True, timeout=30)
            return (done.stdout or done.stderr).strip().partition("\n")[0]
        return "?"

    cpu = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                cpu = line.partition(":")[2].strip()
                break
    return {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "agent_ls": first_line(program, "--version") if program else None,
        "python": platform.python_version(),
        "interpreter_under_test": first_line(interpreter, "--version"),
        "pytest": first_line(interpreter, "-m", "pytest", "--version"),
        "git": first_line("git", "--version"),
        "system": platform.platform(),
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load_average": [round(value, 2) for value in os.getloadavg()],
    }


def split_extra(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split a command line at the first `--`: ours, and what goes to `agent-ls fix` as it is."""
    arguments = list(argv)
    if "--" in arguments:
        at = arguments.index("--")
        return arguments[:at], arguments[at + 1 :]
    return arguments, []

"""One test again: a run forked from the warm process against `python -m pytest`, in pairs.

    python benchmarks/quick_tests.py examples/sample
    python benchmarks/quick_tests.py CHECKOUT[@REVISION] --interpreter VENV/bin/python --test ID --edit SOURCE

Each pair is one fresh `python -m pytest ID` (no sandbox, nothing of ours) and one `QuickRunner.run([ID])` in
the sandbox, over a copy of the checkout in which one file was edited before. Wall time is what a caller
waits; processor time counts the caller, the warm process and the run. Medians of pairs, and their ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from _common import BenchmarkError, environment, export, git

from agent_ls.sandbox.confine import View, choose
from agent_ls.settings import Settings
from agent_ls.testing.plan import find_plan
from agent_ls.testing.quick import QuickRunner
from agent_ls.testing.runner import TestRunner

NEVER = 10**9


def checkout(source: str, into: Path) -> None:
    """A copy of a folder, or of a revision of a repository (`PATH@REVISION`), without history."""
    path, _, revision = source.partition("@")
    if revision:
        export(Path(path), git(Path(path), "rev-parse", revision), into)
    else:
        shutil.copytree(
            path, into, ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__", ".pytest_cache")
        )


def fresh(interpreter: str, test: str, root: Path, env: dict[str, str]) -> tuple[float, float, int]:
    """Seconds of wall and processor time, and the exit code, of `python -m pytest`."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider", test],
        cwd=root,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    return wall, usage.ru_utime + usage.ru_stime, process.returncode


def used(quick: QuickRunner) -> float:
    """Processor seconds of this process and of everything at and below the warm one so far."""
    total = time.process_time()
    if quick.pid is not None:
        top = psutil.Process(quick.pid)
        for process in [top, *top.children(recursive=True)]:
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    base = Path(tempfile.mkdtemp(prefix="quick-tests-", dir=arguments.folder))
    try:
        root = base / "tree"
        checkout(arguments.source, root)
        for name in ("repo", "scratch"):
            (base / name).mkdir()
        settings = Settings(interpreter=arguments.interpreter, sandbox=arguments.sandbox)
        plan = find_plan(root, base / "repo", settings)
        sandbox = choose(arguments.sandbox)
        runner = TestRunner(plan, sandbox, View(root, base / "repo", base / "scratch"), settings)
        test = arguments.test
        if test is None:
            test = next(result.id for result in runner.run().tests if not result.outcome.bad)
        env = {**os.environ, "PYTHONPATH": str(root / "src")}
        edited = root / (arguments.edit or test.partition("::")[0])
        events: list[str] = []
        with QuickRunner(
            runner,
            base / "quick",
            on_event=lambda event: events.append(f"{event.state}: {event.reason}"),
            check_every=NEVER,
        ) as quick:
            for _ in range(3):  # learns, starts, is checked
                quick.run([test])
            if quick.reason is not None:
                raise BenchmarkError(f"no warm process: {quick.reason}")
            walls, forked_walls, processor = [], [], []
            before = used(quick)
            outcomes = set()
            for number in range(arguments.pairs):
                with edited.open("a") as file:
                    file.write(f"# {number}\n")
                wall, cpu, code = fresh(plan.interpreter or sys.executable, test, root, env)
                walls.append(wall)
                processor.append(cpu)
                began = time.perf_counter()
                run = quick.run([test])
                forked_walls.append(time.perf_counter() - began)
                outcomes.add((code, run.exit_code))
            spent = (used(quick) - before) / arguments.pairs
            if quick.reason is not None or quick.counts.started != 1 or len(outcomes) != 1:
                raise BenchmarkError(f"the runs differ: {outcomes}, {events}")
        ratios = [ours / theirs for ours, theirs in zip(forked_walls, walls, strict=True)]
        return {
            "source": Path(arguments.source.partition("@")[0]).name,
            "test": test,
            "sandbox": sandbox.name,
            "exit_codes": sorted(outcomes),
            "pairs": arguments.pairs,
            "fresh_wall_ms": round(1000 * statistics.median(walls), 1),
            "quick_wall_ms": round(1000 * statistics.median(forked_walls), 1),
            "wall_ratio": round(statistics.median(ratios), 3),
            "best_wall_ratio": round(min(forked_walls) / min(walls), 3),
            "fresh_cpu_ms": round(1000 * statistics.mean(processor), 1),
            "quick_cpu_ms": round(1000 * spent, 1),
            "cpu_ratio": round(spent / statistics.mean(processor), 3),
        }
    finally:
        shutil.rmtree(base, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", help="a folder, or REPOSITORY@REVISION")
    parser.add_argument("--interpreter", default=sys.executable, help="the Python that runs the tests")
    parser.add_argument("--test", help="the test's id (default: the first that passes)")
    parser.add_argument("--edit", help="the file that gets a new line before each pair (default: the test's)")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--sandbox", choices=["auto", "bwrap", "off"], default="auto")
    parser.add_argument("--folder", type=Path, help="where the copy is made (default: the temporary folder)")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    try:
        row = measure(arguments)
    except (BenchmarkError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    if arguments.json:
        print(json.dumps({**row, "environment": environment(None, arguments.interpreter)}, indent=1))
    else:
        for name, value in row.items():
            print(f"{name:18} {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

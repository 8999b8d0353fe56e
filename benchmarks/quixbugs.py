"""Measure `agent-ls fix` on the Python programs of QuixBugs (Lin et al., SPLASH Companion 2017).

    python benchmarks/quixbugs.py CHECKOUT [--model M] [--first repair] [--only a,b] [--out F.json] [-- ARGS]

CHECKOUT is a clone of the benchmark. Each program becomes a fresh repository with the program, its tests and
their data only; the corrected programs stay outside. A task is solved when `agent-ls fix` exits with 0 AND
the program it left on its branch, laid into a copy of the original tests, passes every test that the
corrected program passes.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from _common import (
    BenchmarkError,
    Row,
    changed_paths,
    commit_all,
    environment,
    find_program,
    fix,
    git,
    git_bytes,
    run_pytest,
    split_extra,
)
from _results import Results, table_head, table_row, usage_totals

COLUMNS = ("program", "solved", "verdict", "judged", "calls", "tokens in", "tokens out", "steps", "wall s")
WIDTHS = (26, 6, 14, 12, -5, -9, -10, -5, -7)


def programs(checkout: Path) -> list[str]:
    """The names of the tasks: programs that have both a corrected version and a test file.

    Raises `BenchmarkError` if `checkout` holds none.
    """
    names = sorted(
        path.stem
        for path in (checkout / "python_programs").glob("*.py")
        if (checkout / "correct_python_programs" / path.name).exists()
        and (checkout / "python_testcases" / f"test_{path.name}").exists()
    )
    if not names:
        raise BenchmarkError(
            f"{checkout} is no QuixBugs checkout: no program with a test in python_testcases"
        )
    return names


def task_files(checkout: Path, name: str) -> list[str]:
    """The paths, relative to the checkout, that belong to program `name`: what its test imports and loads."""
    test = f"python_testcases/test_{name}.py"
    files = [f"python_programs/{name}.py", "conftest.py", test]
    source = (checkout / test).read_text("utf-8")
    for module in ("load_testdata", "node"):
        if re.search(rf"^\s*(?:from|import) {module}\b", source, re.MULTILINE):
            files.append(f"python_testcases/{module}.py")
    if (checkout / "json_testcases" / f"{name}.json").exists():
        files.append(f"json_testcases/{name}.json")
    return files


def lay_out(checkout: Path, name: str, into: Path) -> None:
    """Copy the files of program `name` into the new directory `into`."""
    for path in task_files(checkout, name):
        target = into / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(checkout / path, target)


def judge(checkout: Path, name: str, source: bytes, interpreter: str, deadline: float) -> tuple[str, str]:
    """Run the original tests on `source` as program `name`; returns (verdict, why).

    The verdict is "passes", "fails", "timeout" or "invalid" (the corrected program does not pass here).
    """
    with tempfile.TemporaryDirectory(prefix="quixbugs-judge-") as scratch:
        runs = []
        correct = (checkout / "correct_python_programs" / f"{name}.py").read_bytes()
        for label, text, limit in (
            ("correct", correct, max(deadline, 120.0)),
            ("candidate", source, deadline),
        ):
            where = Path(scratch) / label
            lay_out(checkout, name, where)
            (where / "python_programs" / f"{name}.py").write_bytes(text)
            runs.append(
                run_pytest(
                    interpreter,
                    [f"python_testcases/test_{name}.py"],
                    cwd=where,
                    timeout=limit,
                    options=["-x"],
                )
            )
    reference, candidate = runs
    wanted = reference.ids("passed")
    if not wanted or reference.returncode != 0:
        return "invalid", reference.tail
    if candidate.timed_out:
        return "timeout", f"no end within {deadline:g} s"
    missing = sorted(wanted - candidate.ids("passed"))
    if missing:
        return "fails", f"{len(missing)} of {len(wanted)} do not pass, first {missing[0]}"
    return "passes", ""


def run_task(options: argparse.Namespace, program: str, extra: Sequence[str], name: str) -> Row:
    """One program from a fresh repository to the judged row."""
    scratch = Path(tempfile.mkdtemp(prefix=f"quixbugs-{name}-", dir=options.keep))
    try:
        repo = scratch / name
        lay_out(options.checkout, name, repo)
        base = commit_all(repo, f"{name}: the program and its tests")
        arguments = ["--test", f"python_testcases/test_{name}.py", "--text", f"The tests of {name} fail."]
        if options.model:
            arguments += ["--model", options.model]
        env = {
            "AGENT_LS_PER_TEST_TIMEOUT": f"{options.per_test_timeout:g}",
            "AGENT_LS_INTERPRETER": options.interpreter,
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        if options.first:
            env["AGENT_LS_FIRST"] = options.first
        row, report = fix(
            program, repo, [*arguments, *extra], state=scratch / "state", timeout=options.timeout, env=env
        )
        row["judged"], row["judged_why"] = "no patch", ""
        commit = (report or {}).get("commit")
        path = f"python_programs/{name}.py"
        if commit:
            row["other_files"] = [p for p in changed_paths(repo, base, commit) if p != path]
            try:
                source = git_bytes(repo, "show", f"{commit}:{path}")
            except BenchmarkError as error:
                row["judged"], row["judged_why"] = "fails", str(error)
            else:
                row["judged"], row["judged_why"] = judge(
                    options.checkout, name, source, options.interpreter, options.judge_timeout
                )
        row["repository_untouched"] = git(repo, "rev-parse", "HEAD") == base and not git(
            repo, "status", "--porcelain"
        )
        row["solved"] = row["exit_code"] == 0 and row["judged"] == "passes"
        return row
    finally:
        if options.keep is None:
            shutil.rmtree(scratch, ignore_errors=True)


def totals(rows: Iterable[Row]) -> Row:
    """Solved tasks and what they took; `false_claims` said fixed and were not, `unclaimed` the reverse."""
    rows = list(rows)
    summary = usage_totals(rows, lambda row: bool(row["solved"]))
    summary["solved"] = summary.pop("won")
    summary["tokens_per_solved"] = summary.pop("tokens_per_won")
    summary["false_claims"] = sum(row["exit_code"] == 0 and row["judged"] != "passes" for row in rows)
    summary["unclaimed"] = sum(row["exit_code"] != 0 and row["judged"] == "passes" for row in rows)
    summary["repository_touched"] = sum(not row["repository_untouched"] for row in rows)
    return summary


def cells(name: str, row: Row) -> list[object]:
    return [
        name,
        "yes" if row["solved"] else "no",
        row["verdict"],
        row["judged"],
        row["model_calls"],
        row["input_tokens"],
        row["output_tokens"],
        row["steps"],
        f"{row['wall_s']:.1f}",
    ]


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", type=Path, metavar="CHECKOUT")
    parser.add_argument("--model", help="passed to agent-ls (default: what is configured)")
    parser.add_argument("--first", help="the cheap model tried before the main one (setting `first`)")
    parser.add_argument("--only", help="comma-separated program names")
    parser.add_argument("--out", type=Path, help="JSON results, rewritten after each program")
    parser.add_argument("--resume", action="store_true", help="skip what --out holds already")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds agent-ls has for a program")
    parser.add_argument("--per-test-timeout", type=float, default=5.0)
    parser.add_argument(
        "--judge-timeout", type=float, default=120.0, help="seconds a judged test run may take"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--program", help="the agent-ls executable to measure")
    parser.add_argument("--interpreter", default=sys.executable, help="a Python with pytest for the tests")
    parser.add_argument("--keep", type=Path, help="keep repositories and sessions in this directory")
    options = parser.parse_args(argv)
    options.checkout = options.checkout.resolve()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
        options.keep = options.keep.resolve()
    return options


def main(argv: Sequence[str]) -> int:
    own, extra = split_extra(argv)
    options = arguments(own)
    program = find_program(options.program)
    names = programs(options.checkout)
    if options.only:
        chosen = options.only.split(",")
        if unknown := sorted(set(chosen) - set(names)):
            raise BenchmarkError(f"no such program: {', '.join(unknown)}")
        names = [name for name in names if name in chosen]
    keys = ("model", "first", "timeout", "per_test_timeout")
    head: Row = {
        "benchmark": "quixbugs",
        "environment": environment(program, options.interpreter),
        "settings": {**{key: getattr(options, key) for key in keys}, "extra": extra},
    }
    results = Results(options.out, head, resume=options.resume)
    for part in ("environment", "settings"):
        print(f"{part}: " + ", ".join(f"{key}={value}" for key, value in head[part].items()))
    print(table_head(COLUMNS, WIDTHS), flush=True)
    told = threading.Lock()

    def work(name: str) -> None:
        if name not in results.rows:
            results.add(name, run_task(options, program, extra, name), totals)
        with told:
            print(table_row(cells(name, results.rows[name]), WIDTHS), flush=True)

    started = time.monotonic()
    with ThreadPoolExecutor(max(1, options.jobs)) as pool:
        for outcome in [pool.submit(work, name) for name in names]:
            outcome.result()
    summary = totals(results.rows[name] for name in names)
    print(f"\nsolved {summary['solved']}/{summary['tasks']} in {time.monotonic() - started:.0f} s")
    print(", ".join(f"{key}={value}" for key, value in summary.items()))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BenchmarkError as problem:
        sys.exit(f"quixbugs: {problem}")

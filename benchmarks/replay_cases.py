"""Measure `agent-ls fix` on finished fixes of real projects, judged by the tests of the real fix.

    python benchmarks/replay_cases.py CASES --repos DIR [--mode with-tests|issue-only] [--model M] [-- ARGS]

Each case becomes a fresh repository of one commit, made from the tree before the fix, so it holds nothing of
the future. `--oracle fix` puts the real fix through the same judge (the ceiling), `--oracle none` no change
at all (the floor).
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from _cases import Patch, Workbench, find_repository, load_case, read_patch, split_patch
from _common import (
    BenchmarkError,
    Row,
    commit_all,
    environment,
    find_program,
    fix,
    git,
    split_extra,
)
from _results import Results, table_head, table_row, usage_totals

COLUMNS = ("case", "grade", "verdict", "f2p", "broken", "calls", "tokens in", "tokens out", "steps", "wall s")
WIDTHS = (30, 10, 14, -5, -6, -5, -9, -10, -5, -7)
WITHOUT_PATCH = {
    "provider_error": "invalid",  # says nothing about agent-ls
    "budget": "limit",
    "killed": "limit",
    # the tests ran for the reference, so not being able to run them is a loss of agent-ls
    **dict.fromkeys(("env_broken", "error", "usage", "no_report"), "error"),
}
NOTE = "the test command covers the pass-to-pass files of each case only, not the project's whole suite"


def test_command(bench: Workbench, *, hidden: bool) -> str:
    """The test command for agent-ls as one string: pytest on the case's files in its environment."""
    base = [bench.interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    options = [option for option in bench.case.test_options if option not in ("-q", "-p", "no:cacheprovider")]
    return shlex.join([*base, *options, *bench.targets(hidden=hidden)])


def without_relative_path(env: Mapping[str, str]) -> dict[str, str]:
    """`env` without a PYTHONPATH of relative entries.

    Under it agent-ls itself would import the project under test (Jinja, click) instead of its own dependency.
    The tests need no such entry, as `python -m pytest` puts its directory first.
    """
    relative = all(not Path(part).is_absolute() for part in env.get("PYTHONPATH", "/").split(os.pathsep))
    return {name: value for name, value in env.items() if not (relative and name == "PYTHONPATH")}


def no_patch_grade(verdict: str) -> str:
    """The grade of a run that left no change: what stopped it, or plainly no patch."""
    return WITHOUT_PATCH.get(verdict, "no_patch")


def run_agent(
    options: argparse.Namespace,
    program: str,
    extra: Sequence[str],
    bench: Workbench,
    reference: dict[str, Any],
) -> Row:
    """One case through agent-ls, then through the judge."""
    case = bench.case
    tests = options.mode == "with-tests"
    bench.lay_out(tests=tests)
    start = commit_all(bench.repo, f"{case.name} before the fix")
    scratch = Path(tempfile.mkdtemp(prefix=f"replay-{case.id}-", dir=options.keep))
    try:
        issue = scratch / "issue.md"
        issue.write_text(f"# {case.title}\n\n{case.body}\n", "utf-8")
        arguments = ["--issue-file", str(issue), "--test-command", test_command(bench, hidden=tests)]
        if tests:
            arguments += [part for name in case.wanted for part in ("--test", name)]
        if options.model:
            arguments += ["--model", options.model]
        env = {
            **without_relative_path(case.env),
            "AGENT_LS_INTERPRETER": bench.interpreter,
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        if options.first:
            env["AGENT_LS_FIRST"] = options.first
        state, limit = scratch / "state", options.timeout
        row, report = fix(program, bench.repo, [*arguments, *extra], state=state, timeout=limit, env=env)
        row.update(judged(bench, report, row["verdict"], start, reference))
    finally:
        if options.keep is None:
            shutil.rmtree(scratch, ignore_errors=True)
    return row


def judged(bench: Workbench, report: Row | None, verdict: str, start: str, reference: dict[str, Any]) -> Row:
    """What the judge says of the commit that `report` names; the run directory is made anew for it."""
    commit = (report or {}).get("commit")
    head, dirty = git(bench.repo, "rev-parse", "HEAD"), git(bench.repo, "status", "--porcelain")
    patch = read_patch(bench.repo, start, commit) if commit else {}
    kept, ignored = split_patch(bench.case, patch)
    row: Row = {"repository_untouched": head == start and not dirty, "ignored_test_changes": ignored}
    if not kept:
        wanted = len(bench.case.wanted)
        return {**row, "grade": no_patch_grade(verdict), "f2p": f"0/{wanted}", "broken": 0}
    return {**row, **grade_row(bench, kept, reference)}


def grade_row(bench: Workbench, patch: Patch, reference: dict[str, Any]) -> Row:
    """The judge's verdict on `patch` as columns of a row."""
    verdict, seconds = bench.judge(patch, reference)
    return {
        "grade": verdict.grade,
        "f2p": f"{len(verdict.fixed)}/{len(bench.case.wanted)}",
        "broken": len(verdict.regressed),
        "targets": bench.targets(hidden=True),
        "missing": verdict.missing[:10],
        "regressed": verdict.regressed[:10],
        "judge_s": round(seconds, 2),
    }


def run_claimed(
    options: argparse.Namespace, program: str | None, extra: Sequence[str], bench: Workbench
) -> Row:
    """Prepare the case where it isn't, then run the oracle or the agent on it."""
    reference = bench.prepare()
    if not reference["valid"]:
        return {"grade": "invalid", "why": "the real fix does not turn its tests here"}
    if options.oracle:
        row = grade_row(bench, bench.real_fix() if options.oracle == "fix" else {}, reference)
        return {**row, "verdict": f"oracle {options.oracle}", "wall_s": row["judge_s"]}
    assert program is not None
    return run_agent(options, program, extra, bench, reference)


def run_case(options: argparse.Namespace, program: str | None, extra: Sequence[str], path: Path) -> Row:
    """One case file to its row; a case that can't be prepared is graded invalid with the cause."""
    blank: Row = {"verdict": "-", "exit_code": None, "f2p": "-", "broken": 0, "steps": 0, "wall_s": 0.0}
    try:
        case = load_case(path)
        clone = find_repository(options.repos, case)
        bench = Workbench(case, clone, options.envs / case.id, options.judge_timeout)
        with bench.claimed():
            return {"kind": case.kind, **blank, **run_claimed(options, program, extra, bench)}
    except BenchmarkError as error:
        return {**blank, "grade": "invalid", "why": str(error)}


def totals(rows: Iterable[Row]) -> Row:
    """Cases by grade, the share resolved of the valid ones, and what they took."""
    rows = list(rows)
    summary = usage_totals(rows, lambda row: row["grade"] == "resolved")
    summary["resolved"], summary["tokens_per_resolved"] = summary.pop("won"), summary.pop("tokens_per_won")
    summary["grades"] = dict(Counter(row["grade"] for row in rows))
    summary["valid"] = sum(row["grade"] != "invalid" for row in rows)
    summary["false_claims"] = sum(row["exit_code"] == 0 and row["grade"] != "resolved" for row in rows)
    summary["unclaimed"] = sum(
        row["exit_code"] not in (0, None) and row["grade"] == "resolved" for row in rows
    )
    summary["repository_touched"] = sum(not row.get("repository_untouched", True) for row in rows)
    return summary


def cells(name: str, row: Row) -> list[object]:
    counts = [row.get(key, 0) for key in ("model_calls", "input_tokens", "output_tokens", "steps")]
    return [name, row["grade"], row["verdict"], row["f2p"], row["broken"], *counts, f"{row['wall_s']:.1f}"]


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cases", type=Path, metavar="CASES_DIR")
    parser.add_argument("--repos", type=Path, required=True, help="clones: NAME, NAME.git or OWNER/NAME")
    parser.add_argument(
        "--envs", type=Path, help="environments and run directories (default: beside --repos)"
    )
    parser.add_argument("--case", help="comma-separated case ids")
    parser.add_argument("--mode", choices=("with-tests", "issue-only"), default="with-tests")
    parser.add_argument(
        "--oracle", choices=("fix", "none"), help="judge the real fix, or nothing, without agent-ls"
    )
    parser.add_argument("--model", help="passed to agent-ls (default: what is configured)")
    parser.add_argument("--first", help="the cheap model tried before the main one (setting `first`)")
    parser.add_argument("--out", type=Path, help="JSON results, rewritten after each case")
    parser.add_argument("--resume", action="store_true", help="skip what --out holds already")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds agent-ls has for a case")
    parser.add_argument(
        "--judge-timeout", type=float, default=300.0, help="seconds a judged test run may take"
    )
    parser.add_argument("--program", help="the agent-ls executable to measure")
    parser.add_argument("--keep", type=Path, help="keep the sessions in this directory")
    options = parser.parse_args(argv)
    options.repos = options.repos.resolve()
    options.envs = (options.envs or options.repos.parent / "envs").resolve()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
        options.keep = options.keep.resolve()
    return options


def main(argv: Sequence[str]) -> int:
    own, extra = split_extra(argv)
    options = arguments(own)
    program = None if options.oracle else find_program(options.program)
    files = {path.stem: path for path in sorted(options.cases.glob("*.json"))}
    if not files:
        raise BenchmarkError(f"no case files in {options.cases}")
    names = options.case.split(",") if options.case else list(files)
    if unknown := sorted(set(names) - set(files)):
        raise BenchmarkError(f"no such case: {', '.join(unknown)}")
    settings = {key: getattr(options, key) for key in ("mode", "oracle", "model", "first", "timeout")}
    head: Row = {
        "benchmark": "replay",
        "environment": environment(program, sys.executable),
        "settings": {**settings, "extra": extra},
        "limit": NOTE,
    }
    results = Results(options.out, head, resume=options.resume)
    for part in ("environment", "settings"):
        print(f"{part}: " + ", ".join(f"{key}={value}" for key, value in head[part].items()))
    print(f"limit: {NOTE}\n{table_head(COLUMNS, WIDTHS)}", flush=True)
    started = time.monotonic()
    for name in names:
        if name not in results.rows:
            results.add(name, run_case(options, program, extra, files[name]), totals)
        print(table_row(cells(name, results.rows[name]), WIDTHS), flush=True)
        if why := results.rows[name].get("why"):
            print(f"  {name}: {why}", file=sys.stderr)
    summary = totals(results.rows[name] for name in names)
    print(f"\nresolved {summary['resolved']}/{summary['valid']} valid in {time.monotonic() - started:.0f} s")
    print(", ".join(f"{key}={value}" for key, value in summary.items()))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BenchmarkError as problem:
        sys.exit(f"replay_cases: {problem}")

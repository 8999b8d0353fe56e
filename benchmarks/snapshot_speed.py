"""How long a snapshot of the working tree takes, beside `git status`, when the changed files are known.

    python benchmarks/snapshot_speed.py CORPUS [--rounds 20]

CORPUS is copied and made a git repository. Each round changes a file and takes, in turns, a snapshot that is
told which file that was, one that looks at everything (as after a test run, which may write anywhere), and
`git status`. Wall time; medians, and the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from index_speed import repository


def timed(action: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds, those of child processes included."""
    started, before = time.perf_counter(), sum(os.times()[:4])
    action()
    return time.perf_counter() - started, sum(os.times()[:4]) - before


def main() -> None:
    from agent_ls.workspace.git import Repository
    from agent_ls.workspace.snapshot import take_snapshot
    from agent_ls.workspace.worktree import Worktree

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder).resolve()
        files = repository(given.corpus, work / "top", None)
        repo = Repository.discover(work / "top")
        tree = Worktree.create(repo, take_snapshot(repo, work / "scratch", None), work / "tree")
        tree.write_tree()
        time.sleep(2.5)  # times of the files have settled for git
        status = ["git", "status", "--porcelain"]
        chance = random.Random(1)
        rows: list[tuple[tuple[float, float], ...]] = []
        for _ in range(given.rounds):
            path = chance.choice([path for path in files if path.suffix == ".py"])
            text = (tree.path / path).read_bytes() + b"\n"
            (tree.path / path).write_bytes(text)
            known = timed(lambda path=path: tree.write_tree([path.as_posix()]))
            every = timed(tree.write_tree)
            peer = timed(lambda: subprocess.run(status, cwd=tree.path, capture_output=True, check=True))
            rows.append((known, every, peer))
    print(f"{len(files)} files, load {os.getloadavg()[0]:.1f}\n")
    print("| what | ms | ms of CPU | against `git status`, wall / CPU |\n|---|---:|---:|---:|")
    for place, name in enumerate(("known path", "everything", "git status")):
        wall = 1000 * statistics.median(row[place][0] for row in rows)
        ratio = statistics.median(row[place][0] / row[2][0] for row in rows)
        # The clock of CPU time is coarse: sums instead of each round's.
        cpu = [sum(row[which][1] for row in rows) for which in (place, 2)]
        said = f"{ratio:.2f} / {cpu[0] / cpu[1]:.2f}"
        print(f"| {name} | {wall:.1f} | {1000 * cpu[0] / len(rows):.1f} | {said} |")


if __name__ == "__main__":
    main()

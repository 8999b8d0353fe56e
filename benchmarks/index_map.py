"""How fast the ranked overview is, beside aider's repository map on the same files.

    python benchmarks/index_map.py CORPUS --aider PYTHON [--rounds 3] [--tokens 1024] [--out FILE]

CORPUS is any folder of source code; it is copied and made a git repository first. PYTHON is an interpreter
that has aider-chat. Each round measures both, one after the other: "cold" is a new process on an empty cache
(index and first map), "new process" the same on a full cache, "same process" further maps, each for other
words, and "after an edit" (ours) a map after one file has changed. The table shows medians and the median of
the rounds' ratios; CPU time (with child processes) tells more than wall time when the machine is shared.
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
from pathlib import Path
from typing import Any

from _common import commit_all, environment

WARM = 3
_OURS = """
import json, os, sys, time
from pathlib import Path
from agent_ls.workspace.index.index import open_index
from agent_ls.workspace.index.repomap import Focus, repo_map

def used():
    own, children = os.times()[:2], os.times()[2:4]
    return sum(own) + sum(children)

def timed(action):
    wall, cpu = time.perf_counter(), used()
    action()
    return {"wall": time.perf_counter() - wall, "cpu": used() - cpu}

root, cache, tokens, warm = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
index = open_index(root, cache_dir=cache)
first = timed(lambda: repo_map(index.view(), tokens, Focus(frozenset({"QuerySet", "cache"}))))
more = [
    timed(lambda: repo_map(index.view(), tokens, Focus(frozenset({"QuerySet", "cache", f"unlike{n}"}))))
    for n in range(warm)
]
edits = []
path = max(index.view().files(), key=lambda info: info.size if info.language == "python" else 0).path
for n in range(warm):
    index.overlay(path, index.view().text(path) + b"\\n\\ndef added_%d(): pass\\n" % n)
    edits.append(timed(lambda: repo_map(index.view(), tokens, Focus(frozenset({"QuerySet", "cache"})))))
index.close()
print(json.dumps({"first": first, "warm": more, "edits": edits}))
"""


def ours(root: Path, cache: Path, tokens: int) -> dict[str, Any]:
    """The timings of one process."""
    argv = [sys.executable, "-c", _OURS, str(root), str(cache), str(tokens), str(WARM)]
    # As an installed program has it: bytecode is kept, wherever this script was started.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(argv, capture_output=True, check=True, text=True, env=env)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def peer(interpreter: str, root: Path, *options: str) -> dict[str, Any]:
    """aider's timings of one process."""
    argv = [
        interpreter,
        str(Path(__file__).with_name("_aider_peer.py")),
        "time",
        str(root),
        str(WARM),
        *options,
    ]
    done = subprocess.run(argv, capture_output=True, check=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def median(timings: list[dict[str, float]], what: str) -> float:
    return statistics.median(timing[what] for timing in timings)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--aider", metavar="PYTHON", required=True, help="an interpreter that has aider-chat")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rounds: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="bench-map-") as scratch:
        root = Path(scratch) / "corpus"
        shutil.copytree(given.corpus, root, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        commit_all(root, "corpus")
        for number in range(given.rounds):
            cache = Path(scratch) / f"cache{number}"
            cold, new = ours(root, cache, given.tokens), ours(root, cache, given.tokens)
            theirs, again = peer(given.aider, root), peer(given.aider, root, "keep")
            rounds.append(
                {
                    "cold": (cold["first"], theirs["first"]),
                    "new process": (new["first"], again["first"]),
                    "same process": (_middle(new["warm"]), _middle(again["warm"])),
                    "after an edit": (_middle(new["edits"]), _middle(again["warm"])),
                }
            )
            print(f"round {number + 1}: {json.dumps(rounds[-1])}", file=sys.stderr, flush=True)
    print("| map | ours, CPU s | aider, CPU s | ratio, CPU | ratio, wall |")
    print("|---|---|---|---|---|")
    for kind in rounds[0]:
        pairs = [row[kind] for row in rounds]
        ratios = {
            what: statistics.median(mine[what] / other[what] for mine, other in pairs)
            for what in ("cpu", "wall")
        }
        mine, other = (median([pair[side] for pair in pairs], "cpu") for side in (0, 1))
        print(f"| {kind} | {mine:.2f} | {other:.2f} | {ratios['cpu']:.3f} | {ratios['wall']:.3f} |")
    if given.out:
        document = {"environment": environment(None, sys.executable), "rounds": rounds}
        given.out.write_text(json.dumps(document, indent=1) + os.linesep, "utf-8")
    return 0


def _middle(timings: list[dict[str, float]]) -> dict[str, float]:
    return {what: median(timings, what) for what in ("wall", "cpu")}


if __name__ == "__main__":
    sys.exit(main())

"""How fast text search and symbol lookups of a warm index are, beside ripgrep on the same files.

    python benchmarks/index_search.py CORPUS --rg PROGRAM [--rounds 9] [--out FILE]

CORPUS is any folder of source code; it is copied and made a git repository first. Both answer the same
query in turn, ours in process and ripgrep as a process, as an editor's server meets them. Ratios are medians
of the rounds' ratios; CPU time (with child processes) tells more when the machine is shared. "first N" stops
ours at N hits, which ripgrep has no way to do over several files.
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

from _common import commit_all, environment

# (name, query, regular expression?, most hits)
QUERIES = [
    ("rare literal", "get_deferred_fields", False, 10_000),
    ("common literal, first 200", "QuerySet", False, 200),
    ("very common literal, first 200", "def ", False, 200),
    ("common literal, all", "QuerySet", False, 100_000),
    ("regex with a literal part", r"class \w+Field\(", True, 10_000),
    ("regex without", r"[a-z]{3}_[0-9]{2}\b", True, 10_000),
]


def used() -> float:
    """CPU seconds of this process and its ended children."""
    return sum(os.times()[:4])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--rg", required=True)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()

    from agent_ls.workspace.index.index import open_index
    from agent_ls.workspace.index.textsearch import search_index

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "corpus"
        shutil.copytree(options.corpus, root, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        subprocess.run(["git", "init", "-q", root], check=True)
        commit_all(root, "as it is")
        rows: list[dict[str, Any]] = []
        with open_index(root, cache_dir=Path(folder) / "cache") as index:
            index.refresh()
            view = index.view()
            for name, query, regex, limit in QUERIES:
                kind = [] if regex else ["--fixed-strings"]
                command = [options.rg, "--no-config", "--line-number", *kind, "--", query, "."]
                pairs, hits = [], 0
                for _ in range(options.rounds):
                    wall, cpu = time.perf_counter(), used()
                    found = search_index(
                        root, view, query, regex=regex, word=False, case="sensitive", globs=(),
                        limit=limit, seconds=30, cancel=None,
                    )  # fmt: skip
                    mine = (time.perf_counter() - wall, used() - cpu)
                    hits = len(found.hits)
                    wall, cpu = time.perf_counter(), used()
                    subprocess.run(command, cwd=root, stdout=subprocess.DEVNULL, check=False)
                    pairs.append((mine, (time.perf_counter() - wall, used() - cpu)))
                rows.append(
                    {
                        "query": name,
                        "hits": hits,
                        "ours_ms": 1000 * statistics.median(ours[0] for ours, _ in pairs),
                        "rg_ms": 1000 * statistics.median(peer[0] for _, peer in pairs),
                        "wall_ratio": statistics.median(ours[0] / peer[0] for ours, peer in pairs),
                        "cpu_ratio": statistics.median(ours[1] / max(peer[1], 1e-3) for ours, peer in pairs),
                    }
                )
            names = sorted(view.names())[:: max(1, len(view.names()) // 2000)]
            times = []
            for name in names:
                start = time.perf_counter()
                view.definitions(name)
                times.append(1000 * (time.perf_counter() - start))
    times.sort()
    lookup = {"p50_ms": times[len(times) // 2], "p99_ms": times[int(len(times) * 0.99)], "names": len(times)}
    print("| query | hits | ours ms | ripgrep ms | wall ratio | CPU ratio |\n|---|---:|---:|---:|---:|---:|")
    for row in rows:
        print(
            f"| {row['query']} | {row['hits']:,} | {row['ours_ms']:.1f} | {row['rg_ms']:.1f} |"
            f" {row['wall_ratio']:.3f} | {row['cpu_ratio']:.3f} |"
        )
    print(f"\nlookup of a definition by name: p50 {lookup['p50_ms']:.3f} ms, p99 {lookup['p99_ms']:.3f} ms")
    if options.out is not None:
        told = environment(None, sys.executable)
        document = {"environment": told, "rounds": options.rounds, "rows": rows, "lookup": lookup}
        options.out.write_text(json.dumps(document, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Does `agent-ls context` name a file of the real fix, from the issue's text alone?

    python benchmarks/context_quality.py CASES --repos DIR [--aider PYTHON] [--only ID]... [--out FILE]

CASES are replay cases (see replay_cases.py). The base commit's tree is exported without history, the case's
title and body are the task. Compared with aider's repository map for a chat message of the same text (PYTHON
is an interpreter that has aider-chat) and with a plain word search (cosine of tf-idf vectors of words over
all files). For every method a file is right if the fix changed it; the share of cases with a right file among
the first 1, 5 and 10 is reported, once as the methods answer and once without tests, documentation and other
files that are no source (the same rule for all).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from _cases import Case, find_repository, load_case, looks_like_test
from _common import BenchmarkError, commit_all, environment, export, find_program, git, run

FIRST = (1, 5, 10)
ASKED = 60
_WORD = re.compile(r"[^\W\d_]{2,}")
_SOURCE = {
    ".py",
    ".js",
    ".mjs",
    ".cjs",
    ".jsx",
    ".ts",
    ".tsx",
    ".go",
    ".rs",
    ".java",
    ".c",
    ".h",
    ".cc",
    ".cpp",
    ".rb",
}


def is_source(path: str) -> bool:
    """Code of the product by the usual naming."""
    pure = PurePosixPath(path)
    aside = {"docs", "doc", "examples", "benchmarks"}
    return (
        pure.suffix in _SOURCE
        and not looks_like_test(path)
        and not aside & {p.casefold() for p in pure.parts}
    )


def by_words(root: Path, text: str) -> list[str]:
    """All files by the cosine of their tf-idf vectors with the text's."""
    counts: dict[str, Counter[str]] = {}
    for path in git(root, "ls-files", "-z").split("\0"):
        data = (root / path).read_bytes() if path and (root / path).is_file() else b""
        if data and b"\0" not in data[:8000]:
            counts[path] = Counter(word.lower() for word in _WORD.findall(data.decode("utf-8", "replace")))
    holders = Counter(word for count in counts.values() for word in count)

    def vector(count: Counter[str]) -> dict[str, float]:
        return {
            word: (1 + math.log(number)) * math.log(len(counts) / holders[word])
            for word, number in count.items()
            if holders[word]
        }

    asked = vector(Counter(word.lower() for word in _WORD.findall(text)))
    scores = {}
    for path, count in counts.items():
        weights = vector(count)
        length = math.sqrt(sum(weight * weight for weight in weights.values())) or 1.0
        scores[path] = sum(weights.get(word, 0.0) * weight for word, weight in asked.items()) / length
    return sorted(scores, key=lambda path: (-scores[path], path))


def by_context(program: str, root: Path, text: str, cache: Path) -> list[str]:
    """The program's own answer."""
    task = cache.with_suffix(".txt")
    task.write_text(text, "utf-8")
    done = run(
        [program, "context", "--issue-file", str(task), "--json", "--limit", str(ASKED), "--repo", str(root)],
        cwd=root,
        env={"AGENT_LS_CACHE_DIR": str(cache)},
        timeout=120,
    )
    if done.returncode:
        raise BenchmarkError(f"agent-ls context failed: {done.stderr[-500:]}")
    return [row["path"] for row in json.loads(done.stdout)["files"]]


def by_aider(interpreter: str, root: Path, text: str) -> list[str]:
    """aider's order."""
    import subprocess

    peer = Path(__file__).with_name("_aider_peer.py")
    done = subprocess.run(
        [interpreter, str(peer), "rank", str(root)], input=text, capture_output=True, text=True
    )
    if done.returncode:
        raise BenchmarkError(f"aider's map failed: {done.stderr[-500:]}")
    files: list[str] = json.loads(done.stdout.splitlines()[-1])["files"]
    return files


def rank_of(files: Sequence[str], right: Sequence[str]) -> int | None:
    """The place of the first right file, counted from 1."""
    return next((place for place, path in enumerate(files, 1) if path in right), None)


def judge(
    case: Case, repos: Path, methods: dict[str, Callable[[Path, str, Path], list[str]]]
) -> dict[str, Any]:
    """One case: for each method the rank of the first right file, as answered and among sources alone."""
    text = f"{case.title}\n\n{case.body}"
    row: dict[str, Any] = {"case": case.id, "right": list(case.fix_files)}
    with tempfile.TemporaryDirectory(prefix="bench-context-") as scratch:
        root = Path(scratch) / case.name
        export(find_repository(repos, case), case.base, root)
        commit_all(root, "base")
        for name, method in methods.items():
            files = method(root, text, Path(scratch) / "cache")
            sources = [path for path in files if is_source(path)]
            row[name] = {
                "as_answered": rank_of(files, case.fix_files),
                "sources": rank_of(sources, case.fix_files),
                "first": files[:5],
            }
    return row


def table(rows: Sequence[dict[str, Any]], methods: Sequence[str]) -> list[str]:
    """The shares as lines of a Markdown table."""
    lines = [
        f"| {len(rows)} cases | " + " | ".join(f"first {n}" for n in FIRST) + " | mean reciprocal rank |"
    ]
    lines.append("|---|" + "---|" * (len(FIRST) + 1))
    for kind, label in (("as_answered", ""), ("sources", ", sources only")):
        for method in methods:
            ranks = [row[method][kind] for row in rows]
            hits = [sum(rank is not None and rank <= n for rank in ranks) for n in FIRST]
            mean = sum(1 / rank for rank in ranks if rank) / len(ranks)
            cells = " | ".join(f"{hit} ({hit / len(ranks):.0%})" for hit in hits)
            lines.append(f"| {method}{label} | {cells} | {mean:.2f} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", type=Path)
    parser.add_argument("--repos", type=Path, required=True)
    parser.add_argument("--aider", metavar="PYTHON", help="an interpreter that has aider-chat")
    parser.add_argument("--only", action="append", metavar="ID", default=[])
    parser.add_argument("--program", help="the agent-ls to measure")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    program = find_program(given.program)
    methods: dict[str, Callable[[Path, str, Path], list[str]]] = {
        "agent-ls context": lambda root, text, cache: by_context(program, root, text, cache),
        "word search": lambda root, text, cache: by_words(root, text),
    }
    if given.aider:
        methods["aider map"] = lambda root, text, cache: by_aider(given.aider, root, text)
    rows = []
    for path in sorted(given.cases.glob("*.json")):
        if given.only and path.stem not in given.only:
            continue
        row = judge(load_case(path), given.repos, methods)
        rows.append(row)
        ranks = ", ".join(f"{name} {row[name]['as_answered']}/{row[name]['sources']}" for name in methods)
        print(f"{row['case']}: {ranks}", file=sys.stderr, flush=True)
    if not rows:
        raise SystemExit("no case was found")
    print("\n".join(table(rows, list(methods))))
    if given.out:
        document = {"environment": environment(program, sys.executable), "rows": rows}
        given.out.write_text(json.dumps(document, indent=1) + os.linesep, "utf-8")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchmarkError as error:
        sys.exit(str(error))

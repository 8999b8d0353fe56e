"""How fast and how large the workspace index is, beside universal-ctags and ripgrep on the same files.

    python benchmarks/index_speed.py CORPUS [--suffix .py] [--rounds 5] [--ctags PROGRAM] [--rg PROGRAM]

CORPUS is any folder of source code; it is copied and made a git repository first. Every number comes from
whole processes (start included) run alternately with the peer's, each round on a new cache folder; the table
shows medians and the median of the rounds' ratios. CPU time (user and system, with children) tells more than
wall time when the machine is shared.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_COLD = """
import sys
from pathlib import Path
from agent_ls.workspace.index.index import open_index
with open_index(Path(sys.argv[1]), cache_dir=Path(sys.argv[2])) as index:
    index._text = sys.argv[3] == "words"
    index.refresh()
"""
_WARM = """
import sys
from pathlib import Path
from agent_ls.workspace.index.index import open_index
with open_index(Path(sys.argv[1]), cache_dir=Path(sys.argv[2])) as index:
    assert index.refresh().read == 0
    index.view().definitions("main")
"""


# As an installed program has it: bytecode is kept, wherever this script was started.
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def measured(argv: Sequence[str], cwd: Path, cache: Path | None = None) -> tuple[float, float]:
    """Wall and CPU seconds of a process and its children; `cache` is where agent-ls keeps its index."""
    env = _ENVIRONMENT if cache is None else {**_ENVIRONMENT, "AGENT_LS_CACHE_DIR": str(cache)}
    started = time.perf_counter()
    process = subprocess.Popen(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{argv[0]} failed with {process.returncode}")
    return wall, usage.ru_utime + usage.ru_stime


def paired(rounds: int, ours: Any, peer: Any) -> dict[str, float]:
    """Medians of both, and the median of the rounds' ratios."""
    pairs = []
    ours(), peer()
    for turn in range(rounds):
        first, second = (ours, peer) if turn % 2 else (peer, ours)
        found = {first: first(), second: second()}
        pairs.append((found[ours], found[peer]))
    row: dict[str, float] = {}
    for place, kind in enumerate(("wall", "cpu")):
        row[f"{kind}_s"] = statistics.median(pair[0][place] for pair in pairs)
        row[f"peer_{kind}_s"] = statistics.median(pair[1][place] for pair in pairs)
        row[f"{kind}_ratio"] = statistics.median(pair[0][place] / max(pair[1][place], 1e-6) for pair in pairs)
    return row


def repository(corpus: Path, target: Path, suffix: str | None) -> list[Path]:
    """A copy of the corpus (or of its files with one of some suffixes) as a git repository; its files."""
    for path in sorted(corpus.rglob("*")):
        relative = path.relative_to(corpus)
        if ".git" in relative.parts or path.is_symlink() or not path.is_file():
            continue
        if suffix is None or path.suffix in suffix.split(","):
            (target / relative).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / relative)
    for arguments in (
        ("init", "-q"),
        ("add", "-Af"),
        ("-c", "user.name=b", "-c", "user.email=b", "commit", "-qm", "b"),
    ):
        subprocess.run(["git", *arguments], cwd=target, check=True)
    return [
        path.relative_to(target) for path in target.rglob("*") if path.is_file() and ".git" not in path.parts
    ]


class Bench:
    """One corpus's measurements."""

    def __init__(self, work: Path, rounds: int) -> None:
        self.work = work
        self.rounds = rounds
        self.turn = 0

    def fresh_cache(self) -> Path:
        self.turn += 1
        return self.work / f"cache{self.turn}"

    def cold(self, root: Path, words: bool) -> tuple[float, float]:
        cache = self.fresh_cache()
        try:
            return measured(
                [sys.executable, "-c", _COLD, str(root), str(cache), "words" if words else ""], root
            )
        finally:
            shutil.rmtree(cache, ignore_errors=True)

    def against_ctags(self, root: Path, files: list[Path], ctags: str) -> dict[str, Any]:
        """Cold builds, symbols only and with the words, against ctags over the same list of files."""
        listed = self.work / "files.txt"
        listed.write_text("".join(f"{path}\n" for path in files))
        argv = [ctags, "--fields=+neS", "-f", str(self.work / "tags"), "-L", str(listed)]
        rows = {}
        for name, words in (("cold symbols", False), ("cold symbols and words", True)):
            rows[name] = paired(
                self.rounds, lambda words=words: self.cold(root, words), lambda: measured(argv, root)
            )
        return rows

    def against_rg(self, root: Path, rg: str) -> dict[str, Any]:
        """A start on an index that is up to date, with one question and as `agent-ls index`, against
        `rg --files`."""
        cache = self.fresh_cache()
        time.sleep(0.2)
        measured([sys.executable, "-c", _COLD, str(root), str(cache), "words"], root)
        starts = {
            "warm start, one question": [sys.executable, "-c", _WARM, str(root), str(cache)],
            "warm start, agent-ls index": [sys.executable, "-m", "agent_ls", "index"],
        }
        peer = [rg, "--files", "--hidden"]
        return {
            name: paired(
                self.rounds * 3, lambda argv=argv: measured(argv, root, cache), lambda: measured(peer, root)
            )
            for name, argv in starts.items()
        }

    def in_process(self, root: Path) -> dict[str, Any]:
        """Updates, look-ups, memory and size, in this process."""
        from agent_ls.workspace.index.index import open_index

        before = _resident()
        chance = random.Random(1)
        with open_index(root, cache_dir=self.fresh_cache()) as index:
            index.refresh()
            view = index.view()
            files = [file for file in view.files() if file.language]
            source = sum(file.size for file in view.files())
            code = sum(file.size for file in files)
            lines = sum((root / file.path).read_bytes().count(b"\n") for file in files)
            names = sorted(view.names())
            lookups = []
            for name in chance.sample(names, min(2000, len(names))):
                started = time.perf_counter()
                found = view.definitions(name)
                lookups.append(time.perf_counter() - started)
                assert found
            view.words("zzz")
            memory = _resident() - before
            size = index.database_bytes
            updates = []
            for file in chance.choices(files, k=400):
                path = root / file.path
                path.write_bytes(path.read_bytes() + b"\n")
                started = time.perf_counter()
                index.refresh([file.path])
                updates.append(time.perf_counter() - started)
        return {
            "files": len(view.files()),
            "source_bytes": source,
            "code_bytes": code,
            "code_lines": lines,
            "database_bytes": size,
            "database_to_source": size / source,
            "memory_mib_per_million_lines": memory / 2**20 / (lines / 1e6),
            "lookup_ms": _quantiles(lookups),
            "update_ms": _quantiles(updates),
        }


def _quantiles(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(1000 * value for value in seconds)
    return {"p50": ordered[len(ordered) // 2], "p99": ordered[len(ordered) * 99 // 100], "max": ordered[-1]}


def _resident() -> int:
    import psutil

    return psutil.Process().memory_info().rss


def table(found: dict[str, Any]) -> str:
    lines = ["| what | ours, wall / CPU s | peer, wall / CPU s | ratio, wall / CPU |", "|---|---|---|---|"]
    for name, row in found["paired"].items():
        lines.append(
            f"| {name} | {row['wall_s']:.3f} / {row['cpu_s']:.3f} | {row['peer_wall_s']:.3f} / "
            f"{row['peer_cpu_s']:.3f} | {row['wall_ratio']:.2f} / {row['cpu_ratio']:.2f} |"
        )
    inside = found.get("in_process")
    if inside is None:
        return "\n".join(lines)
    lines += ["", "| what | value |", "|---|---|"]
    for kind in ("lookup_ms", "update_ms"):
        said = ", ".join(f"{name} {value:.2f}" for name, value in inside[kind].items())
        lines.append(f"| {kind} | {said} |")
    lines.append(f"| database / indexed text | {inside['database_to_source']:.2f} |")
    lines.append(f"| MiB per million lines | {inside['memory_mib_per_million_lines']:.0f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--suffix", default=".py", help="files for the comparison with ctags, as .ts,.tsx")
    parser.add_argument("--cold", action="store_true", help="the comparison with ctags alone")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ctags", default=shutil.which("ctags"))
    parser.add_argument("--rg", default=shutil.which("rg"))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        bench = Bench(work, given.rounds)
        code, whole = work / "code", work / "whole"
        files = repository(given.corpus, code, given.suffix)
        if not given.cold:
            repository(given.corpus, whole, None)
        found: dict[str, Any] = {
            "corpus": given.corpus.name,
            "suffix": given.suffix,
            "rounds": given.rounds,
            "environment": {
                "python": platform.python_version(),
                "cores": len(os.sched_getaffinity(0)),
                "load": os.getloadavg(),
            },
            "paired": {},
        }
        if given.ctags:
            found["paired"] |= bench.against_ctags(code, files, given.ctags)
        if given.rg and not given.cold:
            found["paired"] |= bench.against_rg(whole, given.rg)
        if not given.cold:
            found["in_process"] = bench.in_process(code)
        found["environment"]["load_after"] = os.getloadavg()
    print(table(found))
    if given.out:
        given.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()

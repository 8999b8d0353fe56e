"""How quickly the live index follows changes, and what it holds in memory.

    python benchmarks/index_update.py CORPUS [--changes 400] [--seed 1]

CORPUS is any folder of source code; it is copied and made a git repository first. `asked`: from a file's
write to an answer that has it. `told`: from the write until a subscriber hears of it when nobody asks (with
the pause in which events come to rest). `parse`: an edit of a random file's buffer, with the old tree and
from the start.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from agent_ls.workspace.grammars import language_of
from agent_ls.workspace.index.buffers import Buffers, Edit
from agent_ls.workspace.index.live import LiveIndex


def quantiles(seconds: list[float]) -> dict[str, float]:
    """Milliseconds."""
    ordered = sorted(seconds)
    places = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    found = {
        name: ordered[min(len(ordered) - 1, int(len(ordered) * place))] for name, place in places.items()
    }
    return {name: round(value * 1000, 3) for name, value in (*found.items(), ("max", ordered[-1]))}


def resident() -> float:
    """MiB of this process, without what is shared with files."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("needs /proc")


def measure(root: Path, cache: Path, changes: int, chance: random.Random) -> dict[str, object]:
    found: dict[str, object] = {}
    before = resident()
    with LiveIndex(root, cache_dir=cache) as live:
        started = time.perf_counter()
        files = [info for info in live.view().files() if info.language is not None]
        found["first answer, s"] = round(time.perf_counter() - started, 3)
        found["files"] = len(files)
        found["watched folders"] = len(live._watcher.folders or ())
        lines = sum((root / info.path).read_bytes().count(b"\n") for info in files)
        found["lines"] = lines
        # What stays once nobody holds the earlier state, and after a large answer was let go.
        live.view().definitions("main")
        found["MiB of its own"] = round(resident() - before, 1)
        found["MiB per million lines"] = round((resident() - before) / lines * 1e6, 1)

        idle = []
        for _ in range(1000):
            started = time.perf_counter()
            live.view()
            idle.append(time.perf_counter() - started)
        found["view, nothing changed, ms"] = quantiles(idle)

        asked, told = [], []
        heard = threading.Event()
        for number in range(changes):
            path = root / chance.choice(files).path
            data = path.read_bytes() + f"\n# changed{number}\n".encode()
            path.write_bytes(data)
            started = time.perf_counter()
            live.view()
            asked.append(time.perf_counter() - started)
        end = live.subscribe(lambda _: heard.set())
        for number in range(min(changes, 100)):
            path = root / chance.choice(files).path
            data = path.read_bytes() + f"\n# told{number}\n".encode()
            heard.clear()
            path.write_bytes(data)
            started = time.perf_counter()
            if not heard.wait(30):
                raise SystemExit("no event arrived")
            told.append(time.perf_counter() - started)
        end()
        found["asked, ms"], found["told, ms"] = quantiles(asked), quantiles(told)

        typed = []
        for _ in range(min(changes, 100)):
            info = chance.choice(files)
            live.open_buffer(info.path, (root / info.path).read_bytes())
            live.view()
            live.change_buffer(info.path, [Edit(0, 0, b" ")])
            started = time.perf_counter()
            live.view()
            typed.append(time.perf_counter() - started)
            live.close_buffer(info.path)
        found["a typed character, ms"] = quantiles(typed)

    again, anew = [], []
    for _ in range(changes):
        path = root / chance.choice(files).path
        text = path.read_bytes()
        if language_of(path.name) is None or not text:
            continue
        buffers = Buffers()
        buffers.open(path.name, text)
        buffers.tree(path.name)
        at = text.rfind(b"\n", 0, chance.randrange(len(text))) + 1
        buffers.change(path.name, [Edit(at, at, b"\n")])
        started = time.perf_counter()
        buffers.tree(path.name)
        again.append(time.perf_counter() - started)
        other = Buffers()
        changed = buffers.get(path.name)
        assert changed is not None
        other.open(path.name, changed.text)
        started = time.perf_counter()
        other.tree(path.name)
        anew.append(time.perf_counter() - started)
    found["parse with the old tree, ms"], found["parse from the start, ms"] = (
        quantiles(again),
        quantiles(anew),
    )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--changes", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "tree"
        shutil.copytree(arguments.corpus, root, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        commit = ("-c", "user.name=b", "-c", "user.email=b@example.org", "commit", "-qm", "all")
        for command in (("init", "-q"), ("add", "-A"), commit):
            subprocess.run(["git", "-C", str(root), *command], check=True)
        found = measure(root, Path(folder) / "cache", arguments.changes, random.Random(arguments.seed))
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()

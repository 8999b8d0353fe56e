"""aider's repository map, run by an interpreter that has aider-chat.

    PYTHON _aider_peer.py rank ROOT < text     {"files": [...]}, in its order for a message of that text
    PYTHON _aider_peer.py time ROOT N [keep]   {"first": {...}, "warm": [{...}, ... N]}, seconds of maps

Files are handed over by `git ls-files`, as aider does. Tokens are estimated by length, so that loading a
tokenizer does not count. The cache of tags is removed before the first map, but with `keep`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path


class Model:
    """What the map asks of a model."""

    def token_count(self, text: str) -> int:
        return len(text) // 4 + 1


class Output:
    """What the map asks of a terminal."""

    def tool_output(self, *_: object) -> None: ...

    tool_warning = tool_error = tool_output

    def read_text(self, name: str) -> str:
        try:
            return Path(name).read_text("utf-8", errors="ignore")
        except OSError:
            return ""


def main() -> None:
    from aider.coders.base_coder import Coder
    from aider.repomap import RepoMap

    mode, root = sys.argv[1], os.path.realpath(sys.argv[2])
    os.chdir(root)
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, check=True).stdout.decode()
    relative = [name for name in listed.split("\0") if name]
    files = [os.path.join(root, name) for name in relative]  # noqa: PTH118
    if sys.argv[-1] != "keep":
        for cache in Path(root).glob(".aider.tags.cache*"):
            shutil.rmtree(cache, ignore_errors=True)
    if mode == "rank":
        mapping = RepoMap(1024, root, Model(), Output())
        text = sys.stdin.read()
        words = set(re.split(r"\W+", text))
        coder = Coder.__new__(Coder)
        coder.get_all_relative_files = lambda: relative
        coder.get_addable_relative_files = lambda: relative
        coder.get_inchat_relative_files = list
        coder.abs_read_only_fnames = set()
        named = coder.get_file_mentions(text) | coder.get_ident_filename_matches(words)
        tags = mapping.get_ranked_tags([], files, named, words)
        print(json.dumps({"files": list(dict.fromkeys(tag[0] for tag in tags))}))
        return
    timings = []
    mapping = RepoMap(1024, root, Model(), Output(), refresh="always")
    for number in range(int(sys.argv[3]) + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        words = {"QuerySet", "cache", f"unlike{number}"}  # a text of its own each time
        mapping.get_repo_map([], files, set(), words)
        timings.append({"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu})
    print(json.dumps({"first": timings[0], "warm": timings[1:]}))


if __name__ == "__main__":
    main()

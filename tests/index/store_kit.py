"""Trees to index, and everything that an index says, in a form that two indexes can be compared by."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_ls.workspace.index.index import Index, open_index
from agent_ls.workspace.index.words import words_of


def git(cwd: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=cwd, capture_output=True, check=True)
    return done.stdout.decode("utf-8", "surrogateescape")


def write(root: Path, files: Mapping[str, str | bytes]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())


def make_repo(root: Path, files: Mapping[str, str | bytes]) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", "main")
    write(root, files)
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", "first")
    return root


def function(name: str, *called: str) -> str:
    """A small module."""
    calls = "".join(f"    {other}()\n" for other in called)
    return f'import os\n\n\ndef {name}(value):\n    """About {name}."""\n{calls}    return value\n'


def everything(index: Index) -> dict[str, Any]:
    """All that the index answers, by the words and names that its own files have."""
    view = index.view()
    files = {file.path: file for file in view.files()}
    texts = {path: view.text(path) for path in files}
    words = {word.decode("utf-8", "replace") for text in texts.values() for word in words_of(text)}
    names = sorted(view.names())
    return {
        "files": files,
        "texts": texts,
        "skipped": list(view.skipped()),
        "outlines": {path: view.outline(path) for path in files},
        "imports": {path: view.imports(path) for path in files},
        "words": {word: sorted(view.files_with(word)) for word in sorted(words)},
        "names": names,
        "definitions": {name: view.definitions(name) for name in names},
    }


def fresh(root: Path) -> dict[str, Any]:
    """What an index made anew says."""
    with open_index(root, memory=True) as index:
        return everything(index)

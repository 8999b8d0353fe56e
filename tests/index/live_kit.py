"""A repository that changes, and the comparison of a live index with one made anew."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_ls.workspace.index.index import open_index
from agent_ls.workspace.index.live import LiveIndex
from agent_ls.workspace.index.view import View

FILES = {
    "pkg/__init__.py": "",
    "pkg/shapes.py": "class Circle:\n    def area(self):\n        return 3 * self.r ** 2\n",
    "pkg/uses.py": "from pkg.shapes import Circle\n\n\ndef total(xs):\n    return Circle.area(xs)\n",
    "web/app.ts": "export function start(name: string): void {\n  console.log(name)\n}\n",
    "docs/read me.md": "# Words in a text\n",
    ".gitignore": "*.log\nbuild/\n",
}


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True, text=True)
    return done.stdout


def make_repository(root: Path, files: Mapping[str, str] = FILES) -> Path:
    """A committed repository at `root`."""
    root.mkdir(parents=True)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "first")
    return root.resolve()


def contents(view: View) -> dict[str, Any]:
    """Everything that an index says."""
    files = {info.path: info for info in view.files()}
    words = view.words("")
    with_word = {word: sorted(view.files_with(word)) for word in words}
    return {
        "files": files,
        "names": {name: view.definitions(name) for name in sorted(view.names())},
        "outlines": {path: view.outline(path) for path in files},
        "imports": {path: view.imports(path) for path in files},
        "words": {word: paths for word, paths in with_word.items() if paths},
        "skipped": [item for item in view.skipped() if item.path != "./"],
    }


def fresh(root: Path, buffers: Mapping[str, bytes]) -> dict[str, Any]:
    """What an index says that was made just now, with the same buffers open."""
    with open_index(root, memory=True) as index:
        index.refresh()
        for path, text in buffers.items():
            index.overlay(path, text)
        return contents(index.view())


def assert_fresh(live: LiveIndex, when: str = "") -> None:
    """The live index says what a new one says, file by file."""
    said = contents(live.view(timeout=60))
    buffers = {path: buffer.text for path in live.buffers.paths() if (buffer := live.buffers.get(path))}
    expected = fresh(live.root, buffers)
    for part, value in expected.items():
        assert said[part] == value, f"{part} {when}: {_difference(said[part], value)}"


def _difference(said: Any, expected: Any) -> str:
    if isinstance(said, dict):
        said, expected = said.items(), expected.items()
    extra = [item for item in said if item not in expected]
    lacking = [item for item in expected if item not in said]
    return f"says {extra[:4]}, but should {lacking[:4]}"

"""A run's result against the user's files as they are now: what can be applied, and what has moved on.

Nothing here writes into the user's files: texts come out, the editor applies them (or does not).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from attrs import frozen

from agent_ls.errors import ToolRefused
from agent_ls.workspace.text import TextFile

if TYPE_CHECKING:
    from agent_ls.workspace.git import Repository

Fate = Literal["apply", "merge", "conflict", "same", "binary"]


@frozen
class FileResult:
    """One file of a result.

    `old` is the text that the run began with (None: there was none), `new` the one it ended with (None:
    deleted), `current` the user's as it is now. `merged` is what the file should become; for a `conflict` it
    has conflict marks. `fate`: `apply` (the user's text is still `old`), `merge` (it moved on, both changes
    fit), `conflict`, `same` (it is `new` already), `binary` (no text that an editor could take).
    """

    path: str
    old: str | None
    new: str | None
    current: str | None
    merged: str | None
    fate: Fate


def file_results(
    repo: Repository, base: str, commit: str, texts: Mapping[str, str]
) -> tuple[FileResult, ...]:
    """The files that differ between two commits, against the user's: `texts` are those of open documents by
    path, for others the disk counts. Starts git: not for the event loop. Raises GitError."""
    raw = repo.git("diff-tree", "-r", "-z", "--no-renames", "--name-only", base, commit, text=False).data
    paths = [name.decode("utf-8", "surrogateescape") for name in raw.split(b"\0") if name]
    return tuple(_result(repo, base, commit, path, texts) for path in paths)


def _result(repo: Repository, base: str, commit: str, path: str, texts: Mapping[str, str]) -> FileResult:
    old, new = _blob(repo, base, path), _blob(repo, commit, path)
    current_bytes = texts[path].encode("utf-8", "surrogatepass") if path in texts else _disk(repo.root / path)
    try:
        before, after, now = (None if it is None else _text(it, path) for it in (old, new, current_bytes))
    except ToolRefused:
        return FileResult(path, None, None, None, None, "binary")
    if now == after:
        return FileResult(path, before, after, now, now, "same")
    if now == before:
        return FileResult(path, before, after, now, after, "apply")
    if before is None or after is None or now is None:
        return FileResult(path, before, after, now, None, "conflict")
    merged, clean = merge(repo, before, now, after)
    return FileResult(path, before, after, now, merged, "merge" if clean else "conflict")


def _text(data: bytes, path: str) -> str:
    """The text with line feeds only, as texts are compared here."""
    return TextFile.from_bytes(data, path).text


def _blob(repo: Repository, commit: str, path: str) -> bytes | None:
    found = repo.git("cat-file", "blob", f"{commit}:{path}", check=False, text=False)
    return found.data if found.returncode == 0 else None


def _disk(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def merge(repo: Repository, base: str, ours: str, theirs: str) -> tuple[str, bool]:
    """Three-way merge of texts by `git merge-file`; the result, and whether it is without conflicts."""
    with tempfile.TemporaryDirectory(prefix="agent-ls-merge-") as folder:
        names = ("yours", "before", "agent")
        for name, text in zip(names, (ours, base, theirs), strict=True):
            (Path(folder) / name).write_text(text, "utf-8", "surrogatepass", newline="")
        paths = [str(Path(folder) / name) for name in names]
        labels = [word for name in names for word in ("-L", name)]
        done = repo.git("merge-file", "-p", "--diff3", *labels, *paths, check=False, text=False)
        if done.returncode < 0 or done.returncode > 127:
            return ours, False
        return done.data.decode("utf-8", "surrogatepass"), done.returncode == 0


def blocked(results: Iterable[FileResult]) -> list[FileResult]:
    """Those that can't be applied without a person."""
    return [it for it in results if it.fate in ("conflict", "binary")]

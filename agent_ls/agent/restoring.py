"""Puts files of the worktree back as they were in another tree."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from agent_ls.agent.session import Session
from agent_ls.workspace.git import split_z
from agent_ls.workspace.removal import remove_tree


def put_back(session: Session, tree: str, paths: Iterable[str]) -> None:
    """Make `paths` in the worktree what they are in `tree` (content, mode, links); absent there: removed."""
    root = session.worktree.path
    wanted = sorted(set(paths))
    modes = _modes(session, tree, wanted)
    for path in wanted:
        if path not in modes and os.path.lexists(root / path):
            remove_tree(root / path)
    for path in wanted:
        mode = modes.get(path)
        content = session.worktree.read_blob(tree, path) if mode is not None else None
        if content is None:
            continue
        target = root / path
        _clear_way(root, target)
        if mode == "120000":
            target.symlink_to(os.fsdecode(content))
        else:
            target.write_bytes(content)
            target.chmod(0o755 if mode == "100755" else 0o644)


def _clear_way(root: Path, target: Path) -> None:
    """Remove what lies where a file, or a folder on the way to it, has to be."""
    for parent in reversed(target.relative_to(root).parents):
        place = root / parent
        if os.path.lexists(place) and (place.is_symlink() or not place.is_dir()):
            remove_tree(place)
    target.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(target):
        remove_tree(target)


def _modes(session: Session, tree: str, paths: list[str]) -> dict[str, str]:
    if not paths:
        return {}
    raw = session.repo.git("ls-tree", "-z", "--full-tree", tree, "--", *paths, text=False)
    found = {}
    for entry in split_z(raw.data):
        meta, name = entry.split("\t", 1)
        mode, kind, _ = meta.split()
        if kind == "blob":
            found[name] = mode
    return found

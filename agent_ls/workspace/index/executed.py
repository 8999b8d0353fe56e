"""Which lines tests ran when they were last traced, kept beside the index.

One file per repository, shared by its working trees. It says which content of each file the lines are of;
what has another content now is not told, and a test of a file that has changed is forgotten.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from agent_ls.workspace.index.hashing import blob_id
from agent_ls.workspace.index.location import Location, index_folder
from agent_ls.workspace.index.related_tests import Executed
from agent_ls.workspace.index.similar import find_definitions
from agent_ls.workspace.index.view import View

_SCHEMA = 1
_MOST_TESTS = 5_000
_MOST_BYTES = 40_000_000
_DEFINITIONS = 20


def remember(repository: Path, tree: Path, coverage: Executed, *, cache_dir: Path | None = None) -> None:
    """Keep what tests ran in the files below `tree`, a tree of the repository whose files are at `repository`
    (both may be one). What was known of the same tests is replaced. Where nothing can be written, nothing is
    kept."""
    with contextlib.suppress(OSError):
        place = _place(repository, cache_dir)
        contents: dict[str, str] = {}
        known = _read(place)
        tests: dict[str, dict[str, list[Any]]] = known
        for test, files in coverage.items():
            ran: dict[str, list[Any]] = {}
            for path in (*files, test.partition("::")[0]):
                if path not in contents:
                    contents[path] = _content(tree, path)
                if contents[path]:
                    ran[path] = [contents[path], sorted(files.get(path, ()))]
            tests.pop(test, None)
            tests[test] = ran
        for test in list(tests)[: max(0, len(tests) - _MOST_TESTS)]:
            del tests[test]
        data = zlib.compress(json.dumps({"schema": _SCHEMA, "tests": tests}).encode(), 1)
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = place.with_name(f"{place.name}.{os.getpid()}.tmp")
        try:
            temporary.write_bytes(data)
            temporary.replace(place)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


def executed(view: View, root: Path, name: str, *, cache_dir: Path | None = None) -> Executed:
    """What the tests of the tree at `root` ran, as far as that concerns the definitions of `name`, and is of
    the contents that the files have in `view`."""
    tests = _read(_place(root, cache_dir))
    if not tests:
        return {}
    wanted = {found.path for found in find_definitions(view, name, limit=_DEFINITIONS).found}
    contents: dict[str, str] = {}

    def same(path: str, content: object) -> bool:
        if path not in contents:
            text = view.text(path)
            contents[path] = blob_id(text).hex() if text else ""
        return content == contents[path]

    answer: dict[str, dict[str, Collection[int]]] = {}
    for test, files in tests.items():
        own = test.partition("::")[0]
        ran = {path: files[path][1] for path in wanted if path in files and same(path, files[path][0])}
        if ran and (own not in files or same(own, files[own][0])):
            answer[test] = ran
    return answer


def _place(root: Path, cache_dir: Path | None) -> Path:
    folder = index_folder(cache_dir)
    identity = Location(folder, Path(os.path.realpath(root)), "").identity
    return folder.parent / "executed" / f"{identity}.json.z"


def _content(tree: Path, path: str) -> str:
    """git's id of a file's bytes; "" when it can't be read."""
    try:
        return blob_id((tree / path).read_bytes()).hex()
    except (OSError, ValueError):
        return ""


def _read(place: Path) -> dict[str, dict[str, list[Any]]]:
    """What is kept; nothing when it is damaged or of another version."""
    try:
        unpacker = zlib.decompressobj()
        known = json.loads(unpacker.decompress(place.read_bytes(), _MOST_BYTES))
        if known["schema"] != _SCHEMA:
            return {}
        tests: dict[str, dict[str, list[Any]]] = {}
        for test, files in known["tests"].items():
            tests[str(test)] = {
                str(path): [str(content), [int(line) for line in lines]]
                for path, (content, lines) in files.items()
            }
        return tests
    except (OSError, ValueError, TypeError, KeyError, AttributeError, zlib.error):
        return {}

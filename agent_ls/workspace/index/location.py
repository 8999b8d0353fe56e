"""Where a workspace's database lies: in the user's cache, shared by a repository's working trees and clones.

A small file per working tree names the repository; one per repository names the database that is in force. A
damaged or outdated database is not replaced under its name but by one with another name, since other
processes may have it open.
"""

# Plain strings instead of Path objects, since this runs for every file or at every start.
# ruff: noqa: PTH105, PTH116, PTH118, PTH120, PTH208

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

_FOLDER = "index"
_SCHEMA_PLACE = "-v"
_UNUSED_DAYS = 30
_LONGEST_NAMED = 100
_LONGEST_READ = 10_000
_GIT_TIMEOUT = 20.0


def index_folder(cache_dir: Path | None) -> Path:
    """The folder of all databases; not created here."""
    if cache_dir is None:
        override = os.environ.get("AGENT_LS_CACHE_DIR")
        if override:
            cache_dir = Path(override)
        else:
            import platformdirs

            cache_dir = Path(platformdirs.user_cache_dir("agent-ls", appauthor=False))
    return cache_dir / _FOLDER


class Location:
    """The files of one workspace in the index's folder. `schema` is part of every name."""

    def __init__(self, folder: Path, root: Path, schema: str) -> None:
        self.folder = folder
        self._root = root
        path = os.fsencode(root)
        # A digest only where it is needed: hashlib takes a while to load.
        name = path.hex() if len(path) <= _LONGEST_NAMED else _digest(path)
        self._tree_file = folder / "trees" / f"{name}.txt"
        self._schema = schema
        self._identity: str | None = None

    @property
    def identity(self) -> str:
        """The repository's name: the same for its worktrees and clones."""
        if self._identity is None:
            noted = _read(self._tree_file)
            # The folder's own number tells that another tree now lies at this path.
            number, _, identity = noted.partition(" ")
            if identity and number == self._folder_number():
                self._identity = identity
            else:
                self._identity = _identity(self._root)
        return self._identity

    def _folder_number(self) -> str:
        try:
            return str(os.stat(self._root).st_ino)
        except OSError:
            return "0"

    @property
    def pointer(self) -> Path:
        """The file that names the database in force."""
        return self.folder / f"{self.identity}{_SCHEMA_PLACE}{self._schema}.txt"

    @property
    def lock(self) -> Path:
        """Held by whoever makes a database."""
        return self.folder / f"{self.identity}{_SCHEMA_PLACE}{self._schema}.lock"

    def current(self) -> Path | None:
        """The database in force, if there is one."""
        name = _read(self.pointer)
        if not name or os.sep in name or not name.startswith(self.identity):
            return None
        path = self.folder / name
        return path if path.is_file() else None

    def fresh(self) -> Path:
        """A name for a new database; the folder is created. Raises OSError when it can't be."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Should somebody have put the cache into a repository: it is none of its files.
        rules = self.folder / ".gitignore"
        if not rules.exists():
            rules.write_text("*\n", "utf-8")
        return (
            self.folder
            / f"{self.identity}{_SCHEMA_PLACE}{self._schema}-{time.time_ns():x}.{os.getpid()}.sqlite"
        )

    def publish(self, database: Path) -> None:
        """Put a finished database in force. The one before and leftovers of broken builds are removed."""
        self.note_tree()
        _replace(self.pointer, database.name)
        self._tidy(database)

    def note_tree(self) -> None:
        """Remember this working tree's repository, so that the next start needn't ask git."""
        self._tree_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        noted = f"{self._folder_number()} {self.identity}"
        if _read(self._tree_file) != noted:
            _replace(self._tree_file, noted)

    def _tidy(self, kept: Path) -> None:
        old = time.time() - _UNUSED_DAYS * 86400
        with contextlib.suppress(OSError):
            for path in (*self.folder.iterdir(), *self._tree_file.parent.iterdir()):
                if path.is_dir() or path.name.startswith((kept.name, ".")) or path == self._tree_file:
                    continue
                ours = path.name.startswith(self.identity + _SCHEMA_PLACE) and ".sqlite" in path.name
                with contextlib.suppress(OSError):
                    if ours or path.stat().st_mtime < old:
                        path.unlink()


def _read(path: Path) -> str:
    try:
        # What blocks (a pipe) or never ends (a device) can only have been put there by a person.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            return os.read(descriptor, _LONGEST_READ).decode("utf-8").strip()
        finally:
            os.close(descriptor)
    except (OSError, ValueError):
        return ""


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text + "\n", "utf-8")
    os.replace(temporary, path)


def _digest(data: bytes) -> str:
    import hashlib

    return hashlib.blake2b(data, digest_size=12).hexdigest()


def _identity(root: Path) -> str:
    """A repository is named by its first commit; one without any, by where it lies; a shallow one by where it
    was cloned from, as its first commit is not its own."""
    from agent_ls.workspace.index.scan import git_output

    asked = git_output(root, "rev-parse", "--is-shallow-repository", "--git-common-dir", timeout=_GIT_TIMEOUT)
    if asked is None:
        return "d" + _digest(os.fsencode(root))
    shallow, _, common = asked.removesuffix(b"\n").partition(b"\n")
    prefix = git_output(root, "rev-parse", "--show-prefix", timeout=_GIT_TIMEOUT) or b""
    if shallow == b"true":
        url = git_output(root, "config", "--get", "remote.origin.url", timeout=_GIT_TIMEOUT)
        if url:
            return "u" + _digest(url.strip().removesuffix(b"/").removesuffix(b".git") + prefix)
    else:
        roots = git_output(root, "rev-list", "--max-parents=0", "HEAD", timeout=_GIT_TIMEOUT)
        if roots and roots.split():
            return "c" + _digest(roots.split()[-1] + prefix)
    return "g" + _digest(os.path.realpath(os.path.join(os.fsencode(root), common)) + prefix)


def fingerprint() -> str:
    """Changes whenever what we read out of files may: with our own modules and queries, and the grammars."""
    import zlib
    from importlib.machinery import PathFinder

    from agent_ls.workspace.index.store import SCHEMA

    home = Path(__file__).resolve().parent
    said = [str(SCHEMA)]
    try:
        for folder in (home, home.parent / "queries"):
            with os.scandir(folder) as files:
                for file in sorted(files, key=lambda entry: entry.name):
                    if file.name.endswith((".py", ".scm")):
                        status = file.stat()
                        said.append(f"{file.name} {status.st_size} {status.st_mtime_ns}")
        # Found, but not loaded.
        found = PathFinder.find_spec("tree_sitter")
        if found is not None and found.origin is not None:
            packages = os.path.dirname(os.path.dirname(found.origin))
            said += sorted(name for name in os.listdir(packages) if name.startswith("tree_sitter"))
    except OSError:
        pass
    return f"{SCHEMA}.{zlib.crc32(chr(10).join(said).encode()):08x}"

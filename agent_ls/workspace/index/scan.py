"""Which files there are: git's own answer, or outside git what nested .gitignore files leave.

git is asked with everything switched off that would start another program; it writes nothing.
"""

# Plain strings instead of Path objects, since this runs for every file or at every start.
# ruff: noqa: PTH112, PTH113, PTH116, PTH118, PTH123

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pathspec

    from agent_ls.cancel import CancelToken

MAX_FILES = 250_000
"""More files than these are left out, those in languages that are parsed last."""

_GIT_TIMEOUT = 120.0
_OFF = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.quotePath=false",
    "credential.helper=",
    "core.askPass=",
    "core.pager=cat",
    "protocol.allow=never",
    "core.safecrlf=false",
    "submodule.recurse=false",
)
_PLACING = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_CONFIG", "GIT_CEILING_DIRECTORIES")
_TOOL_FOLDERS = frozenset({"node_modules", "__pycache__"})
_TAG_FILES = ("CACHEDIR.TAG", "pyvenv.cfg")
_PACKAGES = "a folder of installed packages or caches"


class Listing(NamedTuple):
    """The paths found (relative, with "/"), whether git listed them, and what was left out with reasons."""

    paths: list[str]
    git: bool
    skipped: dict[str, str]


def git_output(
    root: Path,
    *args: str,
    input: bytes | None = None,
    cancel: CancelToken | None = None,
    timeout: float = _GIT_TIMEOUT,
    settings: tuple[str, ...] = (),
    warnings: list[bytes] | None = None,
) -> bytes | None:
    """What `git args…` prints in `root`; None when it fails, is missing or takes too long. What it says on
    stderr is added to `warnings` by line."""
    from agent_ls.sandbox._helper import run_helper

    argv = ["git"]
    for setting in (*_OFF, *settings):
        argv += ["-c", setting]
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES"):
        if name in os.environ:
            env[name] = os.environ[name]
    env |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
    try:
        done = run_helper([*argv, *args], cwd=root, env=env, input=input, timeout=timeout, cancel=cancel)
    except OSError:
        return None
    if warnings is not None:
        warnings += done.stderr.split(b"\n")
    return done.stdout if done.returncode == 0 else None


def plain_root(folder: Path) -> Path | None:
    """`folder` itself, links resolved, when it is beyond doubt the root of a working tree, which saves asking
    git; None: ask."""
    git = f"{folder}/.git"
    if any(name.startswith(_PLACING) for name in os.environ):
        return None
    try:
        # What git wants of a repository; its settings may put the tree elsewhere.
        if not (
            os.path.isfile(f"{git}/HEAD") and os.path.isdir(f"{git}/objects") and os.path.isdir(f"{git}/refs")
        ):
            return None
        with open(f"{git}/config", "rb") as file:
            settings = file.read(1_000_000).lower()
        if b"worktree" in settings or b"include" in settings or b"bare = true" in settings:
            return None
        if os.stat(folder).st_uid != os.getuid() or os.stat(git).st_uid != os.getuid():
            return None
        return Path(os.path.realpath(folder))
    except (OSError, ValueError, AttributeError):
        return None


def list_files(root: Path, cancel: CancelToken | None = None) -> Listing:
    """All files that git tracks or would add, in git's order; outside git all that no .gitignore ignores."""
    warnings: list[bytes] = []
    listed = git_output(root, "ls-files", "-z", "-co", "--exclude-standard", cancel=cancel, warnings=warnings)
    skipped = _unopened(warnings)
    if listed is not None:
        names = os.fsdecode(listed).split("\0")
        names.pop()
        paths = list(dict.fromkeys(names))
    else:
        skipped = {}
        paths = list(_walk(root, skipped))
    if len(paths) > MAX_FILES:
        paths = _capped(paths, skipped)
    return Listing(paths, listed is not None, skipped)


_UNOPENED = re.compile(rb"warning: could not open directory '(.+?)/?': (.+)")


def _unopened(warnings: list[bytes]) -> dict[str, str]:
    """The folders that git could not look into, and why: it only warns of them."""
    found = {}
    for line in warnings:
        match = _UNOPENED.fullmatch(line)
        if match is not None:
            found[os.fsdecode(match[1]) + "/"] = f"can't be read: {os.fsdecode(match[2])}"
    return found


def _capped(paths: list[str], skipped: dict[str, str]) -> list[str]:
    from agent_ls.workspace.grammars import language_of

    paths.sort(key=lambda path: language_of(path) is None)
    left_out: dict[str, int] = {}
    for path in paths[MAX_FILES:]:
        folder = (path.rpartition("/")[0] or ".") + "/"
        left_out[folder] = left_out.get(folder, 0) + 1
    for folder, count in left_out.items():
        skipped[folder] = f"over the limit of {MAX_FILES:,} files: {count:,} of this folder's are left out"
    return paths[:MAX_FILES]


class _Rules(NamedTuple):
    """The ignore file of a folder (a relative path with "/" at its end, "" for the root)."""

    folder: str
    spec: pathspec.GitIgnoreSpec


def _walk(root: Path, skipped: dict[str, str]) -> Iterator[str]:
    """Files below `root`, ignored ones left out: the last matching pattern of the nearest file decides, and
    below an ignored folder nothing is taken back (gitignore(5))."""
    waiting: list[tuple[str, tuple[_Rules, ...]]] = [("", ())]
    while waiting:
        folder, rules = waiting.pop()
        try:
            with os.scandir(root / folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            skipped[folder or "./"] = f"can't be read: {error.strerror}"
            continue
        names = {entry.name for entry in found}
        if ".gitignore" in names and (own := _read_rules(root, folder)) is not None:
            rules = (*rules, own)
        for entry in found:
            path = folder + entry.name
            if entry.name.casefold() == ".git":
                continue
            try:
                is_folder = entry.is_dir(follow_symlinks=False)
            except OSError:
                is_folder = False
            if _ignored(path + "/" if is_folder else path, rules):
                continue
            if not is_folder:
                yield path
            elif entry.name in _TOOL_FOLDERS or any(
                os.path.isfile(os.path.join(entry.path, tag)) for tag in _TAG_FILES
            ):
                skipped[path + "/"] = _PACKAGES
            else:
                waiting.append((path + "/", rules))


def _read_rules(root: Path, folder: str) -> _Rules | None:
    import pathspec

    path = root / folder / ".gitignore"
    if path.is_symlink():  # git doesn't follow it either
        return None
    try:
        lines = path.read_bytes().decode("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
    try:
        return _Rules(folder, pathspec.GitIgnoreSpec.from_lines(lines))
    except ValueError:
        pass  # git passes over what is no pattern
    kept = []
    for line in lines:
        try:
            pathspec.GitIgnoreSpec.from_lines([line])
        except ValueError:
            continue
        kept.append(line)
    return _Rules(folder, pathspec.GitIgnoreSpec.from_lines(kept))


def _ignored(path: str, rules: tuple[_Rules, ...]) -> bool:
    for folder, spec in reversed(rules):
        verdict = spec.check_file(path[len(folder) :]).include
        if verdict is not None:
            return bool(verdict)
    return False


def listed(root: Path, paths: list[str], git: bool, cancel: CancelToken | None = None) -> list[str] | None:
    """Those of `paths` that are listed, for folders among them all files below. None: ask for everything."""
    if not git:
        return _listed_by_rules(root, paths)
    # From stdin they can't be given to ls-files; as arguments they must not be too many.
    if len(paths) > 300:
        return None
    found = git_output(
        root,
        "--literal-pathspecs",
        "ls-files",
        "-z",
        "-co",
        "--exclude-standard",
        "--",
        *paths,
        cancel=cancel,
    )
    if found is None:
        return None
    names = os.fsdecode(found).split("\0")
    names.pop()
    return list(dict.fromkeys(names))


def _listed_by_rules(root: Path, paths: list[str]) -> list[str] | None:
    found = []
    for path in paths:
        if (root / path).is_dir() and not (root / path).is_symlink():
            return None
        parts = path.split("/")
        rules: tuple[_Rules, ...] = ()
        if any(part.casefold() == ".git" for part in parts):
            continue
        folder = ""
        for part in parts:
            if (own := _read_rules(root, folder)) is not None:
                rules = (*rules, own)
            is_file = len(folder) + len(part) == len(path)
            if _ignored(folder + part + ("" if is_file else "/"), rules):
                break
            folder += part + "/"
            if not is_file and (
                part in _TOOL_FOLDERS or any((root / folder / t).is_file() for t in _TAG_FILES)
            ):
                break
        else:
            found.append(path)
    return found


def clean_ids(root: Path, cancel: CancelToken | None = None) -> dict[str, bytes]:
    """Path -> git's blob id, of tracked files whose bytes in the tree surely are the blob's, without reading
    them: unchanged since git looked, and no filter, line end or encoding conversion in force."""
    if git_output(root, "config", "--get-regexp", r"^filter\..*\.", cancel=cancel):
        return {}
    if (git_output(root, "config", "--get", "core.autocrlf", cancel=cancel) or b"false\n") != b"false\n":
        return {}
    before = _index_state(root, cancel)
    staged = git_output(root, "ls-files", "-s", "-v", "-z", cancel=cancel)
    dirty = git_output(
        root,
        "diff-files",
        "-z",
        "--name-only",
        "--no-ext-diff",
        "--ignore-submodules",
        "--relative",
        cancel=cancel,
    )
    if staged is None or dirty is None or before is None or before != _index_state(root, cancel):
        return {}  # the two may speak of different indexes: a checkout ends by putting a new one in place
    found: dict[str, bytes] = {}
    for line in staged.split(b"\0"):
        head, _, name = line.partition(b"\t")
        fields = head.split(b" ")
        # Only what git compares on its own terms: not assumed unchanged, not skipped, not in conflict.
        if len(fields) == 4 and fields[0] == b"H" and fields[1].startswith(b"100") and fields[3] == b"0":
            found[os.fsdecode(name)] = bytes.fromhex(fields[2].decode())
    for name in dirty.split(b"\0"):
        found.pop(os.fsdecode(name), None)
    return _unconverted(root, found, cancel)


def _index_state(root: Path, cancel: CancelToken | None) -> tuple[int, ...] | None:
    """What changes whenever git writes its index; None without one."""
    said = git_output(root, "rev-parse", "--path-format=absolute", "--git-path", "index", cancel=cancel)
    if said is None:
        return None
    try:
        status = Path(os.fsdecode(said).removesuffix("\n")).stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _unconverted(root: Path, found: dict[str, bytes], cancel: CancelToken | None) -> dict[str, bytes]:
    names = b"".join(os.fsencode(path) + b"\0" for path in found)
    attributes = ("text", "crlf", "eol", "ident", "filter", "working-tree-encoding")
    said = git_output(root, "check-attr", "-z", "--stdin", *attributes, input=names, cancel=cancel)
    if said is None:
        return {}
    fields = said.split(b"\0")
    for name, value in zip(fields[::3], fields[2::3], strict=False):
        if value not in (b"unspecified", b"unset"):
            found.pop(os.fsdecode(name), None)
    return found


def is_ignored(root: Path, path: str, git: bool, cancel: CancelToken | None = None) -> bool:
    """Would a file of this name be left out by the ignore rules? It need not exist."""
    if not git:
        return not _listed_by_rules(root, [path])
    said = git_output(
        root, "check-ignore", "-z", "--stdin", "--no-index", input=os.fsencode(path) + b"\0", cancel=cancel
    )
    return bool(said)

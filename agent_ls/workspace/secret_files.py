"""Where a checkout's secrets are: what a session's mask has to know beforehand."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from agent_ls.detect import find_secrets, is_secret_name, looks_random
from agent_ls.masking import SecretMask
from agent_ls.redact import secret_values
from agent_ls.sandbox.process import run_helper
from agent_ls.workspace.paths import is_secret_path, is_test_path

_MIN_KNOWN = 8
_SCAN_S = 1.0
"""So long may the repository's files be searched for secrets at the start."""
_MAX_FILE = 400_000
_SUSPICIOUS = (
    r"(token|secret|passw|api_?key|access_?key|private_?key|signing_?key|credential)"
    r"[A-Za-z0-9_]*[]\"']*[ ]*[:=,]"
    r"|AKIA|gh[pousr]_|glpat-|xox[a-z]-|PRIVATE KEY-|eyJ[A-Za-z0-9_-]{8}|sk-[a-z0-9]|[a-z]://[^/ ]*:[^/ ]*@"
)

_masks: dict[tuple[Path, Path], SecretMask] = {}
_masks_lock = threading.Lock()
_KEPT = 16


def mask_for(worktree: Path, repo: Path, keys: Iterable[str] = ()) -> SecretMask:
    """The mask of a session: one for each worktree, made at its first use.

    It knows the secrets in the files of `worktree`, in secret-looking files of the user's `repo`, and in the
    environment.
    """
    with _masks_lock:
        known = _masks.get((worktree, repo))
        if known is None:
            prefix = "AGENT_LS_SECRET_"
            if _grep(worktree, ["-F", "-e", prefix]):
                prefix = "AGENT_LS_HIDDEN_VALUE_"
            values = values_of_secret_files(repo) | {
                value for value in secret_values(os.environ) if looks_random(value, password=True)
            }
            known = SecretMask(values, keys, prefix)
            for text in _suspicious_texts(worktree):
                known.learn(text)
            while len(_masks) >= _KEPT:
                del _masks[next(iter(_masks))]
            _masks[worktree, repo] = known
        return known


def known_secrets(repo: Path) -> set[str]:
    """The secrets in a checkout's files, secret-looking ones included: what no log may show."""
    found = values_of_secret_files(repo)
    for text in _suspicious_texts(repo):
        found |= {text[span.start : span.end] for span in find_secrets(text)}
    return {value for value in found if len(value) >= _MIN_KNOWN}


def _suspicious_texts(root: Path) -> Iterator[str]:
    """The tracked files that may hold secrets, sources before tests, until the time is up."""
    end = time.monotonic() + _SCAN_S
    names = _grep(root, ["-i", "-E", "-e", _SUSPICIOUS])
    for name in sorted(names, key=lambda name: (is_test_path(name), name)):
        if time.monotonic() > end:
            return
        text = _text(root / name)
        if text is not None:
            yield text


def _grep(root: Path, options: Collection[str]) -> list[str]:
    """The tracked text files below `root` that git grep finds; none where it fails."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    argv = ["git", "-c", "core.fsmonitor=false", "grep", "-I", "-l", "-z", "--no-color", *options, "--", "."]
    try:
        result = run_helper(argv, cwd=root, env=env, timeout=10)
    except OSError:
        return []
    return [os.fsdecode(name) for name in result.stdout.split(b"\0") if name]


_SETTING = re.compile(
    r"""^\s*(?:export\s+)?["']?([A-Za-z][\w.-]*)["']?\s*[:=]\s*["']?([^\s"'#,]{6,})""", re.MULTILINE
)
_SKIPPED = {".git", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".nox", "target", "site-packages"}
_MAX_FILES, _MAX_ENTRIES, _MAX_DEPTH = 100, 20_000, 4


def values_of_secret_files(repo: Path) -> set[str]:
    """What `.env` files, credentials and keys of a checkout hold: values that a log or a failing test may
    show although nobody reads those files."""
    found: set[str] = set()
    files = entries = 0
    for folder, folders, names in os.walk(repo):
        relative = Path(folder).relative_to(repo)
        folders[:] = [name for name in sorted(folders) if name not in _SKIPPED]
        if len(relative.parts) >= _MAX_DEPTH:
            folders[:] = []
        entries += len(names)
        for name in names:
            if not is_secret_path((relative / name).as_posix()) or files >= _MAX_FILES:
                continue
            files += 1
            text = _text(Path(folder) / name)
            if text is not None:
                found |= _values(text)
        if entries > _MAX_ENTRIES:
            break
    return found


def _values(text: str) -> set[str]:
    found = {text[span.start : span.end] for span in find_secrets(text)}
    for match in _SETTING.finditer(text):
        name, value = match.groups()
        if len(value) >= _MIN_KNOWN and (
            looks_random(value, password=True) or (is_secret_name(name) and _unusual(value))
        ):
            found.add(value)
    return {value for value in found if len(value) >= _MIN_KNOWN}


def _unusual(value: str) -> bool:
    """More than one lower-case word: "postgres" as a password must not hide every "postgres"."""
    return re.fullmatch(r"[a-z]+|\d+|[a-z]+://.*|/.*", value) is None


def _text(path: Path) -> str | None:
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _MAX_FILE:
            return None
        data = path.read_bytes()
    except OSError:
        return None
    return None if b"\0" in data[:8000] else data.decode("utf-8", "replace")

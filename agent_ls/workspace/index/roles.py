"""Which files of a listing are indexed, and what kind of file each is: by its name, then by its bytes."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Literal

Role = Literal["source", "generated", "minified", "vendored"]

MAX_PARSED = 1_000_000
"""Larger files (bytes) are searched as text only."""
MAX_TEXT = 5_000_000
"""Larger files (bytes) are left out."""

BINARY = "binary"
TOO_LARGE = f"larger than {MAX_TEXT // 1_000_000} MB"
ONLY_TEXT = f"larger than {MAX_PARSED // 1_000_000} MB: searched as text, definitions are not read"
TOO_SLOW = "its syntax takes too long to read: searched as text, definitions are not read"
SECRET = "its name promises secrets"
NOT_UTF8 = "its name is not UTF-8"
NOT_REGULAR = "not a regular file"
UNREADABLE = "can't be read"
LINK = "a symbolic link"
BEHIND_LINK = "behind a symbolic link"
FOREIGN = "a folder of another repository"
CRASHED = "the parser crashed on it"

_HEAD = 8192
_MARKED = 2000
_GENERATED = re.compile(
    rb"@generated\b|\bDO NOT (?:EDIT|MODIFY)\b|\b[Aa]uto-?[Gg]enerated\b|\bautomatically generated\b"
    rb"|\bGENERATED (?:CODE|FILE)\b|\b[Gg]enerated by (?:the )?(?:protoc|protocol buffer|thrift|swagger"
    rb"|openapi|antlr|bison|flex|swig|cython|django)\b"
    rb"|\bThis (?:file|code) (?:was|is) (?:auto)?generated\b",
)
_GENERATED_NAME = re.compile(
    r"(?:_pb2(?:_grpc)?\.pyi?|\.pb\.(?:go|cc|h)|\.(?:g|freezed)\.dart|[._]generated\.\w+|\.designer\.cs|\.g\.cs"
    r"|(?:^|/)(?:package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|yarn\.lock|poetry\.lock|uv\.lock|"
    r"pipfile\.lock|cargo\.lock|composer\.lock|gemfile\.lock|go\.sum|pdm\.lock|bun\.lockb?))$",
    re.IGNORECASE,
)
_MINIFIED_NAME = re.compile(r"[.-]min\.(?:js|mjs|cjs|css)$|\.bundle\.js$", re.IGNORECASE)
_ODD = (
    "vendor", "node_modules", "part", "bower", "package", "venv", "yarn", "pods", "carthage", "godeps",
    "min.", "bundle", "_pb2", ".pb.", ".g.", "freezed", "generated", "designer", "lock", "shrinkwrap", ".sum",
)  # fmt: skip
"""One of these every name has that an expression for vendored, minified or generated files finds."""
_MINIFIABLE_NAME = re.compile(r"\.(?:[mc]?[jt]s|[jt]sx|css)$", re.IGNORECASE)
MAY_BE_MINIFIED = frozenset({"javascript", "typescript", "tsx"})
"""Languages whose files are not parsed when their lines are that long."""
_LONG_LINES = 400
_VENDORED = re.compile(
    r"(?:^|/)(?:vendor|vendored|_vendor|node_modules|third[_-]party|3rd[_-]?party|bower_components|site-packages"
    r"|jspm_packages|\.?venv|\.yarn|Pods|Carthage|Godeps)/",
)


@cache
def _secrets() -> tuple[Callable[[str], object], Callable[[str], bool], str]:
    """A quick look at a path that may be secret, a thorough one, and the prefix of temporary files."""
    from fnmatch import translate

    from agent_ls.workspace.paths import _SECRET_NAMES, TEMPORARY_PREFIX, is_secret_path

    quick = re.compile(
        r"(?:^|.*/)(?:\.(?:aws|ssh|gnupg|azure|kube|docker|config)/.*|(?:credential|secret)s?[^/]*|(?:"
        + "|".join(translate(pattern).replace(".*", "[^/]*") for pattern in _SECRET_NAMES)
        + r"))\Z",
        re.IGNORECASE | re.DOTALL,
    )
    return quick.match, is_secret_path, TEMPORARY_PREFIX


def refused_name(path: str) -> str | None:
    """Why a file is left out by its name alone, or None (`is_secret_path`, quick for those that aren't)."""
    may_be_secret, is_secret_path, prefix = _secrets()
    if not path.isascii():
        try:
            path.encode("utf-8")
        except UnicodeEncodeError:
            return NOT_UTF8
        if is_secret_path(path):
            return SECRET
    elif may_be_secret(path) and is_secret_path(path):
        return SECRET
    if prefix in path and path.rsplit("/", 1)[-1].startswith(prefix):
        return NOT_REGULAR
    return None


def is_binary(data: bytes) -> bool:
    """Is it no text: a NUL near the start, unless a byte order mark says UTF-16 or UTF-32?"""
    if b"\0" not in data[:_HEAD]:
        return False
    from agent_ls.workspace._grep import BOMS

    return not data.startswith(BOMS)


def is_generated(data: bytes) -> bool:
    """Does the text say near its start that a program wrote it?"""
    head = data[:_MARKED]
    # Quicker than the expression for the many that hold none of its words.
    folded = head.lower()
    return (b"generated" in folded or b"do not" in folded) and _GENERATED.search(head) is not None


def has_long_lines(data: bytes) -> bool:
    """Are its lines, on average, longer than anybody writes?"""
    if len(data) < _LONG_LINES * 2:
        return False
    return len(data) > _LONG_LINES * (data.count(b"\n") + data.count(b"\r") + 1)


def role_of(path: str, generated: bool, long_lines: bool) -> Role:
    """Who wrote the file, by its name and what its bytes told."""
    if not generated and not long_lines:
        folded = path.lower()
        for part in _ODD:
            if part in folded:
                break
        else:
            return "source"
    if _VENDORED.search(path):
        return "vendored"
    if _MINIFIED_NAME.search(path) or (long_lines and _MINIFIABLE_NAME.search(path)):
        return "minified"
    if generated or _GENERATED_NAME.search(path):
        return "generated"
    return "source"

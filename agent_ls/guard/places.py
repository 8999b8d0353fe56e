"""Conditions that only hold on other systems than the one where tests are usually run: a test that is skipped
on Windows still runs on the build server."""

from __future__ import annotations

import re

_OTHER = (
    r"win32|win64|windows|Windows|WINDOWS|darwin|Darwin|macos|macOS|MAC(?:OS\w*)?\b|OSX|'nt'|\"nt\"|cygwin|CYGWIN|"
    r"freebsd|aix|sunos|android|ios|wasm\w*|plan9|solaris|PYPY|PyPy|pypy|GRAALPY|graalpy|jruby|JRUBY|TRUFFLERUBY|"
    r"truffleruby|emscripten|Emscripten|EMSCRIPTEN|is_windows|IS_WINDOWS|isWindows|is_mac|IS_MAC|isMac|WIN\b|WIN_\w+|miri"
    r"|not\(panic|process\.versions?\b|node_version|nodeVersion"
)
_OURS = (
    r"linux\w*|Linux|LINUX|posix|unix|UNIX|amd64|x86_64|CPython|cpython|IS_CPYTHON|IS_LINUX|isLinux|is_linux"
)
_PLACE = re.compile(_OTHER)
_HOME = re.compile(_OURS)
_NEGATED = re.compile(
    rf"!=\s*\[?['\"]?(?:{_OTHER})|not (?:IS_|is_)?(?:{_OTHER})|not \w+\.startswith\('(?:{_OTHER})"
)
_NOT_HOME = re.compile(rf"!=\s*\[?['\"]?(?:{_OURS})|not (?:in )?[\w.(]*(?:{_OURS})")
ABSENT = re.compile(
    r"find_spec|not HAS_|not has_|importlib|\w is None\)?$|not \w+_(?:available|installed)|not have_"
)


def elsewhere(condition: str) -> bool:
    """Does a condition (as the walker prints it: "if …", "if not (…)", or bare) name an unusual place?

    For "if not (…)" the question is about what is inside: an assertion that is only reached where the system
    isn't Windows is not reached on Windows.
    """
    text = condition.removeprefix("if ").strip()
    inner = re.fullmatch(r"not \(?(.*?)\)?", text, flags=re.DOTALL)
    if inner is not None and condition.startswith("if "):
        text = inner.group(1)
    if not re.search(r"\bor\b|\|\|", text):
        return any(_names_other(part) for part in re.split(r"\band\b|&&", text))
    return all(
        any(_names_other(part) for part in re.split(r"\band\b|&&", option))
        for option in re.split(r"\bor\b|\|\|", text)
    )


def _names_other(part: str) -> bool:
    if _NOT_HOME.search(part):
        return True
    if _NEGATED.search(part) or _HOME.search(part):
        return False
    return _PLACE.search(part) is not None

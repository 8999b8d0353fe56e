"""Which paths of a repository may be touched, and what kind of file a path names.

A path in this room is relative to the worktree's root, with "/" between its parts, as git prints it.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import unicodedata
from fnmatch import fnmatchcase
from pathlib import Path

from agent_ls.errors import ToolRefused

OWN_DIR = ".agent-ls"
TEMPORARY_PREFIX = ".agent-ls-tmp-"
"""Files being written carry this prefix until they are renamed; a listing leaves them out."""

_MAX_PATH = 4096
_MAX_PART = 255


def normalise(rel: str) -> str:
    """`rel` without "." parts and doubled slashes. Raises ToolRefused unless it is a plain relative path."""
    if not rel or not rel.strip():
        raise ToolRefused("the path is empty", "Give a path relative to the root of the repository.")
    if "\0" in rel:
        raise ToolRefused(f"the path {rel!r} contains a NUL character")
    try:
        length = len(rel.encode("utf-8"))
    except UnicodeEncodeError:
        raise ToolRefused(f"the path {rel!r} is not valid Unicode") from None
    if length > _MAX_PATH:
        raise ToolRefused(f"the path is too long ({length} bytes; at most {_MAX_PATH}): {rel[:80]!r}…")
    if "\\" in rel:
        raise ToolRefused(f"the path {rel!r} contains a backslash", 'Write paths with "/".')
    parts = [part for part in rel.split("/") if part not in ("", ".")]
    plain = "/".join(parts)
    if rel.startswith("/") or plain.startswith("~") or re.match(r"[A-Za-z]:", plain):
        raise ToolRefused(
            f"the path {rel!r} is absolute",
            "Give it relative to the root of the repository, as in src/app.py.",
        )
    if ".." in parts:
        raise ToolRefused(
            f'the path {rel!r} contains ".."', "Give it relative to the root of the repository."
        )
    if not plain.strip():
        raise ToolRefused(f"the path {rel!r} names the repository itself, not a file")
    for part in parts:
        if len(part.encode("utf-8")) > _MAX_PART:
            raise ToolRefused(f"a part of the path is too long (at most {_MAX_PART} bytes): {part[:80]!r}…")
    return plain


def _fold(part: str) -> str:
    """What a case-insensitive, Unicode-folding or NTFS file system may take `part` for.

    The same tricks as git's `core.protectHFS` and `core.protectNTFS` guard against: letter case,
    ignorable characters, trailing blanks and dots, alternate streams.
    """
    plain = unicodedata.normalize("NFKC", part)
    plain = "".join(char for char in plain if unicodedata.category(char) != "Cf")
    head = plain.split(":", 1)[0] if ":" in plain else plain
    return head.rstrip(" .").casefold()


def _forbidden(rel: str, for_write: bool) -> str | None:
    """Why nothing may touch `rel` (already normalised), or None."""
    folded = [_fold(part) for part in rel.split("/")]
    if any(part == ".git" or re.fullmatch(r"git~\d+", part) for part in folded):
        return f"{rel!r} lies in git's own folder"
    own = folded[0] == OWN_DIR or re.fullmatch(r"agent-~\d+", folded[0])
    if own and (for_write or not (len(folded) > 1 and folded[-1].endswith(".md"))):
        return f"{rel!r} is configuration of agent-ls"
    if is_secret_path("/".join(folded)) or is_secret_path(rel):
        return f"{rel!r} looks like a file with secrets"
    return None


def resolve_inside(root: Path, rel: str, for_write: bool = False) -> Path:
    """The real path of `rel` below `root`; it need not exist.

    Raises ToolRefused for paths that leave `root` (absolute, "..", through a symbolic link in any
    part), for git's folder however it is spelled, for our own configuration (notes in Markdown may be
    read), for secrets and for devices, pipes and sockets. With `for_write` symbolic links are refused
    at all (the file behind them must be named itself, so that one file has one name), and so are
    files with several hard links.
    """
    real_root = Path(os.path.realpath(root))
    try:
        plain = normalise(rel)
    except ToolRefused as error:
        meant = _meant(real_root, rel)
        if meant is not None:
            error.remedy = f"Perhaps you mean {meant}."
        raise
    reason = _forbidden(plain, for_write)
    if reason is not None:
        raise ToolRefused(f"{reason}; it is off limits")
    path = real_root / plain
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(real_root):
        raise ToolRefused(f"{plain!r} leads out of the repository through a symbolic link")
    inside = real.relative_to(real_root).as_posix()
    if inside != plain:
        if inside == ".":
            raise ToolRefused(f"{plain!r} is a symbolic link to the repository itself")
        reason = _forbidden(inside, for_write)
        if reason is not None:
            raise ToolRefused(f"{plain!r} is a symbolic link, and {reason}; it is off limits")
        if for_write:
            raise ToolRefused(
                f"{plain!r} goes through a symbolic link to {inside!r}", f"Use the path {inside!r} itself."
            )
    try:
        status = real.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return real
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise ToolRefused(f"{plain!r} goes through a symbolic link that leads in a circle") from None
    if stat.S_ISLNK(status.st_mode):
        raise ToolRefused(f"{plain!r} is a symbolic link that leads in a circle")
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise ToolRefused(f"{plain!r} is not a regular file")
    if for_write and stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        raise ToolRefused(f"{plain!r} has {status.st_nlink} hard links: another file would change with it")
    return real


def _meant(root: Path, rel: str) -> str | None:
    """The longest end of an absolute path that is a file of the repository: test output shows such paths."""
    if not rel.startswith("/") or "\0" in rel:
        return None
    parts = [part for part in rel.split("/") if part not in ("", ".")]
    if len(rel) > _MAX_PATH or ".." in parts:
        return None
    ends = ("/".join(parts[start:]) for start in range(1, len(parts)))
    try:
        return next((end for end in ends if (root / end).is_file() and _forbidden(end, False) is None), None)
    except (OSError, ValueError):
        return None


_SECRET_NAMES = (
    ".env", ".env.*", "*.env", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx",
    "*.ppk", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", "_netrc", ".pypirc", ".npmrc",
    ".yarnrc.yml", ".pgpass", ".my.cnf", ".htpasswd", ".git-credentials", ".dockercfg", ".boto", ".s3cfg",
    "*.tfstate", "*.tfstate.backup", "service-account*.json", "service_account*.json", ".vault-token",
)  # fmt: skip
_SECRET_STEMS = re.compile(r"(credentials?|secrets?)[^/]*")
_DATA_SUFFIXES = {
    "", ".json", ".yml", ".yaml", ".toml", ".ini", ".cfg", ".conf", ".csv", ".txt", ".xml", ".properties",
    ".db", ".enc", ".gpg", ".bak",
}  # fmt: skip
_SECRET_DIRS = {".aws", ".ssh", ".gnupg", ".azure", ".kube", ".docker"}
_SAMPLE = re.compile(r"\.(example|sample|template|dist|tmpl|tpl)(\.|$)")


def is_secret_path(rel: str) -> bool:
    """Does the path, by its name alone, promise secrets (keys, passwords, tokens)?

    Samples such as `.env.example` don't, nor does source code such as `credentials.py`.
    """
    parts = rel.casefold().split("/")
    name = parts[-1]
    if _SECRET_DIRS & set(parts[:-1]) or "/.config/gcloud/" in f"/{'/'.join(parts)}":
        return True
    if _SAMPLE.search(name):
        return False
    if any(fnmatchcase(name, pattern) for pattern in _SECRET_NAMES):
        return True
    return _SECRET_STEMS.fullmatch(name) is not None and Path(name).suffix in _DATA_SUFFIXES


_TEST_DIRS = {
    "test", "tests", "testing", "__tests__", "__mocks__", "__snapshots__", "spec", "specs", "testdata", "e2e",
    "unittests", "unit_tests", "integration_tests", "functional_tests", "fixtures", "cypress",
}  # fmt: skip
_TEST_NAMES = re.compile(
    r"""
      test_[^/]*\.py | [^/]*_tests?\.py | tests?\.py | conftest\.py                         # Python
    | [^/]*[.\-_](test|tests|spec|specs|e2e|cy)\.([cm]?[jt]sx?|vue|svelte)                  # JavaScript
    | [^/]*\.(snap|feature|robot|bats)                                                      # any
    | [^/]*_(unit)?tests?\.(go|rs|c|cc|cpp|cxx|dart|exs?|clj[cs]?|sh|bash|rb|lua|zig) | tests?\.rs
    | test_[^/]*\.(c|cc|cpp|cxx|rb|sh|bash|exs?|jl|r|lua) | test-[^/]*\.(r|js|sh)
    | [^/]*_spec\.(rb|lua|cr) | (spec|rails|test)_helper\.(rb|exs)                          # Ruby, Lua
    """,
    re.VERBOSE,
)
# Names of classes are told apart by their capital letters: FooTest.java is a test, Contest.java isn't.
_CAMEL_TEST = re.compile(
    r"(.*[a-z0-9_])?(Tests?|TestCase|UnitTests?|Spec|IT)\.\w+|Tests?[A-Z_][^/]*\.\w+|Tests?\.\w+"
)
_CAMEL_SUFFIXES = {
    ".java", ".kt", ".kts", ".scala", ".cs", ".fs", ".vb", ".groovy", ".swift", ".php", ".m", ".mm", ".hs",
}  # fmt: skip


def is_test_path(rel: str) -> bool:
    """Is the file, by the conventions of its language, a test or something that only tests use?

    Folders named `tests`, `__tests__`, `spec` and the like count at any depth.
    """
    parts = rel.split("/")
    if any(part.casefold() in _TEST_DIRS for part in parts[:-1]):
        return True
    name = parts[-1]
    if Path(name).suffix in _CAMEL_SUFFIXES:
        return _CAMEL_TEST.fullmatch(name) is not None
    return _TEST_NAMES.fullmatch(name.casefold()) is not None


_TEST_CONFIG = (
    "conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "tox.toml",
    "setup.cfg", "setup.py", "pyproject.toml", "sitecustomize.py", "usercustomize.py", "*.pth", "*.egg-link",
    ".coveragerc", "noxfile.py", "unittest.cfg", "nose2.cfg", ".noserc", "pytest_*.py", "requirements*.txt",
    "constraints*.txt", "pipfile", "environment.yml", "environment.yaml", ".python-version",
    "jest.config.*", "jest.setup.*", "vitest.config.*", "vitest.setup.*", "vitest.workspace.*",
    "vite.config.*", "karma.conf.*", ".mocharc*", "mocha.opts", "ava.config.*", "playwright.config.*",
    "cypress.config.*", "wdio.conf.*", "babel.config.*", ".babelrc*", ".nycrc*", "package.json",
    "tsconfig*.json", "web-test-runner.*", "phpunit.xml*", ".rspec", "rakefile", "codeception*.yml",
    "pom.xml", "build.gradle*", "settings.gradle*", "cargo.toml", "go.mod", "makefile", "gnumakefile", "*.mk",
    "justfile", "cmakelists.txt", "ctest*.cmake",
    "*.csproj", "*.runsettings", "composer.json", "gemfile", "build.sbt", "mix.exs", "dockerfile",
    ".gitlab-ci.yml", ".travis.yml", "azure-pipelines*.yml", "appveyor.yml", ".appveyor.yml", "jenkinsfile",
    "bitbucket-pipelines.yml", ".pre-commit-config.yaml", "codecov.yml", ".codecov.yml",
)  # fmt: skip
_LOCK_FILES = (
    "*.lock", "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "bun.lockb", "go.sum",
    "gradle.lockfile", "packages.lock.json", "pylock.toml", "pylock.*.toml",
)  # fmt: skip
_CI_DIRS = ((".github", "workflows"), (".github", "actions"), (".circleci",), (".buildkite",), (".ci",))


def is_test_config(rel: str) -> bool:
    """Can the file change which tests run, how, or with which versions (settings, CI, lock files)?"""
    parts = rel.casefold().split("/")
    if any(tuple(parts[: len(folder)]) == folder for folder in _CI_DIRS):
        return True
    return any(fnmatchcase(parts[-1], pattern) for pattern in (*_TEST_CONFIG, *_LOCK_FILES))


_CI_FILES = (
    ".gitlab-ci.yml", ".travis.yml", "azure-pipelines*.yml", "appveyor.yml", ".appveyor.yml", "jenkinsfile",
    "bitbucket-pipelines.yml",
)  # fmt: skip


def is_ci_or_lock(rel: str) -> bool:
    """Does the file say what a CI service runs, or which versions are installed?"""
    parts = rel.casefold().split("/")
    if any(tuple(parts[: len(folder)]) == folder for folder in _CI_DIRS):
        return True
    return any(fnmatchcase(parts[-1], pattern) for pattern in (*_CI_FILES, *_LOCK_FILES))

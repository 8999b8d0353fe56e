"""The git program, called so that it touches nothing of the user's and runs nothing of theirs.

Every call goes through `Repository.git`: the repository is named explicitly (never searched for, so that
a `.git` planted inside a tree can't redirect it), the caller's GIT_* variables are dropped, and every
setting that makes git start another program (hooks, fsmonitor, filters, signing, credential helpers,
editors, pagers, transports) is switched off.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from attrs import evolve, field, frozen

from agent_ls.cancel import CancelToken
from agent_ls.errors import AgentLsError, UsageError
from agent_ls.sandbox.process import run_helper

FALLBACK_IDENTITY = ("agent-ls", "agent-ls@localhost")

_OVERRIDES = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.splitIndex": "false",
    "core.safecrlf": "false",
    "core.quotePath": "false",
    "core.askPass": "",
    "core.pager": "cat",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "credential.helper": "",
    "protocol.allow": "never",
    "submodule.recurse": "false",
    "index.sparse": "false",
    "worktree.useRelativePaths": "false",
    "i18n.commitEncoding": "UTF-8",
    "diff.suppressBlankEmpty": "false",
    "diff.noprefix": "false",
    "diff.mnemonicPrefix": "false",
    "advice.detachedHead": "false",
}
_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS": "",
    "GIT_EDITOR": ":",
    "GIT_PAGER": "cat",
    "GIT_TRACE2": "0",
    "GIT_TRACE2_EVENT": "0",
    "GIT_TRACE2_PERF": "0",
    "GIT_LITERAL_PATHSPECS": "1",
}
# What the caller may still steer: where the user's settings are, who they are, where discovery stops.
_KEPT = {
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
}


class GitError(AgentLsError):
    """A git command failed where it should not."""


@frozen
class GitResult:
    """What one git command returned. `stdout` is empty when bytes were asked for; `data` always holds them.

    Text is UTF-8 with `surrogateescape`, so file names in any encoding survive the way there and back.
    """

    stdout: str
    stderr: str
    returncode: int
    data: bytes = field(repr=False)


def _environment(extra: Mapping[str, str] | None) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT}
    return {**env, **_ENVIRONMENT, **(extra or {})}


def _run(
    cwd: Path,
    args: tuple[str, ...],
    env: Mapping[str, str] | None = None,
    input: bytes | None = None,
    cancel: CancelToken | None = None,
) -> GitResult:
    argv = ["git"]
    for key, value in _OVERRIDES.items():
        argv += ["-c", f"{key}={value}"]
    try:
        done = run_helper([*argv, *args], cwd=cwd, env=_environment(env), input=input, cancel=cancel)
    except FileNotFoundError as error:
        if not cwd.is_dir():
            raise GitError(
                f"the directory {cwd} is gone",
                "Where it went, `git worktree list` shows our record; `git worktree remove -ff` ends it.",
            ) from error
        raise UsageError("the git program was not found", "Install git and put it on PATH.") from error
    return GitResult(
        decode(done.stdout), done.stderr.decode("utf-8", "replace"), done.returncode, done.stdout
    )


def decode(data: bytes) -> str:
    """Bytes that git printed as text, without loss."""
    return data.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """The inverse of `decode`."""
    return text.encode("utf-8", "surrogateescape")


def split_z(data: bytes) -> list[str]:
    """The entries of a NUL-terminated list."""
    return [decode(part) for part in data.split(b"\0") if part]


def _line(result: GitResult) -> str:
    """The one value a command printed; a path may itself end in a newline."""
    return result.stdout.removesuffix("\n")


@frozen
class Repository:
    """A repository with a working tree at `root`.

    `git_dir` is that working tree's own directory (index, HEAD), `common_dir` the one shared by all
    worktrees (objects, refs, config); they differ in linked worktrees. All are absolute and resolved.
    """

    root: Path
    git_dir: Path
    common_dir: Path
    filters: frozenset[str] = field(default=frozenset(), repr=False, eq=False)
    """Names of the clean and smudge filters that the user has set up; none of them is run."""
    _settings: Mapping[str, str] = field(factory=dict, repr=False, eq=False)
    _cancel: CancelToken | None = field(default=None, repr=False, eq=False)

    @classmethod
    def discover(cls, path: Path) -> Repository:
        """The repository around `path`. Raises UsageError when there is none that can be worked on."""
        try:
            path = Path(path).resolve(strict=True)
            directory = path if path.is_dir() else path.parent
            if not os.access(directory, os.R_OK | os.X_OK):
                raise UsageError(f"{directory} can't be read", "Check its permissions.")
        except (FileNotFoundError, NotADirectoryError):
            raise UsageError(f"{path} does not exist", "Give the path of a git repository.") from None
        except (OSError, RuntimeError, ValueError) as error:
            raise UsageError(
                f"{path} can't be opened: {error}", "Give the path of a git repository."
            ) from None
        probe = _run(directory, ("rev-parse", "--is-bare-repository", "--is-inside-work-tree"))
        if probe.returncode != 0:
            raise _discovery_error(directory, probe.stderr)
        bare, inside = probe.stdout.split()
        if inside != "true":
            if bare == "true":
                raise UsageError(
                    f"{directory} is a bare repository: it has no files to work on",
                    "Clone it, and run agent-ls in the clone.",
                )
            raise UsageError(
                f"{directory} lies inside git's own directory", "Run agent-ls in the working tree instead."
            )
        root = Path(_line(_run(directory, ("rev-parse", "--show-toplevel"))))
        git_dir = Path(_line(_run(directory, ("rev-parse", "--absolute-git-dir"))))
        common = _line(_run(directory, ("rev-parse", "--git-common-dir")))
        return cls.at(root, git_dir, directory / common)

    @classmethod
    def at(cls, root: Path, git_dir: Path, common_dir: Path) -> Repository:
        """The repository with these directories, which must be known to belong together."""
        root, git_dir, common_dir = root.resolve(), git_dir.resolve(), common_dir.resolve()
        filters, hooks = _named_programs(git_dir)
        settings = {f"hook.{name}.enabled": "false" for name in hooks}
        for name in filters:
            settings |= {f"filter.{name}.{key}": "" for key in ("clean", "smudge", "process")}
            settings[f"filter.{name}.required"] = "false"
        return cls(root, git_dir, common_dir, filters, settings)

    def with_setting(self, key: str, value: str) -> Repository:
        """The same repository with one more setting overridden in every call."""
        return evolve(self, settings={**self._settings, key: value})

    @property
    def place(self) -> Path:
        """Where a person finds the repository: the main working tree, or the bare directory."""
        return self.common_dir.parent if self.common_dir.name == ".git" else self.common_dir

    def until(self, cancel: CancelToken | None) -> Repository:
        """The same repository; a running command ends, and Cancelled is raised, once `cancel` is set."""
        return evolve(self, cancel=cancel)

    def git(
        self,
        *args: str,
        env: Mapping[str, str] | None = None,
        input: str | bytes | None = None,
        check: bool = True,
        text: bool = True,
    ) -> GitResult:
        """Run `git args…` on this repository, in its root. Raises GitError on failure if `check`."""
        variables = {"GIT_DIR": str(self.git_dir), "GIT_WORK_TREE": str(self.root)}
        # in the environment, since the name of a filter may contain "=", which `-c` can't express
        variables["GIT_CONFIG_COUNT"] = str(len(self._settings))
        for number, (key, value) in enumerate(self._settings.items()):
            variables[f"GIT_CONFIG_KEY_{number}"] = key
            variables[f"GIT_CONFIG_VALUE_{number}"] = value
        if isinstance(input, str):
            input = encode(input)
        result = _run(self.root, args, {**variables, **(env or {})}, input, self._cancel)
        if check and result.returncode != 0:
            raise _failure(self.place, args[0], result)
        return result if text else GitResult("", result.stderr, result.returncode, result.data)

    def head(self) -> str | None:
        """The commit that is checked out; None on a branch without commits. Raises UsageError when it can't
        be read."""
        result = self.git("rev-parse", "--verify", "--quiet", "HEAD^{commit}", check=False)
        if result.returncode == 0:
            return result.stdout.strip()
        named = self.git("rev-parse", "--verify", "--quiet", "HEAD", check=False)
        if named.returncode == 0:
            raise UsageError(
                f"{self.root} is damaged: its current commit {named.stdout.strip()} can't be read",
                _FSCK,
            )
        return None

    def current_branch(self) -> str | None:
        """The branch that is checked out (it may have no commit yet); None when HEAD is detached."""
        result = self.git("symbolic-ref", "--quiet", "HEAD", check=False)
        name = _line(result)
        return name.removeprefix("refs/heads/") if name.startswith("refs/heads/") else None

    def remote_url(self) -> str | None:
        """Where the branch's remote, else `origin`, else the only remote, points."""
        remotes = self.git("remote", check=False).stdout.splitlines()
        branch = self.current_branch()
        wanted = self.config(f"branch.{branch}.remote") if branch else None
        for name in (wanted, "origin", remotes[0] if len(remotes) == 1 else None):
            if name is not None and name in remotes:
                return _line(self.git("remote", "get-url", name, check=False)) or None
        return None

    def config(self, key: str) -> str | None:
        """The user's value of a setting, None when unset."""
        result = self.git("config", "--get", "-z", key, check=False)
        return result.stdout.rstrip("\0") if result.returncode == 0 else None

    def is_shallow(self) -> bool:
        return self.git("rev-parse", "--is-shallow-repository").stdout.strip() == "true"

    def resolve(self, rev: str) -> str:
        """The commit that `rev` names. Raises UsageError when there is none."""
        result = None
        if rev and not rev.startswith("-") and "\0" not in rev:
            result = self.git("rev-parse", "--verify", "--quiet", rev + "^{commit}", check=False)
        if result is None or result.returncode != 0:
            hint = "`git log --all` lists the commits."
            if self.is_shallow():
                hint = "This is a shallow clone; `git fetch --unshallow` brings the rest."
            raise UsageError(f"{rev!r} names no commit of {self.root}", hint)
        return result.stdout.strip()

    def tree_of(self, rev: str) -> str:
        """The tree of a commit or tree."""
        return self.git("rev-parse", "--verify", "--quiet", rev + "^{tree}").stdout.strip()

    def filtered(self, paths: Iterable[str], env: Mapping[str, str] | None = None) -> set[str]:
        """Those of `paths` whose content git stores through one of the user's filters."""
        paths = list(paths)
        if not self.filters or not paths:
            return set()
        names = b"".join(encode(path) + b"\0" for path in paths)
        fields = self.git("check-attr", "-z", "--stdin", "filter", env=env, input=names, text=False).data
        values = [decode(part) for part in fields.split(b"\0")]
        return {path for path, name in zip(values[::3], values[2::3], strict=False) if name in self.filters}

    def branch_exists(self, name: str) -> bool:
        return self._branch(name) is not None

    def _branch(self, name: str) -> str | None:
        result = self.git("rev-parse", "--verify", "--quiet", f"refs/heads/{name}", check=False)
        return result.stdout.strip() if result.returncode == 0 else None

    def check_branch_name(self, name: str) -> None:
        """Raise UsageError unless `name` can be created: valid, free, and not blocked by another ref."""
        ref = f"refs/heads/{name}"
        valid = name != "HEAD" and not name.startswith("-") and "\0" not in name
        if not valid or self.git("check-ref-format", ref, check=False).returncode != 0:
            raise UsageError(f"{name!r} is not a valid branch name", "`git check-ref-format` has the rules.")
        parts = name.split("/")
        blockers = ["/".join(parts[:n]) for n in range(1, len(parts))]
        taken = set(self.git("for-each-ref", "--format=%(refname)", "refs/heads/").stdout.splitlines())
        if ref in taken:
            raise UsageError(f"the branch {name!r} exists already", "Choose another name with --branch.")
        below = next((other for other in sorted(taken) if other.startswith(ref + "/")), None)
        above = next((b for b in blockers if f"refs/heads/{b}" in taken), None)
        if below or above:
            other = above or (below or "").removeprefix("refs/heads/")
            raise UsageError(
                f"the branch {name!r} can't be created while the branch {other!r} exists",
                "Choose another name with --branch.",
            )

    def create_branch(self, name: str, sha: str) -> None:
        """Create the branch at `sha`, atomically. Raises UsageError when the name is taken or invalid."""
        self.check_branch_name(name)
        ref = f"refs/heads/{name}"
        result = self.git("update-ref", "-m", "agent-ls: created", ref, sha, "0" * len(sha), check=False)
        if result.returncode != 0:
            self.check_branch_name(name)  # another process was faster: say that it is taken
            raise GitError(f"the branch {name!r} could not be created: {result.stderr.strip()}")

    def move_branch(self, name: str, new: str, old: str) -> None:
        """Set the branch from `old` to `new`. Raises UsageError when it moved or the user checked it out."""
        self._refuse_checked_out(name, "moved")
        result = self.git("update-ref", "-m", "agent-ls: moved", f"refs/heads/{name}", new, old, check=False)
        if result.returncode != 0:
            raise UsageError(
                f"the branch {name!r} was changed by someone else: {result.stderr.strip()}",
                "It is left as it is.",
            )

    def delete_branch(self, name: str, old: str) -> None:
        """Delete the branch if it still is at `old`; nothing happens when it is gone already.

        Raises UsageError when it moved or the user checked it out.
        """
        if self._branch(name) is None:
            return
        self._refuse_checked_out(name, "deleted")
        result = self.git("update-ref", "-d", f"refs/heads/{name}", old, check=False)
        if result.returncode != 0 and self._branch(name) is not None:
            raise UsageError(
                f"the branch {name!r} was changed since: {result.stderr.strip()}", "It is left as it is."
            )

    def _refuse_checked_out(self, name: str, what: str) -> None:
        where = _line(self.git("for-each-ref", "--format=%(worktreepath)", f"refs/heads/{name}", check=False))
        if where:
            raise UsageError(
                f"the branch {name!r} is checked out in {where} and can't be {what}",
                "Check out another branch there first.",
            )

    def identity(self) -> tuple[str, str]:
        """Name and e-mail address for commits: the user's, or a fallback for each that is unset."""
        name = os.environ.get("GIT_AUTHOR_NAME") or self.config("author.name") or self.config("user.name")
        email = (
            os.environ.get("GIT_AUTHOR_EMAIL")
            or self.config("author.email")
            or self.config("user.email")
            or os.environ.get("EMAIL")
        )
        return _clean(name) or FALLBACK_IDENTITY[0], _clean(email) or FALLBACK_IDENTITY[1]

    def commit_tree(self, tree: str, message: str, parent: str) -> str:
        """Write a commit object by the user's identity and return its id. No ref moves, no hook runs."""
        name, email = self.identity()
        env = {f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER")
               for part, value in (("NAME", name), ("EMAIL", email))}  # fmt: skip
        result = self.git(
            "commit-tree", tree, "-p", parent, "-F", "-", env=env, input=message.rstrip("\n") + "\n"
        )
        return result.stdout.strip()


_FSCK = "`git fsck` names what is damaged or missing; fetch or clone the repository again to restore it."
_NO_ROOM = "Free some space, or move the state (AGENT_LS_STATE_DIR)."
_CAUSES: tuple[tuple[str, str, str, type[AgentLsError]], ...] = (
    (
        r"No space left on device|Disk quota exceeded|File too large",
        "git could not write",
        _NO_ROOM,
        GitError,
    ),
    (
        r"index file (smaller than expected|corrupt)|bad index file|bad signature 0x|index uses .* extension",
        "the index of {root} is damaged",
        "`rm -f .git/index && git reset` makes it anew: all files stay; what was staged no longer is.",
        UsageError,
    ),
    (
        r"loose object|inflate:|unable to unpack|unable to read (sha1 file|tree|[0-9a-f]{40})"
        r"|missing blob object|bad (tree|object)|not a valid object|pack.* (corrupt|is damaged)"
        r"|object file .* is empty"
        r"|sha1 mismatch|hash mismatch|unable to find [0-9a-f]{40}|failed to read object",
        "{root} is damaged: git can't read some of its objects",
        _FSCK,
        UsageError,
    ),
    (
        r"insufficient permission for adding an object|Permission denied|Read-only file system",
        "git may not write into {root}",
        "agent-ls keeps a snapshot commit, the session's branch and its worktree's record there: make .git "
        "writable, or work in a clone.",
        UsageError,
    ),
)


def _failure(place: Path, command: str, result: GitResult) -> AgentLsError:
    """Why a command failed, in words and with the remedy where the cause is a known one."""
    said = result.stderr.strip()
    for pattern, message, remedy, kind in _CAUSES:
        if re.search(pattern, said):
            last = said.splitlines()[-1].removeprefix("fatal: ").removeprefix("error: ")
            return kind(f"{message.format(root=place)} ({last})", remedy)
    return GitError(f"git {command} failed (exit {result.returncode}): {said or 'no message'}")


def _clean(text: str | None) -> str:
    """`text` as git accepts it in an identity: one line, no angle brackets, not only punctuation."""
    return re.sub(r"[<>\x00-\x1f\x7f]", "", text or "").strip(" .,:;\"\\'")


def _discovery_error(path: Path, stderr: str) -> UsageError:
    if "dubious ownership" in stderr or "unsafe repository" in stderr:
        return UsageError(
            f"{path} lies in a repository that belongs to another user, and git does not trust it",
            "If you do, run `git config --global --add safe.directory <its top directory>`.",
        )
    if "not a git repository (or any" in stderr:
        return UsageError(
            f"{path} is not a git repository", "Run `git init` and commit your files, or give --repo."
        )
    cause = stderr.strip().removeprefix("fatal: ") or "git gave no reason"
    return UsageError(f"{path} is not a usable git repository: {cause}", "`git status` there must work.")


def _named_programs(git_dir: Path) -> tuple[frozenset[str], frozenset[str]]:
    """The names under which the user's settings hold filters, and hooks (`hook.<name>.command`)."""
    pattern = r"^(filter|hook)\..*\."
    listing = _run(
        git_dir, ("config", "--name-only", "-z", "--get-regexp", pattern), {"GIT_DIR": str(git_dir)}
    )
    found: dict[str, set[str]] = {"filter": set(), "hook": set()}
    for key in split_z(listing.data):
        section, name = key.rsplit(".", 1)[0].split(".", 1)
        found[section].add(name)
    return frozenset(found["filter"]), frozenset(found["hook"])

"""The files of one working tree: list, read, edit."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from agent_ls.cancel import CancelToken
from agent_ls.errors import ToolRefused
from agent_ls.workspace.edits import Edit, EditResult, FileChange, Plan, plan_edits
from agent_ls.workspace.matching import numbered
from agent_ls.workspace.paths import TEMPORARY_PREFIX, normalise, resolve_inside
from agent_ls.workspace.text import TextFile

_GIT_TIMEOUT = 60.0
_SHOWN_AROUND = 6


class Workspace:
    """One working tree. Paths go in and out relative to `root`, with "/"; see `paths` for what is refused.

    Once `cancel` is set, listing and searching raise Cancelled.
    """

    def __init__(self, root: Path, cancel: CancelToken | None = None) -> None:
        self.root = Path(os.path.realpath(root))
        self.cancel = cancel

    def resolve(self, rel: str, for_write: bool = False) -> Path:
        """The real path of `rel`. Raises ToolRefused as `paths.resolve_inside`."""
        return resolve_inside(self.root, rel, for_write)

    def exists(self, rel: str) -> bool:
        """Is there a file of this name that may be touched?"""
        try:
            return self.resolve(rel).is_file()
        except (ToolRefused, OSError):
            return False

    def read(self, rel: str) -> TextFile:
        """The text of a file. Raises ToolRefused when there is none, when it is a folder, not text, over
        5 MB or off limits; OSError when it can't be read."""
        path = self.resolve(rel)
        try:
            if path.is_dir():
                raise ToolRefused(f"{normalise(rel)} is a folder, not a file")
            return TextFile.read(path)
        except (FileNotFoundError, NotADirectoryError):
            raise ToolRefused(f"there is no file {normalise(rel)}") from None

    def plan(self, edits: Sequence[Edit]) -> Plan:
        """What the edits would do. Raises ToolRefused as `edits.plan_edits`, or when a file would have a
        syntax error that it did not have before (the message shows both versions)."""
        plan = plan_edits(self, edits)
        for change in plan.changes:
            check_syntax(change)
        return plan

    def apply(self, edits: Sequence[Edit]) -> EditResult:
        """Carry the edits out, all or none. Raises ToolRefused as `plan`."""
        return self.plan(edits).apply()

    def _git_list(self) -> list[str] | None:
        from agent_ls.sandbox.process import run_helper

        # Settings of the repository that would start a program are switched off.
        argv = ["git", "-c", "core.fsmonitor=false", "ls-files", "-z", "-co", "--exclude-standard"]
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        env["GIT_OPTIONAL_LOCKS"] = "0"
        try:
            result = run_helper(argv, cwd=self.root, env=env, timeout=_GIT_TIMEOUT, cancel=self.cancel)
        except OSError:
            return None
        if result.returncode != 0:
            return None
        names = (os.fsdecode(name) for name in result.stdout.split(b"\0") if name)
        # A name that isn't UTF-8 can't be spoken of in a tool call.
        return [name for name in names if not any("\udc80" <= char <= "\udcff" for char in name)]

    def _walk(self) -> Iterator[str]:
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name.casefold() != ".git"]
            for name in names:
                yield (Path(folder) / name).relative_to(self.root).as_posix()

    def _is_file(self, rel: str) -> bool:
        if rel.rsplit("/", 1)[-1].startswith(TEMPORARY_PREFIX):
            return False
        try:
            return stat.S_ISREG((self.root / rel).stat().st_mode)
        except OSError:
            return False

    def list(self, globs: Sequence[str] | None = None) -> list[str]:
        """All files that git tracks or would add (ignored ones are left out), sorted; without git, all files.

        `globs` follow the rules of .gitignore: "*.py" matches at any depth, "src/**/*.py" below src,
        "!x" takes matches away again. Folders of other repositories and submodules are left out.
        """
        listed = self._git_list()
        paths = self._walk() if listed is None else listed
        found = sorted({path for path in paths if self._is_file(path)})
        return matching_globs(found, globs) if globs else found


def matching_globs(paths: Sequence[str], globs: Sequence[str]) -> list[str]:
    """The paths that match `globs` (see `Workspace.list`); only negated globs mean "all but these"."""
    import pathspec

    wanted = [glob for glob in globs if not glob.startswith("!")] or ["*"]
    try:
        # Two sets, so that "!docs" takes away all below docs, which one list of patterns would not.
        included = pathspec.GitIgnoreSpec.from_lines(wanted)
        excluded = pathspec.GitIgnoreSpec.from_lines(glob[1:] for glob in globs if glob.startswith("!"))
    except ValueError as error:
        raise ToolRefused(f"not a valid glob among {list(globs)}: {error}") from None
    return [path for path in paths if included.match_file(path) and not excluded.match_file(path)]


def check_syntax(change: FileChange) -> None:
    """Raises ToolRefused when the change adds a syntax error; the message shows both versions."""
    from agent_ls.workspace.syntax import new_errors

    old, new = change.texts()
    if new is None:
        return
    added = new_errors(change.path, old, new)
    if not added:
        return
    problem = added[0]
    said = [
        f"{change.path}: the edit adds a syntax error, so it was not applied. "
        f"Line {problem.line}, column {problem.column}: {problem.message}",
        "With the edit:\n" + _around(new, problem.line),
    ]
    if old is not None:
        said.append("As it is now:\n" + _around(old, _same_place(old, new, problem.line)))
    raise ToolRefused("\n".join(said), "Correct the new text and send the edit again.")


def _around(text: str, line: int) -> str:
    return numbered(text.removesuffix("\n").split("\n"), line - _SHOWN_AROUND, line + _SHOWN_AROUND)


def _same_place(old: str, new: str, line: int) -> int:
    """The line of the old text that stands where the new one has `line`: counted from the nearer end of
    what both share."""
    before, after = old.split("\n"), new.split("\n")
    shared = 0
    while shared < min(len(before), len(after)) and before[shared] == after[shared]:
        shared += 1
    if line <= shared:
        return line
    from_end = len(after) - line
    tail = 0
    while tail < min(len(before), len(after)) - shared and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    if from_end < tail:
        return len(before) - from_end
    return min(line, len(before))

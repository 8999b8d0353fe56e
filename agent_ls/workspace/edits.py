"""Edits to files: unique match or refused, several together all or nothing."""

from __future__ import annotations

import contextlib
import difflib
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from attrs import evolve, field, frozen

from agent_ls.errors import ToolRefused
from agent_ls.workspace.matching import find_place
from agent_ls.workspace.paths import normalise, resolve_inside
from agent_ls.workspace.text import NotText, TextFile, check_size, write_atomic


@frozen
class Replace:
    """Put `new` where `old` stands (see `matching`). `line` and `whole_lines` are for edits that come
    from a diff: the line decides between equal places only, and only where it is exactly one of them."""

    path: str
    old: str
    new: str
    line: int | None = None
    whole_lines: bool = False


@frozen
class Create:
    """Make a file that does not exist yet, with exactly this content (UTF-8)."""

    path: str
    content: str


@frozen
class Delete:
    """Remove a file; `content` is what a diff says that the file holds, None: whatever it holds."""

    path: str
    content: str | None = None


@frozen
class Move:
    """Give a file another path, which must be free."""

    path: str
    to: str


Edit = Replace | Create | Delete | Move


class Files(Protocol):
    """What planning needs of a workspace."""

    root: Path

    def resolve(self, rel: str, for_write: bool = False) -> Path: ...

    def list(self, globs: Sequence[str] | None = None) -> list[str]: ...


@frozen
class FileState:
    """A file's bytes and permission bits; `data` None: there is no file."""

    data: bytes | None
    mode: int | None = None


@frozen
class FileChange:
    """One path before and after a plan."""

    path: str
    before: FileState
    after: FileState

    def texts(self) -> tuple[str | None, str | None]:
        """Both texts with "\\n" ends; None where there is no file or no text."""
        return _text(self.path, self.before), _text(self.path, self.after)


@frozen
class EditResult:
    """`diff` is a unified diff of all changes, `files` the paths that changed (old and new of a move)."""

    diff: str
    files: tuple[str, ...]


@frozen
class Plan:
    """All changes of some edits, worked out without touching the disk. `targets` has the real paths."""

    root: Path
    changes: tuple[FileChange, ...]
    targets: Mapping[str, Path] = field(repr=False)

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(change.path for change in self.changes)

    def diff(self) -> str:
        """A unified diff with "a/" and "b/" in front of the paths; binary files are only named."""
        return "".join(_file_diff(change) for change in self.changes)

    def apply(self) -> EditResult:
        """Write everything, or nothing: an OSError on the way puts back what was already done.

        Raises ToolRefused when a file or the way to it is no longer as it was when the plan was made.
        """
        for change in self.changes:
            target = resolve_inside(self.root, change.path, for_write=True)
            if target != self.targets[change.path] or _load(target) != change.before:
                raise ToolRefused(f"{change.path} was changed by someone else; read it again")
        done: list[FileChange] = []
        made: list[Path] = []
        try:
            # Files that go away come first, so that a folder's name can become a file's and back.
            for change in sorted(self.changes, key=lambda change: change.after.data is not None):
                made += _missing_parents(self.root, self.targets[change.path])
                done.append(change)
                _put(self.root, self.targets[change.path], change.after)
        except BaseException as error:
            lost = self._take_back(done, made)
            if not isinstance(error, OSError):
                raise
            if lost:
                raise ToolRefused(
                    f"the edit failed ({error.strerror}), and could not be put back: {', '.join(lost)}"
                ) from error
            raise ToolRefused(f"the edit failed and was taken back: {error.strerror}") from error
        return EditResult(self.diff(), self.files)

    def _take_back(self, done: Sequence[FileChange], made: Sequence[Path]) -> list[str]:
        """Undo what was written; the paths for which that failed."""
        lost = []
        for change in reversed(done):
            try:
                _put(self.root, self.targets[change.path], change.before)
            except OSError:
                lost.append(change.path)
        for folder in reversed(made):
            with contextlib.suppress(OSError):
                folder.rmdir()
        return lost


def plan_edits(files: Files, edits: Sequence[Edit]) -> Plan:
    """Work out what `edits`, in this order, would do. Raises ToolRefused on the first that can't be done;
    its message says which of several it was."""
    if not edits:
        raise ToolRefused("there are no edits")
    tree = _Tree(files)
    for number, edit in enumerate(edits, 1):
        try:
            tree.carry_out(edit)
        except ToolRefused as error:
            if len(edits) == 1:
                raise
            prefix = f"edit {number} of {len(edits)} failed, so none was applied: "
            raise type(error)(prefix + error.message, error.remedy) from error
    changes = tree.changes()
    if not changes:
        raise ToolRefused("the edits cancel each other out; nothing would change")
    return Plan(files.root, changes, tree.targets)


class _Tree:
    """The files that edits have touched so far, in memory."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.targets: dict[str, Path] = {}
        self._before: dict[str, FileState] = {}
        self._now: dict[str, FileState] = {}

    def carry_out(self, edit: Edit) -> None:
        path = self._touch(edit.path)
        state = self._now[path]
        if isinstance(edit, Create):
            if state.data is not None:
                raise ToolRefused(
                    f"{path} exists already", "Edit it by quoting old and new text, or delete it first."
                )
            self._now[path] = FileState(TextFile.new(edit.content).to_bytes(), self._before[path].mode)
            return
        if state.data is None:
            raise ToolRefused(f"there is no file {path}" + self._resembling(path))
        if isinstance(edit, Delete):
            if edit.content is not None:
                _check_deletion(path, TextFile.from_bytes(state.data, path).text, edit.content)
            self._now[path] = FileState(None)
        elif isinstance(edit, Move):
            to = self._touch(edit.to)
            if to == path:
                raise ToolRefused(f"{path} would be moved onto itself")
            if self._now[to].data is not None:
                raise ToolRefused(f"{path} can't be moved to {to}, which exists already")
            self._now[to], self._now[path] = state, FileState(None)
        else:
            file = TextFile.from_bytes(state.data, path)
            old, new = (part.replace("\r\n", "\n").replace("\r", "\n") for part in (edit.old, edit.new))
            place = find_place(file.text, old, new, path=path, line=edit.line, whole_lines=edit.whole_lines)
            changed = file.replace_span(place.start, place.end, place.new)
            self._now[path] = evolve(state, data=changed.to_bytes())

    def changes(self) -> tuple[FileChange, ...]:
        return tuple(
            FileChange(path, before, self._now[path])
            for path, before in self._before.items()
            if before != self._now[path]
        )

    def _touch(self, rel: str) -> str:
        path = normalise(rel)
        if rel.endswith("/"):
            raise ToolRefused(f"{rel!r} names a folder, not a file")
        if path not in self._before:
            target = self._files.resolve(path, for_write=True)
            state = _load(target)
            self.targets[path] = target
            self._before[path] = self._now[path] = state
        return path

    def _resembling(self, path: str) -> str:
        listed = self._files.list()
        name = path.rsplit("/", 1)[-1]
        same = [item for item in listed if item.rsplit("/", 1)[-1] == name]
        close = same[:3] or difflib.get_close_matches(path, listed, 3, 0.7)
        return f"; is it {' or '.join(close)}?" if close else ""


def _check_deletion(path: str, text: str, quoted: str) -> None:
    """Raises ToolRefused unless `quoted` is all of the text (final newline and trailing blanks aside)."""
    place = find_place(text, quoted, "", path=path, line=1, whole_lines=True)
    if text[: place.start].strip() or text[place.end :].strip():
        raise ToolRefused(f"{path} holds more than what is to be deleted", "Read it first.")


def _load(path: Path) -> FileState:
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise ToolRefused(f"{path.name} is a folder, not a file")
        check_size(path.name, status.st_size)
        return FileState(path.read_bytes(), stat.S_IMODE(status.st_mode))
    except FileNotFoundError:
        return FileState(None)
    except NotADirectoryError:
        raise ToolRefused(f"{path.name} can't lie below {path.parent.name}, which is a file") from None


def _missing_parents(root: Path, path: Path) -> list[Path]:
    """Folders between `root` and `path` that don't exist, the outermost first."""
    missing = []
    for folder in path.parents:
        if folder == root or folder.exists():
            break
        missing.append(folder)
    return missing[::-1]


def _put(root: Path, path: Path, state: FileState) -> None:
    if state.data is not None:
        write_atomic(path, state.data, state.mode)
        return
    path.unlink(missing_ok=True)
    for folder in path.parents:  # as git does: no empty folders stay behind
        if folder == root or not folder.is_relative_to(root):
            break
        try:
            folder.rmdir()
        except OSError:
            break


def _text(path: str, state: FileState) -> str | None:
    if state.data is None:
        return None
    try:
        return TextFile.from_bytes(state.data, path).text
    except NotText:
        return None


def _file_diff(change: FileChange) -> str:
    header = f"diff --git a/{change.path} b/{change.path}\n"
    old, new = change.texts()
    before, after = change.before, change.after
    mode = f"{0o100755 if (after.mode or before.mode or 0) & 0o100 else 0o100644:o}"
    if before.data is None:
        header += f"new file mode {mode}\n"
    elif after.data is None:
        header += f"deleted file mode {mode}\n"
    from_name = "/dev/null" if before.data is None else f"a/{change.path}"
    to_name = "/dev/null" if after.data is None else f"b/{change.path}"
    if (old is None and before.data is not None) or (new is None and after.data is not None):
        return header + f"Binary files {from_name} and {to_name} differ\n"
    lines = list(difflib.unified_diff(_kept(old or ""), _kept(new or ""), from_name, to_name, lineterm="\n"))
    return header + "".join(
        line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines
    )


def _kept(text: str) -> list[str]:
    """Lines with their "\\n"; unlike `splitlines` no other character ends a line."""
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])

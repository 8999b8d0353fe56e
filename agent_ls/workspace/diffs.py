"""A unified diff read as edits, to be applied under the same matching rules as any other edit.

The text of a hunk decides where it goes; its line numbers only choose between places that are equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from agent_ls.errors import ToolRefused
from agent_ls.workspace.edits import Create, Delete, Edit, Move, Replace

if TYPE_CHECKING:
    from unidiff.patch import Hunk, PatchedFile

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_BARE_HUNK = re.compile(r"@@(?: .*)?$")
_REMEDY = "Send a unified diff (--- a/path, +++ b/path, @@ … @@), or edits with old and new text."


def parse_diff(diff: str, exists: Callable[[str], bool] | None = None) -> list[Edit]:
    """The edits that a unified diff asks for, in its order: hunks as `Replace`, files from and to
    /dev/null as `Create` and `Delete`, renames as `Move`.

    Line counts in hunk headers may be wrong or missing: they are counted again. `exists` tells whether
    a path is a file, which settles whether a leading "a/" or "b/" belongs to the path. Raises ToolRefused for
    whatever isn't a unified diff, for binary patches and for hunks without any line to find.
    """
    from unidiff import PatchSet
    from unidiff.errors import UnidiffParseError

    text = diff.replace("\r\n", "\n").replace("\r", "\n")
    if not text.endswith("\n"):
        text += "\n"
    try:
        patch = PatchSet.from_string(_recounted(text))
    except Exception as error:  # on odd input the parser raises NameError, AttributeError and more
        reason = (
            str(error).strip() if isinstance(error, UnidiffParseError) else "its headers don't fit together"
        )
        raise ToolRefused(f"this is not a unified diff: {reason}", _REMEDY) from None
    edits: list[Edit] = []
    for file in patch:
        edits += _file_edits(file, exists)
    if not edits:
        raise ToolRefused("the diff holds no change", _REMEDY)
    return edits


def _recounted(text: str) -> str:
    """The diff with the line counts of its hunk headers as they really are.

    A header that agrees with what follows is believed, so that a removed line "-- x" is not taken for
    the header of the next file; otherwise the hunk ends where its lines stop looking like a hunk's.
    """
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    out: list[str] = []
    index = 0
    while index < len(lines):
        header = _HUNK.match(lines[index])
        if header is None and not _BARE_HUNK.match(lines[index]):
            out.append(lines[index])
            index += 1
            continue
        stop = None
        if header is not None:
            old, new = (int(header.group(group) or 1) for group in (2, 4))
            stop = _believed(lines, index + 1, old, new)
        stop = stop or _hunk_end(lines, index + 1)
        body = [line if line else " " for line in lines[index + 1 : stop]]
        old = sum(line[0] in " -" for line in body)
        new = sum(line[0] in " +" for line in body)
        starts = (header.group(1), header.group(3)) if header is not None else (0, 0)
        out.append(f"@@ -{starts[0]},{old} +{starts[1]},{new} @@")
        out += body
        index = stop
    return "\n".join(out) + "\n"


def _believed(lines: list[str], index: int, old: int, new: int) -> int | None:
    """Where the hunk ends if its header counts right, else None."""
    while index < len(lines) and (old > 0 or new > 0):
        kind = lines[index][:1] or " "
        if kind not in " +-\\":
            return None
        old -= kind in " -"
        new -= kind in " +"
        index += 1
    if old or new:
        return None
    while index < len(lines) and lines[index].startswith("\\"):
        index += 1
    if index < len(lines) and lines[index][:1] in ("+", "-", " ") and not _file_header(lines, index):
        return None
    return index


def _hunk_end(lines: list[str], index: int) -> int:
    while index < len(lines) and (lines[index][:1] or " ") in " +-\\" and not _file_header(lines, index):
        index += 1
    while lines[index - 1] == "":  # blank lines between hunks or files
        index -= 1
    return index


def _file_header(lines: list[str], index: int) -> bool:
    return (
        lines[index].startswith("--- ")
        and index + 1 < len(lines)
        and lines[index + 1].startswith("+++ ")
        and (index + 2 == len(lines) or lines[index + 2].startswith("@@"))
    )


def _file_edits(file: PatchedFile, exists: Callable[[str], bool] | None) -> list[Edit]:
    if file.is_binary_file or not file.source_file or not file.target_file:
        raise ToolRefused("binary patches are not accepted", _REMEDY)
    source, target = _names(file.source_file, file.target_file, exists)
    if source is None and target is None:
        raise ToolRefused("a file of the diff has no name", _REMEDY)
    if source is None:
        assert target is not None
        return [Create(target, _side(list(file), new=True))]
    if target is None:
        return [Delete(source, _side(list(file), new=False) or None)]
    edits: list[Edit] = [Move(source, target)] if source != target else []
    for hunk in file:
        old, new = _side([hunk], new=False), _side([hunk], new=True)
        if not old.strip("\n"):
            raise ToolRefused(
                f"{target}: the hunk at line {hunk.source_start} quotes no line that is in the file",
                "Give it some unchanged lines of context.",
            )
        # Earlier hunks are applied by then: the place is where the target's numbers say.
        edits.append(Replace(target, old, new, hunk.target_start, whole_lines=True))
    return edits


def _names(source: str, target: str, exists: Callable[[str], bool] | None) -> tuple[str | None, str | None]:
    """Both paths, None for /dev/null, without the "a/" and "b/" that git puts in front."""
    old = None if source == "/dev/null" else source
    new = None if target == "/dev/null" else target
    prefixed = (old is None or old.startswith("a/")) and (new is None or new.startswith("b/"))
    if old is not None and old == new:
        prefixed = old.startswith(("a/", "b/"))
    if prefixed and (old is None or new is None or old == new) and exists is not None:
        # No second name says whether the prefix belongs to the path: the disk does.
        name = old or new or ""
        prefixed = exists(name[2:]) or not exists(name)
    if not prefixed:
        return old, new
    return old and old[2:], new and new[2:]


def _side(hunks: Sequence[Hunk], new: bool) -> str:
    """The text of the old or the new side, with "\\n" ends but where the diff says there is none."""
    from unidiff.constants import LINE_TYPE_ADDED, LINE_TYPE_CONTEXT, LINE_TYPE_NO_NEWLINE, LINE_TYPE_REMOVED

    wanted = {LINE_TYPE_CONTEXT, LINE_TYPE_ADDED if new else LINE_TYPE_REMOVED}
    parts: list[str] = []
    last = ""
    for hunk in hunks:
        for line in hunk:
            if line.line_type == LINE_TYPE_NO_NEWLINE:
                if last in wanted and parts:
                    parts[-1] = parts[-1].removesuffix("\n")
            elif line.line_type in wanted:
                parts.append(line.value if line.value.endswith("\n") else line.value + "\n")
            last = line.line_type
    return "".join(parts)

"""The plain data of the index: what is said of a file, and what its answers consist of.

Lines count from 1, columns from 1 in characters; paths are relative to the root, with "/".
"""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen

ReferenceKind = Literal["call", "read", "import", "type"]


@frozen
class Definition:
    """A name that a file defines. `line` is the first with decorators, `name_line` and `column` are where the
    name stands, `end_line` is the last; `container` is the dotted name of what encloses it, `signature` its
    head on one line, `doc` the first line of its documentation ("" without)."""

    name: str
    kind: str
    line: int
    name_line: int
    column: int
    end_line: int
    container: str | None = None
    signature: str = ""
    doc: str = ""

    @property
    def qualified(self) -> str:
        """The dotted name with its containers."""
        return f"{self.container}.{self.name}" if self.container else self.name


@frozen
class Reference:
    """A use of a name, on one line from `column` up to but without `end_column`; the name of a definition
    itself is none."""

    name: str
    kind: ReferenceKind
    line: int
    column: int
    end_column: int


@frozen
class Import:
    """What a file takes from elsewhere: `module` as it is written ("..pkg.mod", "./util", "net/http"),
    `names` those taken from it (none: the module itself, "*": all)."""

    module: str
    line: int
    names: tuple[str, ...] = ()


@frozen
class FileTags:
    """What one file's text says. `broken`: it has syntax errors, and these are the sound parts."""

    language: str
    definitions: tuple[Definition, ...] = ()
    references: tuple[Reference, ...] = ()
    imports: tuple[Import, ...] = ()
    broken: bool = False


@frozen
class FileInfo:
    """A file of the index. `language` None: text only. `role` says whether people write it by hand."""

    path: str
    size: int
    language: str | None
    role: Literal["source", "generated", "minified", "vendored"] = "source"


@frozen
class Skipped:
    """A file (or folder) that the index leaves out, and why, in words for a person."""

    path: str
    reason: str


@frozen
class Found:
    """A definition and the file that it is in."""

    path: str
    definition: Definition


@frozen
class Use:
    """A reference, the file that it is in, that line's text (capped) and the dotted name of the definition
    around it (None at the top of the file)."""

    path: str
    reference: Reference
    text: str = field(default="")
    inside: str | None = None

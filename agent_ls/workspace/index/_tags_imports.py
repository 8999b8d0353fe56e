"""What import statements take from where, read from their text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from agent_ls.workspace.index._tags_text import Lines

_Taken = Iterator[tuple[str, tuple[str, ...]]]
_STATEMENT_BYTES = 20_000


def imports_of(
    language: str, source: bytes, statements: Sequence[tuple[int, int]], lines: Lines
) -> list[tuple[str, int, tuple[str, ...]]]:
    """(module, line, names) of the import statements at these byte ranges, by line."""
    read = _READERS.get(language)
    if read is None:
        return []
    found = []
    for start, end in sorted(set(statements)):
        text = source[start : min(end, start + _STATEMENT_BYTES)].decode("utf-8", "replace")
        line = lines.line(start)
        found += [(module, line, names) for module, names in read(text) if module]
    return found


_PYTHON_FROM = re.compile(r"from\s*((?:\.|\s)*[\w.\s]*?)\s*\bimport\b(.*)", re.DOTALL)


def _python(text: str) -> _Taken:
    if "#" in text:
        text = re.sub(r"#[^\n]*", "", text)
    if "\\" in text:
        text = text.replace("\\\n", " ").replace("\\\r\n", " ")
    found = _PYTHON_FROM.match(text)
    if found:
        names = found[2].strip().strip("()")
        taken = tuple(part.split()[0] for part in names.split(",") if part.strip())
        yield "".join(found[1].split()), taken
    else:
        for part in text.removeprefix("import").split(","):
            words = part.split(" as ")[0].split()
            if words:
                yield "".join(words), ()


_QUOTED = re.compile(r"""(['"`])([^'"`\n]+)\1""")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def _ecma(text: str) -> _Taken:
    quoted = list(_QUOTED.finditer(text))
    if not quoted:
        return
    module = quoted[-1][2] if text.startswith(("import ", "export", "import{", "import\t")) else quoted[0][2]
    names: list[str] = []
    head = text[: quoted[-1].start()]
    if text.startswith(("import", "export")) and not text.startswith("import("):
        head = _COMMENT.sub("", head)
        braces = re.search(r"\{(.*?)\}", head, re.DOTALL)
        if braces:
            for part in braces[1].split(","):
                words = part.split()
                if words[:1] == ["type"] and len(words) > 1 and words[1] != "as":
                    words = words[1:]
                if words:
                    names.append(words[0].strip("'\""))
        if re.search(r"^export\s+(type\s+)?\*\s*from", head):
            names.append("*")
        rest = re.sub(r"\{.*?\}", "", head, flags=re.DOTALL)
        default = re.match(r"import\s+(?:type\s+)?(?!from\b)([\w$]+)\s*(?:,|from\b)", rest)
        if default and not (braces and default[1] == "type"):
            names.insert(0, "default")
    yield module, tuple(names)


_READERS: dict[str, Callable[[str], _Taken]] = {
    "python": _python,
    "javascript": _ecma,
    "typescript": _ecma,
    "tsx": _ecma,
}

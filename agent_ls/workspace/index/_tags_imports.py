"""What import statements take from where, read from their text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from agent_ls.workspace.index._tags_text import Lines

_Taken = Iterator[tuple[str, tuple[str, ...]]]
STATEMENT_BYTES = 20_000


def imports_of(
    language: str, source: bytes, statements: Sequence[tuple[int, int]]
) -> list[tuple[str, int, tuple[str, ...]]]:
    """(module, line, names) of the import statements at these byte ranges, by line."""
    read = _READERS.get(language)
    if read is None or not statements:
        return []
    lines = Lines(source)
    found = []
    for start, end in sorted(set(statements)):
        text = source[start : min(end, start + STATEMENT_BYTES)].decode("utf-8", "replace")
        line = lines.line(start)
        found += [(module, line, names) for module, names in read(text) if module]
    return found


_PYTHON_FROM = re.compile(r"from\s*((?:\.|\s)*[\w.\s]*?)\s*\bimport\b(.*)", re.DOTALL)


def read_python(text: str) -> _Taken:
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


def _quoted(text: str) -> _Taken:
    """Go, Ruby, PHP's include: the one string in it."""
    found = _QUOTED.search(text)
    if found:
        yield found[2], ()


def _include(text: str) -> _Taken:
    found = re.search(r"""[<"]([^<>"\n]+)[>"]""", text)
    if found:
        yield found[1], ()


def _dotted(text: str) -> _Taken:
    """Java, Kotlin, Swift: `import a.b.C`, `import static a.b.C.*`, `import a.b.C as D`."""
    words = text.rstrip(";").split(" as ")[0].split()
    path = "".join(word for word in words[1:] if word not in _IMPORT_KINDS)
    if path.endswith(".*"):
        yield path[:-2], ("*",)
    elif "." in path and words[0] == "import":
        module, _, name = path.rpartition(".")
        yield module, (name,)
    elif path:
        yield path, ()


_IMPORT_KINDS = frozenset(
    {"static", "struct", "class", "enum", "protocol", "func", "var", "let", "typealias"}
)


def _using(text: str) -> _Taken:
    """C#'s `using A.B;`, `using static A.B;`, `using C = A.B;`; C++'s `using a::b;`."""
    path = text.rstrip(";").rpartition("=")[2]
    words = [
        word for word in path.split() if word not in ("global", "using", "static", "namespace", "unsafe")
    ]
    yield "".join(words), ()


def _cpp(text: str) -> _Taken:
    return _include(text) if text.startswith("#") else _using(text)


def _rust(text: str) -> _Taken:
    text = _COMMENT.sub("", text).strip().rstrip(";")
    mod = re.match(r"(?:pub(?:\([^)]*\))?\s+)?(?:mod|extern\s+crate)\s+(\w+)", text)
    if mod:
        yield (f"self::{mod[1]}" if "mod" in text.split(mod[1])[0] else mod[1]), ()
        return
    path = re.sub(r"^(?:pub(?:\([^)]*\))?\s+)?use\s+", "", text)
    taken: dict[str, list[str]] = {}
    for leaf in _leaves(re.sub(r"\s+as\s+\w+", "", path), "{", "}"):
        module, _, name = leaf.rpartition("::")
        if name == "self":
            module, _, name = module.rpartition("::")
        taken.setdefault(module or name, []).extend([name] if module else [])
    for module, names in taken.items():
        yield module, tuple(names)


def _leaves(text: str, left: str, right: str) -> list[str]:
    """The paths of a tree such as "a::{b, c::{d, e}}", without recursion."""
    prefixes = [""]
    leaves: list[str] = []
    word = ""
    for letter in [*text, ","]:
        if letter == left:
            prefixes.append(prefixes[-1] + word)
            word = ""
        elif letter in (right, ","):
            if word:
                leaves.append(prefixes[-1] + word)
            word = ""
            if letter == right and len(prefixes) > 1:
                prefixes.pop()
        elif not letter.isspace():
            word += letter
    return leaves


def _scala(text: str) -> _Taken:
    path = re.sub(r"\s*(?:=>|\bas\b)\s*\w+", "", text.removeprefix("import"))
    for leaf in _leaves(path, "{", "}"):
        module, _, name = leaf.rpartition(".")
        yield (module, ("*" if name in ("_", "*") else name,)) if module else (name, ())


def _php(text: str) -> _Taken:
    if not text.startswith("use"):
        yield from _quoted(text)
        return
    path = re.sub(r"\s+as\s+\w+", "", re.sub(r"^use\s+(?:function\s|const\s)?", "", text)).rstrip(";")
    for leaf in _leaves(path, "{", "}"):
        module, _, name = leaf.lstrip("\\").rpartition("\\")
        yield (module, (name,)) if module else (name, ())


def _bash(text: str) -> _Taken:
    words = text.split()
    if len(words) > 1:
        yield words[1].strip("'\""), ()


_READERS: dict[str, Callable[[str], _Taken]] = {
    "python": read_python, "javascript": _ecma, "typescript": _ecma, "tsx": _ecma, "go": _quoted,
    "rust": _rust, "java": _dotted, "kotlin": _dotted, "swift": _dotted, "scala": _scala, "c": _include,
    "cpp": _cpp, "c_sharp": _using, "ruby": _quoted, "php": _php, "bash": _bash,
}  # fmt: skip

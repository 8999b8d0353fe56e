"""What a task's text points at: paths, stack frames, names in code, imports, messages, and plain words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from attrs import frozen

from agent_ls.workspace.index.stopwords import KEYWORDS, STOP
from agent_ls.workspace.index.subwords import parts, stem


@frozen
class Frame:
    """A place that the text names: `path` as it is written, `line` and `function` where given."""

    path: str
    line: int | None = None
    function: str | None = None


@frozen
class Mentions:
    """What a text mentions.

    `words`: stem -> weight (how often and how prominently), `forms`: stem -> the word itself. `names`:
    identifier or dotted name as written -> weight (1 in prose, more in code spans and calls). `imported`:
    names that examples import. `own`: names that the examples define themselves. `frames`: stack frames,
    innermost last; `paths`: other places. `messages`: quoted messages of errors.
    """

    words: Mapping[str, float]
    forms: Mapping[str, str]
    names: Mapping[str, float]
    imported: frozenset[str]
    own: frozenset[str]
    frames: tuple[Frame, ...]
    paths: tuple[Frame, ...]
    messages: tuple[str, ...]


MAX_TEXT = 40_000
"""Characters of a text that are looked at: head and tail of longer ones."""

_SOURCES = "go|rs|rb|php|c|cc|cpp|h|py|js|ts|kt|swift|scala|cs"
_FRAMES = (
    re.compile(r'File "(?P<path>[^"\n]+)", line (?P<line>\d+)(?:, in (?P<function>[\w.<>]+))?'),
    re.compile(
        r"\bat (?:async |new )?(?P<function>[\w$.<>\[\] ]{1,120}?) "
        r"\((?:file://)?(?P<path>[^()\s:]+(?::\\[^()\s:]+)?):(?P<line>\d+)(?::\d+)?\)"
    ),
    re.compile(r"\bat (?P<function>[\w$.<>]+)\((?P<path>\w+\.(?:java|kt|scala)):(?P<line>\d+)\)"),
    re.compile(r"\bat (?:file://)?(?P<path>[^()\s:]+\.\w+):(?P<line>\d+)(?::\d+)?"),
    re.compile(
        rf"^[ \t]*(?P<path>[\w./\\+@-]+\.(?:{_SOURCES})):(?P<line>\d+)(?=[:\s]|$)(?::\d+)?"
        r"(?:\s*:?\s*in [`'](?P<function>[\w.?!]+)')?",
        re.MULTILINE,
    ),
)
"""Python; JavaScript with and without a function; Java; Go, Rust, Ruby, pytest and compilers."""
_FILES = (
    "pyi?|jsx?|mjs|cjs|tsx?|go|rs|java|kts?|cc?|cpp|hpp|hh?|cs|rb|php|sh|swift|scala"
    "|toml|cfg|ini|json|ya?ml|md|rst|txt"
)
_PATH = re.compile(
    rf"(?<![\w./\\:@-])(?P<path>(?:[\w.@+-]+[/\\])*[\w@+-][\w.@+-]*\.(?:{_FILES}))(?![\w/])(?::(?P<line>\d+))?"
)
_FENCE = re.compile(r"^[ \t]*(```|~~~)([^\n]*)\n(.*?)(?:^[ \t]*\1|\Z)", re.DOTALL | re.MULTILINE)
_DIRECTIVE = re.compile(
    r"^[ \t]*\.\. (?:code|code-block|sourcecode)::[^\n]*\n((?:[ \t]*\n|[ \t]+[^\n]*\n?)+)"
    r"|::\n[ \t]*\n((?:[ \t]*\n|[ \t]{2,}[^\n]*\n?)+)",
    re.MULTILINE,
)
_PROMPT = re.compile(r"^[ \t]*(?:>>>|\.\.\.|In \[\d+\]:)[ ]?([^\n]*)$", re.MULTILINE)
_INDENTED = re.compile(
    r"(?:(?<=\n\n)|\A)((?:(?: {4}|\t)[^\n]*\n?)(?:(?: {4}|\t)[^\n]*\n?|[ \t]*\n(?= {4}|\t))*)"
)
_SPAN = re.compile(r"(:\w+(?::\w+)?:)?(`{1,2})(?!`)([^`\n]+(?:\n[^`\n]+)?)\2_{0,2}")
_OTHER_ROLES = frozenset(
    {":user:", ":issue:", ":pr:", ":gh:", ":pep:", ":rfc:", ":pypi:", ":discuss:", ":pull:"}
)
_NAME = re.compile(r"(?<![\w$@])[A-Za-z_$][\w$]*(?:(?:\.|::|#|->)[A-Za-z_$][\w$]*)*(?=(\s?\()?)")
_IDENTIFIER_IN_PROSE = re.compile(
    r"(?<![\w./@-])(?:[A-Za-z_]\w*(?:(?:\.|::|#)[A-Za-z_]\w*)+|[A-Za-z]\w*_\w+|_\w{2,}"
    r"|[a-z]+\d*[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*|[A-Z]{2,}[a-z]\w+|[A-Za-z_]\w+(?=\((?!e?s\))[^()\n]{0,80}\)))"
)
"""Words that no language has but a program: dotted, with_underscore, camelCase, CamelCase, called()."""
_ERROR_LINE = re.compile(
    r"^[ \t>]*(?:E[ \t]+)?(?P<name>(?:[\w.]{1,99}\.)?"
    r"[A-Z]\w{0,99}(?:Error|Exception|Warning|Exit|Interrupt|Fault))"
    r"(?:: (?P<message>[^\n]+))?[ \t]*$",
    re.MULTILINE,
)
_QUOTED = re.compile(r"(?<!\w)(?:\"([^\"\n]{8,200})\"|'([^'\n]{12,200})'(?!\w)|“([^”\n]{8,200})”)")
_IMPORTS = (
    re.compile(r"^[ \t]*from\s+([\w.]+)\s+import\s+\(?([\w \t,*]+)", re.MULTILINE),
    re.compile(r"^[ \t]*import\s+\{([^}]*)\}\s*from\s*['\"]([^'\"]+)", re.MULTILINE),
    re.compile(r"\{([^}=]*)\}\s*=\s*(?:await\s+)?(?:require|import)\(['\"]([^'\"]+)"),
)
_OWN = re.compile(
    r"^[ \t]*(?:async\s+)?(?:def|class|function|func|fn|struct|interface)\s+(\w+)"
    r"|^[ \t]*(?:(?:const|let|var)\s+)?([A-Za-z_]\w*)\s*:?=(?!=)|\bas\s+(\w+)",
    re.MULTILINE,
)
_LIBRARIES = (
    re.compile(r"^.*/(?:site-packages|dist-packages|node_modules)/"),
    re.compile(r"^.*/lib/python\d[\d.]*/"),
)
"""What stands before an installed module's own path."""
_URL = re.compile(r"https?://\S+")
_NOT_WORDS = re.compile(r"[0-9a-f]{7,40}\b")


def mentions(text: str) -> Mentions:
    """Read a task's text (Markdown, reStructuredText or plain). Never raises."""
    if len(text) > MAX_TEXT:
        text = text[: MAX_TEXT // 2] + "\n" + text[-MAX_TEXT // 2 :]
    text = _URL.sub(" ", text.replace("\r\n", "\n"))
    frames, text = _frames(text)
    kinds = [match[2] for match in _FENCE.finditer(text)]
    blocks, prose = _split(text)
    code = "\n".join(blocks)
    names: dict[str, float] = {}
    words: dict[str, float] = {}
    forms: dict[str, str] = {}
    own = {name for match in _OWN.finditer(code) for name in match.groups() if name}
    imported = frozenset(_imported(code + "\n" + prose))
    spans = [match[3] for match in _SPAN.finditer(prose) if match[1] not in _OTHER_ROLES]
    plain = _SPAN.sub(" ", prose)
    for span in spans:
        for name, called in _names(span):
            _raise(names, name, 3.0 if called or not span.strip().count(" ") else 2.0)
    for name, called in _names(code):
        if name.split(".")[0] not in own or "." in name:
            _raise(names, name, 2.0 if called or name in imported else 1.0)
    for match in _IDENTIFIER_IN_PROSE.finditer(plain):
        _raise(names, match[0], 2.0 if plain[match.end() : match.end() + 2] == "()" else 1.5)
    title, _, body = plain.strip().partition("\n")
    for source, weight in ((title, 2.0), (body, 1.0), (code, 0.5)):
        _count(words, forms, source, weight, STOP)
    # A command or a module may be called by any word.
    _count(words, forms, " ".join(spans), 1.5, KEYWORDS)
    _count(words, forms, " ".join(kinds), 1.0, STOP)
    messages = []
    for match in _ERROR_LINE.finditer(text):
        _raise(names, match["name"].split(".")[-1], 2.0)
        if match["message"]:
            messages.append(match["message"].strip())
    messages += [
        quoted
        for match in _QUOTED.finditer(plain)
        if (quoted := next(group for group in match.groups() if group)).count(" ") >= 2
    ]
    paths = tuple(
        Frame(match["path"].replace("\\", "/"), int(match["line"]) if match["line"] else None)
        for match in _PATH.finditer(text)
    )
    return Mentions(
        words, forms, names, imported, frozenset(own - imported), tuple(frames),
        tuple(dict.fromkeys(paths)), tuple(dict.fromkeys(messages)),
    )  # fmt: skip


def _frames(text: str) -> tuple[list[Frame], str]:
    """(the stack frames of a text, innermost last; the text without them)"""
    first: list[Frame] = []
    last: list[Frame] = []

    def take(match: re.Match[str]) -> str:
        groups = match.groupdict()
        path = groups["path"].replace("\\", "/")
        for library in _LIBRARIES:
            path = library.sub("", path)
        function = (groups.get("function") or "").strip().split(".")[-1].split(" ")[-1]
        frame = Frame(path, int(groups["line"]), function if function.isidentifier() else None)
        # Python tells the innermost call last, the others first.
        (last if match.re is _FRAMES[0] else first).append(frame)
        return " "

    for pattern in _FRAMES:
        text = pattern.sub(take, text)
    return [*reversed(first), *last], text


def _split(text: str) -> tuple[list[str], str]:
    """(code blocks, the rest) of a text."""
    blocks: list[str] = []

    def take(match: re.Match[str]) -> str:
        blocks.append(next(group for group in reversed(match.groups()) if group is not None))
        return "\n\n"

    for pattern in (_FENCE, _DIRECTIVE, _PROMPT, _INDENTED):
        text = pattern.sub(take, text)
    return blocks, text


def _names(code: str) -> Iterator[tuple[str, bool]]:
    """Identifiers and dotted names in code, and whether they are called."""
    for match in _NAME.finditer(code):
        name = re.sub(r"::|#|->", ".", match[0]).strip("$.")
        if len(name) > 1 and name not in KEYWORDS:
            yield name, match[1] is not None


def _raise(names: dict[str, float], name: str, weight: float) -> None:
    name = re.sub(r"::|#|->", ".", name)
    names[name] = max(names.get(name, 0.0), weight)


def _imported(code: str) -> Iterator[str]:
    for pattern in _IMPORTS:
        for match in pattern.finditer(code):
            listed = match[2] if pattern is _IMPORTS[0] else match[1]
            for part in listed.split(","):
                word = part.strip().split(" ")[0].strip()
                if word and word != "*":
                    yield word


def _count(
    words: dict[str, float], forms: dict[str, str], text: str, weight: float, stop: frozenset[str]
) -> None:
    seen: dict[str, int] = {}
    for word in re.findall(r"[^\W\d]\w*", text):
        if _NOT_WORDS.fullmatch(word):
            continue
        for part in parts(word):
            if part not in stop and len(part) > 1:
                key = stem(part)
                forms.setdefault(key, part)
                seen[key] = seen.get(key, 0) + 1
    for key, count in seen.items():
        words[key] = words.get(key, 0.0) + weight * min(count, 3) ** 0.5

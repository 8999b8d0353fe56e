"""The languages that are parsed: their grammars and file names."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Language as Grammar


class Language(NamedTuple):
    """`grammar` is (module, function); files belong to it by `suffixes` or whole `names`, in lower case."""

    grammar: tuple[str, str]
    suffixes: tuple[str, ...]
    names: tuple[str, ...] = ()


LANGUAGES: dict[str, Language] = {
    "python": Language(("tree_sitter_python", "language"), (".py", ".pyi", ".pyw")),
    "javascript": Language(("tree_sitter_javascript", "language"), (".js", ".mjs", ".cjs", ".jsx")),
    "typescript": Language(("tree_sitter_typescript", "language_typescript"), (".ts", ".mts", ".cts")),
    "tsx": Language(("tree_sitter_typescript", "language_tsx"), (".tsx",)),
    "go": Language(("tree_sitter_go", "language"), (".go",)),
    "rust": Language(("tree_sitter_rust", "language"), (".rs",)),
    "java": Language(("tree_sitter_java", "language"), (".java",)),
    "c": Language(("tree_sitter_c", "language"), (".c", ".h")),
    "cpp": Language(
        ("tree_sitter_cpp", "language"),
        (".cc", ".cpp", ".cxx", ".c++", ".hpp", ".hh", ".hxx", ".ipp", ".cppm"),
    ),
    "c_sharp": Language(("tree_sitter_c_sharp", "language"), (".cs",)),
    "ruby": Language(
        ("tree_sitter_ruby", "language"), (".rb", ".rake", ".gemspec", ".ru"), ("rakefile", "gemfile")
    ),
    "php": Language(("tree_sitter_php", "language_php"), (".php",)),
    "bash": Language(("tree_sitter_bash", "language"), (".sh", ".bash")),
    "kotlin": Language(("tree_sitter_kotlin", "language"), (".kt", ".kts")),
    "swift": Language(("tree_sitter_swift", "language"), (".swift",)),
    "scala": Language(("tree_sitter_scala", "language"), (".scala", ".sc")),
    "json": Language(("tree_sitter_json", "language"), (".json",)),
}

_BY_SUFFIX = {suffix: name for name, language in LANGUAGES.items() for suffix in language.suffixes}
_BY_NAME = {file: name for name, language in LANGUAGES.items() for file in language.names}


def language_of(name: str) -> str | None:
    """The language that a file's name (or path) stands for, or None when we don't parse it."""
    name = name[name.rfind("/") + 1 :]
    dot = name.rfind(".")
    # As PurePath.suffix has it: ".py" is a name without a suffix.
    found = _BY_SUFFIX.get(name[dot:].casefold()) if dot > 0 else None
    return found or _BY_NAME.get(name.casefold())


_CPP = re.compile(
    rb"^[ \t]*(?:(?:class|namespace|template|using)\b(?![ \t]*[=;,)])|(?:public|private|protected)[ \t]*:)"
    rb"|^#[ \t]*include[ \t]*<(?:c?[a-z_]+)>",
    re.MULTILINE,
)
_C_GUARD = re.compile(rb"^#[ \t]*ifdef[ \t]+__cplusplus", re.MULTILINE)


def refined(language: str | None, source: bytes) -> str | None:
    """The language by a file's content, where the name (`language_of`) leaves it open: a header that has
    classes, namespaces or templates is C++."""
    if language == "c" and _CPP.search(source) and not _C_GUARD.search(source):
        return "cpp"
    return language


@cache
def grammar(language: str) -> Grammar:
    """The compiled grammar of one of LANGUAGES, loaded when first asked for. Raises KeyError for others."""
    from importlib import import_module

    from tree_sitter import Language as Compiled

    module, function = LANGUAGES[language].grammar
    return Compiled(getattr(import_module(module), function)())

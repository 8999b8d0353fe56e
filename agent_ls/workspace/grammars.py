"""The languages that are parsed: their grammars, file names, and which nodes define something."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from attrs import field, frozen

if TYPE_CHECKING:
    from tree_sitter import Language as Grammar


@frozen
class Language:
    """`grammar` is (module, function); `definitions` maps node types to kinds of symbols."""

    grammar: tuple[str, str]
    suffixes: tuple[str, ...]
    definitions: Mapping[str, str] = field(factory=dict)
    names: tuple[str, ...] = ()


_JAVASCRIPT = {
    "function_declaration": "function",
    "generator_function_declaration": "function",
    "class_declaration": "class",
    "class": "class",
    "method_definition": "method",
    "variable_declarator": "variable",
    "assignment_expression": "assignment",
    "pair": "pair",
}
_TYPESCRIPT = {
    **_JAVASCRIPT,
    "function_signature": "function",
    "abstract_class_declaration": "class",
    "interface_declaration": "interface",
    "type_alias_declaration": "type",
    "enum_declaration": "enum",
    "internal_module": "namespace",
    "module": "namespace",
    "method_signature": "method",
    "abstract_method_signature": "method",
    "public_field_definition": "field",
}
_C = {
    "function_definition": "function",
    "struct_specifier": "struct",
    "union_specifier": "union",
    "enum_specifier": "enum",
    "type_definition": "type",
    "preproc_def": "macro",
    "preproc_function_def": "macro",
}

LANGUAGES: dict[str, Language] = {
    "python": Language(
        ("tree_sitter_python", "language"),
        (".py", ".pyi", ".pyw"),
        {
            "function_definition": "function",
            "class_definition": "class",
            "assignment": "variable",
            "type_alias_statement": "type",
        },
    ),
    "javascript": Language(
        ("tree_sitter_javascript", "language"),
        (".js", ".mjs", ".cjs", ".jsx"),
        {**_JAVASCRIPT, "field_definition": "field"},
    ),
    "typescript": Language(
        ("tree_sitter_typescript", "language_typescript"), (".ts", ".mts", ".cts"), _TYPESCRIPT
    ),
    "tsx": Language(("tree_sitter_typescript", "language_tsx"), (".tsx",), _TYPESCRIPT),
    "go": Language(
        ("tree_sitter_go", "language"),
        (".go",),
        {
            "function_declaration": "function",
            "method_declaration": "method",
            "type_spec": "type",
            "type_alias": "type",
            "const_spec": "constant",
            "var_spec": "variable",
            "method_elem": "method",
        },
    ),
    "rust": Language(
        ("tree_sitter_rust", "language"),
        (".rs",),
        {
            "function_item": "function",
            "function_signature_item": "function",
            "struct_item": "struct",
            "union_item": "union",
            "enum_item": "enum",
            "trait_item": "trait",
            "impl_item": "impl",
            "mod_item": "module",
            "const_item": "constant",
            "static_item": "variable",
            "type_item": "type",
            "macro_definition": "macro",
        },
    ),
    "java": Language(
        ("tree_sitter_java", "language"),
        (".java",),
        {
            "class_declaration": "class",
            "interface_declaration": "interface",
            "enum_declaration": "enum",
            "record_declaration": "class",
            "annotation_type_declaration": "interface",
            "method_declaration": "method",
            "constructor_declaration": "constructor",
            "compact_constructor_declaration": "constructor",
            "field_declaration": "field",
        },
    ),
    "c": Language(("tree_sitter_c", "language"), (".c", ".h"), _C),
    "cpp": Language(
        ("tree_sitter_cpp", "language"),
        (".cc", ".cpp", ".cxx", ".c++", ".hpp", ".hh", ".hxx", ".ipp", ".cppm"),
        {
            **_C,
            "class_specifier": "class",
            "namespace_definition": "namespace",
            "alias_declaration": "type",
            "concept_definition": "concept",
        },
    ),
    "c_sharp": Language(
        ("tree_sitter_c_sharp", "language"),
        (".cs",),
        {
            "class_declaration": "class",
            "interface_declaration": "interface",
            "struct_declaration": "struct",
            "enum_declaration": "enum",
            "record_declaration": "class",
            "delegate_declaration": "type",
            "namespace_declaration": "namespace",
            "method_declaration": "method",
            "constructor_declaration": "constructor",
            "property_declaration": "property",
            "local_function_statement": "function",
        },
    ),
    "ruby": Language(
        ("tree_sitter_ruby", "language"),
        (".rb", ".rake", ".gemspec"),
        {"class": "class", "module": "module", "method": "method", "singleton_method": "method"},
        ("rakefile", "gemfile"),
    ),
    "php": Language(
        ("tree_sitter_php", "language_php"),
        (".php",),
        {
            "function_definition": "function",
            "class_declaration": "class",
            "interface_declaration": "interface",
            "trait_declaration": "trait",
            "enum_declaration": "enum",
            "method_declaration": "method",
        },
    ),
    "bash": Language(("tree_sitter_bash", "language"), (".sh", ".bash"), {"function_definition": "function"}),
    "kotlin": Language(("tree_sitter_kotlin", "language"), (".kt", ".kts")),
    "swift": Language(("tree_sitter_swift", "language"), (".swift",)),
    "scala": Language(("tree_sitter_scala", "language"), (".scala", ".sc")),
    "json": Language(("tree_sitter_json", "language"), (".json",)),
}

_BY_SUFFIX = {suffix: name for name, language in LANGUAGES.items() for suffix in language.suffixes}
_BY_NAME = {file: name for name, language in LANGUAGES.items() for file in language.names}


def language_of(name: str) -> str | None:
    """The language that a file's name (or path) stands for, or None when we don't parse it."""
    path = PurePosixPath(name)
    return _BY_SUFFIX.get(path.suffix.casefold()) or _BY_NAME.get(path.name.casefold())


@cache
def grammar(language: str) -> Grammar:
    """The compiled grammar of one of LANGUAGES, loaded when first asked for. Raises KeyError for others."""
    from tree_sitter import Language as Compiled

    module, function = LANGUAGES[language].grammar
    return Compiled(getattr(import_module(module), function)())

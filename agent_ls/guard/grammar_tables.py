"""What the node types of each tree-sitter grammar are, in the words of the small syntax tree.

`stmts`: node type -> a maker of statements in `read_sitter`; `exprs`: node type -> (maker, its fields).
A type that is missing is an expression of no special kind, and its parts are read as expressions.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen


@frozen
class Table:
    stmts: Mapping[str, str]
    exprs: Mapping[str, tuple[str, ...]]


_JS_STMTS = {
    "program": "block", "statement_block": "block", "expression_statement": "unwrap", "else_clause": "unwrap",
    "if_statement": "if", "for_in_statement": "loop", "for_statement": "loop", "while_statement": "loop",
    "do_statement": "loop", "try_statement": "try", "return_statement": "return", "throw_statement": "throw",
    "lexical_declaration": "declare", "variable_declaration": "declare", "assignment_expression": "let",
    "augmented_assignment_expression": "let", "function_declaration": "func", "method_definition": "func",
    "generator_function_declaration": "func", "class_declaration": "class", "export_statement": "unwrap",
    "import_statement": "import", "empty_statement": "skip", "break_statement": "stop",
    "continue_statement": "stop", "switch_statement": "arms", "labeled_statement": "unwrap",
    "class_body": "block",
    "interface_declaration": "skip", "type_alias_declaration": "skip", "hash_bang_line": "skip",
    "finally_clause": "inside",
}  # fmt: skip
_JS_EXPRS: dict[str, tuple[str, ...]] = {
    "call_expression": ("call", "function", "arguments"), "new_expression": ("new",),
    "member_expression": ("attr", "object", "property"), "subscript_expression": ("index",),
    "binary_expression": ("binary",), "unary_expression": ("unary",), "await_expression": ("await",),
    "arrow_function": ("func",), "function_expression": ("func",), "function": ("func",),
    "array": ("seq", "list"), "object": ("seq", "dict"), "pair": ("pair",),
    "shorthand_property_identifier": ("short",), "method_definition": ("other",), "string": ("str",),
    "template_string": ("str",), "template_substitution": ("pass",), "number": ("num",), "true": ("const",),
    "false": ("const",), "null": ("const",), "undefined": ("const",), "regex": ("regex",),
    "parenthesized_expression": ("pass",), "ternary_expression": ("cond",), "as_expression": ("pass",),
    "satisfies_expression": ("pass",), "non_null_expression": ("pass",), "type_assertion": ("last",),
    "spread_element": ("seq", "spread"), "sequence_expression": ("last",), "property_identifier": ("name",),
    "array_pattern": ("seq", "tuple"), "optional_chain": ("name",), "this": ("name",),
    "identifier": ("name",),
    "computed_property_name": ("pass",), "expression_statement": ("pass",), "type_annotation": ("other",),
    "object_pattern": ("other",), "type_arguments": ("other",), "variable_declarator": ("pass",),
}  # fmt: skip

_JAVA = Table(
    {
        "program": "block", "block": "block", "expression_statement": "unwrap", "if_statement": "if",
        "enhanced_for_statement": "loop", "for_statement": "loop", "while_statement": "loop",
        "do_statement": "loop", "try_statement": "try", "try_with_resources_statement": "try",
        "return_statement": "return", "throw_statement": "throw", "local_variable_declaration": "declare",
        "field_declaration": "declare", "assignment_expression": "let", "method_declaration": "func",
        "constructor_declaration": "func", "constructor_body": "block", "class_declaration": "class",
        "record_declaration": "class", "interface_declaration": "class", "enum_declaration": "class",
        "class_body": "block", "interface_body": "block", "import_declaration": "import",
        "package_declaration": "skip", "finally_clause": "inside", "switch_expression": "arms",
        "break_statement": "stop", "continue_statement": "stop", "assert_statement": "throw",
    },
    {
        "method_invocation": ("method", "object", "name", "arguments", "no_block"),
        "object_creation_expression": ("new",), "field_access": ("attr", "object", "field"),
        "array_access": ("index",), "binary_expression": ("binary",), "unary_expression": ("unary",),
        "lambda_expression": ("func",), "method_reference": ("path",), "cast_expression": ("cast",),
        "parenthesized_expression": ("pass",), "ternary_expression": ("cond",), "string_literal": ("str",),
        "character_literal": ("str",), "decimal_integer_literal": ("num",), "hex_integer_literal": ("num",),
        "decimal_floating_point_literal": ("num",), "true": ("const",), "false": ("const",),
        "null_literal": ("const",), "array_initializer": ("seq", "list"), "identifier": ("name",),
        "element_value_array_initializer": ("seq", "list"), "element_value_pair": ("kw",), "this": ("name",),
        "array_creation_expression": ("last",), "instanceof_expression": ("binary",),
        "class_literal": ("other",),
        "type_identifier": ("name",), "scoped_identifier": ("path",), "generic_type": ("other",),
    },
)  # fmt: skip

_GO = Table(
    {
        "source_file": "block", "block": "block", "expression_statement": "unwrap", "if_statement": "if",
        "for_statement": "loop", "return_statement": "return", "short_var_declaration": "let",
        "assignment_statement": "let", "var_declaration": "declare", "const_declaration": "declare",
        "function_declaration": "func", "method_declaration": "func", "import_declaration": "import",
        "package_clause": "skip", "type_declaration": "skip", "break_statement": "stop",
        "continue_statement": "stop", "expression_switch_statement": "arms", "type_switch_statement": "arms",
        "select_statement": "arms", "statement_list": "inside",
    },
    {
        "call_expression": ("call", "function", "arguments"), "selector_expression": ("attr", "operand",
        "field"),
        "index_expression": ("index",), "slice_expression": ("index",), "binary_expression": ("binary",),
        "unary_expression": ("unary",), "composite_literal": ("struct",), "func_literal": ("func",),
        "interpreted_string_literal": ("str",), "raw_string_literal": ("str",), "int_literal": ("num",),
        "float_literal": ("num",), "rune_literal": ("str",), "true": ("bool",), "false": ("bool",),
        "nil": ("const",), "literal_value": ("seq", "tuple"), "literal_element": ("pass",),
        "keyed_element": ("pair",), "parenthesized_expression": ("pass",), "expression_list": ("seq",
        "tuple"),
        "identifier": ("name",), "field_identifier": ("name",), "type_conversion_expression": ("pass",
        "operand"),
        "go_statement": ("seq", "go"), "defer_statement": ("seq", "defer"),
        "type_assertion_expression": ("pass",),
    },
)  # fmt: skip

_RUST = Table(
    {
        "source_file": "block", "block": "block", "expression_statement": "unwrap", "if_expression": "if",
        "for_expression": "loop", "while_expression": "loop", "loop_expression": "loop",
        "return_expression": "return", "let_declaration": "let", "const_item": "let", "static_item": "let",
        "assignment_expression": "let", "compound_assignment_expr": "let", "function_item": "func",
        "mod_item": "class", "impl_item": "class", "trait_item": "class", "struct_item": "skip",
        "enum_item": "skip", "use_declaration": "import", "else_clause": "unwrap",
        "declaration_list": "block",
        "match_expression": "arms", "break_expression": "stop", "continue_expression": "stop",
        "unsafe_block": "unwrap", "empty_statement": "skip",
    },
    {
        "call_expression": ("call", "function", "arguments"), "field_expression": ("attr", "value", "field"),
        "index_expression": ("index",), "binary_expression": ("binary",), "unary_expression": ("unary",),
        "macro_invocation": ("macro",), "reference_expression": ("pass", "value"),
        "try_expression": ("pass",),
        "await_expression": ("await",), "closure_expression": ("func",), "array_expression": ("seq", "list"),
        "tuple_expression": ("seq", "tuple"), "struct_expression": ("struct",), "string_literal": ("str",),
        "raw_string_literal": ("str",), "char_literal": ("str",), "integer_literal": ("num",),
        "float_literal": ("num",), "boolean_literal": ("bool",), "parenthesized_expression": ("pass",),
        "identifier": ("name",), "scoped_identifier": ("path",), "field_identifier": ("name",),
        "type_cast_expression": ("pass", "value"), "field_initializer": ("pair",),
        "tuple_pattern": ("seq", "tuple"),
        "generic_function": ("pass", "function"), "let_condition": ("other",), "self": ("name",),
        "shorthand_field_initializer": ("pair",),
    },
)  # fmt: skip

_RUBY = Table(
    {
        "program": "block", "body_statement": "try", "block_body": "try", "then": "block", "do": "block",
        "if": "if", "unless": "if", "elsif": "if", "else": "block", "if_modifier": "modified",
        "unless_modifier": "modified", "while": "loop", "until": "loop", "for": "loop", "begin": "try",
        "return": "return", "assignment": "let", "operator_assignment": "let", "method": "func",
        "singleton_method": "func", "class": "class", "module": "class", "case": "arms",
        "ensure": "block", "break": "stop", "next": "stop",
    },
    {
        "call": ("method", "receiver", "method", "arguments", "block"), "element_reference": ("index",),
        "binary": ("binary",), "unary": ("unary",), "block": ("func",), "do_block": ("func",),
        "lambda": ("func",), "array": ("seq", "list"), "hash": ("seq", "dict"), "pair": ("pair",),
        "string": ("str",), "interpolation": ("pass",), "simple_symbol": ("symbol",),
        "hash_key_symbol": ("symbol",),
        "delimited_symbol": ("symbol",), "integer": ("num",), "float": ("num",), "true": ("const",),
        "false": ("const",), "nil": ("const",), "regex": ("regex",), "parenthesized_statements": ("pass",),
        "conditional": ("cond",), "identifier": ("name",), "constant": ("name",),
        "scope_resolution": ("path",),
        "string_array": ("words",), "symbol_array": ("words",), "instance_variable": ("name",),
        "self": ("name",),
        "left_assignment_list": ("seq", "tuple"), "splat_argument": ("seq", "spread"), "range": ("seq",
        "range"),
        "argument_list": ("pass",),
    },
)  # fmt: skip

_CSHARP = Table(
    {
        "compilation_unit": "block", "block": "block", "expression_statement": "unwrap", "if_statement": "if",
        "foreach_statement": "loop", "for_statement": "loop", "while_statement": "loop",
        "do_statement": "loop",
        "try_statement": "try", "return_statement": "return", "throw_statement": "throw",
        "local_declaration_statement": "declare", "field_declaration": "declare",
        "assignment_expression": "let", "method_declaration": "func", "constructor_declaration": "func",
        "local_function_statement": "func", "class_declaration": "class", "record_declaration": "class",
        "struct_declaration": "class", "interface_declaration": "class", "namespace_declaration": "class",
        "file_scoped_namespace_declaration": "skip", "declaration_list": "block", "using_directive": "import",
        "using_statement": "with", "switch_statement": "arms", "break_statement": "stop",
        "continue_statement": "stop", "finally_clause": "inside", "global_statement": "unwrap",
        "arrow_expression_clause": "unwrap",
    },
    {
        "invocation_expression": ("call", "function", "arguments"), "object_creation_expression": ("new",),
        "implicit_object_creation_expression": ("new",), "member_access_expression": ("attr",
        "expression", "name"),
        "element_access_expression": ("index",), "argument": ("last",), "bracketed_argument_list": ("pass",),
        "binary_expression": ("binary",), "prefix_unary_expression": ("unary",),
        "lambda_expression": ("func",),
        "anonymous_method_expression": ("func",), "await_expression": ("await",),
        "cast_expression": ("cast",),
        "parenthesized_expression": ("pass",), "conditional_expression": ("cond",),
        "string_literal": ("str",),
        "verbatim_string_literal": ("str",), "raw_string_literal": ("str",), "character_literal": ("str",),
        "integer_literal": ("num",), "real_literal": ("num",), "boolean_literal": ("bool",),
        "null_literal": ("const",), "initializer_expression": ("seq", "list"), "identifier": ("name",),
        "implicit_array_creation_expression": ("last",), "array_creation_expression": ("last",),
        "collection_expression": ("seq", "list"), "collection_element": ("pass",), "this": ("name",),
        "interpolated_string_expression": ("str",), "interpolation": ("pass",), "attribute_argument": ("kw",),
        "is_expression": ("binary",), "is_pattern_expression": ("other",), "typeof_expression": ("other",),
        "generic_name": ("other",), "tuple_expression": ("seq", "tuple"),
        "postfix_unary_expression": ("pass",),
    },
)  # fmt: skip

_TYPESCRIPT = Table(
    {**_JS_STMTS, "public_field_definition": "skip", "abstract_class_declaration": "class"}, _JS_EXPRS
)

TABLES: dict[str, Table] = {
    "javascript": Table(_JS_STMTS, _JS_EXPRS),
    "typescript": _TYPESCRIPT,
    "tsx": _TYPESCRIPT,
    "java": _JAVA,
    "go": _GO,
    "rust": _RUST,
    "ruby": _RUBY,
    "c_sharp": _CSHARP,
}

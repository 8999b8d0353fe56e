; Rust.

(function_item name: (identifier) @name body: (_) @body) @definition.function
(function_signature_item name: (identifier) @name) @definition.function
(struct_item name: (type_identifier) @name body: (_) @body) @definition.struct
(struct_item name: (type_identifier) @name) @definition.struct
(union_item name: (type_identifier) @name body: (_) @body) @definition.union
(enum_item name: (type_identifier) @name body: (_) @body) @definition.enum
(enum_variant name: (identifier) @name) @definition.member
(field_declaration name: (field_identifier) @name) @definition.field
(trait_item name: (type_identifier) @name body: (_) @body) @definition.trait
(associated_type name: (type_identifier) @name) @definition.type
(mod_item name: (identifier) @name body: (_) @body) @definition.module
(const_item name: (identifier) @name) @definition.constant
(static_item name: (identifier) @name) @definition.variable
(type_item name: (type_identifier) @name) @definition.type
(macro_definition name: (identifier) @name) @definition.macro

(impl_item type: [
  (type_identifier) @name
  (primitive_type) @name
  (generic_type type: (type_identifier) @name)
  (generic_type type: (scoped_type_identifier name: (type_identifier) @name))
  (scoped_type_identifier name: (type_identifier) @name)
  (reference_type type: (type_identifier) @name)
  (reference_type type: (primitive_type) @name)
  (reference_type type: (generic_type type: (type_identifier) @name))]) @container

(use_declaration) @import
(extern_crate_declaration) @import
(mod_item name: (identifier) !body) @import

; Heads that the parser could not place.
(ERROR "fn" . (identifier) @name @definition.function)
(ERROR "struct" . (type_identifier) @name @definition.struct)
(ERROR "enum" . (type_identifier) @name @definition.enum)
(ERROR "trait" . (type_identifier) @name @definition.trait)

; References.

(impl_item type: (type_identifier) @reference.type)
(impl_item type: (generic_type type: (type_identifier) @reference.type))
(call_expression function: (identifier) @reference.call)
(call_expression function: (scoped_identifier name: (identifier) @reference.call))
(call_expression function: (field_expression field: (field_identifier) @reference.call))
(call_expression function: (generic_function function: (identifier) @reference.call))
(call_expression function: (generic_function
  function: (scoped_identifier name: (identifier) @reference.call)))
(call_expression function: (generic_function
  function: (field_expression field: (field_identifier) @reference.call)))
(macro_invocation macro: (identifier) @reference.call)
(macro_invocation macro: (scoped_identifier name: (identifier) @reference.call))
(use_as_clause alias: (identifier) @local)
(use_declaration argument: (identifier) @reference.import)
(use_declaration argument: (scoped_identifier name: (identifier) @reference.import))
(use_list (identifier) @reference.import)
(use_list (scoped_identifier name: (identifier) @reference.import))
(use_as_clause path: (identifier) @reference.import)
(use_as_clause path: (scoped_identifier name: (identifier) @reference.import))
(parameter pattern: (identifier) @local)
(closure_parameters (identifier) @local)
(let_declaration pattern: (identifier) @local)
(let_declaration pattern: (tuple_pattern (identifier) @local))
(for_expression pattern: (identifier) @local)
(for_expression pattern: (tuple_pattern (identifier) @local))
(type_parameter name: (type_identifier) @local)
(label (identifier) @local)
(lifetime (identifier) @local)
[(type_identifier)] @reference.type
[(identifier) (field_identifier) (shorthand_field_identifier)] @reference.read

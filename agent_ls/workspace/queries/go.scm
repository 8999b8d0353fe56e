; Go.

(function_declaration name: (identifier) @name body: (_) @body) @definition.function
(function_declaration name: (identifier) @name) @definition.function
(method_declaration
  receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @owner
    (generic_type type: (type_identifier) @owner)
    (pointer_type (type_identifier) @owner)
    (pointer_type (generic_type type: (type_identifier) @owner))
    (parenthesized_type (pointer_type (type_identifier) @owner))]))
  name: (field_identifier) @name
  body: (_) @body) @definition.method
(method_declaration name: (field_identifier) @name body: (_) @body) @definition.method
(method_declaration name: (field_identifier) @name) @definition.method
(type_spec name: (type_identifier) @name
  type: (struct_type (field_declaration_list) @body)) @definition.struct
(type_spec name: (type_identifier) @name type: (interface_type)) @definition.interface
(type_spec name: (type_identifier) @name) @definition.type
(type_alias name: (type_identifier) @name) @definition.type
(method_elem name: (field_identifier) @name) @definition.method
(field_declaration name: (field_identifier) @name) @definition.field
(const_spec name: (identifier) @name) @definition.constant
(var_spec name: (identifier) @name) @definition.variable

(func_literal) @closure

((type_declaration . (type_spec) .) @outer)
((type_declaration . (type_alias) .) @outer)
((const_declaration . (const_spec) .) @outer)
((var_declaration . (var_spec) .) @outer)

(import_spec) @import

; Heads that the parser could not place.
(ERROR "func" . (identifier) @name @definition.function)

; References.

(call_expression function: (identifier) @reference.call)
(call_expression function: (selector_expression field: (field_identifier) @reference.call))
(call_expression function: (parenthesized_expression (identifier) @reference.call))
(type_instantiation_expression type: (type_identifier) @reference.call)
(import_spec name: (package_identifier) @local)
(type_parameter_declaration name: (identifier) @local)
(parameter_declaration name: (identifier) @local)
(variadic_parameter_declaration name: (identifier) @local)
(short_var_declaration left: (expression_list (identifier) @local))
(range_clause left: (expression_list (identifier) @local))
(receive_statement left: (expression_list (identifier) @local))
(type_switch_statement alias: (expression_list (identifier) @local))
(label_name) @local
[(type_identifier)] @reference.type
[(identifier) (field_identifier) (package_identifier)] @reference.read

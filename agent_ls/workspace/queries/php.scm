; PHP.

(namespace_definition name: (_) @name body: (_) @body) @definition.namespace
(function_definition name: (name) @name body: (_) @body) @definition.function
(class_declaration name: (name) @name body: (_) @body) @definition.class
(interface_declaration name: (name) @name body: (_) @body) @definition.interface
(trait_declaration name: (name) @name body: (_) @body) @definition.trait
(enum_declaration name: (name) @name body: (_) @body) @definition.enum
(enum_case name: (name) @name) @definition.member
(method_declaration name: (name) @name body: (_) @body
  (#match? @name "^__construct$")) @definition.constructor
(method_declaration name: (name) @name body: (_) @body) @definition.method
(method_declaration name: (name) @name) @definition.method
(property_declaration (property_element name: (variable_name (name) @name))) @definition.field
(property_promotion_parameter name: (variable_name (name) @name)) @definition.property
(const_declaration (const_element . (name) @name)) @definition.constant
(function_call_expression function: (name) @_define arguments: (arguments . (argument (string) @name))
  (#eq? @_define "define")) @definition.constant

(namespace_use_declaration) @import
(require_expression (string)) @import
(require_once_expression (string)) @import
(include_expression (string)) @import
(include_once_expression (string)) @import

; Heads that the parser could not place.
(ERROR "function" . (name) @name @definition.function)
(ERROR "class" . (name) @name @definition.class)
(ERROR "interface" . (name) @name @definition.interface)

; References.

(function_call_expression function: (name) @reference.call)
(function_call_expression function: (qualified_name (name) @reference.call))
(member_call_expression name: (name) @reference.call)
(nullsafe_member_call_expression name: (name) @reference.call)
(scoped_call_expression name: (name) @reference.call)
(object_creation_expression (name) @reference.call)
(object_creation_expression (qualified_name (name) @reference.call))
(named_type (name) @reference.type)
(named_type (qualified_name (name) @reference.type))
(base_clause (name) @reference.type)
(base_clause (qualified_name (name) @reference.type))
(class_interface_clause (name) @reference.type)
(class_interface_clause (qualified_name (name) @reference.type))
(attribute (name) @reference.type)
(scoped_call_expression scope: (name) @reference.type)
(class_constant_access_expression . (name) @reference.type)
(namespace_use_clause (name) @reference.import)
(namespace_use_clause (qualified_name (name) @reference.import))
(namespace_use_clause alias: (name) @local)
(namespace_definition name: (namespace_name (name) @local))
(simple_parameter name: (variable_name (name) @local))
(variadic_parameter name: (variable_name (name) @local))
(assignment_expression left: (variable_name (name) @local))
(foreach_statement (pair (variable_name (name) @local)))
(catch_clause name: (variable_name (name) @local))
[(name)] @reference.read

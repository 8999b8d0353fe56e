; inherits: ecma

(function_signature name: (identifier) @name) @definition.function
(class_declaration name: (type_identifier) @name body: (_) @body) @definition.class
(abstract_class_declaration name: (type_identifier) @name body: (_) @body) @definition.class
(export_statement value: (class name: (type_identifier) @name body: (_) @body) @definition.class)
(interface_declaration name: (type_identifier) @name body: (_) @body) @definition.interface
(type_alias_declaration name: (type_identifier) @name value: (object_type) @body) @definition.type
(type_alias_declaration name: (type_identifier) @name) @definition.type
(enum_declaration name: (identifier) @name body: (_) @body) @definition.enum
(enum_body name: [(property_identifier) (string)] @name @definition.member)
(enum_body (enum_assignment name: [(property_identifier) (string)] @name) @definition.member)
(internal_module name: (_) @name body: (_) @body) @definition.namespace
(module name: (_) @name body: (_) @body) @definition.namespace
(method_signature name: [(property_identifier) (private_property_identifier) (string)] @name
  ) @definition.method
(abstract_method_signature name: [(property_identifier) (string)] @name) @definition.method
(property_signature name: [(property_identifier) (string)] @name) @definition.field
(public_field_definition name: [(property_identifier) (private_property_identifier) (string)] @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @definition.function
(public_field_definition name: [(property_identifier) (private_property_identifier) (string)] @name
  ) @definition.field
; A constructor's parameter with an access modifier is a field.
(method_definition name: (property_identifier) @_method
  parameters: (formal_parameters (required_parameter (accessibility_modifier)
    pattern: (identifier) @name) @definition.property) (#eq? @_method "constructor"))

(ambient_declaration) @outer
(import_alias) @import

; Heads that the parser could not place.
(ERROR "class" . (type_identifier) @name @definition.class)
(ERROR "interface" . (type_identifier) @name @definition.interface)
(ERROR "class" . (identifier) @name @definition.class)
(ERROR "interface" . (identifier) @name @definition.interface)

; References.

[(type_identifier)] @reference.type
(extends_clause value: (identifier) @reference.type)
(extends_clause value: (member_expression property: (property_identifier) @reference.type))
(required_parameter pattern: (identifier) @local)
(optional_parameter pattern: (identifier) @local)
(required_parameter pattern: (rest_pattern (identifier) @local))
(type_parameter name: (type_identifier) @local)
(class_declaration name: (type_identifier) @local)
(abstract_class_declaration name: (type_identifier) @local)
(interface_declaration name: (type_identifier) @local)
(type_alias_declaration name: (type_identifier) @local)
(enum_declaration name: (identifier) @local)
(function_signature name: (identifier) @local)
(method_signature name: (_) @local)
(abstract_method_signature name: (_) @local)
(property_signature name: (_) @local)
(public_field_definition name: (_) @local)

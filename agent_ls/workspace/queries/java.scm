; Java.

(class_declaration name: (identifier) @name body: (_) @body) @definition.class
(interface_declaration name: (identifier) @name body: (_) @body) @definition.interface
(enum_declaration name: (identifier) @name body: (_) @body) @definition.enum
(record_declaration name: (identifier) @name body: (_) @body) @definition.class
(annotation_type_declaration name: (identifier) @name body: (_) @body) @definition.interface
(method_declaration name: (identifier) @name body: (_) @body) @definition.method
(method_declaration name: (identifier) @name) @definition.method
(annotation_type_element_declaration name: (identifier) @name) @definition.method
(constructor_declaration name: (identifier) @name body: (_) @body) @definition.constructor
(compact_constructor_declaration name: (identifier) @name body: (_) @body) @definition.constructor
(field_declaration declarator: (variable_declarator name: (identifier) @name)) @definition.field
(constant_declaration declarator: (variable_declarator name: (identifier) @name)) @definition.constant
(enum_constant name: (identifier) @name body: (_) @body) @definition.member
(enum_constant name: (identifier) @name) @definition.member
; The components of a record.
(record_declaration parameters: (formal_parameters (formal_parameter name: (identifier) @name)
  @definition.field))

(import_declaration) @import

; Heads that the parser could not place.
(ERROR "class" . (identifier) @name @definition.class)
(ERROR "interface" . (identifier) @name @definition.interface)
(ERROR "enum" . (identifier) @name @definition.enum)

; References.

(method_invocation name: (identifier) @reference.call)
(object_creation_expression type: (type_identifier) @reference.call)
(object_creation_expression type: (scoped_type_identifier (type_identifier) @reference.call .))
(object_creation_expression type: (generic_type . (type_identifier) @reference.call))
(method_reference "::" (identifier) @reference.call)
(marker_annotation name: (identifier) @reference.type)
(annotation name: (identifier) @reference.type)
(annotation name: (scoped_identifier name: (identifier) @reference.type))
(import_declaration (scoped_identifier name: (identifier) @reference.import))
(import_declaration (scoped_identifier scope: (scoped_identifier name: (identifier) @reference.import)))
(package_declaration (scoped_identifier name: (identifier) @local))
(package_declaration (identifier) @local)
(formal_parameter name: (identifier) @local)
(spread_parameter (variable_declarator name: (identifier) @local))
(catch_formal_parameter name: (identifier) @local)
(lambda_expression parameters: (identifier) @local)
(inferred_parameters (identifier) @local)
(local_variable_declaration declarator: (variable_declarator name: (identifier) @local))
(enhanced_for_statement name: (identifier) @local)
(resource name: (identifier) @local)
(instanceof_expression name: (identifier) @local)
(type_parameter . (type_identifier) @local)
(labeled_statement . (identifier) @local)
[(type_identifier)] @reference.type
[(identifier)] @reference.read

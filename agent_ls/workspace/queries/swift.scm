; Swift.

(class_declaration "class" name: (type_identifier) @name body: (_) @body) @definition.class
(class_declaration "actor" name: (type_identifier) @name body: (_) @body) @definition.class
(class_declaration "struct" name: (type_identifier) @name body: (_) @body) @definition.struct
(class_declaration "enum" name: (type_identifier) @name body: (_) @body) @definition.enum
(class_declaration "extension" name: (user_type (type_identifier) @name .)) @container
(protocol_declaration name: (type_identifier) @name body: (_) @body) @definition.protocol
(protocol_function_declaration name: (simple_identifier) @name) @definition.method
(protocol_property_declaration name: (pattern bound_identifier: (simple_identifier) @name)
  ) @definition.property
(associatedtype_declaration name: (type_identifier) @name) @definition.type
(init_declaration name: "init" @name body: (_) @body) @definition.constructor
(init_declaration "init" @name) @definition.constructor
(function_declaration "func" . name: _ @name body: (_) @body) @definition.function
(subscript_declaration "subscript" @name) @definition.method
(property_declaration name: (pattern bound_identifier: (simple_identifier) @name)
  computed_value: (_) @body) @definition.property
(property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @definition.variable
(property_declaration name: (pattern (pattern (simple_identifier) @name))) @definition.variable
(enum_entry name: (simple_identifier) @name) @definition.member
(typealias_declaration name: (type_identifier) @name) @definition.type
(lambda_literal) @closure

(import_declaration) @import

; Heads that the parser could not place.
(ERROR "func" . (simple_identifier) @name @definition.function)
(ERROR "class" . (type_identifier) @name @definition.class)
(ERROR "struct" . (type_identifier) @name @definition.struct)

; References.

(class_declaration "extension" name: (user_type (type_identifier) @reference.type))
(call_expression . (simple_identifier) @reference.call)
(call_expression . (navigation_expression suffix: (navigation_suffix
  suffix: (simple_identifier) @reference.call)))
(constructor_expression constructed_type: (user_type (type_identifier) @reference.call))
(import_declaration (identifier (simple_identifier) @reference.import))
(parameter name: (simple_identifier) @local)
(parameter external_name: (simple_identifier) @local)
(lambda_parameter name: (simple_identifier) @local)
(pattern bound_identifier: (simple_identifier) @local)
(type_parameter . (type_identifier) @local)
[(type_identifier)] @reference.type
[(simple_identifier)] @reference.read

; inherits: ecma

(class_declaration name: (identifier) @name body: (_) @body) @definition.class
(export_statement value: (class name: (identifier) @name body: (_) @body) @definition.class)
(field_definition property: [(property_identifier) (private_property_identifier)] @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @definition.function
(field_definition property: [(property_identifier) (private_property_identifier)] @name) @definition.field

; Heads that the parser could not place.
(ERROR "class" . (identifier) @name @definition.class)

; References.

(class_heritage (identifier) @reference.type)
(class_heritage (member_expression property: (property_identifier) @reference.type))
(class_declaration name: (identifier) @local)
(class name: (identifier) @local)
(formal_parameters (identifier) @local)
(formal_parameters (assignment_pattern left: (identifier) @local))
(formal_parameters (rest_pattern (identifier) @local))
(jsx_opening_element name: (identifier) @reference.call)
(jsx_self_closing_element name: (identifier) @reference.call)
(field_definition property: (_) @local)

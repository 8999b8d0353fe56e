; Scala.

(class_definition name: (identifier) @name body: (_) @body) @definition.class
(class_definition name: (identifier) @name) @definition.class
(object_definition name: (identifier) @name body: (_) @body) @definition.object
(object_definition name: (identifier) @name) @definition.object
(package_object name: (identifier) @name body: (_) @body) @definition.object
(trait_definition name: (identifier) @name body: (_) @body) @definition.trait
(trait_definition name: (identifier) @name) @definition.trait
(enum_definition name: (identifier) @name body: (_) @body) @definition.enum
(simple_enum_case name: (identifier) @name) @definition.member
(full_enum_case name: (identifier) @name) @definition.member
(function_definition name: (_) @name body: (_) @body (#eq? @name "this")) @definition.constructor
(function_definition name: (_) @name body: (_) @body) @definition.function
(function_definition name: (_) @name) @definition.function
(function_declaration name: (_) @name) @definition.function
(class_definition class_parameters: (class_parameters (class_parameter name: (identifier) @name)
  @definition.field))
(val_definition pattern: (identifier) @name) @definition.variable
(val_definition pattern: (tuple_pattern (identifier) @name)) @definition.variable
(var_definition pattern: (identifier) @name) @definition.variable
(val_declaration name: (identifier) @name) @definition.variable
(var_declaration name: (identifier) @name) @definition.variable
(given_definition name: (identifier) @name) @definition.variable
(type_definition name: (type_identifier) @name) @definition.type
[(block) (lambda_expression)] @closure

(import_declaration) @import

; Heads that the parser could not place.
(ERROR "def" . (identifier) @name @definition.function)
(ERROR "class" . (identifier) @name @definition.class)
(ERROR "object" . (identifier) @name @definition.object)
(ERROR "trait" . (identifier) @name @definition.trait)

; References.

(call_expression function: (identifier) @reference.call)
(call_expression function: (field_expression field: (identifier) @reference.call))
(call_expression function: (generic_function function: (identifier) @reference.call))
(call_expression function: (generic_function
  function: (field_expression field: (identifier) @reference.call)))
(instance_expression (type_identifier) @reference.call)
(instance_expression (generic_type type: (type_identifier) @reference.call))
(import_declaration path: (identifier) @reference.import)
(namespace_selectors (identifier) @reference.import)
(arrow_renamed_identifier name: (identifier) @reference.import)
(arrow_renamed_identifier alias: (identifier) @local)
(package_clause name: (package_identifier (identifier) @local))
(parameter name: (identifier) @local)
(class_parameter name: (identifier) @local)
(binding name: (identifier) @local)
(lambda_expression parameters: (identifier) @local)
(type_parameters name: (identifier) @local)
(case_clause pattern: (identifier) @local)
(case_class_pattern pattern: (identifier) @local)
[(type_identifier)] @reference.type
[(identifier) (operator_identifier)] @reference.read

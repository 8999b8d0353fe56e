; What JavaScript and TypeScript share; not a language of its own.

(method_definition name: (_) @name body: (_) @body
  (#eq? @name "constructor")) @definition.constructor
(function_declaration name: (identifier) @name body: (_) @body) @definition.function
(generator_function_declaration name: (identifier) @name body: (_) @body) @definition.function
(method_definition name: [(property_identifier) (private_property_identifier) (string)] @name
  body: (_) @body) @definition.method

(method_definition name: (computed_property_name (string) @name) body: (_) @body) @definition.method
[(arrow_function) (function_expression) (generator_function) (class_static_block)] @closure

; Functions and classes that are values of variables, fields and properties.
(variable_declarator name: (identifier) @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)
    (generator_function body: (_) @body)]) @definition.function
(variable_declarator name: (identifier) @name value: (class body: (_) @body)) @definition.class
(variable_declarator name: (identifier) @name) @definition.variable
(variable_declarator name: (object_pattern
  (shorthand_property_identifier_pattern) @name)) @definition.variable
(variable_declarator name: (object_pattern
  (pair_pattern value: (identifier) @name))) @definition.variable
(variable_declarator name: (array_pattern (identifier) @name)) @definition.variable
(pair key: [(property_identifier) (string)] @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)
    (generator_function body: (_) @body)]) @definition.function
(pair key: [(property_identifier) (string)] @name value: (class body: (_) @body)) @definition.class
(assignment_expression left: (member_expression object: (_) @owner property: (property_identifier) @name)
  right: [(arrow_function body: (_) @body) (function_expression body: (_) @body)
    (generator_function body: (_) @body)]) @definition.function
(assignment_expression left: (member_expression object: (_) @owner property: (property_identifier) @name)
  right: (class body: (_) @body)) @definition.class
(assignment_expression
  left: (member_expression object: (identifier) @owner property: (property_identifier) @name
    ) @definition.variable
  right: (assignment_expression)
  (#eq? @owner "exports"))
(assignment_expression
  left: (member_expression object: (identifier) @owner property: (property_identifier) @name)
  (#eq? @owner "exports")) @definition.variable

(assignment_expression left: (identifier) @name
  right: [(arrow_function body: (_) @body) (function_expression body: (_) @body)
    (generator_function body: (_) @body)]) @definition.function

(export_statement declaration: (_)) @outer

(import_statement) @import
(export_statement source: (string)) @import
(call_expression function: (identifier) @_f arguments: (arguments . (string) .)
  (#eq? @_f "require")) @import
(call_expression function: (import) arguments: (arguments . (string))) @import

; Heads that the parser could not place.
(ERROR "function" . (identifier) @name @definition.function)

; References.

(call_expression function: (identifier) @reference.call)
(call_expression function: (member_expression
  property: [(property_identifier) (private_property_identifier)] @reference.call))
(new_expression constructor: (identifier) @reference.call)
(new_expression constructor: (member_expression property: (property_identifier) @reference.call))
(import_specifier name: (identifier) @reference.import)
(import_clause (identifier) @reference.import)
(export_specifier name: (identifier) @reference.read)
(import_specifier alias: (identifier) @local)
(namespace_import (identifier) @local)

(variable_declarator name: (identifier) @local)
(variable_declarator name: (object_pattern (shorthand_property_identifier_pattern) @local))
(variable_declarator name: (object_pattern (pair_pattern value: (identifier) @local)))
(variable_declarator name: (array_pattern (identifier) @local))
(function_declaration name: (identifier) @local)
(generator_function_declaration name: (identifier) @local)
(function_expression name: (identifier) @local)
(arrow_function parameter: (identifier) @local)
(catch_clause parameter: (identifier) @local)
(for_in_statement left: (identifier) @local)
(method_definition name: (_) @local)
(pair key: (property_identifier) @local)

[(identifier) (property_identifier) (private_property_identifier) (shorthand_property_identifier)
  (shorthand_property_identifier_pattern)] @reference.read

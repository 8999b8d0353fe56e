; Kotlin.

(class_declaration "interface" name: (identifier) @name (class_body)? @body) @definition.interface
(class_declaration (modifiers (class_modifier) @_enum) name: (identifier) @name (enum_class_body) @body
  ) @definition.enum
(class_declaration name: (identifier) @name (class_body) @body) @definition.class
(class_declaration name: (identifier) @name) @definition.class
(object_declaration name: (identifier) @name (class_body) @body) @definition.object
(object_declaration name: (identifier) @name) @definition.object
(companion_object name: (identifier) @name) @definition.object
(class_parameter "val" (identifier) @name) @definition.property
(class_parameter "var" (identifier) @name) @definition.property
(enum_entry (identifier) @name) @definition.member
(secondary_constructor "constructor" @name) @definition.constructor
; Extensions belong to the type that they extend.
(function_declaration (user_type . (identifier) @owner .) . "." . name: (identifier) @name
  (function_body) @body) @definition.function
(function_declaration name: (identifier) @name (function_body) @body) @definition.function
(function_declaration name: (identifier) @name) @definition.function
(property_declaration (user_type . (identifier) @owner .) . "." .
  (variable_declaration . (identifier) @name)) @definition.property
(property_declaration (variable_declaration . (identifier) @name)) @definition.variable
(property_declaration (multi_variable_declaration (variable_declaration . (identifier) @name))
  ) @definition.variable
(type_alias type: (identifier) @name) @definition.type
[(lambda_literal) (anonymous_initializer) (anonymous_function)] @closure

(import) @import

; Heads that the parser could not place.
(ERROR "fun" . (identifier) @name @definition.function)
(ERROR "class" . (identifier) @name @definition.class)
(ERROR "interface" . (identifier) @name @definition.interface)
(ERROR "object" . (identifier) @name @definition.object)

; References.

(call_expression . (identifier) @reference.call)
(call_expression . (navigation_expression (identifier) @reference.call .))
(constructor_invocation (user_type (identifier) @reference.call .))
(user_type (identifier) @reference.type)
(import (qualified_identifier (identifier) @reference.import .))
(import (qualified_identifier) (identifier) @local)
(package_header (qualified_identifier (identifier) @local))
(parameter . (identifier) @local)
(class_parameter (identifier) @local)
(lambda_parameters (variable_declaration . (identifier) @local))
(for_statement (variable_declaration . (identifier) @local))
(type_parameter (identifier) @local)
(setter . (identifier) @local)
[(identifier)] @reference.read

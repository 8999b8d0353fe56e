; What C and C++ share; not a language of its own. A @declarator is searched for the name that it declares.

(function_definition declarator: (_) @declarator body: (_) @body) @definition.function
(struct_specifier name: (_) @name body: (_) @body) @definition.struct
(union_specifier name: (_) @name body: (_) @body) @definition.union
(enum_specifier name: (_) @name body: (_) @body) @definition.enum
(enumerator name: (identifier) @name) @definition.member
(type_definition declarator: (_) @declarator) @definition.type
(preproc_def name: (identifier) @name) @definition.macro
(preproc_function_def name: (identifier) @name) @definition.macro
(declaration declarator: (init_declarator declarator: (_) @declarator)) @definition.variable
(declaration declarator: [(identifier) (array_declarator)
  (pointer_declarator declarator: [(identifier) (array_declarator)])
  (pointer_declarator declarator: (pointer_declarator declarator: [(identifier) (array_declarator)]))
  (function_declarator declarator: (parenthesized_declarator))] @declarator) @definition.variable

(preproc_include) @import

; Heads that the parser could not place.
(ERROR "struct" . [(identifier) (type_identifier)] @name @definition.struct)

; References.

(call_expression function: (identifier) @reference.call)
(call_expression function: (field_expression field: (field_identifier) @reference.call))
(parameter_declaration declarator: (identifier) @local)
(parameter_declaration declarator: (pointer_declarator declarator: (identifier) @local))
(parameter_declaration declarator: (pointer_declarator
  declarator: (pointer_declarator declarator: (identifier) @local)))
(parameter_declaration declarator: (array_declarator declarator: (identifier) @local))
(preproc_params (identifier) @local)
(statement_identifier) @local
[(type_identifier)] @reference.type
[(identifier) (field_identifier)] @reference.read

; Python. The query is run scope by scope (module, class bodies, blocks of compound statements; function
; bodies only where their text mentions a definition or an import), so patterns must start at most two
; levels below a scope.

(function_definition name: (identifier) @name body: (block) @body) @definition.function
(class_definition name: (identifier) @name body: (block) @body) @definition.class
(type_alias_statement left: (type . (identifier) @name)) @definition.type
(type_alias_statement left: (type . (generic_type . (identifier) @name))) @definition.type
(assignment left: (identifier) @name) @definition.variable
(assignment left: (pattern_list (identifier) @name)) @definition.variable
(assignment left: (tuple_pattern (identifier) @name)) @definition.variable
(assignment right: (assignment left: (identifier) @name)) @definition.variable

(decorated_definition) @outer

(import_statement) @import
(import_from_statement) @import
(future_import_statement) @import

(if_statement consequence: (block) @scope)
(elif_clause consequence: (block) @scope)
(else_clause body: (block) @scope)
(try_statement body: (block) @scope)
(except_clause (block) @scope)
(finally_clause (block) @scope)
(with_statement body: (block) @scope)
(for_statement body: (block) @scope)
(while_statement body: (block) @scope)
(match_statement body: (block) @scope)
(case_clause consequence: (block) @scope)

; Heads that the parser could not place.
(ERROR "def" . (identifier) @name @definition.function)
(ERROR "class" . (identifier) @name @definition.class)

; References.

(call function: (identifier) @reference.call)
(call function: (attribute attribute: (identifier) @reference.call))
(decorator (identifier) @reference.call)
(decorator (attribute attribute: (identifier) @reference.call))
(import_statement name: (dotted_name (identifier) @reference.import))
(import_statement name: (aliased_import name: (dotted_name (identifier) @reference.import)))
(import_from_statement name: (dotted_name (identifier) @reference.import))
(import_from_statement name: (aliased_import name: (dotted_name (identifier) @reference.import)))
(import_from_statement module_name: (dotted_name (identifier) @reference.import))
(import_from_statement module_name: (relative_import (dotted_name (identifier) @reference.import)))
(aliased_import alias: (identifier) @local)
(type (identifier) @reference.type)
(type (attribute attribute: (identifier) @reference.type))
(type (generic_type . (identifier) @reference.type))
(type (subscript value: (identifier) @reference.type))
(type (subscript subscript: (identifier) @reference.type))
(type (binary_operator (identifier) @reference.type))
(class_definition superclasses: (argument_list (identifier) @reference.type))
(class_definition superclasses: (argument_list (attribute attribute: (identifier) @reference.type)))
(except_clause value: (identifier) @reference.type)

(parameters (identifier) @local)
(lambda_parameters (identifier) @local)
(parameters (default_parameter name: (identifier) @local))
(lambda_parameters (default_parameter name: (identifier) @local))
(typed_parameter . (identifier) @local)
(typed_default_parameter name: (identifier) @local)
(parameters (dictionary_splat_pattern (identifier) @local))
(typed_parameter . (dictionary_splat_pattern (identifier) @local))
(lambda_parameters (dictionary_splat_pattern (identifier) @local))
(assignment left: (identifier) @local)
(for_statement left: (identifier) @local)
(for_in_clause left: (identifier) @local)
(pattern_list (identifier) @local)
(tuple_pattern (identifier) @local)
(list_pattern (identifier) @local)
(list_splat_pattern (identifier) @local)
(as_pattern_target (identifier) @local)
(named_expression name: (identifier) @local)
(function_definition name: (identifier) @local)
(class_definition name: (identifier) @local)

(identifier) @reference.read

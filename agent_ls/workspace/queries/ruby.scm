; Ruby.

(module name: [(constant) (scope_resolution)] @name body: (_)? @body) @definition.module
(class name: [(constant) (scope_resolution)] @name superclass: (_) body: (_) @body) @definition.class
(class name: [(constant) (scope_resolution)] @name) @definition.class
(method name: (_) @name parameters: (_) @head) @definition.method
(method name: (_) @name @head) @definition.method
(singleton_method object: (constant) @owner name: (_) @name parameters: (_) @head) @definition.method
(singleton_method object: (constant) @owner name: (_) @name @head) @definition.method
(singleton_method name: (_) @name parameters: (_) @head) @definition.method
(singleton_method name: (_) @name @head) @definition.method
(assignment left: (constant) @name) @definition.constant
(assignment left: (left_assignment_list (constant) @name)) @definition.constant
(alias name: [(identifier) (constant) (setter) (operator)] @name) @definition.method
(call method: (identifier) @_attr arguments: (argument_list (simple_symbol) @name)
  (#match? @_attr "^attr_(accessor|reader|writer)$")) @definition.property
(call method: (identifier) @_define arguments: (argument_list . (simple_symbol) @name)
  (#any-of? @_define "define_method" "alias_method" "define_singleton_method")) @definition.method

(call !receiver method: (identifier) @_require arguments: (argument_list . (string))
  (#any-of? @_require "require" "require_relative" "load")) @import

; Heads that the parser could not place.
(ERROR "def" . (identifier) @name @definition.function)
(ERROR "class" . (constant) @name @definition.class)
(ERROR "module" . (constant) @name @definition.module)

; References.

(call method: [(identifier) (constant)] @reference.call)
(superclass (constant) @reference.type)
(superclass (scope_resolution name: (constant) @reference.type))
(method_parameters (identifier) @local)
(block_parameters (identifier) @local)
(lambda_parameters (identifier) @local)
(optional_parameter name: (identifier) @local)
(keyword_parameter name: (identifier) @local)
(splat_parameter name: (identifier) @local)
(hash_splat_parameter name: (identifier) @local)
(block_parameter name: (identifier) @local)
(destructured_parameter (identifier) @local)
(assignment left: (identifier) @local)
(assignment left: (left_assignment_list (identifier) @local))
(exception_variable (identifier) @local)
(for pattern: (identifier) @local)
[(identifier) (constant) (instance_variable) (class_variable) (global_variable)] @reference.read

; Bash.

(function_definition name: (word) @name body: (_) @body) @definition.function
(program (variable_assignment name: (variable_name) @name) @definition.variable)
(program (declaration_command (variable_assignment name: (variable_name) @name) @definition.variable))
(if_statement (variable_assignment name: (variable_name) @name) @definition.variable)
(else_clause (variable_assignment name: (variable_name) @name) @definition.variable)
(case_item (variable_assignment name: (variable_name) @name) @definition.variable)
(list (variable_assignment name: (variable_name) @name) @definition.variable)
((command name: (command_name) @_alias argument: (concatenation . (word) @name)) @definition.alias
  (#eq? @_alias "alias"))

(command name: (command_name) @_source (#any-of? @_source "source" ".")) @import

; References.

(command name: (command_name (word) @reference.call))
(variable_assignment name: (variable_name) @local)
(for_statement variable: (variable_name) @local)
[(variable_name)] @reference.read

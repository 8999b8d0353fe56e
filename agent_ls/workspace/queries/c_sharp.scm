; C#.

(namespace_declaration name: (_) @name body: (_) @body) @definition.namespace
(file_scoped_namespace_declaration name: (_) @name @rest) @definition.namespace
(class_declaration name: (identifier) @name body: (_) @body) @definition.class
(interface_declaration name: (identifier) @name body: (_) @body) @definition.interface
(struct_declaration name: (identifier) @name body: (_) @body) @definition.struct
(enum_declaration name: (identifier) @name body: (_) @body) @definition.enum
(enum_member_declaration name: (identifier) @name) @definition.member
(record_declaration name: (identifier) @name body: (_) @body) @definition.class
(record_declaration name: (identifier) @name) @definition.class
(record_declaration (parameter_list (parameter name: (identifier) @name) @definition.property))
(delegate_declaration name: (identifier) @name) @definition.type
(method_declaration name: (identifier) @name body: (_) @body) @definition.method
(method_declaration name: (identifier) @name) @definition.method
(constructor_declaration name: (identifier) @name body: (_) @body) @definition.constructor
(operator_declaration operator: _ @name body: (_) @body) @definition.method
(property_declaration name: (identifier) @name accessors: (accessor_list (accessor_declaration body: (_)))
  @body) @definition.property
(property_declaration name: (identifier) @name) @definition.property
(event_declaration name: (identifier) @name) @definition.event
(event_field_declaration (variable_declaration (variable_declarator name: (identifier) @name))
  ) @definition.event
(field_declaration (variable_declaration (variable_declarator name: (identifier) @name))) @definition.field
(local_function_statement name: (identifier) @name body: (_) @body) @definition.function

(using_directive) @import

; Heads that the parser could not place.
(ERROR "class" . (identifier) @name @definition.class)
(ERROR "interface" . (identifier) @name @definition.interface)
(ERROR "struct" . (identifier) @name @definition.struct)
(ERROR "namespace" . (identifier) @name @definition.namespace)

; References.

(invocation_expression function: (identifier) @reference.call)
(invocation_expression function: (member_access_expression name: (identifier) @reference.call))
(invocation_expression function: (member_access_expression
  name: (generic_name . (identifier) @reference.call)))
(invocation_expression function: (generic_name . (identifier) @reference.call))
(invocation_expression function: (conditional_access_expression
  (member_binding_expression name: (identifier) @reference.call)))
(object_creation_expression type: (identifier) @reference.call)
(object_creation_expression type: (generic_name . (identifier) @reference.call))
(object_creation_expression type: (qualified_name name: (identifier) @reference.call))
(attribute name: (identifier) @reference.type)
(base_list (identifier) @reference.type)
(base_list (qualified_name name: (identifier) @reference.type))
(base_list (generic_name . (identifier) @reference.type))
(type_argument_list (identifier) @reference.type)
(variable_declaration type: (identifier) @reference.type)
(parameter type: (identifier) @reference.type)
(parameter type: (nullable_type (identifier) @reference.type))
(parameter type: (array_type type: (identifier) @reference.type))
(method_declaration returns: (identifier) @reference.type)
(property_declaration type: (identifier) @reference.type)
(generic_name . (identifier) @reference.type)
(nullable_type (identifier) @reference.type)
(array_type type: (identifier) @reference.type)
(cast_expression type: (identifier) @reference.type)
(as_expression right: (identifier) @reference.type)
(typeof_expression type: (identifier) @reference.type)
(catch_declaration type: (identifier) @reference.type)
(using_directive (identifier) @reference.import)
(using_directive (qualified_name name: (identifier) @reference.import))
(parameter name: (identifier) @local)
(type_parameter name: (identifier) @local)
(variable_declaration (variable_declarator name: (identifier) @local))
(foreach_statement left: (identifier) @local)
(catch_declaration name: (identifier) @local)
(declaration_pattern name: (identifier) @local)
(implicit_parameter) @local
[(identifier)] @reference.read

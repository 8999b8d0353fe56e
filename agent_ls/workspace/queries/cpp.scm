; inherits: c_family

; `= default` and `= delete`.
(function_definition declarator: (_) @declarator) @definition.function
(class_specifier name: (_) @name body: (_) @body) @definition.class
(namespace_definition name: (_) @name body: (_) @body) @definition.namespace
(alias_declaration name: (type_identifier) @name) @definition.type
(concept_definition name: (identifier) @name) @definition.concept
(namespace_alias_definition name: (namespace_identifier) @name) @definition.namespace

; Methods that a class only declares.
(field_declaration declarator: (function_declarator
  declarator: [(field_identifier) (operator_name) (identifier) (destructor_name)]) @declarator
  ) @definition.method
(field_declaration declarator: (pointer_declarator
  declarator: (function_declarator declarator: [(field_identifier) (operator_name)]) @declarator)
  ) @definition.method
(field_declaration declarator: (reference_declarator
  (function_declarator declarator: [(field_identifier) (operator_name)]) @declarator)
  ) @definition.method
(field_declaration_list (declaration declarator: [(function_declarator) (operator_cast)] @declarator)
  @definition.method)
(field_declaration_list (template_declaration
  (declaration declarator: [(function_declarator) (operator_cast)] @declarator) @definition.method))
(field_declaration declarator: (_) @declarator) @definition.field
(lambda_expression) @closure

(template_declaration) @outer

(using_declaration) @import

; Heads that the parser could not place.
(ERROR "class" . [(identifier) (type_identifier)] @name @definition.class)
(ERROR "namespace" . [(identifier) (namespace_identifier)] @name @definition.namespace)

; References.

(call_expression function: (qualified_identifier name: (identifier) @reference.call))
(call_expression function: (qualified_identifier
  name: (qualified_identifier name: (identifier) @reference.call)))
(call_expression function: (qualified_identifier
  name: (template_function name: (identifier) @reference.call)))
(call_expression function: (template_function name: (identifier) @reference.call))
(call_expression function: (field_expression
  field: (template_method name: (field_identifier) @reference.call)))
(new_expression type: (type_identifier) @reference.call)
(new_expression type: (template_type name: (type_identifier) @reference.call))
(parameter_declaration declarator: (reference_declarator (identifier) @local))
(optional_parameter_declaration declarator: (identifier) @local)
(optional_parameter_declaration declarator: (reference_declarator (identifier) @local))
(type_parameter_declaration (type_identifier) @local)
(for_range_loop declarator: (identifier) @local)
(for_range_loop declarator: (reference_declarator (identifier) @local))
(namespace_identifier) @reference.read

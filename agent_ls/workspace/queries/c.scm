; inherits: c_family

(field_declaration declarator: (_) @declarator) @definition.field

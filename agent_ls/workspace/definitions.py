"""What a syntax node defines: its name, kind and head. Plain rules over the grammars' node types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import field, frozen

from agent_ls.workspace.grammars import LANGUAGES

if TYPE_CHECKING:
    from tree_sitter import Node

_SIGNATURE = 200
_TYPES = {"class", "interface", "struct", "trait", "enum", "impl", "union", "module"}
_FUNCTION_VALUES = {
    "arrow_function", "function_expression", "function", "generator_function", "class",
}  # fmt: skip


@frozen
class Definition:
    """`first` is the node that the symbol starts with (decorators, export); `owner` are containers that
    the definition names itself, such as a Go method's receiver."""

    name: str
    kind: str
    first: Node = field(repr=False)
    signature: str
    owner: tuple[str, ...] = ()


def definition(language: str, node: Node, inside: str) -> Definition | None:
    """What `node` defines, or None. `inside` is the kind of the nearest definition around it ("" at the
    top): values inside functions are no symbols."""
    kind = LANGUAGES[language].definitions.get(node.type)
    if kind is None or not node.is_named:
        return None
    special = _SPECIAL.get(language)
    found = special(node, kind, inside) if special is not None else _named(node, kind)
    if found is None:
        return None
    kind, name, owner = found
    if kind in ("variable", "constant", "field") and inside in ("function", "method", "constructor"):
        return None
    if kind == "function" and inside in _TYPES:
        kind = "method" if not (language == "rust" and inside == "module") else kind
    if language == "ruby" and kind == "method" and inside not in ("class", "module"):
        kind = "function"
    return Definition(name, kind, _first(node), _signature(node), owner)


Found = tuple[str, str, tuple[str, ...]] | None


def _text(node: Node | None) -> str:
    return "" if node is None else " ".join((node.text or b"").decode("utf-8", "replace").split())


def _named(node: Node, kind: str) -> Found:
    name = _text(node.child_by_field_name("name"))
    return (kind, name, ()) if name else None


def _python(node: Node, kind: str, inside: str) -> Found:
    if kind == "type":
        left = node.child_by_field_name("left")
        return (kind, _text(left).split("[")[0], ()) if left is not None else None
    if kind != "variable":
        return _named(node, kind)
    left = node.child_by_field_name("left")
    if left is None or left.type != "identifier" or (inside and inside != "class"):
        return None
    return kind, _text(left), ()


def _javascript(node: Node, kind: str, inside: str) -> Found:
    if node.type == "class" and node.child_by_field_name("body") is None:
        return None
    if kind in ("variable", "field", "assignment", "pair"):
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        callable_ = value is not None and value.type in _FUNCTION_VALUES
        target = next(
            (
                child
                for name in ("name", "property", "left", "key")
                if (child := node.child_by_field_name(name)) is not None
            ),
            None,
        )
        if target is None:
            return None
        if kind in ("assignment", "pair"):
            if not callable_ or target.type not in ("member_expression", "property_identifier"):
                return None
            return "function", _text(target).rsplit(".", 1)[-1], ()
        if target.type in ("object_pattern", "array_pattern"):
            return None
        if callable_ and value is not None:
            return ("class" if value.type == "class" else "function"), _text(target), ()
        return (kind, _text(target), ()) if kind == "field" or not inside else None
    if kind == "namespace" and node.child_by_field_name("body") is None:
        return None
    found = _named(node, kind)
    if found is not None and found[1] == "constructor" and kind == "method":
        return "constructor", "constructor", ()
    return found


def _go(node: Node, kind: str, inside: str) -> Found:
    found = _named(node, kind)
    if found is None or kind not in ("type", "method"):
        return found
    if kind == "type":
        body = node.child_by_field_name("type")
        kinds = {"struct_type": "struct", "interface_type": "interface"}
        return kinds.get(body.type if body is not None else "", "type"), found[1], ()
    receiver = node.child_by_field_name("receiver")
    if receiver is None:
        return found
    types = [child.child_by_field_name("type") for child in receiver.named_children]
    owner = _text(types[0]).lstrip("*").split("[")[0] if types else ""
    return "method", found[1], ((owner,) if owner else ())


def _rust(node: Node, kind: str, inside: str) -> Found:
    if kind == "impl":
        name = _text(node.child_by_field_name("type")).split("<")[0]
        return (kind, name, ()) if name else None
    return _named(node, kind)


def _java(node: Node, kind: str, inside: str) -> Found:
    if kind == "field":
        return _named_declarator(node, kind)
    return _named(node, kind)


def _named_declarator(node: Node, kind: str) -> Found:
    declarator = node.child_by_field_name("declarator")
    return _named(declarator, kind) if declarator is not None else None


def _c(node: Node, kind: str, inside: str) -> Found:
    if kind in ("function", "type") and node.type != "alias_declaration":
        name = _declared(node.child_by_field_name("declarator"))
        if not name:
            return None
        *owner, last = name.split("::")
        return kind, last, tuple(part for part in owner if part)
    if kind in ("struct", "union", "enum", "class") and node.child_by_field_name("body") is None:
        return None
    return _named(node, kind)


def _declared(node: Node | None) -> str:
    """The name inside a C declarator (pointers, arrays, parameter lists around it)."""
    while node is not None:
        if node.type in ("identifier", "field_identifier", "type_identifier", "qualified_identifier",
                         "destructor_name", "operator_name", "operator_cast"):  # fmt: skip
            return _text(node).split("<")[0] if node.type == "qualified_identifier" else _text(node)
        inner = node.child_by_field_name("declarator")
        if inner is None:
            inner = next((child for child in node.named_children if "declarator" in child.type), None)
        if inner is None and node.type in ("parenthesized_declarator", "reference_declarator"):
            inner = next(iter(node.named_children), None)
        node = inner
    return ""


_SPECIAL = {
    "python": _python, "javascript": _javascript, "typescript": _javascript, "tsx": _javascript, "go": _go,
    "rust": _rust, "java": _java, "c": _c, "cpp": _c,
}  # fmt: skip


def _first(node: Node) -> Node:
    """The node with its decorators, template head, export or declaration keyword in front."""
    while node.parent is not None and (
        node.parent.type in ("decorated_definition", "export_statement", "template_declaration")
        or (
            node.parent.type in ("lexical_declaration", "variable_declaration", "type_declaration",
                                 "const_declaration", "var_declaration", "ambient_declaration")
            and node.parent.named_child_count == 1
        )
    ):  # fmt: skip
        node = node.parent
    return node


def _signature(node: Node) -> str:
    body = node.child_by_field_name("body") or node.child_by_field_name("consequence")
    value = node.child_by_field_name("value") or node.child_by_field_name("right")
    if body is None and value is not None:
        body = value.child_by_field_name("body")
    source = node.text or b""
    if body is not None:
        source = source[: body.start_byte - node.start_byte]
    else:
        source = source.split(b"\n", 1)[0] if node.type not in ("method_declaration",) else source
    text = " ".join(source.decode("utf-8", "replace").split()).removesuffix("=>").rstrip(" {:=")
    return text if len(text) <= _SIGNATURE else text[:_SIGNATURE] + "…"

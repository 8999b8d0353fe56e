"""Expressions of tree-sitter's trees as those of the small syntax tree, by the grammar's table."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent_ls.guard.grammar_tables import Table
from agent_ls.guard.syntax import Expr, Stmt, call, literal, name

if TYPE_CHECKING:
    from tree_sitter import Node

_COMPARISONS = {
    "==": "==", "===": "==", "!=": "!=", "!==": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
    "=~": "=~", "eql?": "==", "instanceof": "instanceof", "in": "in",
}  # fmt: skip
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "f": "\f", "v": "\v"}
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F_]+|0[bB][01_]+|[\d_]+(?:\.[\d_]+)?(?:[eE][+-]?\d+)?)[a-zA-Z]*\w*")


class ExpressionReader:
    """Reads expressions; the statements in bodies of functions are read by the class that extends it."""

    def __init__(self, source: bytes, language: str, table: Table, shift: int) -> None:
        self.source, self.language, self.table, self.shift = source, language, table, shift

    # -- small helpers
    def text(self, node: Node) -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def line(self, node: Node) -> int:
        return node.start_point[0] + 1 + self.shift

    def end(self, node: Node) -> int:
        return node.end_point[0] + 1 + self.shift

    def named(self, node: Node) -> list[Node]:
        return [n for n in node.named_children if "comment" not in n.type]

    def field(self, node: Node, *names: str) -> Node | None:
        for field in names:
            found = node.child_by_field_name(field)
            if found is not None:
                return found
        return None

    # -- bodies
    def stmts(self, node: Node) -> tuple[Stmt, ...]:
        raise NotImplementedError

    def stmt(self, node: Node) -> list[Stmt]:
        raise NotImplementedError

    def _params(self, node: Node | None) -> tuple[str, ...]:
        if node is None:
            return ()
        if node.type == "identifier":
            return (self.text(node),)
        found = []
        for child in self.named(node):
            labels = child.children_by_field_name("name") or child.children_by_field_name("pattern")
            found += [self.text(label) for label in labels] or [self.text(child)]
        return tuple(found)

    # -- expressions
    def expr(self, node: Node) -> Expr:
        form = self.table.exprs.get(node.type)
        line = self.line(node)
        if form is None:
            parts = self.named(node)
            if not parts:
                return name(self.text(node), line)
            return Expr("other", node.type, tuple(self.expr(part) for part in parts), line=line)
        kind, *fields = form
        maker: Callable[[Node, int, list[str]], Expr] = getattr(self, f"_e_{kind}")
        return maker(node, line, fields)

    def _part(self, node: Node, field: str) -> Expr:
        found = node.child_by_field_name(field)
        return self.expr(found) if found is not None else name("?", self.line(node))

    def _arguments(self, node: Node | None) -> tuple[Expr, ...]:
        return tuple(self.expr(child) for child in self.named(node)) if node is not None else ()

    def _e_pass(self, node: Node, line: int, fields: list[str]) -> Expr:
        inner = self.field(node, *fields) if fields else None
        parts = self.named(node)
        inner = inner or (parts[0] if parts else None)
        return self.expr(inner) if inner is not None else name(self.text(node), line)

    def _e_cast(self, node: Node, line: int, fields: list[str]) -> Expr:
        """A cast; one to an integer loses what comes after the point."""
        kind, inner = self.field(node, "type"), self.named(node)[-1]
        text = self.text(kind) if kind is not None else ""
        if self.language == "rust":
            inner = self.field(node, "value") or inner
        if re.fullmatch(r"int|long|short|byte|Integer|Long|[iu](?:8|16|32|64|128|size)", text):
            return call(name("(int)", line), self.expr(inner))
        return self.expr(inner)

    def _e_last(self, node: Node, line: int, fields: list[str]) -> Expr:
        return self.expr(self.named(node)[-1])

    def _e_name(self, node: Node, line: int, fields: list[str]) -> Expr:
        return name(self.text(node), line)

    def _e_path(self, node: Node, line: int, fields: list[str]) -> Expr:
        text = re.sub(r"\s+", "", self.text(node))
        parts = re.split(r"::|\.", text)
        made = name(parts[0], line)
        for part in parts[1:]:
            made = Expr("attr", part, (made,), line=line)
        return made

    def _e_attr(self, node: Node, line: int, fields: list[str]) -> Expr:
        label = node.child_by_field_name(fields[1])
        return Expr("attr", self.text(label) if label else "?", (self._part(node, fields[0]),), line=line)

    def _e_call(self, node: Node, line: int, fields: list[str]) -> Expr:
        return call(self._part(node, fields[0]), *self._arguments(node.child_by_field_name(fields[1])))

    def _e_method(self, node: Node, line: int, fields: list[str]) -> Expr:
        """A call whose receiver is optional: Java, Ruby."""
        receiver, label, arguments, block = (node.child_by_field_name(field) for field in fields)
        own = self.text(label) if label is not None else "call"
        callee = name(own, line)
        if receiver is not None:
            callee = Expr("attr", own, (self.expr(receiver),), line=line)
        given = self._arguments(arguments)
        if block is not None:
            given += (self.expr(block),)
        if not given and arguments is None and receiver is not None and self.language == "ruby":
            return callee  # `x.size`: no difference between a call and an attribute
        return call(callee, *given)

    def _e_new(self, node: Node, line: int, fields: list[str]) -> Expr:
        kind = self.field(node, "type", "constructor")
        callee = name(f"new {self.text(kind)}" if kind else "new", line)
        given = self._arguments(self.field(node, "arguments"))
        extra = self.field(node, "initializer")
        return call(callee, *given, *((self.expr(extra),) if extra is not None else ()))

    def _e_index(self, node: Node, line: int, fields: list[str]) -> Expr:
        return Expr("index", args=tuple(self.expr(child) for child in self.named(node)), line=line)

    def _e_binary(self, node: Node, line: int, fields: list[str]) -> Expr:
        left, right = self._part(node, "left"), self._part(node, "right")
        sign = node.child_by_field_name("operator")
        symbol = self.text(sign) if sign is not None else node.children[1].type
        if symbol in _COMPARISONS:
            return Expr("cmp", _COMPARISONS[symbol], (left, right), line=line)
        if symbol in ("&&", "and"):
            return Expr("and", args=(left, right), line=line)
        if symbol in ("||", "or"):
            return Expr("or", args=(left, right), line=line)
        if symbol == "+" and isinstance(left.value, str) and isinstance(right.value, str):
            return literal(left.value + right.value, line)
        return Expr("bin", symbol, (left, right), line=line)

    def _e_unary(self, node: Node, line: int, fields: list[str]) -> Expr:
        symbol, inner = node.children[0].type, self.expr(self.named(node)[-1])
        if symbol in ("!", "not"):
            return Expr("not", args=(inner,), line=line)
        if symbol == "typeof":
            return call(name("typeof", line), inner)
        if symbol == "-":
            if isinstance(inner.value, int | float) and inner.op == "lit":
                return literal(-inner.value, line)
            return Expr("neg", args=(inner,), line=line)
        return inner

    def _e_cond(self, node: Node, line: int, fields: list[str]) -> Expr:
        parts = [self._part(node, field) for field in ("condition", "consequence", "alternative")]
        return Expr("cond", args=tuple(parts), line=line)

    def _e_await(self, node: Node, line: int, fields: list[str]) -> Expr:
        return Expr("await", args=(self.expr(self.named(node)[0]),), line=line)

    def _e_seq(self, node: Node, line: int, fields: list[str]) -> Expr:
        return Expr(fields[0], args=tuple(self.expr(child) for child in self.named(node)), line=line)

    def _e_words(self, node: Node, line: int, fields: list[str]) -> Expr:
        words = tuple(literal(self.text(child), self.line(child)) for child in self.named(node))
        return Expr("list", args=words, line=line)

    def _e_pair(self, node: Node, line: int, fields: list[str]) -> Expr:
        parts = self.named(node)
        if len(parts) == 1:  # shorthand
            value = self.expr(parts[0])
            return Expr(
                "pair", args=(literal(parts[0].text.decode() if parts[0].text else ""), value), line=line
            )
        key = self.expr(parts[0])
        if key.op == "name" and self.language != "go":
            key = literal(key.name, line)
        return Expr("pair", args=(key, self.expr(parts[-1])), line=line)

    def _e_short(self, node: Node, line: int, fields: list[str]) -> Expr:
        text = self.text(node)
        return Expr("pair", args=(literal(text, line), name(text, line)), line=line)

    def _e_kw(self, node: Node, line: int, fields: list[str]) -> Expr:
        parts = self.named(node)
        if len(parts) < 2:
            return self.expr(parts[0])
        return Expr("kw", self.text(parts[0]).rstrip(":"), (self.expr(parts[-1]),), line=line)

    def _e_struct(self, node: Node, line: int, fields: list[str]) -> Expr:
        """A composite literal: Go, Rust."""
        kind, body = self.field(node, "type", "name"), self.field(node, "body")
        parts = tuple(self.expr(child) for child in self.named(body)) if body is not None else ()
        text = re.sub(r"\s+", " ", self.text(kind)) if kind is not None else ""
        fields_of = self._struct_fields(kind) if kind is not None and self.language == "go" else []
        if fields_of:
            parts = tuple(_with_fields(part, fields_of) for part in parts)
        if kind is not None and kind.type in ("slice_type", "array_type", "implicit_length_array_type"):
            return Expr("list", args=parts, line=line)
        if kind is not None and kind.type == "map_type":
            return Expr("dict", args=parts, line=line)
        if any(part.op == "pair" for part in parts):
            parts = tuple(
                Expr("kw", p.args[0].name or str(p.args[0].value), (p.args[1],), line=p.line)
                if p.op == "pair"
                else p
                for p in parts
            )
        return call(name(text, line), *parts)

    def _struct_fields(self, kind: Node) -> list[str]:
        """Names of the fields of a Go slice's or map's elements, where the struct is in this file."""
        stack, named = [kind], [n for n in kind.named_children if n.type == "type_identifier"]
        if named:
            body = re.search(
                rf"(?ms)^\s*type {re.escape(self.text(named[-1]))} struct \{{(.*?)^\s*\}}",
                self.source.decode("utf-8", "replace"),
            )
            lines = body.group(1).splitlines() if body is not None else []
            return [
                w
                for line in lines
                for w in re.findall(r"\w+", line.split("//")[0].rpartition(" ")[0].split(" ")[0])
            ]
        while stack:
            node = stack.pop()
            if node.type == "field_declaration":
                return [
                    self.text(label)
                    for other in (node.parent.named_children if node.parent else ())
                    for label in other.children_by_field_name("name")
                ]
            stack += reversed(node.named_children)
        return []

    def _e_func(self, node: Node, line: int, fields: list[str]) -> Expr:
        params = self._params(self.field(node, "parameters", "parameter"))
        body = self.field(node, "body")
        if body is None:  # a Ruby block holds its statements itself
            inside = tuple(
                made
                for child in self.named(node)
                if not child.type.endswith("parameters")
                for made in self.stmt(child)
            )
        elif self.table.stmts.get(body.type) in ("block", "inside"):
            inside = self.stmts(body)
        else:
            made = self.stmt(body)
            plain = len(made) == 1 and made[0].kind == "expr"
            inside = (Stmt("return", line, made[0].exprs),) if plain else tuple(made)
        flags = "async" if any(c.type == "async" for c in node.children) else ""
        return Expr("func", flags, params=params, body=inside, line=line)

    def _e_str(self, node: Node, line: int, fields: list[str]) -> Expr:
        if any(c.type in ("template_substitution", "interpolation") for c in node.named_children):
            parts = tuple(
                self.expr(c)
                if c.type in ("template_substitution", "interpolation")
                else literal(self.text(c))
                for c in node.named_children
            )
            return Expr("fstr", args=parts, line=line)
        return literal(_unquoted(self.text(node)), line)

    def _e_symbol(self, node: Node, line: int, fields: list[str]) -> Expr:
        return literal(":" + self.text(node).strip(":\"'"), line)

    def _e_num(self, node: Node, line: int, fields: list[str]) -> Expr:
        text = self.text(node)
        match = _NUMBER.fullmatch(text)
        if match is None:
            return literal(text, line)
        digits = match.group(1).replace("_", "")
        try:
            value: int | float = (
                int(digits, 0) if not re.search(r"[.eE]", digits) or digits[:2] == "0x" else float(digits)
            )
        except ValueError:
            value = float(digits) if re.fullmatch(r"[\d.]+", digits) else 0
        return literal(value, line)

    def _e_const(self, node: Node, line: int, fields: list[str]) -> Expr:
        return literal({"true": True, "false": False}.get(self.text(node)), line)

    def _e_bool(self, node: Node, line: int, fields: list[str]) -> Expr:
        return literal(self.text(node) == "true", line)

    def _e_regex(self, node: Node, line: int, fields: list[str]) -> Expr:
        text = self.text(node)
        return Expr("regex", value=text[1 : text.rfind("/")] if text.startswith("/") else text, line=line)

    def _e_other(self, node: Node, line: int, fields: list[str]) -> Expr:
        return Expr("other", re.sub(r"\s+", " ", self.text(node)), line=line)

    def _e_macro(self, node: Node, line: int, fields: list[str]) -> Expr:
        """A Rust macro: its tokens are read again as the arguments of a call."""
        label = self.field(node, "macro")
        own = self.text(label) if label is not None else "?"
        tree = next((c for c in node.named_children if c.type == "token_tree"), None)
        if tree is None:
            return call(name(f"{own}!", line))
        inside = self.text(tree)[1:-1]
        given = self._reparsed(inside, self.line(tree))
        if own == "vec":
            return Expr("list", args=given, line=line)
        return call(name(f"{own}!", line), *given)

    def _reparsed(self, inside: str, line: int) -> tuple[Expr, ...]:
        from tree_sitter import Parser

        from agent_ls.workspace.grammars import grammar

        source = f"fn m() {{ m({inside}\n) }}".encode()
        root = Parser(grammar(self.language)).parse(source).root_node
        if root.has_error:
            return (Expr("other", re.sub(r"\s+", " ", inside), line=line),)
        reader = type(self)(source, self.language, self.table, line - 1)
        stack = [root]
        while stack:
            node = stack.pop()
            if node.type == "arguments":
                return reader._arguments(node)
            stack += reversed(node.named_children)
        return ()


def _with_fields(part: Expr, fields: list[str]) -> Expr:
    """A row of a table of structs as a dict; in a map the row is the pair's value."""
    if part.op == "pair":
        return Expr("pair", args=(part.args[0], _with_fields(part.args[1], fields)), line=part.line)
    if part.op != "tuple" or not part.args:
        return part
    if all(arg.op == "pair" for arg in part.args):
        pairs = tuple(Expr("pair", args=(literal(a.args[0].name), a.args[1]), line=a.line) for a in part.args)
    elif len(part.args) == len(fields):
        cells = zip(fields, part.args, strict=True)
        pairs = tuple(Expr("pair", args=(literal(key), value), line=value.line) for key, value in cells)
    else:
        return part
    return Expr("dict", args=pairs, line=part.line)


def _unquoted(text: str) -> str:
    match = re.match(r"(?:b?r(#*)|[@$]*|b|c)(\"\"\"|\"|'|`)", text)
    if match is None:
        return text
    hashes, quote = match.group(1) or "", match.group(2)
    inner = text[match.end() :].removesuffix(hashes).removesuffix(quote)
    if quote == "`" or text[0] in "r@" or text.startswith("br"):
        return inner
    if quote == '"""':
        inner = re.sub(r"^[ \t]*\n", "", inner)
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m.group(1), m.group(1)), inner, flags=re.DOTALL)

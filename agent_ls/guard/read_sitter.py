"""Source of other languages as the small syntax tree, through tree-sitter and one table per grammar.

The table (`grammar_tables`) says what each node type is; this module knows how to build it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent_ls.guard.grammar_tables import TABLES
from agent_ls.guard.sitter_expressions import ExpressionReader
from agent_ls.guard.syntax import Expr, Stmt, call, literal, name

if TYPE_CHECKING:
    from tree_sitter import Node


def read_sitter(source: bytes, language: str) -> tuple[Stmt, ...] | None:
    """The statements of a file; None for a language without a table. Broken parts are read as far as
    they can be."""
    table = TABLES.get(language)
    if table is None:
        return None
    from agent_ls.workspace.parsing import TooSlow, parse

    try:
        return _Reader(source, language, table, 0).stmts(parse(language, source).root_node)
    except (RecursionError, TooSlow):
        return None


class _Reader(ExpressionReader):
    # -- statements
    def stmts(self, node: Node) -> tuple[Stmt, ...]:
        found: list[Stmt] = []
        pending: list[Expr] = []
        for child in self.named(node):
            if child.type in ("attribute_item", "inner_attribute_item"):
                pending.append(self._rust_attribute(child))
                continue
            made = self.stmt(child)
            if pending and made:
                from attrs import evolve

                made = [evolve(made[0], decorators=(*made[0].decorators, *pending)), *made[1:]]
            pending = []
            found += made
        if pending:  # `#![cfg(...)]` at the end of nothing
            found.append(Stmt("other", self.line(node), name="attributes", decorators=tuple(pending)))
        return tuple(found)

    def body(self, node: Node | None) -> tuple[Stmt, ...]:
        if node is None:
            return ()
        if self.table.stmts.get(node.type, "") == "block":
            return self.stmts(node)
        return tuple(self.stmt(node))

    def stmt(self, node: Node) -> list[Stmt]:
        kind = self.table.stmts.get(node.type)
        line, end = self.line(node), self.end(node)
        if kind is None:
            return [Stmt("expr", line, (self.expr(node),), end=end)]
        maker: Callable[[Node, int, int], list[Stmt]] | None = getattr(self, f"_s_{kind}", None)
        if maker is None:
            return [Stmt(kind, line, end=end)]
        return maker(node, line, end)

    def _s_block(self, node: Node, line: int, end: int) -> list[Stmt]:
        return [Stmt("block", line, body=self.stmts(node), end=end)]

    def _s_inside(self, node: Node, line: int, end: int) -> list[Stmt]:
        return list(self.stmts(node))

    def _s_skip(self, node: Node, line: int, end: int) -> list[Stmt]:
        return []

    def _s_unwrap(self, node: Node, line: int, end: int) -> list[Stmt]:
        return [made for child in self.named(node) for made in self.stmt(child)]

    def _s_import(self, node: Node, line: int, end: int) -> list[Stmt]:
        return [Stmt("import", line, name=self.text(node), end=end)]

    def _s_return(self, node: Node, line: int, end: int) -> list[Stmt]:
        return [Stmt("return", line, tuple(self.expr(child) for child in self.named(node)), end=end)]

    def _s_throw(self, node: Node, line: int, end: int) -> list[Stmt]:
        return [Stmt("raise", line, tuple(self.expr(child) for child in self.named(node)), end=end)]

    def _s_modified(self, node: Node, line: int, end: int) -> list[Stmt]:
        """Ruby's `body if condition`."""
        body, condition = self.field(node, "body"), self.field(node, "condition")
        test = self.expr(condition) if condition else literal(True)
        if node.type.startswith("unless"):
            test = Expr("not", args=(test,), line=line)
        return [Stmt("if", line, (test,), self.body(body), end=end)]

    def _s_if(self, node: Node, line: int, end: int) -> list[Stmt]:
        condition = self.field(node, "condition")
        test = self.expr(condition) if condition else literal(True)
        if node.type == "unless":
            test = Expr("not", args=(test,), line=line)
        first = self.field(node, "initializer")
        before = self.stmt(first) if first is not None else []
        body = self.body(self.field(node, "consequence", "body"))
        made = Stmt("if", line, (test,), body, self.body(self.field(node, "alternative")), end=end)
        return [*before, made]

    def _s_loop(self, node: Node, line: int, end: int) -> list[Stmt]:
        body = self.body(self.field(node, "body"))
        clause = next((c for c in self.named(node) if c.type == "range_clause"), node)
        target, over = self.field(clause, "left", "pattern", "name"), self.field(clause, "right", "value")
        if over is not None:
            if self.language == "ruby":  # `for x in items`
                over = self.named(over)[0] if over.type == "in" else over
            exprs = (self.expr(target) if target is not None else name("_"), self.expr(over))
            return [Stmt("loop", line, exprs, body, name="for", end=end)]
        condition = self.field(node, "condition")
        if condition is None:
            condition = next(
                (self.field(c, "condition") for c in self.named(node) if c.type == "for_clause"), None
            )
        test = self.expr(condition) if condition is not None else literal(True)
        holder = next((c for c in self.named(node) if c.type == "for_clause"), node)
        first = self.field(holder, "initializer", "init")
        start = self.stmt(first) if first is not None and first != condition else []
        return [*start, Stmt("loop", line, (test,), body, name="while", end=end)]

    def _s_try(self, node: Node, line: int, end: int) -> list[Stmt]:
        handlers: list[Stmt] = []
        final: tuple[Stmt, ...] = ()
        orelse: tuple[Stmt, ...] = ()
        main: list[Stmt] = []
        body_node = self.field(node, "body")
        if body_node is not None:
            main = list(self.body(body_node))
        for child in self.named(node):
            if child.type in ("catch_clause", "rescue"):
                handlers.append(self._handler(child))
            elif child.type in ("finally_clause", "ensure"):
                final = self.stmts(child)
            elif child.type == "else":
                orelse = self.stmts(child)
            elif body_node is None and child.type != "resource_specification":
                main += self.stmt(child)
        if not handlers and not final:
            return [Stmt("block", line, body=tuple(main), end=end)]
        return [Stmt("try", line, (), tuple(main), orelse, tuple(handlers), final, end=end)]

    def _handler(self, node: Node) -> Stmt:
        variable = self.field(node, "parameter", "variable")
        bound, types = "", []
        if variable is not None:
            bound = re.sub(r"\W+", "", self.text(variable))
        for child in self.named(node):
            if child.type == "catch_formal_parameter":
                bound = self.text(child.child_by_field_name("name") or child)
                kinds = next((c for c in child.named_children if c.type == "catch_type"), None)
                types += [name(t.strip()) for t in self.text(kinds).split("|")] if kinds else []
            elif child.type == "catch_declaration":
                kind, own = child.child_by_field_name("type"), child.child_by_field_name("name")
                types += [name(self.text(kind))] if kind else []
                bound = self.text(own) if own else ""
            elif child.type == "exceptions":
                types += [name(self.text(t)) for t in child.named_children]
        body_node = self.field(node, "body")
        return Stmt("handler", self.line(node), tuple(types), self.body(body_node), name=bound)

    def _s_with(self, node: Node, line: int, end: int) -> list[Stmt]:
        body = self.field(node, "body")
        contexts = tuple(self.expr(c) for c in self.named(node) if c != body)
        return [Stmt("with", line, contexts, self.body(body), end=end)]

    def _s_declare(self, node: Node, line: int, end: int) -> list[Stmt]:
        found: list[Stmt] = []
        stack = list(reversed(self.named(node)))
        while stack:
            child = stack.pop()
            if child.type in ("variable_declaration", "var_spec_list"):
                stack += reversed(self.named(child))
            elif child.type in ("variable_declarator", "var_spec", "const_spec"):
                target, value = self.field(child, "name"), self.field(child, "value")
                if value is None and self.language == "c_sharp":
                    rest = [c for c in self.named(child) if c != target]
                    value = rest[-1] if rest else None
                if target is not None:
                    right = self.expr(value) if value is not None else literal(None)
                    found.append(Stmt("assign", line, (self.expr(target), right), end=end))
        return found

    def _s_let(self, node: Node, line: int, end: int) -> list[Stmt]:
        target, value = self.field(node, "pattern", "name", "left"), self.field(node, "value", "right")
        if target is None:
            return []
        right = self.expr(value) if value is not None else literal(None, line)
        operator = self.field(node, "operator")
        left = self.expr(target)
        sign = self.text(operator) if operator is not None else "="
        if sign not in ("=", ":="):
            mixed = Expr("bin", sign.removesuffix("="), (left, right), line=line)
            return [Stmt("assign", line, (left, mixed), name="augmented", end=end)]
        if left.op == "tuple" and len(left.args) == 1:
            left = left.args[0]
        if right.op == "tuple" and len(right.args) == 1 and self.language == "go":
            right = right.args[0]
        return [Stmt("assign", line, (left, right), end=end)]

    def _s_func(self, node: Node, line: int, end: int) -> list[Stmt]:
        label = self.field(node, "name")
        decorators, flags = self._annotations(node)
        return [
            Stmt(
                "func",
                line if label is None else self.line(label),
                (),
                self.body(self.field(node, "body")),
                name=self.text(label) if label is not None else "",
                params=self._params(self.field(node, "parameters")),
                decorators=decorators,
                flags=flags,
                end=end,
            )
        ]

    def _s_class(self, node: Node, line: int, end: int) -> list[Stmt]:
        label = self.field(node, "name", "type")
        decorators, flags = self._annotations(node)
        heritage = [
            Expr("other", self.text(c))
            for c in node.named_children
            if c.type in ("superclass", "class_heritage", "base_list", "super_interfaces")
        ]
        body = self.field(node, "body")
        if body is None and self.language == "ruby":
            body = node
        inside = self.stmts(body) if body is not None else ()
        title = self.text(label) if label is not None else ""
        return [
            Stmt(
                "class",
                line,
                tuple(heritage),
                inside,
                name=title,
                decorators=decorators,
                flags=flags,
                end=end,
            )
        ]

    def _s_arms(self, node: Node, line: int, end: int) -> list[Stmt]:
        """switch, match and case: each arm under a condition of its own."""
        subject = self.field(node, "value", "condition")
        about = self.expr(subject) if subject is not None else literal(True)
        arms = []
        holder = self.field(node, "body") or node
        for child in self.named(holder):
            if child == subject:
                continue
            value = self.field(child, "pattern", "value")
            test = Expr("cmp", "==", (about, self.expr(value) if value else name("_")), line=self.line(child))
            rest = [self.stmt(c) for c in self.named(child) if c != value]
            arms.append(Stmt("if", self.line(child), (test,), tuple(s for made in rest for s in made)))
        last = arms[-1] if len(arms) > 1 else None
        catches_all = last is not None and re.fullmatch(r"_|[a-z]\w*|\?", last.exprs[0].args[1].text)
        if self.language == "rust" and last is not None and catches_all:
            chain = last.body
            for arm in reversed(arms[:-1]):
                chain = (Stmt("if", arm.line, arm.exprs, arm.body, chain, end=end),)
            return [Stmt("block", line, (about,), chain, end=end)]
        return [Stmt("block", line, (about,), tuple(arms), end=end)]

    def _annotations(self, node: Node) -> tuple[tuple[Expr, ...], frozenset[str]]:
        found: list[Expr] = []
        flags = set()
        for child in node.children:
            if child.type in ("async", "async_modifier"):
                flags.add("async")
            if child.type == "modifier" and self.text(child) in ("async", "static", "abstract", "private"):
                flags.add(self.text(child))
            if child.type == "modifiers":
                flags |= {c.type for c in child.children} & {"static", "abstract", "private"}
            holders = [child] if child.type in ("modifiers", "attribute_list", "decorator") else []
            for holder in holders:
                for part in holder.named_children:
                    if part.type in ("marker_annotation", "annotation", "attribute"):
                        found.append(self._annotation(part))
        return tuple(found), frozenset(flags)

    def _annotation(self, node: Node) -> Expr:
        label = self.field(node, "name")
        callee = name(self.text(label or node), self.line(node))
        arguments = self.field(node, "arguments")
        if arguments is None:
            arguments = next((c for c in node.named_children if c.type.endswith("argument_list")), None)
        return call(callee, *(self._arguments(arguments) if arguments is not None else ()))

    def _rust_attribute(self, node: Node) -> Expr:
        text = self.text(node).strip("#![] \n")
        head, opening, rest = text.partition("(")
        if not opening:
            head, _, value = text.partition("=")
            inside: tuple[Expr, ...] = (literal(value.strip().strip('"')),) if value else ()
            return call(name(head.strip(), self.line(node)), *inside)
        return call(name(head.strip(), self.line(node)), Expr("other", rest.removesuffix(")").strip()))

"""What a candidate can be built from: names, attributes, conditions and statements in reach (the
redundancy assumption: the missing piece is usually somewhere near already)."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping
from functools import cached_property

from attrs import field, frozen

from agent_ls.repair.kinds import expression_kind, negated
from agent_ls.repair.source import Function, Source, first_line

Types = Mapping[tuple[str, int], Mapping[str, frozenset[str]]]
"""(function, first line) -> local name -> names of the types seen at run time; `return` is the value."""

_NUMBERS = {"int", "float", "complex", "bool", "Decimal", "Fraction"}
_SIZED = {"list", "tuple", "dict", "set", "str", "bytes", "deque", "frozenset", "defaultdict", "OrderedDict"}
_BUILTINS = frozenset(dir(builtins))


@frozen
class Ingredients:
    """Material for new code beyond the file itself.

    `types` are the types of locals seen while the failing tests ran; `names` further names that other
    files of the repository use together with this one (not imported ones are no use).
    """

    types: Types = field(factory=dict)


@frozen
class Atom:
    """A value in reach. `kind` is one of num, str, list, dict, set, none, bool, call, object, ''."""

    text: str
    kind: str
    weight: float


class Scope:
    """Names and expressions in reach of one function (None: the module's top level)."""

    def __init__(self, source: Source, function: Function | None, ingredients: Ingredients) -> None:
        self.source = source
        self.function = function
        self.types: dict[str, frozenset[str]] = {}
        chain = [function, *_around(source, function)] if function is not None else []
        for outer in reversed(chain):
            if outer is not None:
                self.types.update(ingredients.types.get((outer.name, first_line(outer)), {}))
        self.chain = [outer for outer in chain if outer is not None]

    @cached_property
    def parameters(self) -> list[str]:
        if self.function is None:
            return []
        return [name for name in _parameters(self.function) if name not in ("self", "cls")]

    @cached_property
    def locals(self) -> list[str]:
        """Names bound in this function and the functions around it, nearest first."""
        found: dict[str, None] = {}
        for function in self.chain:
            for name in _parameters(function):
                found.setdefault(name)
            for node in _own(function):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    found.setdefault(node.id)
                elif isinstance(node, ast.ExceptHandler) and node.name:
                    found.setdefault(node.name)
        if self.function is None:
            for node in self.source.tree.body:
                for sub in ast.walk(node):
                    if isinstance(sub, ast.Name) and isinstance(sub.ctx, ast.Store):
                        found.setdefault(sub.id)
        return list(found)

    @cached_property
    def callables(self) -> dict[str, int]:
        """Functions and classes in reach by name, with the number of positional parameters (-1: unknown)."""
        found: dict[str, int] = {}
        for node in ast.walk(self.source.tree):
            if isinstance(node, Function):
                parent = self.source.parents[node]
                if isinstance(parent, ast.ClassDef):
                    if self.method_class is parent and len(node.args.args) > 0:
                        found[f"{_first(node)}.{node.name}"] = len(node.args.args) - 1
                elif isinstance(parent, ast.Module) or any(
                    parent is outer or self.source.function_of(node) is outer for outer in self.chain
                ):
                    found[node.name] = len(node.args.args)
            elif isinstance(node, ast.ClassDef) and isinstance(self.source.parents[node], ast.Module):
                found[node.name] = -1
        return found

    @cached_property
    def method_class(self) -> ast.ClassDef | None:
        if not self.chain:
            return None
        parent = self.source.parents[self.chain[-1]]
        return parent if isinstance(parent, ast.ClassDef) else None

    @cached_property
    def imported(self) -> list[str]:
        found: dict[str, None] = {}
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.Import | ast.ImportFrom) and not (
                isinstance(node, ast.ImportFrom) and node.module == "__future__"
            ):
                for alias in node.names:
                    if alias.name != "*":
                        found.setdefault((alias.asname or alias.name).split(".")[0])
        return list(found)

    @cached_property
    def module_names(self) -> list[str]:
        found: dict[str, None] = {}
        for statement in self.source.tree.body:
            for node in ast.walk(statement) if isinstance(statement, ast.Assign | ast.AnnAssign) else ():
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    found.setdefault(node.id)
        return list(found)

    @cached_property
    def attributes(self) -> dict[str, list[str]]:
        """Receiver text -> attributes read or written on it anywhere in the file (not called)."""
        found: dict[str, dict[str, int]] = {}
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                parent = self.source.parents[node]
                if isinstance(parent, ast.Call) and parent.func is node:
                    continue
                table = found.setdefault(node.value.id, {})
                table[node.attr] = table.get(node.attr, 0) + 1
        return {name: sorted(table, key=lambda attr: -table[attr]) for name, table in found.items()}

    @cached_property
    def all_attributes(self) -> list[str]:
        """All attribute names used as data in the file, most used first."""
        found: dict[str, int] = {}
        for table in self.attributes.values():
            for attr in table:
                found[attr] = found.get(attr, 0) + 1
        return sorted(found, key=lambda attr: -found[attr])

    @cached_property
    def methods(self) -> list[str]:
        """Method names called anywhere in the file, most used first."""
        found: dict[str, int] = {}
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                found[node.func.attr] = found.get(node.func.attr, 0) + 1
        return sorted(found, key=lambda attr: -found[attr])

    def kind(self, name: str) -> str:
        """Rough kind of a name: from the types seen at run time, else from how it is used."""
        types = self.types.get(name, frozenset()) - {"NoneType"}
        if types:
            if types <= _NUMBERS:
                return "bool" if types == {"bool"} else "num"
            for known, kind in (
                ({"str"}, "str"),
                ({"list", "tuple", "deque"}, "list"),
                ({"dict", "defaultdict", "OrderedDict", "Counter"}, "dict"),
                ({"set", "frozenset"}, "set"),
                ({"function", "method", "type", "builtin_function_or_method"}, "call"),
            ):
                if types <= known:
                    return kind
            return "object"
        return self._used.get(name, "")

    @cached_property
    def _used(self) -> dict[str, str]:
        kinds: dict[str, str] = {}
        nodes = ast.walk(self.chain[-1]) if self.chain else ast.walk(self.source.tree)
        for node in nodes:
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                target = node.targets[0]
                if isinstance(target, ast.Name):
                    kinds.setdefault(target.id, expression_kind(node.value))
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                kinds.setdefault(node.target.id, expression_kind(node.value))
            elif isinstance(node, ast.For) and isinstance(node.iter, ast.Call):
                called = getattr(node.iter.func, "id", "")
                if called == "range" and isinstance(node.target, ast.Name):
                    kinds.setdefault(node.target.id, "num")
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if node.attr in ("append", "pop", "extend", "insert", "sort", "reverse"):
                    kinds.setdefault(node.value.id, "list")
                elif node.attr in ("keys", "items", "values", "get", "setdefault"):
                    kinds.setdefault(node.value.id, "dict")
                elif node.attr in ("lower", "upper", "strip", "split", "join", "startswith", "format"):
                    kinds.setdefault(node.value.id, "str")
                elif node.attr in ("add", "discard"):
                    kinds.setdefault(node.value.id, "set")
        return {name: kind for name, kind in kinds.items() if kind}

    @cached_property
    def atoms(self) -> list[Atom]:
        """Values in reach, most useful first: locals, attribute chains and subscripts used here."""
        found: dict[str, Atom] = {}
        for name in self.locals:
            if name != "_":
                found.setdefault(name, Atom(name, self.kind(name), 1.0))
        for function in self.chain:
            for node in ast.walk(function):
                if (
                    isinstance(node, ast.Attribute | ast.Subscript)
                    and isinstance(node.ctx, ast.Load)
                    and not isinstance(self.source.parents[node], ast.Attribute | ast.Subscript)
                ):
                    parent = self.source.parents[node]
                    called = isinstance(parent, ast.Call) and parent.func is node
                    text = self.source.get(node)
                    if not called and len(text) < 40 and "\n" not in text:
                        found.setdefault(text, Atom(text, "", 0.7))
                elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    text = self.source.get(node)
                    found.setdefault(text, Atom(text, "", 0.7))
        if self.chain and len(self.chain[-1].args.args) and self.method_class is not None:
            receiver = _first(self.chain[-1])
            for attr in self.attributes.get(receiver, []):
                text = f"{receiver}.{attr}"
                found.setdefault(text, Atom(text, "", 0.5))
        for name in self.module_names:
            found.setdefault(name, Atom(name, "", 0.4))
        return list(found.values())

    @cached_property
    def expressions(self) -> list[tuple[str, str]]:
        """(text, kind) of the expressions of this function, short ones only, in order of appearance."""
        found: dict[str, str] = {}
        root: ast.AST = self.chain[-1] if self.chain else self.source.tree
        for node in ast.walk(root):
            if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
                if isinstance(node, ast.Name | ast.Constant | ast.Starred | ast.Slice | ast.Tuple):
                    continue
                parent = self.source.parents[node]
                if isinstance(parent, ast.Call) and parent.func is node:
                    continue
                if isinstance(parent, ast.JoinedStr | ast.FormattedValue | ast.comprehension):
                    continue
                if isinstance(node, ast.Yield | ast.YieldFrom | ast.Await | ast.NamedExpr):
                    continue
                text = self.source.get(node)
                if len(text) <= 60 and "\n" not in text:
                    found.setdefault(text, expression_kind(node))
        return list(found.items())

    @cached_property
    def constants(self) -> list[str]:
        """Literals used in this function, then in the file."""
        found: dict[str, None] = {}
        for root in [*self.chain, self.source.tree]:
            for node in ast.walk(root):
                if isinstance(node, ast.Constant) and node.value is not None and node.value is not Ellipsis:
                    if isinstance(self.source.parents[node], ast.Expr | ast.JoinedStr):
                        continue
                    text = self.source.get(node)
                    if len(text) <= 40 and "\n" not in text:
                        found.setdefault(text)
        return list(found)

    @cached_property
    def conditions(self) -> list[tuple[str, float]]:
        """(text, weight) of conditions: used in this function, then made from names in reach."""
        found: dict[str, float] = {}
        for depth, root in enumerate([*self.chain[:1], self.method_class, self.source.tree]):
            if root is None:
                continue
            weight = (1.0, 0.3, 0.15)[min(depth, 2)]
            for node in ast.walk(root):
                tests: list[ast.expr] = []
                if isinstance(node, ast.If | ast.While | ast.IfExp):
                    tests = [node.test]
                elif isinstance(node, ast.BoolOp):
                    tests = list(node.values)
                elif isinstance(node, ast.comprehension):
                    tests = list(node.ifs)
                elif isinstance(node, ast.Compare):
                    tests = [node]
                for test in tests:
                    text = self.source.get(test)
                    if len(text) <= 60 and "\n" not in text and self.reaches(test):
                        found.setdefault(text, weight)
                        found.setdefault(negated(test, text), weight * 0.6)
        for text, weight in self._made_conditions():
            found.setdefault(text, weight)
        return sorted(found.items(), key=lambda item: -item[1])

    def reaches(self, expression: ast.expr) -> bool:
        """Are all names of the expression bound where this function can see them?"""
        known = {*self.locals, *self.module_names, *self.imported, *self.callables, *_BUILTINS}
        own = {
            node.id
            for node in ast.walk(expression)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        return all(
            node.id in known or node.id in own for node in ast.walk(expression) if isinstance(node, ast.Name)
        )

    def _made_conditions(self) -> Iterator[tuple[str, float]]:
        near = self.atoms[:14]
        for atom in near:
            base = 0.5 * atom.weight
            text = atom.text
            if text in ("self", "cls") or atom.kind == "call":
                continue
            yield f"not {text}", base * (0.6 if atom.kind == "num" else 1)
            yield text, base * 0.8
            if atom.kind in ("", "object", "none"):
                yield f"{text} is None", base
                yield f"{text} is not None", base
            if atom.kind in ("num", ""):
                for operator, number in (("==", 0), (">", 0), ("<", 0), ("<=", 0), ("==", 1), (">=", 0)):
                    yield f"{text} {operator} {number}", base * 0.5
            if atom.kind in ("list", "str", "dict", "set"):
                yield f"len({text}) == 1", base * 0.3
                yield f"len({text}) > 1", base * 0.3
        for a in near:
            for b in near:
                if a.text == b.text or "call" in (a.kind, b.kind) or a.text == "self" or b.text == "self":
                    continue
                weight = 0.3 * a.weight * b.weight
                if b.kind in ("list", "dict", "set", "str") and a.kind not in ("list", "dict", "set"):
                    yield f"{a.text} in {b.text}", weight
                    yield f"{a.text} not in {b.text}", weight
                if a.kind == b.kind or "" in (a.kind, b.kind):
                    if a.text < b.text:
                        yield f"{a.text} == {b.text}", weight
                        yield f"{a.text} != {b.text}", weight
                    if {a.kind, b.kind} <= {"num", ""}:
                        yield f"{a.text} < {b.text}", weight
                        yield f"{a.text} <= {b.text}", weight * 0.8


def _around(source: Source, function: Function) -> list[Function]:
    return [node for node in source.ancestors(function) if isinstance(node, Function)]


def _parameters(function: Function) -> list[str]:
    arguments = function.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    names += [a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None]
    return names


def _first(function: Function) -> str:
    return function.args.args[0].arg if function.args.args else "self"


def _own(function: Function) -> Iterator[ast.AST]:
    """Nodes of a function without those of nested functions and classes."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop(0)
        yield node
        if not isinstance(node, Function | ast.ClassDef | ast.Lambda):
            pending.extend(ast.iter_child_nodes(node))

"""A small syntax tree that the test files of every language are read into.

The readers (`read_python`, `read_sitter`) lower a file to it; everything after them is written once.
Expressions print themselves in one normal form, so that layout, quotes and parentheses make no difference.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import evolve, field, frozen

MAX_TEXT = 4000
"""Longer normal forms are cut: they are compared, not read."""


@frozen(eq=False, slots=False)
class Expr:
    """An expression.

    `op` is one of: lit (`value`), name, attr (object), call (callee, *arguments), kw (`name` = value),
    index (object, key), cmp (`name` is the operator), not, and, or, bin (`name`), neg, list, tuple, set,
    dict (pairs), pair (key, value), func (`params`, `body`), await, cond (test, then, else), spread, fstr,
    comp (element, iterable; `params` the targets, `name` "if" when it filters), regex (`value`), other.
    """

    op: str
    name: str = ""
    args: tuple[Expr, ...] = ()
    value: Any = None
    line: int = 0
    body: tuple[Stmt, ...] = ()
    params: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The normal form."""
        known: str | None = self.__dict__.get("_text")
        if known is None:
            known = _render(self)[:MAX_TEXT]
            self.__dict__["_text"] = known
        return known

    def walk(self) -> Iterator[Expr]:
        """This expression and all inside it, bodies of functions included."""
        stack = [self]
        while stack:
            at = stack.pop()
            yield at
            stack.extend(reversed(at.args))
            for stmt in at.body:
                stack.extend(stmt.all_exprs())

    @property
    def callee(self) -> str:
        """Dotted name of what a call calls: `a.b.c`, with unknown parts as "?"."""
        return dotted(self.args[0]) if self.op == "call" else ""

    @property
    def positional(self) -> tuple[Expr, ...]:
        """A call's arguments without the named ones."""
        return tuple(arg for arg in self.args[1:] if arg.op != "kw")

    def keyword(self, name: str) -> Expr | None:
        """A call's argument by name."""
        return next((arg.args[0] for arg in self.args[1:] if arg.op == "kw" and arg.name == name), None)


@frozen(eq=False)
class Stmt:
    """A statement.

    `kind` is one of: expr, assign (exprs = *targets, value), return, raise, if (exprs = test), loop
    (exprs = target, iterable for `name` "for"; test for "while"), try (`handlers`, `orelse`, `final`),
    handler (`name` the variable, exprs the types), with (exprs = contexts, `params` the names bound), func,
    class (exprs = bases), block, stop (break, continue), assert (exprs = test), del, import, other.
    """

    kind: str
    line: int
    exprs: tuple[Expr, ...] = ()
    body: tuple[Stmt, ...] = ()
    orelse: tuple[Stmt, ...] = ()
    handlers: tuple[Stmt, ...] = ()
    final: tuple[Stmt, ...] = ()
    name: str = ""
    params: tuple[str, ...] = ()
    decorators: tuple[Expr, ...] = ()
    flags: frozenset[str] = field(default=frozenset())
    end: int = 0

    def children(self) -> Iterator[Stmt]:
        yield from self.body
        yield from self.orelse
        yield from self.handlers
        yield from self.final

    def walk(self) -> Iterator[Stmt]:
        """This statement and those inside it, bodies of lambdas included."""
        yield self
        for expr in (*self.exprs, *self.decorators):
            for part in expr.walk():
                for stmt in part.body:
                    yield from stmt.walk()
        for child in self.children():
            yield from child.walk()

    def all_exprs(self) -> Iterator[Expr]:
        """The outermost expressions of this statement and of those inside it."""
        yield from self.decorators
        yield from self.exprs
        for child in self.children():
            yield from child.all_exprs()


def literal(value: Any, line: int = 0) -> Expr:
    return Expr("lit", value=value, line=line)


def name(text: str, line: int = 0) -> Expr:
    return Expr("name", text, line=line)


def call(callee: Expr, *args: Expr) -> Expr:
    return Expr("call", args=(callee, *args), line=callee.line)


def dotted(expr: Expr) -> str:
    match expr.op:
        case "name":
            return expr.name
        case "attr":
            return f"{dotted(expr.args[0])}.{expr.name}"
        case "call":
            return f"{dotted(expr.args[0])}()"
        case "await":
            return dotted(expr.args[0])
        case "index":
            return f"{dotted(expr.args[0])}[]"
    return "?"


def substitute(expr: Expr, env: Mapping[str, Expr]) -> Expr:
    """`expr` with names replaced by what `env` holds for them; parameters of functions hide names."""
    if not env:
        return expr
    if expr.op == "name":
        return env.get(expr.name, expr)
    if expr.op in ("lit", "regex") or (not expr.args and not expr.body):
        return expr
    inner = env
    if expr.params:
        inner = {key: value for key, value in env.items() if key not in expr.params}
    args = tuple(substitute(arg, inner) for arg in expr.args)
    body = tuple(substitute_stmt(stmt, inner) for stmt in expr.body)
    if all(a is b for a, b in zip(args, expr.args, strict=True)) and body == expr.body:
        return expr
    return evolve(expr, args=args, body=body)


def substitute_stmt(stmt: Stmt, env: Mapping[str, Expr]) -> Stmt:
    def many(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(substitute_stmt(one, env) for one in stmts)

    exprs = stmt.exprs
    if stmt.kind == "assign":
        exprs = (*exprs[:-1], substitute(exprs[-1], env)) if exprs else exprs
    else:
        exprs = tuple(substitute(expr, env) for expr in exprs)
    return evolve(
        stmt,
        exprs=exprs,
        body=many(stmt.body),
        orelse=many(stmt.orelse),
        handlers=many(stmt.handlers),
        final=many(stmt.final),
    )


_ORDERINGS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def folded(expr: Expr) -> Expr:
    """`expr` with what is known without running it worked out: sums and comparisons of literals, fields of
    literal structures."""
    if not expr.args:
        return expr
    args = tuple(folded(arg) for arg in expr.args)
    if any(a is not b for a, b in zip(args, expr.args, strict=True)):
        expr = evolve(expr, args=args)
    if expr.op == "index" and len(args) == 2 and args[1].op == "lit":
        holder, key = args[0], args[1].value
        if holder.op in ("list", "tuple") and isinstance(key, int) and not isinstance(key, bool):
            plain = not any(arg.op == "spread" for arg in holder.args)
            return holder.args[key] if plain and -len(holder.args) <= key < len(holder.args) else expr
        if holder.op == "dict" and all(arg.op == "pair" for arg in holder.args):
            return next((pair.args[1] for pair in holder.args if pair.args[0].value == key), expr)
    if expr.op == "call" and len(args) == 2 and args[0].text == "len" and args[1].op in ("list", "tuple"):
        return expr if any(a.op == "spread" for a in args[1].args) else literal(len(args[1].args), expr.line)
    if expr.op == "call" and args[0].text == "isinstance" and len(args) == 3 and args[1].op == "lit":
        plain = args[2].text in ("str", "int", "float", "bool", "bytes", "object") or args[2].op != "attr"
        return expr if plain else literal(False, expr.line)
    if expr.op == "attr":
        inner = args[0]
        found = next(
            (a.args[-1] for a in inner.args if a.op in ("kw", "pair") and _label(a) == expr.name), None
        )
        return found if found is not None and inner.op in ("call", "dict") else expr
    if len(args) != 2 or any(arg.op != "lit" for arg in args):
        return expr
    one, two = args[0].value, args[1].value
    numbers = isinstance(one, int | float) and isinstance(two, int | float)
    if expr.op == "bin" and numbers and expr.name in ("+", "-", "*"):
        return literal(
            one + two if expr.name == "+" else one - two if expr.name == "-" else one * two, expr.line
        )
    if expr.op == "cmp" and expr.name in ("is", "is not") and None in (one, two):
        return literal((one is two) == (expr.name == "is"), expr.line)
    if expr.op == "cmp" and expr.name in ("==", "!="):
        return literal((one == two) == (expr.name == "=="), expr.line)
    if expr.op == "cmp" and numbers and expr.name in _ORDERINGS:
        return literal(_ORDERINGS[expr.name](one, two), expr.line)
    return expr


def _label(pair: Expr) -> str:
    return pair.name if pair.op == "kw" else str(pair.args[0].value or pair.args[0].name)


def literals(expr: Expr) -> list[str]:
    """Normal forms of the literal values inside, duplicates included; True, False and None are none."""
    return [
        part.text
        for part in expr.walk()
        if part.op in ("lit", "regex") and part.value is not None and not isinstance(part.value, bool)
    ]


def _render(e: Expr) -> str:
    args = [arg.text for arg in e.args]
    match e.op:
        case "lit":
            value = e.value
            if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
                return f"{value:.1f}"
            return repr(value)
        case "regex":
            return f"/{e.value}/"
        case "name":
            return e.name
        case "attr":
            return f"{args[0]}.{e.name}"
        case "call":
            return f"{args[0]}({', '.join(args[1:])})"
        case "kw":
            return f"{e.name}={args[0]}"
        case "index":
            return f"{args[0]}[{', '.join(args[1:])}]"
        case "cmp" | "bin" | "and" | "or":
            symbol = e.name or e.op
            return "(" + f" {symbol} ".join(args) + ")"
        case "not":
            return f"not {args[0]}"
        case "neg":
            return f"-{args[0]}"
        case "list" | "tuple":
            return "[" + ", ".join(args) + "]"
        case "set":
            return "{" + ", ".join(sorted(args)) + "}"
        case "dict":
            return "{" + ", ".join(sorted(args)) + "}"
        case "pair":
            return f"{args[0]}: {args[1]}"
        case "func":
            return f"({', '.join(e.params)}) => {' ; '.join(render_stmt(stmt) for stmt in e.body)}"
        case "await":
            return args[0]
        case "cond":
            return f"({args[0]} ? {args[1]} : {args[2]})" if len(args) == 3 else "?".join(args)
        case "spread":
            return f"*{args[0]}"
        case "fstr":
            return "f(" + ", ".join(args) + ")"
        case "comp":
            return f"[{args[0]} for {', '.join(e.params)} in {', '.join(args[1:])} {e.name}]"
    return f"{e.name}({', '.join(args)})"


def render_stmt(stmt: Stmt) -> str:
    """One statement in normal form, for comparing bodies."""
    head = f"{stmt.kind} {stmt.name}".rstrip()
    inside = "; ".join(render_stmt(child) for child in stmt.children())
    text = f"{head} {', '.join(expr.text for expr in stmt.exprs)}".rstrip()
    return f"{text} {{{inside}}}" if inside else text

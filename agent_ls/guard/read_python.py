"""Python source as the small syntax tree, by Python's own parser."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence

from agent_ls.guard.syntax import Expr, Stmt, call, literal, name

_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.BitOr: "|", ast.BitAnd: "&", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
    ast.MatMult: "@",
}  # fmt: skip


def read_python(source: bytes) -> tuple[Stmt, ...] | None:
    """The statements of a module; None when it can't be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the file's own invalid escapes
            return _body(ast.parse(source).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _body(stmts: Sequence[ast.stmt]) -> tuple[Stmt, ...]:
    return tuple(_stmt(stmt) for stmt in stmts)


def _stmt(node: ast.stmt) -> Stmt:
    line, end = node.lineno, node.end_lineno or node.lineno
    match node:
        case ast.Expr(value=value):
            return Stmt("expr", line, (_expr(value),), end=end)
        case ast.Assign(targets=targets, value=value):
            return Stmt("assign", line, (*map(_expr, targets), _expr(value)), end=end)
        case ast.AnnAssign(target=target, value=value):
            return Stmt("assign", line, (_expr(target), _maybe(value, line)), end=end)
        case ast.AugAssign(target=target, op=op, value=value):
            mixed = Expr("bin", _BINARY[type(op)], (_expr(target), _expr(value)), line=line)
            return Stmt("assign", line, (_expr(target), mixed), name="augmented", end=end)
        case ast.Return(value=value):
            return Stmt("return", line, (_expr(value),) if value else (), end=end)
        case ast.Raise(exc=exc):
            return Stmt("raise", line, (_expr(exc),) if exc else (), end=end)
        case ast.Assert(test=test, msg=message):
            return Stmt("assert", line, (_expr(test), *([_expr(message)] if message else [])), end=end)
        case ast.If(test=test, body=body, orelse=orelse):
            return Stmt("if", line, (_expr(test),), _body(body), _body(orelse), end=end)
        case ast.While(test=test, body=body, orelse=orelse):
            return Stmt("loop", line, (_expr(test),), _body(body), _body(orelse), name="while", end=end)
        case (
            ast.For(target=target, iter=iterable, body=body, orelse=orelse)
            | ast.AsyncFor(target=target, iter=iterable, body=body, orelse=orelse)
        ):
            exprs = (_expr(target), _expr(iterable))
            return Stmt("loop", line, exprs, _body(body), _body(orelse), name="for", end=end)
        case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
            names = tuple(ast.unparse(i.optional_vars) if i.optional_vars else "" for i in items)
            contexts = tuple(_expr(i.context_expr) for i in items)
            return Stmt("with", line, contexts, _body(body), params=names, end=end)
        case (
            ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final)
            | ast.TryStar(body=body, handlers=handlers, orelse=orelse, finalbody=final)
        ):
            caught = tuple(_handler(handler) for handler in handlers)
            return Stmt("try", line, (), _body(body), _body(orelse), caught, _body(final), end=end)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            args = node.args
            params = tuple(arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs))
            flags = frozenset({"async"} if isinstance(node, ast.AsyncFunctionDef) else ())
            decorators = tuple(map(_expr, node.decorator_list))
            inside = _body(node.body)
            return Stmt(
                "func",
                line,
                (),
                inside,
                name=node.name,
                params=params,
                decorators=decorators,
                flags=flags,
                end=end,
            )
        case ast.ClassDef():
            bases = (*map(_expr, node.bases), *(_keyword(word) for word in node.keywords))
            decorators = tuple(map(_expr, node.decorator_list))
            return Stmt(
                "class", line, bases, _body(node.body), name=node.name, decorators=decorators, end=end
            )
        case ast.Break() | ast.Continue():
            return Stmt("stop", line, end=end)
        case ast.Import(names=names):
            words = tuple(name(alias.asname or alias.name, line) for alias in names)
            return Stmt("import", line, words, name=",".join(alias.name for alias in names), end=end)
        case ast.ImportFrom(module=module, names=names, level=level):
            words = tuple(name(alias.asname or alias.name, line) for alias in names)
            return Stmt("import", line, words, name="." * level + (module or ""), end=end)
        case ast.Match(subject=subject, cases=cases):
            arms = tuple(
                Stmt("if", case.pattern.lineno, (Expr("other", ast.unparse(case.pattern)),), _body(case.body))
                for case in cases
            )
            return Stmt("block", line, (_expr(subject),), arms, end=end)
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return Stmt("other", line, name="global", params=tuple(names), end=end)
        case ast.Pass():
            return Stmt("other", line, name="pass", end=end)
    return Stmt(
        "other", line, (Expr("other", ast.unparse(node), line=line),), name=type(node).__name__, end=end
    )


def _handler(node: ast.ExceptHandler) -> Stmt:
    types: tuple[Expr, ...] = ()
    if isinstance(node.type, ast.Tuple):
        types = tuple(map(_expr, node.type.elts))
    elif node.type is not None:
        types = (_expr(node.type),)
    return Stmt("handler", node.lineno, types, _body(node.body), name=node.name or "")


def _maybe(node: ast.expr | None, line: int) -> Expr:
    return _expr(node) if node is not None else literal(None, line)


def _keyword(word: ast.keyword) -> Expr:
    value = _expr(word.value)
    if word.arg is None:
        return Expr("spread", args=(value,), line=value.line)
    return Expr("kw", word.arg, (value,), line=value.line)


def _expr(node: ast.expr) -> Expr:
    line = node.lineno
    match node:
        case ast.Constant(value=value):
            return literal(value, line)
        case ast.Name(id=text):
            return name(text, line)
        case ast.Attribute(value=value, attr=attr):
            return Expr("attr", attr, (_expr(value),), line=line)
        case ast.Call(func=func, args=args, keywords=keywords):
            callee = _expr(func)
            if callee.text == "dict" and keywords and not args and all(word.arg for word in keywords):
                pairs = tuple(
                    Expr("pair", args=(literal(word.arg, line), _expr(word.value)), line=line)
                    for word in keywords
                )
                return Expr("dict", args=pairs, line=line)
            return Expr("call", args=(callee, *map(_expr, args), *map(_keyword, keywords)), line=line)
        case ast.Subscript(value=value, slice=key):
            return Expr("index", args=(_expr(value), _expr(key)), line=line)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            sides = [_expr(left), *map(_expr, comparators)]
            links = [
                Expr("cmp", _COMPARE[type(op)], (sides[at], sides[at + 1]), line=line)
                for at, op in enumerate(ops)
            ]
            return links[0] if len(links) == 1 else Expr("and", args=tuple(links), line=line)
        case ast.BoolOp(op=op, values=values):
            return Expr("and" if isinstance(op, ast.And) else "or", args=tuple(map(_expr, values)), line=line)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return Expr("not", args=(_expr(operand),), line=line)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return literal(-number, line)
        case ast.UnaryOp(operand=operand):
            return Expr("neg", args=(_expr(operand),), line=line)
        case ast.BinOp(left=left, op=op, right=right):
            return _binary(_expr(left), _BINARY[type(op)], _expr(right), line)
        case ast.List(elts=elts):
            return Expr("list", args=tuple(map(_expr, elts)), line=line)
        case ast.Tuple(elts=elts):
            return Expr("tuple", args=tuple(map(_expr, elts)), line=line)
        case ast.Set(elts=elts):
            return Expr("set", args=tuple(map(_expr, elts)), line=line)
        case ast.Dict(keys=keys, values=values):
            pairs = tuple(
                Expr("pair", args=(_expr(k), _expr(v)), line=v.lineno)
                if k is not None
                else Expr("spread", args=(_expr(v),), line=v.lineno)
                for k, v in zip(keys, values, strict=True)
            )
            return Expr("dict", args=pairs, line=line)
        case ast.Lambda(args=args, body=body):
            result = Stmt("return", line, (_expr(body),))
            return Expr("func", params=tuple(a.arg for a in args.args), body=(result,), line=line)
        case ast.Await(value=value):
            return Expr("await", args=(_expr(value),), line=line)
        case ast.IfExp(test=test, body=then, orelse=orelse):
            return Expr("cond", args=(_expr(test), _expr(then), _expr(orelse)), line=line)
        case ast.Starred(value=value):
            return Expr("spread", args=(_expr(value),), line=line)
        case ast.JoinedStr(values=values):
            return Expr("fstr", args=tuple(map(_expr, values)), line=line)
        case ast.FormattedValue(value=value, format_spec=spec):
            return Expr("other", "", (_expr(value), *([_expr(spec)] if spec else [])), line=line)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
            return _comprehension(_expr(node.elt), node.generators, line)
        case ast.DictComp(key=key, value=value):
            pair = Expr("pair", args=(_expr(key), _expr(value)), line=line)
            return _comprehension(pair, node.generators, line)
        case ast.NamedExpr(value=value):
            return _expr(value)
        case ast.Slice(lower=lower, upper=upper, step=step):
            parts = tuple(_maybe(part, line) for part in (lower, upper, step))
            return call(name("slice", line), *parts)
    return Expr("other", ast.unparse(node), line=line)


def _binary(left: Expr, op: str, right: Expr, line: int) -> Expr:
    """Lists and texts that are put together are read as one."""
    if op == "+":
        if left.op == right.op and left.op in ("list", "tuple"):
            return Expr(left.op, args=(*left.args, *right.args), line=line)
        if isinstance(left.value, str) and isinstance(right.value, str):
            return literal(left.value + right.value, line)
    return Expr("bin", op, (left, right), line=line)


def _comprehension(element: Expr, generators: Sequence[ast.comprehension], line: int) -> Expr:
    targets = tuple(n.id for g in generators for n in ast.walk(g.target) if isinstance(n, ast.Name))
    tests = [_expr(test) for generator in generators for test in generator.ifs]
    iterables = [_expr(generator.iter) for generator in generators]
    unpack = _expr(generators[0].target)
    return Expr(
        "comp", "if" if tests else "", (element, *iterables, *tests), value=unpack, line=line, params=targets
    )

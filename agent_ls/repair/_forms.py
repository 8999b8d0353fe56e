"""Edit operators on the form of a statement: keyword, assignment, return, handler, defaults."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from agent_ls.repair._blocks import block_of, dedented, indent_unit, is_docstring, rows
from agent_ls.repair._maker import Maker, short
from agent_ls.repair.edits import Edit
from agent_ls.repair.kinds import expression_kind, negated
from agent_ls.repair.source import Function

_EXCEPTIONS = ("ValueError", "TypeError", "KeyError", "IndexError", "AttributeError", "StopIteration")
_RAISES = ("ValueError", "TypeError", "KeyError", "IndexError", "AttributeError", "RuntimeError")
_AUG_SWAPS = {
    "+=": ("-=", "*=", "=", "|="),
    "-=": ("+=", "="),
    "*=": ("+=", "/=", "**="),
    "/=": ("//=", "*="),
    "//=": ("/=",),
    "%=": ("//=",),
    "|=": ("&=", "^="),
    "&=": ("|=", "^="),
    "^=": ("|=", "&="),
    "<<=": (">>=",),
    ">>=": ("<<=",),
    "**=": ("*=",),
}


def form_edits(make: Maker, statement: ast.stmt, whole: tuple[int, int]) -> Iterator[Edit]:
    source = make.source
    text = source.get(statement)
    start, end = source.span(statement)
    indent, eol = source.indent(statement), source.eol()
    name = short(text)
    if isinstance(statement, ast.If | ast.While):
        keyword = (
            "if"
            if source.text.startswith("if", start)
            else "elif"
            if source.text.startswith("elif", start)
            else "while"
        )
        if keyword == "while":
            yield make.splice(start, start + 5, "if", "loop-to-condition", 0.1, "`while` → `if`")
        elif keyword == "if":
            if not statement.orelse:
                yield make.splice(start, start + 2, "while", "loop-to-condition", 0.15, "`if` → `while`")
            block = block_of(make, statement)
            index = next(i for i, item in enumerate(block) if item is statement)
            if index > 0 and isinstance(block[index - 1], ast.If):
                yield make.splice(start, start + 2, "elif", "elif", 0.3, "`if` → `elif`")
        else:
            yield make.splice(start, start + 4, "if", "elif", 0.2, "`elif` → `if`")
        if isinstance(statement, ast.If) and statement.orelse and not isinstance(statement.orelse[0], ast.If):
            first, last = rows(make, statement.body[0]), rows(make, statement.body[-1])
            efirst, elast = rows(make, statement.orelse[0]), rows(make, statement.orelse[-1])
            if first and last and efirst and elast and source.text[last[1] : efirst[0]].strip() == "else:":
                a, b = source.text[first[0] : last[1]], source.text[efirst[0] : elast[1]]
                b = b if b.endswith(("\n", "\r")) else b + eol
                middle = source.text[last[1] : efirst[0]]
                yield make.splice(
                    first[0], elast[1], b + middle + a, "swap-branches", 0.15, "swap the branches"
                )
                yield make.splice(
                    last[1],
                    elast[1],
                    dedented(b, source.indent(statement.orelse[0]), indent),
                    "unwrap-block",
                    0.1,
                    "drop `else`",
                )
                yield make.splice(last[1], elast[1], "", "delete-branch", 0.05, "delete the `else` branch")
    elif isinstance(statement, ast.Break):
        yield make.splice(start, end, "continue", "break-continue", 0.4, "`break` → `continue`")
        yield make.splice(start, end, "return", "break-continue", 0.05, "`break` → `return`")
    elif isinstance(statement, ast.Continue):
        yield make.splice(start, end, "break", "break-continue", 0.4, "`continue` → `break`")
    elif isinstance(statement, ast.Return):
        yield from _return(make, statement)
    elif isinstance(statement, ast.AugAssign):
        behind, value = source.span(statement.target)[1], source.span(statement.value)[0]
        found = re.search(r"\S+=", source.text[behind:value])
        if found is not None:
            for position, new in enumerate(_AUG_SWAPS.get(found.group(), ())):
                yield make.splice(
                    behind + found.start(),
                    behind + found.end(),
                    new,
                    "augmented-operator",
                    0.6 / (1 + position / 2),
                    f"`{found.group()}` → `{new}`",
                )
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        yield from _assign(make, statement)
    elif isinstance(statement, ast.Expr):
        yield from _expression_statement(make, statement)
    elif isinstance(statement, ast.Raise) and statement.exc is not None:
        exc = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
        for other in _RAISES:
            if other != source.get(exc):
                yield make.replace(exc, other, "exception-type", 0.3)
        yield make.splice(start, end, f"return {source.get(statement.exc)}", "raise-to-return", 0.03, name)
        yield make.splice(start, end, "return", "raise-to-return", 0.05, "return instead of raising")
        yield make.splice(start, end, "return False", "raise-to-return", 0.05, "return instead of raising")
    elif isinstance(statement, ast.Try):
        for handler in statement.handlers:
            if handler.type is None:
                continue
            types = source.get(handler.type)
            seen = set(re.findall(r"\w+", types))
            for other in _EXCEPTIONS:
                if other not in seen:
                    yield make.replace(handler.type, other, "exception-type", 0.25)
                    if isinstance(handler.type, ast.Tuple):
                        yield make.replace(
                            handler.type, f"{types[:-1].rstrip(', ')}, {other})", "exception-type", 0.3
                        )
                    else:
                        yield make.replace(handler.type, f"({types}, {other})", "exception-type", 0.3)
            yield make.replace(handler.type, "Exception", "exception-type", 0.15)
    elif isinstance(statement, ast.For):
        target, iterable = source.get(statement.target), source.get(statement.iter)
        if "\n" not in iterable:
            if isinstance(statement.target, ast.Name):
                yield make.splice(
                    source.span(statement.target)[0],
                    source.span(statement.iter)[1],
                    f"{target} in range(len({iterable}))",
                    "loop-header",
                    0.08,
                    "loop over indices",
                )
            elif isinstance(statement.target, ast.Tuple):
                yield make.replace(statement.iter, f"enumerate({iterable})", "loop-header", 0.15)
                yield make.replace(statement.iter, f"{iterable}.items()", "loop-header", 0.2)
    if isinstance(statement, ast.Assign | ast.AugAssign | ast.Expr | ast.Return) and "\n" not in text:
        unit = indent_unit(make, indent)
        if make.scope.function is not None:
            for exception in ("KeyError", "ValueError", "IndexError", "AttributeError", "TypeError"):
                body = f"{indent}try:{eol}{indent}{unit}{text}{eol}"
                body += f"{indent}except {exception}:{eol}{indent}{unit}"
                for leave in ("pass", "return None"):
                    yield make.splice(
                        *whole, f"{body}{leave}{eol}", "catch-exception", 0.015, f"catch {exception}: {leave}"
                    )


def _return(make: Maker, statement: ast.Return) -> Iterator[Edit]:
    scope = make.scope
    if statement.value is None:
        for name in scope.locals[:10]:
            yield make.replace(statement, f"return {name}", "return-value", 0.2)
        return
    value = make.source.get(statement.value)
    yield make.replace(statement, f"yield {value}", "return-to-yield", 0.1)
    for name in scope.locals[:12]:
        if name != value and name not in ("self", "cls"):
            yield make.replace(statement.value, name, "return-value", 0.15)
    for constant in ("True", "False", "None", "[]", "0", "[[]]", "''"):
        if constant != value:
            yield make.replace(statement.value, constant, "return-value", 0.05)
    if expression_kind(statement.value) == "bool":
        new = negated(statement.value, value) if "\n" not in value else f"not ({value})"
        yield make.replace(statement.value, new, "negate-condition", 0.4)
    if "\n" not in value and not isinstance(statement.value, ast.Constant):
        operand = make.operand(statement.value)
        boolean = expression_kind(statement.value) == "bool" or isinstance(
            statement.value, ast.Call | ast.Name
        )
        if boolean:
            for index, (condition, weight) in enumerate(scope.conditions[:60]):
                if condition != value:
                    prior = 0.15 * weight / (1 + index / 30)
                    yield make.replace(statement.value, f"{operand} and {condition}", "add-condition", prior)
                    yield make.replace(statement.value, f"{operand} or {condition}", "add-condition", prior)
        for index, (condition, weight) in enumerate(scope.conditions[:24]):
            for other in ("0", "None", "[]", "''", *scope.parameters[:2]):
                yield make.replace(
                    statement.value,
                    f"{operand} if {condition} else {other}",
                    "conditional-value",
                    0.03 * weight / (1 + index / 12),
                )


def _assign(make: Maker, statement: ast.Assign) -> Iterator[Edit]:
    source = make.source
    target, value = source.get(statement.targets[0]), source.get(statement.value)
    a, b = source.span(statement.targets[0])[1], source.span(statement.value)[0]
    found = re.search(r"=", source.text[a:b])
    if found is not None and isinstance(statement.targets[0], ast.Name | ast.Attribute | ast.Subscript):
        for operator in ("+=", "-=", "|=", "*="):
            yield make.splice(
                a + found.start(),
                a + found.end(),
                operator,
                "augmented-operator",
                0.3 if operator == "+=" else 0.1,
                f"`=` → `{operator}`",
            )
        if "\n" not in value and isinstance(statement.targets[0], ast.Name | ast.Attribute):
            for method in ("append", "extend", "add", "update"):
                yield make.replace(statement, f"{target}.{method}({value})", "assignment-to-call", 0.05)
    if isinstance(statement.targets[0], ast.Tuple) and isinstance(statement.value, ast.Tuple):
        names, values = statement.targets[0].elts, statement.value.elts
        if len(names) == len(values) == 2 and "\n" not in source.get(statement):
            indent, eol = source.indent(statement), source.eol()
            n, v = [source.get(part) for part in names], [source.get(part) for part in values]
            yield make.replace(
                statement, f"{n[0]} = {v[0]}{eol}{indent}{n[1]} = {v[1]}", "split-assignment", 0.1
            )
            yield make.replace(
                statement, f"{n[1]} = {v[1]}{eol}{indent}{n[0]} = {v[0]}", "split-assignment", 0.1
            )
    # x = a; y = b -> x, y = a, b
    block = block_of(make, statement)
    index = next(i for i, item in enumerate(block) if item is statement)
    if index + 1 < len(block):
        other = block[index + 1]
        if isinstance(other, ast.Assign) and len(other.targets) == 1:
            left, right = source.get(other.targets[0]), source.get(other.value)
            if "\n" not in value + right and not isinstance(statement.value, ast.Tuple):
                yield make.splice(
                    source.span(statement)[0],
                    source.span(other)[1],
                    f"{target}, {left} = {value}, {right}",
                    "join-assignments",
                    0.25,
                    f"assign `{target}` and `{left}` at once",
                )


def _expression_statement(make: Maker, statement: ast.Expr) -> Iterator[Edit]:
    source = make.source
    value = statement.value
    text = source.get(value)
    if isinstance(value, ast.Constant) or "\n" in text:
        return
    if isinstance(value, ast.Yield | ast.YieldFrom | ast.Await):
        if isinstance(value, ast.Yield) and value.value is not None:
            yield make.replace(value, f"return {source.get(value.value)}", "yield-to-return", 0.05)
        return
    yield make.replace(statement, f"return {text}", "missing-return", 0.4)
    yield make.replace(statement, f"yield {text}", "missing-yield", 0.1)
    yield make.replace(statement, f"yield from {text}", "yield-from", 0.2)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        receiver = source.get(value.func.value)
        arguments = [source.get(argument) for argument in value.args]
        if isinstance(value.func.value, ast.Name | ast.Attribute | ast.Subscript):
            yield make.replace(statement, f"{receiver} = {text}", "keep-result", 0.3)
            if len(arguments) == 1:
                argument = make.operand(value.args[0])
                for form in ("{0} = {1}", "{0} += {1}", "{0} = {0} + {1}", "{0} |= {1}", "{0} = {0} + [{1}]"):
                    yield make.replace(statement, form.format(receiver, argument), "call-to-assignment", 0.08)
                yield make.replace(statement, f"{receiver}[{argument}] = True", "call-to-assignment", 0.02)
                for name in make.scope.locals[:10]:
                    yield make.replace(
                        statement, f"{receiver}[{name}] = {argument}", "call-to-assignment", 0.06
                    )
                    yield make.replace(
                        statement, f"{receiver}[{name}:] = [{argument}]", "call-to-assignment", 0.02
                    )
                    if name != receiver:
                        yield make.replace(value.func.value, name, "wrong-variable", 0.2)
            if len(arguments) == 2 and value.func.attr in ("insert", "setdefault"):
                yield make.replace(
                    statement, f"{receiver}[{arguments[0]}] = {arguments[1]}", "call-to-assignment", 0.2
                )
    for name in make.scope.locals[:10]:
        if name not in ("self", "cls"):
            yield make.replace(statement, f"{name} = {text}", "keep-result", 0.1)
            yield make.replace(statement, f"{name} += {text}", "keep-result", 0.04)


def defaults_edits(make: Maker, function: Function) -> Iterator[Edit]:
    """A mutable default becomes None and is made anew in the body; other defaults change."""
    source = make.source
    names = function.args.args[len(function.args.args) - len(function.args.defaults) :]
    pairs: list[tuple[ast.arg, ast.expr]] = list(zip(names, function.args.defaults, strict=True))
    pairs += [
        (argument, default)
        for argument, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
        if default is not None
    ]
    body = function.body
    first = body[1] if len(body) > 1 and is_docstring(body[0]) else body[0]
    whole = rows(make, first)
    for argument, default in pairs:
        text = source.get(default)
        mutable = isinstance(default, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.Call)
        if mutable and whole is not None:
            start, end = source.span(default)
            indent, eol = source.indent(first), source.eol()
            unit = indent_unit(make, indent)
            guard = f"{indent}if {argument.arg} is None:{eol}{indent}{unit}{argument.arg} = {text}{eol}"
            between = source.text[end : whole[0]]
            yield make.splice(
                start,
                whole[0],
                f"None{between}{guard}",
                "mutable-default",
                0.9,
                f"`{argument.arg}` gets a new `{short(text)}` at each call",
            )
        for new in ("None", "True", "False", "0", "1", "''"):
            if new != text:
                yield make.replace(default, new, "default-argument", 0.1)

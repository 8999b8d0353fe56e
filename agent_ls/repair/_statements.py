"""Edit operators on statements: delete, move, guard, wrap, insert, change the form."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from agent_ls.repair._expressions import Maker, short
from agent_ls.repair.edits import Edit
from agent_ls.repair.scope import expression_kind, negated
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


def block_of(make: Maker, statement: ast.stmt) -> list[ast.stmt]:
    """The list of statements that holds `statement`."""
    parent = make.source.parents[statement]
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and any(item is statement for item in block):
            return block
    return [statement]


def rows(make: Maker, statement: ast.stmt) -> tuple[int, int] | None:
    """Offsets of the whole lines of a statement (line break included); None if it shares a line."""
    source = make.source
    start, end = source.span(statement)
    begin = source.starts[source.line_of(start) - 1]
    last = source.line_of(end)
    stop = source.starts[last] if last < len(source.starts) else len(source.text)
    if (
        source.text[begin:start].strip()
        or re.match(r"\s*(#.*)?$", source.text[end:stop].rstrip("\r\n")) is None
    ):
        return None
    return begin, stop


def statement_edits(make: Maker, statement: ast.stmt) -> Iterator[Edit]:
    """Edits of one statement as a whole."""
    if isinstance(
        statement, Function | ast.ClassDef | ast.Import | ast.ImportFrom | ast.Global | ast.Nonlocal
    ):
        if isinstance(statement, Function):
            yield from _defaults(make, statement)
        return
    whole = rows(make, statement)
    if whole is None:
        return
    block = block_of(make, statement)
    index = next(i for i, item in enumerate(block) if item is statement)
    yield from _delete_and_move(make, statement, whole, block, index)
    yield from _insert(make, statement, whole, block, index)
    yield from _form(make, statement, whole)


def _dedented(text: str, old: str, new: str) -> str:
    """Lines with the indentation `old` at their start replaced by `new`."""
    lines = text.splitlines(keepends=True)
    return "".join(new + line[len(old) :] if line.startswith(old) else line for line in lines)


def _unit(make: Maker, indent: str) -> str:
    return "\t" if "\t" in indent else "    "


def _text(make: Maker, whole: tuple[int, int]) -> str:
    text = make.source.text[whole[0] : whole[1]]
    return text if text.endswith(("\n", "\r")) else text + make.source.eol()


def _delete_and_move(
    make: Maker, statement: ast.stmt, whole: tuple[int, int], block: list[ast.stmt], index: int
) -> Iterator[Edit]:
    source = make.source
    indent, eol = source.indent(statement), source.eol()
    text = _text(make, whole)
    name = short(text.strip())
    docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    if not docstring and not isinstance(statement, ast.Pass):
        if len(block) > 1:
            yield make.splice(*whole, "", "delete-statement", 0.15, f"delete `{name}`")
        else:
            yield make.splice(*whole, f"{indent}pass{eol}", "delete-statement", 0.1, f"delete `{name}`")
    if docstring:
        return
    # swap with later neighbours, one to three places
    for step in (1, 2, 3):
        if index + step < len(block):
            other = rows(make, block[index + step])
            if other is not None:
                between = source.text[whole[1] : other[0]]
                middle = source.text[whole[1] : other[1]]
                swapped = _text(make, other) + between + text
                if step == 1:
                    yield make.splice(
                        whole[0], other[1], swapped, "swap-statements", 0.3, f"swap `{name}` with the next"
                    )
                else:
                    moved = middle if middle.endswith(("\n", "\r")) else middle + eol
                    yield make.splice(
                        whole[0], other[1], moved + text, "move-statement", 0.12, f"move `{name}` down"
                    )
        if index - step >= 0 and step > 1:
            other = rows(make, block[index - step])
            if other is not None:
                middle = source.text[other[0] : whole[0]]
                yield make.splice(
                    other[0], whole[1], text + middle, "move-statement", 0.12, f"move `{name}` up"
                )
    parent = source.parents[statement]
    # dedent: out of the block it ends (or begins)
    if isinstance(parent, ast.stmt) and not isinstance(parent, Function | ast.ClassDef):
        outer = source.indent(parent)
        inner = block[:index]
        last = index == len(block) - 1
        if last and inner and (parent.end_lineno == statement.end_lineno):
            yield make.splice(
                *whole, _dedented(text, indent, outer), "dedent", 0.3, f"move `{name}` out of the block"
            )
        if (
            last
            and parent.end_lineno != statement.end_lineno
            and inner
            and block is getattr(parent, "body", None)
        ):
            around = rows(make, parent)
            if around is not None:
                rest = source.text[whole[1] : around[1]]
                rest = rest if rest.endswith(("\n", "\r")) else rest + eol
                yield make.splice(
                    whole[0],
                    around[1],
                    rest + _dedented(text, indent, outer),
                    "dedent",
                    0.15,
                    f"move `{name}` behind the block",
                )
        if index == 0 and len(block) > 1 and block is getattr(parent, "body", None):
            around = rows(make, parent)
            if around is not None:
                header = source.text[around[0] : whole[0]]
                yield make.splice(
                    around[0],
                    whole[1],
                    _dedented(text, indent, outer) + header,
                    "dedent",
                    0.15,
                    f"move `{name}` before the block",
                )
        # the rest of the block from here on
        if 0 < index < len(block) - 1 and parent.end_lineno == block[-1].end_lineno:
            tail_rows = rows(make, block[-1])
            if tail_rows is not None:
                tail = source.text[whole[0] : tail_rows[1]]
                yield make.splice(
                    whole[0],
                    tail_rows[1],
                    _dedented(tail, indent, outer),
                    "dedent",
                    0.12,
                    f"end the block before `{name}`",
                )
        if isinstance(parent, ast.If | ast.With) and len(block) == 1 and not getattr(parent, "orelse", None):
            around = rows(make, parent)
            if around is not None:
                yield make.splice(
                    *around,
                    _dedented(text, indent, outer),
                    "unwrap-block",
                    0.15,
                    f"`{name}` without the condition",
                )
    # indent: into the block before it
    if index > 0:
        before = block[index - 1]
        bodies: list[list[ast.stmt]] = []
        if isinstance(before, ast.If | ast.For | ast.While | ast.With | ast.Try):
            bodies.append(before.body)
            if getattr(before, "orelse", None):
                bodies.append(before.orelse)  # type: ignore[union-attr]
        for body in bodies[-1:]:
            deepest = body[-1]
            chain = [deepest]
            while isinstance(deepest, ast.If | ast.For | ast.While | ast.With) and deepest.body:
                deepest = (
                    deepest.orelse if not isinstance(deepest, ast.With) and deepest.orelse else deepest.body
                )[-1]
                chain.append(deepest)
            for target in chain:
                if target.end_lineno == before.end_lineno:
                    new = _dedented(text, indent, source.indent(target))
                    yield make.splice(*whole, new, "indent", 0.2, f"move `{name}` into the block before it")


def _insert(
    make: Maker, statement: ast.stmt, whole: tuple[int, int], block: list[ast.stmt], index: int
) -> Iterator[Edit]:
    source, scope = make.source, make.scope
    indent, eol = source.indent(statement), source.eol()
    unit = _unit(make, indent)
    at = whole[0]
    function = scope.function
    in_loop = any(isinstance(node, ast.For | ast.While) for node in _inside(make, statement))
    docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    if docstring:
        return
    # guards: leave early when something holds
    exits: list[tuple[str, float]] = []
    if function is not None:
        first = block is function.body and (index == 0 or (index == 1 and _is_docstring(block[0])))
        exits += [(text, weight * (1.5 if first else 1.0)) for text, weight in _returns(make, function)]
    if in_loop:
        exits += [("continue", 0.6), ("break", 0.5)]
    for j, (leave, weight) in enumerate(exits[:16]):
        for i, (condition, cweight) in enumerate(scope.conditions[:60]):
            prior = 0.16 * weight * cweight / (1 + i / 20) / (1 + j / 8)
            yield make.splice(
                at,
                at,
                f"{indent}if {condition}:{eol}{indent}{unit}{leave}{eol}",
                "insert-guard",
                prior,
                f"if `{condition}`: `{leave}`",
            )
    for leave, weight in exits[:8]:
        if index == len(block) - 1 or not leave.startswith("return"):
            end = whole[1]
            text = source.text[whole[0] : whole[1]]
            lead = "" if text.endswith(("\n", "\r")) else eol
            if not isinstance(statement, ast.Return | ast.Raise | ast.Continue | ast.Break):
                yield make.splice(
                    end,
                    end,
                    f"{lead}{indent}{leave}{eol}",
                    "insert-exit",
                    0.12 * weight,
                    f"`{leave}` after it",
                )
    # wrap in a condition
    text = _text(make, whole)
    if not isinstance(statement, ast.Return | ast.FunctionDef) or index < len(block) - 1:
        for i, (condition, weight) in enumerate(scope.conditions[:60]):
            new = f"{indent}if {condition}:{eol}{_dedented(text, indent, indent + unit)}"
            yield make.splice(
                *whole, new, "wrap-in-condition", 0.14 * weight / (1 + i / 20), f"only if `{condition}`"
            )
    for new, prior in _new_statements(make, statement):
        yield make.splice(
            at, at, f"{indent}{new}{eol}", "insert-statement", prior, f"insert `{short(new)}` before it"
        )
        if index == len(block) - 1 and not isinstance(
            statement, ast.Return | ast.Raise | ast.Continue | ast.Break
        ):
            lead = "" if text == source.text[whole[0] : whole[1]] else eol
            yield make.splice(
                whole[1],
                whole[1],
                f"{lead}{indent}{new}{eol}",
                "insert-statement",
                prior,
                f"insert `{short(new)}` after it",
            )
        if isinstance(statement, ast.For | ast.While | ast.If) and statement.body:
            inner = rows(make, statement.body[0])
            if inner is not None:
                deep = source.indent(statement.body[0])
                yield make.splice(
                    inner[0],
                    inner[0],
                    f"{deep}{new}{eol}",
                    "insert-statement",
                    prior * 0.8,
                    f"insert `{short(new)}` at the start of the block",
                )


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _inside(make: Maker, statement: ast.stmt) -> Iterator[ast.AST]:
    for node in make.source.ancestors(statement):
        if isinstance(node, Function | ast.ClassDef):
            return
        yield node


def _returns(make: Maker, function: Function) -> list[tuple[str, float]]:
    """Ways to leave the function: its own returns and raises, its parameters, usual constants."""
    found: dict[str, float] = {}
    generator = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))
    if generator:
        found["return"] = 1.0
    for node in ast.walk(function):
        if isinstance(node, ast.Return):
            text = make.source.get(node)
            if "\n" not in text and len(text) < 60 and not (node.value is not None and generator):
                found.setdefault(text, 0.9)
        elif isinstance(node, ast.Raise):
            text = make.source.get(node)
            if "\n" not in text and len(text) < 80:
                found.setdefault(text, 0.5)
    if not generator:
        for name in make.scope.parameters[:4]:
            found.setdefault(f"return {name}", 0.7)
        for constant, weight in (
            ("None", 0.6),
            ("0", 0.7),
            ("1", 0.6),
            ("[]", 0.6),
            ("True", 0.6),
            ("False", 0.6),
            ("''", 0.4),
            ("[[]]", 0.3),
            ("{}", 0.3),
            ("-1", 0.3),
        ):
            found.setdefault("return" if constant == "None" else f"return {constant}", weight)
        for name in make.scope.locals[:8]:
            found.setdefault(f"return {name}", 0.3)
    return sorted(found.items(), key=lambda item: -item[1])


def _new_statements(make: Maker, statement: ast.stmt) -> Iterator[tuple[str, float]]:
    """Statements made from names in reach, and those of the same function again."""
    scope, source = make.scope, make.source
    near = [atom for atom in scope.atoms[:14] if atom.kind != "call" and atom.text not in ("self", "cls")]
    targets = [
        atom
        for atom in near
        if re.fullmatch(r"[\w.]+|[\w.]+\[[^\[\]]+\]", atom.text) and atom.text not in scope.module_names
    ]
    for target in targets:
        if target.kind in ("num", ""):
            yield f"{target.text} += 1", 0.12 * target.weight
            yield f"{target.text} -= 1", 0.08 * target.weight
        for value in near:
            if value.text == target.text:
                continue
            same = target.kind == value.kind or "" in (target.kind, value.kind)
            weight = target.weight * value.weight
            yield f"{target.text} = {value.text}", (0.12 if same else 0.03) * weight
            if target.kind in ("num", "") and value.kind in ("num", ""):
                yield f"{target.text} += {value.text}", 0.05 * weight
                yield f"{target.text} -= {value.text}", 0.03 * weight
                yield f"{target.text} = max({target.text}, {value.text})", 0.05 * weight
                yield f"{target.text} = min({target.text}, {value.text})", 0.04 * weight
            if target.kind in ("list", ""):
                yield f"{target.text}.append({value.text})", 0.07 * weight
                if value.kind in ("list", ""):
                    yield f"{target.text}.extend({value.text})", 0.05 * weight
            if target.kind in ("set", ""):
                yield f"{target.text}.add({value.text})", (0.15 if target.kind == "set" else 0.05) * weight
        yield f"{target.text} = {target.text}.copy()", 0.06 * target.weight
        if target.kind in ("list", "str", ""):
            for call in ("list", "sorted"):
                yield f"{target.text} = {call}({target.text})", 0.05 * target.weight
        for constant in ("0", "[]", "None", "1", "''", "{}", "False", "True"):
            yield f"{target.text} = {constant}", 0.03 * target.weight
    function = scope.function
    if function is not None:
        for node in ast.walk(function):
            if (
                isinstance(node, ast.Assign | ast.AugAssign | ast.Expr)
                and node is not statement
                and not _is_docstring(node)
            ):
                text = source.get(node)
                if "\n" not in text and len(text) <= 70:
                    yield text, 0.14
                    yield from _renamed(make, node, text)
        if scope.method_class is not None and function.name == "__init__":
            yield "super().__init__()", 0.2


def _renamed(make: Maker, statement: ast.stmt, text: str) -> Iterator[tuple[str, float]]:
    """The statement with one name exchanged for another in reach."""
    names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    for name in sorted(names):
        for other in make.scope.locals[:10]:
            if other not in names and name in make.scope.locals and other not in ("self", "cls"):
                yield re.sub(rf"(?<![\w.]){re.escape(name)}\b", other, text), 0.03


def _form(make: Maker, statement: ast.stmt, whole: tuple[int, int]) -> Iterator[Edit]:
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
                    _dedented(b, source.indent(statement.orelse[0]), indent),
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
        unit = _unit(make, indent)
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


def _defaults(make: Maker, function: Function) -> Iterator[Edit]:
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
    first = body[1] if len(body) > 1 and _is_docstring(body[0]) else body[0]
    whole = rows(make, first)
    for argument, default in pairs:
        text = source.get(default)
        mutable = isinstance(default, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.Call)
        if mutable and whole is not None:
            start, end = source.span(default)
            indent, eol = source.indent(first), source.eol()
            unit = _unit(make, indent)
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

"""Edit operators on expressions: operators, constants, names, attributes, subscripts, terms."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from agent_ls.repair.edits import Edit
from agent_ls.repair.scope import Scope, expression_kind, negated
from agent_ls.repair.source import Source

COMPARE: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: (r"<(?!=)", "<"),
    ast.LtE: (r"<=", "<="),
    ast.Gt: (r">(?!=)", ">"),
    ast.GtE: (r">=", ">="),
    ast.Eq: (r"==", "=="),
    ast.NotEq: (r"!=", "!="),
    ast.Is: (r"\bis\b(?!\s+not\b)", "is"),
    ast.IsNot: (r"\bis\s+not\b", "is not"),
    ast.In: (r"\bin\b", "in"),
    ast.NotIn: (r"\bnot\s+in\b", "not in"),
}
_COMPARE_SWAPS: dict[str, tuple[tuple[str, float], ...]] = {
    "<": (("<=", 1), (">", 0.8), (">=", 0.6), ("==", 0.2), ("!=", 0.4)),
    "<=": (("<", 1), (">=", 0.8), (">", 0.6), ("==", 0.3), ("!=", 0.2)),
    ">": ((">=", 1), ("<", 0.8), ("<=", 0.6), ("==", 0.2), ("!=", 0.4)),
    ">=": ((">", 1), ("<=", 0.8), ("<", 0.6), ("==", 0.3), ("!=", 0.2)),
    "==": (("!=", 1), ("is", 0.3), ("<=", 0.5), (">=", 0.5), ("in", 0.5), ("<", 0.3), (">", 0.3)),
    "!=": (("==", 1), ("is not", 0.3), ("<", 0.4), (">", 0.4), ("not in", 0.5), ("<=", 0.2), (">=", 0.2)),
    "is": (("is not", 1), ("==", 1)),
    "is not": (("is", 1), ("!=", 1)),
    "in": (("not in", 1), ("==", 0.4)),
    "not in": (("in", 1), ("!=", 0.4)),
}
BINARY: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: (r"\+", "+"),
    ast.Sub: (r"-", "-"),
    ast.Mult: (r"\*(?!\*)", "*"),
    ast.Div: (r"/(?!/)", "/"),
    ast.FloorDiv: (r"//", "//"),
    ast.Mod: (r"%", "%"),
    ast.Pow: (r"\*\*", "**"),
    ast.BitAnd: (r"&", "&"),
    ast.BitOr: (r"\|", "|"),
    ast.BitXor: (r"\^", "^"),
    ast.LShift: (r"<<", "<<"),
    ast.RShift: (r">>", ">>"),
    ast.MatMult: (r"@", "@"),
}
_BINARY_SWAPS: dict[str, tuple[tuple[str, float], ...]] = {
    "+": (("-", 1), ("*", 0.5), ("|", 0.1), ("%", 0.1)),
    "-": (("+", 1), ("*", 0.2), ("/", 0.2), ("%", 0.2), ("//", 0.2)),
    "*": (("+", 0.6), ("**", 0.6), ("/", 0.6), ("//", 0.5), ("-", 0.3)),
    "/": (("//", 1), ("*", 0.7), ("%", 0.5), ("-", 0.2)),
    "//": (("/", 1), ("%", 0.7), ("*", 0.5), ("-", 0.2)),
    "%": (("//", 1), ("/", 0.5), ("-", 0.2), ("+", 0.1)),
    "**": (("*", 1), ("+", 0.2)),
    "&": (("|", 1), ("^", 0.8), ("-", 0.2)),
    "|": (("&", 1), ("^", 0.8), ("+", 0.2)),
    "^": (("&", 1), ("|", 0.9), ("**", 0.9)),
    "<<": ((">>", 1),),
    ">>": (("<<", 1),),
    "@": (("*", 0.5),),
}
_TIGHT = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Attribute, ast.Await, ast.Starred, ast.IfExp)
_LOOSE = (ast.BinOp, ast.BoolOp, ast.Compare, ast.UnaryOp, ast.IfExp, ast.Lambda, ast.NamedExpr, ast.Tuple)


class Maker:
    """Makes edits of one statement: keeps the source, the scope and the statement's line."""

    def __init__(self, source: Source, scope: Scope, line: int) -> None:
        self.source = source
        self.scope = scope
        self.line = line

    def replace(self, node: ast.AST, new: str, operator: str, prior: float, what: str = "") -> Edit:
        start, end = self.source.span(node)
        old = self.source.text[start:end]
        return self.splice(start, end, new, operator, prior, what or f"`{short(old)}` → `{short(new)}`")

    def splice(self, start: int, end: int, new: str, operator: str, prior: float, what: str) -> Edit:
        return Edit(self.line, start, end, new, operator, what, prior)

    def fit(self, node: ast.AST, new: str) -> str:
        """`new`, in parentheses when the place of `node` needs them."""
        parent = self.source.parents.get(node)
        tight = isinstance(parent, _TIGHT) or (
            isinstance(parent, ast.Subscript | ast.Call)
            and not (
                (isinstance(parent, ast.Subscript) and node is parent.slice)
                or (isinstance(parent, ast.Call) and node is not parent.func)
            )
        )
        return f"({new})" if tight else new

    def operand(self, node: ast.expr) -> str:
        """The text of `node`, in parentheses when it is compound."""
        text = self.source.get(node)
        return f"({text})" if isinstance(node, _LOOSE) or "\n" in text else text


def short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:57]}…"


def quoted(value: str, like: str) -> str:
    """A string literal in the quotes that the literal `like` has, where that is simple."""
    text = repr(value)
    if like.startswith('"') and text.startswith("'") and '"' not in text:
        return f'"{text[1:-1]}"'
    return text


def expression_edits(make: Maker, node: ast.expr) -> Iterator[Edit]:
    """Edits of one expression node (its children are visited apart)."""
    if isinstance(node, ast.Compare):
        yield from _compare(make, node)
    elif isinstance(node, ast.BinOp):
        yield from _binary(make, node)
    elif isinstance(node, ast.BoolOp):
        yield from _boolean(make, node)
    elif isinstance(node, ast.UnaryOp):
        operand = make.operand(node.operand)
        name = "negate-condition" if isinstance(node.op, ast.Not) else "drop-unary"
        yield make.replace(node, operand, name, 0.6)
    elif isinstance(node, ast.Constant):
        yield from _constant(make, node)
    elif isinstance(node, ast.Name):
        yield from _name(make, node)
    elif isinstance(node, ast.Attribute):
        yield from _attribute(make, node)
    elif isinstance(node, ast.Subscript):
        yield from _subscript(make, node)
    elif isinstance(node, ast.IfExp):
        body, test, other = make.operand(node.body), make.operand(node.test), make.operand(node.orelse)
        yield make.replace(node, f"{other} if {test} else {body}", "swap-branches", 0.5)
        yield make.replace(node, body, "pick-branch", 0.2)
        yield make.replace(node, other, "pick-branch", 0.2)
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
        yield from _comprehension(make, node)
    elif isinstance(node, ast.List | ast.Tuple | ast.Dict | ast.Set):
        yield from _container(make, node)
    elif isinstance(node, ast.Yield) and node.value is not None:
        yield make.replace(node, f"yield from {make.source.get(node.value)}", "yield-from", 0.4)
    elif isinstance(node, ast.YieldFrom):
        yield make.replace(node, f"yield {make.source.get(node.value)}", "yield-from", 0.5)
    elif isinstance(node, ast.Await):
        yield make.replace(node, make.source.get(node.value), "drop-await", 0.2)
    elif isinstance(node, ast.Lambda):
        parameters = [argument.arg for argument in node.args.args]
        for name in parameters:
            if make.source.get(node.body) != name:
                yield make.replace(node.body, name, "lambda-body", 0.1)


def value_edits(make: Maker, node: ast.expr) -> Iterator[Edit]:
    """Edits of an expression as a value: ± 1, another expression in its place, a bound, a slice."""
    parent = make.source.parents.get(node)
    text = make.source.get(node)
    if (
        isinstance(node, ast.Starred | ast.Slice | ast.Lambda | ast.JoinedStr | ast.GeneratorExp)
        or "\n" in text
    ):
        return
    if isinstance(parent, ast.Attribute) or (isinstance(parent, ast.Call) and parent.func is node):
        return
    kind = make.scope.kind(node.id) if isinstance(node, ast.Name) else expression_kind(node)
    operand = make.operand(node)
    if not isinstance(node, ast.Constant | ast.Tuple | ast.List | ast.Dict) and kind in ("", "num"):
        usual = 1.0 if kind == "num" or _numeric_place(make, node) else 0.25
        yield make.replace(node, make.fit(node, f"{operand} + 1"), "off-by-one", 0.7 * usual)
        yield make.replace(node, make.fit(node, f"{operand} - 1"), "off-by-one", 0.7 * usual)
        if usual == 1.0:
            yield make.replace(node, make.fit(node, f"-{operand}"), "negate-number", 0.15)
            yield make.replace(node, f"abs({text})", "wrap-call", 0.12)
            yield make.replace(node, f"max({text}, 0)", "bound", 0.08)
            for factor in ("* 2", "// 2", "% 2"):
                yield make.replace(node, make.fit(node, f"{operand} {factor}"), "scale", 0.06)
    outer = isinstance(parent, ast.stmt | ast.keyword | ast.Call | ast.comprehension | ast.BinOp)
    if outer and kind in ("", "num", "str", "list"):
        for atom in make.scope.atoms[:16]:
            if atom.text == text or atom.kind in ("call", "dict") or atom.text in ("self", "cls"):
                continue
            if kind and atom.kind and atom.kind != kind:
                continue
            base = 0.12 * atom.weight * (1.0 if kind == atom.kind and kind else 0.5)
            for operator in ("+", "-", "*") if kind != "list" and kind != "str" else ("+",):
                yield make.replace(
                    node,
                    make.fit(node, f"{operand} {operator} {atom.text}"),
                    "add-term",
                    base * (0.4 if operator == "*" else 1),
                )
            if kind in ("", "list", "str"):
                yield make.replace(node, make.fit(node, f"{atom.text} + {operand}"), "add-term", base * 0.5)
            if kind in ("num", ""):
                for call in ("max", "min"):
                    yield make.replace(node, f"{call}({text}, {atom.text})", "bound", base * 0.8)
                yield make.replace(node, make.fit(node, f"{operand} % {atom.text}"), "add-term", base * 0.3)
    if kind in ("", "list", "str") and not isinstance(node, ast.Constant | ast.Compare | ast.BoolOp):
        usual = 0.15 if kind else 0.07
        for tail in ("[1:]", "[:-1]", "[::-1]", "[:]", "[0]", "[-1]"):
            yield make.replace(node, f"{operand}{tail}", "slice", usual)
        for atom in make.scope.atoms[:10]:
            if atom.kind in ("num", "") and atom.text != text and "." not in atom.text:
                for form in (f"[{atom.text}:]", f"[:{atom.text}]", f"[{atom.text}]", f"[{atom.text} + 1:]"):
                    yield make.replace(node, f"{operand}{form}", "slice", usual * 0.5 * atom.weight)
    if isinstance(
        node, ast.Name | ast.Call | ast.Subscript | ast.Attribute | ast.List | ast.Dict
    ) and isinstance(parent, ast.stmt | ast.keyword):
        for fallback in ("[]", "0", "{}", "''"):
            yield make.replace(node, f"{operand} or {fallback}", "default-value", 0.03)
    place = 1.0 if isinstance(parent, ast.Call | ast.Return | ast.Assign | ast.Subscript | ast.For) else 0.6
    for other, other_kind in make.scope.expressions:
        if other != text and (not kind or not other_kind or kind == other_kind):
            likeness = similarity(text, other)
            yield make.replace(
                node, make.fit(node, other), "replace-expression", place * (0.03 + 0.2 * likeness)
            )
    if isinstance(parent, ast.stmt) and not isinstance(node, ast.Name | ast.Constant):
        for atom in make.scope.atoms[:14]:
            yield make.replace(node, atom.text, "replace-expression", 0.08 * atom.weight)


def similarity(a: str, b: str) -> float:
    """Jaccard index of the identifiers and operators of two texts (0..1)."""
    left, right = set(re.findall(r"\w+|[^\w\s]", a)), set(re.findall(r"\w+|[^\w\s]", b))
    return len(left & right) / max(1, len(left | right))


def _numeric_place(make: Maker, node: ast.expr) -> bool:
    parent = make.source.parents.get(node)
    if isinstance(parent, ast.Subscript):
        return node is parent.slice
    if isinstance(parent, ast.Slice):
        return True
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name):
        return parent.func.id in ("range", "min", "max", "abs", "round", "chr", "divmod", "pow")
    if isinstance(parent, ast.Compare):
        return any(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in parent.ops)
    return isinstance(parent, ast.BinOp) and not isinstance(parent.op, ast.Mod)


def _compare(make: Maker, node: ast.Compare) -> Iterator[Edit]:
    sides = [node.left, *node.comparators]
    for index, op in enumerate(node.ops):
        pattern, name = COMPARE[type(op)]
        between = _gap(make.source, sides[index], sides[index + 1])
        found = re.search(pattern, make.source.text[between[0] : between[1]])
        if found is None:
            continue
        a, b = between[0] + found.start(), between[0] + found.end()
        for new, weight in _COMPARE_SWAPS[name]:
            yield make.splice(a, b, new, "compare-operator", 0.9 * weight, f"`{name}` → `{new}`")
    last = node.comparators[-1]
    if len(node.ops) == 1 and isinstance(last, ast.Constant) and type(last.value) is int:
        name = COMPARE[type(node.ops[0])][1]
        for new, _ in _COMPARE_SWAPS.get(name, ())[:5]:
            for number in (last.value + 1, last.value - 1):
                if new in ("<", "<=", ">", ">=", "==", "!="):
                    both = f"{make.operand(node.left)} {new} {number}"
                    yield make.replace(node, both, "compare-constant", 0.15)
    if len(node.ops) == 1:
        left, right = make.operand(node.left), make.operand(node.comparators[0])
        op_text = COMPARE[type(node.ops[0])][1]
        if op_text in ("in", "not in"):
            yield make.replace(node, f"{right} {op_text} {left}", "swap-operands", 0.2)
        if op_text in ("==", "!="):
            for method in (".lower()", ".strip()"):
                yield make.replace(
                    node, f"{left}{method} {op_text} {right}{method}", "normalise-compare", 0.04
                )
        if op_text in ("<", "<=", ">", ">="):
            yield make.replace(node.left, f"abs({make.source.get(node.left)})", "wrap-call", 0.1)


def _gap(source: Source, left: ast.expr, right: ast.expr) -> tuple[int, int]:
    return source.span(left)[1], source.span(right)[0]


def _binary(make: Maker, node: ast.BinOp) -> Iterator[Edit]:
    pattern, name = BINARY[type(node.op)]
    between = _gap(make.source, node.left, node.right)
    found = re.search(pattern, make.source.text[between[0] : between[1]])
    if found is not None:
        a, b = between[0] + found.start(), between[0] + found.end()
        for new, weight in _BINARY_SWAPS[name]:
            yield make.splice(a, b, new, "arithmetic-operator", 0.7 * weight, f"`{name}` → `{new}`")
    left, right = make.operand(node.left), make.operand(node.right)
    yield make.replace(node, left, "drop-term", 0.45)
    yield make.replace(node, right, "drop-term", 0.35)
    if name not in ("+", "*", "&", "|", "^") or expression_kind(node) != "num":
        yield make.replace(node, f"{right} {name} {left}", "swap-operands", 0.35)
    yield from _regroup(make, node)


def _regroup(make: Maker, node: ast.BinOp) -> Iterator[Edit]:
    """a * b + c -> a * (b + c) and a - b * c -> (a - b) * c, also over longer chains."""
    text = make.source.text
    start, end = make.source.span(node)
    leaf: ast.expr = node.left
    while isinstance(leaf, ast.BinOp):
        leaf = leaf.right
        at = make.source.span(leaf)[0]
        yield make.replace(node, make.fit(node, f"{text[start:at]}({text[at:end]})"), "regroup", 0.3)
    leaf = node.right
    while isinstance(leaf, ast.BinOp):
        leaf = leaf.left
        at = make.source.span(leaf)[1]
        yield make.replace(node, make.fit(node, f"({text[start:at]}){text[at:end]}"), "regroup", 0.3)


def _boolean(make: Maker, node: ast.BoolOp) -> Iterator[Edit]:
    name = "and" if isinstance(node.op, ast.And) else "or"
    other = "or" if name == "and" else "and"
    values = [make.operand(value) for value in node.values]
    yield make.replace(node, make.fit(node, f" {other} ".join(values)), "and-or", 0.8)
    for index in range(len(values)):
        rest = values[:index] + values[index + 1 :]
        new = f" {name} ".join(rest)
        yield make.replace(node, make.fit(node, new) if len(rest) > 1 else new, "drop-condition", 0.4)
    yield make.replace(node, make.fit(node, f" {name} ".join(reversed(values))), "swap-operands", 0.2)


def condition_edits(make: Maker, test: ast.expr) -> Iterator[Edit]:
    """Edits of an expression that is used as a condition."""
    text = make.source.get(test)
    multiline = "\n" in text
    yield make.replace(test, f"not ({text})" if multiline else negated(test, text), "negate-condition", 0.6)
    operand = f"({text})" if multiline or isinstance(test, ast.BoolOp | ast.IfExp | ast.Lambda) else text
    for index, (condition, weight) in enumerate(make.scope.conditions[:160]):
        if condition == text:
            continue
        prior = 0.22 * weight / (1 + index / 40)
        yield make.replace(test, make.fit(test, f"{operand} and {condition}"), "add-condition", prior)
        yield make.replace(test, make.fit(test, f"{operand} or {condition}"), "add-condition", prior)
        if index < 100:
            yield make.replace(test, make.fit(test, condition), "replace-condition", prior * 0.7)
        if index < 40:
            yield make.replace(
                test, make.fit(test, f"{condition} and {operand}"), "add-condition", prior * 0.7
            )
    if not isinstance(test, ast.Constant):
        yield make.replace(test, "True", "constant-condition", 0.05)
        yield make.replace(test, "False", "constant-condition", 0.05)


def _constant(make: Maker, node: ast.Constant) -> Iterator[Edit]:
    value = node.value
    parent = make.source.parents.get(node)
    if isinstance(parent, (ast.JoinedStr | ast.FormattedValue, ast.Expr)):
        return
    if isinstance(value, bool):
        yield make.replace(node, str(not value), "flip-boolean", 0.8)
        yield make.replace(node, "None", "constant", 0.1)
        if isinstance(parent, ast.Return | ast.Assign | ast.keyword | ast.While):
            for index, (condition, weight) in enumerate(make.scope.conditions[:120]):
                yield make.replace(node, condition, "constant-to-condition", 0.3 * weight / (1 + index / 40))
    elif isinstance(value, int):
        steps = (value + 1, value - 1, 0, 1, -1, 2, value * 2, value * 10, -value)
        for index, new in enumerate(dict.fromkeys(steps)):
            if new != value:
                sign = new < 0 and isinstance(parent, ast.BinOp | ast.UnaryOp | ast.Attribute)
                prior = 0.8 if index < 2 else 0.4 if index < 5 else 0.15
                yield make.replace(node, f"({new})" if sign else str(new), "constant", prior)
        for atom in make.scope.atoms[:14]:
            if atom.kind in ("num", "") and atom.text not in ("self", "cls"):
                yield make.replace(node, atom.text, "constant-to-name", 0.2 * atom.weight)
        if value == 0:
            for big in ("float('inf')", "float('-inf')", "None"):
                yield make.replace(node, big, "constant", 0.08)
        for name in make.scope.locals[:10]:
            if make.scope.kind(name) in ("list", "str", "dict", "set", ""):
                yield make.replace(node, f"len({name})", "constant-to-name", 0.08)
    elif isinstance(value, float):
        for number in (-value, 0.0, 1.0, value / 100, value * 100, value * 10, value / 10, 1 - value):
            if number != value and abs(number) != float("inf"):
                new_text = repr(number) if number >= 0 else f"({number!r})"
                yield make.replace(node, new_text, "constant", 0.3)
    elif isinstance(value, str):
        variants = (
            value.strip(),
            value.lower(),
            value.upper(),
            f" {value}",
            f"{value} ",
            value[:-1],
            value[1:],
        )
        for variant in dict.fromkeys(variants):
            if variant != value:
                yield make.replace(node, quoted(variant, make.source.get(node)), "string-constant", 0.1)
        for name in ("''", "' '", "None"):
            if name != repr(value):
                yield make.replace(node, name, "string-constant", 0.12)
        for match in re.finditer(r"%[sdrif]", value):
            for form in ("%s", "%d", "%r", "%f", "%02d", "%.2f"):
                if form != match.group():
                    new_text = quoted(
                        value[: match.start()] + form + value[match.end() :], make.source.get(node)
                    )
                    yield make.replace(node, new_text, "format", 0.2)
        for match in re.finditer(r"\{(\w*)\}", value):
            for form in (":02d", "!r", ":.2f", ":,"):
                changed = f"{value[: match.end() - 1]}{form}{value[match.end() - 1 :]}"
                new_text = quoted(changed, make.source.get(node))
                yield make.replace(node, new_text, "format", 0.06)
        for name in make.scope.locals[:10]:
            yield make.replace(node, name, "constant-to-name", 0.06)
    elif value is None and not isinstance(parent, ast.Compare):
        for literal in ("[]", "0", "{}", "''", "False", "True"):
            yield make.replace(node, literal, "constant", 0.15)
        for atom in make.scope.atoms[:12]:
            yield make.replace(node, atom.text, "constant-to-name", 0.15 * atom.weight)
    for index, other in enumerate(make.scope.constants[:24]):
        kind = expression_kind(ast.parse(other, mode="eval").body)
        if kind == expression_kind(node) and other != make.source.get(node):
            yield make.replace(node, other, "other-constant", 0.18 / (1 + index / 8))


def _name(make: Maker, node: ast.Name) -> Iterator[Edit]:
    scope = make.scope
    parent = make.source.parents.get(node)
    if isinstance(node.ctx, ast.Store):
        if isinstance(parent, ast.Assign | ast.AugAssign | ast.Tuple):
            for atom in scope.atoms[:14]:
                if atom.text != node.id and "(" not in atom.text and atom.text not in ("self", "cls"):
                    yield make.replace(node, atom.text, "assignment-target", 0.2 * atom.weight)
        return
    if isinstance(node.ctx, ast.Del):
        return
    if isinstance(parent, ast.Call) and parent.func is node:
        return  # callee: see the call operators
    kind = scope.kind(node.id)
    bound = set(scope.locals)
    for index, atom in enumerate(scope.atoms[:24]):
        if atom.text == node.id:
            continue
        same = kind and atom.kind == kind
        differs = kind and atom.kind and atom.kind != kind
        prior = 0.45 if same else 0.1 if differs else 0.3
        plain = 1.0 if atom.text in bound else 0.8
        yield make.replace(node, atom.text, "wrong-variable", prior * plain * atom.weight / (1 + index / 12))
    if node.id not in bound or node.id in ("self", "cls"):
        receiver = next((n for n in ("self", "cls") if n in bound), None)
        if receiver and node.id != receiver and node.id in scope.attributes.get(receiver, []):
            yield make.replace(node, f"{receiver}.{node.id}", "missing-self", 0.9)
    if not isinstance(parent, ast.Attribute) and node.id not in ("self", "cls"):
        own = scope.attributes.get(node.id, [])
        for attr in own[:6]:
            yield make.replace(node, f"{node.id}.{attr}", "add-attribute", 0.3)
        if kind in ("", "object"):
            for attr in scope.all_attributes[:6]:
                if attr not in own:
                    yield make.replace(node, f"{node.id}.{attr}", "add-attribute", 0.1)
    if kind == "bool":
        yield make.replace(node, make.fit(node, f"not {node.id}"), "negate-condition", 0.4)


def _attribute(make: Maker, node: ast.Attribute) -> Iterator[Edit]:
    scope = make.scope
    parent = make.source.parents.get(node)
    called = isinstance(parent, ast.Call) and parent.func is node
    if called:
        return
    start = make.source.span(node.value)[1]
    end = make.source.span(node)[1]
    others = scope.attributes.get(node.value.id, []) if isinstance(node.value, ast.Name) else []
    for index, attr in enumerate(dict.fromkeys([*others, *scope.all_attributes[:10]])):
        if attr != node.attr:
            prior = (0.4 if attr in others else 0.15) / (1 + index / 8)
            prior *= 1 + similarity(" ".join(attr.split("_")), " ".join(node.attr.split("_")))
            yield make.splice(
                start, end, f".{attr}", "wrong-attribute", min(prior, 0.6), f"`.{node.attr}` → `.{attr}`"
            )
    if isinstance(node.ctx, ast.Load):
        yield make.replace(node, make.operand(node.value), "drop-attribute", 0.25)
        yield make.replace(node, f"{make.source.get(node)}()", "missing-call", 0.2)
        for attr in others[:5]:
            yield make.replace(node, f"{make.source.get(node)}.{attr}", "add-attribute", 0.15)
        for atom in scope.atoms[:10]:
            if atom.text != make.source.get(node):
                yield make.replace(node, atom.text, "wrong-variable", 0.15 * atom.weight)
    elif isinstance(node.ctx, ast.Store):
        for atom in scope.atoms[:12]:
            if atom.text != make.source.get(node) and "[" not in atom.text:
                yield make.replace(node, atom.text, "assignment-target", 0.12 * atom.weight)


def _subscript(make: Maker, node: ast.Subscript) -> Iterator[Edit]:
    value = make.operand(node.value)
    load = isinstance(node.ctx, ast.Load)
    if isinstance(node.slice, ast.Slice):
        lower, upper, step = node.slice.lower, node.slice.upper, node.slice.step
        parts = [make.source.get(part) if part is not None else "" for part in (lower, upper, step)]

        def slice_text(a: str, b: str, c: str) -> str:
            return f"{value}[{a}:{b}{':' + c if c else ''}]"

        if lower is not None:
            yield make.replace(node, slice_text("", parts[1], parts[2]), "slice-bound", 0.3)
        if upper is not None:
            yield make.replace(node, slice_text(parts[0], "", parts[2]), "slice-bound", 0.4)
        if lower is not None and upper is None and not parts[2]:
            yield make.replace(node, slice_text("", parts[0], ""), "slice-bound", 0.4)
        if upper is not None and lower is None and not parts[2]:
            yield make.replace(node, slice_text(parts[1], "", ""), "slice-bound", 0.4)
        for bound in ("1", "-1", *(atom.text for atom in make.scope.atoms[:10] if atom.kind in ("num", ""))):
            if lower is None:
                yield make.replace(node, slice_text(bound, parts[1], parts[2]), "slice-bound", 0.15)
            if upper is None:
                yield make.replace(node, slice_text(parts[0], bound, parts[2]), "slice-bound", 0.15)
        if not parts[2]:
            yield make.replace(node, slice_text(parts[0], parts[1], "-1"), "slice-bound", 0.1)
        if load:
            yield make.replace(node, value, "drop-subscript", 0.15)
        return
    index = make.source.get(node.slice)
    if load:
        yield make.replace(node, value, "drop-subscript", 0.2)
        if not isinstance(node.slice, ast.UnaryOp | ast.Tuple):
            for default in ("", ", 0", ", []", ", ''", ", False", ", {}"):
                yield make.replace(node, f"{value}.get({index}{default})", "dict-get", 0.1)
            for atom in make.scope.atoms[:6]:
                yield make.replace(node, f"{value}.get({index}, {atom.text})", "dict-get", 0.03 * atom.weight)
        yield make.replace(node, f"{value}[{index}:]", "slice", 0.1)
        yield make.replace(node, f"{value}[:{index}]", "slice", 0.1)
        for more in ("[0]", "[1]", "[-1]"):
            yield make.replace(node, f"{make.source.get(node)}{more}", "add-subscript", 0.06)
    if isinstance(node.value, ast.Subscript) and not isinstance(node.value.slice, ast.Slice):
        inner = make.source.get(node.value.slice)
        yield make.replace(node, f"{make.operand(node.value.value)}[{index}][{inner}]", "swap-indices", 0.35)
    if isinstance(node.slice, ast.Tuple) and len(node.slice.elts) == 2:
        a, b = (make.source.get(part) for part in node.slice.elts)
        yield make.replace(node, f"{value}[{b}, {a}]", "swap-indices", 0.35)


def _comprehension(
    make: Maker, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
) -> Iterator[Edit]:
    for generator in node.generators:
        end = make.source.span(generator.ifs[-1] if generator.ifs else generator.iter)[1]
        names = [sub.id for sub in ast.walk(generator.target) if isinstance(sub, ast.Name)]
        if len(node.generators) == 1:
            stop = make.source.span(node)[1]
            closing = make.source.text[end : stop - 1]
            end += (
                len(closing) - len(closing.lstrip(")"))
                if closing.strip(") \n\t") == "" and ")" in closing
                else 0
            )
        for name in names:
            for condition in (name, f"{name} is not None", f"{name} > 0"):
                yield make.splice(
                    end, end, f" if {condition}", "add-filter", 0.08, f"only where `{condition}`"
                )
            for atom in make.scope.atoms[:10]:
                if atom.text not in names:
                    for condition, weight in (
                        (f"{name} != {atom.text}", 1.0),
                        (f"{name} not in {atom.text}", 0.8),
                        (f"{name} in {atom.text}", 0.6),
                    ):
                        yield make.splice(
                            end,
                            end,
                            f" if {condition}",
                            "add-filter",
                            0.06 * weight * atom.weight,
                            f"only where `{condition}`",
                        )
        if generator.ifs:
            begin = make.source.span(generator.iter)[1]
            stop = make.source.span(generator.ifs[-1])[1]
            between = make.source.text[begin:stop]
            at = re.search(r"\bif\b", between)
            if at is not None:
                yield make.splice(begin + at.start(), stop, "", "drop-filter", 0.15, "drop the filter")


def _container(make: Maker, node: ast.List | ast.Tuple | ast.Dict | ast.Set) -> Iterator[Edit]:
    text = make.source.get(node)
    if isinstance(node, ast.Dict):
        if not node.keys:
            for new in ("[]", "set()", "None"):
                yield make.replace(node, new, "container", 0.15)
        return
    if isinstance(node, ast.List | ast.Tuple) and isinstance(node.ctx, ast.Store):
        if isinstance(node, ast.Tuple) and len(node.elts) == 2:
            a, b = (make.source.get(part) for part in node.elts)
            yield make.splice(*make.source.span(node), _keep(text, f"{b}, {a}"), "swap-targets", 0.3, "swap")
        return
    elements = [make.source.get(part) for part in node.elts]
    if isinstance(node, ast.List):
        if not elements:
            for new in ("[[]]", "{}", "set()", "None", "()", "[0]", "[None]"):
                yield make.replace(node, new, "container", 0.3 if new == "[[]]" else 0.15)
            for atom in make.scope.atoms[:12]:
                yield make.replace(node, f"[{atom.text}]", "container", 0.15 * atom.weight)
                yield make.replace(node, f"[[{atom.text}]]", "container", 0.03 * atom.weight)
                yield make.replace(node, f"list({atom.text})", "container", 0.05 * atom.weight)
        elif len(elements) == 1:
            yield make.replace(node, elements[0], "container", 0.15)
            yield make.replace(node, "[]", "container", 0.15)
            yield make.replace(node, f"[{text}]", "container", 0.1)
    for index in range(len(elements)):
        if index + 1 < len(elements):
            swapped = elements[:]
            swapped[index], swapped[index + 1] = swapped[index + 1], swapped[index]
            yield make.splice(
                *make.source.span(node),
                _keep(text, ", ".join(swapped)),
                "swap-elements",
                0.25,
                f"swap `{short(elements[index])}` and `{short(elements[index + 1])}`",
            )
        if len(elements) > 1 and not (isinstance(node, ast.Tuple) and len(elements) == 2):
            rest = elements[:index] + elements[index + 1 :]
            yield make.splice(
                *make.source.span(node),
                _keep(text, ", ".join(rest)),
                "drop-element",
                0.1,
                f"drop `{short(elements[index])}`",
            )
    if elements and isinstance(node, ast.List):
        for atom in make.scope.atoms[:8]:
            yield make.replace(
                node, f"[{', '.join([*elements, atom.text])}]", "add-element", 0.04 * atom.weight
            )


def _keep(old: str, inner: str) -> str:
    """`inner` in the brackets that `old` has."""
    return f"{old[0]}{inner}{old[-1]}" if old and old[0] in "([{" and old[-1] in ")]}" else inner

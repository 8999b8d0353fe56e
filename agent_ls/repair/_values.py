"""Edit operators on a value: ± 1, another expression in its place, constants, names, attributes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from agent_ls.repair._maker import Maker, quoted, similarity
from agent_ls.repair.edits import Edit
from agent_ls.repair.kinds import expression_kind


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
            for factor in ("* 2", "// 2", "% 2", "** 2"):
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
    if not isinstance(node, ast.Name | ast.Constant | ast.Attribute):
        # What was computed here may be at hand already, all the more so when it is named in its own place.
        place = 0.08 if isinstance(parent, ast.stmt) else 0.06
        for atom in make.scope.atoms[:14]:
            if atom.text != text and (not kind or not atom.kind or kind == atom.kind):
                yield make.replace(node, atom.text, "replace-expression", place * atom.weight)


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


def constant_edits(make: Maker, node: ast.Constant) -> Iterator[Edit]:
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


def name_edits(make: Maker, node: ast.Name) -> Iterator[Edit]:
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


def attribute_edits(make: Maker, node: ast.Attribute) -> Iterator[Edit]:
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

"""Edit operators on subscripts, comprehensions and displays of lists, tuples, dicts and sets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from agent_ls.repair._maker import Maker, short
from agent_ls.repair.edits import Edit


def subscript_edits(make: Maker, node: ast.Subscript) -> Iterator[Edit]:
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
    if not load:
        yield from _targets(make, node)
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


def _targets(make: Maker, node: ast.Subscript) -> Iterator[Edit]:
    """Another place to store at: one that is used here, or this index in another container."""
    text, index = make.source.get(node), make.source.get(node.slice)
    for atom in make.scope.atoms:
        if atom.text.endswith("]") and ":" not in atom.text and atom.text != text:
            yield make.replace(node, atom.text, "assignment-target", 0.15 * atom.weight)
    for name in make.scope.locals[:10]:
        if make.scope.kind(name) in ("list", "dict", "") and name not in ("self", "cls"):
            yield make.replace(node, f"{name}[{index}]", "assignment-target", 0.08)
    for atom in make.scope.atoms[:10]:
        if atom.text != index and "[" not in atom.text and atom.text not in ("self", "cls"):
            new = f"{make.operand(node.value)}[{atom.text}]"
            yield make.replace(node, new, "assignment-target", 0.06 * atom.weight)


def comprehension_edits(
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


def container_edits(make: Maker, node: ast.List | ast.Tuple | ast.Dict | ast.Set) -> Iterator[Edit]:
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

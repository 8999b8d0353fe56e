"""Mutants of the lines that a test executes: small faults that a test of these lines may notice.

Two sources. The edit operators of the repair engine that make typical faults (Offutt's and DeMillo's mutation
operators among them); and changes of what can be observed: a returned, raised, stored or passed value becomes
a little different, as in PIT's return-value mutators and in Niedermayr's and Petrić's work on pseudo-tested
methods. The second kind shows best whether a test looks at a value at all, and how closely.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping

from attrs import define, evolve, frozen

from agent_ls.repair.edits import Edit
from agent_ls.repair.kinds import expression_kind
from agent_ls.repair.operators import Checker, candidates
from agent_ls.repair.scope import Ingredients
from agent_ls.repair.source import Function, Source

_OPERATORS = {
    "compare-operator", "arithmetic-operator", "and-or", "drop-condition", "drop-term", "negate-condition",
    "off-by-one", "flip-boolean", "delete-statement", "swap-branches", "pick-branch", "swap-arguments",
    "drop-attribute", "string-constant", "constant", "unwrap-call", "delete-branch", "drop-argument",
    "raise-to-return",
}  # fmt: skip
_PER_LINE = 12
"""So many edits of the repair engine's operators for one statement."""

_CHANGES: dict[str, tuple[str, ...]] = {
    "num": ("{} + 1", "{} * 1001 / 1000", "{} * 100001 / 100000", "0"),
    "bool": ("not {}", "None"),
    "str": ('{} + "?"', "{}.swapcase()", "{}[:-1]", '{}.replace(" ", "")'),
    "list": ("{}[::-1]", "{}[:-1]", "None"),
    "dict": ("dict(list({}.items())[:-1])", "None"),
    "set": ("{} - set(list({})[:1])", "None"),
    "none": ("0",),
    "": ("{} + 1", '{} + "?"', "{}[::-1]", "dict(list({}.items())[:-1])", "not {}", "{}[:-1]",
         "{} * 1001 / 1000", '{}.swapcase()', "None"),
}  # fmt: skip
_FITS: dict[str, tuple[str, ...]] = {
    "{} + 1": ("num", "bool"), "{} * 1001 / 1000": ("num",), "{} * 100001 / 100000": ("num",),
    '{} + "?"': ("str",), "{}.swapcase()": ("str",), '{}.replace(" ", "")': ("str",),
    "{}[::-1]": ("list", "str"), "{}[:-1]": ("list", "str"), "dict(list({}.items())[:-1])": ("dict",),
    "{} - set(list({})[:1])": ("set",),
}  # fmt: skip
"""Kinds of values on which a change is an operation at all."""
_TYPES = {
    "str": "str", "list": "list", "tuple": "list", "dict": "dict", "OrderedDict": "dict", "int": "num",
    "float": "num", "bool": "bool", "Decimal": "num", "decimal.Decimal": "num", "Fraction": "num",
    "NoneType": "none", "set": "set", "frozenset": "set",
}  # fmt: skip
_TOLD = re.compile(
    r"can only concatenate ([\w.]+) |unsupported operand type\(s\) for [^:]+: '([\w.]+)' and"
    r"|'([\w.]+)' object (?:is not subscriptable|has no attribute)"
)
_ANNOTATIONS = {
    "int": "num", "float": "num", "Decimal": "num", "complex": "num", "bool": "bool", "str": "str",
    "list": "list", "List": "list", "tuple": "list", "Tuple": "list", "Sequence": "list", "dict": "dict",
    "Dict": "dict", "Mapping": "dict", "set": "set", "Set": "set",
}  # fmt: skip


_TIGHT = (
    ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.List, ast.Dict, ast.Set,
    ast.JoinedStr, ast.ListComp, ast.DictComp, ast.SetComp,
)  # fmt: skip
"""Expressions that need no parentheses to be an operand."""


@frozen
class Mutant:
    """One edit of one file. `before` and `after` are the changed lines, for people.

    `fits` are the kinds of values that it is meant for; empty for any. `at_import`: the line is executed when
    the module is imported, not by a test.
    """

    path: str
    edit: Edit
    before: str
    after: str
    weight: float
    fits: tuple[str, ...] = ()
    at_import: bool = False

    @property
    def site(self) -> tuple[str, int, int]:
        """The place of the value that it changes."""
        return self.path, self.edit.start_offset, self.edit.end_offset

    @property
    def line(self) -> int:
        return self.edit.line


@define
class _Ranked:
    mutant: Mutant
    turn: int


def make(path: str, text: str, lines: Collection[int], words: Collection[str], limit: int) -> list[Mutant]:
    """At most `limit` mutants of the statements on `lines` (1-based), the most telling first.

    Statements take turns. `words` are identifiers of the tests: functions that they name come before others.
    An empty list for what is not Python.
    """
    try:
        source = Source(text)
        checker = Checker(source)
        constants = _constants(source, lines)
        wanted = {*lines, *constants}
        engine = candidates(source, wanted, Ingredients())
    except (SyntaxError, ValueError, RecursionError):
        return []
    ranked: list[_Ranked] = []
    turns: dict[tuple[int, str], int] = {}
    found = [*observable(source, wanted), *_engine(engine)]
    for edit in found:
        if checker.accepts(edit) is None:
            continue
        function = source.function_at(edit.line)
        if function is None and edit.line not in constants:
            continue
        key = (edit.line, "seen" if edit.operator.startswith("observe") else "engine")
        turn = turns[key] = turns.get(key, -1) + 1
        named = function is not None and function.name in words
        before, after = _lines_of(text, edit)
        fits = ("num",) if edit.operator == "off-by-one" else _FITS.get(edit.description, ())
        weight = 2.0 if named else 1.0
        ranked.append(_Ranked(Mutant(path, edit, before, after, weight, fits, function is None), turn))
    ranked.sort(key=lambda item: (item.turn / item.mutant.weight, -item.mutant.weight, item.mutant.line))
    return [item.mutant for item in ranked[:limit]]


def _constants(source: Source, lines: Collection[int]) -> set[int]:
    """Lines of module-level values whose names the statements on `lines` use."""
    used = {
        node.id
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.lineno in lines
    }
    found: set[int] = set()
    for node in source.tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        if any(isinstance(target, ast.Name) and target.id in used for target in targets):
            found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found


def _engine(edits: list[Edit]) -> Iterator[Edit]:
    """The repair engine's edits that are faults rather than repairs: few for a statement, each of its own."""
    chosen: dict[int, list[Edit]] = {}
    for edit in edits:
        literal = edit.replacement[:1] in ("'", '"') and edit.operator == "unwrap-call"
        if edit.operator in _OPERATORS and not literal:
            chosen.setdefault(edit.line, []).append(edit)
    for group in chosen.values():
        turns: dict[str, int] = {}
        ranked: list[tuple[int, float, Edit]] = []
        for edit in sorted(group, key=lambda edit: -edit.prior):
            turn = turns[edit.operator] = turns.get(edit.operator, -1) + 1
            if turn < 3:
                ranked.append((turn, -edit.prior, edit))
        # one of each operator before a second of any
        yield from [edit for _, _, edit in sorted(ranked, key=lambda item: item[:2])[:_PER_LINE]]


def observable(source: Source, lines: Collection[int]) -> Iterator[Edit]:
    """Edits that change a value which leaves the function: returned, raised, stored or passed on."""
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.stmt) or node.lineno not in lines:
            continue
        for value, kind in _sites(source, node):
            yield from _changes(source, node, value, kind)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            name = "RuntimeError" if source.get(node.exc.func) != "RuntimeError" else "KeyError"
            yield _edit(source, node, node.exc.func, name)


def _sites(source: Source, node: ast.stmt) -> Iterator[tuple[ast.expr, str]]:
    function = source.function_of(node)
    if isinstance(node, ast.Return) and node.value is not None:
        kind = _annotated(function) or _kind(node.value, function)
        yield node.value, kind
        for part in ast.iter_child_nodes(node.value):
            # one element of what is returned: a test may look at some of them only
            if isinstance(node.value, ast.Tuple | ast.List) and isinstance(part, ast.expr):
                yield part, _kind(part, function)
        if isinstance(node.value, ast.Dict):
            for part in node.value.values:
                yield part, _kind(part, function)
        if isinstance(node.value, ast.Call):
            for argument in _arguments(node.value):
                yield argument, _kind(argument, function)
    elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        for argument in _arguments(node.exc):
            yield argument, _kind(argument, function)
    elif isinstance(node, ast.Expr):
        value = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(value, ast.Yield) and value.value is not None:
            yield value.value, _kind(value.value, function)
        elif isinstance(value, ast.Call):
            for argument in _arguments(value):
                yield argument, _kind(argument, function)
    elif isinstance(node, ast.For):
        yield node.iter, _kind(node.iter, function) or "list"
    elif (
        isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign)
        and node.value is not None
        and not isinstance(node.value, ast.Lambda)
    ):
        yield node.value, _kind(node.value, function)
        if function is None:
            for part in _literals(node.value):
                yield part, _kind(part, function)


def _literals(value: ast.expr) -> list[ast.expr]:
    """The values that a table holds."""
    if isinstance(value, ast.Dict):
        return [part for item in value.values for part in (_literals(item) or [item])][:12]
    if isinstance(value, ast.List | ast.Tuple | ast.Set):
        return [part for item in value.elts for part in (_literals(item) or [item])][:12]
    return []


def _arguments(call: ast.Call) -> list[ast.expr]:
    plain = [argument for argument in call.args if not isinstance(argument, ast.Starred)]
    return [*plain, *(word.value for word in call.keywords if word.arg is not None)][:6]


def _kind(node: ast.expr, function: Function | None) -> str:
    """The rough kind of a value: by its form, or by what its name was first given."""
    kind = expression_kind(node)
    if isinstance(node, ast.Constant) and isinstance(node.value, bytes):
        return "bytes"
    if not kind and isinstance(node, ast.Name) and function is not None:
        arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        for argument in arguments:
            if argument.arg == node.id and argument.annotation is not None:
                return _of_annotation(argument.annotation)
        for other in ast.walk(function):
            if isinstance(other, ast.Assign | ast.AnnAssign) and other.value is not None:
                targets = other.targets if isinstance(other, ast.Assign) else [other.target]
                if any(isinstance(target, ast.Name) and target.id == node.id for target in targets):
                    return expression_kind(other.value)
    if not kind and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _METHODS.get(node.func.attr, "")
    return kind


_METHODS = {
    "join": "str", "strip": "str", "lower": "str", "upper": "str", "format": "str", "replace": "str",
    "decode": "str", "title": "str", "rstrip": "str", "split": "list", "splitlines": "list", "copy": "",
}  # fmt: skip


def _annotated(function: Function | None) -> str:
    return _of_annotation(function.returns) if function is not None and function.returns is not None else ""


def _of_annotation(node: ast.expr) -> str:
    text = ast.unparse(node).strip("'\"")
    match = re.match(r"(?:\w+\.)*(\w+)", text)
    return _ANNOTATIONS.get(match.group(1), "") if match and "|" not in text else ""


def _changes(source: Source, node: ast.stmt, value: ast.expr, kind: str) -> Iterator[Edit]:
    text = source.get(value)
    if kind not in _CHANGES or text in ("[]", "{}", "()", "''", '""'):
        return
    if "\n" in text:
        text = f"({text})"
    held = text if isinstance(value, _TIGHT) else f"({text})"
    for pattern in _CHANGES[kind]:
        new = pattern.format(*[held] * pattern.count("{}"))
        if new != text:
            parent = source.parents.get(value)
            inside = not isinstance(parent, ast.stmt) and new not in ("None", "0")
            yield _edit(source, node, value, f"({new})" if inside else new, pattern)


def _edit(source: Source, node: ast.stmt, value: ast.expr, new: str, pattern: str = "") -> Edit:
    start, end = source.span(value)
    return Edit(node.lineno, start, end, new, "observe", pattern, 1.0)


def kind_told(message: str) -> str | None:
    """The kind of a value, from the error of an operation that it does not have; None if it does not say."""
    match = _TOLD.search(message)
    return _TYPES.get(next(filter(None, match.groups())), "other") if match else None


def _lines_of(text: str, edit: Edit) -> tuple[str, str]:
    """The changed lines, stripped, as they were and as they are."""
    start = text.rfind("\n", 0, edit.start_offset) + 1
    end = text.find("\n", edit.end_offset)
    if edit.end_offset > start and text[edit.end_offset - 1] == "\n":
        end = edit.end_offset  # whole lines
    end = len(text) if end < 0 else end
    before = text[start:end]
    after = text[start : edit.start_offset] + edit.replacement + text[edit.end_offset : end]
    return _one_line(before), _one_line(after)


def _one_line(text: str) -> str:
    return " ".join(line.strip() for line in text.splitlines() if line.strip())[:200]


@frozen
class Place:
    """Where a function stands: `offset` is that of the parenthesis behind its name in the file's `text`."""

    name: str
    path: str
    text: str
    offset: int


def carried_over(mutant: Mutant, old: str, places: Mapping[str, list[Place]]) -> Mutant | None:
    """The same edit in another version of the sources, where the function around it has the same text.

    `old` is the text of the mutant's file; `places` leads from a function's text (without its name) to where
    it stands in the other version. None if there is none, or several and none of the same name.
    """
    source = Source(old)
    function = source.function_at(mutant.line)
    if function is None:
        return None
    start = _behind_name(source, function)
    found = places.get(old[start : source.span(function)[1]], [])
    if len(found) != 1:
        found = [place for place in found if place.name == function.name]
    if len(found) != 1 or mutant.edit.start_offset < start:
        return None
    place = found[0]
    shift = place.offset - start
    edit = evolve(
        mutant.edit,
        line=place.text.count("\n", 0, mutant.edit.start_offset + shift) + 1,
        start_offset=mutant.edit.start_offset + shift,
        end_offset=mutant.edit.end_offset + shift,
    )
    return evolve(mutant, path=place.path, edit=edit)


def functions_of(path: str, text: str) -> Iterator[tuple[str, Place]]:
    """(text behind its name, place) of each function."""
    try:
        source = Source(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(source.tree):
        if isinstance(node, Function):
            start = _behind_name(source, node)
            yield text[start : source.span(node)[1]], Place(node.name, path, text, start)


def _behind_name(source: Source, function: Function) -> int:
    definition = source.offset(function.lineno, function.col_offset)
    return source.text.index(function.name, source.text.index("def", definition) + 3) + len(function.name)

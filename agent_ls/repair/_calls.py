"""Edit operators on calls: callee, arguments, wrapping and unwrapping."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from agent_ls.repair._maker import Maker, short, similarity
from agent_ls.repair.edits import Edit
from agent_ls.repair.kinds import expression_kind

_NEAR = [
    ("any", "all"),
    ("min", "max"),
    ("append", "extend", "insert", "add", "appendleft"),
    ("add", "update", "discard"),
    ("remove", "discard", "pop"),
    ("pop", "popleft"),
    ("strip", "lstrip", "rstrip"),
    ("startswith", "endswith"),
    ("find", "rfind", "index", "rindex"),
    ("split", "rsplit", "splitlines", "partition"),
    ("partition", "rpartition"),
    ("upper", "lower", "title", "capitalize", "casefold", "swapcase"),
    ("keys", "values", "items"),
    ("sorted", "reversed", "list", "set"),
    ("sort", "reverse"),
    ("list", "tuple", "set"),
    ("int", "float", "str", "bool", "round"),
    ("str", "repr"),
    ("floor", "ceil", "trunc", "round"),
    ("union", "intersection", "difference", "symmetric_difference", "issubset", "issuperset"),
    ("isdigit", "isalpha", "isalnum", "isdecimal", "isspace", "isnumeric"),
    ("isupper", "islower"),
    ("ljust", "rjust", "center", "zfill"),
    ("match", "search", "fullmatch"),
    ("group", "groups", "groupdict"),
    ("loads", "load"),
    ("dumps", "dump"),
    ("read", "readlines", "readline"),
    ("sum", "len", "max"),
    ("sum", "prod"),
    ("isinstance", "issubclass"),
    ("heappush", "heappushpop"),
    ("encode", "decode"),
    ("get", "pop", "setdefault"),
    ("bisect_left", "bisect_right", "bisect"),
    ("copy", "deepcopy"),
    ("chr", "ord"),
    ("sin", "cos", "tan"),
    ("getattr", "hasattr"),
    ("now", "utcnow", "today"),
    ("exists", "isfile", "isdir"),
]
NEAR: dict[str, list[str]] = {}
for _group in _NEAR:
    for _name in _group:
        NEAR.setdefault(_name, []).extend(other for other in _group if other != _name)

_WRAPPERS = {
    "list": ("list", "sorted", "set", "tuple", "reversed", "len", "dict"),
    "str": ("str", "int", "list", "len", "repr"),
    "num": ("int", "str", "abs", "round", "float", "range"),
    "dict": ("dict", "list", "sorted", "len"),
    "set": ("list", "sorted", "len"),
    "": ("list", "str", "len", "sorted", "int", "set", "tuple", "abs", "float", "bool", "reversed", "sum"),
}
_TAILS = {
    "str": (".strip()", ".lower()", ".upper()", ".split()", ".rstrip()", ".encode()", ".splitlines()"),
    "dict": (".items()", ".values()", ".keys()", ".copy()"),
    "list": (".copy()", "[:]"),
    "set": (".copy()",),
    "": (".copy()", ".items()", ".values()", ".strip()", ".lower()", ".upper()", ".keys()", ".decode()"),
}


def call_edits(make: Maker, node: ast.Call) -> Iterator[Edit]:
    """Edits of one call."""
    scope = make.scope
    text = make.source.get(node)
    multi = "\n" in text
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    end = make.source.span(node.func)[1]
    start = end - len(name) if make.source.text[end - len(name) : end] == name else None
    if name and start is not None:
        for index, other in enumerate(NEAR.get(name, [])):
            yield make.splice(
                start, end, other, "wrong-callee", 0.5 / (1 + index / 3), f"`{name}` → `{other}`"
            )
        yield from _callee(make, node, name, start, end)
    # unwrap: f(x) -> x, x.m(...) -> x
    for argument in node.args[:3]:
        if not isinstance(argument, ast.Starred):
            yield make.replace(node, make.operand(argument), "unwrap-call", 0.4)
    if isinstance(node.func, ast.Attribute):
        yield make.replace(node, make.operand(node.func.value), "unwrap-call", 0.3)
        if not node.args and not node.keywords:
            yield make.replace(node, make.source.get(node.func), "call-to-attribute", 0.2)
    if not multi:
        yield from _arguments(make, node, name)
    if scope.function is not None and not multi and not isinstance(make.source.parents[node], ast.Await):
        function = scope.function
        if isinstance(function, ast.AsyncFunctionDef):
            yield make.replace(node, make.fit(node, f"await {text}"), "add-await", 0.3)


def _callee(make: Maker, node: ast.Call, name: str, start: int, end: int) -> Iterator[Edit]:
    scope = make.scope
    count = len(node.args) + len(node.keywords)
    if isinstance(node.func, ast.Name):
        for other, arity in scope.callables.items():
            if other != name and (arity in (-1, count) or scope.callables.get(name) == arity):
                prior = 0.15 + 0.3 * similarity(*(" ".join(n.split("_")) for n in (name, other)))
                yield make.splice(start, end, other, "wrong-callee", prior, f"`{name}` → `{other}`")
        receiver = next((n for n in ("self", "cls") if n in scope.locals), None)
        if receiver and f"{receiver}.{name}" in scope.callables:
            yield make.splice(
                start, end, f"{receiver}.{name}", "missing-self", 0.9, f"call `{receiver}.{name}`"
            )
    else:
        for index, other in enumerate(scope.methods[:10]):
            if other != name and other not in NEAR.get(name, []):
                yield make.splice(
                    start, end, other, "wrong-callee", 0.12 / (1 + index / 5), f"`.{name}` → `.{other}`"
                )


def _arguments(make: Maker, node: ast.Call, name: str) -> Iterator[Edit]:
    scope = make.scope
    function = make.source.get(node.func)
    arguments = [make.source.get(argument) for argument in node.args]
    keywords = [make.source.get(keyword) for keyword in node.keywords]

    def call(args: list[str], words: list[str], operator: str, prior: float) -> Edit:
        return make.replace(node, f"{function}({', '.join([*args, *words])})", operator, prior)

    for i in range(len(arguments)):
        for j in range(i + 1, len(arguments)):
            swapped = arguments[:]
            swapped[i], swapped[j] = swapped[j], swapped[i]
            yield call(swapped, keywords, "swap-arguments", 0.5 if j == i + 1 else 0.3)
        rest = arguments[:i] + arguments[i + 1 :]
        yield call(rest, keywords, "drop-argument", 0.2)
    for i in range(len(keywords)):
        yield call(arguments, keywords[:i] + keywords[i + 1 :], "drop-argument", 0.2)
    for keyword in _known_keywords(make, node, name):
        if keyword.split("=")[0] not in {word.split("=")[0] for word in keywords}:
            yield call(arguments, [*keywords, keyword], "add-argument", 0.25)
    arity = scope.callables.get(function, -1)
    lacks = 0 <= len(arguments) < arity
    for atom in scope.atoms[:12]:
        if atom.text in ("self", "cls") or atom.text in arguments:
            continue
        base = (0.5 if lacks else 0.08) * atom.weight
        yield call([*arguments, atom.text], keywords, "add-argument", base)
        for position in range(len(arguments)):
            yield call(
                [*arguments[:position], atom.text, *arguments[position:]],
                keywords,
                "add-argument",
                base * 0.5,
            )
    if lacks or name in ("get", "pop", "setdefault", "getattr", "next", "range", "split", "round", "insert"):
        for constant in ("0", "1", "None", "[]", "-1", "''", "2", "False", "True", "{}"):
            yield call([*arguments, constant], keywords, "add-argument", 0.12)
            yield call([constant, *arguments], keywords, "add-argument", 0.08)
    for i, argument in enumerate(node.args):
        if isinstance(argument, ast.Name | ast.Attribute) and f"*{arguments[i]}" not in arguments:
            yield call(
                [*arguments[:i], f"*{arguments[i]}", *arguments[i + 1 :]], keywords, "star-argument", 0.08
            )
        elif isinstance(argument, ast.Starred):
            yield call(
                [*arguments[:i], arguments[i].lstrip("* "), *arguments[i + 1 :]],
                keywords,
                "star-argument",
                0.3,
            )


def _known_keywords(make: Maker, node: ast.Call, name: str) -> Iterator[str]:
    known = {
        "sorted": ("reverse=True",),
        "sort": ("reverse=True",),
        "max": ("default=0", "default=None"),
        "min": ("default=0", "default=None"),
        "open": ("encoding='utf-8'", "newline=''"),
        "write_text": ("encoding='utf-8'",),
        "read_text": ("encoding='utf-8'",),
        "dumps": ("sort_keys=True", "ensure_ascii=False", "default=str"),
        "dump": ("sort_keys=True", "ensure_ascii=False"),
        "zip": ("strict=True",),
        "enumerate": ("start=1",),
        "mkdir": ("parents=True, exist_ok=True", "exist_ok=True"),
        "makedirs": ("exist_ok=True",),
        "print": ("end=''",),
        "split": ("maxsplit=1",),
        "rsplit": ("maxsplit=1",),
        "splitlines": ("keepends=True",),
        "wraps": (),
    }
    yield from known.get(name, ())
    if name in ("sorted", "sort", "max", "min"):
        yield from ("key=len", "key=str.lower", "key=str")
        for attr in make.scope.all_attributes[:3]:
            yield f"key=lambda item: item.{attr}"
        yield from ("key=lambda item: item[1]", "key=lambda item: item[0]")
    # keywords given to the same function elsewhere in the file
    for other in ast.walk(make.source.tree):
        if isinstance(other, ast.Call) and other is not node and other.keywords:
            other_name = getattr(other.func, "id", getattr(other.func, "attr", ""))
            if other_name == name:
                for keyword in other.keywords:
                    if keyword.arg:
                        yield make.source.get(keyword)
        elif isinstance(other, ast.FunctionDef) and other.name == name and other.args.defaults:
            for argument in other.args.args[-len(other.args.defaults) :]:
                if argument.arg in make.scope.locals:
                    yield f"{argument.arg}={argument.arg}"


def wrap_edits(make: Maker, node: ast.expr) -> Iterator[Edit]:
    """Wrap a value in a call, or call a method on it."""
    parent = make.source.parents.get(node)
    text = make.source.get(node)
    if "\n" in text or isinstance(node, ast.Constant | ast.Starred | ast.Slice | ast.JoinedStr | ast.Lambda):
        return
    if isinstance(parent, ast.Attribute) or (isinstance(parent, ast.Call) and parent.func is node):
        return
    kind = make.scope.kind(node.id) if isinstance(node, ast.Name) else expression_kind(node)
    if kind in ("bool", "call", "none"):
        return
    place = 1.0 if isinstance(parent, ast.Call | ast.stmt | ast.comprehension | ast.keyword) else 0.6
    inner_call = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    outer_call = parent.func.id if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) else ""
    for index, wrapper in enumerate(_WRAPPERS.get(kind, _WRAPPERS[""])):
        if wrapper not in (inner_call, outer_call):
            prior = 0.16 * place / (1 + index / 4)
            if parent.__class__ in (ast.For, ast.comprehension) and wrapper in (
                "list",
                "sorted",
                "reversed",
                "set",
            ):
                prior *= 1.6
            yield make.replace(node, f"{wrapper}({text})", "wrap-call", prior)
    if isinstance(parent, ast.For | ast.comprehension) or isinstance(node, ast.Call | ast.Name):
        yield make.replace(node, f"range({text})", "wrap-call", 0.05)
    for index, tail in enumerate(_TAILS.get(kind, _TAILS[""])):
        yield make.replace(node, f"{make.operand(node)}{tail}", "add-method", 0.14 * place / (1 + index / 4))
    for name, arity in make.scope.callables.items():
        if name in (inner_call, outer_call):
            continue
        function = make.scope.function
        near = 1.5 if function is not None and name == function.name else 1.0
        if arity == 1:
            yield make.replace(node, f"{name}({text})", "wrap-call", 0.12 * place * near)
        elif arity == 2 and isinstance(parent, ast.stmt | ast.Call):
            for atom in make.scope.atoms[:8]:
                if atom.text != text and atom.kind != "call" and atom.text not in ("self", "cls"):
                    yield make.replace(
                        node, f"{name}({text}, {atom.text})", "wrap-call", 0.05 * near * atom.weight
                    )
                    yield make.replace(
                        node, f"{name}({atom.text}, {text})", "wrap-call", 0.05 * near * atom.weight
                    )
    if (
        isinstance(node, ast.Call)
        and isinstance(parent, ast.Expr | ast.Return)
        and make.scope.function is not None
    ):
        pass


def describe(old: str, new: str) -> str:
    return f"`{short(old)}` → `{short(new)}`"

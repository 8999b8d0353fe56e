"""What a change did to the public interface: names, signatures, bases. A refactoring leaves it as it is.

Python is read by its syntax tree: what `__all__` names, else what has no leading underscore, at the top of
modules and in classes. A name that is imported from where it moved to is still there. Other languages are
compared by the heads of their exported definitions. Annotations, docstrings and bodies don't count.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from attrs import evolve, frozen

from agent_ls.guard.protected import Finding
from agent_ls.guard.trees import Tree
from agent_ls.workspace.grammars import language_of
from agent_ls.workspace.paths import is_test_config, is_test_path

KIND = "public-api-changed"
_SCRIPTS = frozenset(("setup.py", "conftest.py", "noxfile.py", "manage.py", "fabfile.py", "__main__.py"))
_ROOTS = ("src/", "lib/", "python/")
_BINDING = {
    "property",
    "cached_property",
    "staticmethod",
    "classmethod",
    "setter",
    "contextmanager",
    "overload",
}
_EXPORTED = {
    "go": re.compile(r"^"),
    "rust": re.compile(r"\bpub\b(?!\s*\()"),
    "java": re.compile(r"\bpublic\b"),
    "kotlin": re.compile(r"^(?!.*\b(?:private|internal|protected)\b)"),
    "csharp": re.compile(r"\bpublic\b"),
    "javascript": re.compile(r"\bexport\b"),
    "typescript": re.compile(r"\bexport\b"),
    "tsx": re.compile(r"\bexport\b"),
    "php": re.compile(r"^(?!.*\b(?:private|protected)\b)"),
    "ruby": re.compile(r"^"),
}


@frozen
class Item:
    """One public thing. `signature` holds what callers depend on; `required` are the parameters that a call
    must give; `source` is where an imported name comes from."""

    name: str
    kind: str
    line: int
    signature: str = ""
    required: tuple[str, ...] = ()
    source: tuple[str, str] | None = None


Surface = Mapping[str, Item]


def review_api(before: Tree, after: Tree, changed: Iterable[str]) -> list[Finding]:
    """Findings of the kind "public-api-changed" about the changed files: `block` for what is gone or must be
    called otherwise, `review` for what only accepts more, `info` for what is new."""
    findings: list[Finding] = []
    for path in sorted(changed):
        if is_test_path(path) or is_test_config(path) or not _public_path(path):
            continue
        if path.endswith(".py"):
            old, new = python_surface(before.read(path), path), python_surface(after.read(path), path)
        else:
            old, new = _other_surface(before.read(path), path), _other_surface(after.read(path), path)
        if old is None or new is None:  # can't be parsed: other checks speak of that
            continue
        findings += _compare(path, old, new, after)
    return findings


def _public_path(path: str) -> bool:
    parts = PurePosixPath(path).with_suffix("").parts
    if PurePosixPath(path).name in _SCRIPTS or parts[0] in ("docs", "examples", "scripts", "benchmarks"):
        return False
    return not any(part.startswith("_") and part != "__init__" for part in parts)


def _compare(path: str, old: Surface, new: Surface, after: Tree) -> Iterator[Finding]:
    new = {**new, **_moved(old, new, path, after)}
    whole = python_surface(after.read(path), path, private=True) if path.endswith(".py") else None
    for name, item in old.items():
        other = new.get(name)
        if other is None and item.kind == "imported" and not path.endswith("__init__.py"):
            continue  # an import that is not needed any more
        if other is None:
            owner, _, member = name.rpartition(".")
            if owner and owner not in new:
                continue  # said once, of the class
            inherited = _inherited(owner, member, whole or {}) if owner else False
            if inherited is not True:
                severity = "block" if inherited is False else "review"
                yield _finding(
                    severity, path, 1, f"the public {item.kind} {name} is gone", item.signature, ""
                )
            continue
        if other.source is not None and item.source is None:
            continue  # from another package now: not ours to judge
        if item.kind in ("imported", "value") or other.kind in ("imported", "value"):
            continue
        if item.kind != other.kind:
            message = f"the public {item.kind} {name} is a {other.kind} now"
            yield _finding("block", path, other.line, message, item.signature, other.signature)
        elif item.signature != other.signature:
            wider = _wider(item, other)
            what = "accepts more" if wider else "changed"
            message = f"the signature of the public {item.kind} {name} {what}"
            severity = "review" if wider else "block"
            yield _finding(severity, path, other.line, message, item.signature, other.signature)
    for name, item in new.items():
        if name not in old and item.kind != "imported" and old:
            yield _finding(
                "info", path, item.line, f"the public {item.kind} {name} is new", "", item.signature
            )


def _finding(severity: str, path: str, line: int, message: str, before: str, after: str) -> Finding:
    return Finding(KIND, severity, path, line, f"{path}: {message}", before[:200], after[:200])  # type: ignore[arg-type]


def _wider(old: Item, new: Item) -> bool:
    """Can everybody who called the old one call the new one in the same way?"""
    before, after = _parameters(old.signature), _parameters(new.signature)
    if len(after) < len(before) or old.signature.partition("(")[0] != new.signature.partition("(")[0]:
        return False
    positional = [name for name in before if not name.startswith("*")]
    kept = [name for name in after if not name.startswith("*")]
    return (
        kept[: len(positional)] == positional
        and set(before) <= set(after)
        and set(new.required) <= set(old.required)
    )


def _parameters(signature: str) -> list[str]:
    inner = signature.partition("(")[2].rpartition(")")[0]
    return [part.strip() for part in inner.split("; ") if part.strip()]


def python_surface(data: bytes | None, path: str = "", private: bool = False) -> dict[str, Item] | None:
    """The public things of a module by name ("function", "Class", "Class.method"), with `private` all of
    them; {} for no file, None for one that can't be parsed."""
    if data is None:
        return {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found: dict[str, Item] = {}
    exported = _all_names(tree)
    for node in _statements(tree.body):
        for item in _top(node, path):
            if private:
                keep = True
            elif exported is None:
                keep = not item.name.startswith("_")
            else:
                keep = item.name in exported
            if keep:
                found[item.name] = item
                if isinstance(node, ast.ClassDef):
                    found.update(_members(node))
    return found


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from _statements([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            handlers = [statement for handler in node.handlers for statement in handler.body]
            yield from _statements([*node.body, *handlers, *node.orelse, *node.finalbody])
        elif isinstance(node, ast.With):
            yield from _statements(node.body)


def _all_names(tree: ast.Module) -> set[str] | None:
    names: set[str] | None = None
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id="__all__")], value=value)
                | ast.AnnAssign(target=ast.Name(id="__all__"), value=ast.expr() as value)
                | ast.AugAssign(target=ast.Name(id="__all__"), value=value)
            ):
                if not isinstance(value, ast.List | ast.Tuple | ast.Set):
                    return None  # computed: by the underscores, then
                texts = [
                    e.value for e in value.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)
                ]
                names = (names or set()) | set(texts)
    return names


def _top(node: ast.stmt, path: str) -> Iterator[Item]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield _function(node, node.name)
        case ast.ClassDef():
            bases = "; ".join(ast.unparse(base) for base in node.bases)
            yield Item(node.name, "class", node.lineno, f"class ({bases})")
        case ast.Assign(targets=targets):
            for target in targets:
                for name in _names(target):
                    yield Item(name, "value", node.lineno)
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield Item(name, "value", node.lineno)
        case ast.ImportFrom(module=module, level=level):
            for alias in node.names:
                name = alias.asname or alias.name
                source = (_module(module or "", level, path), alias.name)
                yield Item(name, "imported", node.lineno, source=source)
        case ast.Import():
            for alias in node.names:
                yield Item((alias.asname or alias.name).partition(".")[0], "imported", node.lineno)


def _names(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _names(element)


def _members(node: ast.ClassDef) -> Iterator[tuple[str, Item]]:
    for inner in _statements(node.body):
        items: Iterable[Item] = ()
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            items = [_function(inner, inner.name)]
        elif isinstance(inner, ast.Assign | ast.AnnAssign):
            items = _top(inner, "")
        for item in items:
            special = item.name.startswith("__") and item.name.endswith("__")
            if special or not item.name.startswith("_"):
                name = f"{node.name}.{item.name}"
                yield (
                    name,
                    Item(
                        name,
                        "method" if item.signature else item.kind,
                        item.line,
                        item.signature,
                        item.required,
                    ),
                )


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> Item:
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    first_default = len(positional) - len(arguments.defaults)
    parts, required = [], []
    for number, argument in enumerate(positional):
        default = arguments.defaults[number - first_default] if number >= first_default else None
        parts.append(_parameter(argument.arg, default))
        if number < len(arguments.posonlyargs):
            parts[-1] += " /"
        if default is None:
            required.append(argument.arg)
    if arguments.vararg:
        parts.append(f"*{arguments.vararg.arg}")
    for argument, keyword_default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        parts.append("*, " + _parameter(argument.arg, keyword_default))
        if keyword_default is None:
            required.append(argument.arg)
    if arguments.kwarg:
        parts.append(f"**{arguments.kwarg.arg}")
    marks = sorted(
        mark
        for decorator in node.decorator_list
        for mark in [ast.unparse(decorator).partition("(")[0].rpartition(".")[2]]
        if mark in _BINDING
    )
    head = " ".join([*marks, "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"])
    return Item(name, "function", node.lineno, f"{head} ({'; '.join(parts)})", tuple(required))


def _parameter(name: str, default: ast.expr | None) -> str:
    return name if default is None else f"{name}={ast.unparse(default)}"


def _module(module: str, level: int, path: str) -> str:
    if not level:
        return module.replace(".", "/")
    folder = PurePosixPath(path).parent
    for _ in range(level - 1):
        folder = folder.parent
    return "/".join(part for part in (str(folder), module.replace(".", "/")) if part not in ("", "."))


def _moved(old: Surface, new: Surface, path: str, after: Tree) -> dict[str, Item]:
    """What names that were defined in a module, and are imported now, stand for; with members of classes."""
    found: dict[str, Item] = {}
    for name, item in new.items():
        if item.source is None or name not in old or old[name].source is not None:
            continue
        target = item
        for _ in range(4):
            if target.source is None:
                break
            module, wanted = target.source
            place = _place(module, after)
            surface = python_surface(after.read(place), place, private=True) if place else None
            if not surface or wanted not in surface:
                break
            target = surface[wanted]
            if target.source is None:
                found[name] = evolve(target, name=name)
                for inner, member in surface.items():
                    if inner.startswith(f"{wanted}."):
                        found[name + inner.removeprefix(wanted)] = member
    return found


def _place(module: str, after: Tree) -> str | None:
    """The project's file of a module ("package/module"), if it has one."""
    for root in ("", *_ROOTS):
        for candidate in (f"{root}{module}.py", f"{root}{module}/__init__.py"):
            if after.read(candidate) is not None:
                return candidate
    return None


def _inherited(owner: str, member: str, whole: Surface, depth: int = 5) -> bool | None:
    """Does a class get the member from a base of the same file? None if a base is not known here."""
    known = whole.get(owner)
    if known is None or not depth:
        return None
    answer: bool | None = False
    for base in _parameters(known.signature):
        name = base.partition("[")[0]
        if f"{name}.{member}" in whole:
            return True
        deeper = _inherited(name, member, whole, depth - 1) if name != "object" else False
        if deeper is True:
            return True
        answer = None if deeper is None else answer
    return answer


def _other_surface(data: bytes | None, path: str) -> dict[str, Item] | None:
    """Exported definitions of the other languages, by their heads."""
    language = language_of(path)
    exported = _EXPORTED.get(language or "")
    if exported is None or data is None:
        return {}
    from agent_ls.workspace.syntax import outline

    text = data.decode("utf-8", "replace")
    lines = text.splitlines()
    found: dict[str, Item] = {}
    for symbol in outline(path, text):
        name = f"{symbol.container}.{symbol.name}" if symbol.container else symbol.name
        head = lines[symbol.line - 1].strip() if symbol.line <= len(lines) else ""
        public = exported.search(f"{head} {symbol.signature}") is not None
        if language == "go":
            public = symbol.name[:1].isupper()
        if language == "ruby" or language == "php":
            public = public and not symbol.name.startswith("_")
        if public:
            signature = re.sub(r"\s+", " ", symbol.signature or head).rstrip(" {;:")
            found[name] = Item(name, symbol.kind, symbol.line, signature)
    return found

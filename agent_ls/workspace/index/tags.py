"""Tags of one file: what it defines, what it uses and what it imports, by tree-sitter queries.

The queries (workspace/queries/<language>.scm) say which nodes count; this module orders what they find into
records. Their captures:

    @definition.<kind>  the node of a definition, with @name, and where they exist @body (its signature ends
                        where that starts) and @owner (a container that the definition names itself)
    @container          a node that encloses definitions but is none itself (Rust's impl), with @name
    @closure            a function without a name: what it holds is no value of the container around
    @outer              decorators, export, template heads: the definition inside starts here
    @declarator         instead of @name: where the name is to be looked for (C)
    @head               the node that ends a signature, where there is no body to tell
    @rest               the definition encloses the rest of the file
    @scope              a block that the cold build looks into (see `_search`)
    @import             a statement that `_tags_imports` reads
    @reference.<kind>   a name that is used; @local one that is bound and hence neither
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_ls.workspace.index._tags_elide import elided, mentions
from agent_ls.workspace.index._tags_imports import imports_of
from agent_ls.workspace.index._tags_python import python_definitions
from agent_ls.workspace.index._tags_query import (
    CLOSURE,
    CONTAINER,
    IMPORT,
    OUTER,
    SCOPE,
    TagQueries,
    tag_queries,
)
from agent_ls.workspace.index._tags_text import (
    FUNCTIONS,
    Lines,
    as_parsed,
    comment_above,
    docstring,
    shape,
    signature,
)
from agent_ls.workspace.parsing import check_shape, parse

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

    from agent_ls.workspace.index.records import FileTags, Reference, ReferenceKind

DefinitionRow = tuple[str, str, int, int, int, int, str | None, str, str]
"""The fields of a Definition, in order."""
ImportRow = tuple[str, int, tuple[str, ...]]
"""The fields of an Import, in order."""


def parse_bytes(language: str, source: bytes, old_tree: Tree | None = None) -> Tree:
    """The syntax tree of `source`. `old_tree` (edited to fit, see tree-sitter's `Tree.edit`) makes it
    cheaper. Bytes that are no UTF-8 become errors in the tree; macros such as `class MY_EXPORT A`, which
    would too, are blanked (offsets stay). Raises KeyError for an unknown language, TooSlow."""
    tree = parse(language, as_parsed(language, source), old_tree)
    check_shape(tree, len(source))
    return tree


def tags(language: str, source: bytes, *, tree: Tree | None = None, references: bool = True) -> FileTags:
    """Everything that `source` says. `tree` is its syntax tree where there is one already; it must come
    from these bytes. Raises KeyError for an unknown language, TooSlow."""
    from agent_ls.workspace.index.records import Definition, FileTags, Import

    root = (parse_bytes(language, source) if tree is None else tree).root_node
    queries = tag_queries(language, references)
    read = python_definitions(source) if language == "python" else None
    broken = root.has_error
    if read is not None:
        definitions, imports, names = read
    else:
        around = root
        if language in _ALWAYS_WITHOUT or root.has_error:
            sound = _without_bodies(language, source)
            if sound is not None and (language in _ALWAYS_WITHOUT or not sound.has_error):
                around = sound
        broken = broken or around.has_error
        definitions, imports, names = _collect(language, queries, around, source)
        if references and around is not root:
            # What bodies bind is no reference.
            names |= _collect(language, queries, root, source)[2]
    return FileTags(
        language,
        tuple(Definition(*row) for row in definitions),
        tuple(_references(queries, root, source, names)) if references else (),
        tuple(Import(*row) for row in imports),
        broken,
    )


def definitions_and_imports(
    language: str, source: bytes
) -> tuple[list[DefinitionRow], list[ImportRow], bool]:
    """The same definitions and imports as plain tuples, and whether the file has syntax errors (of Python:
    such that its lines don't tell its structure; of C: outside the bodies of functions): what the cold build
    needs, at a third of the cost."""
    if language == "python" and (read := python_definitions(source)) is not None:
        return read[0], read[1], False
    root = _without_bodies(language, source)
    if root is None or (root.has_error and language not in _ALWAYS_WITHOUT):
        root = parse_bytes(language, source).root_node
    definitions, imports, _ = _collect(language, tag_queries(language, False), root, source)
    return definitions, imports, root.has_error


_ALWAYS_WITHOUT = frozenset({"c", "cpp"})
"""Languages whose bodies say nothing of definitions, but hold most of the errors."""


def _without_bodies(language: str, source: bytes) -> Node | None:
    """The tree without the bodies that define nothing (see `elided`): as good for definitions, and better
    where they have errors. None when that saves nothing."""
    if language == "python":
        text = elided(source)
    elif language in _ALWAYS_WITHOUT:
        from agent_ls.workspace.index import _tags_elide_c

        text = _tags_elide_c.elided(source)
    else:
        return None
    return None if text is source else parse_bytes(language, text).root_node


_Raw = tuple[int, int, int, int, int, int, int, int]
"""Start, -end, pattern, the name's range, -start of the body (0: none), the owner's range."""


def _collect(
    language: str, queries: TagQueries, root: Node, source: bytes
) -> tuple[list[DefinitionRow], list[ImportRow], set[int]]:
    """Rows of definitions and imports, and where names are bound (in bytes)."""
    raw, statements = _search(queries, root, source)
    raw.sort()
    rows, names = _definitions(language, queries, raw, source, root.has_error)
    return rows, imports_of(language, source, statements), names


def _search(queries: TagQueries, root: Node, source: bytes) -> tuple[list[_Raw], list[tuple[int, int]]]:
    """What the definitions' query finds below `root`, and the ranges of import statements.

    Where the query marks scopes (and the file has no errors, which may put anything anywhere), it runs
    once per scope and only two levels deep. That leaves out expressions, which are most of a tree, and
    the bodies of functions that mention no definition: a fifth of the time of one run over everything.
    """
    from tree_sitter import QueryCursor

    raw: list[_Raw] = []
    statements: list[tuple[int, int]] = []
    if queries.definitions is None:
        return raw, statements
    cursor = QueryCursor(queries.definitions)
    nested = queries.nested and not root.has_error
    if nested:
        cursor.set_max_start_depth(2)
    kinds, captures, plain = queries.kinds, queries.captures, queries.plain
    work = [(root, False)]
    while work:
        scope, inner = work.pop()
        for pattern, found in cursor.matches(scope):
            kind = kinds[pattern]
            node = found[captures[pattern]][0]
            start, end = node.byte_range
            if kind == IMPORT:
                statements.append((start, end))
            elif kind == SCOPE:
                if nested and not (inner and not mentions(source, start, end)):
                    work.append((node, inner))
            elif kind in (OUTER, CLOSURE):
                raw.append((start, -end, pattern, 0, 0, 0, 0, 0))
            elif plain[pattern]:
                body_start = 0
                if "body" in found:
                    body = found["body"][0]
                    body_start = body.start_byte
                    if nested:
                        if kind == "class":
                            work.append((body, False))
                        elif mentions(source, body_start, end):
                            work.append((body, True))
                for name in found["name"]:
                    name_start, name_end = name.byte_range
                    raw.append((start, -end, pattern, name_start, name_end, -body_start, 0, 0))
            else:
                raw += _with_more(pattern, found, start, root.end_byte if "rest" in found else end)
    return raw, statements


def _with_more(pattern: int, found: dict[str, list[Node]], start: int, end: int) -> list[_Raw]:
    """What a match finds that has other captures than @name and @body."""
    body_start = 0
    if "body" in found:
        body_start = found["body"][0].start_byte
    elif "head" in found:
        body_start = found["head"][0].end_byte
    owner = found["owner"][0].byte_range if "owner" in found else (0, 0)
    if "declarator" in found:
        names = [name for node in found["declarator"] if (name := _declared(node)) is not None]
    else:
        names = found["name"]
    return [(start, -end, pattern, *name.byte_range, -body_start, *owner) for name in names]


_DECLARED = frozenset(
    {"identifier", "field_identifier", "type_identifier", "qualified_identifier", "destructor_name",
     "operator_name", "operator_cast", "template_function", "primitive_type"}
)  # fmt: skip


def _declared(node: Node | None) -> Node | None:
    """The name inside a C declarator (pointers, arrays, parameter lists around it)."""
    while node is not None and node.type not in _DECLARED:
        inner = node.child_by_field_name("declarator")
        if inner is None:
            children = node.named_children
            inner = next((child for child in children if "declarator" in child.type), None)
            if inner is None:
                inner = next((child for child in children if child.type in _DECLARED), None)
        node = inner
    return node


def _definitions(
    language: str, queries: TagQueries, raw: list[_Raw], source: bytes, broken: bool
) -> tuple[list[DefinitionRow], set[int]]:
    """Rows, and where names are bound. A long function, since this loop is a tenth of a cold build."""
    rows: list[DefinitionRow] = []
    names: set[int] = set()
    kinds = queries.kinds
    python = language == "python"
    # The function around a local variable may be lost; indented ones are not trusted then.
    loose = broken and language in ("c", "cpp")
    ascii_only = source.isascii()
    count, rfind = source.count, source.rfind
    # The containers around: (end, dotted name or None, kind, start).
    around: list[tuple[int, str | None, str, int]] = [(len(source) + 1, None, "", -1)]
    outer_start, outer_end = -1, -1
    at, line_at = 0, 1
    for start, minus_end, pattern, name_start, name_end, minus_body, owner_start, owner_end in raw:
        kind = kinds[pattern]
        end = -minus_end
        if kind == OUTER:
            if end > outer_end:
                outer_start, outer_end = start, end
            continue
        if kind == CLOSURE:
            while start >= around[-1][0]:
                around.pop()
            around.append((end, around[-1][1], "function", -1))
            continue
        if name_start in names:
            continue
        names.add(name_start)
        while start >= around[-1][0]:
            around.pop()
        # Several names of one statement stand beside each other; what is inside belongs to the first.
        top = around[-1]
        beside = start == top[3] and end == top[0]
        if beside or (kind in _TAGGED and top[2] == "type" and top[3] >= 0):
            top = around[-2]
        elif kind == "property" and top[2] == "constructor":
            top = around[-2]  # a parameter that declares a property of the class
        container, inside = top[1], top[2]
        found = shape(language, kind, inside, source, name_start, name_end, owner_start, owner_end)
        if found is None:
            continue
        kind, name, owner = found
        if kind == "variable" and loose and source[rfind(b"\n", 0, start) + 1 : start].isspace():
            continue
        if owner:
            container = f"{container}.{owner}" if container else owner
        if language == "cpp" and container and kind in FUNCTIONS and name == container.rpartition(".")[2]:
            kind = "constructor"
        if not beside:
            around.append((end, f"{container}.{name}" if container else name, kind, start))
        if kind == CONTAINER:
            continue
        first = outer_start if end <= outer_end and outer_start >= 0 else start
        outer_start, outer_end = -1, -1
        if first >= at:
            line_at += count(b"\n", at, first)
        else:
            line_at -= count(b"\n", first, at)
        at, line = first, line_at
        name_line = line + count(b"\n", first, name_start)
        line_start = rfind(b"\n", 0, name_start) + 1
        if ascii_only:
            column = name_start - line_start + 1
        else:
            column = len(source[line_start:name_start].decode("utf-8", "replace")) + 1
        last = line + count(b"\n", first, end)
        if source[end - 1] == _NEWLINE and last > line:
            last -= 1
        if end == name_end and start == name_start and kind in _HEADS:
            # A head in broken code: only its name is known.
            head = signature(language, "", source, line_start, len(source), 0)
        else:
            head = signature(language, kind, source, start, end, -minus_body)
        if python:
            doc = docstring(source, -minus_body) if minus_body else ""
        else:
            doc, attributes = comment_above(language, source, first)
            line -= attributes
        rows.append((name, kind, line, name_line, column, last, container, head, doc))
    return rows, names


_NEWLINE = 10
_TAGGED = frozenset({"struct", "union", "enum"})
"""In C these have names of their own, even inside a typedef."""
_HEADS = FUNCTIONS | {"class", "struct", "interface", "module", "namespace", "object", "trait", "enum"}


_KINDS: tuple[tuple[str, ReferenceKind], ...] = (
    ("reference.call", "call"), ("reference.import", "import"), ("reference.type", "type"),
    ("reference.read", "read"),
)  # fmt: skip


def _references(queries: TagQueries, root: Node, source: bytes, names: set[int]) -> list[Reference]:
    """Names used, by place. A place that several patterns find has the kind of the most telling."""
    from tree_sitter import QueryCursor

    from agent_ls.workspace.index.records import Reference

    if queries.references is None:
        return []
    captures = QueryCursor(queries.references).captures(root)
    done = set(names)
    done.update(node.start_byte for node in captures.get("local", ()))
    places: list[tuple[int, int, ReferenceKind]] = []
    for capture, kind in _KINDS:
        for node in captures.get(capture, ()):
            start, end = node.byte_range
            if start not in done and end > start:
                done.add(start)
                places.append((start, end, kind))
    places.sort()
    lines = Lines(source)
    found = []
    for start, end, kind in places:
        name = source[start:end].decode("utf-8", "replace")
        line, column = lines.place(start)
        found.append(Reference(name, kind, line, column, column + len(name)))
    return found

"""A parsed Python file with character offsets, parents and the pieces a candidate is compiled from."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from attrs import frozen

Function = ast.FunctionDef | ast.AsyncFunctionDef
_EOL = re.compile(r"\r\n|\r|\n")


@frozen
class Piece:
    """The smallest part of a file that can be compiled alone: one function, or the whole file.

    `start` and `end` are character offsets, `line` the 1-based first line. `wrapper` is the header line
    that makes an indented function compile (`class Name:` for a method); None stands for the whole file.
    """

    start: int
    end: int
    line: int
    name: str
    wrapper: str | None


class Source:
    """`text` parsed. Raises SyntaxError (or ValueError for NUL bytes) when it isn't Python."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self.starts = [0, *(match.end() for match in _EOL.finditer(text))]
        self.parents: dict[ast.AST, ast.AST] = {}
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
        self.future = any(
            isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in self.tree.body
        )

    def offset(self, line: int, column: int) -> int:
        """Character offset of a 1-based line and a column in UTF-8 bytes (what `ast` counts in)."""
        start = self.starts[line - 1]
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        row = self.text[start:end]
        if row.isascii():
            return start + column
        return start + len(row.encode("utf-8")[:column].decode("utf-8", "ignore"))

    def line_of(self, offset: int) -> int:
        """1-based line of a character offset."""
        low, high = 0, len(self.starts)
        while high - low > 1:
            middle = (low + high) // 2
            if self.starts[middle] <= offset:
                low = middle
            else:
                high = middle
        return low + 1

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Character offsets of a node (a decorated function starts at its first decorator)."""
        assert isinstance(node, ast.expr | ast.stmt | ast.excepthandler | ast.arg | ast.keyword)
        start = self.offset(node.lineno, node.col_offset)
        if isinstance(node, Function | ast.ClassDef) and node.decorator_list:
            first = node.decorator_list[0]
            start = self.text.rindex("@", 0, self.offset(first.lineno, first.col_offset))
        assert node.end_lineno is not None and node.end_col_offset is not None
        return start, self.offset(node.end_lineno, node.end_col_offset)

    def get(self, node: ast.AST) -> str:
        """The text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def indent(self, node: ast.stmt) -> str:
        """The white space before a statement on its first line."""
        start, _ = self.span(node)
        row = self.text[self.starts[self.line_of(start) - 1] : start]
        return row if not row.strip() else re.match(r"[ \t\f]*", row).group()  # type: ignore[union-attr]

    def eol(self) -> str:
        match = _EOL.search(self.text)
        return match.group() if match else "\n"

    def statement_of(self, node: ast.AST) -> ast.stmt:
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def function_of(self, node: ast.AST) -> Function | None:
        """Innermost function around a node (the node itself does not count)."""
        current = self.parents.get(node)
        while current is not None and not isinstance(current, Function):
            current = self.parents.get(current)
        return current

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        current = self.parents.get(node)
        while current is not None and not isinstance(current, ast.ClassDef):
            current = self.parents.get(current)
        return current

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        current = self.parents.get(node)
        while current is not None:
            yield current
            current = self.parents.get(current)

    def function_at(self, line: int) -> Function | None:
        """Innermost function whose lines include `line`."""
        best: Function | None = None
        for node in ast.walk(self.tree):
            if (
                isinstance(node, Function)
                and first_line(node) <= line <= (node.end_lineno or 0)
                and (best is None or first_line(node) >= first_line(best))
            ):
                best = node
        return best

    def piece_at(self, start: int, end: int) -> Piece:
        """The outermost function around the offsets, if the change lies inside its body."""
        for function in self._outermost():
            a, b = self.span(function)
            # The rest of its last line belongs to it, so that whole lines can change and be added there.
            last = self.line_of(b)
            stop = self.starts[last] if last < len(self.starts) else len(self.text)
            if not self.text[b:stop].strip() or self.text[b:stop].lstrip().startswith("#"):
                b = stop
            if a <= start and end <= b:
                # Decorators, defaults and annotations run at import: exchanging the code can't reach them.
                body = self.span(function.body[0])[0]
                row = self.starts[function.body[0].lineno - 1]
                if start < min(body, max(row, self._header_end(function))):
                    break
                line = self.line_of(a)
                begin = self.starts[line - 1]
                if self.text[begin:a].strip():
                    break
                return Piece(begin, b, line, function.name, self._wrapper(function))
        return Piece(0, len(self.text), 1, "", None)

    def _header_end(self, function: Function) -> int:
        """Offset just after the colon of `def …:`, found from the last thing before the body."""
        last = function.returns or function
        begin = self.span(last)[1] if last is not function else self.span(function)[0]
        if last is function:
            arguments = [*ast.iter_child_nodes(function.args)]
            ends = [self.span(node)[1] for node in arguments if isinstance(node, ast.arg | ast.expr)]
            begin = max([begin, *ends]) if ends else self.text.index("def", begin)
        body = self.span(function.body[0])[0]
        colon = self.text.find(":", begin, body)
        return colon + 1 if colon >= 0 else body

    def _outermost(self) -> Iterator[Function]:
        pending: list[ast.AST] = list(self.tree.body)
        while pending:
            node = pending.pop()
            if isinstance(node, Function):
                yield node
            else:
                pending.extend(
                    child
                    for child in ast.iter_child_nodes(node)
                    if isinstance(child, ast.stmt | ast.excepthandler)
                )

    def _wrapper(self, function: Function) -> str:
        if not self.indent(function):
            return ""
        parent = self.parents[function]
        while not isinstance(parent, ast.ClassDef | ast.Module):
            parent = self.parents[parent]
        return f"class {parent.name}:" if isinstance(parent, ast.ClassDef) else "if 1:"


def first_line(node: Function) -> int:
    """Line of the first decorator, or of `def`: what `co_firstlineno` says."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def compiles(piece: Piece, text: str) -> ast.AST | None:
    """The tree of a changed piece if it compiles, else None. `text` is the piece's text."""
    import warnings

    code = text if piece.wrapper is None or not piece.wrapper else f"{piece.wrapper}\n{text}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(code)
            compile(tree, "<candidate>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
    return tree

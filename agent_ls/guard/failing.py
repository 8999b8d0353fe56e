"""Does anybody notice when an assertion fails: is its error caught, is its task awaited?"""

from __future__ import annotations

import re

from agent_ls.guard.recognise import is_failure, recognise
from agent_ls.guard.syntax import Expr, Stmt
from agent_ls.guard.vocabulary import FAILURE_TYPES

TASKS = re.compile(r"(?:^|\.)(?:ensure_future|create_task|start_soon|run_coroutine_threadsafe)$")
CATCHING = re.compile(
    r"(?:^|[.:])(?:catch_unwind|Record\.Exception(?:Async)?|Try|runCatching|catchThrowable)$"
)
"""Functions that return what the code given to them raises."""


def is_nested_test(head: Expr) -> bool:
    """A test that is defined inside of a test: it is not run."""
    return head.op == "name" and head.name in ("it", "specify")


def ignores_errors(call: Expr) -> bool:
    """`promise.catch(() => {})`: a handler that does nothing with what it caught."""
    if call.args[0].op != "attr" or call.args[0].name != "catch" or len(call.args) != 2:
        return False
    handler = call.args[1]
    if handler.op != "func":
        return False
    parts = [part for stmt in handler.body for inner in stmt.walk() for e in inner.exprs for part in e.walk()]
    quiet = not any(part.op == "call" and not part.callee.startswith("console.") for part in parts)
    return quiet and not any(inner.kind == "raise" for stmt in handler.body for inner in stmt.walk())


_SORTING = {
    "sort",
    "sort_unstable",
    "sort!",
    "sort_by",
    "sort_by_key",
    "dedup",
    "sort_unstable_by",
    "uniq!",
    "Sort",
}
_SORTERS = re.compile(
    r"sort\.(?:Strings|Ints|Slice|SliceStable|Sort|Float64s)|slices\.Sort\w*|(?:Collections|Arrays)\.sort|Array\.Sort"
)


def sorted_in_place(expr: Expr) -> str:
    """The name of what a statement sorts: `found.sort()`, `sort.Strings(found)`."""
    if expr.op != "call" or expr.args[0].op != "attr":
        return ""
    if _SORTERS.fullmatch(expr.callee):
        first = expr.args[1] if len(expr.args) > 1 else None
        return first.name if first is not None and first.op == "name" else ""
    last, receiver = expr.args[0].name, expr.args[0].args[0]
    return receiver.name if last in _SORTING and receiver.op == "name" else ""


def other_test_object(expr: Expr, env: dict[str, Expr]) -> bool:
    """Does an assertion report to a testing.T that nobody looks at?"""
    first = expr.args[1] if expr.op == "call" and len(expr.args) > 1 else None
    made = env.get(first.name) if first is not None and first.op == "name" else None
    return (
        made is not None and re.match(r"new\(testing\.T\)|testing\.T\(|&?testing\.T\{", made.text) is not None
    )


def is_failing(stmt: Stmt) -> bool:
    if stmt.kind == "raise":
        return not stmt.exprs or FAILURE_TYPES.search(stmt.exprs[0].text) is not None
    if stmt.kind == "assert":
        return stmt.exprs[0].op == "lit" and not stmt.exprs[0].value
    if stmt.kind == "block":
        return any(is_failing(inner) for inner in stmt.body)
    if stmt.kind == "expr" and stmt.exprs:
        expr = stmt.exprs[0]
        made = recognise(expr) if expr.op == "call" and not is_failure(expr) else None
        return is_failure(expr) or bool(
            made and any(c.relation == "raises" and c.expected and c.expected.value == "fails" for c in made)
        )
    return False


def unawaited(expr: Expr, language: str, awaited: bool) -> str:
    if awaited:
        return ""
    text = expr.text
    if language in ("javascript", "typescript", "tsx") and re.search(
        r"\)\.(?:resolves|rejects)\b|^assert\.rejects\(|\.eventually\.", text
    ):
        return "unawaited"
    if language == "c_sharp" and re.search(
        r"\b(?:Throws|ThrowsAny|ThrowsExactly)Async\b|\.(?:Throw|NotThrow)Async\b", text
    ):
        return "unawaited"
    return ""


def notices(handler: Stmt) -> bool:
    """Does a handler report what it caught?"""
    for stmt in handler.body:
        for inner in stmt.walk():
            if inner.kind in ("raise", "assert"):
                return True
            for expr in inner.exprs:
                for part in expr.walk():
                    if part.op == "call" and (
                        is_failure(part) or part.callee in ("done", "reject") or recognise(part)
                    ):
                        return True
                    if part.op == "call" and part.callee in (
                        "raise",
                        "traceback.print_exc",
                        "errors.append",
                        "failures.append",
                    ):
                        return True
    return False

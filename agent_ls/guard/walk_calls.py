"""Expressions of a test: assertions, calls of helpers, functions that are given to calls."""

from __future__ import annotations

import re
from collections.abc import Sequence

from attrs import define, evolve, field, frozen

from agent_ls.guard.checks import Check
from agent_ls.guard.conditions import demands, equality
from agent_ls.guard.failing import (
    CATCHING,
    TASKS,
    ignores_errors,
    is_nested_test,
    other_test_object,
    unawaited,
)
from agent_ls.guard.mocking import Mock
from agent_ls.guard.recognise import is_failure, recognise
from agent_ls.guard.syntax import Expr, Stmt, name, substitute
from agent_ls.guard.walk_values import Context, Values, is_own, settled

MAX_CHECKS = 1500
MAX_DEPTH = 5

_SKIPS = re.compile(
    r"^(?:pytest\.skip|pytest\.xfail|Assert\.Pass|Assume\.That|self\.skipTest|unittest\.SkipTest|t\.(?:Skip|Skipf|SkipNow)|this\.skip|t\.skip|skip"
    r"|pending|Assume\.\w+|assume\w*|Assumptions\.\w+|Assert\.(?:Ignore|Inconclusive|Skip\w*)|ctx\.skip|context\.skip|pytest\.importorskip)$"
)
_EXITS = re.compile(
    r"^(?:sys\.exit|os\._exit|exit|quit|process\.exit|os\.Exit|System\.exit|std\.process\.exit|Environment\.Exit|exit!)$"
)
_THREADS = re.compile(r"(?:^|\.)(?:Thread|new Thread|submit|start_soon|create_task|ensure_future|Timer"
    r"|spawn|call_later|Thread\.(?:new|start|fork)"
                      r"|setTimeout|setImmediate|nextTick|queueMicrotask|Run|StartNew|setInterval"
                      r"|runAsync)$")  # fmt: skip
_CUSTOM = re.compile(r"(?:assert|verify|expect|check)(?=[A-Z_])")
"""Assertions of libraries that aren't known: what they demand isn't known either, but that they are there."""
_NO_ASSERTION = re.compile(
    r"assert(?:All|Softly|Multiple|Timeout\w*)$|expect(?:Message|Cause)$|assertions$"
    r"|"
    r"(?:check_(?:output|call|in|out)|expect_(?:call|request)s?|verify_(?:none|ssl)|checkout)$"
)
_EACH = {"forEach", "each", "each_with_index", "for_each", "map", "ForEach", "each_pair"}


@frozen
class Stop:
    """A place where the test skips itself or ends the process."""

    kind: str
    text: str
    line: int
    conditions: tuple[str, ...]


@define
class Calls(Values):
    """Walks expressions; statements in functions are walked by the class that extends it."""

    checks: list[Check] = field(factory=list)
    stops: list[Stop] = field(factory=list)
    mocks: list[Mock] = field(factory=list)
    calls: set[str] = field(factory=set)
    forced: bool = False
    waited: bool = False
    gathered: bool = False
    """Are the failures of soft assertions looked at in the end?"""
    _inlined: set[str] = field(factory=set)

    def add(self, check: Check, at: Context) -> None:
        if len(self.checks) >= MAX_CHECKS:
            return
        full = evolve(
            check,
            subject=self.valued(check.subject, at),
            expected=self.valued(check.expected, at) if check.expected is not None else None,
            conditions=(*at.conditions, *check.conditions),
            lost=check.lost or at.lost,
            path=check.path or at.path,
            row=at.row,
        )
        done = settled(full)
        both = {done.subject.op, done.expected.op if done.expected is not None else ""}
        if done.relation == "equal" and done.expected is not None and both in ({"dict"}, {"list"}, {"tuple"}):
            parts = equality(done.subject, done.expected, done.line)
            self.checks += [
                evolve(
                    done, relation=p.relation, subject=p.subject, raw=p.raw, expected=p.expected, why=p.why
                )
                for p in parts
            ]
        else:
            self.checks.append(done)

    # -- statements
    def block(self, stmts: Sequence[Stmt], at: Context) -> tuple[Context, bool]:
        raise NotImplementedError

    def rows(self, target: Expr, over: Expr, body: Sequence[Stmt], at: Context, line: int) -> None:
        raise NotImplementedError

    # -- expressions
    def expr(self, expr: Expr, at: Context, *, awaited: bool, quiet: bool = False) -> bool:
        """Walk an expression statement; whether the flow ends there."""
        while expr.op == "await":
            expr, awaited = expr.args[0], True
        if expr.op in ("go", "defer"):
            held = at if expr.op == "defer" or self.waited else evolve(at, lost=at.lost or "thread")
            for arg in expr.args:
                self.expr(arg, held, awaited=True)
            return False
        made = recognise(expr)
        if expr.op == "name" and self.language == "ruby" and expr.name in ("skip", "pending"):
            self.stops.append(Stop("skip", expr.text, expr.line, at.conditions))
            return True
        if made is not None:
            lost = unawaited(expr, self.language, awaited)
            if self.language == "go" and other_test_object(expr, at.env):
                lost = "swallowed"
            if not self.gathered and any(
                at.env[part.name].callee == "new SoftAssertions"
                for part in expr.walk()
                if part.op == "name" and part.name in at.env
            ):
                lost = "swallowed"
            for check in made:
                self.add(evolve(check, lost=lost), at)
            self._through(expr, at, into_functions=False)
            return False
        if expr.op == "call":
            callee = expr.callee
            if _SKIPS.match(callee) and not quiet:
                self.stops.append(Stop("skip", expr.text, expr.line, at.conditions))
                return callee != "pytest.importorskip" and not re.match(
                    r"(?:Assume|assume|Assumptions)", callee
                )
            if _EXITS.match(callee):
                self.stops.append(Stop("exit", expr.text, expr.line, at.conditions))
                return True
            if is_failure(expr):
                return False
            last = callee.rpartition(".")[2]
            if (
                _CUSTOM.match(last)
                and not quiet
                and not _NO_ASSERTION.match(last)
                and last not in self._local
                and self.helpers(last, at.path) is None
            ):
                self.add(Check("custom", expr, expr, line=expr.line), at)
        self._through(expr, at, awaited=awaited)
        return False

    def _through(
        self, expr: Expr, at: Context, *, awaited: bool = False, into_functions: bool = True
    ) -> None:
        """Helpers called and functions given anywhere inside an expression."""
        stack = [expr]
        while stack:
            part = stack.pop()
            if part.op == "func":
                continue
            if part.op == "call" and TASKS.search(part.callee) and not (awaited or self.waited or at.lost):
                for arg in part.args[1:]:
                    self._through(arg, evolve(at, lost="thread"), awaited=True)
                continue
            if part.op == "call" and ignores_errors(part) and not at.lost:
                self._through(part.args[0].args[0], evolve(at, lost="swallowed"), awaited=True)
                continue
            if (
                part.op == "name"
                and self.language == "ruby"
                and part is not expr
                and self.helpers(part.name, at.path)
            ):
                self._call(Expr("call", args=(part,), line=part.line), at, awaited=True)
            if part.op == "call":
                self.calls.add(part.callee.rpartition(".")[2] or part.callee)
                if into_functions or part is not expr:
                    self._call(part, at, awaited=awaited or part is not expr)
            elif part.op == "comp" and any(a.op == "call" for a in part.args):
                held = evolve(at, conditions=(*at.conditions, f"for {part.args[1].text}"))
                self._through(part.args[0], held, awaited=True)
                continue
            stack.extend(part.args)

    def _call(self, call: Expr, at: Context, *, awaited: bool) -> None:
        head = call.args[0]
        last = head.name if head.op in ("attr", "name") else ""
        if head.op == "func":
            lost = "" if awaited or head.name != "async" else "unawaited"
            self.block(head.body, evolve(at, lost=at.lost or lost))
            return
        functions = [arg for arg in call.args[1:] if arg.op == "func"]
        threaded = bool(_THREADS.search(call.callee)) and not (
            last in ("Run", "submit") and self.language == "go"
        )
        if (
            threaded
            and self.language in ("rust", "javascript", "typescript", "tsx", "c_sharp", "java")
            and (self.waited or awaited)
        ):
            threaded = last in ("Thread", "new Thread")
        lost = at.lost or ("thread" if threaded else "")
        if CATCHING.search(call.callee):
            lost = lost or "swallowed"
        if is_nested_test(head) and self.language in ("javascript", "typescript", "tsx"):
            lost = lost or "unreachable"
        if (
            last in ("then", "catch", "finally")
            and not awaited
            and self.language in ("javascript", "typescript", "tsx")
        ):
            lost = lost or "unawaited"
        for function in functions:
            held = evolve(at, lost=lost)
            if last in _EACH and head.op == "attr":
                over = substitute(head.args[0], at.env)
                target = (
                    name(function.params[0])
                    if len(function.params) == 1
                    else Expr("tuple", args=tuple(map(name, function.params)))
                )
                if self.language != "ruby" and function.params:
                    target = name(function.params[0])
                if (
                    self.language == "javascript"
                    and function.params[:1]
                    and function.params[0].startswith("[")
                ):
                    target = Expr(
                        "tuple", args=tuple(name(w) for w in re.findall(r"\w+", function.params[0]))
                    )
                self.rows(target, over, function.body, held, call.line)
            else:
                env = {key: value for key, value in at.env.items() if key not in function.params}
                if last in ("then", "catch"):
                    held = evolve(held, conditions=held.conditions)
                self.block(function.body, evolve(held, env=env))
        for arg in call.args[1:]:
            value = arg.args[0] if arg.op == "kw" else arg
            if (
                value.op == "name"
                and value.name in self._local
                and last not in ("raises", "throws", "assertRaises")
            ):
                held = evolve(at, lost=lost)
                self._inline(self._local[value.name], value.name, (), held)
        found = self._local.get(last) if head.op == "name" else None
        if found is None and last and (head.op == "name" or head.op == "attr"):
            found = self.helpers(last, at.path) if head.op == "name" or is_own(head.args[0]) else None
        if found is None and head.op == "attr" and head.args[0].op == "name" and self.language == "python":
            found = self.helpers(f"{head.args[0].name}.{last}", at.path)
        if found is None and head.op == "attr" and head.args[0].op == "name" and head.name[:6] == "assert":
            found = self.helpers(last, at.path)
        if found is not None:
            unawaited = "async" in found[0].flags and not awaited and self.language not in ("c_sharp", "java")
            self._inline(
                found, last, call.args[1:], evolve(at, lost=lost or ("unawaited" if unawaited else ""))
            )

    def _inline(self, found: tuple[Stmt, str], label: str, args: tuple[Expr, ...], at: Context) -> None:
        function, path = found
        self._inlined.add(label)
        if at.depth >= MAX_DEPTH or label in self._active:
            return
        params = [p.lstrip("&*") for p in function.params]
        if params[:1] and params[0] in ("self", "cls", "this"):
            params = params[1:]
        env = {key: value for key, value in at.env.items() if key not in params}
        plain = [arg for arg in args if arg.op not in ("kw", "func")]
        if params[:1] == ["t"] and plain[:1] and plain[0].text not in ("t", "tt"):
            params = params[1:]
        for param, arg in zip(params, plain, strict=False):
            if arg.op != "spread":
                env[param] = substitute(arg, at.env)
        for arg in args:
            if arg.op == "kw":
                env[arg.name] = substitute(arg.args[0], at.env)
        self._active.append(label)
        inner, returned = evolve(at, env=env, depth=at.depth + 1, path=path), function
        self.block(_returned(returned) or function.body, inner)
        self._active.pop()

    def _predicate(self, check: Check, at: Context) -> list[Check]:
        """`assert same(a, b)` as what a helper `same` demands, where that is one expression."""
        call = check.subject
        if check.relation not in ("true", "false") or call.op != "call" or call.args[0].op != "name":
            return [check]
        found = self._local.get(call.callee) or self.helpers(call.callee, at.path)
        body = (
            [s for s in found[0].body if not (s.kind == "expr" and s.exprs[0].op == "lit")] if found else []
        )
        if found is None or len(body) != 1 or body[0].kind != "return" or not body[0].exprs:
            return [check]
        result = body[0].exprs[0]
        if result.op not in ("cmp", "and", "or", "not") and not isinstance(result.value, bool):
            return [check]
        bound = dict(zip(found[0].params, call.positional, strict=False))
        return demands(substitute(result, bound), check.relation == "true")


def _returned(function: Stmt) -> tuple[Stmt, ...] | None:
    """The body of the function that a fixture or factory returns, if that is what it does."""
    inner = {stmt.name: stmt for stmt in function.body if stmt.kind == "func"}
    for stmt in function.body:
        result = stmt.exprs[0] if stmt.kind in ("return", "expr") and stmt.exprs else None
        if result is not None and result.op == "other" and result.name.startswith("yield "):
            result = name(result.name[6:])
        if result is not None and result.op == "name" and result.name in inner:
            return inner[result.name].body
        if result is not None and result.op == "func" and stmt.kind == "return":
            return result.body
    return None

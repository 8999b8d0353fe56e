"""Walks through a test the way it runs and gathers its checks: which are reached, under which"
    " conditions, with
which values, and whether anybody would notice their failure.

Helpers are walked where they are called, loops over known tables row by row, local names are replaced by what
they stand for. So a loop, a parameter table, a helper or three plain tests come out as the same checks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from attrs import define, evolve, field, frozen

from agent_ls.guard.checks import Check, raised
from agent_ls.guard.conditions import demands, equality
from agent_ls.guard.mocking import Mock, mocks_in
from agent_ls.guard.raising import body_of, own_error, raises_itself
from agent_ls.guard.recognise import is_failure, recognise
from agent_ls.guard.syntax import Expr, Stmt, folded, name, substitute, substitute_stmt
from agent_ls.guard.tables import bind, rows_of
from agent_ls.guard.vocabulary import FAILURE_TYPES, SWALLOWING

MAX_CHECKS = 1500
MAX_DEPTH = 5
MAX_BOUND = 500
"""A longer expression is not put in place of a name."""

_SKIPS = re.compile(
    r"^(?:pytest\.skip|pytest\.xfail|Assert\.Pass|Assume\.That|self\.skipTest|unittest\.SkipTest|t\.(?:Skip|Skipf|SkipNow)|this\.skip|t\.skip|skip"
    r"|pending|Assume\.\w+|assume\w*|Assumptions\.\w+|Assert\.(?:Ignore|Inconclusive|Skip\w*)|ctx\.skip|context\.skip|pytest\.importorskip)$"
)
_EXITS = re.compile(
    r"^(?:sys\.exit|os\._exit|exit|quit|process\.exit|os\.Exit|System\.exit|std\.process\.exit|Environment\.Exit|exit!)$"
)
_RAISES = re.compile(
    r"(?:^|\.)(?:raises|assertRaises\w*|assertWarns\w*|warns|deprecated_call|assertLogs|RaisesGroup)$"
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
class Context:
    env: dict[str, Expr]
    conditions: tuple[str, ...] = ()
    lost: str = ""
    depth: int = 0
    row: str = ""
    path: str = ""


@frozen
class Stop:
    """A place where the test skips itself or ends the process."""

    kind: str
    text: str
    line: int
    conditions: tuple[str, ...]


@define
class Walk:
    """What one test does. `helpers` finds a function by its name and the path of the file that uses it:
    (function, path of its file)."""

    language: str
    helpers: Callable[[str, str], tuple[Stmt, str] | None]
    checks: list[Check] = field(factory=list)
    stops: list[Stop] = field(factory=list)
    mocks: list[Mock] = field(factory=list)
    calls: set[str] = field(factory=set)
    forced: bool = False
    tested: frozenset[str] = frozenset()
    """Functions under test that stand in the same file: what they compute is the question."""
    waited: bool = False
    gathered: bool = False
    """Are the failures of soft assertions looked at in the end?"""
    _local: dict[str, tuple[Stmt, str]] = field(factory=dict)
    _active: list[str] = field(factory=list)
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
        settled = _settled(full)
        both = {settled.subject.op, settled.expected.op if settled.expected is not None else ""}
        if (
            settled.relation == "equal"
            and settled.expected is not None
            and both in ({"dict"}, {"list"}, {"tuple"})
        ):
            parts = equality(settled.subject, settled.expected, settled.line)
            self.checks += [
                evolve(
                    settled, relation=p.relation, subject=p.subject, raw=p.raw, expected=p.expected, why=p.why
                )
                for p in parts
            ]
        else:
            self.checks.append(settled)

    def valued(self, expr: Expr, at: Context) -> Expr:
        """An expression with names, and calls of helpers that only compute a value, replaced by what
        they stand for."""
        found = folded(substitute(expr, at.env))
        for _ in range(3):
            inlined = self._values(found, at.path)
            if inlined is found or len(inlined.text) > 4 * MAX_BOUND:
                break
            found = folded(inlined)
        return found

    def _values(self, expr: Expr, path: str) -> Expr:
        if expr.op == "func":
            return expr
        args = tuple(self._values(arg, path) for arg in expr.args)
        if any(a is not b for a, b in zip(args, expr.args, strict=True)):
            expr = evolve(expr, args=args)
        plain = expr.op == "name" and self.language == "ruby"
        if not plain and expr.op != "call":
            return expr
        head = expr if plain else expr.args[0]
        own = head.op == "attr" and (_is_own(head.args[0]) or head.name == "getfixturevalue")
        if head.op != "name" and not own:
            return expr
        if expr.op == "call" and expr.args[0].name == "getfixturevalue":
            label = str(expr.args[-1].value)
            fixture = self.helpers(label, path)
            made = computed(fixture[0], self.language) if fixture and not fixture[0].params else None
            return made or name(label, expr.line)
        if head.name in self._active:
            return expr
        found = self._local.get(head.name) if head.op == "name" else None
        found = found or (self.helpers(head.name, path) if head.name not in self.tested else None)
        is_fixture = found is not None and any("fixture" in d.text for d in found[0].decorators)
        value = computed(found[0], self.language) if found is not None and not is_fixture else None
        if found is None or value is None:
            return expr
        params = [p.lstrip("&*") for p in found[0].params if p not in ("self", "cls", "this")]
        given = () if plain else expr.args[1:]
        if any(arg.op == "spread" for arg in given) or len(given) > len(params):
            return expr
        bound = dict(zip(params, [arg for arg in given if arg.op != "kw"], strict=False))
        bound |= {arg.name: arg.args[0] for arg in given if arg.op == "kw"}
        return substitute(value, bound)

    def block(self, stmts: Sequence[Stmt], at: Context) -> tuple[Context, bool]:
        """Walk statements; the context behind them, and whether the flow ended."""
        ended = False
        for stmt in stmts:
            if ended and not at.lost:
                at = evolve(at, lost="unreachable")
            at, stopped = self.stmt(stmt, at)
            ended = ended or stopped
        return at, ended

    def stmt(self, stmt: Stmt, at: Context) -> tuple[Context, bool]:
        if stmt.decorators and self.language == "rust" and stmt.kind != "func":
            tags = [d.text for d in stmt.decorators if d.op == "call" and d.callee == "cfg"]
            if tags:
                at = evolve(at, conditions=(*at.conditions, f"if {tags[0]}"))
        maker: Callable[[Stmt, Context], tuple[Context, bool]] | None = getattr(self, f"_{stmt.kind}", None)
        if maker is None:
            return at, stmt.kind == "stop"
        return maker(stmt, at)

    # -- statements
    def _block(self, stmt: Stmt, at: Context) -> tuple[Context, bool]:
        return self.block(stmt.body, at)

    def _expr(self, stmt: Stmt, at: Context) -> tuple[Context, bool]:
        ended = False
        for expr in stmt.exprs:
            self.mocks += mocks_in(expr, at.env)
            ended = self.expr(expr, at, awaited=expr.op == "await") or ended
            sorted_name = _sorted_in_place(expr)
            if sorted_name:
                known = at.env.get(sorted_name, name(sorted_name))
                at = evolve(at, env={**at.env, sorted_name: Expr("call", args=(name("sorted"), known))})
        return at, ended

    def _return(self, stmt: Stmt, at: Context) -> tuple[Context, bool]:
        for expr in stmt.exprs:
            self.expr(expr, at, awaited=True)
        return at, True

    def _raise(self, stmt: Stmt, at: Context) -> tuple[Context, bool]:
        if any(re.search(r"SkipTest|Skipped|SkipException", e.text) for e in stmt.exprs):
            self.stops.append(Stop("skip", stmt.exprs[0].text, stmt.line, at.conditions))
        return at, True

    def _assert(self, stmt: Stmt, at: Context) -> tuple[Context, bool]:
        for check in demands(substitute(stmt.exprs[0], _simple(at.env))):
            for inner in self._predicate(check, at):
                self.add(evolve(inner, line=stmt.line), at)
        self._through(stmt.exprs[0], at)
        false = stmt.exprs[0].op == "lit" and not stmt.exprs[0].value
        return at, false

    def _assign(self, stmt: Stmt, at: Context) -> tuple[Context, bool]:
        *targets, value = stmt.exprs
        self.mocks += mocks_in(Expr("other", args=(*targets, value), line=stmt.line), at.env)
        made = recognise(value)
        env = dict(at.env)
        if made is not None:
            for check in made:
                self.add(evolve(check, line=stmt.line, lost=self._unawaited(value, False) or ""), at)
            thrown = next((check.subject for check in made if check.relation == "raises"), None)
            bound = raised(substitute(thrown, at.env)) if thrown is not None else None
        else:
            if value.op == "func":
                for target in targets:
                    if target.op == "name":
                        self._local[target.name] = (_as_function(target.name, value), at.path)
            else:
                self.expr(value, at, awaited=True, quiet=True)
            bound = substitute(value, at.env)
        for target in targets:
            if stmt.name == "augmented" or bound is None or len(bound.text) > MAX_BOUND:
                for key in _names(target):
                    env.pop(key, None)
            else:
                env.update(bind(target, bound))
        return evolve(at, env=env), False

    def _if(self, stmt: Stmt, at: Context) -> tuple[Context, bool]:
        test = substitute(stmt.exprs[0], _simple(at.env))
        resolved = folded(substitute(test, at.env))
        self._through(stmt.exprs[0], at)
        always = bool(resolved.value) if resolved.op == "lit" else None
        if self._fails(stmt.body) and always is None:
            for check in demands(test, False):
                self.add(evolve(check, line=check.line or stmt.line), at)
            return self.block(stmt.orelse, at)
        if stmt.orelse and self._fails(stmt.orelse) and always is None and not self._fails(stmt.body):
            for check in demands(test):
                self.add(evolve(check, line=check.line or stmt.line), at)
            return self.block(stmt.body, at)
        text, lost = resolved.text, at.lost
        if always is not None:
            yes = at if always else evolve(at, lost=lost or "unreachable")
            no = evolve(at, lost=lost or "unreachable") if always else at
        else:
            yes = evolve(at, conditions=(*at.conditions, f"if {text}"))
            no = evolve(at, conditions=(*at.conditions, f"if not {text}"))
        _, ended_yes = self.block(stmt.body, yes)
        _, ended_no = self.block(stmt.orelse, no)
        env = _without(at.env, (*stmt.body, *stmt.orelse))
        if always is not None:
            return evolve(at, env=env), ended_yes if always else ended_no
        if ended_yes and ended_no:
            return evolve(at, env=env), True
        if ended_yes and not self._only_stops(stmt.body):
            return evolve(no, env=env), False
        if ended_no:
            return evolve(yes, env=env), False
        return evolve(at, env=env), False

    def _only_stops(self, body: Sequence[Stmt]) -> bool:
        """break and continue leave a loop, not the test: what follows in the loop is still conditional."""
        return False

    def _loop(self, stmt: Stmt, at: Context) -> tuple[Context, bool]:
        if stmt.name == "for" and len(stmt.exprs) == 2:
            target, over = stmt.exprs
            self._through(over, at)
            self._rows(target, substitute(over, at.env), stmt.body, at, stmt.line)
        else:
            test = substitute(stmt.exprs[0], at.env)
            test = folded(test)
            endless = test.op == "lit" and bool(test.value)
            never = test.op == "lit" and not test.value
            inner = at if endless else evolve(at, conditions=(*at.conditions, f"while {test.text}"))
            inner = evolve(
                inner, env=_without(at.env, stmt.body), lost=at.lost or ("unreachable" if never else "")
            )
            self.block(stmt.body, inner)
        self.block(stmt.orelse, at)
        return evolve(at, env=_without(at.env, stmt.body)), False

    def _rows(self, target: Expr, over: Expr, body: Sequence[Stmt], at: Context, line: int) -> None:
        rows = rows_of(over, self.language, target)
        env = _without(at.env, body)
        if rows is None:
            inner = evolve(at, env={k: v for k, v in env.items() if k not in _names(target)})
            text = self._generated(over, at) or over.text
            self.block(body, evolve(inner, conditions=(*at.conditions, f"for {text}")))
            return
        if not rows:
            self.block(body, evolve(at, lost=at.lost or "empty-iteration"))
        for row in rows:
            bound = bind(target, row)
            self.block(body, evolve(at, env={**env, **bound}, row=row.text if not at.row else at.row))

    def idle(self, at: Context) -> None:
        """Checks in functions of the test that nothing calls."""
        for label, (function, path) in list(self._local.items()):
            if label not in self._inlined and not function.decorators:
                env = {key: value for key, value in at.env.items() if key not in function.params}
                self.block(function.body, evolve(at, env=env, lost="unreachable", path=path))

    def _generated(self, over: Expr, at: Context) -> str:
        """What a loop over a generator of the tests goes through, as a range, if a number says how long."""
        if over.op != "call" or over.args[0].op != "name":
            return ""
        found = self._local.get(over.callee) or self.helpers(over.callee, at.path)
        if found is None or not any("yield" in e.text for s in found[0].body for e in s.all_exprs()):
            return ""
        number = next((a.value for a in over.positional if a.op == "lit" and isinstance(a.value, int)), None)
        return f"range({number})" if number else ""

    def _with(self, stmt: Stmt, at: Context) -> tuple[Context, bool]:
        env = dict(at.env)
        inner = at
        raising = False
        for expr, bound in zip(stmt.exprs, (*stmt.params, *[""] * len(stmt.exprs)), strict=False):
            call = expr.args[0] if expr.op == "await" else expr
            self.mocks += mocks_in(expr, at.env)
            if call.op == "call" and _RAISES.search(call.callee):
                subject = Expr("func", body=stmt.body, line=stmt.line)
                made = self._raising(call, body_of(subject))
                if raises_itself(stmt.body):
                    made = own_error(body_of(subject))
                self.add(made, at)
                raising = True
                if bound:
                    env[bound] = raised(substitute(made.subject, at.env))
            elif call.op == "call" and call.callee.endswith("suppress"):
                if any(SWALLOWING.match(arg.text) for arg in call.args[1:]):
                    inner = evolve(inner, lost=inner.lost or "swallowed")
            elif bound and len(call.text) < MAX_BOUND:
                env[bound] = substitute(call, at.env)
            else:
                self._through(expr, at)
        inner = evolve(inner, env=env)
        if raising:
            first, *rest = stmt.body or (Stmt("other", stmt.line),)
            inner, _ = self.stmt(first, inner)
            self.block(rest, evolve(inner, lost=inner.lost or "unreachable"))
            return evolve(at, env={**inner.env, **env}), False
        after, ended = self.block(stmt.body, inner)
        return evolve(at, env=after.env), ended

    def _raising(self, call: Expr, subject: Expr) -> Check:
        args = call.positional
        match = call.keyword("match") or call.keyword("msg")
        if match is None and "Regex" in call.callee and len(args) > 1:
            match = args[1]
        message = match.text if match is not None else ""
        if match is not None and re.fullmatch(r"'?(?:\.\*|\.\+|\.)?'?", match.text):
            message = ""
        if call.callee.endswith(("warns", "assertWarns", "deprecated_call", "assertLogs")):
            message += " (warning)"
        return Check("raises", subject, subject, args[0] if args else None, line=call.line, message=message)

    def _try(self, stmt: Stmt, at: Context) -> tuple[Context, bool]:
        body = list(stmt.body)
        fails_at_end = bool(body) and _is_failing(body[-1]) and len(body) > 1
        else_fails = self._fails(stmt.orelse)
        quiet = [h for h in stmt.handlers if not self._notices(h, at)]
        swallowed = any(not h.exprs or any(SWALLOWING.match(t.text) for t in h.exprs) for h in quiet)
        if any(inner.kind in ("return", "stop") for inner in stmt.final):
            swallowed = True  # what leaves a finally block drops the error on its way
        if stmt.handlers and all(self._fails(h.body) for h in stmt.handlers):
            subject = body_of(Expr("func", body=stmt.body, line=stmt.line))
            self.add(Check("runs", subject, subject, line=stmt.line), at)
        subject = body_of(Expr("func", body=tuple(body[:-1] if fails_at_end else body), line=stmt.line))
        forced = (fails_at_end and not swallowed) or else_fails or self.forced
        for handler in stmt.handlers:
            kinds = handler.exprs
            if forced and not self._fails(handler.body):
                kind = kinds[0] if len(kinds) == 1 else (Expr("tuple", args=kinds) if kinds else None)
                self.add(Check("raises", subject, subject, kind, line=stmt.line), at)
        inner = evolve(at, lost=at.lost or "swallowed") if swallowed else at
        after, ended = self.block(body[:-1] if fails_at_end else body, inner)
        for handler in stmt.handlers:
            held = evolve(at, env=dict(at.env))
            if handler.name:
                held.env[handler.name] = raised(substitute(subject, at.env))
            if not forced:
                kinds_text = ", ".join(kind.text for kind in handler.exprs)
                held = evolve(held, conditions=(*at.conditions, f"if raised {kinds_text}"))
            self.block(handler.body, held)
        if not else_fails:
            self.block(stmt.orelse, evolve(at, env=after.env))
        self.block(stmt.final, at)
        return evolve(
            at, env=after.env if not stmt.handlers else _without(after.env, stmt.body)
        ), ended and not stmt.handlers

    def _func(self, stmt: Stmt, at: Context) -> tuple[Context, bool]:
        self._local[stmt.name] = (
            substitute_stmt(stmt, {k: v for k, v in at.env.items() if k not in stmt.params}),
            at.path,
        )
        return at, False

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
            lost = self._unawaited(expr, awaited)
            if self.language == "go" and _other_test_object(expr, at.env):
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

    def _unawaited(self, expr: Expr, awaited: bool) -> str:
        if awaited:
            return ""
        text = expr.text
        if self.language in ("javascript", "typescript", "tsx") and re.search(
            r"\)\.(?:resolves|rejects)\b|^assert\.rejects\(|\.eventually\.", text
        ):
            return "unawaited"
        if self.language == "c_sharp" and re.search(
            r"\b(?:Throws|ThrowsAny|ThrowsExactly)Async\b|\.(?:Throw|NotThrow)Async\b", text
        ):
            return "unawaited"
        return ""

    def _through(
        self, expr: Expr, at: Context, *, awaited: bool = False, into_functions: bool = True
    ) -> None:
        """Helpers called and functions given anywhere inside an expression."""
        stack = [expr]
        while stack:
            part = stack.pop()
            if part.op == "func":
                continue
            if part.op == "call" and _TASKS.search(part.callee) and not (awaited or self.waited or at.lost):
                for arg in part.args[1:]:
                    self._through(arg, evolve(at, lost="thread"), awaited=True)
                continue
            if part.op == "call" and _ignores_errors(part) and not at.lost:
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
        if _CATCHING.search(call.callee):
            lost = lost or "swallowed"
        if depth_test(head) and self.language in ("javascript", "typescript", "tsx"):
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
                self._rows(target, over, function.body, held, call.line)
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
            found = self.helpers(last, at.path) if head.op == "name" or _is_own(head.args[0]) else None
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

    # -- judgements
    def _fails(self, body: Sequence[Stmt]) -> bool:
        """Does reaching the end of `body` make the test fail?"""
        return any(_is_failing(stmt) for stmt in body)

    def _notices(self, handler: Stmt, at: Context) -> bool:
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


_TASKS = re.compile(r"(?:^|\.)(?:ensure_future|create_task|start_soon|run_coroutine_threadsafe)$")
_CATCHING = re.compile(
    r"(?:^|[.:])(?:catch_unwind|Record\.Exception(?:Async)?|Try|runCatching|catchThrowable)$"
)
"""Functions that return what the code given to them raises."""


def depth_test(head: Expr) -> bool:
    """A test that is defined inside of a test: it is not run."""
    return head.op == "name" and head.name in ("it", "specify")


def _ignores_errors(call: Expr) -> bool:
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


def _sorted_in_place(expr: Expr) -> str:
    """The name of what a statement sorts: `found.sort()`, `sort.Strings(found)`."""
    if expr.op != "call" or expr.args[0].op != "attr":
        return ""
    if _SORTERS.fullmatch(expr.callee):
        first = expr.args[1] if len(expr.args) > 1 else None
        return first.name if first is not None and first.op == "name" else ""
    last, receiver = expr.args[0].name, expr.args[0].args[0]
    return receiver.name if last in _SORTING and receiver.op == "name" else ""


def _other_test_object(expr: Expr, env: dict[str, Expr]) -> bool:
    """Does an assertion report to a testing.T that nobody looks at?"""
    first = expr.args[1] if expr.op == "call" and len(expr.args) > 1 else None
    made = env.get(first.name) if first is not None and first.op == "name" else None
    return (
        made is not None and re.match(r"new\(testing\.T\)|testing\.T\(|&?testing\.T\{", made.text) is not None
    )


def _is_failing(stmt: Stmt) -> bool:
    if stmt.kind == "raise":
        return not stmt.exprs or FAILURE_TYPES.search(stmt.exprs[0].text) is not None
    if stmt.kind == "assert":
        return stmt.exprs[0].op == "lit" and not stmt.exprs[0].value
    if stmt.kind == "block":
        return any(_is_failing(inner) for inner in stmt.body)
    if stmt.kind == "expr" and stmt.exprs:
        expr = stmt.exprs[0]
        made = recognise(expr) if expr.op == "call" and not is_failure(expr) else None
        return is_failure(expr) or bool(
            made and any(c.relation == "raises" and c.expected and c.expected.value == "fails" for c in made)
        )
    return False


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


def computed(function: Stmt, language: str) -> Expr | None:
    """What a function returns, where it does nothing but compute it: assignments of names, then a result."""
    env: dict[str, Expr] = {}
    body = [s for s in function.body if not (s.kind == "expr" and s.exprs and s.exprs[0].op == "lit")]
    while len(body) == 1 and body[0].kind == "block":
        body = list(body[0].body)
    if not body or len(body) > 4:
        return None
    for stmt in body[:-1]:
        if stmt.kind in ("expr", "assert", "with") and not any(s.kind == "return" for s in stmt.walk()):
            continue
        if stmt.kind == "assign" and stmt.name != "augmented" and len(stmt.exprs) == 2:
            env.update(bind(stmt.exprs[0], substitute(stmt.exprs[1], env)))
        else:
            return None
    last = body[-1]
    implicit = language in ("ruby", "rust") and last.kind == "expr"
    if not (last.kind == "return" or implicit) or len(last.exprs) != 1:
        return None
    value = last.exprs[0]
    if value.op == "func" or (value.op == "lit" and isinstance(value.value, bool)):
        return None
    made = recognise(value)
    if made:
        thrown = next((check.subject for check in made if check.relation == "raises"), None)
        return raised(thrown) if thrown is not None else None
    found = substitute(value, env)
    return found if len(found.text) <= MAX_BOUND else None


def _as_function(label: str, value: Expr) -> Stmt:
    flags = frozenset({"async"} if value.name == "async" else ())
    return Stmt("func", value.line, (), value.body, name=label, params=value.params, flags=flags)


def _is_own(receiver: Expr) -> bool:
    return receiver.op == "name" and receiver.name in (
        "self",
        "this",
        "cls",
        "helpers",
        "support",
        "utils",
        "Self",
    )


def _settled(check: Check) -> Check:
    """Judge an equality again once names are replaced: both sides may have become the same."""
    expected = folded(check.expected) if check.expected is not None else None
    if expected is not check.expected:
        check = evolve(check, expected=expected)
    if (
        check.relation == "equal"
        and check.expected is not None
        and check.subject.text == check.expected.text
        and not _CHANGING.search(check.subject.text)
    ):
        return evolve(check, relation="nothing", why="both sides are the same")
    if check.relation == "equal" and expected is not None:
        return _without_fallback(check, expected)
    return check


_CHANGING = re.compile(
    r"\b(?:next|random|uniform|rand\w*|time|now|uuid\w*|pop|popleft|read\w*|recv|input|choice|sample|shuffle|get_nowait)\("
)
"""Calls that answer differently each time: two of them are not the same."""


def _without_fallback(check: Check, expected: Expr) -> Check:
    """`actual == (stored if there else actual)` only demands something where there is something stored."""
    own = check.subject.text
    if expected.op == "cond" and len(expected.args) == 3:
        test, one, two = expected.args
        if two.text == own:
            return evolve(check, expected=one, conditions=(*check.conditions, f"if {test.text}"))
        if one.text == own:
            return evolve(check, expected=two, conditions=(*check.conditions, f"if not {test.text}"))
    if expected.op in ("or", "and") or (expected.op == "bin" and expected.name == "??"):
        rest = [arg for arg in expected.args if arg.text != own]
        if rest and len(rest) < len(expected.args):
            return evolve(check, expected=rest[0], conditions=(*check.conditions, f"if {rest[0].text}"))
    return check


def _simple(env: dict[str, Expr]) -> dict[str, Expr]:
    """Only what is needed to read a condition: literals and containers."""
    return {key: value for key, value in env.items() if value.op in ("lit", "regex", "list", "tuple",
    "dict", "cmp", "not", "and", "or")
            and len(value.text) < MAX_BOUND}  # fmt: skip


def _names(target: Expr) -> list[str]:
    return [part.name for part in target.walk() if part.op == "name"]


def _assigned(stmts: Sequence[Stmt]) -> set[str]:
    found: set[str] = set()
    for stmt in stmts:
        for inner in stmt.walk():
            if inner.kind == "assign":
                for target in inner.exprs[:-1]:
                    found.update(_names(target)[:1] if target.op in ("attr", "index") else _names(target))
    return found


def _without(env: dict[str, Expr], stmts: Sequence[Stmt]) -> dict[str, Expr]:
    gone = _assigned(stmts)
    return {key: value for key, value in env.items() if key not in gone} if gone else dict(env)

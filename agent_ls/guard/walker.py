"""Walks through a test the way it runs and gathers its checks: which are reached, under which conditions,
with which values, and whether anybody would notice their failure.

Helpers are walked where they are called, loops over known tables row by row, local names are replaced by what
they stand for. So a loop, a parameter table, a helper or three plain tests come out as the same checks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from attrs import define, evolve

from agent_ls.guard.checks import Check, raised
from agent_ls.guard.conditions import demands
from agent_ls.guard.failing import is_failing, notices, sorted_in_place, unawaited
from agent_ls.guard.mocking import mocks_in
from agent_ls.guard.raising import body_of, demanded_text, own_error, raises_itself
from agent_ls.guard.recognise import recognise
from agent_ls.guard.syntax import Expr, Stmt, folded, name, substitute, substitute_stmt
from agent_ls.guard.tables import bind, rows_of
from agent_ls.guard.vocabulary import SWALLOWING
from agent_ls.guard.walk_calls import Calls, Stop
from agent_ls.guard.walk_values import MAX_BOUND, Context, names_in, simple_values, without

_RAISES = re.compile(
    r"(?:^|\.)(?:raises|assertRaises\w*|assertWarns\w*|warns|deprecated_call|assertLogs|RaisesGroup)$"
)


@define
class Walk(Calls):
    """What one test does."""

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
            sorted_name = sorted_in_place(expr)
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
        for check in demands(substitute(stmt.exprs[0], simple_values(at.env))):
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
                self.add(evolve(check, line=stmt.line, lost=unawaited(value, self.language, False) or ""), at)
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
                for key in names_in(target):
                    env.pop(key, None)
            else:
                env.update(bind(target, bound))
        return evolve(at, env=env), False

    def _if(self, stmt: Stmt, at: Context) -> tuple[Context, bool]:
        test = substitute(stmt.exprs[0], simple_values(at.env))
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
        env = without(at.env, (*stmt.body, *stmt.orelse))
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
            self.rows(target, substitute(over, at.env), stmt.body, at, stmt.line)
        else:
            test = substitute(stmt.exprs[0], at.env)
            test = folded(test)
            endless = test.op == "lit" and bool(test.value)
            never = test.op == "lit" and not test.value
            inner = at if endless else evolve(at, conditions=(*at.conditions, f"while {test.text}"))
            inner = evolve(
                inner, env=without(at.env, stmt.body), lost=at.lost or ("unreachable" if never else "")
            )
            self.block(stmt.body, inner)
        self.block(stmt.orelse, at)
        return evolve(at, env=without(at.env, stmt.body)), False

    def rows(self, target: Expr, over: Expr, body: Sequence[Stmt], at: Context, line: int) -> None:
        rows = rows_of(over, self.language, target)
        env = without(at.env, body)
        if rows is None:
            inner = evolve(at, env={k: v for k, v in env.items() if k not in names_in(target)})
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
        message = demanded_text(match.text) if match is not None else ""
        if message == "''":
            message = ""
        if call.callee.endswith(("warns", "assertWarns", "deprecated_call", "assertLogs")):
            message += " (warning)"
        return Check("raises", subject, subject, args[0] if args else None, line=call.line, message=message)

    def _try(self, stmt: Stmt, at: Context) -> tuple[Context, bool]:
        body = list(stmt.body)
        fails_at_end = bool(body) and is_failing(body[-1]) and len(body) > 1
        else_fails = self._fails(stmt.orelse)
        quiet = [h for h in stmt.handlers if not notices(h)]
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
            at, env=after.env if not stmt.handlers else without(after.env, stmt.body)
        ), ended and not stmt.handlers

    def _func(self, stmt: Stmt, at: Context) -> tuple[Context, bool]:
        self._local[stmt.name] = (
            substitute_stmt(stmt, {k: v for k, v in at.env.items() if k not in stmt.params}),
            at.path,
        )
        return at, False

    # -- judgements
    def _fails(self, body: Sequence[Stmt]) -> bool:
        """Does reaching the end of `body` make the test fail?"""
        return any(is_failing(stmt) for stmt in body)


def _as_function(label: str, value: Expr) -> Stmt:
    flags = frozenset({"async"} if value.name == "async" else ())
    return Stmt("func", value.line, (), value.body, name=label, params=value.params, flags=flags)

"""Fluent assertions: `expect(x).to…`, `assertThat(x).…`, `x.Should().…`, `Assert.That(x, …)`."""

from __future__ import annotations

import re

from attrs import evolve, frozen

from agent_ls.guard.checks import Check, nothing, raised
from agent_ls.guard.conditions import approximation, demands, equality, matches_all, number, simple
from agent_ls.guard.raising import body_of, demanded_text, own_error, raises_itself
from agent_ls.guard.syntax import Expr, literal, name
from agent_ls.guard.verified import mockito, received
from agent_ls.guard.vocabulary import LINKS, MATCHERS, ROOTS, fold


@frozen
class Link:
    """One part of a chain: `.toBe(3)`; `args` is None where it isn't called."""

    word: str
    args: tuple[Expr, ...] | None
    line: int


def chain_of(expr: Expr) -> tuple[str, tuple[Expr, ...], list[Link], int] | None:
    """(root, its arguments, links) of a fluent assertion."""
    links: list[Link] = []
    at = expr
    while True:
        if at.op == "await":
            at = at.args[0]
        elif at.op == "call" and at.args[0].op == "attr":
            head = at.args[0]
            if head.name in ("Should", "should") and not at.args[1:]:
                return "should", (head.args[0],), links[::-1], expr.line
            if fold(head.name) in ROOTS and head.args[0].op == "name" and head.args[0].name in _HOSTS:
                return fold(head.name), at.args[1:], links[::-1], expr.line
            links.append(Link(head.name, at.args[1:], at.line))
            at = head.args[0]
        elif at.op == "attr":
            if at.name == "should" and links:
                return "should", (at.args[0],), links[::-1], expr.line
            links.append(Link(at.name, None, at.line))
            at = at.args[0]
        elif at.op == "call" and at.args[0].op == "name" and fold(at.args[0].name) in ROOTS:
            root = fold(at.args[0].name)
            if root == "assertthat" and len(at.args) > 2:
                return None
            return root, at.args[1:], links[::-1], expr.line
        elif at.op == "name" and at.name == "is_expected":
            return "expect", (name("subject"),), links[::-1], expr.line
        else:
            return None


_HOSTS = {
    "expect",
    "chai",
    "Assertions",
    "assertj",
    "Truth",
    "MatcherAssert",
    "self",
    "this",
    "softly",
    "Assert",
}


def by_chain(root: str, given: tuple[Expr, ...], links: list[Link], line: int) -> list[Check] | None:
    if root in ("assume", "then", "verify") and not links:
        return None
    if not given:
        return [] if links and links[0].word in ("assertions", "hasAssertions") else None
    subject = given[0]
    if root == "verify":
        first = links[0] if links else None
        call = Expr("call", args=(name(first.word), *(first.args or ()))) if first is not None else None
        return mockito(given, call, line)
    if root in ("assertthatthrownby", "catchthrowable"):
        if subject.op == "func" and raises_itself(subject.body):
            return [own_error(body_of(subject))]
        thrown = body_of(subject)
        return [Check("raises", thrown, thrown, line=line), *_links(raised(thrown), links, line)]
    if root.startswith("assertthatexceptionoftype"):
        code = next((link.args[0] for link in links if link.word == "isThrownBy" and link.args), name("?"))
        thrown = body_of(code)
        return [Check("raises", thrown, thrown, subject, line=line), *_links(raised(thrown), links, line)]
    found = _links(subject, links, line)
    if not found and not any(link.args and link.word == "satisfies" for link in links):
        word = links[-1].word if links else ""
        if not links or word in ("not", "to", "resolves", "rejects", "should") or fold(word) in MATCHERS:
            return [nothing(subject, "no matcher is called")]
        return [Check("holds", subject, subject, name(word), line=line)]
    return found


def _links(subject: Expr, links: list[Link], line: int) -> list[Check]:
    deny, found = False, []
    prelude: list[Check] = []
    for link in links:
        word = fold(link.word)
        if word in ("not", "notto", "tonot", "nottoo"):
            deny = True
        if word == "rejects":
            prelude = [Check("raises", subject, subject, line=line)]
            subject = raised(subject)
        if word in (
            "extracting",
            "first",
            "last",
            "element",
            "extractingresultof",
            "getcause",
            "subject",
            "bytes",
        ):
            subject = Expr("call", args=(Expr("attr", link.word, (subject,)), *(link.args or ())))
        if link.args is None:
            if word in ("true", "false", "null", "undefined", "empty", "ok", "exist", "nil", "rejected"):
                relation = MATCHERS[word]
                found += matcher(subject, f"!{relation}" if deny else relation, (), link.line, word)
            continue
        inner = link.args[0] if link.args else None
        if word in ("to", "notto", "tonot", "should", "shouldnot") and inner is not None:
            calls = received(subject, inner, deny or word in ("notto", "tonot", "shouldnot"), link.line)
            if calls is not None:
                found += calls
                continue
            found += _rspec(subject, inner, deny or word in ("notto", "tonot", "shouldnot"), link.line)
            continue
        if word in LINKS and word not in MATCHERS:
            continue
        relation = MATCHERS.get(word, "")
        if not relation:
            if not deny and re.match(r"to[A-Z]|is[A-Z]|has[A-Z]|Be[A-Z]?|Have", link.word):
                found.append(
                    Check("holds", subject, subject, Expr("other", link.word, link.args), line=link.line)
                )
            continue
        if deny:
            relation = relation.removeprefix("!") if relation.startswith("!") else f"!{relation}"
        found += matcher(subject, relation, link.args, link.line, word)
    return [*prelude, *found] if found else []


def _rspec(subject: Expr, inner: Expr, deny: bool, line: int) -> list[Check]:
    """`expect(x).to eq(3)`: the matcher is itself an expression, perhaps a chain
    (`raise_error(A).with(…)`)."""
    at, extra = inner, []
    more: list[Expr] = []
    while at.op in ("call", "attr") and (at.op == "attr" or at.args[0].op == "attr"):
        link = at.name if at.op == "attr" else at.args[0].name
        given = at.args[1:] if at.op == "call" else ()
        if link in ("or", "and", "|", "&"):
            rest = _rspec(subject, (at.args[0] if at.op == "call" else at).args[0], deny, line)
            other = [check for arg in given for check in _rspec(subject, arg, deny, line)]
            if link == "and":
                return [*rest, *other]
            texts = tuple(c.expected for c in (*rest, *other) if c.expected is not None)
            choices = Expr("list", args=texts, line=line)
            return [Check("contains", choices, choices, subject, line=line)]
        extra += list(given)
        more.append(Expr("kw", link, given[:1] or (name(link),)))
        at = (at.args[0] if at.op == "call" else at).args[0]
    word, args = (fold(dotted_last(at)), at.args[1:]) if at.op == "call" else (fold(at.name), ())
    if at.op == "cmp":  # `be > 3`
        return demands(Expr("cmp", at.name, (subject, at.args[1]), line=line), not deny)
    relation = MATCHERS.get(word, "holds")
    if word == "be" and not args:
        relation = "true"
    if relation == "changes":
        changed = Expr("list", args=tuple(body_of(arg) for arg in args), line=line)
        demanded = Expr("list", args=tuple(more), line=line)
        what = Expr("call", args=(name("change"), body_of(subject), changed), line=line)
        return [Check("!changes" if deny else "changes", what, what, demanded, line=line)]
    if relation == "approx" and extra:  # be_within(delta).of(value)
        return [
            Check(
                "approx", subject, subject, extra[0], line=line, slack=number(args[0] if args else None, 0.0)
            )
        ]
    if relation == "holds" and not args and word.startswith("be"):
        return [Check("!true" if deny else "true", name(f"{subject.text}.{word}"), subject, line=line)]
    relation = f"!{relation}" if deny else relation
    return matcher(subject, relation, (*args, *extra), line, word)


def dotted_last(call: Expr) -> str:
    return call.callee.rpartition(".")[2]


def matcher(subject: Expr, relation: str, args: tuple[Expr, ...], line: int, word: str) -> list[Check]:
    deny, bare = relation.startswith("!"), relation.removeprefix("!")
    first = args[0] if args else None
    if bare == "raises":
        if deny:
            return [Check("runs", body_of(subject), subject, line=line)]
        kind = next((a for a in args if a.op in ("name", "attr", "call") and a.op != "lit"), None)
        message = "".join(a.text for a in args if a is not kind and a.op != "func")
        if kind is not None and re.match(r"(?:expect\.)?any(?:thing)?\b", kind.text):
            kind = None
        if subject.op == "func" and raises_itself(subject.body):
            return [own_error(body_of(subject))]
        if word in ("rejectedwith", "rejected"):
            subject = subject.args[0] if subject.op == "await" else subject
        if subject.op == "call" and subject.callee == "exception":
            subject = subject.args[1]
        return [Check("raises", body_of(subject), subject, kind, line=line, message=demanded_text(message))]
    if (
        bare == "type"
        and subject.op == "call"
        and subject.callee == "exception"
        and first is not None
        and not deny
    ):
        return [Check("raises", subject.args[1], subject, first, line=line)]
    if bare in ("true", "false"):
        return demands(subject, (bare == "true") != deny)
    if bare in ("null", "defined", "empty"):
        return simple(relation, subject, line)
    if bare == "called":
        return [Check("not-called" if deny else "called", subject, subject, line=line)]
    if (
        word in ("hasfieldorpropertywithvalue", "tohaveproperty", "haveproperty", "property")
        and len(args) == 2
    ):
        field = str(args[0].value)
        part = Expr("attr", field, (subject,), line=line)
        return [Check(relation.replace("contains", "equal"), part, part, args[1], line=line)]
    if bare == "length":
        size = Expr("call", args=(name("len"), subject), line=line)
        return [Check(f"{'!' if deny else ''}equal", size, size, first or literal(1), line=line)]
    if bare == "called-with":
        return [Check(relation, subject, subject, Expr("list", args=args), line=line)]
    if bare == "called-n":
        return [Check(relation, subject, subject, first or literal(1), line=line)]
    if bare == "any-order" or (bare == "equal" and len(args) > 1) or word == "containsexactly":
        expected = Expr("list", args=args) if len(args) != 1 else args[0]
        if word == "containsexactly" and len(args) == 1:
            expected = Expr("list", args=args)
        return [Check(relation, subject, subject, expected, line=line)]
    if first is None:
        return [Check(relation, subject, subject, line=line)]
    if bare == "equal":
        if deny:
            return [Check("!equal", subject, subject, first, line=line)]
        if first.op == "call" and re.search(r"(?:^|\.)(?:closeTo|within)$", first.callee):
            return [approximation(subject, first, line)]
        strict = {"tostrictequal": 2, "toequal": -2}.get(word, 0)
        return [evolve(check, strict=strict) for check in equality(subject, first, line)]
    if bare == "approx":
        digits = args[1] if len(args) > 1 else None
        slack = 10.0 ** -number(digits, 2.0) if word == "tobecloseto" else number(digits, 0.0)
        return [Check(relation, subject, subject, first, line=line, slack=slack)]
    if bare == "regex" and not deny and matches_all(first):
        return [nothing(subject, "its pattern matches everything")]
    if bare in ("gt", "ge", "lt", "le"):
        sign = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}[bare]
        return [
            evolve(c, line=line) for c in demands(Expr("cmp", sign, (subject, first), line=line), not deny)
        ]
    if word in ("isin", "beoneof", "beelementof"):
        return [Check(relation, Expr("list", args=args), subject, subject, line=line)]
    if bare == "contains" and len(args) > 1:
        return [Check(relation, subject, subject, arg, line=line) for arg in args]
    if bare == "contains" and first.value == "" and not deny:
        return [nothing(subject, "every text contains the empty one")]
    return [Check(relation, subject, subject, first, line=line)]


def that(args: list[Expr], line: int) -> list[Check]:
    """NUnit's and Hamcrest's `that(actual, constraint)`."""
    subject, constraint = args[0], args[1]
    parts: list[Link] = []
    at = constraint
    while True:
        if at.op == "call" and at.args[0].op == "attr":
            parts.append(Link(at.args[0].name, at.args[1:], line))
            at = at.args[0].args[0]
        elif at.op == "attr":
            parts.append(Link(at.name, None, line))
            at = at.args[0]
        elif at.op == "call" and at.args[0].op == "name":
            word = fold(at.args[0].name)
            if word in ("is", "not") and len(at.args) == 2:
                if word == "not":
                    parts.append(Link("not", None, line))
                at = at.args[1]
                if at.op not in ("call", "attr"):
                    parts.append(Link("equalTo", (at,), line))
                    break
                continue
            parts.append(Link(at.args[0].name, at.args[1:], line))
            break
        else:
            break
    ordered = parts[::-1]
    if constraint.op == "fstr" or isinstance(constraint.value, str):
        return demands(subject)
    slack = next((link.args[0] for link in ordered if link.word == "Within" and link.args), None)
    if "Throws" in constraint.text:
        if subject.op == "func" and raises_itself(subject.body):
            return [own_error(body_of(subject))]
        generic = re.search(r"<([\w.]+)>", constraint.text)
        kind = name(generic.group(1)) if generic is not None else None
        return [Check("raises", body_of(subject), subject, kind, line=line)]
    if any(link.word == "Or" for link in ordered):
        options = tuple(link.args[0] for link in ordered if link.args)
        choices = Expr("list", args=options, line=line)
        return [Check("contains", choices, choices, subject, line=line)]
    found = _links(subject, [link for link in ordered if link.word != "Within"], line)
    if slack is not None:
        found = [
            evolve(c, relation="approx", slack=number(slack, 0.0)) if c.relation == "equal" else c
            for c in found
        ]
    return found or [Check("holds", subject, subject, constraint, line=line)]

"""Calls that assert: `self.assertEqual(a, b)`, `expect(x).toBe(y)`, `assertThat(x).isEqualTo(y)`,"
" `assert_eq!(a, b)`."""

from __future__ import annotations

import re

from attrs import evolve, frozen

from agent_ls.guard.checks import Check, nothing, oriented, raised
from agent_ls.guard.conditions import approximation, demands, equality, number, simple
from agent_ls.guard.syntax import Expr, literal, name
from agent_ls.guard.vocabulary import CALLS, FAILURES, LINKS, MATCHERS, MOCKS, ROOTS, fold

_RECEIVERS = re.compile(
    r"^(?:self|this|cls|assert|Assert|require|Assertions|t|is|chai\.assert|CollectionAssert|StringAssert|s|suite"
    r"|np\.testing|npt|numpy\.testing|pd\.testing|tm|unittest\.TestCase|testCase|tc|self\.\w*[tT]est\w*|assert\.strict"
    r"|s\.Require\(\)|s\.Assert\(\)|testing|Test|\w*TestUtils?|assertions|expect|pytest|td|qt|c|ctx|TestCase|a)$"
)
_PLAIN = re.compile(r"^(?:assert\w*|refute\w*|flunk|debug_assert\w*)!?$|^prop_assert\w*!$")


@frozen
class Link:
    """One part of a chain: `.toBe(3)`; `args` is None where it isn't called."""

    word: str
    args: tuple[Expr, ...] | None
    line: int


def is_failure(expr: Expr) -> bool:
    """Does reaching this call make the test fail?"""
    if expr.op == "await":
        return is_failure(expr.args[0])
    return (
        expr.op == "call"
        and FAILURES.search(expr.callee) is not None
        and not (
            expr.callee.startswith(("assert.Error", "require.Error", "expect."))
            or expr.callee == "assert.Errorf"
        )
    )


def recognise(expr: Expr) -> list[Check] | None:
    """The checks that an expression statement makes; None when it is no assertion."""
    if expr.op == "await":
        return recognise(expr.args[0])
    chain = _chain(expr)
    if chain is not None:
        return _by_chain(*chain)
    if expr.op != "call":
        return None
    callee, last = expr.callee, expr.callee.rpartition(".")[2]
    receiver = callee.rpartition(".")[0]
    if fold(last) in MOCKS and receiver and last.startswith("assert_"):
        return _mock(expr, MOCKS[fold(last)])
    known = CALLS.get(fold(last))
    if known is None:
        return None
    if receiver:
        if not _RECEIVERS.match(receiver) and not (
            last.lower().startswith("assert") and receiver[:1].isupper()
        ):
            return None
        if receiver in ("t", "is", "s", "a", "c", "tc", "expect", "testing", "b") and last in (
            "Error", "Errorf", "Fatal", "Fatalf", "Run", "is", "match"):  # fmt: skip
            if last in ("is", "match") and len(expr.args) > 2:
                pass
            else:
                return None
    elif not _PLAIN.match(last) and last != "fail":
        return None
    strict = {"strictEqual": 1, "deepStrictEqual": 1, "equal": -1, "deepEqual": -1}.get(last, 0)
    made = _by_word(expr, known, last)
    return [evolve(check, strict=strict) for check in made] if made and strict else made


def _by_word(expr: Expr, relation: str, last: str) -> list[Check] | None:
    args = list(expr.positional)
    line = expr.line
    if args and args[0].op == "name" and args[0].name in ("t", "s", "tb", "b") and "." in expr.callee:
        args = args[1:]  # testify
    if args and args[0].op == "call" and args[0].callee in ("s.T", "suite.T"):
        args = args[1:]
    if not args:
        return [] if relation != "fail" else None
    if relation in ("true", "false", "raises") and len(args) >= 2 and last in ("That", "assertThat"):
        return _that(args, line)
    if last == "assertThat":
        return [nothing(args[0], "nothing is demanded of it")]
    word = fold(last)
    if relation == "true" and len(args) > 1 and isinstance(args[0].value, str) and word == "asserttrue":
        args = args[1:]  # JUnit 4 puts the message first
    if word in ("assertequals", "assertequal", "equal") and len(args) >= 3:
        third = args[2]
        precise = isinstance(third.value, int | float) and not isinstance(third.value, bool)
        if precise and (
            isinstance(args[0].value, float)
            or isinstance(args[1].value, float)
            or last in ("Equal", "assertEquals")
        ):
            slack = 10.0 ** -float(third.value) if last == "Equal" else float(third.value)
            return [evolve(oriented("approx", args[0], args[1]), slack=slack, line=line)]
        if (
            isinstance(args[0].value, str)
            and not isinstance(third.value, str)
            and word == "assertequals"
            and third.op != "fstr"
        ):
            args = args[1:]
    if relation in ("raises", "errs", "erris", "runs"):
        return _raises(expr, relation, args, last)
    return claim(relation, args, line, expr)


def claim(relation: str, args: list[Expr], line: int, whole: Expr) -> list[Check]:
    """Checks for a relation and its arguments, the subject among the first two."""
    deny = relation.startswith("!")
    bare = relation.removeprefix("!")
    first = args[0]
    second = args[1] if len(args) > 1 else None
    at: list[Check] = []
    if bare in ("true", "false"):
        at = demands(first, (bare == "true") != deny)
    elif bare == "equal" and second is not None:
        at = equality(first, second, line) if not deny else [oriented("!equal", first, second)]
    elif bare in ("null", "defined", "empty", "zero"):
        at = simple(relation, first, line)
    elif second is None:
        at = [Check(relation, first, first, line=line)]
    elif bare == "contains":
        container, item = (first, second)
        word = fold(whole.callee.rpartition(".")[2])
        if word in ("assertin", "assertnotin") or (
            word in ("contains", "doesnotcontain") and whole.callee.startswith("Assert.")
        ):
            container, item = second, first
        at = [Check(relation, container, container, item, line=line)]
        if item.value == "" and not deny:
            at = [nothing(whole, "every text contains the empty one")]
    elif bare == "approx":
        found = oriented("approx", first, second)
        places = whole.keyword("places") or (
            args[2] if len(args) > 2 and "almost" in whole.callee.lower() else None
        )
        delta = whole.keyword("delta") or (args[2] if len(args) > 2 and places is None else None)
        slack = number(delta, 0.0) if delta is not None else 10.0 ** -number(places, 7.0)
        if "allclose" in whole.callee:
            slack = max(number(whole.keyword("rtol"), 0.0), number(whole.keyword("atol"), 0.0)) or 1e-7
        at = [evolve(found, relation=relation, slack=slack)]
    elif bare == "length":
        size = Expr("call", args=(name("len"), first), line=line)
        at = [Check("equal", size, size, second, line=line)]
    elif bare == "regex":
        subject, pattern = (
            (second, first) if first.op in ("regex",) or _first_pattern(whole) else (first, second)
        )
        at = [Check(relation, subject, subject, pattern, line=line)]
        if not deny and matches_all(pattern):
            at = [nothing(whole, "its pattern matches everything")]
    elif bare == "type":
        subject, kind = (second, first) if _type_first(whole, first) else (first, second)
        at = [Check(relation, subject, subject, kind, line=line)]
        if kind.text == "object":
            at = [nothing(whole, "everything is an object")]
    else:
        at = (
            [evolve(oriented(relation, first, second))]
            if bare == "any-order"
            else [Check(relation, first, first, second, line=line)]
        )
    return [evolve(check, line=line) if not check.line else check for check in at]


def _first_pattern(whole: Expr) -> bool:
    return whole.callee.rpartition(".")[2] in (
        "assert_match",
        "refute_match",
        "Matches",
        "DoesNotMatch",
        "Regexp",
    )


def _type_first(whole: Expr, first: Expr) -> bool:
    last = whole.callee.rpartition(".")[2]
    return last in (
        "assert_instance_of",
        "assert_kind_of",
        "IsType",
        "assertInstanceOf",
        "IsAssignableFrom",
    ) or (first.text.endswith(".class"))


def matches_all(pattern: Expr | None) -> bool:
    """Is it a pattern that every text has?"""
    if pattern is None:
        return False
    if pattern.op == "call" and pattern.positional:
        pattern = pattern.positional[0]
    text = pattern.value if isinstance(pattern.value, str) else None
    return (
        text is not None
        and re.fullmatch(
            r"\^?(?:\(\?s\))?(?:\.\*\??|\.|\.\+\??|\[\\s\\S\][*+]?|\(\.\*\)|\\w\*|\S?\*)?\$?", text
        )
        is not None
    )


def body_of(expr: Expr) -> Expr:
    """What runs inside a function that is given to an assertion, as one expression."""
    if expr.op != "func":
        return expr
    parts = tuple(part for stmt in expr.body for inner in stmt.walk() for part in inner.exprs[-1:])
    return parts[0] if len(parts) == 1 else Expr("other", "run", parts, line=expr.line)


def _raises(expr: Expr, relation: str, args: list[Expr], last: str) -> list[Check]:
    line = expr.line
    generic = re.search(r"<(.+)>", last)
    codes = [arg for arg in args if arg.op == "func"]
    code = codes[0] if codes else None
    others = [arg for arg in args if arg is not code]
    if relation == "runs":
        subject = body_of(code) if code is not None else args[0]
        return [Check("runs", subject, subject, line=line)]
    kind: Expr | None = name(generic.group(1)) if generic else None
    message = ""
    if relation in ("errs", "erris"):
        subject = args[0]
        if relation == "erris":
            kind = args[1] if len(args) > 1 else None
        elif len(args) > 1 and last in ("ErrorContains", "EqualError"):
            message = args[1].text
        return [Check("raises", subject, subject, kind, line=line, message=message)]
    if (
        code is None
        and others
        and last.lower() in ("assertraises", "assertraisesregex", "assertthrows")
        and len(others) > 1
    ):
        kind = others[0]
        target = others[2:] if "regex" in last.lower() else others[1:]
        code = Expr("call", args=(target[0], *target[1:])) if target else None
        message = others[1].text if "regex" in last.lower() else ""
        others = []
    elif code is None and others:
        code, others = others[0], others[1:]
    for other in others:
        if other.op == "func":
            message += other.text
        elif other.op in ("lit", "regex", "fstr", "dict"):
            if not (
                isinstance(other.value, str)
                and last in ("throws", "rejects")
                and other is others[-1]
                and len(others) > 1
            ):
                message += other.text
        elif kind is None:
            kind = other
    if len(codes) > 1:  # node's predicate
        message += codes[1].text
    subject = body_of(code) if code is not None else name("?")
    return [Check("raises", subject, subject, kind, line=line, message=_pattern(message))]


def _pattern(message: str) -> str:
    return "" if re.fullmatch(r"/?'?\.?[*+]?'?/?", message) else message


def _mock(expr: Expr, relation: str) -> list[Check]:
    target = expr.args[0].args[0]
    if relation == "called-with":
        args = tuple(expr.args[1:])
        return [Check("called-with", target, target, Expr("list", args=args, line=expr.line), line=expr.line)]
    if relation == "called-n":
        return [Check("called-n", target, target, literal(1), line=expr.line)]
    return [Check(relation, target, target, line=expr.line)]


def _chain(expr: Expr) -> tuple[str, tuple[Expr, ...], list[Link], int] | None:
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


def _by_chain(root: str, given: tuple[Expr, ...], links: list[Link], line: int) -> list[Check] | None:
    if root in ("assume", "then", "verify") and not links:
        return None
    if not given:
        return [] if links and links[0].word in ("assertions", "hasAssertions") else None
    subject = given[0]
    if root == "verify":
        return [
            Check(
                "called-with",
                subject,
                subject,
                Expr("list", args=tuple(Expr("other", link.word, link.args or ()) for link in links)),
                line=line,
            )
        ]
    if root in ("assertthatthrownby", "catchthrowable"):
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
    """`expect(x).to eq(3)`: the matcher is itself an expression, perhaps a chain"
    " (`raise_error(A).with(…)`)."""
    at, extra = inner, []
    while at.op == "call" and at.args[0].op == "attr":
        extra += list(at.args[1:])
        at = at.args[0].args[0]
    word, args = (fold(dotted_last(at)), at.args[1:]) if at.op == "call" else (fold(at.name), ())
    if at.op == "cmp":  # `be > 3`
        return demands(Expr("cmp", at.name, (subject, at.args[1]), line=line), not deny)
    relation = MATCHERS.get(word, "holds")
    if word == "be" and not args:
        relation = "true"
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
        if word in ("rejectedwith", "rejected"):
            subject = subject.args[0] if subject.op == "await" else subject
        if subject.op == "call" and subject.callee == "exception":
            subject = subject.args[1]
        return [Check("raises", body_of(subject), subject, kind, line=line, message=_pattern(message))]
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


def _that(args: list[Expr], line: int) -> list[Check]:
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
    if (
        any(link.word == "Throws" or link.word.startswith(("TypeOf", "InstanceOf")) for link in ordered)
        or "Throws" in constraint.text
    ):
        return [Check("raises", body_of(subject), subject, name(constraint.text), line=line)]
    found = _links(subject, [link for link in ordered if link.word != "Within"], line)
    if slack is not None:
        found = [
            evolve(c, relation="approx", slack=number(slack, 0.0)) if c.relation == "equal" else c
            for c in found
        ]
    return found or [Check("holds", subject, subject, constraint, line=line)]

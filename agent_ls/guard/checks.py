"""An assertion as data: what it compares, how, with what, and what may keep it from ever failing.

`RANK` orders relations by how many outcomes they rule out, given the same subject. The order is partial in
truth (a membership and a comparison can't be compared); equal distances mean nothing.
"""

from __future__ import annotations

import re

from attrs import evolve, field, frozen

from agent_ls.guard.syntax import Expr, literal, name
from agent_ls.guard.vocabulary import WILD

RANK: dict[str, int] = {
    "nothing": 0,
    "runs": 5,
    "holds": 30,
    "!equal": 20,
    "!contains": 22,
    "!type": 20,
    "!regex": 20,
    "!approx": 20,
    "defined": 25,
    "!empty": 31,
    "true": 30,
    "called": 32,
    "false": 34,
    "type": 40,
    "lt": 50,
    "le": 49,
    "gt": 50,
    "ge": 49,
    "regex": 55,
    "contains": 60,
    "length": 62,
    "called-n": 62,
    "raises": 65,
    "partial": 75,
    "any-order": 80,
    "approx": 85,
    "snapshot": 88,
    "called-with": 90,
    "not-called": 92,
    "changes": 60,
    "custom": 95,
    "equal": 100,
}


@frozen(eq=False, slots=False)
class Check:
    """One assertion.

    Args:
        relation: a key of RANK.
        subject: what is checked, with local names replaced by what they stand for.
        raw: the subject as written.
        expected: what it is compared with, None for relations without.
        slack: how far off a value may be (a tolerance), 0 for none.
        message: for raises: the pattern or predicate that the error must fulfil.
        conditions: under which it is reached, outermost first.
        lost: why a failure would not be noticed ("" if it would): unreachable, swallowed, …
        row: the row of a table that it was expanded from.
    """

    relation: str
    subject: Expr
    raw: Expr
    expected: Expr | None = None
    line: int = 0
    path: str = ""
    slack: float = 0.0
    message: str = ""
    conditions: tuple[str, ...] = ()
    lost: str = ""
    row: str = ""
    relative: bool = field(default=False, kw_only=True)
    """Is the slack a part of the expected value?"""
    why: str = field(default="", kw_only=True)
    strict: int = field(default=0, kw_only=True)
    """For words that come in pairs: above zero for the stricter one, below for the other."""

    @property
    def rank(self) -> int:
        return 0 if self.lost else RANK.get(self.relation, 30)

    @property
    def key(self) -> tuple[str, str]:
        """The same for two assertions that say the same; the order of an equality's sides is no
        difference."""
        known: tuple[str, str] | None = self.__dict__.get("_key")
        if known is None:
            one, two = canon(self.subject), canon(self.expected) if self.expected is not None else ""
            if self.relation in ("equal", "!equal", "approx", "any-order") and two < one:
                one, two = two, one
            known = (self.relation, f"{one} ⟷ {two} ⟷ {self.message} ⟷ {self.slack or ''}")
            self.__dict__["_key"] = known
        return known

    def says(self) -> str:
        """For people."""
        text = f"{self.subject.text} {self.relation}"
        return f"{text} {self.expected.text}" if self.expected is not None else text


_SAME = re.compile(r"\.(?:to_string|into|to_owned|as_str|unwrap|expect|clone|to_vec)\((?:'[^']*')?\)")
_KEYED = re.compile(r"\['(\w+)'\]")
_OWN = re.compile(r"(?<![\w.])(?:self|this|cls)\.|@(?=\w)")


def canon(expr: Expr) -> str:
    """The normal form where fields, keys and one's own attributes look alike."""
    known: str | None = expr.__dict__.get("_canon")
    if known is None:
        known = _OWN.sub("", _KEYED.sub(r".\1", _SAME.sub("", lossless(expr).text)))
        expr.__dict__["_canon"] = known
    return known


def lossless(expr: Expr) -> Expr:
    """`expr` without calls around it that keep all that can be compared."""
    while True:
        if expr.op == "await":
            expr = expr.args[0]
        elif (
            expr.op == "comp"
            and not expr.name
            and len(expr.args) == 2
            and (expr.args[0].text,) == expr.params
        ):
            expr = expr.args[1]  # [x for x in items]
        elif expr.op == "call" and expr.callee in (
            "list",
            "tuple",
            "dict",
            "Some",
            "Array.from",
            "bool",
            "float",
        ):
            if len(expr.args) != 2 or expr.args[1].op == "comp":
                return expr
            expr = expr.args[1]
        elif (
            expr.op == "call"
            and expr.args[0].op == "attr"
            and len(expr.args) == 1
            and expr.args[0].name in _QUIET
        ):
            expr = expr.args[0].args[0]
        elif expr.op == "call" and len(expr.args) == 2 and expr.callee in _AWAITING:
            expr = expr.args[1]
        elif expr.op == "attr" and expr.name in ("to_a", "to_h", "dup"):
            expr = expr.args[0]
        else:
            return expr


_AWAITING = {"asyncio.run", "anyio.run", "loop.run_until_complete", "Ok",
             "asyncio.get_event_loop().run_until_complete", "block_on", "tokio_test.block_on"}  # fmt: skip
_QUIET = {"to_vec", "clone", "as_deref", "as_ref", "as_str", "to_string", "into", "to_owned", "unwrap",
    "iter", "into_iter",
          "copy", "toList", "collect", "as_slice"}  # fmt: skip


def is_constant(expr: Expr) -> bool:
    """Known without running anything: literals and containers of them."""
    if expr.op in ("lit", "regex"):
        return True
    if expr.op in ("list", "tuple", "set", "dict", "pair", "neg", "kw", "spread"):
        return all(is_constant(arg) for arg in expr.args)
    return False


def is_valuelike(expr: Expr) -> bool:
    """Made of literals, constants by name and constructors: what tests write as the expected side."""
    if expr.op == "name":
        return expr.name[:1].isupper()
    if expr.op == "attr":
        return is_valuelike(expr.args[0])
    if expr.op == "call":
        head = expr.args[0]
        plain = head.op in ("name", "attr") and (
            head.name[:1].isupper()
            or head.name.startswith("new ")
            or head.name in ("date", "datetime", "call", "set")
        )
        return plain and all(is_valuelike(arg) for arg in expr.args[1:])
    if expr.op in ("lit", "regex"):
        return True
    return expr.op in ("list", "tuple", "set", "dict", "pair", "neg", "kw", "bin") and all(
        is_valuelike(arg) for arg in expr.args
    )


def oriented(relation: str, left: Expr, right: Expr) -> Check:
    """A check of two sides where the one that is made of values is the expected one."""
    firmly = is_constant(left) and not is_constant(right)
    if firmly or (is_valuelike(left) and not is_valuelike(right)):
        left, right = right, left
    return Check(relation, left, left, right, line=left.line or right.line)


def pieces(check: Check, depth: int = 0) -> list[Check]:
    """An equality with a container as equalities of its parts; [] where it has none."""
    if check.relation not in ("equal", "partial") or check.expected is None or depth > 2:
        return []
    expected, subject = check.expected, check.subject
    found = []
    if expected.op in ("list", "tuple"):
        same = subject.op in ("list", "tuple") and len(subject.args) == len(expected.args)
        for at, value in enumerate(expected.args):
            part = subject.args[at] if same else Expr("index", args=(subject, literal(at)))
            found.append(evolve(check, relation="equal", subject=part, raw=part, expected=value))
    elif expected.op == "dict":
        for pair in expected.args:
            if pair.op != "pair":
                return []
            key = pair.args[0]
            part = Expr("index", args=(subject, key))
            if key.op == "lit" and isinstance(key.value, str) and key.value.isidentifier():
                part = Expr("attr", key.value, (subject,))
            found.append(evolve(check, relation="equal", subject=part, raw=part, expected=pair.args[1]))
    return found


def wild_parts(expr: Expr | None) -> int:
    """How many parts of an expected value accept anything of a kind."""
    if expr is None:
        return 0
    return sum(1 for part in expr.walk() if WILD.search(part.text) and part.op in ("name", "attr", "call"))


def nothing(subject: Expr, why: str) -> Check:
    """An assertion that can't fail."""
    return Check("nothing", subject, subject, line=subject.line, why=why)


def raised(by: Expr) -> Expr:
    """The exception that code raised, as an expression that further checks can be about."""
    return Expr("call", args=(name("exception"), by), line=by.line)


def shape(expr: Expr) -> str:
    """Without the name it starts from and without arguments: `.total`, `parse()`."""
    match expr.op:
        case "attr":
            return f"{shape(expr.args[0])}.{expr.name}"
        case "index":
            return f"{shape(expr.args[0])}[{', '.join(a.text for a in expr.args[1:])}]"
        case "call":
            head = expr.args[0]
            if head.op == "name":
                return f"{head.name}()"
            return f"{shape(head)}()"
        case "name":
            return ""
    return expr.text

"""Which assertion of the old test is which of the new one, and what was lost on the way."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from typing import Literal

from attrs import define, evolve, field, frozen

from agent_ls.guard.checks import Check, canon, pieces, shape
from agent_ls.guard.losses import Loss, short
from agent_ls.guard.strength import loss
from agent_ls.guard.syntax import Expr, literals

MAX_PAIRS = 60_000
_TRIVIAL = {"", "None", "True", "False", "0", "1", "[]", "{}", "''"}


@frozen
class Change:
    """One old assertion that became weaker (`new` set) or is gone (`new` None)."""

    old: Check
    new: Check | None
    loss: Loss


@define
class Pool:
    """What all new tests together check: for assertions that moved to another test."""

    keys: Counter[tuple[str, str]]
    subjects: frozenset[str] = frozenset()
    balance: Counter[tuple[str, str]] = field(factory=Counter)
    """How often each is there now, less how often it was there before, in all tests."""
    fresh: tuple[Check, ...] = ()
    """Checks that are new in the pool."""

    @classmethod
    def of(cls, checks: Sequence[Check], without: Sequence[Check] = ()) -> Pool:
        """The checks that can fail; fewer those of `without`, so that only what is new in the pool is
        left."""
        found: Counter[tuple[str, str]] = Counter()
        for check in checks:
            if check.rank:
                found.update(_all_keys(check))
        for check in without:
            if check.rank:
                found.subtract(_all_keys(check))
        known = {check.key for check in without}
        fresh = frozenset(
            c.subject.text for c in checks if c.rank and c.key not in known and literals(c.subject)
        )
        new = tuple(c for c in checks if c.rank and c.key not in known) if without else ()
        return cls(+found, fresh, fresh=new)

    def weigh(self, before: Sequence[Check], after: Sequence[Check]) -> None:
        """Note which checks are made as often as before, by whichever test."""
        self.balance = Counter(check.key for check in after if check.rank and not check.conditions)
        for check in before:
            if check.rank and check.key in self.balance:
                self.balance[check.key] -= 1

    def asked_again(self, check: Check) -> Literal["", "same", "other"]:
        """Is there a new check of the same inputs: as strong, or expecting something else?"""
        inputs = _inputs_of(check)
        if not inputs:
            return ""
        again = [n for n in self.fresh if n.relation == check.relation and inputs <= _inputs_of(n)]
        if any(loss(check, n) is None and _same_expectation(check, n) for n in again):
            return "same"
        return "other" if again else ""

    def has(self, check: Check) -> bool:
        return check.key in self.keys or (
            bool(parts := pieces(check)) and all(self.has(part) for part in parts)
        )

    def moved(self, check: Check) -> bool:
        """Is it made by another test now, or as often as before by all of them?"""
        balance = self.balance.get(check.key)
        return self.has(check) or (balance is not None and balance >= 0)


def _same_expectation(old: Check, new: Check) -> bool:
    if old.relation == "raises" or old.expected is None or new.expected is None:
        return True
    return canon(old.expected) == canon(new.expected)


def _inputs_of(check: Check) -> Counter[str]:
    """The values that a check's subject is made from, where they tell it from others."""
    known: Counter[str] | None = check.__dict__.get("_inputs")
    if known is None:
        known = Counter(literals(check.subject))
        telling = [text for text in known if len(text) > 4 or (text[:1] not in "'\"" and len(text) > 2)]
        asked = check.subject.callee.rpartition(".")[2]
        if len(telling) < 2 and not any(len(text) > 10 for text in telling):
            known = known + Counter([f"{asked}("]) if telling and len(telling[0]) > 6 and asked else Counter()
        else:
            known = known + Counter([f"{asked}("])
        check.__dict__["_inputs"] = known
    return known


def _all_keys(check: Check) -> list[tuple[str, str]]:
    found = [check.key]
    for part in pieces(check):
        found += _all_keys(part)
    return found


def align(
    old: Sequence[Check],
    new: Sequence[Check],
    pool: Pool,
    gone: Collection[str],
    *,
    hidden_rows: bool = False,
) -> list[Change]:
    """What the checks `new` lose against `old`.

    Args:
        pool: the checks of all new tests.
        gone: names of functions that the change removed from the source.
        hidden_rows: whether the new test is run on rows that can't be read.
    """
    alive = [check for check in old if check.rank]
    new = [_with_text(check, new) for check in new]
    left, right = _same(alive, list(new))
    if not left:
        return []
    own = Pool.of(new)
    left = [check for check in left if not own.has(check) or _worse_reach(check, new)]
    left = [check for check in left if not _implied(check, new)]
    pairs, left, right = _paired(left, right)
    for one, two in pairs:  # the calls of a mock became the record of a fake
        if one.relation == "called-with" and two.relation == "equal" and loss(one, two) is None:
            left = [c for c in left if c.relation != "called-n" or canon(c.subject) != canon(one.subject)]
    stronger = [two for one, two in pairs if two.rank and _strengthened(one, two)]
    changes = []
    for one, two in pairs:
        found = loss(one, two)
        elsewhere = pool.has(one) or (one.relation == "raises" and pool.asked_again(one) == "same")
        if found is not None and not (elsewhere and not two.lost and two.relation != "nothing"):
            changes.append(Change(one, two, found))
    for change in _missing(left, right, pool, gone, hidden_rows):
        swap = next((s for s in stronger if canon(s.subject) in canon(change.old.subject)), None)
        if swap is not None and change.loss.severity == "block" and not change.old.row:
            stronger.remove(swap)
            text = f"{change.loss.message}; more is demanded of {short(swap.raw)}"
            change = evolve(change, loss=Loss("assertion-replaced", "review", text))
        changes.append(change)
    return changes


def _strengthened(old: Check, new: Check) -> bool:
    """Does the new check demand more of the same thing?"""
    if old.relation == new.relation == "raises":
        return bool(new.message) and not old.message
    return new.rank > old.rank + 5 and loss(old, new) is None


def _with_text(check: Check, beside: Sequence[Check]) -> Check:
    """A check of an error, with the text that other assertions on the same error demand."""
    if check.relation != "raises" or check.message:
        return check
    thrown = f"exception({check.subject.text})"
    for other in beside:
        text = other.expected if other.rank and other.relation in ("equal", "contains", "regex") else None
        if text is not None and isinstance(text.value, str) and thrown in other.subject.text:
            return evolve(check, message=text.text)
    return check


def _same(old: list[Check], new: list[Check]) -> tuple[list[Check], list[Check]]:
    """Take away what is there on both sides, as reachable as before."""
    places: dict[tuple[str, str], list[Check]] = defaultdict(list)
    for check in new:
        places[check.key].append(check)
    left, used = [], set()
    for check in old:
        found = next(
            (n for n in places.get(check.key, ()) if id(n) not in used and n.rank and loss(check, n) is None),
            None,
        )
        if found is None:
            left.append(check)
        else:
            used.add(id(found))
    if not left:
        return left, []
    return left, [check for check in new if id(check) not in used]


def _worse_reach(check: Check, new: Sequence[Check]) -> bool:
    """Is every equal new check less reachable?"""
    same = [n for n in new if n.key == check.key]
    return bool(same) and all(not n.rank or loss(check, n) is not None for n in same)


def _wholes(subject: Expr, new: Sequence[Check]) -> list[Expr]:
    """Containers that a thing, or what `keys()` and `values()` make of it, must now be equal to."""
    text = canon(subject)
    return [
        other.expected
        for other in new
        if other.rank and other.relation == "equal" and other.expected is not None
        if other.expected.op in ("list", "tuple", "dict") and not other.conditions
        if canon(other.subject) == text
        or re.fullmatch(r"\.\w+(?:\(\))?", canon(other.subject).removeprefix(text))
    ]


def _implied(check: Check, new: Sequence[Check]) -> bool:
    """Does a stronger assertion about the same thing say it too?"""
    if (
        check.relation == "equal"
        and check.subject.callee in ("len", "size", "count")
        and check.expected is not None
    ):
        size = check.expected.value
        wholes = _wholes(check.subject.args[-1], new)
        return any(len(whole.args) == size for whole in wholes)
    if check.relation in ("contains", "!contains") and check.expected is not None:
        item = canon(check.expected)
        for whole in _wholes(check.subject, new):
            if (item in {canon(part) for part in whole.args}) == (check.relation == "contains"):
                return True
    wanted = check.expected.value if check.expected is not None else None
    if isinstance(wanted, str) and wanted and check.relation in ("contains", "equal"):
        own = canon(check.subject)
        if any(
            n.rank and n.relation == "raises" and wanted in n.message and canon(n.subject) in own for n in new
        ):
            return True
    if "exception(" in check.subject.text and check.expected is not None:
        return any(n.rank and n.relation == "raises" and check.expected.text in n.message for n in new)
    if check.relation in ("called-n", "called-with", "called", "called-any") and _recorded(check, new):
        return True
    if check.relation in ("equal", "raises", "called-with"):
        return False
    subjects = {canon(check.subject), canon(check.raw)}
    for other in new:
        if not other.rank or (other.conditions and not check.conditions):
            continue
        if (
            other.rank > check.rank
            and canon(other.subject) in subjects
            and other.relation in ("equal", "approx", "any-order", "raises", "partial")
        ):
            return True
        if (
            check.relation in ("defined", "true", "type")
            and other.relation in ("equal", "contains", "approx")
            and any(
                canon(part) in subjects
                for part in other.subject.walk()
                if part.op in ("name", "attr", "call")
            )
        ):
            return check.relation != "type"
    return False


_RECORDS = re.compile(r"\.(?:call_args_list|mock_calls|method_calls|mock\.calls|calls|requests|sent)$")


def _recorded(check: Check, new: Sequence[Check]) -> bool:
    """Is the whole record of a double's calls compared with a list of as many?"""
    target = canon(check.subject)
    wanted = set(literals(check.expected)) if check.expected is not None else set()
    for other in new:
        if other.rank and other.relation == "equal" and other.expected is not None:
            values = other.expected
            if canon(other.subject).startswith(target) and _RECORDS.search(canon(other.subject)):
                if check.relation == "called-n" and values.op == "list":
                    number = check.expected.value if check.expected is not None else 1
                    return len(values.args) == number
                if wanted <= set(literals(values)):
                    return True
    return False


def _score(old: Check, new: Check) -> int:
    one, two = canon(old.subject), canon(new.subject)
    score = 0
    if one == two or (new.relation == "nothing" and one in two):
        score = 100
    elif canon(old.raw) == canon(new.raw):
        score = 90
    elif one in two or canon(old.raw) in two:
        score = 80
    elif two in one and len(two) > 3:
        score = 70
    elif shape(old.raw) == shape(new.raw) or shape(old.subject) == shape(new.subject):
        score = 45
    if old.expected is not None and new.expected is not None and canon(old.expected) == canon(new.expected):
        score += 12 if old.expected.text in _TRIVIAL else 42
    elif new.relation == "nothing" and old.expected is not None and new.subject.text == old.expected.text:
        score += 40
    if score:
        score += 8 * (old.relation == new.relation) + 4 * (old.row == new.row)
    return score


def _paired(old: list[Check], new: list[Check]) -> tuple[list[tuple[Check, Check]], list[Check], list[Check]]:
    if not old or not new or len(old) * len(new) > MAX_PAIRS:
        return [], old, new
    scored = []
    for at, one in enumerate(old):
        for to, two in enumerate(new):
            score = _score(one, two)
            if score >= 45:
                scored.append((-score, abs(at - to), at, to))
    pairs, taken, used = [], set(), set()
    for _, _, at, to in sorted(scored):
        if at not in taken and to not in used:
            taken.add(at)
            used.add(to)
            pairs.append((old[at], new[to]))
    return (
        pairs,
        [check for at, check in enumerate(old) if at not in taken],
        [check for to, check in enumerate(new) if to not in used],
    )


def _missing(
    old: list[Check], extra: list[Check], pool: Pool, gone: Collection[str], hidden_rows: bool
) -> list[Change]:
    """Old assertions without a partner; `extra` are the new ones without."""
    found = []
    rest = [check for check in extra if check.rank]
    recorded: set[str] = set()
    """Doubles whose calls another assertion checks now."""
    for check in old:
        if pool.moved(check) or (check.relation == "called-n" and canon(check.subject) in recorded):
            continue
        stand_in = next((n for n in rest if _stands_in(check, n)), None)
        if stand_in is not None:
            if check.relation == "called-with":
                recorded.add(canon(check.subject))
            rest.remove(stand_in)
            continue
        if _together(check, rest):
            continue
        text = check.subject.text if len(check.subject.text) <= 100 else check.raw.text[:100]
        called = {part.callee.rpartition(".")[2] for part in check.subject.walk() if part.op == "call"}
        named = {part.name for part in check.subject.walk() if part.op in ("name", "attr", "kw")}
        if (called | named) & set(gone):
            words = ", ".join(sorted((called | named) & set(gone)))
            kind = Loss("assertion-deleted", "review", f"the assertion on {text} is gone, and so is {words}")
        elif again := pool.asked_again(check):
            if again == "same":
                continue
            kind = Loss("expected-value-changed", "review", f"something else is expected of {text} now")
        elif check.subject.text in pool.subjects:
            kind = Loss("expected-value-changed", "review", f"something else is expected of {text} now")
        elif any(_as_strong(n, check) for n in rest):
            other = next(n for n in rest if _as_strong(n, check))
            rest.remove(other)
            kind = Loss(
                "assertion-replaced",
                "review",
                f"the assertion on {text} is gone; a new one is on {other.raw.text[:80]}",
            )
        elif check.row and hidden_rows:
            kind = Loss("cases-changed", "review", f"the rows are elsewhere now: {check.row[:120]}")
        elif check.row:
            kind = Loss("cases-removed", "block", f"a case is gone: {check.row[:120]}")
        else:
            kind = Loss("assertion-deleted", "block", f"the assertion on {text} is gone")
        found.append(Change(check, None, kind))
    return found


def _as_strong(new: Check, old: Check) -> bool:
    """Does another assertion demand about as much, as surely?"""
    return new.rank >= old.rank - 5 and len(new.conditions) <= len(old.conditions)


def _together(old: Check, rest: Sequence[Check]) -> bool:
    """Do several new assertions together hold the values of an old one?"""
    wanted = set(literals(old.expected)) if old.expected is not None else set()
    have: set[str] = set()
    for new in rest:
        if new.rank >= old.rank and len(new.conditions) <= len(old.conditions):
            have |= set(literals(new.subject)) | (
                set(literals(new.expected)) if new.expected is not None else set()
            )
    return len(wanted) > 1 and wanted <= have


def _stands_in(old: Check, new: Check) -> bool:
    """Does a new assertion hold the same values, put another way?"""
    if new.rank < old.rank - 15 or new.lost or len(new.conditions) > len(old.conditions):
        return False
    wanted = set(literals(old.expected)) if old.expected is not None else set()
    if old.message:
        wanted.add(old.message)
    have = set(literals(new.expected)) if new.expected is not None else set()
    have |= set(literals(new.subject)) | ({new.message} if new.message else set())
    if wanted:
        words = set(re.findall(r"\w+", " ".join(wanted)))
        said = set(re.findall(r"\w+", " ".join(have)))
        return wanted <= have or (len(words) >= 3 and words <= said and new.rank >= old.rank)
    hollow = old.relation == "not-called" or (old.expected is not None and old.expected.text in _TRIVIAL)
    return (
        hollow
        and new.relation in ("equal", "not-called")
        and (new.expected is None or new.expected.text in _TRIVIAL)
    )

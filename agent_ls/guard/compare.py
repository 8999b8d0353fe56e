"""What became of each test: its assertions, its markers, its mocks."""

from __future__ import annotations

import builtins
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

from attrs import define, evolve, field

from agent_ls.guard.align import Change, Pool, align
from agent_ls.guard.checks import Check, canon
from agent_ls.guard.losses import Severity, short
from agent_ls.guard.mocking import Mock, constructed, is_double
from agent_ls.guard.model import File, Marker, Test
from agent_ls.guard.places import elsewhere
from agent_ls.guard.properties import narrowed, widened
from agent_ls.guard.protected import Finding

MAX_PER_TEST = 6

_MARKERS: dict[str, tuple[str, Severity, str]] = {
    "skip": ("test-skipped", "block", "is skipped"),
    "xfail": ("test-expected-to-fail", "block", "is expected to fail"),
    "only": ("test-focused", "block", "runs alone: all others are left out"),
    "todo": ("test-skipped", "block", "is a to-do, without a body that runs"),
    "skip-if": ("test-skipped-conditionally", "block", "is skipped under a condition"),
    "condition": ("test-skipped-conditionally", "review", "is skipped under a condition"),
    "retry": ("test-retried", "review", "is tried again after a failure"),
    "filtered": ("cases-removed", "block", "runs on a part of its rows only"),
    "excluded": ("test-excluded", "block", "is left out of the build"),
    "not-awaited": ("test-not-awaited", "block", "is a coroutine that nobody awaits"),
}
_MISSING = re.compile(
    r"^if raised (?:\w+\.)*(?:ImportError|ModuleNotFoundError|FileNotFoundError|ConnectionError)$"
)
_PLATFORM_TAGS = re.compile(r"\b(?:windows|linux|darwin|unix|go1|amd64|arm64|cgo|race|js|wasm)\b")


@define
class Compared:
    """Findings about tests, gathered: one per place and kind, with the ids of all tests concerned."""

    before: dict[str, File]
    after: dict[str, File]
    requirements: Callable[[], str]
    undefined: Callable[[], frozenset[str]]
    """Names that the change's sources no longer define."""
    found: dict[tuple[str, int, str], Finding] = field(factory=dict)

    def add(
        self,
        kind: str,
        severity: Severity,
        path: str,
        line: int,
        message: str,
        *,
        before: str = "",
        after: str = "",
        test: str = "",
    ) -> None:
        key = (path, line, kind)
        known = self.found.get(key)
        if known is not None:
            if test and test not in known.tests and len(known.tests) < 50:
                self.found[key] = evolve(known, tests=(*known.tests, test))
            return
        self.found[key] = Finding(
            kind, severity, path, max(line, 1), message, before, after, (test,) if test else ()
        )

    def text(self, side: str, path: str, line: int) -> str:
        file = (self.before if side == "before" else self.after).get(path)
        return file.line(line) if file is not None else ""

    # -- pairs
    def pair(self, old: Test, new: Test, pool: Pool, gone: Collection[str]) -> None:
        """Findings for one test that is there before and after."""
        hidden = any(m.kind == "rows" for m in new.markers) and not any(m.kind == "rows" for m in old.markers)
        changes = align(old.checks, new.checks, pool, gone, hidden_rows=hidden)
        if old.unit and new.unit:
            changes += align(old.returns, new.returns, pool, gone)
        for change in changes[:MAX_PER_TEST]:
            self._change(change, new)
        self._doubled(old, new)
        if not new.unit:
            self._markers(old, new)
            self._stops(old, new)
            self._emptied(old, new)
        elif new.set_up:
            self._stops(old, new)

    def set_up(self, new: Test) -> None:
        """Findings for something new that runs before the tests."""
        self._stops(Test(new.path, new.id, new.name, new.line, new.end), new)

    def _doubled(self, old: Test, new: Test) -> None:
        """Objects under test that became doubles: `shop = Mock()` in place of `shop = Shop()`."""
        for name, was in old.made.items():
            now = new.made.get(name)
            if now is None or is_double(was) or not constructed(was):
                continue
            own = now.op == "call" and now.callee in new.own and was.callee not in old.own
            if not is_double(now) and not (own and name == "<result>" and new.set_up):
                continue
            what = "what it returns" if name == "<result>" else name
            self.add(
                "mock-replaces-unit",
                "block",
                new.path,
                now.line or new.line,
                f"{new.name}: {what} was {short(was)}, now it is a double",
                after=self.text("after", new.path, now.line),
                test=new.label,
            )

    def _change(self, change: Change, new: Test) -> None:
        loss = change.loss
        if new.unit and change.old.rank <= 34 and loss.severity == "block":
            loss = evolve(loss, severity="review")  # a type checker's `assert x is not None`
        if change.new is not None:
            path, line = change.new.path or new.path, change.new.line or new.line
        else:
            path, line = change.old.path or new.path, change.old.line
        self.add(
            loss.kind,
            loss.severity,
            path,
            line,
            f"{new.name}: {loss.message}" if not new.unit else loss.message,
            before=self.text("before", change.old.path, change.old.line),
            after=self.text("after", path, line) if change.new is not None else "",
            test=new.label if not new.unit else "",
        )

    def _emptied(self, old: Test, new: Test) -> None:
        if "<generator>" in new.calls and "<generator>" not in old.calls and old.checks:
            text = f"{new.name} is a generator now: the test runner doesn't run its body"
            self.add("test-not-awaited", "block", new.path, new.line, text, test=new.label)
        if "<async>" in new.calls and "<async>" not in old.calls and old.checks and not self._awaits(new):
            text = f"{new.name} is a coroutine now, and nothing says who awaits it"
            self.add("test-not-awaited", "block", new.path, new.line, text, test=new.label)
        if old.checks or not old.calls or new.checks:
            return
        if not (old.calls & new.calls) and not any(m.kind == "skip" for m in new.markers):
            self.add(
                "test-emptied",
                "review" if new.calls else "block",
                new.path,
                new.line,
                f"{new.name} no longer calls anything that it called",
                test=new.label,
            )

    def _markers(self, old: Test, new: Test) -> None:
        had, have = Counter(m.kind for m in old.markers), Counter(m.kind for m in new.markers)
        dead = "skip" in had or "todo" in had or "excluded" in had
        for marker in new.markers:
            if marker.kind in _MARKERS and had[marker.kind] < have[marker.kind] and not dead:
                kind, severity, what = _MARKERS[marker.kind]
                if marker.kind == "excluded" and _PLATFORM_TAGS.search(marker.text):
                    severity = "review"
                if marker.kind == "xfail" and "skip" in had:
                    continue
                if marker in old.markers:
                    continue
                self._mark(kind, severity, new, marker, f"{new.name} {what}: {marker.text[:120]}")
        for kind, direction in (
            ("timeout", 1),
            ("limit", 1),
            ("examples", -1),
            ("retry", 1),
            ("row-count", -1),
        ):
            one, two = _largest(old.markers, kind), _largest(new.markers, kind)
            if one is None or two is None:
                if (
                    kind == "timeout"
                    and two is not None
                    and one is None
                    and two.value > 5000
                    and not new.path.endswith(".py")
                ):
                    self._mark(
                        "time-limit-raised",
                        "review",
                        new,
                        two,
                        f"{new.name} may take longer: {two.text[:80]}",
                    )
                if kind == "examples" and two is not None and one is None and two.value < 50:
                    self._mark(
                        "property-narrowed",
                        "block",
                        new,
                        two,
                        f"{new.name} tries only {two.value:g} examples",
                    )
                continue
            if (two.value - one.value) * direction > 0:
                name = {
                    "timeout": "time-limit-raised",
                    "limit": "time-limit-raised",
                    "examples": "property-narrowed",
                    "retry": "test-retried",
                    "row-count": "cases-removed",
                }[kind]
                far = kind == "row-count" or (kind == "examples" and two.value <= one.value / 4)
                self._mark(
                    name,
                    "block" if far else "review",
                    new,
                    two,
                    f"{new.name}: {kind} went from {one.value:g} to {two.value:g}",
                )
        self._generated(old, new)
        self._planned(old, new)

    def _planned(self, old: Test, new: Test) -> None:
        """`expect.assertions(n)`: how many assertions must have run."""
        one, two = _largest(old.markers, "planned"), _largest(new.markers, "planned")
        if (
            one is not None
            and two is not None
            and two.value < one.value
            and len(new.checks) >= len(old.checks)
        ):
            self._mark(
                "assertion-count-lowered", "block", new, two, f"{new.name}: fewer assertions must have run"
            )
        elif one is not None and two is None and any(c.conditions or c.lost for c in new.checks):
            message = f"{new.name}: nothing says any more how many assertions must have run"
            self._mark("assertion-count-lowered", "block", new, one, message, side="before")

    def _generated(self, old: Test, new: Test) -> None:
        """The inputs that a property is tried with."""
        one, two = (
            [m for m in old.markers if m.kind == "given"],
            [m for m in new.markers if m.kind == "given"],
        )
        for was, now in zip(one, two, strict=False):
            if was.text != now.text:
                if widened(was.text, now.text):
                    continue
                severity: Severity = "block" if narrowed(was.text, now.text) else "review"
                self._mark(
                    "property-narrowed",
                    severity,
                    new,
                    now,
                    f"{new.name} is tried with other inputs: {now.text[:120]}",
                )
        lost = [m for m in old.markers if m.kind == "example" and m.text not in {n.text for n in new.markers}]
        for marker in lost:
            self._mark(
                "cases-removed",
                "block",
                new,
                marker,
                f"{new.name}: an example is gone: {marker.text[:100]}",
                side="before",
            )
        had = [m for m in old.markers if m.kind == "rows"]
        for was, now in zip(had, [m for m in new.markers if m.kind == "rows"], strict=False):
            if len(now.text) < len(was.text) and now.text != was.text:
                self._mark(
                    "cases-changed", "review", new, now, f"{new.name} runs on other rows: {now.text[:100]}"
                )

    def _mark(
        self, kind: str, severity: Severity, test: Test, marker: Marker, message: str, side: str = "after"
    ) -> None:
        text = self.text(side, test.path, marker.line)
        self.add(kind, severity, test.path, marker.line, message, **{side: text}, test=test.label)

    def _awaits(self, test: Test) -> bool:
        """Is there anything that runs a coroutine as a test?"""
        said = self.after[test.path].text + self.requirements()
        return re.search(r"asyncio|anyio|trio|tornado|twisted|aiohttp|tortoise", said) is not None

    def _optional(self, text: str) -> bool:
        """Does a skip wait for a package that the project names itself?"""
        match = re.match(r"pytest\.importorskip\('([\w.]+)'", text)
        return match is not None and match.group(1).split(".")[0].lower() in self.requirements()

    def _stops(self, old: Test, new: Test) -> None:
        had = {(stop.kind, stop.conditions) for stop in old.stops}
        for stop in new.stops:
            if (stop.kind, stop.conditions) in had or any(m.kind == "skip" for m in old.markers):
                continue
            if stop.kind == "exit":
                self.add(
                    "test-exits",
                    "block",
                    new.path,
                    stop.line,
                    f"{new.name} ends the process: {stop.text[:80]}",
                    test=new.label,
                )
                continue
            if stop.kind == "given":
                continue
            soft = any(elsewhere(t) or "Short()" in t or _MISSING.search(t) for t in stop.conditions)
            severity: Severity = "review" if soft or self._optional(stop.text) else "block"
            under = f" {stop.conditions[-1][:80]}" if stop.conditions else ""
            text = self.text("after", new.path, stop.line)
            self.add(
                "test-skipped",
                severity,
                new.path,
                stop.line,
                f"{new.name} skips itself{under}: {stop.text[:80]}",
                after=text,
                test=new.label,
            )

    # -- tests that are gone
    def gone(
        self, old: Test, pool: Pool, removed: Collection[str], uncollected: Iterable[Test], rewritten: bool
    ) -> None:
        """A test without a partner in the new tree."""
        rare = next((m for m in old.markers if m.kind in ("skip", "todo", "condition", "excluded")), None)
        if rare is not None and not (rare.kind == "excluded" and rare.text.startswith("abstract")):
            if not old.checks:
                return
            what = "skipped" if rare.kind in ("skip", "todo") else "rarely run"
            self.add(
                "test-deleted",
                "review",
                old.path,
                old.line,
                f"the {what} test {old.name} was deleted",
                test=old.label,
            )
            return
        alive = [check for check in old.checks if check.rank]
        missing = [check for check in alive if not pool.moved(check)]
        again = [pool.asked_again(check) for check in missing]
        if missing and all(again):
            if "other" in again:
                text = f"{old.name} is gone; other tests expect something else of the same inputs"
                self.add("expected-value-changed", "review", old.path, old.line, text, test=old.label)
            return
        before = self.text("before", old.path, old.line)
        if alive and not missing:
            return
        hidden = next((t for t in uncollected if _same_name(t, old)), None)
        if hidden is not None:
            text = self.text("after", hidden.path, hidden.line)
            message = f"{old.name} is no longer collected by the test runner"
            self.add(
                "test-not-collected",
                "block",
                hidden.path,
                hidden.line,
                message,
                before=before,
                after=text,
                test=old.label,
            )
            return
        words = {
            part.callee.rpartition(".")[2] for c in alive for part in c.subject.walk() if part.op == "call"
        } | old.calls
        words |= {part.name for c in alive for part in c.subject.walk() if part.op in ("name", "attr")}
        folded = re.sub(r"[\W_]+", "", old.id).lower()
        words |= {name for name in removed if len(name) > 7 and re.sub("_", "", name).lower() in folded}
        words |= set(old.tokens) & self.undefined()
        if alive and all(_about_itself(check, old) for check in alive):
            text = f"{old.name}, which checks only what it defines itself, was deleted"
            self.add("test-deleted", "review", old.path, old.line, text, before=before, test=old.label)
        elif words & (set(removed) | self.undefined()):
            names = ", ".join(sorted(words & (set(removed) | self.undefined()))[:6])
            self.add(
                "test-deleted",
                "review",
                old.path,
                old.line,
                f"{old.name} was deleted together with {names}",
                before=before,
                test=old.label,
            )
        elif not old.checks and not old.calls:
            self.add(
                "test-deleted",
                "info",
                old.path,
                old.line,
                f"the empty test {old.name} was deleted",
                test=old.label,
            )
        elif old.checks and not alive:
            self.add(
                "test-deleted",
                "info",
                old.path,
                old.line,
                f"{old.name}, which could not fail, was deleted",
                test=old.label,
            )
        elif rewritten:
            message = f"{old.name} is gone; new tests beside it demand as much of the same functions"
            self.add("test-rewritten", "review", old.path, old.line, message, before=before, test=old.label)
        elif len(missing) < len(alive):
            message = (
                f"{old.name} was taken apart, and {len(missing)} of its {len(alive)} assertions are gone"
            )
            self.add(
                "assertion-deleted",
                "block",
                old.path,
                missing[0].line,
                message,
                before=self.text("before", old.path, missing[0].line),
                test=old.label,
            )
        else:
            self.add(
                "test-deleted",
                "block",
                old.path,
                old.line,
                f"{old.name} was deleted",
                before=before,
                test=old.label,
            )

    # -- mocks
    def mocks(
        self,
        old: Sequence[Mock],
        new: Sequence[Mock],
        path: str,
        tests: Sequence[Test],
        imported: Collection[str],
        defined: Collection[str],
        label: str,
    ) -> None:
        """Replacements that are new. `imported`: modules that the file tests; `defined`: functions of"
        " these."""
        had = {mock.target for mock in old}
        subjects = _tested(tests)
        roots = _roots(tests)
        for mock in new:
            if mock.target in had:
                continue
            text = self.text("after", path, mock.line)
            if mock.module:
                stem = re.sub(r"\.[cm]?[jt]sx?$", "", mock.target)
                if any(stem == re.sub(r"\.[cm]?[jt]sx?$", "", name) for name in imported):
                    self.add(
                        "mock-replaces-unit",
                        "block",
                        path,
                        mock.line,
                        f"the module under test, {mock.target}, is mocked",
                        after=text,
                        test=label,
                    )
                continue
            own = mock.name in defined and (
                mock.name in subjects or mock.owner.split(".")[0].split("(")[0] in roots
            )
            if own:
                self.add(
                    "mock-replaces-unit",
                    "block",
                    path,
                    mock.line,
                    f"{mock.target}, which is under test, is replaced",
                    after=text,
                    test=label,
                )
            elif mock.name in defined and mock.canned:
                self.add(
                    "mock-added",
                    "review",
                    path,
                    mock.line,
                    f"{mock.target} of the code under test is replaced",
                    after=text,
                    test=label,
                )


def _about_itself(check: Check, test: Test) -> bool:
    """Does an assertion only concern classes and functions that its test defines?"""
    names = {
        part.name
        for part in check.subject.walk()
        if part.op == "name" and part.name not in ("self", "None") and not hasattr(builtins, part.name)
    }
    return bool(names) and names <= test.own


def _same_name(new: Test, old: Test) -> bool:
    """The same name but for what keeps a runner from finding it: `_test_x`, `xtest_x`, `check_x`."""
    one, two = (
        re.sub(
            r"^_*(?:x|no|skip|disabled|old|tmp|check|todo)?_*(?:test)?_*|[\W_]+|disabled$|skip$",
            "",
            t.name,
            flags=re.IGNORECASE,
        ).lower()
        for t in (new, old)
    )
    return one == two and len(two) > 2


def _tested(tests: Sequence[Test]) -> set[str]:
    """Names of functions that assertions are about."""
    found: set[str] = set()
    for test in tests:
        for check in test.checks:
            for expr in (check.subject, *([check.expected] if check.expected is not None else [])):
                found |= {part.callee.rpartition(".")[2] for part in expr.walk() if part.op == "call"}
        found |= test.calls
    return found


def _roots(tests: Sequence[Test]) -> set[str]:
    """Names of the objects that tests call methods of."""
    found: set[str] = set()
    for test in tests:
        found |= {re.split(r"[.(\[]", canon(check.raw))[0] for check in test.checks}
        found |= set(test.tokens)
    return found


def _largest(markers: Sequence[Marker], kind: str) -> Marker | None:
    return max((m for m in markers if m.kind == kind), key=lambda m: m.value, default=None)


def checks_of(tests: Iterable[Test]) -> list[Check]:
    """The checks of tests that run at all."""
    dead = {"skip", "todo", "excluded", "not-awaited", "xfail"}
    return [check for test in tests if not any(m.kind in dead for m in test.markers) for check in test.checks]

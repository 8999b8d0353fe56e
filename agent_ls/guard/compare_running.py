"""How and whether a test runs: its markers, its limits, the places where it skips itself."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

from attrs import define, evolve, field

from agent_ls.guard.losses import Severity
from agent_ls.guard.model import File, Marker, Test
from agent_ls.guard.places import elsewhere
from agent_ls.guard.properties import narrowed, widened
from agent_ls.guard.protected import Finding

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
class Running:
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

    def emptied(self, old: Test, new: Test) -> None:
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

    def markers(self, old: Test, new: Test) -> None:
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

    def stops(self, old: Test, new: Test) -> None:
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


def _largest(markers: Sequence[Marker], kind: str) -> Marker | None:
    return max((m for m in markers if m.kind == kind), key=lambda m: m.value, default=None)

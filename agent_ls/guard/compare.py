"""What became of each test: its assertions, and whether it is there at all."""

from __future__ import annotations

import builtins
import re
from collections.abc import Collection, Iterable

from attrs import define, evolve

from agent_ls.guard.align import Change, Pool, align
from agent_ls.guard.checks import Check
from agent_ls.guard.compare_doubles import Doubles
from agent_ls.guard.model import Test

MAX_PER_TEST = 6


@define
class Compared(Doubles):
    """Findings about tests."""

    # -- pairs
    def pair(self, old: Test, new: Test, pool: Pool, gone: Collection[str]) -> None:
        """Findings for one test that is there before and after."""
        hidden = any(m.kind == "rows" for m in new.markers) and not any(m.kind == "rows" for m in old.markers)
        changes = align(old.checks, new.checks, pool, gone, hidden_rows=hidden)
        if old.unit and new.unit:
            for change in align(old.returns, new.returns, pool, gone):
                hollow = not any(check.rank for check in new.returns)
                sure = hollow or change.loss.kind in ("assertion-always-true", "comparison-normalised")
                softer = evolve(change.loss, severity="review") if not sure else change.loss
                changes.append(evolve(change, loss=softer))
        for change in changes[:MAX_PER_TEST]:
            self._change(change, new)
        self.doubled(old, new)
        if not new.unit:
            self.markers(old, new)
            self.stops(old, new)
            self.emptied(old, new)
        elif new.set_up:
            self.stops(old, new)

    def set_up(self, new: Test) -> None:
        """Findings for something new that runs before the tests."""
        self.stops(Test(new.path, new.id, new.name, new.line, new.end), new)

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


def checks_of(tests: Iterable[Test]) -> list[Check]:
    """The checks of tests that run at all."""
    dead = {"skip", "todo", "excluded", "not-awaited", "xfail"}
    return [check for test in tests if not any(m.kind in dead for m in test.markers) for check in test.checks]

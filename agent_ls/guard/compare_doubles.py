"""What stands in place of the code under test: doubles that a change puts there."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from attrs import define

from agent_ls.guard.checks import canon
from agent_ls.guard.compare_running import Running
from agent_ls.guard.losses import short
from agent_ls.guard.mocking import Mock, constructed, is_double
from agent_ls.guard.model import Test


@define
class Doubles(Running):
    """Findings about replaced code."""

    def doubled(self, old: Test, new: Test) -> None:
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
        """Replacements that are new. `imported`: modules that the file tests; `defined`: functions of
        these."""
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

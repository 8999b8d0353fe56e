"""How long candidates may run, and in which order they are tried."""

from __future__ import annotations

import pytest

from agent_ls.repair.budgets import FLOOR_S, STEP, Budgets
from agent_ls.repair.observation import Observation
from agent_ls.repair.ordering import chances, crowded


@pytest.mark.parametrize(
    ("cpu", "hanging", "test", "level", "expected"),
    [
        ({"good": 0.5}, set(), "good", 0, FLOOR_S + 1.0),
        ({"good": 0.5}, set(), "good", 1, STEP * FLOOR_S + 1.0),
        # An asked test that failed at once may do as much as the others when it is right.
        ({"good": 0.5, "bad": 0.001}, set(), "bad", 0, FLOOR_S + 1.0),
        ({"good": 0.5, "bad": 2.0}, set(), "bad", 0, FLOOR_S + 4.0),
        # What a hanging test used says nothing about what it needs.
        ({"good": 0.5, "bad": 2.0}, {"bad"}, "bad", 0, FLOOR_S + 1.0),
        ({}, {"bad"}, "bad", 0, FLOOR_S),
        ({"good": 0.5}, set(), "never seen", 0, FLOOR_S + 1.0),
    ],
)
def test_limit(cpu: dict[str, float], hanging: set[str], test: str, level: int, expected: float) -> None:
    budgets = Budgets(["bad"], Observation(passing=["good"], cpu=cpu, hanging=hanging))
    assert budgets.limit(test, level) == pytest.approx(expected)


def test_cheapest_failing_test_runs_first_and_a_hanging_one_last() -> None:
    seen = Observation(cpu={"slow": 3.0, "quick": 0.1, "endless": 0.0}, hanging={"endless"})
    budgets = Budgets(["slow", "endless", "quick"], seen)
    assert budgets.cheapest_first(["slow", "endless", "quick"]) == ["quick", "slow", "endless"]


def test_an_operator_with_many_edits_does_not_crowd_out_one_with_few() -> None:
    operators = ["insert-statement"] * 5000 + ["compare-operator"] * 4 + ["yield-from"]
    scores = [0.12] * 5000 + [0.1] * 4 + [0.1]
    found = chances(operators, scores)
    order = sorted(range(len(found)), key=lambda index: -found[index])
    assert {operators[index] for index in order[:5]} == {"compare-operator", "yield-from"}
    assert all(0 < chance < 1 for chance in found)


def test_within_an_operator_the_better_fit_comes_first() -> None:
    found = chances(["constant", "constant", "slice"], [0.8, 0.2, 0.1])
    assert found[0] == pytest.approx(4 * found[1])


def test_many_edits_of_one_line_fall_off() -> None:
    factors = crowded([("a.py", 1, "slice")] * 3 + [("a.py", 2, "slice")])
    assert factors[0] > factors[1] > factors[2]
    assert factors[3] == factors[0]

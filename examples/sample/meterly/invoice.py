"""Puts a month's fee and usage on one invoice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

from meterly.money import format_cents, percent_of
from meterly.period import Period
from meterly.plan import Plan
from meterly.usage import UsageRecord, units_in

DAYS_TO_PAY = 14


@dataclass(frozen=True)
class Line:
    """One line of an invoice; a discount is negative."""

    text: str
    cents: int


@dataclass(frozen=True)
class Invoice:
    """What a customer owes for one period."""

    period: Period
    lines: tuple[Line, ...]

    @property
    def total(self) -> int:
        return sum(line.cents for line in self.lines)

    @property
    def due(self) -> date:
        return self.period.last + timedelta(days=DAYS_TO_PAY)

    def __str__(self) -> str:
        rows = [f"{line.text:<40}{format_cents(line.cents):>12}" for line in self.lines]
        return "\n".join([*rows, f"{'total':<40}{format_cents(self.total):>12}"])


def make_invoice(
    plan: Plan,
    subscribed: Period,
    billed: Period,
    records: Iterable[UsageRecord],
    discount_percent: int = 0,
) -> Invoice:
    """The invoice for `billed`: the fee, the units beyond the included ones, and the discount on both."""
    fee = plan.fee_for(subscribed, billed)
    units = units_in(records, billed)
    lines = [Line(f"{plan.name}, {billed.overlap(subscribed)} days", fee)]
    if units > plan.included_units:
        lines.append(Line(f"{units - plan.included_units} further units", plan.overage(units)))
    if discount_percent:
        gross = sum(line.cents for line in lines)
        lines.append(Line(f"discount {discount_percent} %", -percent_of(gross, discount_percent)))
    return Invoice(billed, tuple(lines))

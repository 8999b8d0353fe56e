"""What a customer has used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from meterly.period import Period


@dataclass(frozen=True)
class UsageRecord:
    """Units that one meter counted on one day."""

    day: date
    units: int
    meter: str = "default"


def units_in(records: Iterable[UsageRecord], period: Period) -> int:
    """All units used within `period`."""
    return sum(record.units for record in records if period.contains(record.day))


def units_by_day(records: Iterable[UsageRecord]) -> dict[date, int]:
    """Units of each day on which something was used, in the order of the days."""
    totals: dict[date, int] = {}
    for record in records:
        totals[record.day] = totals.get(record.day, 0) + record.units
    return dict(sorted(totals.items()))

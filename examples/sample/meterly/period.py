"""Billing periods: runs of days, both ends included."""

from __future__ import annotations

import calendar
from dataclasses import dataclass
from datetime import date, timedelta


@dataclass(frozen=True)
class Period:
    """The days from `first` to `last`, both of them included."""

    first: date
    last: date

    def __post_init__(self) -> None:
        if self.last < self.first:
            raise ValueError(f"a period can't end ({self.last}) before it begins ({self.first})")

    @classmethod
    def month(cls, year: int, month: int) -> Period:
        """The calendar month."""
        days = calendar.monthrange(year, month)[1]
        return cls(date(year, month, 1), date(year, month, days))

    @property
    def days(self) -> int:
        """How many days the period has."""
        return (self.last - self.first).days + 1

    def contains(self, day: date) -> bool:
        """Does `day` belong to the period?"""
        return self.first <= day < self.last

    def overlap(self, other: Period) -> int:
        """How many days both periods share."""
        first = max(self.first, other.first)
        last = min(self.last, other.last)
        return max(0, (last - first).days + 1)

    def following(self) -> Period:
        """The calendar month after this period's last day."""
        after = self.last + timedelta(days=1)
        return Period.month(after.year, after.month)

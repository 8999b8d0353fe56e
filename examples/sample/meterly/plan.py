"""What a customer has subscribed to."""

from __future__ import annotations

from dataclasses import dataclass

from meterly.period import Period


@dataclass(frozen=True)
class Plan:
    """A monthly fee that includes some units, and a price for each further one (all in cents)."""

    name: str
    monthly_fee: int
    included_units: int
    unit_price: int

    def fee_for(self, subscribed: Period, billed: Period) -> int:
        """The fee for `billed`, in proportion to its days on which the plan was subscribed."""
        days = billed.overlap(subscribed)
        return (self.monthly_fee * days + billed.days // 2) // billed.days

    def overage(self, units: int) -> int:
        """What `units` cost beyond the included ones."""
        return max(0, units - self.included_units) * self.unit_price

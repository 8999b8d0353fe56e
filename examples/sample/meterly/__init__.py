"""Bills metered subscriptions."""

from meterly.invoice import Invoice, Line, make_invoice
from meterly.money import format_cents, percent_of, split_evenly
from meterly.period import Period
from meterly.plan import Plan
from meterly.usage import UsageRecord, units_by_day, units_in

__all__ = [
    "Invoice",
    "Line",
    "Period",
    "Plan",
    "UsageRecord",
    "format_cents",
    "make_invoice",
    "percent_of",
    "split_evenly",
    "units_by_day",
    "units_in",
]

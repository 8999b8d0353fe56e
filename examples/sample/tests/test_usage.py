import unittest
from datetime import date

from meterly import Period, UsageRecord, units_by_day, units_in

RECORDS = [
    UsageRecord(date(2024, 2, 29), 3),
    UsageRecord(date(2024, 3, 1), 10),
    UsageRecord(date(2024, 3, 1), 5, meter="spare"),
    UsageRecord(date(2024, 3, 31), 40),
    UsageRecord(date(2024, 4, 1), 7),
]


class UsageTest(unittest.TestCase):
    def test_units_of_every_day_of_the_month_count(self):
        self.assertEqual(units_in(RECORDS, Period.month(2024, 3)), 55)

    def test_nothing_used_is_zero(self):
        self.assertEqual(units_in([], Period.month(2024, 3)), 0)

    def test_by_day_adds_up_the_meters(self):
        self.assertEqual(units_by_day(RECORDS)[date(2024, 3, 1)], 15)
        self.assertEqual(list(units_by_day(reversed(RECORDS))), sorted({r.day for r in RECORDS}))

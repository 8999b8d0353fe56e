import unittest
from datetime import date

from meterly import Period

MARCH = Period.month(2024, 3)


class PeriodTest(unittest.TestCase):
    def test_a_month_has_all_its_days(self):
        self.assertEqual(MARCH.days, 31)
        self.assertEqual(Period.month(2024, 2).days, 29)

    def test_contains_the_days_inside(self):
        self.assertTrue(MARCH.contains(date(2024, 3, 1)))
        self.assertTrue(MARCH.contains(date(2024, 3, 17)))

    def test_contains_its_last_day(self):
        self.assertTrue(MARCH.contains(date(2024, 3, 31)))

    def test_does_not_contain_the_days_around(self):
        self.assertFalse(MARCH.contains(date(2024, 2, 29)))
        self.assertFalse(MARCH.contains(date(2024, 4, 1)))

    def test_overlap_counts_shared_days(self):
        late = Period(date(2024, 3, 30), date(2024, 4, 10))
        self.assertEqual(MARCH.overlap(late), 2)
        self.assertEqual(MARCH.overlap(Period.month(2024, 5)), 0)

    def test_the_following_month_crosses_the_year(self):
        self.assertEqual(Period.month(2023, 12).following(), Period.month(2024, 1))

    def test_an_end_before_the_beginning_is_refused(self):
        with self.assertRaises(ValueError):
            Period(date(2024, 3, 2), date(2024, 3, 1))

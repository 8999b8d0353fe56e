import unittest

from meterly import format_cents, percent_of, split_evenly


class PercentTest(unittest.TestCase):
    def test_half_a_cent_is_rounded_up(self):
        self.assertEqual(percent_of(250, 10), 25)
        self.assertEqual(percent_of(245, 10), 25)
        self.assertEqual(percent_of(244, 10), 24)

    def test_more_than_all_is_refused(self):
        with self.assertRaises(ValueError):
            percent_of(100, 101)


class SplitTest(unittest.TestCase):
    def test_no_cent_is_lost(self):
        self.assertEqual(split_evenly(100, 3), [34, 33, 33])

    def test_no_parts_are_refused(self):
        with self.assertRaises(ValueError):
            split_evenly(100, 0)


class FormatTest(unittest.TestCase):
    def test_thousands_and_sign(self):
        self.assertEqual(format_cents(-123456), "-1,234.56")
        self.assertEqual(format_cents(5), "0.05")

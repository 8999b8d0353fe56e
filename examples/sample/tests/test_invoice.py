import unittest
from datetime import date

from meterly import Period, Plan, UsageRecord, make_invoice

TEAM = Plan("Team", monthly_fee=3100, included_units=100, unit_price=25)
MARCH = Period.month(2024, 3)
ALWAYS = Period(date(2020, 1, 1), date(2030, 12, 31))


class InvoiceTest(unittest.TestCase):
    def test_a_quiet_month_costs_the_fee(self):
        invoice = make_invoice(TEAM, ALWAYS, MARCH, [UsageRecord(date(2024, 3, 5), 100)])
        self.assertEqual(invoice.total, 3100)
        self.assertEqual(len(invoice.lines), 1)

    def test_further_units_are_billed_to_the_end_of_the_month(self):
        records = [UsageRecord(date(2024, 3, 5), 90), UsageRecord(date(2024, 3, 31), 30)]
        invoice = make_invoice(TEAM, ALWAYS, MARCH, records)
        self.assertEqual([line.text for line in invoice.lines], ["Team, 31 days", "20 further units"])
        self.assertEqual(invoice.total, 3100 + 20 * 25)

    def test_the_fee_is_prorated(self):
        joined = Period(date(2024, 3, 22), date(2024, 12, 31))
        self.assertEqual(make_invoice(TEAM, joined, MARCH, []).total, 1000)

    def test_a_discount_applies_to_fee_and_units(self):
        records = [UsageRecord(date(2024, 3, 5), 140)]
        self.assertEqual(make_invoice(TEAM, ALWAYS, MARCH, records, discount_percent=10).total, 3690)

    def test_due_two_weeks_after_the_period(self):
        self.assertEqual(make_invoice(TEAM, ALWAYS, MARCH, []).due, date(2024, 4, 14))

    def test_prints_a_total(self):
        self.assertTrue(str(make_invoice(TEAM, ALWAYS, MARCH, [])).endswith("31.00"))

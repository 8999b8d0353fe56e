"""Ticket prices by age."""


def price(age):
    """Children under 6 are free, up to 17 pay half."""
    if age < 6:
        return 0
    if age <= 17:
        return 5
    return 10

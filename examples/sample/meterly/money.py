"""Amounts of money are whole cents; nothing here ever holds a float."""


def percent_of(cents: int, percent: int) -> int:
    """`percent` per cent of `cents`, half a cent rounded up."""
    if not 0 <= percent <= 100:
        raise ValueError(f"not a percentage: {percent}")
    return (cents * percent + 50) // 100


def split_evenly(cents: int, parts: int) -> list[int]:
    """`cents` in `parts` shares that differ by one cent at most; the larger ones come first."""
    if parts < 1:
        raise ValueError("at least one part is needed")
    share, rest = divmod(cents, parts)
    return [share + 1] * rest + [share] * (parts - rest)


def format_cents(cents: int) -> str:
    """-123456 becomes "-1,234.56"."""
    sign = "-" if cents < 0 else ""
    whole, fraction = divmod(abs(cents), 100)
    return f"{sign}{whole:,}.{fraction:02}"
